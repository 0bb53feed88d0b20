"""Pairwise steps and Newton steps on a stored matrix: the two moves of `solve_smo`, compiled.

A pairwise step moves ``u_i += t`` and ``u_j -= t`` beyond the minimum along the pair (successive
over-relaxation) or to the next knot. Row i has the largest gain from growing, row j the largest
decrease of the objective together with i (Fan, Chen and Lin 2005, WSS 2). Both are found while a
row of K is read, in blocks that stay in the cache.

Newton steps act on the rows inside a piece. If the Gram matrix has low rank (a linear kernel and a
large C) or its spectrum falls fast, pairs need millions of tiny steps to settle a few dozen rows.
While these rows stay inside their pieces, the problem is quadratic with one equation, solved by one
factorisation ``K = L L'``. A row that reaches a knot stays there: the next direction is sought
among the other rows by projecting ``L^-1 g``, g being the gradient, orthogonally to the directions
``L^-1 e_i`` of the rows at a knot. One factorisation thus serves a series of steps, which mostly
ends at a minimum between knots. (RMM with poly kernel on USPS: 22 times faster than pairs alone.)

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
from mmbench.kernels.matrix import accumulate, submatrix
from mmbench.solvers.svm_dual.qp import PiecewiseQP

#: Fixed cost of a Newton series, in kernel values that pairwise steps would read.
SERIES_OVERHEAD = 2e5

#: A series starts if the budget is BUDGET_FACTOR times its cost; it ends with the budget or after
#: MOST_KNOTS_MET rows have reached a knot.
BUDGET_FACTOR, MOST_KNOTS_MET = 3, 200

#: Least number of pairwise steps between two checks of the clock; otherwise a quarter of the rows.
LEAST_CHUNK_STEPS = 250

#: Solutions that a freshly computed ``Ku`` may refute before the rest is taken for rounding.
MOST_REFUTATIONS = 20

#: Columns per block of `_move` and `_partner`. A block is searched for its best row only if a
#: vectorised test finds a better row in it: an argmax loop would not be vectorised.
BLOCK_COLUMNS = 64

#: Step length relative to the minimum along the pair (over-relaxation; any value below 2 lowers the
#: objective). 1.5 took 0.5 to 0.7 times the steps of 1 on most of ten SVMs and their RMMs (rbf,
#: poly, linear; C from 0.1 to 1000), at worst 1.2 times. The last steps, within
#: LAST_STEPS_TOLERANCES times the tolerance, go to the minimum, so that few variables reach it
#: exactly.
RELAXATION, LAST_STEPS_TOLERANCES = 1.5, 2.0

#: NaN never occurs (a Gram matrix with NaN is refused), infinity does.
compiled = partial(
    njit,
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)


@dataclass
class Descent:
    """State of the steps on a stored matrix: u and ``Ku`` of all rows, and the remaining work.

    `left` counts pairwise steps; `budget` is the work, in kernel values, that Newton steps may
    still take; `offset` is the share of other rows in ``Ku``.
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
        """Step until no pair violates the optimality conditions, or no step or time is left."""
        problem, u, budget, refutations = self.problem, self.u, 0.0, 0
        chunk = max(len(u) // 4, LEAST_CHUNK_STEPS)
        self._measure()
        while self.violation > self.tol and self.left > 0 and refutations < MOST_REFUTATIONS:
            asked = 0 if time_is_up() else min(chunk, self.left)
            done = descend(
                *(problem.values, self.diagonal, u, self.decision),
                *(problem.knots, problem.slopes, self.tol, asked),
            )
            self.left -= done
            budget += float(done * len(u))
            if 0 < done == asked:  # not solved: Newton steps may cost as much as these steps did
                budget = newton_steps(problem, u, self.decision, budget)
            self._measure()
            if self.violation <= self.tol or not self.left or not done:
                # The sum of all changes of ``Ku`` has rounding errors of its own.
                self.decision = self.offset + combine(problem.values, u)
                self._measure()
                refutations += 1
            if not done:
                break

    def _measure(self) -> None:
        """Set b and the violation."""
        knots, slopes = self.problem.knots, self.problem.slopes
        self.bias, self.violation = optimality(self.u, self.decision, knots, slopes)


def newton_steps(problem: PiecewiseQP, u: NDArray, decision: NDArray, budget: float) -> float:
    """Take a series of Newton steps in place, if affordable; return the remaining budget.

    u stays within its bounds, keeps its sum, and becomes no worse; `decision`, ``Ku`` plus any
    constant, follows u. The budget is in kernel values that pairwise steps would read.
    """
    rows, pieces = _inside(u, problem.knots)
    cost = len(rows) ** 3 / 24 + len(rows) * len(u) + SERIES_OVERHEAD  # up to the first knot
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
    before = u[rows]
    moved, met = _series(factor, ridge, gradient, before.copy(), low, high, longest)
    k = np.minimum(moved - low, high - moved).argmax()  # takes what rounding has added to the sum
    moved[k] = np.clip(moved[k] - (moved.sum() - before.sum()), low[k], high[k])
    for change, row in zip(moved - before, rows, strict=True):
        if change:
            decision += change * problem.values[row]
    u[rows] = moved
    return budget - cost - met * len(rows) ** 2 / 4


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


@compiled()
def descend(gram, diagonal, u, decision, knots, slopes, tol, max_iter):
    """Take up to `max_iter` steps in place and return their number.

    ``rise[i] - decision[i]`` is what u_i gains by growing, ``fall[i] - decision[i]`` what it loses
    by shrinking; b lies between the largest gain and the smallest loss at an optimum.
    """
    n = u.shape[0]
    rise, fall = np.empty(n), np.empty(n)
    for k in range(n):
        rise[k], fall[k] = gains(u[k], knots[k], slopes[k])
    # float32 kernel values make the curvature of near duplicates a difference of rounding errors
    floor = np.finfo(gram.dtype).eps * diagonal.max()
    if floor <= 0.0:
        floor = 1e-12
    i, top = _move(decision, rise, gram[0], gram[0], 0.0)
    for step in range(max_iter):
        j, low = _partner(decision, fall, diagonal, gram[i], diagonal[i], top, floor)
        if top - low <= tol:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(gram[i, j]), floor)
        t = (top - (fall[j] - decision[j])) / curvature
        if top - low > LAST_STEPS_TOLERANCES * tol:
            t *= RELAXATION
        above, below = _next_knot(u[i], knots[i]), _previous_knot(u[j], knots[j])
        t = min(t, above - u[i], u[j] - below)
        grown = above if t == above - u[i] else u[i] + t
        shrunk = below if t == u[j] - below else u[j] - t
        if grown == u[i] and shrunk == u[j]:  # t is below the rounding of u
            return step
        u[i], u[j] = grown, shrunk
        rise[i], fall[i] = gains(u[i], knots[i], slopes[i])
        rise[j], fall[j] = gains(u[j], knots[j], slopes[j])
        i, top = _move(decision, rise, gram[i], gram[j], t)
    return max_iter


