"""An interior point for R-SVM+ and R-SVM_mu+ in dense linear algebra, with the pairs listed.

It works on both programs of `radius_problem` at once. With D_pk the squares of pair p, v = Z'u and
q = D'theta, these are to hold at the optimum, all that is not w, b, t or r being positive:

    margins      over - slack = y (Zw + b) - 1,   over a = 0,   slack (C - a) = 0,   sum u = 0
    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVM_mu+    s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

Newton steps lead there with all products near a common value that falls to 0, predictor and
corrector after Mehrotra. All but the products and the equation of v and w holds from the start.
Rows are eliminated by hand, which leaves a system in w, b, t, theta and r: an iteration costs one
product ``Z' diag Z``, however many rows there are.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM J. Optim. 2, 1992.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack

from mmbench.machines.hinge import best_bias
from mmbench.machines.radius.cone import Listed, without_zeros
from mmbench.machines.radius.problem import RadiusProblem

#: Share of the way to the boundary that a step goes; by how much it is cut where e or g curve.
STEP, CUT = 0.99, 0.8

#: The rows' first products are at least about this share of the others.
BALANCE = 0.1

#: A step shorter than this is taken towards the centre instead; one as short as that, not at all.
SHORT, SHORTEST = 0.1, 1e-8

#: A value of each variable, or its change, by name.
Values = dict[str, NDArray]


def solve_interior(
    problem: RadiusProblem, pairs: NDArray, tol: float, max_iter: int = 100
) -> Listed:
    """Solve the program with some pairs; where rounding ends it early, its last point is returned.

    Parameters
    ----------
    problem : RadiusProblem
    pairs : ndarray of int of shape (m, 2)
        One at least.
    tol : float
        Gap relative to the value.
    max_iter : int, default=100

    Returns
    -------
    Listed
    """
    paid = pairs if problem.lam > 0 else pairs[:0]
    point = (_Simplex if problem.simplex else _Squares)(problem, problem.squares(paid))
    iterations = 0
    while point.gap > tol and iterations < max_iter:
        iterations += 1
        try:
            if point.advance() < SHORTEST:
                break
        except LinAlgError:
            break
    at = point.at
    w, mu = without_zeros(at["w"], at["mu"]) if problem.simplex else (at["w"], None)
    theta = np.append(at["theta"], np.zeros(len(pairs) - len(paid)))
    return Listed(w, mu, problem.y * at["a"], theta, iterations)


class _Point(ABC):
    """A point inside all inequalities, and the step from there; what both programs share.

    Variables are in `at`. `straight` names those that must stay positive and change by just their
    part of a step; e and g, which follow from others, curve.
    """

    straight: tuple[str, ...] = ("over", "slack", "a", "below", "theta")
    #: Variables whose products vanish at the optimum, and the weight of these in the gap.
    products: tuple[tuple[str, str, float], ...] = (
        ("over", "a", 1.0),
        ("slack", "below", 1.0),
        ("e", "theta", 1.0),
    )

    def __init__(self, problem: RadiusProblem, squares: NDArray):
        self.Z, self.y, self.D = problem.rows, problem.y, squares
        n_positive, (n, m) = int((self.y > 0).sum()), (len(self.y), len(squares))
        a = np.where(self.y > 0, 1.0 / n_positive, 1.0 / (n - n_positive))
        v, theta = self.Z.T @ (self.y * a), np.full(m, problem.lam / max(m, 1))
        # w along the difference of means, no longer than it takes or than half of C allows
        square = self._square(v, squares.T @ theta)
        factor = min(2.0 / max(square, 1e-300), 0.5 * problem.C / float(a.max()))
        self.at: Values = {"a": factor * a, "v": factor * v, "below": problem.C - factor * a}
        self.at["theta"] = theta
        self._begin()
        decision = self.Z @ self.at["w"]
        b = best_bias(decision, self.y)
        margin = self.y * (decision + b) - 1.0
        self.at["r"] = np.array(1.5 * float(self._lengths().max(initial=0.0)) + 1e-6)
        # a dear radius has large products: steps are short where the rows' are far smaller
        room = max(float(np.abs(margin).mean()), 0.1, BALANCE * self._level() / problem.C)
        over, slack = np.maximum(margin, 0.0) + room, np.maximum(-margin, 0.0) + room
        self.at |= {"b": np.array(b), "over": over, "slack": slack}
        self._follow()

    # -- the columns ---------------------------------------------------------------------------

    @abstractmethod
    def _square(self, v: NDArray, q: NDArray) -> float:
        """Return the part of the dual that is quadratic in v, doubled."""

    @abstractmethod
    def _begin(self) -> None:
        """Set the first w, and what it needs."""

    @abstractmethod
    def _lengths(self) -> NDArray:
        """Return ``D s / 2``."""

    @abstractmethod
    def _value(self) -> float:
        """Return the dual's value."""

    @abstractmethod
    def _equation(self) -> tuple[NDArray, NDArray]:
        """Return by how much v and w miss their equation, and the weight of its square."""

    @abstractmethod
    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        """Return a diagonal for w, and the other unknowns against w and against themselves."""

    @abstractmethod
    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        """Return the right sides for w and for the other unknowns."""

    @abstractmethod
    def _complete(self, step: Values, others: NDArray) -> None:
        """Add the changes that follow from those of w and of the other unknowns."""

    @abstractmethod
    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        """Return what curves along a step: here and there."""

    # -- the step ------------------------------------------------------------------------------

    def _level(self) -> float:
        """Return how large the first products are that have nothing to do with the rows."""
        self.at["e"] = self.at["r"] - self._lengths()
        self._equation()
        parts = [self.at[x] * self.at[z] for x, z, _ in self.products if x not in ("over", "slack")]
        return max((float(part.mean()) for part in parts if len(part)), default=0.0)

    def _follow(self) -> None:
        """Set what follows from the variables: v, e, the gap."""
        at = self.at
        at["v"] = self.Z.T @ (self.y * at["a"])
        at["e"] = at["r"] - self._lengths()
        self.miss, weight = self._equation()
        self.open = sum(part * float(at[x] @ at[z]) for x, z, part in self.products)
        primal = self.open + 0.5 * float(np.sum(weight * self.miss**2))
        self.gap = primal / max(abs(self._value()), 1e-300)

    def advance(self) -> float:
        """Take one step of predictor and corrector; return its length."""
        self._factor()
        ahead = self._step(0.0, None)
        length = self._room(ahead, 1.0)
        left = sum(
            part * float((self.at[x] + length * ahead[x]) @ (self.at[z] + length * ahead[z]))
            for x, z, part in self.products
        )
        share = min(max(left / self.open, 0.0), 1.0) ** 3
        count = sum(len(self.at[x]) for x, _, _ in self.products)
        step = self._step(share * self.open / count, ahead)
        length = self._room(step, STEP)
        if length < SHORT:  # second-order terms mislead, or products are far from equal
            step = self._step(0.5 * self.open / count, None)
            length = self._room(step, STEP)
        for name, change in step.items():
            self.at[name] = self.at[name] + length * change
        self._follow()
        return length

    def _room(self, step: Values, share: float) -> float:
        """Return how far a step may go, 1 at most: a share of the way to the boundary."""
        length = 1.0
        for name in self.straight:
            falls = step[name] < 0
            if falls.any():
                room = self.at[name][falls] / -step[name][falls]
                length = min(length, share * float(room.min()))
        while length >= SHORTEST:
            curved = self._curved(step, length)
            if all((there >= (1.0 - share) * here).all() for here, there in curved):
                break
            length *= CUT
        return length

    def _factor(self) -> None:
        """Factor the system in w, b and the other unknowns, the last of which are theta and r."""
        at, k, m = self.at, self.Z.shape[1], len(self.D)
        self.flat = 1.0 / (at["over"] / at["a"] + at["slack"] / at["below"])
        diagonal, between, others = self._system()
        matrix = np.zeros((k + 1 + len(others),) * 2)
        scaled = self.Z * np.sqrt(self.flat)[:, None]
        matrix[:k, :k] = scaled.T @ scaled
        matrix[np.arange(k), np.arange(k)] += diagonal
        matrix[:k, k] = matrix[k, :k] = self.Z.T @ self.flat
        matrix[k, k] = self.flat.sum()
        matrix[:k, k + 1 :], matrix[k + 1 :, :k] = between, between.T
        matrix[k + 1 :, k + 1 :] = others
        pairs = np.arange(len(matrix) - m - 1, len(matrix) - 1)
        matrix[pairs, pairs] -= at["e"] / at["theta"]
        matrix[pairs, -1] = matrix[-1, pairs] = -1.0
        if not m:  # r is in no equation
            matrix[-1, -1] = -1.0
        size = np.sqrt(np.abs(np.diagonal(matrix)))
        self.scale = 1.0 / np.where(size > 0, size, 1.0)
        matrix *= self.scale * self.scale[:, None]
        self.lu, self.pivots, info = lapack.dgetrf(matrix, overwrite_a=True)
        if info:
            raise LinAlgError("the system is singular")

    def _step(self, target: float, ahead: Values | None) -> Values:
        """Return the step to products of a target, with second-order terms of the step ahead."""
        at, k, m = self.at, self.Z.shape[1], len(self.D)
        to_over = target - at["over"] * at["a"]
        to_slack = target - at["slack"] * at["below"]
        to_theta = target - at["theta"] * at["e"]
        if ahead is not None:
            to_over = to_over - ahead["over"] * ahead["a"]
            to_slack = to_slack - ahead["slack"] * ahead["below"]
            to_theta = to_theta - ahead["theta"] * ahead["e"]
        of_w, of_others = self._sides(target, ahead)
        free = self.flat * (to_over / at["a"] - to_slack / at["below"])
        right = np.concatenate([self.Z.T @ (self.y * free) + of_w, [self.y @ free], of_others])
        right[len(right) - m - 1 : -1] -= to_theta / at["theta"]
        found, _ = lapack.dgetrs(self.lu, self.pivots, self.scale * right)
        found *= self.scale
        if not np.isfinite(found).all():
            raise LinAlgError("the system is singular")
        step: Values = {"w": found[:k], "b": found[k], "r": found[-1]}
        step["theta"] = found[len(found) - m - 1 : -1]
        step["a"] = free - self.flat * self.y * (self.Z @ step["w"] + step["b"])
        step["below"] = -step["a"]
        step["over"] = (to_over - at["over"] * step["a"]) / at["a"]
        step["slack"] = (to_slack + at["slack"] * step["a"]) / at["below"]
        step["v"] = self.Z.T @ (self.y * step["a"])
        self._complete(step, found[k + 1 :])
        return step


