"""Pairwise steps and Newton steps of `solve_smo` on a stored kernel matrix, compiled by Numba.

A pairwise step changes ``u_i += t`` and ``u_j -= t``, beyond the minimum along the pair (successive
over-relaxation) or up to the next knot. Row i has the largest gain, which is the decrease of the
objective per increase of u_i. Row j gives the largest decrease of the objective together with row i
(Fan, Chen and Lin 2005, WSS 2). Both rows are selected in loops that read rows of K anyway, by
blocks that fit in the cache.

Newton steps change the rows inside a piece. If the Gram matrix has low rank (a linear kernel and a
large C) or its eigenvalues decrease fast, a few dozen rows need millions of tiny pairwise steps to
converge. While these rows stay inside their pieces, the problem is quadratic with one equality
constraint and is solved by one factorisation ``K = L L'``. A row that reaches a knot is then fixed.
The next direction for the other rows is found by projecting ``L^-1 g``, where g is the gradient,
onto the orthogonal complement of ``L^-1 e_i`` for all fixed rows i. One factorisation is used for a
series of steps, which usually ends at a minimum between knots. CPU time of an RMM with the poly
kernel on USPS: 1/22 of the time without Newton steps.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 6, 2005.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.compiled import njit
from mmbench.kernels.matrix import accumulate
from mmbench.solvers.svm_dual.qp import PiecewiseQP

#: Fixed cost of a series of Newton steps, in kernel values that pairwise steps could read in the
#: same time.
SERIES_OVERHEAD = 2e5

#: A series starts if the budget is at least BUDGET_FACTOR times its cost. It ends if the budget is
#: used up or after MOST_KNOTS_MET rows have reached a knot.
BUDGET_FACTOR, MOST_KNOTS_MET = 3, 200

#: Minimum number of pairwise steps between two checks of the time limit; a quarter of the number of
#: rows if this is larger.
LEAST_CHUNK_STEPS = 250

#: Maximum number of recomputations of ``Ku``; after this number, a remaining violation is
#: considered a rounding error.
MOST_REFUTATIONS = 20

#: Columns per block of `_move` and `_partner`. A vectorised loop tests whether a block contains a
#: better row; only then is the block searched, since an argmax loop is not vectorised.
BLOCK_COLUMNS = 64

#: Over-relaxation: step length relative to the step to the minimum along the pair (the objective
#: decreases for every value below 2); and violation, in units of `tol`, below which steps are not
#: over-relaxed. Number of steps with 1.5 relative to 1: 0.5 to 0.7 on most of ten SVMs and their
#: RMMs (rbf, poly, linear; C from 0.1 to 1000), at most 1.2. The last steps are not over-relaxed,
#: so that a problem with few variables ends at the exact minimum.
RELAXATION, LAST_STEPS_TOLERANCES = 1.5, 2.0

#: The fast-math flags assume that NaN does not occur (a Gram matrix with NaN is an error), but
#: allow infinity.
compiled = partial(
    njit,
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)


@dataclass
class Descent:
    """State of pairwise and Newton steps on a stored matrix.

    `decision` is the product of the stored matrix with u, plus `offset`, the contribution of rows
    outside the working set. `left` is the number of pairwise steps that are still allowed.
    """

    problem: PiecewiseQP
    diagonal: NDArray
    u: NDArray
    decision: NDArray
    tol: float
    left: int
    offset: NDArray | float = 0.0
    bias: float = 0.0
    violation: float = np.inf

    def run(self) -> None:
        """Take steps until the violation is within `tol` or a limit is reached."""
        problem, u, budget, refutations = self.problem, self.u, 0.0, 0
        knots, slopes = problem.knots, problem.slopes
        # with float32 kernel values the curvature of nearly equal rows consists of rounding errors
        floor = float(np.finfo(problem.values.dtype).eps * self.diagonal.max())
        floor = floor if floor > 0 else 1e-12
        chunk = max(len(u) // 4, LEAST_CHUNK_STEPS)
        rise, fall = gains(u, knots, slopes)
        self.bias, self.violation = optimality(self.decision, rise, fall)
        while self.violation > self.tol and self.left > 0 and refutations < MOST_REFUTATIONS:
            asked = 0 if time_is_up() else min(chunk, self.left)
            done = descend(
                *(problem.values, self.diagonal, u, self.decision, rise, fall, knots, slopes),
                *(self.tol, asked, floor),
            )
            self.left -= done
            budget += float(done * len(u))
            # if not converged, Newton steps may take as long as all pairwise steps so far
            if 0 < done == asked:
                left = newton_steps(problem, u, self.decision, budget)
                if left < budget:
                    budget, (rise, fall) = left, gains(u, knots, slopes)
            self.bias, self.violation = optimality(self.decision, rise, fall)
            if self.violation <= self.tol or not self.left or not done:
                # ``Ku`` accumulates the rounding errors of all changes
                self.decision = self.offset + combine(problem.values, u)
                self.bias, self.violation = optimality(self.decision, rise, fall)
                refutations += 1
            if not done:
                break


def newton_steps(problem: PiecewiseQP, u: NDArray, decision: NDArray, budget: float) -> float:
    """Take a series of Newton steps in place, if the budget allows; return the remaining budget.

    u stays within its bounds, its sum is constant, and the objective does not increase. `decision`,
    which is ``Ku`` plus any constant, is updated. The unit of the budget is one kernel value that
    pairwise steps read.
    """
    inside = (problem.knots[:, :-1] < u[:, None]) & (u[:, None] < problem.knots[:, 1:])
    rows, pieces = inside.nonzero()
    # at most up to the first knot
    cost = len(rows) ** 3 / 24 + len(rows) * len(u) + SERIES_OVERHEAD
    if len(rows) < 2 or BUDGET_FACTOR * cost > budget:
        return budget
    square = problem.values[np.ix_(rows, rows)].astype(float)
    # With the ridge a singular matrix can be factorised. A step in its null space is then long and
    # correctly ends at a knot.
    ridge = np.finfo(problem.gram.dtype).eps ** (2 / 3) * np.trace(square) / len(square)
    square[np.diag_indices_from(square)] += ridge
    try:
        factor = np.linalg.cholesky(square)
    except LinAlgError:
        return budget - cost
    low, high = problem.knots[rows, pieces], problem.knots[rows, pieces + 1]
    gradient = decision[rows] + problem.slopes[rows, pieces]
    longest = min(MOST_KNOTS_MET, len(rows) - 2, int(4 * (budget - cost) / len(rows) ** 2))
    before = u[rows]
    moved, removed = before.copy(), np.empty((longest + 1, len(rows)))
    met = _series(factor, ridge, gradient, moved, low, high, removed, np.ones((4, len(rows))))
    # the rounding error of the sum is corrected at the row furthest from its knots
    k = np.minimum(moved - low, high - moved).argmax()
    moved[k] = np.clip(moved[k] - (moved.sum() - before.sum()), low[k], high[k])
    for change, row in zip(moved - before, rows, strict=True):
        if change:
            decision += change * problem.values[row]
    u[rows] = moved
    return budget - cost - met * len(rows) ** 2 / 4


@compiled()
def _series(factor, ridge, gradient, u, low, high, removed, work):
    """Take Newton steps to a minimum between knots, or until `removed` is full.

    The matrix is ``factor @ factor.T - ridge * I``; u and the gradient change in place. Returns the
    number of rows that reached a knot. The rows of `removed` become orthonormal, and the first row
    keeps the sum of u constant; `work` contains ones. Loops take less time to compile than array
    expressions and allocations.
    """
    m, free, fixed, direction, change = u.shape[0], work[0], work[1], work[2], work[3]
    for met in range(removed.shape[0]):
        _lower(factor, fixed, removed[met])
        _project(removed, met, removed[met])
        size = np.sqrt(_dot(removed[met], removed[met]))
        for k in range(m):
            removed[met, k] /= size
        _lower(factor, gradient, direction)
        _project(removed, met + 1, direction)
        _upper(factor, direction)
        for k in range(m):
            direction[k] *= -free[k]
        _product(factor, direction, change)
        for k in range(m):
            change[k] -= ridge * direction[k]
        curvature, descent = _dot(direction, change), -_dot(direction, gradient)
        first, room, end = -1, np.inf, 0.0
        for k in range(m):
            if direction[k] != 0:
                knot = high[k] if direction[k] > 0 else low[k]
                if (knot - u[k]) / direction[k] < room:
                    first, room, end = k, (knot - u[k]) / direction[k], knot
        if not descent > 0:
            return met
        between = curvature > 0 and descent < room * curvature
        step = descent / curvature if between else room
        if step == np.inf:
            return met
        for k in range(m):
            u[k] = min(max(u[k] + step * direction[k], low[k]), high[k])
            gradient[k] += step * change[k]
            fixed[k] = 0.0
        if between:
            return met
        u[first], free[first], fixed[first] = end, 0.0, 1.0
    return removed.shape[0]


@compiled()
def _dot(x, z):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * z[k]
    return total


@compiled()
def _project(removed, count, x):
    """Project x onto the orthogonal complement of the first `count` rows, in place."""
    for _ in range(2):  # the second projection removes rounding errors of the first
        for s in range(count):
            overlap = _dot(removed[s], x)
            for k in range(x.shape[0]):
                x[k] -= overlap * removed[s, k]


@compiled()
def _lower(factor, b, x):
    """Write the solution of ``L x = b`` to x, starting at the first non-zero entry of b."""
    first = 0
    while first < b.shape[0] and b[first] == 0:
        x[first] = 0.0
        first += 1
    for i in range(first, b.shape[0]):
        x[i] = (b[i] - _dot(factor[i, first:i], x[first:i])) / factor[i, i]


@compiled()
def _upper(factor, x):
    """Solve ``L' x = b`` in place."""
    for i in range(x.shape[0] - 1, -1, -1):
        x[i] /= factor[i, i]
        for k in range(i):
            x[k] -= x[i] * factor[i, k]


