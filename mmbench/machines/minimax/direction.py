"""The direction of smallest total spread: the minimax probability machine without a cone solver.

    min over w   ||Dx w|| + ||Dy w||   subject to   t'w = 1,       Dx, Dy diagonal

For ``0 < theta < 1`` Cauchy's inequality gives ``(sx + sy)^2 <= sx^2/theta + sy^2/(1 - theta)``,
with equality at ``theta = sx/(sx + sy)``. For a given theta the right hand side is a quadratic form
``w'Aw`` with ``A = Dx^2/theta + Dy^2/(1 - theta)``, whose minimiser is ``A^-1 t / (t'A^-1 t)``. The
textbook iteration alternates the two; here the equation that it solves, one equation in theta, goes
to a bracketing root finder, which needs about ten evaluations of O(k).

Its dual, ``max g`` subject to ``g t = Dx p + Dy q``, ``||p||, ||q|| <= 1``, certifies the result:
``p = Dx w/theta`` and ``q = Dy w/(1 - theta)`` satisfy it up to their length.

References
----------
G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. Jordan: A robust minimax approach to
classification. JMLR 3, 2002.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mmbench.errors import Status
from mmbench.solvers.result import Result

#: log(theta / (1 - theta)) is sought between minus and plus this.
MAX_LOGIT = 30.0

#: Targets larger than this, or smaller than its reciprocal, are scaled.
MAX_TARGET = 1e100

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Direction(Result):
    """A direction and its certificate: `value` is the total spread."""

    #: ``t'w = 1``. Shape (k,).
    w: NDArray
    #: ``||Dx w||`` and ``||Dy w||``.
    spread_x: float
    spread_y: float

    @classmethod
    def along(
        cls,
        w: NDArray,
        target: NDArray,
        spreads: Sequence[float],
        bound: float,
        iterations: int,
    ) -> Self:
        """Return the multiple of w with ``target'w = 1``, given its spreads and their bound."""
        scale = float(target @ w)
        w, (spread_x, spread_y) = w / scale, (float(spread) / scale for spread in spreads)
        return cls(
            w,
            spread_x,
            spread_y,
            value=spread_x + spread_y,
            bound=bound,
            violation=abs(float(target @ w) - 1.0),
            iterations=iterations,
            status=Status.OPTIMAL,
        )


def minimax_direction(target: NDArray, var_x: NDArray, var_y: NDArray) -> Direction:
    """Minimise the total spread.

    Parameters
    ----------
    target : ndarray of shape (k,)
        t, not zero.
    var_x, var_y : ndarray of shape (k,)
        Squares of the diagonals of Dx and Dy; where one is zero the other is not.

    Raises
    ------
    ValueError
        If the target is zero or not finite.

    Examples
    --------
    >>> found = minimax_direction(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 4.0]))
    >>> found.w.round(3), round(found.value, 6), round(found.bound, 6)
    (array([0.8, 0.2]), 1.788854, 1.788854)
    """
    size = float(np.abs(target).max())
    if not 0.0 < size < np.inf:
        raise ValueError("the difference of the class means is not a finite vector; scale the data")
    if not 1.0 / MAX_TARGET < size < MAX_TARGET:  # squares would underflow
        found = minimax_direction(target / size, var_x, var_y)
        spreads = found.spread_x, found.spread_y
        return Direction.along(found.w, target, spreads, found.bound / size, found.iterations)
    evaluations = 0

    def trial(logit: float) -> tuple[NDArray, float, float]:
        nonlocal evaluations
        evaluations += 1
        # 1/theta and 1/(1 - theta), both exact at the ends.
        w = target / (var_x * (1.0 + np.exp(-logit)) + var_y * (1.0 + np.exp(logit)))
        squares = w * w
        return w, float(np.sqrt(var_x @ squares)), float(np.sqrt(var_y @ squares))

    def excess(logit: float) -> float:
        _, spread_x, spread_y = trial(logit)
        return np.log(spread_x + TINY) - np.log(spread_y + TINY) - logit

    logit = _root(excess)
    w, spread_x, spread_y = trial(logit)
    longest = max(spread_x * (1.0 + np.exp(-logit)), spread_y * (1.0 + np.exp(logit)))
    return Direction.along(w, target, (spread_x, spread_y), 1.0 / float(longest), evaluations)


def _root(excess: Callable[[float], float]) -> float:
    """Return the zero of a function that falls; an end where it has none.

    At an end one class has no spread along the solution.
    """
    if excess(-MAX_LOGIT) <= 0:
        return -MAX_LOGIT
    if excess(MAX_LOGIT) >= 0:
        return MAX_LOGIT
    return float(brentq(excess, -MAX_LOGIT, MAX_LOGIT, xtol=1e-12))
