"""The linear SVM's interior point with a radius: R-SVM+ and R-SVM_mu+, some pairs being listed.

It works on both programs of `problem` at once. With D_pk the squares of pair p, v = Z'u and
q = D'theta, these are to hold at the optimum besides what `InteriorPoint` asks, all factors of
products being positive:

    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVM_mu+    s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

Added unknowns are t, theta and r. Against second-order cone programs of a general solver it is 8 to
18 times as fast on the pairs of `lfw` and 2 to 11 on the sets of `fsvm_table2`
(benchmarks/rsvm_plus_pairs.py), whose R-SVM_mu+ those do not solve to tolerance.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.radius.cone import without_zeros
from mmbench.machines.radius.problem import RadiusProblem, RestrictedSolution
from mmbench.solvers.interior_point import InteriorPoint, Values, solve_growing


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
    w, mu = without_zeros(at["w"], at["mu"]) if problem.simplex else (at["w"], None)
    theta = np.append(at["theta"], np.zeros(len(pairs) - len(paid)))
    u = problem.y * at["a"]
    return RestrictedSolution(w=w, mu=mu, u=u, theta=theta, iterations=point.iterations)


class _Pairs(InteriorPoint, ABC):
    """What both programs share; theta and r are the last of the added unknowns."""

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
        super().__init__(problem.rows, problem.y, C, a, theta=theta)

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

    def _bordered(self, added: NDArray) -> NDArray:
        """Return the block of the added unknowns, completed by what theta and r share."""
        m = len(self.D)
        theta = np.arange(len(added) - m - 1, len(added) - 1)
        added[theta, theta] -= self.at["e"] / self.at["theta"]
        added[theta, -1] = added[-1, theta] = -1.0
        if not m:  # r is in no equation
            added[-1, -1] = -1.0
        return added

    def _to_theta(self, target: float, ahead: Values | None) -> NDArray:
        """Return the right sides that theta and r have in common."""
        return np.append(-self._open("theta", "e", target, ahead) / self.at["theta"], 0.0)


class _Squares(_Pairs):
    """R-SVM+: theta and r are added."""

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
        Q, m = self._Q(), len(self.D)
        between = np.zeros((len(Q), m + 1))
        between[:, :m] = (self.D * self.at["w"]).T
        return Q, between, self._bordered(np.zeros((m + 1, m + 1)))

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        of_w, of_theta = -self.miss, self._to_theta(target, ahead)
        if ahead is not None:
            of_w = of_w - ahead["w"] * (self.D.T @ ahead["theta"])
            of_theta[:-1] -= 0.5 * self.D @ ahead["w"] ** 2
        return of_w, of_theta

    def _complete(self, step: Values, added: NDArray) -> None:
        step["theta"], step["r"] = added[:-1], added[-1]
        step["e"] = step["r"] - self.D @ (self.at["w"] * step["w"])

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = 0.5 * self.D @ (length * step["w"]) ** 2
        return [(self.at["e"], self.at["e"] + length * step["e"] - bend)]


class _Simplex(_Pairs):
    """R-SVM_mu+: t, theta and r are added."""

    positive = (*_Pairs.positive, "mu", "e")
    products = (*_Pairs.products, ("mu", "g", 0.5))

    def _begin(self) -> float:
        v, k = self.at["v"], len(self.at["v"])
        self.at |= {"mu": np.full(k, 1.0 / k), "w": v / k}
        cost = v * v - self.D.T @ self.at["theta"]
        room = max(float(np.ptp(cost)), float(np.abs(cost).max()), 1e-6)
        self.at["t"] = np.array(float(cost.max()) + room)
        return self._begin_pairs()

    def _norm(self, v: NDArray) -> float:
        return float((v * v).max())

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
        at, m = self.at, len(self.D)
        self.G = at["g"] + 2.0 * at["v"] ** 2
        columns = np.zeros((len(self.G), m + 2))  # of t and theta in g
        columns[:, 0], columns[:, 1 : m + 1] = 1.0, self.D.T
        added = self._bordered(-0.5 * (columns.T * (at["mu"] / self.G)) @ columns)
        return at["g"] / (at["mu"] * self.G), columns * (at["v"] / self.G)[:, None], added

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        at, miss = self.at, self.miss
        to_mu = 2.0 * target - at["mu"] * at["g"]
        if ahead is not None:
            miss = miss - ahead["mu"] * ahead["v"]
            to_mu = to_mu - ahead["mu"] * ahead["g"] + at["mu"] * ahead["v"] ** 2
        self.shift = (to_mu + 2.0 * at["v"] * miss) / self.G
        of_theta = self._to_theta(target, ahead)
        of_theta[:-1] -= 0.5 * self.D @ self.shift
        of_w = (at["v"] * self.shift - miss) / at["mu"]
        return of_w, np.concatenate([[-0.5 * self.shift.sum()], of_theta])

    def _complete(self, step: Values, added: NDArray) -> None:
        step["v"] = self.Z.T @ (self.y * step["a"])
        at, (step["t"], step["r"], step["theta"]) = self.at, (added[0], added[-1], added[1:-1])
        change = step["t"] + self.D.T @ step["theta"]
        step["mu"] = self.shift + (2.0 * at["v"] * step["w"] - at["mu"] * change) / self.G
        step["e"] = step["r"] - 0.5 * self.D @ step["mu"]
        step["g"] = change - 2.0 * at["v"] * step["v"]

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = (length * step["v"]) ** 2
        return [(self.at["g"], self.at["g"] + length * step["g"] - bend)]
