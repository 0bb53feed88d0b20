"""An active set method for the SVM's dual, without the complete kernel matrix.

    min over u   1/2 ||M^{1/2} Z'u||^2 - sum_i y_i u_i    subject to   sum_i u_i = 0,
                                                                     0 <= y_i u_i <= C

with rows Z and a positive diagonal matrix M. A row is free if its multiplier lies between its
bounds. If the free rows are known, u and b solve one linear system. A row that then violates an
optimality condition becomes free or moves to a bound, and a new system is solved. The method needs
only the submatrix of ``Z M Z'`` for the free rows. From the solution at a neighbouring grid point
it takes two or three systems, and the solution is exact up to rounding errors. If the method does
not converge, pairwise steps give a better initial active set.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.svm_dual.qp import PiecewiseQP, free_part
from mmbench.solvers.svm_dual.smo import solve_smo

#: Tolerance of the violation of ``y f >= 1`` or ``y f <= 1`` before a row at a bound becomes free.
MARGIN_TOLERANCE = 1e-10

#: KKT tolerance, in units of f, of pairwise steps that only determine the initial free rows.
FREE_ROWS_TOLERANCE = 1e-3

#: Maximum number of pairwise steps per row.
STEPS_PER_ROW = 200


def train_scaled(
    rows: NDArray, metric: NDArray, y: NDArray, C: float, u: NDArray, tol: float
) -> NDArray:
    """Return the solution by the active set method, after pairwise steps if necessary.

    Without a warm start, pairwise steps on kernel values in single precision determine the free
    rows.

    Parameters
    ----------
    rows, metric, y, C
        See `settle`.
    u : ndarray of shape (n,)
        The solution at a neighbouring grid point; zero without a warm start.
    tol : float
        KKT tolerance of the pairwise steps; the solution of the active set method is exact.
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
    """Return the solution by the active set method, or None without convergence.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Rows Z.
    metric : ndarray of shape (k,)
        Diagonal of M.
    y : ndarray of shape (n,)
        Labels -1.0 and +1.0.
    C : float or ndarray of shape (n,)
        Penalty on slack, or penalty of each row.
    u : ndarray of shape (n,)
        Initial guess, which only determines the initial active set: the u_i at their bounds.
    max_rounds : int, default=15
        Maximum number of linear systems.
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
    """Run the active set method for a kernel that is given as a linear operator.

    Parameters
    ----------
    free_part : callable
        Function of the free rows, the residuals of their decisions, and a sum. It returns
        multipliers of the free rows with this sum, and b, which together reduce the residuals to
        zero; or None if the linear system is singular or too large.
    decision : callable
        Function of u that returns the decisions of all rows without b.
    y, C, u, max_rounds
        See `settle`.
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
