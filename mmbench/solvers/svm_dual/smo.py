"""Sequential minimal optimisation (SMO) for `PiecewiseQP`, the default solver of kernel machines.

    route                condition                                 cost
    SMO                  K or its rows are stored (`LazyGram`)     n kernel values per step
    SMO on working sets  K is computed by blocks (`KernelMatrix`)  kernel values of the working
                                                                   sets, and column i of K if u_i
                                                                   changes

A pairwise step adds t to the dual variable u_i and subtracts t from u_j. Row i has the largest
rate of decrease, row j the largest decrease for this i (Fan et al., JMLR 6, 2005, WSS 2).

A Newton step changes all u_i inside a linear piece, for Gram matrices of low rank or quickly
decreasing eigenvalues: without it, the RMM with the poly kernel on USPS takes 22 times as long.
With the Cholesky factor L of the Gram matrix of these rows and the gradient g, the direction is
``-L^-T p``, where p is the projection of ``L^-1 g`` orthogonal to ``L^-1 e`` (constant sum) and to
``L^-1 e_i`` for each u_i that has reached a knot; so a series of steps needs one factor.

A working set has the rows with u_i inside a linear piece, the rows with the largest violations, and
half of the last working set, since a row that has just reached a bound often leaves it again. Other
rows at a bound, such as most support vectors for a small C, are not needed. If too many rows are
inside a piece, only rows of the last set are kept (Joachims: Advances in Kernel Methods, 1999;
convergence: Lin, IEEE Trans. Neural Networks 12(6), 2001). A working set is complete if it has all
rows inside a piece and all rows that nearly violate; only then is it solved to the final tolerance.
The rounding error of a float32 update of ``Ku`` is proportional to the change of u, and a
recomputation in float64 removes it.

`solve_to_gap` decreases the relative gap, to which a row contributes its violation times the slope
of its loss, by a smaller KKT tolerance, then by the best factor of (w, b), then by slightly tighter
bounds on decisions, which leave room for that factor. Times: `benchmarks/peers.py`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas

from mmbench.allowance import time_is_up
from mmbench.compiled import compiled, compiled_inside
from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelMatrix, LazyGram, read_row
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution, gains, optimality

#: A series of Newton steps costs at least SERIES_OVERHEAD; the unit is the time in which a pairwise
#: step reads one kernel value. The time budget of Newton steps is the time of all pairwise steps so
#: far, minus the time of all earlier Newton steps. A series starts if the budget is at least
#: BUDGET_FACTOR times its cost, and ends if the budget is used up or if MOST_KNOTS_MET variables
#: reach a knot.
SERIES_OVERHEAD, BUDGET_FACTOR, MOST_KNOTS_MET = 2e5, 3, 200

#: Maximum number of rounds without progress, before rounding errors are assumed to be the cause.
PATIENCE = 20

#: Time of the pairwise steps that precede the first Newton steps, in the unit of SERIES_OVERHEAD.
NEWTON_BUDGET = BUDGET_FACTOR * SERIES_OVERHEAD

#: Number of rows per block in which `_move` selects row i, and `_partner` selects row j. A
#: vectorised loop tests whether a block contains a better row than all earlier blocks. Only blocks
#: that pass this test are searched by an argmax loop, which is not vectorised.
BLOCK_COLUMNS = 64

#: Length of a pairwise step, relative to the step to the minimum of the objective along the pair. A
#: step decreases the objective if its relative length is below 2. The length 1.5 was compared with
#: the length 1 on ten SVMs and on the relative margin machines (RMMs) for the same data (kernels
#: rbf, poly and linear, C from 0.1 to 1000): it needs 0.5 to 0.7 times as many steps on most
#: problems, and at most 1.2 times as many.
RELAXATION = 1.5

#: Number of rows of a working set if few dual variables are strictly inside a linear piece. At
#: least half of the rows of the next working set are new. A working set contains all rows inside a
#: linear piece if these are at most MOST_SET_ROWS rows with the new rows, or if its kernel block
#: has no more values than SET_ROWS / 2 rows of the kernel matrix: on 60,000 digits, this takes 0.6
#: of the CPU time.
SET_ROWS, MOST_SET_ROWS = 1024, 3000

#: Factors of the KKT tolerance that `solve_to_gap` tries in turn.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

Start = PiecewiseSolution | NDArray | None


@dataclass
class Descent:
    """State of pairwise steps and Newton steps on a `LazyGram`.

    The attribute `decision` is ``Ku + offset``, where `offset` is the contribution of rows outside
    the working set. `left` is the number of pairwise steps that may still be taken.
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
    route: str = "SMO"

    def run(self) -> None:
        """Take SMO steps until the violation of the KKT conditions is at most `tol`.

        SMO ends earlier after `left` steps or at the time limit.
        """
        problem, u, budget, refutations = self.problem, self.u, 0.0, 0
        knots, slopes = problem.knots, problem.slopes
        # for a pair of nearly equal rows, the computed curvature is a rounding error of kernel
        # values, so the curvature gets a lower bound
        floor = float(np.finfo(problem.gram.values.dtype).eps * self.diagonal.max())
        floor = floor if floor > 0 else 1e-12
        chunk = max(len(u) // 4, 250)  # steps between two checks of the time limit
        rise, fall = gains(u, knots, slopes)
        self.bias, self.violation = optimality(self.decision, rise, fall)
        while self.violation > self.tol and self.left > 0 and refutations < PATIENCE:
            asked = 0 if time_is_up(violation=self.violation) else min(chunk, self.left)
            done = descend(
                *(problem.gram.source, self.diagonal, u, self.decision, rise, fall, knots, slopes),
                *(self.tol, asked, floor),
            )
            self.left -= done
            budget += float(done * len(u))
            # since pairwise steps have not converged, Newton steps may take as much time as all
            # pairwise steps
            if 0 < done == asked:
                left = newton_steps(problem, u, self.decision, budget)
                if left < budget:
                    budget, (rise, fall) = left, gains(u, knots, slopes)
            self.bias, self.violation = optimality(self.decision, rise, fall)
            if self.violation <= self.tol or not self.left or not done:
                # the updated product ``Ku`` contains the rounding errors of all updates
                self.decision = self.offset + problem.gram.product(u)
                self.bias, self.violation = optimality(self.decision, rise, fall)
                refutations += 1
            if not done:
                break


def newton_steps(problem: PiecewiseQP, u: NDArray, decision: NDArray, budget: float) -> float:
    """Take a series of Newton steps if the time budget suffices; return the remaining budget.

    The dual variables `u` and the decisions `decision` (``Ku`` plus a fixed vector) are updated in
    place. The dual variables stay within their bounds, their sum is constant, and the objective
    does not increase. The unit of `budget` is explained at SERIES_OVERHEAD.
    """
    inside = (problem.knots[:, :-1] < u[:, None]) & (u[:, None] < problem.knots[:, 1:])
    rows, pieces = inside.nonzero()
    # cost, in the unit of `budget`, of the factorisation and of the Newton steps up to the first
    # knot
    cost = len(rows) ** 3 / 24 + len(rows) * len(u) + SERIES_OVERHEAD
    if len(rows) < 2 or BUDGET_FACTOR * cost > budget:
        return budget
    square = problem.gram.part(rows).astype(float)
    # The ridge makes a singular matrix positive definite, so that the matrix has a Cholesky factor.
    # Along the null space of a singular matrix, the objective is linear between knots, and its
    # minimum is at a knot. With a small ridge, a Newton step along the null space is very long, and
    # ends at the first knot.
    ridge = np.finfo(problem.gram.dtype).eps ** (2 / 3) * np.trace(square) / len(square)
    square[np.diag_indices_from(square)] += ridge
    low, high = problem.knots[rows, pieces], problem.knots[rows, pieces + 1]
    gradient = decision[rows] + problem.slopes[rows, pieces]
    longest = min(MOST_KNOTS_MET, len(rows) - 2, int(4 * (budget - cost) / len(rows) ** 2))
    before = u[rows]
    try:
        moved, met = _series(square, ridge, gradient, before, low, high, longest)
    except LinAlgError:
        return budget - cost
    # the rounding error of the sum of u is corrected at the dual variable furthest from its knots
    k = np.minimum(moved - low, high - moved).argmax()
    moved[k] = np.clip(moved[k] - (moved.sum() - before.sum()), low[k], high[k])
    problem.gram.add_columns(rows, moved - before, decision)
    u[rows] = moved
    return budget - cost - met * len(rows) ** 2 / 4


def _series(
    square: NDArray,
    ridge: float,
    gradient: NDArray,
    u: NDArray,
    low: NDArray,
    high: NDArray,
    most: int,
) -> tuple[NDArray, int]:
    """Take Newton steps to a minimum between knots, or until more than `most` knots are reached.

    Returns u and the number of variables that reached a knot; raises LinAlgError if `square`, the
    Gram matrix plus ``ridge * I``, is not positive definite.
    """
    # BLAS takes the transpose without a copy, as an upper triangle in column-major order
    upper = np.linalg.cholesky(square).T
    lower = partial(blas.dtrsv, upper, trans=1)
    free, fixed = np.ones(len(u)), np.ones(len(u))
    # the rows of `removed` are orthonormal, and `ahead` is orthogonal to all of them. The first row
    # keeps the sum of u constant, and each later row keeps one dual variable at a knot.
    removed = np.empty((most + 1, len(u)))
    for met in range(most + 1):
        removed[met] = _projected(removed[:met], lower(fixed))
        removed[met] /= np.linalg.norm(removed[met])
        ahead = _projected(removed[: met + 1], lower(gradient))
        direction = -free * blas.dtrsv(upper, ahead)
        change = square @ direction - ridge * direction
        curvature, descent = float(direction @ change), -float(direction @ gradient)
        knots, moving = np.where(direction > 0, high, low), direction != 0
        room = np.divide(knots - u, direction, out=np.full(len(u), np.inf), where=moving)
        first = int(room.argmin())
        between = curvature > 0 and descent < room[first] * curvature
        step = descent / curvature if between else room[first]
        if not descent > 0 or step == np.inf:
            return u, met
        u, gradient = np.clip(u + step * direction, low, high), gradient + step * change
        if between:
            return u, met
        u[first], free[first] = knots[first], 0.0
        fixed = np.zeros(len(u))
        fixed[first] = 1.0
    return u, most + 1


def _projected(removed: NDArray, x: NDArray) -> NDArray:
    """Project x onto the orthogonal complement of the orthonormal rows of `removed`."""
    for _ in range(2):  # the second projection removes rounding errors of the first projection
        x = x - (removed @ x) @ removed
    return x


@compiled()
def descend(source, diagonal, u, decision, rise, fall, knots, slopes, tol, max_iter, floor):
    """Take up to `max_iter` pairwise steps in place; return the number of steps.

    `source` contains the arguments of `read_row` except the row number. The gain ``rise[i] -
    decision[i]`` is the decrease of the objective per increase of the dual variable u_i. The
    difference ``fall[i] - decision[i]`` is the increase of the objective per decrease of u_i. At
    the optimum, the intercept b lies between the largest ``rise - decision`` and the smallest
    ``fall - decision``. The arrays `rise` and `fall` are returned by `gains`, and are updated in
    place. If the curvature of the objective along a pair (u_i, u_j) is less than `floor`, the
    curvature is replaced by `floor`.
    """
    values, columns, gamma, slots = source
    # for a literal 0, Numba would compile `read_row` for another type of argument
    row_i = read_row(values, columns, gamma, slots, np.int64(0))
    i, top = _move(decision, rise, row_i, row_i, 0.0)
    for step in range(max_iter):
        row_i = read_row(values, columns, gamma, slots, i)
        j, low = _partner(decision, fall, diagonal, row_i, diagonal[i], top, floor)
        if top - low <= tol:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(row_i[j]), floor)
        t = (top - (fall[j] - decision[j])) / curvature
        # without over-relaxation in the last steps, SMO ends at the exact minimum of a problem with
        # few variables
        if top - low > 2.0 * tol:
            t *= RELAXATION
        above, below = slopes_at(u, knots, slopes, i)[2], slopes_at(u, knots, slopes, j)[3]
        t = min(t, above - u[i], u[j] - below)
        grown = above if t == above - u[i] else u[i] + t
        shrunk = below if t == u[j] - below else u[j] - t
        if grown == u[i] and shrunk == u[j]:  # the step t is below rounding errors of u_i and u_j
            return step
        u[i], u[j] = grown, shrunk
        for k in (i, j):
            rise[k], fall[k] = slopes_at(u, knots, slopes, k)[:2]
        row_j = read_row(values, columns, gamma, slots, j)
        i, top = _move(decision, rise, row_i, row_j, t)
    return max_iter