@compiled()
def _product(factor, x, out):
    """Write ``L L' x`` to `out`."""
    for i in range(x.shape[0]):
        out[i] = 0.0
        for k in range(i + 1):
            out[k] += x[i] * factor[i, k]
    for i in range(x.shape[0] - 1, -1, -1):
        out[i] = _dot(factor[i, : i + 1], out)


@compiled()
def descend(gram, diagonal, u, decision, rise, fall, knots, slopes, tol, max_iter, floor):
    """Take up to `max_iter` pairwise steps in place; return the number of steps.

    The gain ``rise[i] - decision[i]`` is the decrease of the objective per increase of u_i. The
    loss ``fall[i] - decision[i]`` is the increase of the objective per decrease of u_i. At an
    optimum b lies between the largest gain and the smallest loss. `gains` returns `rise` and
    `fall`, which change in place. The curvature along a pair is at least `floor`.
    """
    i, top = _move(decision, rise, gram[0], gram[0], 0.0)
    for step in range(max_iter):
        j, low = _partner(decision, fall, diagonal, gram[i], diagonal[i], top, floor)
        if top - low <= tol:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(gram[i, j]), floor)
        t = (top - (fall[j] - decision[j])) / curvature
        if top - low > LAST_STEPS_TOLERANCES * tol:
            t *= RELAXATION
        above, below = _around(u[i], knots[i], slopes[i])[2], _around(u[j], knots[j], slopes[j])[3]
        t = min(t, above - u[i], u[j] - below)
        grown = above if t == above - u[i] else u[i] + t
        shrunk = below if t == u[j] - below else u[j] - t
        if grown == u[i] and shrunk == u[j]:  # t is smaller than the rounding error of u
            return step
        u[i], u[j] = grown, shrunk
        for k in (i, j):
            rise[k], fall[k] = _around(u[k], knots[k], slopes[k])[:2]
        i, top = _move(decision, rise, gram[i], gram[j], t)
    return max_iter


