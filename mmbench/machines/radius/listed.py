"""R-SVM+ and R-SVM_mu+ with the listed pairs only: one cone program, or an interior point.

As a second-order cone program:

    min   1/2 sum_k e_k + lam r + C sum_i xi_i
    subject to   y_i (w'z_i + b) >= 1 - xi_i,  xi_i >= 0,
                 R-SVM+      e_k >= w_k^2,        1/2 sum_k e_k  (z_ik - z_jk)^2 <= r
                 R-SVM_mu+   e_k mu_k >= w_k^2,   1/2 sum_k mu_k (z_ik - z_jk)^2 <= r,  sum mu = 1

In (9) the pairs contain w_k^2 itself. Their coefficients of e_k are not negative, so that
``e_k = w_k^2`` at the optimum, and pairs are linear rows here.

The interior point solves both programs of `pairs` at once. With D_pk the squares of pair p,
v = Z'u and q = D'theta, the optimum satisfies, besides the conditions of `HingeInteriorPoint`, with
all factors of products positive:

    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVM_mu+    s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

The added unknowns are mu, t and r. The multipliers theta are eliminated, as the multipliers of the
rows are, so that many pairs are cheap.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from mmbench.kernels import row_squares
from mmbench.machines.radius.pairs import PairProblem
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.interior_point import HingeInteriorPoint, Values, solve_growing
from mmbench.solvers.rows import weighted_product

#: Weights mu, of sum 1, that count as zero.
ZERO_WEIGHT = 1e-10

#: Steps of iterative refinement of a system in rows and pairs; features in large units lose digits.
REFINEMENTS = 2

#: w, mu (None for R-SVM+), signed multipliers u of the rows, multipliers theta of the listed pairs,
#: and iterations.
RestrictedSolution = tuple[NDArray, NDArray | None, NDArray, NDArray, int]


class ProgramColumns:
    """The columns of a cone program by name: ``ProgramColumns(w=d, b=1)``, and its rows."""

    def __init__(self, **sizes: int):
        ends = np.cumsum(list(sizes.values()))
        self.at = {
            name: slice(int(end) - size, int(end))
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n = int(ends[-1])

    def rows(self, n_rows: int, parts: Mapping[str, sparse.sparray | NDArray]) -> sparse.sparray:
        """Return rows that are zero outside the given blocks of columns."""
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
        """Return the rows of ``1 - y_i (w'z_i + b) - slack_unit xi_i <= 0``, without the 1."""
        n, signs = len(y), -y[:, None]
        xi = sparse.diags_array(-slack_unit * np.ones(n))
        parts = {"w": signs * rows, "b": signs, "xi": xi}
        return self.rows(n, parts)

    def products(self, d: int, second: str | None) -> tuple[sparse.sparray, NDArray]:
        """Return the cones of ``e_k mu_k >= w_k^2``, or of ``e_k >= w_k^2``: rows and sides.

        The cone contains ``((e + mu)/2, (e - mu)/2, w)``.
        """
        take = [
            sparse.kron(sparse.eye_array(d), np.array(column)[:, None])
            for column in ([-0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, -1.0])
        ]
        parts = {"e": take[0], "w": take[2]}
        if second is not None:
            return self.rows(3 * d, parts | {second: take[1]}), np.zeros(3 * d)
        return self.rows(3 * d, parts), np.tile([0.5, -0.5, 0.0], d)


def solve_cone(problem: PairProblem, pairs: NDArray, tol: float) -> RestrictedSolution:
    """Solve the cone program with Clarabel; if it fails, w and the multipliers are 0.

    The units keep all parts of the program near 1, as the solver's accuracy is absolute. In
    R-SVM+ w is in units of its largest possible value, which may be very small: w = 0 costs ``2 C``
    per row of the smaller class, w_k at least ``(1 + lam D_k) w_k^2 / 2`` where D_k is the largest
    square of a listed pair. In R-SVM_mu+ the objective is in units of its value at w = 0 and equal
    mu, and w in their root. e is in the squares of the units of w.
    """
    (n, d), m, simplex, y = problem.rows.shape, len(pairs), problem.simplex, problem.y
    squares, costs = problem.squares(pairs), problem.C * np.ones(n)
    smaller = float(min(costs[y > 0].sum(), costs[y < 0].sum()))
    if simplex:
        unit = 2.0 * smaller + 0.5 * problem.lam * float(squares.mean(axis=1).max())
        scale, lengths = np.full(d, np.sqrt(unit)), {"mu": 0.5 * squares}
    else:
        unit = max(1.0, problem.lam, float(costs.max()))
        scale = np.sqrt(4.0 * smaller / (1.0 + problem.lam * squares.max(axis=0)))
        lengths = {"e": 0.5 * scale**2 * squares}
    columns = ProgramColumns(w=d, b=1, xi=n, e=d, mu=d if simplex else 0, r=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["r"]] = 0.5 * scale**2, problem.lam
    cost[columns.at["xi"]] = problem.C
    cones, sides = columns.products(d, "mu" if simplex else None)
    inequalities = [
        columns.margins(problem.rows * scale, y),
        columns.rows(n, {"xi": -sparse.eye_array(n)}),
        columns.rows(m, lengths | {"r": np.full((m, 1), -1.0)}),
        cones,
    ]
    sum_of_mu = columns.rows(1, {"mu": np.ones((1, d))} if simplex else {})
    program = ConeProgram(
        c=cost / unit,
        A=sparse.csc_array(sum_of_mu)[: int(simplex)],
        b=np.ones(int(simplex)),
        G=sparse.csc_array(sparse.vstack(inequalities)),
        h=np.concatenate([-np.ones(n), np.zeros(n + m), sides]),
        n_linear=2 * n + m,
        cones=(3,) * d,
    )
    found = solve_socp(program, tol=tol)
    given = bool(np.isfinite(found.x).all() and np.isfinite(found.z).all())
    if not given or (simplex and found.x[columns.at["mu"]].max() <= ZERO_WEIGHT):
        mu = np.full(d, 1.0 / d) if simplex else None
        return np.zeros(d), mu, np.zeros(n), np.zeros(m), found.iterations
    u, theta = unit * y * found.z[:n], unit * found.z[2 * n : 2 * n + m]
    w, mu = found.x[columns.at["w"]] * scale, None
    if simplex:
        w, mu = without_zeros(w, found.x[columns.at["mu"]])
    return w, mu, u, theta, found.iterations


def without_zeros(w: NDArray, mu: NDArray, part: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Return w and mu with the weights that an interior point leaves just above zero set to zero.

    `part` is the size of each feature's part of the decisions: a feature in large units may matter
    with a small mu.
    """
    kept = mu > ZERO_WEIGHT
    if part is not None:
        kept |= part > ZERO_WEIGHT * part.max()
    mu = np.where(kept, mu, 0.0)
    return np.where(mu > 0, w, 0.0), mu / mu.sum()


def solve_interior(problem: PairProblem, pairs: NDArray, tol: float) -> RestrictedSolution:
    """Solve by the interior point; if rounding ends it early, its last point is returned."""
    listed = pairs if problem.lam > 0 else pairs[:0]
    kind = MuPlusInteriorPoint if problem.simplex else PlusInteriorPoint
    squares, largest = problem.squares(listed), float(np.max(problem.C))
    shares = problem.C / largest
    point = solve_growing(lambda C, a: kind(problem, squares, C * shares, a), largest, tol)
    w, mu = point.at["w"], None
    if problem.simplex:
        w, mu = without_zeros(w, point.at["mu"], np.abs(w) * np.sqrt(row_squares(problem.rows.T)))
    theta = np.append(point.at["theta"], np.zeros(len(pairs) - len(listed)))
    return w, mu, problem.y * point.at["a"], theta, point.iterations


class PairInteriorPoint(HingeInteriorPoint, ABC):
    """Base of both interior points; r is the last of the added unknowns."""

    positive = (*HingeInteriorPoint.positive, "theta")
    products = (*HingeInteriorPoint.products, ("e", "theta", 1.0))

    def __init__(
        self,
        problem: PairProblem,
        squares: NDArray,
        C: float | NDArray,
        a: NDArray | None = None,
    ):
        self.D = squares
        theta = np.full(len(squares), problem.lam / max(len(squares), 1))
        given = {"theta": theta, **self._weights(problem.rows)}
        super().__init__(problem.rows, problem.y, C, a, given=given)

    def _weights(self, rows: NDArray) -> Values:
        """Return the first mu, if mu is unknown."""
        return {}

    @abstractmethod
    def _lengths(self) -> NDArray:
        """Return ``D s / 2``."""

    def _begin_pairs(self) -> float:
        """Set r and e; return the largest mean of the added products."""
        self.at["r"] = np.array(1.5 * float(self._lengths().max(initial=0.0)) + 1e-6)
        self._follow()
        added = [self.at[x] * self.at[z] for x, z, _ in self.products[2:]]
        return max((float(part.mean()) for part in added if len(part)), default=0.0)

    def _follow_pairs(self) -> None:
        self.at["e"] = self.at["r"] - self._lengths()

    def _rates(self) -> tuple[NDArray, NDArray]:
        """Return ``theta / e`` and ``D' (theta / e)``; store the former."""
        self.rates = self.at["theta"] / self.at["e"]
        return self.rates, self.D.T @ self.rates

    def _follow_theta(self, target: float, ahead: Values | None, bend: NDArray | float) -> None:
        """Store the part of the Newton step of theta that does not depend on the step of e."""
        lacks = self._open("theta", "e", target, ahead) / self.at["theta"]
        self.free_theta = self.rates * (lacks + bend)

    def _complete_theta(self, step: Values, r: NDArray, lengths: NDArray) -> None:
        """Add the steps of r, e and theta, given the steps of r and of ``D s / 2``."""
        step["r"], step["e"] = r, r - lengths
        step["theta"] = self.free_theta - self.rates * step["e"]


class PlusInteriorPoint(PairInteriorPoint):
    """The interior point of R-SVM+; the added unknown is r."""

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
        """Return the solver of the system; in rows and pairs if there are more features.

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


class MuPlusInteriorPoint(PairInteriorPoint):
    """The interior point of R-SVM_mu+; the added unknowns are mu, t and r."""

    positive = (*PairInteriorPoint.positive, "mu", "e")
    products = (*PairInteriorPoint.products, ("mu", "g", 0.5))

    def _weights(self, rows: NDArray) -> Values:
        """Return a first mu that falls with the spread of a feature.

        Otherwise features in large units decide alone where the other variables begin, although
        their mu is small at the end. A constant feature has mu = 0 at the end, unless lam is large.
        """
        squares = row_squares(rows.T)
        largest = squares.max() or 1.0  # all listed features may be constant
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
