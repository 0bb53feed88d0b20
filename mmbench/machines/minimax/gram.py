"""The soft-margin M4 ("margin", see `m4`) on a stored kernel matrix of full or nearly full rank.

With ``w = F'c``, K = F F', ``S = 2 Sx + 2 Sy`` and the gradient ``F'g`` of sx + sy at w, each
iteration solves

    min over v, b   g'F (v - w) + 1/(2 s) (v - w)'S(v - w) + C sum_i max(0, 1 - y_i (v'z_i + b))

an SVM with the kernel matrix ``s F S^-1 F'`` and multipliers u, on a working set that grows by the
largest margin violations. Then ``v = w + s S^-1 F'(u - g)``, and w is optimal if v = w. One
Cholesky factor gives all products with S^-1 (`GramSpread`). With the step size s, the harmonic mean
of ``2 sx`` and ``2 sy``, oscillations do not grow. On multiples of w, sx + sy is linear and its
approximation quadratic: the logarithm of sx + sy converges linearly, and a secant step chooses the
multiple of v with which the next iteration begins. The lower bound is the sum of the multipliers u,
divided by an upper bound on the lengths of vectors p and q with ``F'u = Sx^{1/2} p + Sy^{1/2} q``.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import no_time_for, time_is_up
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.margin_problem import MarginProblem, MarginSolution, along
from mmbench.machines.minimax.spread import Direction, GramSpread
from mmbench.solvers.svm_dual.qp import PiecewiseQP
from mmbench.solvers.svm_dual.smo import solve_smo

#: The initial working set contains at least FIRST_ROWS rows, and at least the fraction
#: FIRST_ROWS_SHARE of all rows.
FIRST_ROWS_SHARE, FIRST_ROWS = 1 / 6, 600

#: Maximum number of rows added to the working set per iteration: the larger of ADDED_ROWS and
#: ADDED_ROWS_SHARE times the number of rows in the working set.
ADDED_ROWS_SHARE, ADDED_ROWS = 0.5, 100

#: A row is added to the working set if it violates the margin by more than MARGIN_TOLERANCE. The
#: SVM on the working set has the KKT tolerance MARGIN_TOLERANCE, or MARGIN_TOLERANCE_FACTOR times
#: the square of a tolerance above 3e-6, as in a grid search.
MARGIN_TOLERANCE, MARGIN_TOLERANCE_FACTOR = 1e-9, 100

#: The KKT tolerance of the SVM is at least the square of the gap so far, and at most
#: FIRST_TOLERANCE if this is above the final tolerance: one half of the time with a large C.
FIRST_TOLERANCE = 1e-6

#: Maximum number of SMO steps per row of the working set.
STEPS_PER_ROW = 200

#: Relative increase of the diagonal of the SVM's kernel matrix, for each data type of the Cholesky
#: factor. Without an increase of the diagonal, rounding errors could make the kernel matrix
#: indefinite.
DIAGONAL_SHIFT = {np.float32: 1e-6, np.float64: 1e-13}

MAX_ROUNDS = 200

#: The rate of the secant steps is at most MOST_RATE, and is computed if ``log(sx + sy)`` changes by
#: more than LEAST_CHANGE between two iterations; smaller changes are within the SVM's tolerance.
MOST_RATE, LEAST_CHANGE = 0.7, 1e-3

#: The iteration ends if the relative gap is not halved in STALLED_ROUNDS iterations, because of
#: rounding errors with a small ridge or a large C. Diagonal coordinates then take less time.
STALLED_ROUNDS = 10


def solve_gram(
    spread: GramSpread, mpm: Direction, penalties: Sequence[float], tol: float
) -> list[tuple[NDArray, MarginProblem, MarginSolution]]:
    """Train one soft-margin M4 per value of C, in ascending order, to the relative gap `tol`.

    The first iteration starts from the MPM, later ones from the previous C. For each C, three
    objects are returned: the coefficients c of ``w = F'c``, the M4 problem restricted to the
    multiples of w, and its solution, whose `bound` holds for all directions.
    """
    state: _Iteration | None = None
    out = []
    for C in penalties:
        if state is None or state.best.is_trivial:
            whole = state is not None and len(state.working.rows) == len(spread.y)
            working = state.working if state is not None and whole else None
            state = _Iteration(spread, C, 2.0 * mpm.w, tol, working)
        else:
            state.change_penalty(C)
        gaps: list[float] = []
        for _ in range(MAX_ROUNDS):
            state.step()
            gaps.append(state.best.gap)
            stalled = len(gaps) > STALLED_ROUNDS and gaps[-1] > 0.5 * gaps[-1 - STALLED_ROUNDS]
            # decision values may overflow if kernel values differ by many orders of magnitude
            ended = stalled or not np.isfinite(state.decision).all()
            if ended or state.best.closed(tol) or time_is_up(iterations=len(gaps), gap=gaps[-1]):
                break
        out.append((state.best_c, state.best_line, replace(state.best, route="gram")))
    return out


class _WorkingSet:
    """A working set of rows, and the kernel matrix ``F S^-1 F'`` of these rows."""

    def __init__(self, spread: GramSpread, rows: NDArray):
        self.spread, self.rows = spread, np.zeros(0, dtype=int)
        self.columns, self.kernel = np.zeros((len(spread.y), 0), spread.dtype), np.zeros((0, 0))
        self.add(rows)

    def add(self, rows: NDArray) -> None:
        columns, old, known = self.spread.columns(rows), self.rows, len(self.rows)
        kernel = np.empty((known + len(rows),) * 2)
        kernel[:known, :known] = self.kernel
        kernel[:known, known:] = self.spread.block(old, rows, self.columns.T @ columns)
        kernel[known:, :known] = kernel[:known, known:].T
        kernel[known:, known:] = self.spread.block(rows, rows, columns.T @ columns)
        new = np.arange(known, len(kernel))
        kernel[new, new] *= 1.0 + DIAGONAL_SHIFT[self.spread.dtype]
        self.kernel = kernel  # releases the old matrix before the columns are copied
        self.rows, self.columns = np.append(old, rows), np.hstack([self.columns, columns])

    def train(self, offset: NDArray, y: NDArray, C: float, v: NDArray, tol: float) -> NDArray:
        """Return the multipliers v of an SVM with decision values ``kernel v + offset + b``.

        The argument `v` contains the initial multipliers.
        """
        ends = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1)
        dual = PiecewiseQP(self.kernel, ends, (offset - y)[:, None])
        return solve_smo(dual, v, tol, STEPS_PER_ROW * len(v)).u


