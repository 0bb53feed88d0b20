"""The maxi-min margin machine in coordinates in which both class covariances are diagonal.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     sx = ||Sx^{1/2} w||, sy alike

This program, the normalization "margin", differs from the constraints (2), (3) of the paper by a
shift of b: with ``rho = 2/(sx + sy)``, ``rho sx = 1 + (sx - sy)/(sx + sy)``.

Reduction: the removed points are replaced by one row of the class means, with slack xi_m:
``w'(xm - ym) >= 2 - xi_m``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.result import Result
from mmbench.solvers.rows import Rows

#: Slack that rounding may leave in a hard margin: w is long if the margin is narrow.
HARD_SLACK = 1e-6


@dataclass(frozen=True)
class MarginSolution(Result):
    """A solution of "margin"."""

    #: Shape (k,).
    w: NDArray
    b: float
    #: Multipliers of the points, between 0 and C. Shape (n,).
    multipliers: NDArray
    #: (ex, ey) of the reweighted SVM, a start for a neighbouring problem. Shape (2,).
    weights: NDArray | None = None

    @property
    def is_trivial(self) -> bool:
        """Whether w is zero."""
        return not self.w.any()

    def better(self, other: MarginSolution) -> MarginSolution:
        """Return the w of the smaller value with the larger bound, and the other's fields."""
        best = self if self.value <= other.value else other
        names = ("w", "b", "value", "violation", "status")
        better = {name: getattr(best, name) for name in names}
        return replace(other, bound=max(self.bound, other.bound), **better)


