"""An interior point for the linear SVM in dense linear algebra, whose decisions may be bounded.

    min over w, b, xi   1/2 ||w||^2 + C sum_i xi_i
    subject to          y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  [-B <= f(z_i) <= B,]  f(z) = w'z + b

At the optimum, with multipliers a, p, q, with ``v = Z' y (a - p + q)`` and all factors of products
positive,

    surplus - slack = y f - 1,   surplus a = 0,   slack (C - a) = 0,
    (B - y f) p = 0,   (B + y f) q = 0,   y'(a - p + q) = 0,   w = v

Newton steps lead there with all products near a common value that falls to 0, predictor and
corrector after Mehrotra. All conditions except the products and w = v hold from the start. The
rows are eliminated by hand, which leaves a system in w, b and the unknowns that a subclass adds: an
iteration costs one product ``Z' diag Z``, whatever the number of rows.

A subclass changes the norm or adds unknowns: the RMM with a variable bound
(`mmbench.machines.rmm`), the soft M4 (`mmbench.solvers.sum_of_norms`), the R-SVMs, the linear MMRM.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM J. Optim. 2, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack

from mmbench.allowance import time_is_up
from mmbench.solvers.rows import Rows, weighted_product

#: Share of the way to the boundary that a step goes; factor of a step that crosses a curved bound.
BOUNDARY_SHARE, BACKTRACK_FACTOR = 0.99, 0.8

#: Least first product of a row, relative to the other products.
FIRST_PRODUCT_SHARE = 0.1

#: Largest first decision, as a share of B.
FIRST_DECISION_SHARE = 0.5

#: A step shorter than CENTRING_LENGTH is replaced by one towards the centre; the run ends at a step
#: shorter than SHORTEST_LENGTH.
CENTRING_LENGTH, SHORTEST_LENGTH = 0.1, 1e-8

#: Initial ratios C / max(a), tried in turn; the smaller one is safer and slower.
LARGEST_FIRST_RATIOS = (1e6, 1e3)

#: Relative gap above which the run is considered stalled.
STALLED_GAP = 1e-3

#: Multipliers below this share of C have no slack at the optimum, nor with any larger C.
FREE_SHARE = 0.5

#: Variables, or their changes, by name.
Values = dict[str, NDArray]


def solve_growing(
    start: Callable[[Any, NDArray | None], HingeInteriorPoint], C: float | NDArray, tol: float
) -> HingeInteriorPoint:
    """Solve for a C that may be far larger than the multipliers become.

    `start` returns the first point for a C and, from the second one on, for given multipliers.
    """
    iterations = 0
    for ratio in LARGEST_FIRST_RATIOS:
        point = _solve_growing(start, C, tol, ratio)
        iterations += point.iterations
        if point.gap <= STALLED_GAP or time_is_up():
            break
    point.iterations = iterations
    return point


def _solve_growing(
    start: Callable[[Any, NDArray | None], HingeInteriorPoint],
    C: float | NDArray,
    tol: float,
    ratio: float,
) -> HingeInteriorPoint:
    """Raise C in steps of `ratio`, from `ratio` times the first multipliers up to its value."""
    point, iterations = start(C, None), 0
    smaller = ratio * float(point.at["a"].max())
    largest = float(np.max(C))
    while smaller < largest:
        point = start(smaller * (C / largest), point.at["a"] if iterations else None)
        point.run(tol)
        iterations += point.iterations
        a = point.at["a"]
        if point.gap <= tol and bool((a < FREE_SHARE * (a + point.at["rest"])).all()):
            break
        smaller *= ratio
    else:
        point = start(C, point.at["a"] if iterations else None)
        point.run(tol)
        iterations += point.iterations
    point.iterations = iterations
    return point


class HingeInteriorPoint:
    """A point inside all inequalities.

    A subclass overrides the methods below `dual_variables`. Names in `positive` stay positive and
    change by their part of a step.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
        Z.
    y : ndarray of shape (n,)
        -1.0 or +1.0; both occur.
    C : float or ndarray of shape (n,)
    a : ndarray of shape (n,), optional
        First multipliers, positive and less than C, with ``y'a = 0``.
    offset : ndarray of shape (n,), default=0.0
        Added to the decisions ``Zw + b``.
    B : float, optional
        Bound on the decisions.
    given : dict of str to ndarray, optional
        First values of added variables on which `_norm` depends.

    Attributes
    ----------
    at : dict of str to ndarray
        The variables.
    gap : float
        Objective minus dual value, relative to the latter.
    iterations : int
    """

    positive: tuple[str, ...] = ("surplus", "slack", "a", "rest")
    #: Pairs of variables whose products vanish at the optimum, with their weight in the gap.
    products: tuple[tuple[str, str, float], ...] = (("surplus", "a", 1.0), ("slack", "rest", 1.0))
    #: (multiplier, room, sign in u) of each bound on the decisions.
    bounds: tuple[tuple[str, str, float], ...] = ()

    def __init__(
        self,
        rows: Rows,
        y: NDArray,
        C: float | NDArray,
        a: NDArray | None = None,
        offset: NDArray | float = 0.0,
        B: float | None = None,
        given: Values | None = None,
    ):
        self.Z, self.y, self.at, self.iterations = rows, y, dict(given or {}), 0
        self.margin_cost = 1.0 - y * offset
        n_positive, s = int((y > 0).sum()), C / np.max(C) * np.ones(len(y))
        if a is None:  # w along the difference of means, just long enough, or half of C
            a = s / np.where(y > 0, s[y > 0].sum(), s[y < 0].sum())
            norm = max(self._norm(rows.T @ (y * a)), 1e-300)
            a = min(2.0 / norm, 0.5 * float(np.min(C / a))) * a
        self.at |= {"a": a, "v": rows.T @ (y * a), "rest": C - a}
        largest = self._begin()
        decision = rows @ self.at["w"] + offset
        b = np.sort(y - decision)[n_positive - 1 : n_positive + 1].mean()  # least sum of slacks
        margin, share = y * (decision + b), 1.0
        if B is not None:
            share = min(1.0, FIRST_DECISION_SHARE * B / max(float(np.abs(margin).max()), 1e-300))
            self.at["w"] = share * self.at["w"]
        self.at["b"], margin = share * b, share * margin - 1.0
        # steps are short if the products of rows are far smaller than others
        room = max(
            float(np.abs(margin).mean()), 0.1, FIRST_PRODUCT_SHARE * largest / float(np.max(C))
        )
        surplus, slack = np.maximum(margin, 0.0) + room, np.maximum(-margin, 0.0) + room
        self.at |= {"surplus": surplus, "slack": slack}
        if B is not None:
            self._bound_decisions(B, float((surplus * a).mean()) / B)
        self._evaluate()

    def _bound_decisions(self, B: float, multiplier: float) -> None:
        """Add the bounds -B and B, with the first value of their multipliers."""
        at, n = self.at, len(self.y)
        self.B = B
        self.bounds = (("p", "above", -1.0), ("q", "below", 1.0))
        margin = at["surplus"] - at["slack"] + 1.0
        at |= {"p": np.full(n, multiplier), "q": np.full(n, multiplier)}
        at |= {"above": B - margin, "below": B + margin}
        self.positive = (*self.positive, "above", "below", "p", "q")
        self.products = (*self.products, ("above", "p", 1.0), ("below", "q", 1.0))

    def run(self, tol: float, max_iter: int = 100) -> None:
        """Step until the gap is no larger than `tol`, rounding allows no step, or time is up."""
        while self.gap > tol and self.iterations < max_iter and not time_is_up():
            self.iterations += 1
            try:
                if self._advance() < SHORTEST_LENGTH:
                    break
            except LinAlgError:
                break

    def dual_variables(self) -> NDArray:
        """Return u, with ``v = Z'u``."""
        a = self.at["a"]
        return self.y * sum((sign * self.at[z] for z, _, sign in self.bounds), start=a)

    # -- what a subclass may change -------------------------------------------------------------

    def _norm(self, v: NDArray) -> float:
        """Return twice the part of the dual that is quadratic in v."""
        return float(v @ v)

    def _begin(self) -> float:
        """Set the first w and all added variables; return the largest of the added products.

        Margins as long as a large C makes v would round off the surplus of the rows; decisions of
        about 1 at most take half as many steps, too.
        """
        size = float(np.abs(self.Z @ self.at["v"]).mean())
        self.at["w"] = self.at["v"] / max(1.0, size)
        return 0.0

    def _follow(self) -> tuple[NDArray, NDArray | float]:
        """Set dependent variables; return the residual of w's equation, and its weight."""
        return self.at["w"] - self.at["v"], 1.0

    def _dual_value(self) -> float:
        value = float(self.at["a"] @ self.margin_cost) - 0.5 * self._norm(self.at["v"])
        return value - sum(self.B * float(self.at[z].sum()) for z, _, _ in self.bounds)

    def _relative_gap(self, excess: float) -> float:
        """Return the gap, given the objective minus the dual value."""
        return excess / max(abs(self._dual_value()), 1e-300)

    def _system(self) -> tuple[NDArray | float, NDArray, NDArray]:
        """Return the block of w (or its diagonal), and the blocks of the added unknowns.

        These are against w (or w and b), and against themselves.
        """
        return 1.0, np.empty((self.Z.shape[1], 0)), np.empty((0, 0))

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        """Return the right-hand sides for w and for the added unknowns."""
        return -self.miss, np.empty(0)

    def _complete(self, step: Values, added: NDArray) -> None:
        """Add the changes that follow from those of w and of the added unknowns."""

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        """Return what must stay positive and curves along a step: before and after it."""
        return []

    # -- the step -------------------------------------------------------------------------------

    def _evaluate(self) -> None:
        at = self.at
        at["v"] = self.Z.T @ self.dual_variables()
        self.miss, weight = self._follow()
        self.open = sum(part * float(at[x] @ at[z]) for x, z, part in self.products)
        self.gap = self._relative_gap(self.open + 0.5 * float(np.sum(weight * self.miss**2)))

    def _advance(self) -> float:
        """Take one step of predictor and corrector; return its length."""
        at = self.at
        self.weight = 1.0 / (at["surplus"] / at["a"] + at["slack"] / at["rest"])
        of_bounds = sum(at[z] / at[x] for z, x, _ in self.bounds)
        self.solve = self._factored(self.weight + of_bounds)
        ahead = self._step(0.0, None)
        length = self._length(ahead, 1.0)
        left = sum(
            part * float((at[x] + length * ahead[x]) @ (at[z] + length * ahead[z]))
            for x, z, part in self.products
        )
        share = min(max(left / self.open, 0.0), 1.0) ** 3
        mean = self.open / sum(len(at[x]) for x, _, _ in self.products)
        step = self._step(share * mean, ahead)
        length = self._length(step, BOUNDARY_SHARE)
        if length < CENTRING_LENGTH:  # second-order terms mislead, or products differ much
            step = self._step(0.5 * mean, None)
            length = self._length(step, BOUNDARY_SHARE)
        for name, change in step.items():
            at[name] = at[name] + length * change
        self._evaluate()
        return length

    def _length(self, step: Values, share: float) -> float:
        """Return how far a step may go, 1 at most: a share of the way to the boundary."""
        length = 1.0
        for name in self.positive:
            falls = step[name] < 0
            if falls.any():
                room = self.at[name][falls] / -step[name][falls]
                length = min(length, share * float(room.min()))
        while length >= SHORTEST_LENGTH:
            curved = self._curved(step, length)
            if all((there >= (1.0 - share) * here).all() for here, there in curved):
                break
            length *= BACKTRACK_FACTOR
        return length

    def _factored(self, weight: NDArray) -> Callable[[NDArray], NDArray]:
        """Return the solver of the system in w, b and the added unknowns, given row weights."""
        k = self.Z.shape[1]
        of_w, between, added = self._system()
        matrix = np.zeros((k + 1 + len(added),) * 2)
        matrix[:k, :k] = weighted_product(self.Z, weight)
        if np.ndim(of_w) == 2:
            matrix[:k, :k] += of_w
        else:
            matrix[np.arange(k), np.arange(k)] += of_w
        matrix[:k, k] = matrix[k, :k] = self.Z.T @ weight
        matrix[k, k] = weight.sum()
        m = len(between)
        matrix[:m, k + 1 :], matrix[k + 1 :, :m] = between, between.T
        matrix[k + 1 :, k + 1 :] = added
        size = np.sqrt(np.abs(np.diagonal(matrix)))
        scale = 1.0 / np.where(size > 0, size, 1.0)
        matrix *= scale * scale[:, None]
        lu, pivots, info = lapack.dgetrf(matrix, overwrite_a=True)
        if info:
            raise LinAlgError("the system is singular")
        return lambda right: scale * lapack.dgetrs(lu, pivots, scale * right)[0]

    def _open(self, x: str, z: str, target: float, ahead: Values | None) -> NDArray:
        """Return the residual of a product, with the second-order term of a step ahead."""
        residual = target - self.at[x] * self.at[z]
        return residual if ahead is None else residual - ahead[x] * ahead[z]

    def _step(self, target: float, ahead: Values | None) -> Values:
        """Return the step to a target of all products, with second-order terms of a step ahead."""
        at, k = self.at, self.Z.shape[1]
        to_surplus = self._open("surplus", "a", target, ahead)
        to_slack = self._open("slack", "rest", target, ahead)
        # changes of the bounds' multipliers at constant decisions
        self.to = {z: self._open(x, z, target, ahead) / at[x] for z, x, _ in self.bounds}
        of_w, of_added = self._sides(target, ahead)
        free = self.weight * (to_surplus / at["a"] - to_slack / at["rest"])
        signed = self.y * sum((sign * self.to[z] for z, _, sign in self.bounds), start=free)
        right = np.concatenate([self.Z.T @ signed + of_w, [signed.sum()], of_added])
        found = self.solve(right)
        if not np.isfinite(found).all():
            raise LinAlgError("the system is singular")
        step: Values = {"w": found[:k], "b": found[k]}
        margin = self.y * (self.Z @ step["w"] + step["b"])
        step["a"] = free - self.weight * margin
        step["rest"] = -step["a"]
        step["surplus"] = (to_surplus - at["surplus"] * step["a"]) / at["a"]
        step["slack"] = (to_slack + at["slack"] * step["a"]) / at["rest"]
        for z, x, sign in self.bounds:
            step[x] = sign * margin
            step[z] = self.to[z] - at[z] / at[x] * step[x]
        self._complete(step, found[k + 1 :])
        return step
