"""The SVM's dual by guessing which multipliers are free, for a kernel that is never formed.

    min over u   1/2 ||M^{1/2} Z'u||^2 - sum_i y_i u_i    subject to   sum_i u_i = 0,
                                                                     0 <= y_i u_i <= C

with rows Z and a positive diagonal M. Given the rows whose multiplier lies between its bounds, u
and b solve one linear system; rows that then break an optimality condition change sides, and the
guess is tried again. Only the free rows' part of ``Z M Z'`` is needed. From a neighbouring solution
this takes two or three systems and ends at rounding level. It may fail to settle: then pairwise
steps bring a better guess.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.svm_dual.qp import PiecewiseQP, free_part
from mmbench.solvers.svm_dual.smo import solve_smo

#: By how much ``y f`` may miss 1 on the wrong side before a row changes sides.
MARGIN_TOLERANCE = 1e-10

#: Tolerance of pairwise steps that only have to find which rows are free, in units of f.
FREE_ROWS_TOLERANCE = 1e-3

#: Pairwise steps for a row of multipliers, at most.
STEPS_PER_ROW = 200


def train_scaled(
    rows: NDArray, metric: NDArray, y: NDArray, C: float, u: NDArray, tol: float
) -> NDArray:
    """Return the solution next to a guess: by its free rows, or by pairwise steps before these.

    Where there is nothing to start from, kernel values in single precision find the free rows.

    Parameters
    ----------
    rows, metric, y, C
        As for `settle`.
    u : ndarray of shape (n,)
        The solution of a neighbouring problem; zero where there is none.
    tol : float
        Of the pairwise steps; free rows that settle are exact.
    """
    cold = not u.any()
    found = None if cold else settle(rows, metric, y, C, u)
    if found is not None:
        return found
    scaled = (rows * np.sqrt(metric)).astype(np.float32 if cold else np.float64, copy=False)
    ends = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1)
    dual = PiecewiseQP(scaled @ scaled.T, ends, -y[:, None])
    u = solve_smo(dual, u, FREE_ROWS_TOLERANCE if cold else tol, STEPS_PER_ROW * len(u)).u
    found = settle(rows, metric, y, C, u)
    return u if found is None else found


def settle(
    rows: NDArray,
    metric: NDArray,
    y: NDArray,
    C: float | NDArray,
    u: NDArray,
    max_rounds: int = 15,
) -> NDArray | None:
    """Return the solution next to a guess, or None if the guess does not settle.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Z.
    metric : ndarray of shape (k,)
        Diagonal of M.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    C : float or ndarray of shape (n,)
    u : ndarray of shape (n,)
        The guess; only which bounds it touches matters.
    max_rounds : int, default=15
    """
    most = rows.shape[1] + 1

    def part_of(free: NDArray, pull: NDArray, total: float) -> tuple[NDArray, float] | None:
        if len(free) > most:
            return None
        part = rows[free] * np.sqrt(metric)
        return free_part(part @ part.T, pull, total)

    def decision(u: NDArray) -> NDArray:
        return rows @ (metric * (rows.T @ u))

    return settle_by(part_of, decision, y, C, u, max_rounds)


def settle_by(
    free_part: Callable[[NDArray, NDArray, float], tuple[NDArray, float] | None],
    decision: Callable[[NDArray], NDArray],
    y: NDArray,
    C: float | NDArray,
    u: NDArray,
    max_rounds: int = 15,
) -> NDArray | None:
    """Settle for a kernel that is known by what it does.

    Parameters
    ----------
    free_part : callable
        Given the free rows, the decisions that they lack and a sum: multipliers of that sum which
        make them up, and b; None where there are none.
    decision : callable
        Given u: the decisions of all rows, b left out.
    y, C, u, max_rounds
        As for `settle`.
    """
    below, above = y * u <= 0, y * u >= C
    for _ in range(max_rounds):
        free = np.flatnonzero(~(below | above))
        u = np.where(above, C * y, 0.0)
        found = free_part(free, (y - decision(u))[free], -u.sum()) if len(free) else None
        if found is None:
            return None
        u[free], b = found
        margins = y * (decision(u) + b)
        inside = ~(below | above)
        now_below = (inside & (y * u < 0)) | (below & (margins >= 1 - MARGIN_TOLERANCE))
        now_above = (inside & (y * u > C)) | (above & (margins <= 1 + MARGIN_TOLERANCE))
        if np.array_equal(now_below, below) and np.array_equal(now_above, above):
            return u
        below, above = now_below, now_above
    return None
