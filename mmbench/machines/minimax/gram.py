"""The soft M4 over a whole Gram matrix, for pairs too large for diagonal coordinates.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     w = F'c,  K = F F'

One factor of ``S = Sx/theta + Sy/(1 - theta)`` at one theta, the MPM's first, serves to the end.
With the gradient ``F'g`` of sx + sy at w, a round solves

    min over v, b   g'F (v - w) + 1/(2 s) (v - w)'S(v - w) + C sum_i max(0, 1 - y_i (v'z_i + b))

an SVM with the kernel ``s F S^-1 F'``, whose multipliers u give ``v = w + s S^-1 F'(u - g)``. Its
fixed points are the solutions of the M4, ``F'u = F'g``. With s the harmonic mean of sx/theta and
sy/(1 - theta) no direction is stretched beyond its mirror image; steps of Anderson's kind, on
rounds that have the same SVM's rows free as good as conjugate gradients, do the rest.

The SVM sees a working set of rows alone, to which the rows that violate its margin are added until
there are none; the rest have multiplier zero. Every round gives an upper and a lower bound of the
optimum, both of K itself: the factor may be a rough one.

References
----------
H. Walker, P. Ni: Anderson acceleration for fixed-point iterations. SIAM J. Numerical Analysis 49,
2011.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from mmbench.allowance import time_is_up
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.problem import LineSolution, MarginProblem, along
from mmbench.machines.minimax.spread import GramMetric, SpreadGram
from mmbench.solvers.svm_dual.active_set import settle_by
from mmbench.solvers.svm_dual.qp import PiecewiseQP
from mmbench.solvers.svm_dual.smo import solve_smo

#: Share of the rows in the first working set, and their least number; most that join it at a time,
#: as a share of those that it has, and at least.
FIRST_ROWS_SHARE, FIRST_ROWS = 1 / 6, 600
JOINING_ROWS_SHARE, JOINING_ROWS = 0.5, 100

#: Rows violate their margin by more than this before they join.
MARGIN_TOLERANCE = 1e-9

#: Rounds that an Anderson step combines.
ANDERSON_DEPTH = 8

#: A round whose residual is more than so many times the least one makes Anderson steps start anew.
RESTART_RESIDUAL_RATIO = 3.0

#: Tolerance of pairwise steps, in units of f, and their number for a row: they only have to find
#: which rows are free.
SMO_TOLERANCE, SMO_STEPS_PER_ROW = 1e-3, 200

#: Share of its diagonal that makes the working set's kernel definite.
DIAGONAL_SHIFTS = {np.float32: 1e-6, np.float64: 1e-13}


def solve_gram(
    problem: SpreadGram,
    C: float,
    c: NDArray,
    decision: NDArray,
    metric: GramMetric,
    tol: float = 1e-6,
    max_rounds: int = 200,
) -> LineSolution:
    """Minimise the objective.

    Parameters
    ----------
    problem : SpreadGram
    C : float
    c, decision : ndarray of shape (n,)
        The MPM's c, and its ``Kc``.
    metric : GramMetric
        At any theta.
    tol : float, default=1e-6
        Relative gap.
    max_rounds : int, default=200

    Returns
    -------
    LineSolution
        Its direction is c.
    """
    state = _State(problem, C, 2.0 * c, 2.0 * decision, metric)
    for _ in range(max_rounds):
        state.step()
        if state.best.closed(tol) or time_is_up():
            break
    return LineSolution(state.best_c, state.best_line, state.best)


class _Part:
    """The kernel ``F S^-1 F'`` between the rows of a working set."""

    def __init__(self, metric: GramMetric, rows: NDArray):
        self.metric, self.rows = metric, rows
        self.columns = metric.columns(rows)
        self.kernel = metric.block(rows, rows, self.columns.T @ self.columns)
        self._firm(0)

    def join(self, rows: NDArray) -> None:
        """Add rows."""
        columns, old, known = self.metric.columns(rows), self.rows, len(self.rows)
        kernel = np.empty((known + len(rows),) * 2)
        kernel[:known, :known] = self.kernel
        kernel[:known, known:] = self.metric.block(old, rows, self.columns.T @ columns)
        kernel[known:, :known] = kernel[:known, known:].T
        kernel[known:, known:] = self.metric.block(rows, rows, columns.T @ columns)
        self.kernel = kernel  # before there are longer columns
        self.rows, self.columns = np.append(old, rows), np.hstack([self.columns, columns])
        self._firm(known)

    def _firm(self, known: int) -> None:
        new = np.arange(known, len(self.rows))
        self.kernel[new, new] *= 1.0 + DIAGONAL_SHIFTS[self.metric.dtype]
        self._free, self._factor = np.zeros(0, dtype=int), np.zeros((0, 0))

    def train(self, offset: NDArray, y: NDArray, C: float, v: NDArray) -> NDArray:
        """Return the multipliers of the SVM with decisions ``kernel v + offset + b``."""
        found = self._settle(offset, y, C, v)
        if found is not None:
            return found
        ends, slopes = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1), (offset - y)[:, None]
        most = SMO_STEPS_PER_ROW * len(v)
        v = solve_smo(
            PiecewiseQP(self.kernel.astype(np.float32), ends, slopes), v, SMO_TOLERANCE, most
        ).u
        found = self._settle(offset, y, C, v)
        if found is not None:
            return found
        return solve_smo(PiecewiseQP(self.kernel, ends, slopes), v, MARGIN_TOLERANCE, most).u

    def _settle(self, offset: NDArray, y: NDArray, C: float, v: NDArray) -> NDArray | None:
        return settle_by(self._free_part, lambda v: self.kernel @ v + offset, y, C, v)

    def _free_part(
        self, free: NDArray, pull: NDArray, total: float
    ) -> tuple[NDArray, float] | None:
        """Return v of the free rows and b; near the end they are those of the round before."""
        if not np.array_equal(free, self._free):
            self._free, self._factor = np.zeros(0, dtype=int), np.zeros((0, 0))  # before another
            try:
                square = self.kernel[np.ix_(free, free)].T
                self._factor = cholesky(square, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                return None
            self._free = free
        ends = np.column_stack([pull, np.ones(len(pull))])
        own, unit = cho_solve((self._factor, True), ends, check_finite=False).T
        b = float((own.sum() - total) / unit.sum())
        return own - b * unit, b


class _State:
    """w, its multipliers, the working set, and the rounds before."""

    def __init__(
        self, problem: SpreadGram, C: float, c: NDArray, decision: NDArray, metric: GramMetric
    ):
        self.problem, self.C, self.metric = problem, C, metric
        self.c, self.decision = c, decision
        self.u, self.rounds = np.zeros(len(problem.y)), 0
        margins = problem.y * (self.decision + best_bias(self.decision, problem.y))
        order = np.argsort(margins, kind="stable")
        # A solution's multipliers sum up to its value, and none is larger than C. With fewer rows
        # in the working set w = 0 may be the optimum of these, from where it grows slowly.
        line = self._line()
        value = line.value(*line.tuned(np.ones(1)))
        least = max(FIRST_ROWS, int(FIRST_ROWS_SHARE * len(margins)), int(value / C))
        first = order[:least]
        if len(set(problem.y[first])) < 2:  # the w of one class is zero, and would stay so
            other = order[problem.y[order] != problem.y[first[0]]]
            first = np.append(first, other[: len(first)])
        self.part = _Part(metric, np.sort(first))
        self.past = _Past()
        self.best_c, self.best_line = self.c, line
        self.best = self.best_line.trivial_solution()
        self._look()

    def step(self) -> None:
        """Go one round on."""
        problem, metric, part, y = self.problem, self.metric, self.part, self.problem.y
        rows, theta = part.rows, metric.theta
        scale = 2.0 / (theta / self.spreads[0] + (1.0 - theta) / self.spreads[1])
        half = metric.half(self.values)
        offset = self.decision[rows] - scale * (part.kernel @ self.u[rows])
        offset += scale * (self.values[rows] - part.columns.T @ half) / metric.ridge
        u = np.zeros_like(self.u)
        u[rows] = part.train(offset, y[rows], scale * self.C, scale * self.u[rows]) / scale
        step = u - self.u
        half += part.columns @ step[rows].astype(metric.dtype)
        c = self.c + scale * metric.solution(self.missing + step, half)
        decision = problem.gram @ c
        self.rounds += 1
        if self._join(decision, u):
            self.past = _Past()
        else:
            change, image = c - self.c, decision - self.decision
            weighed = metric.weights * problem.centred(image) + metric.ridge * change
            c, decision, u = self.past.next((weighed, image), (c, decision, u))
        self.c, self.decision, self.u = c, decision, y * balanced(y * u, y, self.C)
        self._look()

    def _join(self, decision: NDArray, u: NDArray) -> bool:
        """Add the rows that violate their margin most; return whether there were any."""
        y, rows = self.problem.y, self.part.rows
        size = np.abs(u)
        free = (size > 0) & (size < self.C)
        b = float(np.mean((y - decision)[free])) if free.any() else best_bias(decision, y)
        margins = y * (decision + b)
        margins[rows] = np.inf
        missing = np.flatnonzero(margins < 1.0 - MARGIN_TOLERANCE)
        if not len(missing):
            return False
        most = max(JOINING_ROWS, int(JOINING_ROWS_SHARE * len(rows)))
        self.part.join(missing[np.argsort(margins[missing], kind="stable")[:most]])
        return True

    def _line(self) -> MarginProblem:
        self.spreads = np.array(self.problem.spreads(self.c, self.decision))
        return along(self.decision, self.problem.y, self.spreads, self.C)

    def _look(self) -> None:
        """Take w where it has the smaller value; its multipliers may raise the bound.

        ``F'u`` is a share of the gradient, which is ``Sx^{1/2}p + Sy^{1/2}q`` with p and q of
        length one, and what is missing.
        """
        problem, a, line = self.problem, np.abs(self.u), self._line()
        gradient = problem.gradient(self.c, self.decision)
        self.missing = self.u - gradient
        self.values = problem.gram @ self.missing
        factor, b = line.tuned(np.ones(1))
        value = line.value(factor, b)
        share, missing, values = 1.0, self.missing, self.values
        if not self.u.any() or value >= line.trivial[0]:  # w goes to zero, and the share below one
            share = max(0.0, float(self.u @ self.decision) / float(self.spreads.sum()))
            missing = self.u - share * gradient
            values = problem.gram @ missing
        reach = 1.0 / (share + problem.missing(missing, values) + 1e-300)
        room = self.C / max(float(a.max(initial=0.0)), 1e-300)
        bound = float(a.sum()) * min(reach, max(1.0, room))
        if value < self.best.value:
            self.best_c, self.best_line = self.c, line
        self.best = self.best.better(line.certified(factor, b, a, bound, self.rounds))


class _Past:
    """The last rounds of a fixed point iteration, and the step that they suggest."""

    def __init__(self) -> None:
        self.changes: list[tuple[NDArray, ...]] = []
        self.points: list[tuple[NDArray, ...]] = []
        self._least = np.inf

    def next(self, change: tuple[NDArray, ...], point: tuple[NDArray, ...]) -> tuple[NDArray, ...]:
        """Return the affine combination of points whose change is least.

        Parameters
        ----------
        change : tuple of ndarray
            From a point to its image: two vectors whose product is its square.
        point : tuple of ndarray
            The image.
        """
        size = float(change[0] @ change[1])
        if size > RESTART_RESIDUAL_RATIO**2 * self._least:
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
        shares = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=1e-14)[0][:n]
        shares *= lengths.min() / lengths
        shares /= shares.sum()
        return tuple(
            sum(share * point[k] for share, point in zip(shares, self.points, strict=True))
            for k in range(len(point))
        )
