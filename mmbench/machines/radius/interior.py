"""The linear SVM's interior point with a radius: R-SVM+ and R-SVM_mu+, some pairs being listed.

It works on both programs of `problem` at once. With D_pk the squares of pair p, v = Z'u and
q = D'theta, these are to hold at the optimum besides what `InteriorPoint` asks, all factors of
products being positive:

    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVM_mu+    s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

Added unknowns are mu, t and r. The multipliers theta of the pairs are eliminated, as those of the
rows are, so that many pairs cost little. `benchmarks/rsvm_plus_pairs.py` compares this with
second-order cone programs of a general solver.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mmbench.kernels import row_squares
from mmbench.machines.radius.cone import without_zeros
from mmbench.machines.radius.problem import RadiusProblem, RestrictedSolution
from mmbench.solvers.interior_point import InteriorPoint, Values, solve_growing
from mmbench.solvers.rows import weighted_product

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
