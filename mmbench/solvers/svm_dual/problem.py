"""The dual of the SVM and of the RMM as one problem class, in one variable a training row.

    min over u   1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

with convex, piecewise linear ``phi_i``. The decision function is ``f(x_i) = (Ku)_i + b``, where b
is the multiplier of the constraint, and at the optimum ``-f(x_i)`` is a slope of ``phi_i`` at u_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status


@dataclass(frozen=True)
class PiecewiseQP:
    """A Gram matrix and one convex piecewise linear cost a row.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        K, symmetric positive semidefinite, float32 or float64.
    knots : ndarray of shape (n, m + 1)
        Ends of the m pieces of each cost, ascending, one of them 0. The outer two bound u and may
        be infinite.
    slopes : ndarray of shape (n, m)
        Slope of each piece, ascending.
    """

    gram: NDArray
    knots: NDArray
    slopes: NDArray

    def cost(self, u: NDArray) -> float:
        """Return ``sum_i phi_i(u_i)``, with ``phi_i(0) = 0``."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        lengths = np.clip(u[:, None], low, high) - np.clip(0.0, low, high)
        return float(np.sum(self.slopes * lengths))

    def value(self, solution: PiecewiseSolution) -> float:
        """Return the objective at a solution."""
        return 0.5 * float(solution.u @ solution.decision) + self.cost(solution.u)

    def violation(self, u: NDArray) -> float:
        """Return the largest violation of a constraint."""
        outside = np.maximum(self.knots[:, 0] - u, u - self.knots[:, -1]).max()
        return float(max(outside, abs(u.sum()), 0.0))

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


@dataclass(frozen=True)
class PiecewiseSolution:
    """What a solver of a `PiecewiseQP` returns.

    Attributes
    ----------
    u : ndarray of shape (n,)
        Feasible: see `PiecewiseQP.feasible`.
    decision : ndarray of shape (n,)
        ``Ku``, recomputed from `u`.
    bias : float
        The multiplier b.
    iterations : int
    status : Status
    """

    u: NDArray
    decision: NDArray
    bias: float
    iterations: int
    status: Status