class _Iteration:
    """State of the fixed-point iteration: w, multipliers, working set, and the best solution."""

    def __init__(
        self,
        spread: GramSpread,
        C: float,
        c: NDArray,
        tol: float,
        working: _WorkingSet | None = None,
    ):
        self.spread, self.y, self.C = spread, spread.y, C
        self.tol = max(MARGIN_TOLERANCE, MARGIN_TOLERANCE_FACTOR * tol**2)
        self.c, self.decision = c, spread.gram @ c
        self.u = np.zeros(len(self.y))
        self.rate: float | None = None
        self.sizes: tuple[float, float] | None = None
        self.working = self._first_rows() if working is None else working
        self._start()

    def _first_rows(self) -> _WorkingSet:
        y, spread = self.y, self.spread
        margins = y * (self.decision + best_bias(self.decision, y))
        order = np.argsort(margins, kind="stable")
        # The optimal multipliers are at most C and sum to the optimal value of the M4, so that at
        # least (optimal value / C) rows have one. With fewer rows in the working set, the SVM may
        # have the solution w = 0, and many more iterations are needed.
        line = self._along(spread.spreads(self.c, self.decision), self.decision)
        value = line.value(*line.tuned(np.ones(1)))
        first = order[: max(FIRST_ROWS, int(FIRST_ROWS_SHARE * len(y)), int(value / self.C))]
        if len(set(y[first])) < 2:  # the SVM needs rows of both classes
            other = order[y[order] != y[first[0]]]
            first = np.append(first, other[: len(first)])
        return _WorkingSet(spread, np.sort(first))

    def change_penalty(self, C: float) -> None:
        """Change C, and multiply the multipliers by the ratio of the new C to the old C."""
        # the division comes first, so that multipliers equal to the old C become exactly the new C
        self.u, self.C = self.u / self.C * C, C
        self._start()

    def _start(self) -> None:
        self.rounds, self.sizes = 0, None
        self.spreads = self.spread.spreads(self.c, self.decision)
        self.best_c, self.best_line = self.c, self._along(self.spreads, self.decision)
        self.best = self.best_line.trivial_solution()
        self._update_best()

    def step(self) -> None:
        """Train the SVM on the working set, then update w, the working set and the bounds."""
        spread, working, y = self.spread, self.working, self.y
        rows = working.rows
        scale = 4.0 / float((1.0 / self.spreads).sum())
        half = spread.half(self.values)
        offset = self.decision[rows] - scale * (working.kernel @ self.u[rows])
        offset += scale * (self.values[rows] - working.columns.T @ half) / spread.damping
        u = np.zeros_like(self.u)
        start = scale * self.u[rows]
        tol = max(self.tol, min(FIRST_TOLERANCE, self.best.gap**2))
        u[rows] = working.train(offset, y[rows], scale * self.C, start, tol) / scale
        step = u - self.u
        half += working.columns @ step[rows].astype(spread.dtype)
        c = self.c + scale * spread.solution(self.residual + step, half)
        decision = spread.gram @ c
        self.rounds += 1
        factor = self._factor(spread.spreads(c, decision), decision)
        if factor > 0:
            c, decision = factor * c, factor * decision
        self._add_violated(decision, u)
        self.c, self.decision, self.u = c, decision, y * balanced(y * u, y, self.C)
        self.spreads = spread.spreads(c, decision)
        self._update_best()

    def _factor(self, spreads: NDArray, decision: NDArray) -> float:
        """Return the multiple of v with which the next iteration begins, for the `spreads` of v.

        The next iteration is expected to keep ``log(sx + sy)`` of this multiple, by a secant step:
        the logarithm at v is nearly linear in the logarithm at w. Until the rate is known, the
        multiple is optimal for the M4.
        """
        if not (spreads > 0).all():
            return 0.0
        before, after = np.log(self.spreads.sum()), np.log(spreads.sum())
        if self.sizes is not None and abs(before - self.sizes[0]) > LEAST_CHANGE:
            rate = (after - self.sizes[1]) / (before - self.sizes[0])
            self.rate = min(max(rate, 0.0), MOST_RATE)
        self.sizes = before, after
        if self.rate is None:
            return float(self._along(spreads, decision).tuned(np.ones(1))[0][0])
        return float(np.exp((after - before) * self.rate / (1.0 - self.rate)))

    def _along(self, spreads: NDArray, decision: NDArray) -> MarginProblem:
        return along(decision, self.y, spreads, self.C)

    def _add_violated(self, decision: NDArray, u: NDArray) -> None:
        """Add the rows with the largest margin violations to the working set."""
        y, rows = self.y, self.working.rows
        size = np.abs(u)
        free = (size > 0) & (size < self.C)
        b = float(np.mean((y - decision)[free])) if free.any() else best_bias(decision, y)
        margins = y * (decision + b)
        margins[rows] = np.inf
        violated = np.flatnonzero(margins < 1.0 - self.tol)
        most = max(ADDED_ROWS, int(ADDED_ROWS_SHARE * len(rows)))
        added = min(most, len(violated))
        operations = len(y) * added * (0.5 * len(y) + len(rows) + added)
        if added and not no_time_for(operations * self.working.columns.itemsize / 8):
            self.working.add(violated[np.argsort(margins[violated], kind="stable")[:most]])

    def _update_best(self) -> None:
        """Update the best solution from the current w, and the lower bound from the multipliers u.

        For the lower bound, F'u is split into a multiple of the gradient of sx + sy and a residual.
        """
        spread, a = self.spread, np.abs(self.u)
        line = self._along(self.spreads, self.decision)
        # the gradient of sx + sy is ``Sx^{1/2} p + Sy^{1/2} q`` with unit vectors p and q
        gradient = spread.gradient(self.c, self.decision, self.spreads)
        self.residual = self.u - gradient
        self.values = spread.gram @ self.residual
        factor, b = line.tuned(np.ones(1))
        value = line.value(factor, b)
        share, residual, values = 1.0, self.residual, self.values
        # if the weights w tend to zero, F'u is close to a multiple of the gradient, with a factor
        # below 1
        if not self.u.any() or value >= line.trivial[0]:
            share = max(0.0, float(self.u @ self.decision) / float(self.spreads.sum()))
            residual = self.u - share * gradient
            values = spread.gram @ residual
        shares = share / self.spreads
        length = spread.dual_length(self.c, self.decision, shares, residual, values)
        reach = 1.0 / (min(length, share + spread.residual_length(residual, values)) + 1e-300)
        room = self.C / max(float(a.max(initial=0.0)), 1e-300)
        bound = float(a.sum()) * min(reach, max(1.0, room))
        if value < self.best.value:
            self.best_c, self.best_line = self.c, line
        self.best = self.best.better(line.certified(factor, b, a, bound, self.rounds))
