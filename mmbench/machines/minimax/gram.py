"""The soft M4 over a whole kernel matrix, for kernels of (nearly) full rank.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     w = F'c,  K = F F'

One factor of ``S = Sx/theta + Sy/(1 - theta)`` at ``theta = 1/2`` serves every C. With the gradient
``F'g`` of sx + sy at w, a round solves

    min over v, b   g'F (v - w) + 1/(2 s) (v - w)'S(v - w) + C sum_i max(0, 1 - y_i (v'z_i + b))

an SVM with the kernel ``s F S^-1 F'``, whose multipliers u give ``v = w + s S^-1 F'(u - g)``. Its
fixed points are the solutions of the M4, ``F'u = F'g``. With s the harmonic mean of sx/theta and
sy/(1 - theta) no direction is stretched beyond its mirror image. A round ends at the best multiple
of v, as the model curves along w, where sx + sy is linear. Between rounds whose SVMs have the same
free rows, Anderson acceleration converges like conjugate gradients; a combination that raises the
objective is dropped.

The SVM is restricted to a working set, to which rows that violate their margin are added until
there are none; all other multipliers are zero. Every round gives an upper and a lower bound of the
optimum. Both are computed from K itself, so that an inexact factor does not affect them.

References
----------
H. Walker, P. Ni: Anderson acceleration for fixed-point iterations. SIAM J. Numerical Analysis 49,
2011.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from mmbench.allowance import time_is_up
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.problem import MarginProblem, MarginSolution, along
from mmbench.machines.minimax.spread import Direction, GramSpread
from mmbench.solvers.svm_dual.active_set import settle_by
from mmbench.solvers.svm_dual.qp import PiecewiseQP
from mmbench.solvers.svm_dual.smo import solve_smo

#: Size of the first working set, as a share of the rows, and at least.
FIRST_ROWS_SHARE, FIRST_ROWS = 1 / 6, 600

#: Largest number of rows added per round, as a share of the working set, and at least.
ADDED_ROWS_SHARE, ADDED_ROWS = 0.5, 100

#: Rows are added if they violate their margin by more than this.
MARGIN_TOLERANCE = 1e-9

#: Number of rounds that Anderson acceleration combines, and the growth of the residual over its
#: minimum at which it is restarted.
ANDERSON_DEPTH, RESTART_RATIO = 8, 3.0

#: Tolerance of the pairwise steps that identify the free rows, in units of the decision values, and
#: their largest number per row.
SMO_TOLERANCE, SMO_STEPS_PER_ROW = 1e-4, 200

#: Relative shift of the diagonal that makes the kernel of the working set positive definite.
DIAGONAL_SHIFTS = {np.float32: 1e-6, np.float64: 1e-13}

MAX_ROUNDS = 200


def solve_gram(
    spread: GramSpread, mpm: Direction, penalties: Sequence[float], tol: float
) -> list[tuple[NDArray, MarginProblem, MarginSolution]]:
    """Minimise the objective at ascending C, each from the solution before it.

    The first starts from the MPM; `tol` is the relative gap. Returns the c of a direction, the
    problem along it, and the best multiple, whose bound holds for the whole problem.
    """
    state, out = None, []
    for C in penalties:
        if state is None or state.best.is_trivial:
            state = _Iteration(spread, C, 2.0 * mpm.w)
        else:
            state.change_penalty(C)
        for _ in range(MAX_ROUNDS):
            state.step()
            if state.best.closed(tol) or time_is_up():
                break
        out.append((state.best_c, state.best_line, replace(state.best, route="gram")))
    return out


class _WorkingSet:
    """The kernel ``F S^-1 F'`` between the rows of the working set, and SVMs over it."""

    def __init__(self, spread: GramSpread, rows: NDArray):
        self.spread, self.rows = spread, rows
        self.columns = spread.columns(rows)
        self.kernel = spread.block(rows, rows, self.columns.T @ self.columns)
        self._regularize(0)

    def add(self, rows: NDArray) -> None:
        columns, old, known = self.spread.columns(rows), self.rows, len(self.rows)
        kernel = np.empty((known + len(rows),) * 2)
        kernel[:known, :known] = self.kernel
        kernel[:known, known:] = self.spread.block(old, rows, self.columns.T @ columns)
        kernel[known:, :known] = kernel[:known, known:].T
        kernel[known:, known:] = self.spread.block(rows, rows, columns.T @ columns)
        self.kernel = kernel  # frees the old kernel before longer columns are made
        self.rows, self.columns = np.append(old, rows), np.hstack([self.columns, columns])
        self._regularize(known)

    def _regularize(self, known: int) -> None:
        new = np.arange(known, len(self.rows))
        self.kernel[new, new] *= 1.0 + DIAGONAL_SHIFTS[self.spread.dtype]
        self._free, self._factor = np.zeros(0, dtype=int), np.zeros((0, 0))

    def train(self, offset: NDArray, y: NDArray, C: float, v: NDArray) -> NDArray:
        """Return the multipliers of the SVM with decisions ``kernel v + offset + b``."""

        def settled(v: NDArray, max_rounds: int) -> NDArray | None:
            def decision(v: NDArray) -> NDArray:
                return self.kernel @ v + offset

            return settle_by(self._free_multipliers, decision, y, C, v, max_rounds)

        found = settled(v, 8)
        if found is not None:
            return found
        ends, slopes = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1), (offset - y)[:, None]
        most = SMO_STEPS_PER_ROW * len(v)
        rough = PiecewiseQP(self.kernel.astype(np.float32), ends, slopes)
        v = solve_smo(rough, v, SMO_TOLERANCE, most).u
        found = settled(v, 15)
        if found is not None:
            return found
        return solve_smo(PiecewiseQP(self.kernel, ends, slopes), v, MARGIN_TOLERANCE, most).u

    def _free_multipliers(
        self, free: NDArray, pull: NDArray, total: float
    ) -> tuple[NDArray, float] | None:
        """Return the free multipliers and b; the factor of the last free rows is reused."""
        if not np.array_equal(free, self._free):
            self._free, self._factor = np.zeros(0, dtype=int), np.zeros((0, 0))  # frees memory
            try:
                square = self.kernel[np.ix_(free, free)].T
                self._factor = cholesky(square, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                return None
            self._free = free
        sides = np.column_stack([pull, np.ones(len(pull))])
        own, unit = cho_solve((self._factor, True), sides, check_finite=False).T
        b = float((own.sum() - total) / unit.sum())
        return own - b * unit, b


class _Iteration:
    """The current w and multipliers, the working set, and the best solution so far."""

    def __init__(self, spread: GramSpread, C: float, c: NDArray):
        self.spread, self.y, self.C = spread, spread.y, C
        self.c, self.decision = c, spread.gram @ c
        self.u = np.zeros(len(self.y))
        y = self.y
        margins = y * (self.decision + best_bias(self.decision, y))
        order = np.argsort(margins, kind="stable")
        # The multipliers of a solution sum to its value, and none exceeds C. With fewer rows in
        # the working set w = 0 may be the optimum of the restricted problem, from where w grows
        # slowly.
        value = self._best_multiple(c, self.decision)[1]
        first = order[: max(FIRST_ROWS, int(FIRST_ROWS_SHARE * len(y)), int(value / C))]
        if len(set(y[first])) < 2:  # with one class alone w = 0 is optimal
            other = order[y[order] != y[first[0]]]
            first = np.append(first, other[: len(first)])
        self.working = _WorkingSet(spread, np.sort(first))
        self._start()

    def change_penalty(self, C: float) -> None:
        """Continue at another C, with multipliers in the same proportion to it."""
        self.u, self.C = self.u / self.C * C, C  # multipliers at C stay at C
        self._start()

    def _start(self) -> None:
        self.rounds, self.history = 0, _AndersonHistory()
        self.best_c = self.c
        self.best_line = self._along(self.c, self.decision)
        self.best = self.best_line.trivial_solution()
        self._update_best()

    def step(self) -> None:
        """Perform one outer iteration."""
        spread, working, y = self.spread, self.working, self.y
        rows = working.rows
        scale = 4.0 / float((1.0 / self.spreads).sum())
        half = spread.half(self.values)
        offset = self.decision[rows] - scale * (working.kernel @ self.u[rows])
        offset += scale * (self.values[rows] - working.columns.T @ half) / spread.damping
        u = np.zeros_like(self.u)
        u[rows] = working.train(offset, y[rows], scale * self.C, scale * self.u[rows]) / scale
        step = u - self.u
        half += working.columns @ step[rows].astype(spread.dtype)
        c = self.c + scale * spread.solution(self.residual + step, half)
        decision = spread.gram @ c
        self.rounds += 1
        factor, plain = self._best_multiple(c, decision)
        if factor > 0:
            c, decision = factor * c, factor * decision
        if self._add_violated(decision, u):
            self.history = _AndersonHistory()
        else:
            change, image = c - self.c, decision - self.decision
            weighed = spread.weights * spread.centred(image) + spread.damping * change
            combined = self.history.next((weighed, image), (c, decision, u))
            if self._best_multiple(*combined[:2])[1] <= plain:
                c, decision, u = combined
            else:
                self.history = _AndersonHistory()
        self.c, self.decision, self.u = c, decision, y * balanced(y * u, y, self.C)
        self._update_best()

    def _best_multiple(self, c: NDArray, decision: NDArray) -> tuple[float, float]:
        """Return the multiple of w with the smallest value, and this value."""
        line = self._along(c, decision)
        factor, b = line.tuned(np.ones(1))
        return float(factor[0]), line.value(factor, b)

    def _along(self, c: NDArray, decision: NDArray) -> MarginProblem:
        return along(decision, self.y, self.spread.spreads(c, decision), self.C)

    def _add_violated(self, decision: NDArray, u: NDArray) -> bool:
        """Add the rows that violate their margin most; return whether there were any."""
        y, rows = self.y, self.working.rows
        size = np.abs(u)
        free = (size > 0) & (size < self.C)
        b = float(np.mean((y - decision)[free])) if free.any() else best_bias(decision, y)
        margins = y * (decision + b)
        margins[rows] = np.inf
        violated = np.flatnonzero(margins < 1.0 - MARGIN_TOLERANCE)
        if not len(violated):
            return False
        most = max(ADDED_ROWS, int(ADDED_ROWS_SHARE * len(rows)))
        self.working.add(violated[np.argsort(margins[violated], kind="stable")[:most]])
        return True

    def _update_best(self) -> None:
        """Keep w if its value is smaller, and the bound of its multipliers if it is larger.

        F'u is a share of the gradient, which is ``Sx^{1/2} p + Sy^{1/2} q`` with p and q of length
        one, and a residual.
        """
        spread, a = self.spread, np.abs(self.u)
        self.spreads = spread.spreads(self.c, self.decision)
        line = along(self.decision, self.y, self.spreads, self.C)
        gradient = spread.gradient(self.c, self.decision)
        self.residual = self.u - gradient
        self.values = spread.gram @ self.residual
        factor, b = line.tuned(np.ones(1))
        value = line.value(factor, b)
        share, residual, values = 1.0, self.residual, self.values
        if not self.u.any() or value >= line.trivial[0]:  # w tends to zero, the share below one
            share = max(0.0, float(self.u @ self.decision) / float(self.spreads.sum()))
            residual = self.u - share * gradient
            values = spread.gram @ residual
        reach = 1.0 / (share + spread.residual_length(residual, values) + 1e-300)
        room = self.C / max(float(a.max(initial=0.0)), 1e-300)
        bound = float(a.sum()) * min(reach, max(1.0, room))
        if value < self.best.value:
            self.best_c, self.best_line = self.c, line
        self.best = self.best.better(line.certified(factor, b, a, bound, self.rounds))


class _AndersonHistory:
    """The last rounds of the fixed-point iteration, and the step that they suggest."""

    def __init__(self) -> None:
        self.changes: list[tuple[NDArray, NDArray]] = []
        self.points: list[tuple[NDArray, ...]] = []
        self._least = np.inf

    def next(
        self, change: tuple[NDArray, NDArray], point: tuple[NDArray, ...]
    ) -> tuple[NDArray, ...]:
        """Return the affine combination of the points with the smallest change.

        `point` is the image of the last point, and `change` two vectors whose product is the square
        of the distance to it.
        """
        size = float(change[0] @ change[1])
        if size > RESTART_RATIO**2 * self._least:
            self.changes, self.points = [], []
        self._least = min(self._least, size)
        self.changes = [*self.changes, change][-ANDERSON_DEPTH:]
        self.points = [*self.points, point][-ANDERSON_DEPTH:]
        n = len(self.points)
        products = np.array([[a[0] @ b[1] for b in self.changes] for a in self.changes])
        lengths = np.sqrt(np.maximum(np.diagonal(products), 1e-300))
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = products / np.outer(lengths, lengths)
        system[:n, n] = system[n, :n] = 1.0 / lengths * lengths.min()
        shares = np.zeros(n)
        if np.isfinite(system).all():  # LAPACK prints a message otherwise
            shares = np.linalg.lstsq(system, np.append(shares, 1.0), rcond=1e-14)[0][:n]
        shares *= lengths.min() / lengths
        total = shares.sum()
        if not abs(total) > 1e-8:  # the changes are rounding alone
            self.changes, self.points = [], []
            return point
        return tuple(
            sum(share * own for share, own in zip(shares / total, parts, strict=True))
            for parts in zip(*self.points, strict=True)
        )