@compiled()
def _move(decision, rise, row_i, row_j, t):
    """Add ``t (K_i - K_j)`` to ``Ku`` in place; return the row with the largest gain, and it."""
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
    """Return the row j that lowers the objective most together with i, and the smallest loss."""
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
def gains(u, knots, slopes):
    """Return minus the slopes of the cost to the right and to the left of u."""
    rise, fall = -np.inf, np.inf
    for s in range(slopes.shape[0]):
        if knots[s] <= u < knots[s + 1]:
            rise = -slopes[s]
        if knots[s] < u <= knots[s + 1]:
            fall = -slopes[s]
    return rise, fall


@compiled()
def _next_knot(u, knots):
    for knot in knots:
        if knot > u:
            return knot
    return u


@compiled()
def _previous_knot(u, knots):
    for knot in knots[::-1]:
        if knot < u:
            return knot
    return u


def combine(gram: NDArray, u: NDArray) -> NDArray:
    """Return ``gram @ u`` in float64, reading only the rows where u is not zero."""
    rows, out = np.flatnonzero(u), np.zeros(len(u))
    accumulate(gram, rows, u[rows], out)
    return out


@compiled()
def optimality(u, decision, knots, slopes):
    """Return b (mean over rows inside a piece, else the middle of its interval) and the violation.

    The violation is the largest gain minus the smallest loss, never negative.
    """
    total, inside = 0.0, 0
    top, low = -np.inf, np.inf
    for k in range(u.shape[0]):
        rise, fall = gains(u[k], knots[k], slopes[k])
        top, low = max(top, rise - decision[k]), min(low, fall - decision[k])
        if rise == fall:
            total += rise - decision[k]
            inside += 1
    # no row may grow, or none may shrink: every b on one side is a multiplier
    top, low = (top if top > -np.inf else low), (low if low < np.inf else top)
    bias = total / inside if inside else 0.5 * (top + low)
    return bias, max(top - low, 0.0)