@compiled_inside()
def _move(decision, rise, row_i, row_j, t):
    """Add ``t (row_i - row_j)`` to `decision`; return the row with the largest gain, and this gain.

    `row_i` and `row_j` are rows of the Gram matrix; the gain of row k is ``rise[k] - decision[k]``.
    """
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


@compiled_inside()
def _partner(decision, fall, diagonal, row_i, diagonal_i, top, floor):
    """Return the row j of the best pairwise step with row i, and the least ``fall - decision``."""
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


@compiled_inside()
def slopes_at(u, knots, slopes, i):
    """Return the negated slopes of the cost above and below u_i, and the next knots on both sides.

    If the dual variable u_i is at a bound, the slope outside the bound is infinite, and u_i is
    returned as the knot.
    """
    rise, fall, above, below = -np.inf, np.inf, u[i], u[i]
    for s in range(slopes.shape[1]):
        if knots[i, s] <= u[i] < knots[i, s + 1]:
            rise, above = -slopes[i, s], knots[i, s + 1]
        if knots[i, s] < u[i] <= knots[i, s + 1]:
            fall, below = -slopes[i, s], knots[i, s]
    return rise, fall, above, below


@dataclass
class WorkingSets(Descent):
    """State of SMO on working sets of rows.

    `rounding` is the expected rounding error of `decision`.
    """

    rounding: float = 0.0

    def __post_init__(self) -> None:
        self.matrix = self.problem.gram
        # a random order decides which of several rows with equal KKT violations are added
        self.order = np.random.RandomState(0).permutation(len(self.u))
        self.last = np.empty(0, dtype=int)
        self._start_counting()

    def _start_counting(self) -> None:
        self.best, self.values = np.inf, {"renewed": np.inf, "updated": np.inf}
        self.idle, self.idle_renewals = 0, 0

    def run(self) -> None:
        """Solve restricted problems until the violation of the KKT conditions is at most `tol`.

        SMO ends earlier if the maximum number of steps or the time limit is reached.
        """
        self.measure()
        while self.violation > self.tol or not self._accurate(self.rounding):
            spent = self.left <= 0 or time_is_up(violation=self.violation)
            if self.violation <= self._level() or self.idle > PATIENCE or spent:
                if spent and self._accurate(self.rounding):
                    break
                self.renew()
            elif self.idle_renewals > 3:
                if self.matrix.dtype == np.float64:
                    break
                self.matrix.to_double()
                self._start_counting()
            else:
                self.solve_set()

    def _accurate(self, rounding: float) -> bool:
        return rounding <= 1e-3 * self.tol

    def _level(self) -> float:
        """Return the KKT violation below which ``Ku`` must be recomputed in float64."""
        return max(self.tol, self.rounding)

    def measure(self) -> None:
        """Recompute the intercept b and the violation of the optimality conditions."""
        rise, fall = gains(self.u, self.problem.knots, self.problem.slopes)
        self.bias, self.violation = optimality(self.decision, rise, fall)

    def renew(self) -> None:
        """Recompute ``Ku`` in float64; count recomputations that do not decrease the objective."""
        self.decision, self.rounding = self.matrix.product(self.u), 0.0
        self.measure()
        self.idle_renewals = 0 if self._lower("renewed") else self.idle_renewals + 1
        self.idle, self.best = 0, self.violation

    def _lower(self, kind: str) -> bool:
        """Whether the objective is lower than in all earlier calls for products of this kind."""
        value = 0.5 * float(self.u @ self.decision) + self.problem.cost(self.u)
        lower = self.values[kind] - value > 1e-12 * abs(value)  # less may be a rounding error
        self.values[kind] = min(self.values[kind], value)
        return lower

    def solve_set(self) -> None:
        """Solve the restricted problem of a working set and update the decisions of all rows."""
        self.route = "SMO on working sets"
        rows, complete = self.working_set()
        knots, slopes = self.problem.knots[rows], self.problem.slopes[rows]
        part = PiecewiseQP(LazyGram.stored(self.matrix.part(rows)), knots, slopes)
        # an incomplete working set need not be solved accurately
        target = max(0.5 * self._level(), 0.0 if complete else 0.1 * self.violation)
        u, decision = self.u[rows], self.decision[rows]
        offset = decision - part.gram.product(u)
        steps = Descent(
            part, self.diagonal[rows], u.copy(), decision.copy(), target, self.left, offset
        )
        steps.run()
        change = steps.u - u
        moved = np.flatnonzero(change)
        self.u[rows], self.left = steps.u, steps.left
        # the rounding error of an update of ``Ku`` is proportional to the change of the dual
        # variables
        unit = 0.5 * float(np.finfo(self.matrix.dtype).eps * self.diagonal.max())
        rounding = float(np.hypot(self.rounding, unit * np.linalg.norm(change)))
        # if this rounding error is too large for the final KKT tolerance, ``Ku`` is recomputed, not
        # updated
        if complete and not self._accurate(rounding):
            self.renew()
            return
        self.matrix.add_columns(rows[moved], change[moved], self.decision)
        self.rounding = rounding
        self.measure()
        better = self._lower("updated") or self.violation < self.best
        self.idle = 0 if better else self.idle + 1
        if not len(moved):  # if no dual variable changes, the next working set is the same
            self.idle = PATIENCE + 1
        self.best = min(self.best, self.violation)

    def working_set(self) -> tuple[NDArray, bool]:
        """Return the next working set, and whether it is complete (see the module's docstring).

        If the rows with u_i strictly inside a linear piece are too many, they are included only if
        they were in the previous working set.
        """
        # violations of the optimality conditions for an increase and a decrease of each dual
        # variable; -inf if the dual variable is at a bound
        rise, fall = gains(self.u, self.problem.knots, self.problem.slopes)
        up, down = rise - self.decision, self.decision - fall
        middle = 0.5 * (up.max() - down.max())
        up, down = up - middle, down + middle
        inside, worst = rise == fall, np.maximum(up, down)
        size, kept = min(SET_ROWS, self.matrix.most_part_rows), np.flatnonzero(inside)
        most = max(MOST_SET_ROWS, math.isqrt(SET_ROWS // 2 * len(self.u)))
        whole = len(kept) + size // 2 <= min(most, self.matrix.most_part_rows)
        order = np.lexsort((-worst[self.last], ~inside[self.last]))
        kept = np.union1d(kept if whole else [], self.last[order[: size // 2]]).astype(int)
        new, near = max(size - len(kept), size // 2), worst > -self.violation
        near[kept] = False
        if whole and np.count_nonzero(near) <= new:
            return np.union1d(kept, np.flatnonzero(near)), True
        added = [
            self._largest(np.where(near & (side > 0), side, -np.inf), new // 2)
            for side in (up, down)
        ]
        self.last = np.union1d(kept, np.concatenate(added))
        return self.last, False

    def _largest(self, violation: NDArray, most: int) -> NDArray:
        """Return the rows with the largest entries of `violation`, at most `most` rows."""
        violation = violation[self.order]
        rows = np.flatnonzero(violation > -np.inf)
        if len(rows) > most:
            rows = rows[np.argpartition(-violation[rows], most - 1)[:most]]
        return self.order[rows]


def solve_smo(
    problem: PiecewiseQP, start: Start = None, tol: float = 1e-5, max_iter: int | None = None
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair of rows violates the KKT conditions by more than `tol`.

    `tol` is in units of decision values, like libsvm's `eps`. The starting point `start` need not
    be feasible. The default of `max_iter` is ``max(10**7, 100 n)`` steps for n rows, as in libsvm.
    The status of the solution is ``inaccurate`` if rounding errors prevent further steps. Raises
    ValueError if the Gram matrix or `start` has values that are not finite.
    """
    gram = problem.gram
    steps = replace(
        problem,
        gram=LazyGram.stored(gram) if isinstance(gram, np.ndarray) else gram,
        knots=np.ascontiguousarray(problem.knots, dtype=float),
        slopes=np.ascontiguousarray(problem.slopes, dtype=float),
    )
    diagonal = np.array(gram.diagonal(), dtype=float)  # loops read contiguous arrays faster
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    u, decision = _started(steps, start)
    allowed = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    route = WorkingSets if isinstance(gram, KernelMatrix) else Descent
    state = route(steps, diagonal, u, decision, tol, allowed)
    state.run()
    if state.violation <= tol:
        status = Status.OPTIMAL
    else:
        status = Status.INACCURATE if state.left > 0 else Status.ITERATION_LIMIT
    return problem.solution(
        *(state.u, state.decision, state.bias, allowed - state.left, status), route=state.route
    )


def _started(problem: PiecewiseQP, start: Start) -> tuple[NDArray, NDArray]:
    """Return feasible dual variables u near `start`, and the product ``Ku``.

    For a solution with primal weights w, ``Ku`` is recomputed, since the decision values ``Zw`` of
    the solution may differ from ``Ku``.
    """
    if start is None:
        return np.zeros(len(problem.gram)), np.zeros(len(problem.gram))
    given = start.u if isinstance(start, PiecewiseSolution) else start
    if not np.isfinite(given).all():
        raise ValueError("the initial dual variables are not finite; scale the data")
    u = problem.feasible(given)
    if isinstance(start, PiecewiseSolution) and start.weights is None and np.array_equal(u, given):
        return u, start.decision.copy()
    return u, problem.gram.product(u)


def compile_steps() -> None:
    """Compile the Numba functions of `Descent`, so that no measured time includes compilation."""
    u = np.array([0.5, 0.5, -0.5, -0.5])
    knots, slopes = np.sort(np.column_stack([0 * u, 2 * u]), axis=1), -np.sign(u)[:, None]
    for dtype in (np.float32, np.float64):
        problem = PiecewiseQP(LazyGram.stored(np.eye(4, dtype=dtype)), knots, slopes)
        decision = problem.gram.product(u)
        newton_steps(problem, u.copy(), decision.copy(), budget=1e12)
        Descent(problem, np.ones(4), u.copy(), decision, 1e-6, left=10).run()
        matrix = KernelMatrix(Kernel("rbf", gamma=1.0), np.eye(4), single=dtype is np.float32)
        matrix.add_columns(np.arange(4), u, matrix.product(u))


def solve_to_gap(
    problem: PiecewiseQP,
    tol: float,
    gap_tolerance: float,
    start: Start = None,
    solve: Callable[[PiecewiseQP, Start, float], PiecewiseSolution] = solve_smo,
    factors: Sequence[float] = TOLERANCE_FACTORS,
) -> PiecewiseSolution:
    """Solve with the KKT tolerance ``factor * tol`` for each factor until the duality gap is small.

    A small duality gap is a relative gap of at most `gap_tolerance`. The first of `factors` must be
    1. Returns the solution with the smallest relative gap, with the sum of the iterations of all
    attempts.
    """
    solution = best = solve(problem, start, tol)
    iterations = solution.iterations
    for factor in factors[1:]:
        exact = best.rounding <= gap_tolerance * max(abs(best.value), abs(best.bound))
        if best.gap <= gap_tolerance or solution.status is not Status.OPTIMAL or not exact:
            break
        solution = solve(problem, solution, factor * tol)
        iterations += solution.iterations
        # smaller tolerances are tried first, since more accurate dual variables may improve
        # predictions, whereas rescaling changes no prediction
        scaled = problem.rescaled(solution) if factor <= TOLERANCE_FACTORS[3] else solution
        best = min(best, solution, scaled, key=_rank)
    if best.gap > gap_tolerance:
        best = min(best, problem.rescaled(best), key=_rank)
    if best.gap > gap_tolerance and np.isinf(problem.knots).any():
        # the relative change of the optimal value is of the order of the reduction of the bounds
        solution = solve(problem.inward(1e-6), best, factors[-1] * tol)
        iterations += solution.iterations
        moved = problem.solution(
            solution.u, solution.decision, solution.bias, 0, solution.status, route=solution.route
        )
        best = min(best, problem.rescaled(moved), key=_rank)
    return best if best.iterations == iterations else replace(best, iterations=iterations)


def _rank(solution: PiecewiseSolution) -> tuple[float, float]:
    # with a dual objective of 0, every relative gap is 1, and the largest bound is the best
    return solution.gap, -solution.bound
