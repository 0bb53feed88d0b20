"""An interior point for the linear SVM in dense linear algebra; a machine may add to it.

    min over w, b, xi   1/2 ||w||^2 + C sum_i xi_i
    subject to          y_i (z_i'w + b) >= 1 - xi_i,  xi_i >= 0

At the optimum, with ``v = Z'(y a)`` for the multipliers a and all factors of products positive,

    surplus - slack = y (Zw + b) - 1,   surplus a = 0,   slack (C - a) = 0,   y'a = 0,   w = v

Newton steps lead there with all products near a common value that falls to 0, predictor and
corrector after Mehrotra. All but the products and the equation of v and w holds from the start.
Rows are eliminated by hand, which leaves a system in w, b and the unknowns that a subclass adds: an
iteration costs one product ``Z' diag Z``, however many rows there are.

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

#: Share of the way to the boundary that a step goes; its factor where a curved bound is crossed.
BOUNDARY_SHARE, BACKTRACK_FACTOR = 0.99, 0.8

#: The rows' first products are at least about this share of the others.
FIRST_PRODUCT_SHARE = 0.1

#: A step shorter than this is taken towards the centre instead; one as short as that, not at all.
CENTRING_LENGTH, SHORTEST_LENGTH = 0.1, 1e-8

#: The first C is at most this many times the first multipliers: products differ as much as these.
#: The second number is for problems in which the first one leaves steps of no length; it takes more
#: of them elsewhere.
LARGEST_FIRST_RATIOS = (1e6, 1e3)

#: A gap that says that steps had no length.
STUCK_GAP = 1e-3

#: Multipliers below this share of C have no slack at the optimum, nor with any larger C.
FREE_SHARE = 0.5

#: A value of each variable, or its change, by name.
Values = dict[str, NDArray]


def solve_growing(
    start: Callable[[Any, NDArray | None], InteriorPoint], C: float | NDArray, tol: float
) -> InteriorPoint:
    """Return the point at the end, for a C that may be far larger than the multipliers become.

    Parameters
    ----------
    start : callable
        Takes a C and, but for the first, multipliers; returns a point to start from.
    C : float or ndarray of shape (n,)
    tol : float
        Relative gap.
    """
    iterations = 0
    for ratio in LARGEST_FIRST_RATIOS:
        point = _solve_growing(start, C, tol, ratio)
        iterations += point.iterations
        if point.gap <= STUCK_GAP or time_is_up():
            break
    point.iterations = iterations
    return point


def _solve_growing(
    start: Callable[[Any, NDArray | None], InteriorPoint],
    C: float | NDArray,
    tol: float,
    ratio: float,
) -> InteriorPoint:
    """Raise C to its value from this multiple of the first multipliers, by as much at a time."""
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


class InteriorPoint:
    """A point inside all inequalities, and the step from there.

    A subclass may add unknowns to w and b: it overrides the methods below `gap`. Names in
    `positive` must stay positive and change by just their part of a step.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
        Z.
    y : ndarray of shape (n,)
        -1.0 or +1.0; both occur.
    C : float or ndarray of shape (n,)
    a : ndarray of shape (n,), optional
        Multipliers to start from, positive and less than C, with ``y'a = 0``.
    offset : ndarray of shape (n,), default=0.0
        Decisions to which ``Zw + b`` is added.
    **given : ndarray
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
    #: Variables whose products vanish at the optimum, and the weight of these in the gap.
    products: tuple[tuple[str, str, float], ...] = (("surplus", "a", 1.0), ("slack", "rest", 1.0))
    #: Multipliers of bounds of decisions, what room there is to these, and their sign in u.
    bounds: tuple[tuple[str, str, float], ...] = ()

    def __init__(
        self,
        rows: Rows,
        y: NDArray,
        C: float | NDArray,
        a: NDArray | None = None,
        offset: NDArray | float = 0.0,
        **given: NDArray,
    ):
        self.Z, self.y, self.at, self.iterations = rows, y, given, 0
        self.margin_cost = 1.0 - y * offset
        n_positive, s = int((y > 0).sum()), C / np.max(C) * np.ones(len(y))
        if a is None:  # w along the difference of means, no longer than it takes, or half of C
            a = s / np.where(y > 0, s[y > 0].sum(), s[y < 0].sum())
            norm = max(self._norm(rows.T @ (y * a)), 1e-300)
            a = min(2.0 / norm, 0.5 * float(np.min(C / a))) * a
        self.at |= {"a": a, "v": rows.T @ (y * a), "rest": C - a}
        largest = self._begin()
        decision = rows @ self.at["w"] + offset
        b = np.sort(y - decision)[n_positive - 1 : n_positive + 1].mean()  # least sum of slacks
        self.at["b"] = b
        margin = self._inside(y * (decision + b)) - 1.0
        # steps are short where the products of rows are far smaller than others
        room = max(
            float(np.abs(margin).mean()), 0.1, FIRST_PRODUCT_SHARE * largest / float(np.max(C))
        )
        surplus, slack = np.maximum(margin, 0.0) + room, np.maximum(-margin, 0.0) + room
        self.at |= {"surplus": surplus, "slack": slack}
        self._begin_rows()
        self._evaluate()

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
        """Return u, by which ``v = Z'u``."""
        return self.y * self._multipliers(self.at)

    # -- what a subclass may change -------------------------------------------------------------

    def _norm(self, v: NDArray) -> float:
        """Return twice the part of the dual that is quadratic in v."""
        return float(v @ v)

    def _begin(self) -> float:
        """Set the first w and all that is added; return the largest of the added products.

        The length of v says nothing yet, and margins as long as a large C makes it would round off
        what is known of the rows. Decisions of about 1 at most take half as many steps, too.
        """
        size = float(np.abs(self.Z @ self.at["v"]).mean())
        self.at["w"] = self.at["v"] / max(1.0, size)
        return 0.0

    def _inside(self, margin: NDArray) -> NDArray:
        """Return ``y f`` at the first w and b, which may change here to satisfy added bounds."""
        return margin

    def _begin_rows(self) -> None:
        """Set the first values of variables of the rows that are added."""

    def _multipliers(self, values: Values) -> NDArray:
        """Return what multiplies each ``y z`` in v."""
        return values["a"]

    def _follow(self) -> tuple[NDArray, NDArray | float]:
        """Set what follows from the variables; return the miss of w's equation, and its weight."""
        return self.at["w"] - self.at["v"], 1.0

    def _dual_value(self) -> float:
        return float(self.at["a"] @ self.margin_cost) - 0.5 * self._norm(self.at["v"])

    def _relative_gap(self, excess: float) -> float:
        """Return the gap, given by how much the objective exceeds the dual value."""
        return excess / max(abs(self._dual_value()), 1e-300)

    def _system(self) -> tuple[NDArray | float, NDArray, NDArray]:
        """Return what is added for w, a diagonal or a block, and the added unknowns' own blocks.

        These are against w (or w and b), and against themselves.
        """
        return 1.0, np.empty((self.Z.shape[1], 0)), np.empty((0, 0))

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        """Return the right sides for w and for the added unknowns."""
        return -self.miss, np.empty(0)

    def _added_weight(self) -> NDArray | float:
        """Return what variables of the rows add to the weights of these in the system."""
        return 0.0

    def _added_free(self, target: float, ahead: Values | None) -> NDArray | float:
        """Return what they add to the change of multipliers at which no margin changes."""
        return 0.0

    def _complete_rows(self, step: Values, margin: NDArray) -> None:
        """Add the changes of variables of the rows that follow from those of ``y f``."""

    def _complete(self, step: Values, added: NDArray) -> None:
        """Add the changes that follow from those of w and of the added unknowns."""

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        """Return what must stay positive and curves along a step: here and there."""
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
        self.solve = self._factored(self.weight + self._added_weight())
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
        if length < CENTRING_LENGTH:  # second-order terms mislead, or products are far from equal
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
        """Return what solves the system in w, b and the added unknowns, given weights of rows."""
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
        """Return what a product lacks to a target, with the second-order term of a step ahead."""
        lacks = target - self.at[x] * self.at[z]
        return lacks if ahead is None else lacks - ahead[x] * ahead[z]

    def _step(self, target: float, ahead: Values | None) -> Values:
        """Return the step to products of a target, with second-order terms of the step ahead."""
        at, k = self.at, self.Z.shape[1]
        to_surplus = self._open("surplus", "a", target, ahead)
        to_slack = self._open("slack", "rest", target, ahead)
        of_w, of_added = self._sides(target, ahead)
        free = self.weight * (to_surplus / at["a"] - to_slack / at["rest"])
        signed = self.y * (free + self._added_free(target, ahead))
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
        self._complete_rows(step, margin)
        self._complete(step, found[k + 1 :])
        return step
