"""R-SVM+, R-SVM_mu+ and MR-SVM as second-order cone programs, with the pairs that are listed.

    min   1/2 sum_k e_k + lam r + C sum_i xi_i
    subject to   y_i (w'z_i + b) >= 1 - xi_i,  xi_i >= 0,
                 R-SVM+      e_k >= w_k^2,        1/2 sum_k e_k  (z_ik - z_jk)^2 <= r
                 R-SVM_mu+   e_k mu_k >= w_k^2,   1/2 sum_k mu_k (z_ik - z_jk)^2 <= r,  sum mu = 1

In the published R-SVM+ (9) the pairs see w_k^2 itself. As e_k stands in them with a coefficient
that is not negative, ``e_k = w_k^2`` at the optimum, and pairs are linear rows here.

The linear SVM's interior point with a radius: R-SVM+ and R-SVM_mu+, some pairs being listed.

It works on both programs of `problem` at once. With D_pk the squares of pair p, v = Z'u and
q = D'theta, these are to hold at the optimum besides what `InteriorPoint` asks, all factors of
products being positive:

    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVM_mu+    s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

Added unknowns are mu, t and r. The multipliers theta of the pairs are eliminated, as those of the
rows are, so that many pairs cost little. `benchmarks/rsvm_plus_pairs.py` compares this with
second-order cone programs of a general solver.

Constraint generation for R-SVM+ and R-SVM_mu+: few of the n (n - 1)/2 pairs hold with equality.

Start with a few pairs, solve the program with those, add the pairs that violate their constraint
most, one a row at most, until the duality gap is closed. R-SVM_mu+ uses few columns as well, so
that with many (a kernel's) these are generated, too: a column is added if it violates the dual,
``q_k - v_k^2 < min over those in use``. Every round has a point that satisfies all pairs and a
bound that holds for all columns.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels import row_squares
from mmbench.machines.radius.problem import (
    RadiusPoint,
    RadiusProblem,
    RestrictedSolution,
    far_pairs,
)
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.interior_point import InteriorPoint, Values, solve_growing
from mmbench.solvers.rows import weighted_product

#: A weight mu, of a sum of 1, that is zero but for the solver's tolerance.
ZERO_WEIGHT = 1e-10


class Columns:
    """The columns of a program by name, and its rows as they are added.

    Parameters
    ----------
    **sizes : int
        Number of columns of each name.
    """

    def __init__(self, **sizes: int):
        ends = np.cumsum(list(sizes.values()))
        self.at = {
            name: slice(int(end) - size, int(end))
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n = int(ends[-1])

    def rows(self, n_rows: int, parts: Mapping[str, sparse.sparray | NDArray]) -> sparse.sparray:
        """Return rows that are zero but for some columns."""
        blocks = [
            sparse.csr_array(parts[name])
            if name in parts
            else sparse.csr_array((n_rows, where.stop - where.start))
            for name, where in self.at.items()
        ]
        return sparse.hstack(blocks)

    def margins(
        self, rows: NDArray, y: NDArray, slack_unit: float | NDArray = 1.0
    ) -> sparse.sparray:
        """Return the rows of ``1 - y_i (w'z_i + b) - xi_i <= 0``, without the 1."""
        n, signs = len(y), -y[:, None]
        xi = sparse.diags_array(-slack_unit * np.ones(n))
        parts = {"w": signs * rows, "b": signs, "xi": xi}
        return self.rows(n, parts)

    def products(self, d: int, second: str | None) -> tuple[sparse.sparray, NDArray]:
        """Return the cones of ``e_k mu_k >= w_k^2``, or of ``e_k >= w_k^2``: rows and sides.

        They read ``((e + mu)/2, (e - mu)/2, w)``, its first entry no smaller than the others.
        """
        take = [
            sparse.kron(sparse.eye_array(d), np.array(column)[:, None])
            for column in ([-0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, -1.0])
        ]
        parts = {"e": take[0], "w": take[2]}
        if second is not None:
            return self.rows(3 * d, parts | {second: take[1]}), np.zeros(3 * d)
        return self.rows(3 * d, parts), np.tile([0.5, -0.5, 0.0], d)


def largest_weights(problem: RadiusProblem, squares: NDArray) -> NDArray:
    """Return units for w: what |w_k| cannot exceed in R-SVM+, where it may be very small.

    w = 0 costs ``2 C`` for each row of the smaller class, and w_k alone at least ``(1 + lam D_k)
    w_k^2 / 2``, D_k being the largest square of a listed pair.
    """
    if problem.simplex:
        return np.ones(squares.shape[1])
    costs = problem.C * np.ones(len(problem.y))
    smaller = min(costs[problem.y > 0].sum(), costs[problem.y < 0].sum())
    return np.sqrt(4.0 * smaller / (1.0 + problem.lam * squares.max(axis=0)))


def radius_program(problem: RadiusProblem, squares: NDArray) -> tuple[ConeProgram, Columns]:
    """Return the program above, with w in units of `largest_weights` and e in their squares.

    Parameters
    ----------
    problem : RadiusProblem
    squares : ndarray of shape (m, k)
        Of the pairs listed, one at least.
    """
    (n, d), m = problem.rows.shape, len(squares)
    scale = largest_weights(problem, squares)
    seen = "mu" if problem.simplex else "e"
    columns = Columns(w=d, b=1, xi=n, e=d, mu=d if problem.simplex else 0, r=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["r"]] = 0.5 * scale**2, problem.lam
    cost[columns.at["xi"]] = problem.C
    weights = squares if problem.simplex else squares * scale**2
    cones, sides = columns.products(d, "mu" if problem.simplex else None)
    linear = [
        columns.margins(problem.rows * scale, problem.y),
        columns.rows(n, {"xi": -sparse.eye_array(n)}),
        columns.rows(m, {seen: 0.5 * weights, "r": np.full((m, 1), -1.0)}),
    ]
    one = columns.rows(1, {"mu": np.ones((1, d))} if problem.simplex else {})
    n_equations = int(problem.simplex)
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(one)[:n_equations],
        b=np.ones(n_equations),
        G=sparse.csc_array(sparse.vstack([*linear, cones])),
        h=np.concatenate([-np.ones(n), np.zeros(n + m), sides]),
        n_linear=2 * n + m,
        cones=(3,) * d,
    )
    return program, columns


