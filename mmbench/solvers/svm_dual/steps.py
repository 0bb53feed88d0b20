"""Newton steps among the rows inside a piece: what pairwise steps are worst at.

Where the Gram matrix has low rank (a linear kernel and a large C) or its spectrum falls fast, pairs
need millions of tiny steps to settle a few dozen rows. While those stay inside their pieces the
problem is quadratic with one equation, solved by one factorisation ``K = L L'``. A row that meets
its knot stays there: the next direction is then sought among the others, for which the directions
``L^-1 e_i`` of the rows at a knot are removed from ``L^-1 g``, g being the gradient. One
factorisation thus serves a series of steps, whose end most often is a minimum between knots.

Pairwise steps for a `PiecewiseQP`, compiled: what `solve_smo` is made of.

A step moves ``u_i += t`` and ``u_j -= t`` beyond the minimum along it or to the next knot, i being
the row that gains most by growing, j the one that then lowers the objective most (Fan, Chen and Lin
2005, WSS 2). Both are found while K's row is read, in blocks that stay in the cache.

Rounds of pairwise steps and Newton steps on a stored matrix.

Most rows rest on a knot that they will not leave (Joachims 1999, shrinking). Rounds of steps
therefore go on among the other rows, on a copy of their part of K that stays in the cache; the
optimality conditions are those of all rows, on K itself.

References
----------
T. Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.kernels.matrix import accumulate, submatrix
from mmbench.solvers.svm_dual.qp import PiecewiseQP

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


#: Columns looked at together. A block is scanned for its best row only if a vectorised test says
#: that it holds a better one: an argmax loop would not be vectorised.
BLOCK_COLUMNS = 64

#: Length of a step, in units of that to the minimum along the pair: successive over-relaxation. Any
#: below 2 lowers the objective. 1.5 took 0.5 to 0.7 times the steps of 1 on most of ten SVMs and
#: their RMMs (rbf, poly, linear; C from 0.1 to 1000), at worst 1.2 times. The last steps, from this
#: multiple of the tolerance on, go to the minimum, so that few variables come to it exactly.
RELAXATION, LAST_STEPS_TOLERANCES = 1.5, 2.0


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


#: Pairwise steps come in chunks of as many as the part has rows, at least so many; of a quarter of
#: that among all rows, so that a part is found early. Between chunks Ctrl-C is heard and Newton
#: steps are taken; after so many chunks the rows of the part are chosen anew.
LEAST_CHUNK_STEPS, CHUNKS_PER_PART = 1000, 4

#: A part is cut out if it has at most this share of the rows, and once steps have read this many
#: kernel values for each that it holds: a short training is over before a copy would pay.
LARGEST_PART_SHARE, READS_PER_PART_VALUE = 0.8, 0.5

#: Rows at a knot join a part if they violate the optimality conditions at some b in this middle
#: share of the interval that is left for b.
MIDDLE_SHARE = 0.25

#: A part is solved to this share of the violation of all rows, or of `tol`, if that is more.
PART_VIOLATION_SHARE, PART_TOLERANCE_SHARE = 0.05, 0.9

#: From this `tol` on a part is held in float32. What that rounds concerns the steps of one round
#: only, after which ``Ku`` follows from K itself.
SINGLE_PRECISION_TOLERANCE = 1e-4

#: Rounds on parts that may go by without a smaller violation; then come steps among all rows.
IDLE_ROUNDS = 3

#: Times that ``Ku`` computed afresh may refute a solution: the violation is then one of rounding.
MOST_REFUTATIONS = 20


@dataclass
class Descent:
    """Steps on a stored matrix: where they stand, u and ``Ku`` of all rows, and what may be spent.

    `left` counts steps, `work` the kernel values read since a part was last cut out, `budget` those
    that Newton steps may still cost. `refutations` counts the renewals of ``Ku`` that brought back
    a violation above the tolerance. `offset` is what other rows add to ``Ku``.
    """

    problem: PiecewiseQP
    diagonal: NDArray
    u: NDArray
    decision: NDArray
    tol: float
    left: int
    bias: float = 0.0
    violation: float = np.inf
    best: float = np.inf
    patience: int = IDLE_ROUNDS
    work: float = 0.0
    budget: float = 0.0
    refutations: int = 0
    store: NDArray | None = None
    offset: NDArray | float = 0.0

    def run(self) -> None:
        """Go on until no pair violates the optimality conditions, or no step or time is left."""
        self.measure()
        while self.violation > self.tol and self.left > 0 and self.refutations < MOST_REFUTATIONS:
            if time_is_up():
                self.measure(afresh=True)
                break
            rows = self.part()
            if rows is not None:
                self.solve_part(rows)
            elif not self.step_among_all():
                break

    def measure(self, afresh: bool = False) -> None:
        """Set b and the violation; ``Ku``, the sum of all its changes, is renewed before an end."""
        if afresh:
            self.decision = self.offset + combine(self.problem.values, self.u)
        knots, slopes = self.problem.knots, self.problem.slopes
        self.bias, self.violation = optimality(self.u, self.decision, knots, slopes)
        solved = self.violation <= self.tol
        if not afresh and self.work and (solved or self.left <= 0):
            self.measure(afresh=True)
            self.refutations += solved and self.violation > self.tol

    def step_among_all(self) -> bool:
        """Take a chunk of steps among all rows; return whether there was one to take."""
        chunk = min(max(len(self.u), LEAST_CHUNK_STEPS) // CHUNKS_PER_PART, self.left)
        done = self._chunk(self.problem, self.diagonal, self.u, self.decision, self.tol, chunk)
        self.measure(afresh=done == 0)
        return done > 0 or self.violation <= self.tol

    def part(self) -> NDArray | None:
        """Return the rows to go on with, None for all."""
        if not self.patience:
            return None
        knots, slopes = self.problem.knots, self.problem.slopes
        rows = movable(self.u, self.decision, knots, slopes, MIDDLE_SHARE)
        small = len(rows) <= LARGEST_PART_SHARE * len(self.u)
        worth = small and READS_PER_PART_VALUE * len(rows) ** 2 <= self.work
        return rows if worth and len(rows) > 1 else None

    def solve_part(self, rows: NDArray) -> None:
        """Take some chunks of steps among some rows, fewer if they are solved before."""
        part = PiecewiseQP(self._cut(rows), self.problem.knots[rows], self.problem.slopes[rows])
        diagonal, u, decision = self.diagonal[rows], self.u[rows], self.decision[rows]
        target = max(PART_TOLERANCE_SHARE * self.tol, PART_VIOLATION_SHARE * self.violation)
        self.work = 0.0
        for _ in range(CHUNKS_PER_PART):
            chunk = min(max(len(rows), LEAST_CHUNK_STEPS), self.left)
            if self._chunk(part, diagonal, u, decision, target, chunk) < chunk:
                break
        change = np.zeros(len(self.u))
        change[rows] = u - self.u[rows]
        self.u[rows] = u
        self.decision += combine(self.problem.values, change)
        self.measure()
        self.patience = IDLE_ROUNDS if self.violation < self.best else self.patience - 1
        self.best = min(self.best, self.violation)

    def _chunk(
        self,
        problem: PiecewiseQP,
        diagonal: NDArray,
        u: NDArray,
        decision: NDArray,
        tol: float,
        chunk: int,
    ) -> int:
        """Take up to `chunk` steps in place, and Newton steps if they are not enough."""
        arguments = diagonal, u, decision, problem.knots, problem.slopes, tol, chunk
        done = descend(problem.gram, *arguments)
        self.left -= done
        self.work += float(done * len(u))
        self.budget += float(done * len(u))
        if done == chunk:  # not there yet: Newton steps may cost as much as these steps did
            self.budget = newton_steps(problem, u, decision, self.budget)
        return done

    def _cut(self, rows: NDArray) -> NDArray:
        """Return the Gram matrix of some rows, in memory that every part of this solution uses."""
        gram = self.problem.gram
        dtype = np.dtype(np.float32 if self.tol >= SINGLE_PRECISION_TOLERANCE else gram.dtype)
        store = self.store
        if store is None or store.size < len(rows) ** 2 or store.dtype != dtype:
            largest = max(len(rows), int(LARGEST_PART_SHARE * len(self.u)))
            store = self.store = None  # the old goes before the new comes
            store = self.store = np.empty(largest**2, dtype)  # taken as it is written
        out = store[: len(rows) ** 2].reshape(len(rows), len(rows))
        _copy_square(gram, rows, out)
        return out


@compiled()
def _copy_square(gram, rows, out):
    for i in range(rows.shape[0]):
        row, to = gram[rows[i]], out[i]
        for k in range(rows.shape[0]):
            to[k] = row[np.uintp(rows[k])]  # unsigned: no test for negative numbers


def combine(gram: NDArray, u: NDArray) -> NDArray:
    """Return ``gram @ u`` in float64, reading only the rows where u is not zero."""
    rows, out = np.flatnonzero(u), np.zeros(len(u))
    accumulate(gram, rows, u[rows], out)
    return out


@compiled()
def movable(u, decision, knots, slopes, near):
    """Return the rows inside a piece, and those at a knot that may leave it.

    These are the ones that would gain by it at some b in the middle `near` of what is left for b.
    """
    n = u.shape[0]
    rise, fall = np.empty(n), np.empty(n)
    top, low = -np.inf, np.inf
    for k in range(n):
        rise[k], fall[k] = gains(u[k], knots[k], slopes[k])
        rise[k] -= decision[k]
        fall[k] -= decision[k]
        top, low = max(top, rise[k]), min(low, fall[k])
    middle, reach = 0.5 * (top + low), 0.5 * near * (top - low)
    inside = rise == fall
    return np.flatnonzero(inside | (rise >= middle - reach) | (fall <= middle + reach))


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
