"""The M4 in the normalization "margin", in coordinates with diagonal class covariances Sx and Sy.

For ``rho = 2/(sx + sy)``, (2) and (3) of the M4 paper require the margins ``rho sx = 1 + t`` and
``rho sy = 1 - t``; subtracting ``t = (sx - sy)/(sx + sy)`` from the intercept makes both 1. If the
reduction removes points, ``w'(xm - ym) >= 2 - xi_m`` replaces their constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias, best_multiple
from mmbench.machines.minimax.spread import minimax_direction, spreads
from mmbench.solvers.result import Result
from mmbench.solvers.rows import Rows

#: For a hard margin, a solution is considered feasible if the sum of its slacks is at most
#: HARD_SLACK. If the margin is narrow, ||w|| and the rounding errors of the slacks are large.
HARD_SLACK = 1e-6


@dataclass(frozen=True)
class MarginSolution(Result):
    """Solution of the M4 in the normalization "margin" (see the module `m4`)."""

    #: Weights, shape (k,).
    w: NDArray
    b: float
    #: Multipliers of the points, between 0 and C times the weight of the point. Shape (n,).
    multipliers: NDArray

    @property
    def is_trivial(self) -> bool:
        """Whether w is zero."""
        return not self.w.any()

    def better(self, other: MarginSolution) -> MarginSolution:
        """Return the solution with the smaller objective, `self` or `other`.

        The lower bound of the returned solution is the larger of the two lower bounds. The
        multipliers, the number of iterations and the route are copied from `other`.
        """
        best = self if self.value <= other.value else other
        names = ("w", "b", "value", "violation", "status")
        better = {name: getattr(best, name) for name in names}
        return replace(other, bound=max(self.bound, other.bound), **better)


@dataclass(frozen=True)
class MarginProblem:
    """Data of the M4 in coordinates with diagonal covariances.

    The methods compute the objective and its bounds in the normalization "margin".
    """

    #: Points that the reduction has not removed, shape (n, k).
    rows: Rows
    #: Labels -1.0 or +1.0, shape (n,).
    y: NDArray
    #: Difference of the class means, shape (k,). Removed points are included in the class means.
    delta: NDArray
    #: Variances of the positive and the negative class, each of shape (k,).
    var_x: NDArray
    var_y: NDArray
    #: Penalty C on the slacks; infinite for the hard margin.
    C: float
    #: Total weight of the points removed by the reduction.
    removed: float = 0
    #: Weights of the slacks, shape (n,), or 1.0 for unit weights.
    weights: NDArray | float = 1.0

    @property
    def totals(self) -> tuple[float, float]:
        """Sums of the slack weights of the positive points and of the negative points."""
        weights = self.weights * np.ones(len(self.y))
        return float(weights[self.y > 0].sum()), float(weights[self.y < 0].sum())

    def spreads(self, w: NDArray) -> NDArray:
        """Return the class spreads (sx, sy) along w, shape (2,)."""
        return spreads(w, self.var_x, self.var_y)

    def slack(self, w: NDArray, b: float) -> float:
        """Return the weighted sum of slacks.

        The slack of the constraint on the class means has the weight `removed`.
        """
        slack = (self.weights * np.maximum(0.0, 1.0 - self.y * (self.rows @ w + b))).sum()
        return float(slack + self.removed * max(0.0, 2.0 - float(self.delta @ w)))

    def value(self, w: NDArray, b: float) -> float:
        """Return the objective at (w, b), or infinity if (w, b) violates a hard margin."""
        slack, spread = self.slack(w, b), float(self.spreads(w).sum())
        if np.isinf(self.C):
            return spread if slack <= HARD_SLACK else np.inf
        return spread + self.C * slack

    def violation(self, w: NDArray, b: float) -> float:
        """Return the largest violation of a hard margin; 0 for a soft margin."""
        if np.isfinite(self.C):
            return 0.0
        return float(np.maximum(0.0, 1.0 - self.y * (self.rows @ w + b)).max())

    @property
    def trivial(self) -> tuple[float, float]:
        """Objective at w = 0, and the optimal b at w = 0 (the label of the larger class)."""
        positive, negative = self.totals
        sign = 1.0 if positive >= negative else -1.0
        return self.C * 2.0 * (min(positive, negative) + self.removed), sign

    def bound(self, a: NDArray, share: float = 0.0) -> float:
        """Return the largest dual objective value over all feasible multiples of the multipliers.

        The multipliers `a` of the points are clipped to [0, C s_i] for the weights s_i, and scaled
        to equal sums of both classes. `share` is the multiplier of the constraint on the class
        means, between 0 and ``removed * C``. Let ``v = sum a_i y_i z_i + share delta``. If
        ``v'w <= sx + sy`` for all w, that is, ``v = Sx^{1/2} p + Sy^{1/2} q`` with
        ``||p||, ||q|| <= 1``, then ``sum a + 2 share`` is a lower bound.
        """
        a = balanced(a, self.y, self.C * self.weights)
        share = float(np.clip(share, 0.0, self.removed * self.C)) if self.removed else 0.0
        v = self.rows.T @ (a * self.y) + share * self.delta
        total = float(a.sum()) + 2.0 * share
        room = float(np.min(self.C * self.weights / np.maximum(a, 1e-300)))
        if share:
            room = min(room, self.removed * self.C / share)
        if not v.any():
            return total * room if np.isfinite(room) else total
        reach = minimax_direction(v, self.var_x, self.var_y).bound
        return total * min(reach, max(1.0, room))

    def tuned(self, w: NDArray) -> tuple[NDArray, float]:
        """Return the multiple of (w, b) with the smallest objective, for the best intercept b of w.

        If the margin is hard and (w, b) does not separate the classes, (w, b) is returned.
        """
        decision = self.rows @ w
        hard = np.isinf(self.C)
        b = middle_bias(decision, self.y) if hard else best_bias(decision, self.y, self.weights)
        margins, weights = self.y * (decision + b), self.weights * np.ones(len(decision))
        if self.removed:
            margins = np.append(margins, 0.5 * float(self.delta @ w))
            weights = np.append(weights, 2.0 * self.removed)
        if hard:
            factor = 1.0 / float(margins.min()) if (margins > 0).all() else 1.0
        else:
            factor = best_multiple(margins, self.C * weights, float(self.spreads(w).sum()))
        return factor * w, factor * b

    def trivial_solution(self) -> MarginSolution:
        """Return the solution w = 0, which predicts the larger class."""
        w, b = np.zeros(len(self.delta)), self.trivial[1]
        found = self.certified(w, b, np.zeros(len(self.y)), 0.0, 0)
        return replace(found, value=self.trivial[0], status=Status.TRIVIAL)

    def solution(self, w: NDArray, multipliers: NDArray, iterations: int) -> MarginSolution:
        """Return the better of two solutions: w = 0, and the best multiple of the given w.

        The lower bound is computed from the multipliers. If the reduction of the M4 removes points,
        the last multiplier belongs to the constraint on the class means.
        """
        w, b = self.tuned(w)
        a, share = multipliers[: len(self.y)], float(multipliers[len(self.y) :].sum())
        found = self.certified(w, b, a, self.bound(a, share), iterations)
        return self.trivial_solution().better(found)

    def certified(
        self, w: NDArray, b: float, multipliers: NDArray, bound: float, iterations: int
    ) -> MarginSolution:
        """Return (w, b) as a `MarginSolution`, with its objective and its largest violation."""
        return MarginSolution(
            w,
            b,
            multipliers,
            value=self.value(w, b),
            bound=bound,
            violation=self.violation(w, b),
            iterations=iterations,
            status=Status.OPTIMAL,
        )


def along(decision: NDArray, y: NDArray, spreads: NDArray, C: float) -> MarginProblem:
    """Return the M4 problem restricted to the multiples of a direction w.

    `decision` contains the projections w'z_i of the rows, shape (n,). `spreads` contains the class
    spreads (sx, sy) along w.
    """
    var_x, var_y = np.square(spreads)[:, None]
    means = np.array([decision[y > 0].mean() - decision[y < 0].mean()])
    return MarginProblem(decision[:, None], y, means, var_x, var_y, C=C)


def middle_bias(decision: NDArray, y: NDArray) -> float:
    """Return the intercept b with which the smallest margin is the same in both classes."""
    return float(-0.5 * (decision[y > 0].min() + decision[y < 0].max()))
