"""`PiecewiseQP`, the dual of a machine with a convex, piecewise linear loss per training row.

The problems are in `mmbench.solvers.svm_dual`: ``loss_i(f) = max over u of -f u - phi_i(u)``, and
``w = sum_i u_i x_i``. The intercept b is the multiplier of ``sum_i u_i = 0``, and at the optimum
``-f(x_i)`` is a subgradient of phi_i at u_i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.kernels import row_squares
from mmbench.solvers.result import Result
from mmbench.solvers.rows import MappedRows

#: The rounding error of a sum of n terms is taken to be at most ``ROUNDING_FACTOR * eps * sqrt(n)``
#: times the sum of their magnitudes. With the factor 4, the rounding error exceeds this bound with
#: a probability of at most 7e-4 (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
ROUNDING_FACTOR = 4.0

#: Decisions are treated as constant if their range is at most UNRESOLVED_TOLERANCES times the KKT
#: tolerance. The factor is larger than 1, since the decisions of rows with u_i at a bound may vary
#: by more than the KKT tolerance.
UNRESOLVED_TOLERANCES = 4.0

#: Maximum relative rounding error of sums; a dual objective may violate weak duality by this
#: fraction.
SUM_ROUNDING = 1e-12


@dataclass(frozen=True)
class PiecewiseQP:
    """The problem ``min 1/2 u'Ku + sum_i phi_i(u_i)`` subject to ``sum_i u_i = 0``.

    Each cost phi_i is convex and piecewise linear.

    Examples
    --------
    The dual of the SVM with C = 10 and the loss ``C max(0, 1 - y f)``:

    >>> y = np.array([1.0, -1.0])
    >>> svm = PiecewiseQP(np.eye(2), np.array([[0.0, 10.0], [-10.0, 0.0]]), -y[:, None])
    >>> svm.loss(np.array([0.5, -2.0]))
    5.0
    """

    #: Gram matrix K, symmetric and positive semidefinite, float32 or float64; an array, a
    #: `KernelMatrix` or a `LazyGram`. Shape (n, n).
    gram: Any
    #: Knots of each cost: the endpoints of its m linear pieces in ascending order; 0 is a knot. The
    #: first and the last knot of a cost are the bounds of the dual variable and may be infinite.
    #: Shape (n, m + 1).
    knots: NDArray
    #: Slope of each linear piece of each cost, in ascending order. Shape (n, m).
    slopes: NDArray
    #: Constant term of the objective.
    constant: float = 0.0

    def cost(self, u: NDArray) -> float:
        """Return the sum of the costs ``phi_i(u_i)``, with ``phi_i(0) = 0``."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        lengths = np.clip(u[:, None], low, high) - np.clip(0.0, low, high)
        return float(np.sum(self.slopes * lengths))

    def loss(self, f: NDArray) -> float:
        """Return the sum of the losses ``loss_i(f_i)``, which may be infinite."""
        lengths, sides = self._pieces
        gains = -sides * (f[:, None] + self.slopes)
        return float((lengths[gains > 0] * gains[gains > 0]).sum())

    def largest_scale(self, f: NDArray) -> float:
        """Return the largest scale s for which the losses of all decisions ``s f_i`` are finite."""
        lengths, sides = self._pieces
        rates, offsets = -sides * f[:, None], sides * self.slopes
        rising = np.isinf(lengths) & (rates > 0)
        return max(0.0, float(np.min(offsets[rising] / rates[rising], initial=np.inf)))

    def best_scale(self, f: NDArray, norm: float) -> float:
        """Return the scale s that minimises ``s^2/2 norm + sum_i loss_i(s f_i)``.

        The argument `norm` is ``||w||^2``. Each linear piece of a cost contributes the hinge
        ``length * max(0, rate s - offset)`` to the loss. The hinge has a kink at ``s = offset /
        rate``.
        """
        lengths, sides = self._pieces
        rates, offsets = -sides * f[:, None], sides * self.slopes
        kinked = np.isfinite(lengths) & (rates != 0)
        weights, rates, offsets = lengths[kinked], rates[kinked], offsets[kinked]
        kinks = offsets / rates
        order = np.argsort(kinks)[np.count_nonzero(kinks <= 0) :]
        # hinges ``max(0, rate s - offset)`` that are positive for small positive scales s
        active = (offsets < 0) | ((offsets == 0) & (rates > 0))
        slopes = np.sum(weights * rates, where=active)
        slopes += np.append(0.0, np.cumsum((weights * np.abs(rates))[order]))
        # losses are not negative, so that a negative slope for the largest scales is a rounding
        # error
        slopes[-1] = max(slopes[-1], 0.0)
        kinks = np.append(0.0, kinks[order])
        # the minimum is in the first interval between two kinks at whose right end the objective
        # does not decrease
        piece = np.argmax(np.append(kinks[1:] * norm + slopes[:-1] >= 0, True))
        s = max(kinks[piece], -slopes[piece] / norm) if norm > 0 else kinks[piece]
        return float(min(s, self.largest_scale(f)))

    @cached_property
    def _pieces(self) -> tuple[NDArray, NDArray]:
        """Length of each linear piece, and sign of dual variables on the piece; shapes (n, m)."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        return high - low, np.where(low >= 0, 1.0, -1.0)

    def solution(
        self,
        u: NDArray,
        decision: NDArray,
        bias: float,
        iterations: int,
        status: Status,
        scale: float | None = None,
        weights: NDArray | None = None,
        route: str = "",
    ) -> PiecewiseSolution:
        """Return dual variables u and an intercept b as a solution with a certificate.

        If `gram` is a Gram matrix K, `decision` is the product ``Ku``. If `gram` contains the data
        matrix Z, `weights` contains the weights w, and `decision` is ``Zw``. The weights w are more
        accurate than ``Z'u`` if large terms of ``Z'u`` cancel. The weights and the intercept of the
        machine are multiplied by `scale`, by default the largest number up to 1 for which all
        losses are finite.
        """
        f = decision + bias
        unit = ROUNDING_FACTOR * np.sqrt(len(u)) * np.finfo(float).eps
        size = float(np.abs(u) @ np.sqrt(self.diagonal()))
        # |u|'|K||u| is at most (sum_i |u_i| sqrt(K_ii))^2, by the Cauchy-Schwarz inequality
        if weights is None:
            of_w = of_u = max(0.0, float(u @ decision))
            rounding = 0.5 * unit * size * size  # infinite if size^2 overflows
        else:
            w_of_u = self.gram.T @ u
            of_w, of_u = float(weights @ weights), float(w_of_u @ w_of_u)
            rounding = unit * size * (np.sqrt(of_u) + 0.5 * unit * size)
        scale = min(1.0, self.largest_scale(f)) if scale is None else scale
        value = float(self.constant + 0.5 * of_u + self.cost(u) + rounding)
        bound = self.constant - 0.5 * scale**2 * of_w - self.loss(scale * f)
        return PiecewiseSolution(
            u=u,
            decision=decision,
            bias=bias,
            scale=scale,
            value=self._credible(value),
            bound=bound if np.isfinite(bound) else -np.inf,
            rounding=float(rounding),
            violation=self.violation(u),
            iterations=iterations,
            status=status,
            route=route,
            weights=weights,
        )

    def diagonal(self) -> NDArray:
        """Return ``k(x_i, x_i)`` for all rows, from the kernel matrix or from the data matrix."""
        gram = self.gram
        if isinstance(gram, MappedRows):
            return gram.squares
        stored = isinstance(gram, np.ndarray) and gram.shape[0] != gram.shape[1]
        return row_squares(gram) if stored else np.maximum(gram.diagonal(), 0.0)

    def _credible(self, value: float) -> float:
        """Return `value` if it is a possible dual objective, otherwise the dual objective at u = 0.

        A possible `value` is at most the dual objective at u = 0, and at least the negative of the
        machine's objective at w = 0 (weak duality).
        """
        least = self.constant - self.constant_decision[0]
        if not least - SUM_ROUNDING * abs(least) <= value <= self.constant:
            return self.constant
        return max(value, least)

    @cached_property
    def constant_decision(self) -> tuple[float, float]:
        """Smallest sum of losses of a constant decision, and the decision with this sum.

        The constant decisions -1, 0 and 1 are compared.
        """
        (lengths, sides), decisions = self._pieces, np.array([-1.0, 0.0, 1.0])
        gains = -sides * (decisions[:, None, None] + self.slopes)
        lost = np.multiply(lengths, gains, out=np.zeros_like(gains), where=gains > 0)
        losses = lost.sum(axis=(1, 2))
        k = losses.argmin()
        return float(losses[k]), float(decisions[k])

    def rescaled(self, solution: PiecewiseSolution) -> PiecewiseSolution:
        """Return `solution` with w and b multiplied by the factor that minimises the objective.

        Rounding errors may make margins slightly too small. If the loss is steep, even slightly too
        small margins have a large loss. Slightly longer weights w avoid this loss.
        """
        f, w = solution.decision + solution.bias, solution.weights
        scale = self.best_scale(f, float(solution.u @ solution.decision if w is None else w @ w))
        return self.solution(
            *(solution.u, solution.decision, solution.bias, solution.iterations, solution.status),
            *(scale, w, solution.route),
        )

    def constant_if_unresolved(
        self, solution: PiecewiseSolution, tol: float, gap_tolerance: float
    ) -> PiecewiseSolution:
        """Return w = 0 if it is as good as `solution`, or if all decisions of `solution` are equal.

        Decisions are treated as equal if they differ by at most a few times `tol`. If the duality
        gap of w = 0 exceeds both `gap_tolerance` and the duality gap of `solution`, `solution` is
        returned.

        If the decision values of all rows are nearly equal, the terms of ``w = sum_i u_i x_i`` have
        cancelled. The norm of w is then of the order of the KKT tolerance, and the direction of w
        is arbitrary. Weights that are small
        for another reason, for example a small penalty C, are returned unchanged.
        """
        root = np.sqrt(self.diagonal())
        # upper bound on the absolute values of ``Ku``, by the Cauchy-Schwarz inequality
        size = float(np.abs(solution.u) @ root * root.max())
        unresolved = np.ptp(solution.f) <= UNRESOLVED_TOLERANCES * tol * min(1.0, size)
        if not (unresolved or self.no_better_than_zero(solution)):
            return solution
        none, w = np.zeros(len(solution.u)), solution.weights
        of_bias = float(np.clip(solution.scale * solution.bias, -1, 1))
        decisions = (self.loss(none + of_bias), of_bias), self.constant_decision
        loss, b = min(decisions, key=lambda each: each[0])
        zero = replace(
            solution,
            u=none,
            decision=none,
            bias=b,
            scale=1.0,
            bound=self.constant - loss,
            weights=None if w is None else np.zeros(len(w)),
        )
        return zero if zero.gap <= max(solution.gap, gap_tolerance) else solution

    def no_better_than_zero(self, solution: PiecewiseSolution) -> bool:
        """Whether w = 0 is as good as `solution`, whose gap must exceed rounding errors."""
        rounding = ROUNDING_FACTOR * np.sqrt(len(solution.u)) * np.finfo(float).eps
        bound = self.constant - self.constant_decision[0]
        return solution.gap > rounding and solution.bound <= bound + rounding * abs(bound)

    def inward(self, share: float) -> PiecewiseQP:
        """Return the problem with tighter bounds on the decisions, to allow for rounding errors.

        A bound on the decisions is the slope of an unbounded piece of the cost. This slope is
        changed by the fraction `share` towards the slope of the only adjacent piece, but by at most
        half the difference of both slopes.
        """
        slopes = self.slopes.copy()
        for last, before, ends in ((0, 1, self.knots[:, 0]), (-1, -2, self.knots[:, -1])):
            distance = self.slopes[:, last] - self.slopes[:, before]
            step = np.minimum(share * np.abs(self.slopes[:, last]), 0.5 * np.abs(distance))
            slopes[:, last] -= np.where(np.isinf(ends), np.sign(distance) * step, 0.0)
        return replace(self, slopes=slopes)

    def violation(self, u: NDArray) -> float:
        """Return the largest violation of a bound of the dual variables u or of ``sum_i u_i = 0``.

        The violation of ``sum_i u_i = 0`` is ``|sum_i u_i| / max(1, sum_i |u_i|)``.
        """
        outside = np.maximum(self.knots[:, 0] - u, u - self.knots[:, -1]).max()
        return float(max(outside, abs(u.sum()) / max(1.0, np.abs(u).sum()), 0.0))

    def feasible(self, u: NDArray) -> NDArray:
        """Return the dual variables u, clipped to their bounds and corrected to have the sum 0.

        The dual variables furthest from their knots are corrected first, since a dual variable that
        leaves a knot violates an optimality condition. A sum of zero up to rounding errors is not
        corrected.
        """
        low, high = self.knots[:, 0], self.knots[:, -1]
        u = np.clip(u, low, high)
        excess = u.sum()
        if abs(excess) <= len(u) * np.finfo(float).eps * np.abs(u).sum():
            return u
        room = u - low if excess > 0 else high - u
        inside = np.abs(u[:, None] - self.knots).min(axis=1)
        for k in np.lexsort((-room, -inside)):
            step = np.clip(excess, -room[k], room[k])
            # because of rounding, u - (u - low) may differ from low
            u[k] = np.clip(u[k] - step, low[k], high[k])
            excess -= step
            if excess == 0:
                break
        return u


@dataclass(frozen=True, kw_only=True)
class PiecewiseSolution(Result):
    """A solution of a `PiecewiseQP` (the dual problem) and of a machine (the primal problem).

    `value` is an upper bound on the optimal value of the dual problem: the dual objective at u plus
    `rounding`. Because of rounding errors, this sum may exceed the dual objective at u = 0 or
    violate weak duality; `value` is then the dual objective at u = 0. `bound` is the negative of
    the machine's objective at the weights ``scale * w`` and the intercept ``scale * bias``. The
    optimal value of the dual problem lies between `bound` and `value`.
    """

    #: Feasible dual variables; see `PiecewiseQP.feasible`. Shape (n,).
    u: NDArray
    #: Decisions without the intercept, ``Ku`` for a Gram matrix K or ``Zw`` for a data matrix Z.
    #: Shape (n,).
    decision: NDArray
    #: Intercept b, the multiplier of ``sum_i u_i = 0``.
    bias: float
    #: Factor by which the weights and the intercept of the machine are multiplied.
    scale: float
    #: Upper bound on the rounding error of the quadratic term ``1/2 u'Ku``.
    rounding: float = 0.0
    #: Primal weights w of a linear machine, or None if only the dual variables are known. Shape
    #: (k,).
    weights: NDArray | None = None

    @property
    def f(self) -> NDArray:
        """Decisions of the machine at the training rows, ``scale * (decision + bias)``."""
        return self.scale * (self.decision + self.bias)


def free_part(square: NDArray, target: NDArray, total: float) -> tuple[NDArray, float] | None:
    """Solve ``square @ u + b = target`` and ``sum_i u_i = total`` for u and b.

    Returns None if this linear system is singular. The system may be regular although `square` is
    singular, for example for k + 1 rows with k features.
    """
    n_free = len(target)
    system = np.ones((n_free + 1, n_free + 1))
    system[:-1, :-1], system[-1, -1] = square, 0.0
    # with a small ridge, the solution is unique, and equal rows have equal dual variables
    system[np.diag_indices(n_free)] += 1e-14 * np.trace(square)
    try:
        found = np.linalg.solve(system, np.append(target, total))
    except np.linalg.LinAlgError:
        return None
    return (found[:-1], float(found[-1])) if np.isfinite(found).all() else None


def gains(u: NDArray, knots: NDArray, slopes: NDArray) -> tuple[NDArray, NDArray]:
    """Return the negated slopes of each cost to the right and to the left of its dual variable.

    At a bound of a dual variable, the slope of its cost in the outward direction is infinite.
    """
    rise, fall = np.full(len(u), -np.inf), np.full(len(u), np.inf)
    for s in range(slopes.shape[1]):
        low, high = knots[:, s], knots[:, s + 1]
        np.negative(slopes[:, s], out=rise, where=(low <= u) & (u < high))
        np.negative(slopes[:, s], out=fall, where=(low < u) & (u <= high))
    return rise, fall


def optimality(decision: NDArray, rise: NDArray, fall: NDArray) -> tuple[float, float]:
    """Return the intercept b and the violation of the optimality conditions.

    The arrays `rise` and `fall` are returned by `gains`. For row i, ``rise - decision`` is the
    decrease of the objective per increase of u_i, and ``fall - decision`` is the increase of the
    objective per decrease of u_i. The violation is the largest ``rise - decision`` minus the
    smallest ``fall - decision``, but at least 0. The intercept b is the mean of ``rise - decision``
    over the rows with u_i strictly inside a linear piece. If all dual variables are at knots, b is
    the mean of the largest ``rise - decision`` and the smallest ``fall - decision``.
    """
    gain, inside = rise - decision, rise == fall
    top, low = float(gain.max()), float((fall - decision).min())
    # if no dual variable can increase, every intercept up to `low` is optimal; if no dual variable
    # can decrease, every intercept from `top` on is optimal
    top, low = (top if top > -np.inf else low), (low if low < np.inf else top)
    bias = float(gain[inside].mean()) if inside.any() else 0.5 * (top + low)
    return bias, max(top - low, 0.0)