def solve_cone(problem: RadiusProblem, pairs: NDArray, tol: float) -> RestrictedSolution:
    """Solve the program with some pairs; where the solver gives up, w and the multipliers are 0."""
    (n, d), m = problem.rows.shape, len(pairs)
    squares = problem.squares(pairs)
    program, columns = radius_program(problem, squares)
    unit = max(1.0, problem.lam, float(np.max(problem.C)))
    found = solve_socp(replace(program, c=program.c / unit), tol=tol)
    w, mu, u, theta = np.zeros(d), None, np.zeros(n), np.zeros(m)
    if problem.simplex:
        mu = np.full(d, 1.0 / d)
    if np.isfinite(found.x).all() and np.isfinite(found.z).all():
        u, theta = unit * problem.y * found.z[:n], unit * found.z[2 * n : 2 * n + m]
        w = found.x[columns.at["w"]] * largest_weights(problem, squares)
        if problem.simplex:
            w, mu = without_zeros(w, found.x[columns.at["mu"]])
    return RestrictedSolution(w=w, mu=mu, u=u, theta=theta, iterations=found.iterations)


def without_zeros(w: NDArray, mu: NDArray, part: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Return w and mu with the zeros that an interior point leaves above zero set to it.

    Parameters
    ----------
    w, mu : ndarray of shape (k,)
    part : ndarray of shape (k,), optional
        Of each column in the decisions. A column in large units may have one with a small mu.
    """
    kept = mu > ZERO_WEIGHT
    if part is not None:
        kept |= part > ZERO_WEIGHT * part.max()
    mu = np.where(kept, mu, 0.0)
    return np.where(mu > 0, w, 0.0), mu / mu.sum()


#: Times that a system of rows and pairs is solved again for what columns in large units hid.
REFINEMENTS = 2


def solve_interior(problem: RadiusProblem, pairs: NDArray, tol: float) -> RestrictedSolution:
    """Solve the program with some pairs; where rounding ends it early, its last point is returned.

    Parameters
    ----------
    problem : RadiusProblem
    pairs : ndarray of int of shape (m, 2)
        One at least.
    tol : float
        Gap relative to the value.
    """
    paid = pairs if problem.lam > 0 else pairs[:0]
    kind = _Simplex if problem.simplex else _Squares
    squares, largest = problem.squares(paid), float(np.max(problem.C))
    shares = problem.C / largest
    point = solve_growing(lambda C, a: kind(problem, squares, C * shares, a), largest, tol)
    at = point.at
    w, mu = at["w"], None
    if problem.simplex:
        w, mu = without_zeros(w, at["mu"], np.abs(w) * np.sqrt(row_squares(problem.rows.T)))
    theta = np.append(at["theta"], np.zeros(len(pairs) - len(paid)))
    u = problem.y * at["a"]
    return RestrictedSolution(w=w, mu=mu, u=u, theta=theta, iterations=point.iterations)


class _Pairs(InteriorPoint, ABC):
    """What both programs share; r is the last of the added unknowns."""

    positive = (*InteriorPoint.positive, "theta")
    products = (*InteriorPoint.products, ("e", "theta", 1.0))

    def __init__(
        self,
        problem: RadiusProblem,
        squares: NDArray,
        C: float | NDArray,
        a: NDArray | None = None,
    ):
        self.D = squares
        theta = np.full(len(squares), problem.lam / max(len(squares), 1))
        super().__init__(problem.rows, problem.y, C, a, theta=theta, **self._weights(problem.rows))

    def _weights(self, rows: NDArray) -> Values:
        """Return the first weights of the columns, where these are unknown, by their name."""
        return {}

    @abstractmethod
    def _lengths(self) -> NDArray:
        """Return ``D s / 2``."""

    def _begin_pairs(self) -> float:
        """Set r and what follows; return the largest product that has nothing to do with rows."""
        self.at["r"] = np.array(1.5 * float(self._lengths().max(initial=0.0)) + 1e-6)
        self._follow()
        added = [self.at[x] * self.at[z] for x, z, _ in self.products[2:]]
        return max((float(part.mean()) for part in added if len(part)), default=0.0)

    def _follow_pairs(self) -> None:
        self.at["e"] = self.at["r"] - self._lengths()

    def _rates(self) -> tuple[NDArray, NDArray]:
        """Return how fast theta falls with e, and ``D'`` times that; keep the former."""
        self.rates = self.at["theta"] / self.at["e"]
        return self.rates, self.D.T @ self.rates

    def _follow_theta(self, target: float, ahead: Values | None, bend: NDArray | float) -> None:
        """Keep the change of theta at which no e changes."""
        lacks = self._open("theta", "e", target, ahead) / self.at["theta"]
        self.free_theta = self.rates * (lacks + bend)

    def _complete_theta(self, step: Values, r: NDArray, lengths: NDArray) -> None:
        """Add the changes of r, e and theta, given those of r and of the lengths."""
        step["r"], step["e"] = r, r - lengths
        step["theta"] = self.free_theta - self.rates * step["e"]


class _Squares(_Pairs):
    """R-SVM+: r is added."""

    def _Q(self) -> NDArray:
        return 1.0 + self.D.T @ self.at["theta"]

    def _begin(self) -> float:
        self.at["w"] = self.at["v"] / self._Q()
        return self._begin_pairs()

    def _norm(self, v: NDArray) -> float:
        return float(np.sum(v * v / self._Q()))

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["w"] ** 2

    def _follow(self) -> tuple[NDArray, NDArray]:
        self._follow_pairs()
        Q = self._Q()
        return Q * self.at["w"] - self.at["v"], 1.0 / Q

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        w, (rates, total) = self.at["w"], self._rates()
        of_w = weighted_product(self.D, rates) * np.outer(w, w)
        of_w[np.diag_indices_from(of_w)] += self._Q()
        return of_w, -(w * total)[:, None], np.array([[rates.sum() if len(rates) else 1.0]])

    def _factored(self, weight: NDArray) -> Callable[[NDArray], NDArray]:
        """Return what solves the system; of more columns than rows and pairs, in these.

        The system is ``diag(Q, 0, 0) + [A, G]' diag(omega) [A, G]`` with the rows ``[Z, 1, 0]`` and
        the pairs ``[D diag(w), 0, -1]`` in ``[A, G]``. Given the right side (f, g) of its columns
        and of b and r, ``p = diag(omega) [A, G] x`` has

            (A diag(Q)^{-1} A' + diag(omega)^{-1}) p - G x_br = A diag(Q)^{-1} f,    G'p = g
        """
        (n, k), m = self.Z.shape, len(self.D)
        if n + m >= k:
            return super()._factored(weight)
        root = np.sqrt(self._Q())
        A = np.empty((n + m, k))  # times diag(Q)^{-1/2}
        np.divide(self.Z, root, out=A[:n])
        np.multiply(self.D, self.at["w"] / root, out=A[n:])
        G = np.zeros((n + m, 2))
        G[:n, 0], G[n:, 1] = 1.0, -1.0
        omega = np.append(weight, self._rates()[0])
        matrix = A @ A.T
        matrix[np.diag_indices_from(matrix)] += 1.0 / omega
        scale = 1.0 / np.sqrt(np.diagonal(matrix))
        factor = cho_factor(matrix * scale * scale[:, None], check_finite=False)

        def inverse(right: NDArray) -> NDArray:
            return (scale * cho_solve(factor, (scale * right.T).T, check_finite=False).T).T

        of_G = inverse(G)
        of_br = G.T @ of_G
        of_br[1, 1] += not m  # r is in no equation

        def once(f: NDArray, g: NDArray) -> tuple[NDArray, NDArray]:
            p = inverse(A @ f)
            x_br = np.linalg.solve(of_br, g - G.T @ p)
            return f - A.T @ (p + of_G @ x_br), x_br

        def solve(right: NDArray) -> NDArray:
            f, g = right[:k] / root, right[k:]
            x, x_br = once(f, g)
            for _ in range(REFINEMENTS):
                p = omega * (A @ x + G @ x_br)
                more, more_br = once(f - x - A.T @ p, g - G.T @ p - [0.0, (not m) * x_br[1]])
                x, x_br = x + more, x_br + more_br
            return np.concatenate([x / root, x_br])

        return solve

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        of_w, bend = -self.miss, np.zeros(len(self.D))
        if ahead is not None:
            of_w = of_w - ahead["w"] * (self.D.T @ ahead["theta"])
            bend = 0.5 * self.D @ ahead["w"] ** 2
        self._follow_theta(target, ahead, bend)
        of_w = of_w - self.at["w"] * (self.D.T @ self.free_theta)
        return of_w, np.array([self.free_theta.sum()])

    def _complete(self, step: Values, added: NDArray) -> None:
        self._complete_theta(step, added[0], self.D @ (self.at["w"] * step["w"]))

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = 0.5 * self.D @ (length * step["w"]) ** 2
        return [(self.at["e"], self.at["e"] + length * step["e"] - bend)]


class _Simplex(_Pairs):
    """R-SVM_mu+: mu, t and r are added."""

    positive = (*_Pairs.positive, "mu", "e")
    products = (*_Pairs.products, ("mu", "g", 0.5))

    def _weights(self, rows: NDArray) -> Values:
        """Return weights that fall with the spread of a column.

        Columns in large units would else decide alone how the other variables begin, and have
        hardly any weight at the end; a constant column has none then, unless the radius is dear.
        """
        squares = row_squares(rows.T)
        largest = squares.max() or 1.0  # a part may have constant columns alone
        varies = squares > np.finfo(float).eps * largest
        mu = 1.0 / np.sqrt(np.where(varies, squares, largest))
        return {"mu": mu / mu.sum()}

    def _begin(self) -> float:
        v, mu = self.at["v"], self.at["mu"]
        self.at["w"] = mu * v
        cost = v * v - self.D.T @ self.at["theta"]
        room = max(float(mu @ (cost.max() - cost)), float(mu @ np.abs(cost)), 1e-6)
        self.at["t"] = np.array(float(cost.max()) + room)
        return self._begin_pairs()

    def _norm(self, v: NDArray) -> float:
        return float(self.at["mu"] @ (v * v))

    def _dual_value(self) -> float:
        return float(self.at["a"].sum()) - 0.5 * float(self.at["t"])

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["mu"]

    def _follow(self) -> tuple[NDArray, NDArray]:
        self._follow_pairs()
        at = self.at
        at["g"] = at["t"] - at["v"] ** 2 + self.D.T @ at["theta"]
        return at["w"] - at["mu"] * at["v"], 1.0 / at["mu"]

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        at, k, (rates, total) = self.at, len(self.at["v"]), self._rates()
        added = np.zeros((k + 2, k + 2))
        added[:k, :k] = 0.25 * weighted_product(self.D, rates)
        added[np.arange(k), np.arange(k)] += 0.5 * at["g"] / at["mu"] + at["v"] ** 2 / at["mu"]
        added[:k, k] = added[k, :k] = 0.5
        added[:k, k + 1] = added[k + 1, :k] = -0.5 * total
        added[k + 1, k + 1] = rates.sum() if len(rates) else 1.0  # r is in no equation
        between = np.zeros((k, k + 2))
        between[np.arange(k), np.arange(k)] = -at["v"] / at["mu"]
        return 1.0 / at["mu"], between, added

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        at, miss = self.at, self.miss
        to_mu = 2.0 * target - at["mu"] * at["g"]
        if ahead is not None:
            miss = miss - ahead["mu"] * ahead["v"]
            to_mu = to_mu - ahead["mu"] * ahead["g"] + at["mu"] * ahead["v"] ** 2
        self._follow_theta(target, ahead, 0.0)
        of_mu = (0.5 * to_mu + at["v"] * miss) / at["mu"] - 0.5 * self.D.T @ self.free_theta
        return -miss / at["mu"], np.concatenate([of_mu, [0.0, self.free_theta.sum()]])

    def _complete(self, step: Values, added: NDArray) -> None:
        step["v"] = self.Z.T @ (self.y * step["a"])
        step["mu"], (step["t"], r) = added[:-2], added[-2:]
        self._complete_theta(step, r, 0.5 * self.D @ step["mu"])
        change = step["t"] + self.D.T @ step["theta"]
        step["g"] = change - 2.0 * self.at["v"] * step["v"]

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = (length * step["v"]) ** 2
        return [(self.at["g"], self.at["g"] + length * step["g"] - bend)]


#: Pairs to begin with, and which a round adds at most. A dear radius in a kernel's features needs
#: thousands; where few pairs are violated a round ends with few.
FIRST_PAIRS, PAIRS_PER_ROUND = 100, 1000

#: Columns with which R-SVM_mu+ begins, and which it adds in a round at most.
FIRST_COLUMNS, COLUMNS_PER_ROUND = 60, 40

#: A pair, or a column, whose share of its sum is below this is not passed on to the next problem.
SMALLEST_SHARE = 1e-9

#: A gap that rounding does not explain: the interior point takes short steps where one class is
#: rare and overlaps the other.
MISLED_GAP = 1e-3


def first_pairs(problem: RadiusProblem) -> NDArray:
    """Return pairs to begin with: those furthest apart, all columns weighted alike."""
    pairs, _ = far_pairs(problem.rows, 0.0, FIRST_PAIRS)
    return pairs if len(pairs) else np.array([[0, 1]])


def first_columns(problem: RadiusProblem) -> NDArray:
    """Return columns to begin with: those in which the classes' means differ most."""
    k = problem.rows.shape[1]
    if not problem.simplex or k <= FIRST_COLUMNS:
        return np.arange(k)
    positive = problem.y > 0
    apart = problem.rows[positive].mean(axis=0) - problem.rows[~positive].mean(axis=0)
    return np.sort(np.argsort(-np.abs(apart), kind="stable")[:FIRST_COLUMNS])


def passed_on(found: RadiusPoint) -> RadiusPoint:
    """Return the point with only the pairs and columns that matter, to start a neighbour from."""
    if found.mu is not None:
        found = replace(found, columns=found.columns[found.mu[found.columns] > SMALLEST_SHARE])
    kept = found.theta > SMALLEST_SHARE * found.theta.sum()
    if not kept.any():
        return found
    return replace(found, pairs=found.pairs[kept], theta=found.theta[kept])


def union(pairs: NDArray, more: NDArray) -> NDArray:
    """Return the pairs of both, without repetition; the first ones keep their places."""
    both = np.concatenate([pairs, more])
    _, first = np.unique(both, axis=0, return_index=True)
    return both[np.sort(first)]


def solve_generating(
    problem: RadiusProblem,
    tol: float = 1e-6,
    start: RadiusPoint | None = None,
    max_rounds: int = 60,
    cone: bool = False,
) -> RadiusPoint:
    """Minimise by programs with few pairs and, for R-SVM_mu+, few columns.

    Parameters
    ----------
    problem : RadiusProblem
    tol : float, default=1e-6
        Relative gap.
    start : RadiusPoint, optional
        Of a neighbouring problem on the same rows; its pairs and columns are kept.
    max_rounds : int, default=60
    cone : bool, default=False
        Whether Clarabel solves the programs, not the interior point of this family. It does in any
        case where that ends far from the optimum.

    Returns
    -------
    RadiusPoint
        Of the last round; status ``inaccurate`` where the gap is larger than `tol`.
    """
    pairs = first_pairs(problem) if start is None else start.pairs
    columns = first_columns(problem) if start is None else start.columns
    iterations, rounds = 0, 0
    while rounds < max_rounds:
        rounds += 1
        found, far = _round(problem, pairs, columns, tol, cone)
        iterations += found.iterations
        more = _violated_columns(problem, found, columns)
        listed = union(pairs, far)
        if found.gap <= tol or (len(listed) == len(pairs) and not len(more)) or time_is_up():
            break
        pairs, columns = listed, np.union1d(columns, more)
    found = replace(found, rounds=rounds, iterations=iterations)
    if cone or found.gap <= MISLED_GAP or time_is_up():
        return found
    again = solve_generating(problem, tol, start, max_rounds, cone=True)
    return min(found, again, key=lambda point: point.gap)


def solve_all_pairs(problem: RadiusProblem, tol: float = 1e-6) -> RadiusPoint:
    """Minimise by one cone program (Clarabel) in which all pairs are listed: the reference."""
    n, k = problem.rows.shape
    pairs = np.column_stack(np.triu_indices(n, 1))
    return _round(problem, pairs, np.arange(k), tol, cone=True)[0]


def _round(
    problem: RadiusProblem, pairs: NDArray, columns: NDArray, tol: float, cone: bool
) -> tuple[RadiusPoint, NDArray]:
    """Solve one program; return its point, and the pairs that it violates most."""
    k = problem.rows.shape[1]
    part = problem if len(columns) == k else replace(problem, rows=problem.rows[:, columns])
    accuracy = float(np.clip(0.1 * tol, 1e-10, 1e-4))
    restricted = (solve_cone if cone else solve_interior)(part, pairs, accuracy)
    found, far = problem.point(restricted, pairs, columns, PAIRS_PER_ROUND)
    return replace(found, status=Status.OPTIMAL) if found.gap <= tol else found, far


def _violated_columns(problem: RadiusProblem, found: RadiusPoint, columns: NDArray) -> NDArray:
    """Return the columns that violate the dual most."""
    if not problem.simplex or len(columns) == problem.rows.shape[1]:
        return np.empty(0, dtype=np.intp)
    v = problem.rows.T @ found.u
    cost = problem.squares(found.pairs).T @ found.theta - v * v
    below = np.argsort(cost, kind="stable")[:COLUMNS_PER_ROUND]
    return np.setdiff1d(below[cost[below] < cost[columns].min()], columns)