@compiled()
def _move(decision, rise, row_i, row_j, t):
    """Add ``t (K_i - K_j)`` to ``Ku`` in place; return the largest gain's row, and this gain."""
    best, top = 0, -np.inf
    for start in range(0, decision.shape[0], BLOCK_COLUMNS):
        f, r = decision[start : start + BLOCK_COLUMNS], rise[start : start + BLOCK_COLUMNS]
        k_i, k_j = row_i[start : start + BLOCK_COLUMNS], row_j[start : start + BLOCK_COLUMNS]
        better = 0
        for k in range(f.shape[0]):
            moved = f[k] + t * (np.float64(k_i[k]) - np.float64(k_j[k]))
            f[k] = moved
            better += r[k] - moved > top
        if better:
            for k in range(f.shape[0]):
                if r[k] - f[k] > top:
                    best, top = start + k, r[k] - f[k]
    return best, top


@compiled()
def _partner(decision, fall, diagonal, row_i, diagonal_i, top, floor):
    """Return the row j whose pair with i decreases the objective most, and the smallest loss."""
    best, score, low = 0, 0.0, top
    for start in range(0, decision.shape[0], BLOCK_COLUMNS):
        f, r = decision[start : start + BLOCK_COLUMNS], fall[start : start + BLOCK_COLUMNS]
        k_i, d = row_i[start : start + BLOCK_COLUMNS], diagonal[start : start + BLOCK_COLUMNS]
        better = 0
        for k in range(f.shape[0]):
            loss = r[k] - f[k]
            gain = max(top - loss, 0.0)
            curvature = max(diagonal_i + d[k] - 2.0 * np.float64(k_i[k]), floor)
            better += (gain * gain > score * curvature) | (loss < low)
        if better:
            for k in range(f.shape[0]):
                loss = r[k] - f[k]
                if loss < top:
                    low = min(low, loss)
                    curvature = max(diagonal_i + d[k] - 2.0 * np.float64(k_i[k]), floor)
                    gained = (top - loss) * (top - loss) / curvature
                    if gained > score:
                        best, score = start + k, gained
    return best, low


