"""`PiecewiseQP`, a kernel machine with a convex, piecewise linear loss for each training row.

The costs phi_i of the dual are the conjugates of the losses, ``loss_i(f) = max over u of
-f u - phi_i(u)``, and ``w = sum_i u_i phi(x_i)``. The multiplier of ``sum_i u_i = 0`` is b, and at
the optimum ``-f(x_i)`` is a slope of phi_i at u_i. See `mmbench.solvers.svm_dual`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.kernels import row_squares
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.result import Result
from mmbench.solvers.rows import MappedRows

#: Rounding error of a sum of n terms in units of ``eps sqrt(n)`` times the sum of magnitudes. The
#: factor 4 is exceeded with a probability of 7e-4 (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
ROUNDING_FACTOR = 4.0

#: Largest range of decisions that are constant, in units of the KKT tolerance: rows at a bound may
#: vary by more than those inside a piece.
UNRESOLVED_TOLERANCES = 4.0

#: Relative excess of a dual value over the objective at w = 0 that may be rounding of a sum.
SUM_ROUNDING = 1e-12


@dataclass(frozen=True)
class PiecewiseQP:
    """A Gram matrix and one convex, piecewise linear cost per row.

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
    #: Ends of the m pieces of each cost, ascending, including 0. The outer two are the bounds of u
    #: and may be infinite. Shape (n, m + 1).
    knots: NDArray
    #: Slope of each piece, ascending. Shape (n, m).
    slopes: NDArray
    #: Constant term of the objective.
    constant: float = 0.0

    @property
    def values(self) -> NDArray:
        """K, if it is stored."""
        assert not isinstance(self.gram, KernelMatrix)
        return self.gram

    def cost(self, u: NDArray) -> float:
        """Return ``sum_i phi_i(u_i)``, with ``phi_i(0) = 0``."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        lengths = np.clip(u[:, None], low, high) - np.clip(0.0, low, high)
        return float(np.sum(self.slopes * lengths))

    def loss(self, f: NDArray) -> float:
        """Return ``sum_i loss_i(f_i)``; infinite if f_i is too large for a u_i without bound."""
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
        slopes[-1] = max(slopes[-1], 0.0)  # rounding: losses are not negative
        kinks = np.append(0.0, kinks[order])
        # first piece at the end of which the objective rises
        piece = np.argmax(np.append(kinks[1:] * norm + slopes[:-1] >= 0, True))
        s = max(kinks[piece], -slopes[piece] / norm) if norm > 0 else kinks[piece]
        return float(min(s, self.largest_scale(f)))

    def _pieces(self) -> tuple[NDArray, NDArray]:
        """Return the length of each piece, and its sign: 1 above zero, -1 below."""
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
        """Return a point with its certificate.

        `decision` is ``Ku``, or ``Zw`` if w is given (`weights`): for rows Z in place of K, if
        ``Z'u`` loses digits because large u all but cancel; only the bound then depends on u.
        `scale` multiplies w and b; by default it is the largest up to 1 with finite losses.
        """
        f = decision + bias
        unit = ROUNDING_FACTOR * np.sqrt(len(u)) * np.finfo(float).eps
        size = float(np.abs(u) @ np.sqrt(self._diagonal()))
        if weights is None:  # u'|K|u is at most size^2, by the Cauchy-Schwarz inequality
            of_w = of_u = max(0.0, float(u @ decision))
            rounding = 0.5 * unit * size * size  # infinite if it overflows
        else:
            w_of_u = self.gram.T @ u  # type: ignore[union-attr]
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

    def _diagonal(self) -> NDArray:
        """Return ``k(x, x)`` of all rows, of a kernel matrix or of rows that stand in for it."""
        gram = self.gram
        if isinstance(gram, MappedRows):
            return gram.squares()
        stored = isinstance(gram, np.ndarray) and gram.shape[0] != gram.shape[1]
        return row_squares(gram) if stored else np.maximum(gram.diagonal(), 0.0)

    def _credible(self, value: float) -> float:
        """Return a dual value, or the value at u = 0 if the former is larger or cannot be true.

        Minus a dual value is at most the machine's objective at w = 0, for any b.
        """
        n = len(self.knots)
        least = self.constant - min(self.loss(np.full(n, b)) for b in (-1.0, 0.0, 1.0))
        if not least - SUM_ROUNDING * abs(least) <= value <= self.constant:
            return self.constant
        return max(value, least)

    def rescaled(self, found: PiecewiseSolution) -> PiecewiseSolution:
        """Return a solution with the multiple of w and b that has the smallest objective.

        If a margin is missed by a rounding error and the loss is steep, a slightly larger w has no
        loss.
        """
        f, w = found.decision + found.bias, found.weights
        scale = self.best_scale(f, float(found.u @ found.decision if w is None else w @ w))
        return self.solution(
            *(found.u, found.decision, found.bias, found.iterations, found.status),
            *(scale, w, found.route),
        )

    def constant_if_unresolved(
        self, found: PiecewiseSolution, tol: float, gap_tolerance: float
    ) -> PiecewiseSolution:
        """Return w = 0 if decisions vary by less than the tolerance and w = 0 is optimal too.

        Rows whose multipliers cancel leave a w of the size of the tolerance, in any direction. A
        short w without cancellation, as with a small C, is kept.
        """
        root = np.sqrt(self._diagonal())
        size = float(np.abs(found.u) @ root * root.max())  # of decisions without cancellation
        if np.ptp(found.f) > UNRESOLVED_TOLERANCES * tol * min(1.0, size):
            return found
        b = float(np.clip(found.scale * found.bias, -1, 1))
        bound = self.constant - self.loss(np.full(len(found.u), b))
        w, none = found.weights, np.zeros(len(found.u))
        zero = replace(
            found,
            u=none,
            decision=none,
            bias=b,
            scale=1.0,
            bound=bound,
            weights=None if w is None else np.zeros(len(w)),
        )
        return zero if zero.gap <= max(found.gap, gap_tolerance) else found

    def inward(self, share: float) -> PiecewiseQP:
        """Return the problem with tighter bounds on the decisions, safe from rounding errors.

        The slope of each endless piece is reduced by a share of itself, at most by half its
        distance to the next slope.
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

        The excess is taken from the rows furthest from a knot, since moving a row off its knot
        would violate its optimality condition. A sum that is zero up to rounding is left as it is.
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

    `value` is the objective at u, plus `rounding`, or at 0 if this is less. `bound` is minus the
    machine's objective at ``scale * w`` and ``scale * bias``: the optimum lies between them.
    """

    #: Feasible: see `PiecewiseQP.feasible`. Shape (n,).
    u: NDArray
    #: ``Ku``, recomputed from `u`; or ``Zw``. Shape (n,).
    decision: NDArray
    #: The multiplier b.
    bias: float
    #: Factor of w and b of the machine.
    scale: float
    #: Largest rounding error of ``1/2 u'Ku``.
    rounding: float = 0.0
    #: Primal weights w, if more accurate than ``Z'u``. Shape (k,).
    weights: NDArray | None = None

    @property
    def f(self) -> NDArray:
        """The machine's decisions at the rows, ``scale * (Ku + b)``."""
        return self.scale * (self.decision + self.bias)


def free_part(square: NDArray, target: NDArray, total: float) -> tuple[NDArray, float] | None:
    """Return free multipliers of a given sum, and b, for given decisions; None if singular.

    With one free row more than coordinates the matrix is singular, the bordered system is not.
    """
    n_free = len(target)
    system = np.ones((n_free + 1, n_free + 1))
    system[:-1, :-1], system[-1, -1] = square, 0.0
    # Equal rows share a multiplier in any proportion; a trace of ridge makes it equal shares.
    system[np.diag_indices(n_free)] += 1e-14 * np.trace(square)
    try:
        found = np.linalg.solve(system, np.append(target, total))
    except np.linalg.LinAlgError:
        return None
    return (found[:-1], float(found[-1])) if np.isfinite(found).all() else None