@dataclass(frozen=True)
class MarginProblem:
    """Rows, class spreads and the penalty on slack."""

    #: Points with a constraint of their own. Shape (n, k).
    rows: Rows
    #: -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: Difference of the class means, removed points included. Shape (k,).
    delta: NDArray
    #: Variances of the positive and the negative class; the coordinates are uncorrelated in both.
    #: Shape (k,).
    var_x: NDArray
    var_y: NDArray
    #: Penalty on slack; infinite for the hard margin.
    C: float
    #: Number of points removed by the reduction.
    removed: int = 0

    def spreads(self, w: NDArray) -> NDArray:
        """Return (sx, sy)."""
        squares = w * w
        return np.sqrt(np.array([self.var_x @ squares, self.var_y @ squares]))

    def slack(self, w: NDArray, b: float) -> float:
        """Return the sum of slacks, including the slack of the removed points."""
        own = np.maximum(0.0, 1.0 - self.y * (self.rows @ w + b)).sum()
        return float(own + self.removed * max(0.0, 2.0 - float(self.delta @ w)))

    def value(self, w: NDArray, b: float) -> float:
        """Return the objective; infinite where a hard margin is violated."""
        slack, spread = self.slack(w, b), float(self.spreads(w).sum())
        if np.isinf(self.C):
            return spread if slack <= HARD_SLACK else np.inf
        return spread + self.C * slack

    def violation(self, w: NDArray, b: float) -> float:
        """Return the largest violation of a hard margin; a soft one has none."""
        if np.isfinite(self.C):
            return 0.0
        return float(np.maximum(0.0, 1.0 - self.y * (self.rows @ w + b)).max())

    @property
    def trivial(self) -> tuple[float, float]:
        """The objective at w = 0, and its b, the sign of the larger class."""
        n_positive = int((self.y > 0).sum())
        smaller = min(n_positive, len(self.y) - n_positive)
        sign = 1.0 if 2 * n_positive >= len(self.y) else -1.0
        return self.C * 2.0 * (smaller + self.removed), sign

    def bound(self, a: NDArray, share: float = 0.0) -> float:
        """Return the largest dual value of a multiple of the multipliers.

        a are the multipliers of the points, clipped to [0, C] and balanced; `share` is the
        multiplier of the row of means, between 0 and ``removed * C``. ``sum a + 2 share`` is a
        lower bound if ``v = sum a_i y_i z_i + share delta`` is Dx p + Dy q with
        ``||p||, ||q|| <= 1``, that is, if no w has ``v'w > sx + sy``.
        """
        a = balanced(a, self.y, self.C)
        share = float(np.clip(share, 0.0, self.removed * self.C)) if self.removed else 0.0
        v = self.rows.T @ (a * self.y) + share * self.delta
        total = float(a.sum()) + 2.0 * share
        room = self.C / max(float(a.max(initial=0.0)), 1e-300)
        if share:
            room = min(room, self.removed * self.C / share)
        if not v.any():
            return total * room if np.isfinite(room) else total
        reach = minimax_direction(v, self.var_x, self.var_y).bound
        return total * min(reach, max(1.0, room))

    def tuned(self, w: NDArray) -> tuple[NDArray, float]:
        """Return the best b for a direction, and then the best multiple of (w, b)."""
        decision = self.rows @ w
        hard = np.isinf(self.C)
        b = middle_bias(decision, self.y) if hard else best_bias(decision, self.y)
        factor = self._best_factor(w, self.y * (decision + b))
        return factor * w, factor * b

    def _best_factor(self, w: NDArray, margins: NDArray) -> float:
        """Return the best multiple of a solution, 1 if there is none.

        There the slope, ``sx + sy - C (sum of the margins with slack)``, changes its sign.
        """
        weights = np.ones(len(margins))
        if self.removed:
            margins = np.append(margins, 0.5 * float(self.delta @ w))
            weights = np.append(weights, 2.0 * self.removed)
        positive = margins > 0
        if not positive.any():
            return 1.0
        order = np.argsort(-margins[positive])
        ends = margins[positive][order]
        if np.isinf(self.C):
            return 1.0 / float(ends[-1]) if positive.all() else 1.0
        gains = (weights[positive] * margins[positive])[order]
        losses = float(weights[~positive] @ margins[~positive])
        # Before any margin has reached 1, after the largest has, after the two largest have, ...
        reached = np.append(0.0, np.cumsum(gains))
        slope = float(self.spreads(w).sum()) - self.C * (losses + gains.sum() - reached)
        rising = np.flatnonzero(slope >= 0)
        if not len(rising):
            return 1.0
        return float(1.0 / ends[rising[0] - 1]) if rising[0] else 0.0

    def trivial_solution(self) -> MarginSolution:
        """Return w = 0 and the larger class."""
        w, b = np.zeros(len(self.delta)), self.trivial[1]
        found = self.certified(w, b, np.zeros(len(self.y)), 0.0, 0)
        return replace(found, value=self.trivial[0], status=Status.TRIVIAL)

    def solution(
        self,
        w: NDArray,
        multipliers: NDArray,
        iterations: int,
        weights: NDArray | None = None,
    ) -> MarginSolution:
        """Return the best multiple of a direction, or w = 0, with the bound of the multipliers.

        With a reduction the last multiplier belongs to the row of means.
        """
        w, b = self.tuned(w)
        a, share = multipliers[: len(self.y)], float(multipliers[len(self.y) :].sum())
        found = self.certified(w, b, a, self.bound(a, share), iterations)
        return self.trivial_solution().better(replace(found, weights=weights))

    def certified(
        self, w: NDArray, b: float, multipliers: NDArray, bound: float, iterations: int
    ) -> MarginSolution:
        """Return a solution, given the bound that its multipliers prove."""
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
    """Return the problem along one direction, given its decision values without b and (sx, sy)."""
    var_x, var_y = np.square(spreads)[:, None]
    means = np.array([decision[y > 0].mean() - decision[y < 0].mean()])
    return MarginProblem(decision[:, None], y, means, var_x, var_y, C=C)


def middle_bias(decision: NDArray, y: NDArray) -> float:
    """Return the b in the middle between the nearest decision values of the two classes."""
    return float(-0.5 * (decision[y > 0].min() + decision[y < 0].max()))
