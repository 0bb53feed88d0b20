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

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.active_set import settle_kernel
from mmbench.solvers.gram_metric import GramDirection, GramMetric, SpreadGram
from mmbench.solvers.margin_problem import (
    LineSolution,
    MarginSolution,
    along,
    balanced,
    best_bias,
)
from mmbench.solvers.piecewise import PiecewiseQP
from mmbench.solvers.smo import solve_smo

#: Rows of the first working set, and the least number that joins it at a time.
FIRST, JOIN = 600, 100

#: Rows violate their margin by more than this before they join.
OUTSIDE = 1e-9

#: Rounds that an accelerated step looks back on.
DEPTH = 8

#: A round that leaves more than so many times the least residual starts the look back anew.
WORSE = 3.0

#: Tolerance of pairwise steps, in units of f, and their number for a row: they only have to find
#: which rows are free.
LOOSE, STEPS_PER_ROW = 1e-3, 200

#: Share of its diagonal that makes the working set's kernel definite.
JITTER = {np.float32: 1e-6, np.float64: 1e-13}


def solve_gram(
    problem: SpreadGram,
    C: float,
    start: GramDirection,
    metric: GramMetric,
    tol: float = 1e-6,
    max_rounds: int = 200,
) -> LineSolution:
    """Minimise the objective.

    Parameters
    ----------
    problem : SpreadGram
    C : float
    start : GramDirection
        The MPM's.
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
    state = _State(problem, C, start, metric)
    for _ in range(max_rounds):
        state.step()
        if state.best.closed(tol):
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
        self.rows, self.columns = np.append(old, rows), np.hstack([self.columns, columns])
        self.kernel = kernel
        self._firm(known)

    def _firm(self, known: int) -> None:
        new = np.arange(known, len(self.rows))
        self.kernel[new, new] *= 1.0 + JITTER[self.metric.dtype]


class _State:
    """w, its multipliers, the working set, and the rounds before."""

    def __init__(self, problem: SpreadGram, C: float, start: GramDirection, metric: GramMetric):
        self.problem, self.C, self.metric = problem, C, metric
        self.c, self.decision = 2.0 * start.c, 2.0 * start.decision
        self.u, self.rounds = np.zeros(len(problem.y)), 0
        margins = problem.y * (self.decision + best_bias(self.decision, problem.y))
        self.part = _Part(metric, np.sort(np.argsort(margins, kind="stable")[:FIRST]))
        self.past = _Past()
        self.best_c = self.c
        spreads = np.array(problem.spreads(self.c, self.decision))
        self.best_line = along(self.decision, problem.y, spreads, C)
        self.best = self.best_line.trivial_solution()

    def step(self) -> None:
        """Go one round on."""
        problem, metric, part, y = self.problem, self.metric, self.part, self.problem.y
        rows, theta = part.rows, metric.theta
        spread_x, spread_y = problem.spreads(self.c, self.decision)
        scale = 2.0 / (theta / spread_x + (1.0 - theta) / spread_y)
        gradient = problem.gradient(self.c, self.decision)
        missing = self.u - gradient
        values = problem.gram @ missing
        half = metric.half(values)
        offset = self.decision[rows] - scale * (part.kernel @ self.u[rows])
        offset += scale * (values[rows] - part.columns.T @ half) / metric.ridge
        u = np.zeros_like(self.u)
        u[rows] = self._svm(scale * part.kernel, offset, y[rows], self.u[rows])
        moved = missing + u - self.u
        half += part.columns @ (u - self.u)[rows].astype(metric.dtype)
        c = self.c + scale * metric.solution(moved, half)
        decision = problem.gram @ c
        self.rounds += 1
        self._keep(c, decision, u)
        if self._join(decision, u):
            self.past = _Past()
            self.c, self.decision, self.u = c, decision, u
            return
        change, image = c - self.c, decision - self.decision
        length = metric.weights * problem.centred(image)
        self.c, self.decision, u = self.past.next(
            (change, length + metric.ridge * change, image), (c, decision, u)
        )
        self.u = balanced(y * u, y, self.C) * y

    def _svm(self, kernel: NDArray, offset: NDArray, y: NDArray, u: NDArray) -> NDArray:
        """Return the multipliers of the SVM with decisions ``kernel u + offset + b``."""
        found = settle_kernel(kernel, offset, y, self.C, u)
        if found is not None:
            return found
        ends = np.sort(np.outer(self.C * y, [0.0, 1.0]), axis=1)
        rough = PiecewiseQP(kernel.astype(np.float32), ends, (offset - y)[:, None])
        u = solve_smo(rough, u, LOOSE, STEPS_PER_ROW * len(u)).u
        found = settle_kernel(kernel, offset, y, self.C, u)
        if found is not None:
            return found
        exact = PiecewiseQP(kernel, ends, (offset - y)[:, None])
        return solve_smo(exact, u, OUTSIDE, STEPS_PER_ROW * len(u)).u

    def _join(self, decision: NDArray, u: NDArray) -> bool:
        """Add the rows that violate their margin most; return whether there were any."""
        y, rows = self.problem.y, self.part.rows
        size = np.abs(u)
        free = (size > 0) & (size < self.C)
        b = float(np.mean((y - decision)[free])) if free.any() else best_bias(decision, y)
        margins = y * (decision + b)
        margins[rows] = np.inf
        missing = np.flatnonzero(margins < 1.0 - OUTSIDE)
        if not len(missing):
            return False
        most = max(JOIN, len(rows) // 2)
        self.part.join(missing[np.argsort(margins[missing], kind="stable")[:most]])
        return True

    def _keep(self, c: NDArray, decision: NDArray, u: NDArray) -> None:
        """Take a solution where it has the smaller value; its multipliers may raise the bound.

        ``F'u`` is a share of the gradient, which is ``Sx^{1/2}p + Sy^{1/2}q`` with p and q of
        length one, and what is missing.
        """
        problem = self.problem
        spreads = np.array(problem.spreads(c, decision))
        line = along(decision, problem.y, spreads, self.C)
        factor, b = line.tuned(np.ones(1))
        a = balanced(problem.y * u, problem.y, self.C)
        u = a * problem.y
        share = max(0.0, float(u @ decision) / float(spreads.sum()))
        missing = u - share * problem.gradient(c, decision)
        reach = 1.0 / (share + problem.missing(missing, problem.gram @ missing))
        room = self.C / max(float(a.max(initial=0.0)), 1e-300)
        bound = float(a.sum()) * min(reach, max(1.0, room))
        found = MarginSolution(factor, b, line.value(factor, b), bound, a, self.rounds)
        if found.value < self.best.value:
            self.best_c, self.best_line = c, line
        self.best = self.best.better(found)


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
            From a point to its image: in coordinates, and two vectors whose product is a square.
        point : tuple of ndarray
            The image.
        """
        size = float(change[1] @ change[2])
        if size > WORSE**2 * self._least:
            self.changes, self.points = [], []
        self._least = min(self._least, size)
        self.changes = [*self.changes, change][-DEPTH:]
        self.points = [*self.points, point][-DEPTH:]
        n = len(self.points)
        products = np.array([[a[1] @ b[2] for b in self.changes] for a in self.changes])
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
