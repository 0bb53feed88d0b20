"""The problem class: a kernel machine with a convex, piecewise linear loss for each training row.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b

Its dual has one variable a row,

    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

with ``w = sum_i u_i phi(x_i)``, K the Gram matrix and convex, piecewise linear costs phi_i whose
conjugates are the losses: ``loss_i(f) = max over u of -f u - phi_i(u)``. The multiplier of the
constraint is b, and at the optimum ``-f(x_i)`` is a slope of phi_i at u_i.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.result import Result


@dataclass(frozen=True)
class PiecewiseQP:
    """A Gram matrix and one convex piecewise linear cost a row.

    Examples
    --------
    The SVM with C = 10, whose loss is ``C max(0, 1 - y f)``:

    >>> y = np.array([1.0, -1.0])
    >>> svm = PiecewiseQP(np.eye(2), np.array([[0.0, 10.0], [-10.0, 0.0]]), -y[:, None])
    >>> svm.loss(np.array([0.5, -2.0]))
    5.0
    """

    #: K, symmetric positive semidefinite, float32 or float64. Shape (n, n).
    gram: NDArray | KernelMatrix
    #: Ends of the m pieces of each cost, ascending, one of them 0. The outer two bound u and may be
    #: infinite. Shape (n, m + 1).
    knots: NDArray
    #: Slope of each piece, ascending. Shape (n, m).
    slopes: NDArray
    #: What is added to the objective.
    constant: float = 0.0

    @property
    def values(self) -> NDArray:
        """K of a problem that holds it as an array."""
        assert not isinstance(self.gram, KernelMatrix)
        return self.gram

    def cost(self, u: NDArray) -> float:
        """Return ``sum_i phi_i(u_i)``, with ``phi_i(0) = 0``."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        lengths = np.clip(u[:, None], low, high) - np.clip(0.0, low, high)
        return float(np.sum(self.slopes * lengths))

    def loss(self, f: NDArray) -> float:
        """Return ``sum_i loss_i(f_i)``, infinite where u_i has no bound and f_i is too large."""
        lengths, sides = self._pieces()
        gains = -sides * (f[:, None] + self.slopes)
        return float((lengths[gains > 0] * gains[gains > 0]).sum())

    def largest_scale(self, f: NDArray) -> float:
        """Return the largest s for which all losses of ``s f`` are finite."""
        lengths, sides = self._pieces()
        rates, offsets = -sides * f[:, None], sides * self.slopes
        rising = np.isinf(lengths) & (rates > 0)
        return max(0.0, float(np.min(offsets[rising] / rates[rising], initial=np.inf)))

    def best_scale(self, f: NDArray, norm: float) -> float:
        """Return the s that minimises ``s^2/2 norm + sum_i loss_i(s f_i)``, with norm ``||w||^2``.

        Each piece adds a hinge, ``length * max(0, rate s - offset)``, with a kink at offset / rate.
        """
        lengths, sides = self._pieces()
        rates, offsets = -sides * f[:, None], sides * self.slopes
        kinked = np.isfinite(lengths) & (rates != 0)
        weights, rates, offsets = lengths[kinked], rates[kinked], offsets[kinked]
        kinks = offsets / rates
        order = np.argsort(kinks)[np.count_nonzero(kinks <= 0) :]
        active = (offsets < 0) | ((offsets == 0) & (rates > 0))  # from s = 0 on
        slopes = np.sum(weights * rates, where=active)
        slopes += np.append(0.0, np.cumsum((weights * np.abs(rates))[order]))
        slopes[-1] = max(slopes[-1], 0.0)  # but for rounding: losses are not negative
        kinks = np.append(0.0, kinks[order])
        # the first piece at whose end the sum rises
        piece = np.argmax(np.append(kinks[1:] * norm + slopes[:-1] >= 0, True))
        s = max(kinks[piece], -slopes[piece] / norm) if norm > 0 else kinks[piece]
        return float(min(s, self.largest_scale(f)))

    def _pieces(self) -> tuple[NDArray, NDArray]:
        """Return the length of each piece, and 1 where it lies above zero, -1 below."""
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
    ) -> PiecewiseSolution:
        """Return a point with its certificate.

        Parameters
        ----------
        u : ndarray of shape (n,)
        decision : ndarray of shape (n,)
            ``Ku``, or ``Zw`` where w is given.
        bias : float
        iterations : int
        status : Status
        scale : float, optional
            Factor of w and b; by default the largest up to 1 for which all losses are finite.
        weights : ndarray of shape (k,), optional
            w of a problem with rows Z in place of K. That of u has lost digits where these are
            large and all but cancel; u is needed for the bound alone then.
        """
        f = decision + bias
        if weights is None:
            of_w = of_u = float(u @ decision)
        else:
            own = self.gram.T @ u  # type: ignore[union-attr]
            of_w, of_u = float(weights @ weights), float(own @ own)
        scale = min(1.0, self.largest_scale(f)) if scale is None else scale
        return PiecewiseSolution(
            u=u,
            decision=decision,
            bias=bias,
            scale=scale,
            value=self.constant + 0.5 * of_u + self.cost(u),
            bound=self.constant - 0.5 * scale**2 * of_w - self.loss(scale * f),
            violation=self.violation(u),
            iterations=iterations,
            status=status,
            weights=weights,
        )

    def rescaled(self, solution: PiecewiseSolution) -> PiecewiseSolution:
        """Return a solution with the multiple of w and b that has the smallest objective.

        Where a margin is missed by a rounding error and the loss is steep, a multiple of w that is
        larger by as little has no loss.
        """
        f, w = solution.decision + solution.bias, solution.weights
        scale = self.best_scale(f, float(solution.u @ solution.decision if w is None else w @ w))
        return self.solution(
            solution.u,
            solution.decision,
            solution.bias,
            solution.iterations,
            solution.status,
            scale,
            w,
        )

    def inward(self, share: float) -> PiecewiseQP:
        """Return the problem whose decisions keep a distance from where their losses are infinite.

        The last slope of an endless piece is smaller by a share of itself, by half its distance to
        the slope before at most. A rounding error then leaves all losses finite.
        """
        slopes = self.slopes.copy()
        for last, before, ends in ((0, 1, self.knots[:, 0]), (-1, -2, self.knots[:, -1])):
            distance = self.slopes[:, last] - self.slopes[:, before]
            step = np.minimum(share * np.abs(self.slopes[:, last]), 0.5 * np.abs(distance))
            slopes[:, last] -= np.where(np.isinf(ends), np.sign(distance) * step, 0.0)
        return replace(self, slopes=slopes)

    def violation(self, u: NDArray) -> float:
        """Return the largest violation of a constraint; a sum is relative to that of ``|u_i|``."""
        outside = np.maximum(self.knots[:, 0] - u, u - self.knots[:, -1]).max()
        return float(max(outside, abs(u.sum()) / max(1.0, np.abs(u).sum()), 0.0))

    def feasible(self, u: NDArray) -> NDArray:
        """Return `u` clipped to its bounds and moved onto ``sum u = 0``.

        What is left of the sum goes to the rows furthest from a knot: a row that rests on a knot
        is pinned by two slopes, and moving it would tear the optimality conditions. A sum that is
        zero up to rounding is left alone.
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
            u[k] = np.clip(u[k] - step, low[k], high[k])  # u - (u - low) may miss low by an ulp
            excess -= step
            if excess == 0:
                break
        return u


@dataclass(frozen=True, kw_only=True)
class PiecewiseSolution(Result):
    """A point of a `PiecewiseQP` and of the machine whose dual it is; see `PiecewiseQP.solution`.

    `value` is the objective at u. `bound` is minus the machine's objective at ``scale * w`` and
    ``scale * bias``, so that the optimum lies between them.
    """

    #: Feasible: see `PiecewiseQP.feasible`. Shape (n,).
    u: NDArray
    #: ``Ku``, recomputed from `u`; or ``Zw``. Shape (n,).
    decision: NDArray
    #: The multiplier b.
    bias: float
    #: Factor by which the machine's w and b differ from those of u.
    scale: float
    #: w, where it has more digits than that of u. Shape (k,).
    weights: NDArray | None = None

    @property
    def f(self) -> NDArray:
        """The machine's decisions at the rows, ``scale * (Ku + b)``."""
        return self.scale * (self.decision + self.bias)