class _Squares(_Point):
    """R-SVM+: the others are theta and r."""

    def _square(self, v: NDArray, q: NDArray) -> float:
        return float(np.sum(v * v / (1.0 + q)))

    def _begin(self) -> None:
        self.at["w"] = self.at["v"] / (1.0 + self.D.T @ self.at["theta"])

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["w"] ** 2

    def _value(self) -> float:
        v, Q = self.at["v"], 1.0 + self.D.T @ self.at["theta"]
        return float(self.at["a"].sum()) - 0.5 * float(np.sum(v * v / Q))

    def _equation(self) -> tuple[NDArray, NDArray]:
        Q = 1.0 + self.D.T @ self.at["theta"]
        return Q * self.at["w"] - self.at["v"], 1.0 / Q

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        Q, m = 1.0 + self.D.T @ self.at["theta"], len(self.D)
        between = np.zeros((len(Q), m + 1))
        between[:, :m] = (self.D * self.at["w"]).T
        return Q, between, np.zeros((m + 1, m + 1))

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        if ahead is None:
            return -self.miss, np.zeros(len(self.D) + 1)
        of_w = -self.miss - ahead["w"] * (self.D.T @ ahead["theta"])
        return of_w, np.append(-0.5 * self.D @ ahead["w"] ** 2, 0.0)

    def _complete(self, step: Values, others: NDArray) -> None:
        step["e"] = step["r"] - self.D @ (self.at["w"] * step["w"])

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = 0.5 * self.D @ (length * step["w"]) ** 2
        return [(self.at["e"], self.at["e"] + length * step["e"] - bend)]


