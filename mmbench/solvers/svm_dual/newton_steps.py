"""Newton steps among the rows inside a piece: what pairwise steps are worst at.

Where the Gram matrix has low rank (a linear kernel and a large C) or its spectrum falls fast, pairs
need millions of tiny steps to settle a few dozen rows. While those stay inside their pieces the
problem is quadratic with one equation, solved by one factorisation ``K = L L'``. A row that meets
its knot stays there: the next direction is then sought among the others, for which the directions
``L^-1 e_i`` of the rows at a knot are removed from ``L^-1 g``, g being the gradient. One
factorisation thus serves a series of steps, whose end most often is a minimum between knots.
"""

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.kernels.submatrix import submatrix
from mmbench.solvers.svm_dual.problem import PiecewiseQP

#: Cost of a series besides its arithmetic, in the unit of `series_cost`.
SERIES_OVERHEAD = 2e5

#: A series starts when the budget is this many times its cost, and ends with the budget or when
#: this many rows have met a knot.
BUDGET_FACTOR, MOST_KNOTS_MET = 3, 200

#: NaN never occurs (a Gram matrix that holds one is refused), infinity does.
compiled = partial(
    njit,
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)


def series_cost(n_inside: int, n: int) -> float:
    """Return what a series costs up to its first knot, in kernel values that pairs would read."""
    return n_inside**3 / 24 + n_inside * n + SERIES_OVERHEAD


def newton_steps(problem: PiecewiseQP, u: NDArray, decision: NDArray, budget: float) -> float:
    """Take a series of Newton steps in place, if it is affordable.

    Parameters
    ----------
    problem : PiecewiseQP
    u : ndarray of shape (n,)
        Between its bounds; it stays there, keeps its sum, and becomes no worse.
    decision : ndarray of shape (n,)
        ``Ku`` and any constant; it follows u.
    budget : float
        In the unit of `series_cost`.

    Returns
    -------
    float
        What is left of the budget.
    """
    rows, pieces = _inside(u, problem.knots)
    cost = series_cost(len(rows), len(u))
    if len(rows) < 2 or BUDGET_FACTOR * cost > budget:
        return budget
    square = submatrix(problem.values, rows, rows).astype(float)
    # The ridge keeps a singular matrix factorable. Along its null space a direction is then steep
    # and long, and ends at a knot, as it should.
    ridge = np.finfo(problem.gram.dtype).eps ** (2 / 3) * np.trace(square) / len(square)
    square[np.diag_indices_from(square)] += ridge
    try:
        factor = np.linalg.cholesky(square)
    except LinAlgError:
        return budget - cost
    low, high = problem.knots[rows, pieces], problem.knots[rows, pieces + 1]
    gradient = decision[rows] + problem.slopes[rows, pieces]
    longest = min(MOST_KNOTS_MET, len(rows) - 2, int(4 * (budget - cost) / len(rows) ** 2))
    moved, met = _series(factor, ridge, gradient, u[rows], low, high, longest)
    _keep_sum(moved, moved.sum() - u[rows].sum(), low, high)
    for change, row in zip(moved - u[rows], rows, strict=True):
        if change:
            decision += change * problem.values[row]
    u[rows] = moved
    return budget - cost - met * len(rows) ** 2 / 4


def _keep_sum(u: NDArray, excess: float, low: NDArray, high: NDArray) -> None:
    """Take what rounding has added to the sum from the row furthest from a knot."""
    k = np.minimum(u - low, high - u).argmax()
    u[k] = np.clip(u[k] - excess, low[k], high[k])


@compiled()
def _inside(u, knots):
    """Return the rows inside a piece, and the pieces."""
    rows, pieces = np.empty(u.shape[0], np.int64), np.empty(u.shape[0], np.int64)
    found = 0
    for i in range(u.shape[0]):
        for s in range(knots.shape[1] - 1):
            if knots[i, s] < u[i] < knots[i, s + 1]:
                rows[found], pieces[found] = i, s
                found += 1
    return rows[:found], pieces[:found]


@compiled()
def _series(factor, ridge, gradient, u, low, high, longest):
    """Step to a minimum between knots, or until `longest` rows have met one.

    The matrix is ``factor @ factor.T`` less `ridge` on its diagonal; u and the gradient change in
    place. Returned are u and the number of rows that met a knot.
    """
    m = u.shape[0]
    removed = np.empty((longest + 1, m))  # orthonormal; the first keeps the sum
    free = np.ones(m, np.bool_)
    removed[0] = _lower(factor, np.ones(m))
    removed[0] /= np.sqrt(removed[0] @ removed[0])
    for met in range(longest + 1):
        target = _lower(factor, gradient)
        for _ in range(2):  # once more for what rounding has left
            for s in range(met + 1):
                target -= (removed[s] @ target) * removed[s]
        direction = -_upper(factor, target)
        curvature, descent = 0.0, 0.0
        first, room, end = -1, np.inf, 0.0
        for k in range(m):
            if not free[k]:
                direction[k] = 0.0
        change = _product(factor, _transposed_product(factor, direction)) - ridge * direction
        for k in range(m):
            d = direction[k]
            curvature += d * change[k]
            descent -= d * gradient[k]
            if d != 0:
                knot = high[k] if d > 0 else low[k]
                if (knot - u[k]) / d < room:
                    first, room, end = k, (knot - u[k]) / d, knot
        if not descent > 0:
            return u, met
        between = curvature > 0 and descent < room * curvature
        step = descent / curvature if between else room
        if step == np.inf:
            return u, met
        for k in range(m):
            u[k] = min(max(u[k] + step * direction[k], low[k]), high[k])
            gradient[k] += step * change[k]
        if between:
            return u, met
        u[first] = end
        if met == longest:
            return u, met + 1
        free[first] = False
        unit = np.zeros(m)
        unit[first] = 1.0
        unit = _lower(factor, unit)
        for _ in range(2):
            for s in range(met + 1):
                unit -= (removed[s] @ unit) * removed[s]
        removed[met + 1] = unit / np.sqrt(unit @ unit)
    return u, longest


@compiled()
def _lower(factor, b):
    """Solve ``L x = b``, from the first entry of b that is not zero."""
    x, first = np.zeros(b.shape[0]), 0
    while first < b.shape[0] and b[first] == 0:
        first += 1
    for i in range(first, b.shape[0]):
        row, total = factor[i], 0.0
        for k in range(first, i):
            total += row[k] * x[k]
        x[i] = (b[i] - total) / row[i]
    return x


@compiled()
def _upper(factor, b):
    """Solve ``L' x = b``."""
    x = b.copy()
    for i in range(b.shape[0] - 1, -1, -1):
        row = factor[i]
        x[i] /= row[i]
        for k in range(i):
            x[k] -= x[i] * row[k]
    return x


@compiled()
def _transposed_product(factor, x):
    """Return ``L' x``."""
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        row = factor[i]
        for k in range(i + 1):
            out[k] += x[i] * row[k]
    return out


@compiled()
def _product(factor, x):
    """Return ``L x``."""
    out = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        row, total = factor[i], 0.0
        for k in range(i + 1):
            total += row[k] * x[k]
        out[i] = total
    return out