@compiled()
def _around(u, knots, slopes):
    """Return minus the slope right of u, minus the slope left of u, the next knots above and below.

    If u is at a bound, the slope outside the bound is infinite, and the knot is u itself.
    """
    rise, fall, above, below = -np.inf, np.inf, u, u
    for s in range(slopes.shape[0]):
        if knots[s] <= u < knots[s + 1]:
            rise, above = -slopes[s], knots[s + 1]
        if knots[s] < u <= knots[s + 1]:
            fall, below = -slopes[s], knots[s]
    return rise, fall, above, below


def combine(gram: NDArray, u: NDArray) -> NDArray:
    """Return ``gram @ u`` in float64; only the rows with non-zero u are read."""
    rows, out = np.flatnonzero(u), np.zeros(len(u))
    accumulate(gram, rows, u[rows], out)
    return out


def gains(u: NDArray, knots: NDArray, slopes: NDArray) -> tuple[NDArray, NDArray]:
    """Return minus the slope of each cost to the right of u, and minus the slope to the left.

    If u is at a bound, the slope outside the bound is infinite.
    """
    rise, fall = np.full(len(u), -np.inf), np.full(len(u), np.inf)
    for s in range(slopes.shape[1]):
        low, high = knots[:, s], knots[:, s + 1]
        np.negative(slopes[:, s], out=rise, where=(low <= u) & (u < high))
        np.negative(slopes[:, s], out=fall, where=(low < u) & (u <= high))
    return rise, fall


def optimality(decision: NDArray, rise: NDArray, fall: NDArray) -> tuple[float, float]:
    """Return b and the violation, which is the largest gain minus the smallest loss, or 0.

    `gains` returns `rise` and `fall`. b is the mean of the gains of rows inside a piece. If there
    are no rows inside a piece, b is the mean of the largest gain and the smallest loss.
    """
    gain, inside = rise - decision, rise == fall
    top, low = float(gain.max()), float((fall - decision).min())
    # if no u_i can increase, or no u_i can decrease, every b on one side is a valid multiplier
    top, low = (top if top > -np.inf else low), (low if low < np.inf else top)
    bias = float(gain[inside].mean()) if inside.any() else 0.5 * (top + low)
    return bias, max(top - low, 0.0)