class _Simplex(_Point):
    """R-SVM_mu+: the others are t, theta and r."""

    straight = (*_Point.straight, "mu", "e")
    products = (*_Point.products, ("mu", "g", 0.5))

    def _square(self, v: NDArray, q: NDArray) -> float:
        return float((v * v).max())

    def _begin(self) -> None:
        k, v = len(self.at["v"]), self.at["v"]
        self.at["mu"] = np.full(k, 1.0 / k)
        self.at["w"] = v / k
        price = v * v - self.D.T @ self.at["theta"]
        room = max(float(np.ptp(price)), float(np.abs(price).max()), 1e-6)
        self.at["t"] = np.array(float(price.max()) + room)

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["mu"]

    def _value(self) -> float:
        return float(self.at["a"].sum()) - 0.5 * float(self.at["t"])

    def _equation(self) -> tuple[NDArray, NDArray]:
        at = self.at
        at["g"] = at["t"] - at["v"] ** 2 + self.D.T @ at["theta"]
        return at["w"] - at["mu"] * at["v"], 1.0 / at["mu"]

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        at, m = self.at, len(self.D)
        self.G = at["g"] + 2.0 * at["v"] ** 2
        columns = np.zeros((len(self.G), m + 2))  # of t and theta in g
        columns[:, 0], columns[:, 1 : m + 1] = 1.0, self.D.T
        others = -0.5 * (columns.T * (at["mu"] / self.G)) @ columns
        return at["g"] / (at["mu"] * self.G), columns * (at["v"] / self.G)[:, None], others

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        at, miss = self.at, self.miss
        to_mu = 2.0 * target - at["mu"] * at["g"]
        if ahead is not None:
            miss = miss - ahead["mu"] * ahead["v"]
            to_mu = to_mu - ahead["mu"] * ahead["g"] + at["mu"] * ahead["v"] ** 2
        self.shift = (to_mu + 2.0 * at["v"] * miss) / self.G
        of_w = (at["v"] * self.shift - miss) / at["mu"]
        return of_w, -0.5 * np.concatenate([[self.shift.sum()], self.D @ self.shift, [0.0]])

    def _complete(self, step: Values, others: NDArray) -> None:
        at, step["t"] = self.at, others[0]
        price = step["t"] + self.D.T @ step["theta"]
        step["mu"] = self.shift + (2.0 * at["v"] * step["w"] - at["mu"] * price) / self.G
        step["e"] = step["r"] - 0.5 * self.D @ step["mu"]
        step["g"] = price - 2.0 * at["v"] * step["v"]

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = (length * step["v"]) ** 2
        return [(self.at["g"], self.at["g"] + length * step["g"] - bend)]
