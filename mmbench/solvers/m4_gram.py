"""The soft M4 over a whole Gram matrix, for pairs too large for diagonal coordinates.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     w = F'c,  K = F F'

As in `mmbench.solvers.reweighted` this is the minimum over ``ex = s theta`` and
``ey = s (1 - theta)`` of an SVM with the quadratic form ``w'(Sx/ex + Sy/ey)w``. A factor is needed
for each theta, not for s: s is settled at every theta first, and a handful of factors suffice. The
SVM sees a working set of rows alone, to which the rows that violate its margin are added until
there are none; the rest have multiplier zero. Every theta gives an upper and a lower bound of the
optimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky

from mmbench.solvers.gram_metric import GramDirection, GramMetric, SpreadGram
from mmbench.solvers.margin_problem import (
    LineSolution,
    MarginProblem,
    MarginSolution,
    along,
    best_bias,
)
from mmbench.solvers.scaled_svm import train_scaled
from mmbench.solvers.secant import Secant

#: Rows of the first working set, and the least number that joins it at a time.
FIRST, JOIN = 600, 100

#: Rows violate their margin by more than this before they join.
OUTSIDE = 1e-9

#: Relative change of s at which it has settled, against the tolerance; at most so many values.
SETTLED, MAX_SCALES = 1e-2, 30


def solve_gram(
    problem: SpreadGram,
    C: float,
    start: GramDirection,
    tol: float = 1e-6,
    max_rounds: int = 20,
) -> LineSolution:
    """Minimise the objective.

    Parameters
    ----------
    problem : SpreadGram
    C : float
    start : GramDirection
        The MPM's, whose theta is the first.
    tol : float, default=1e-6
        Relative gap.
    max_rounds : int, default=20
        Values of theta.

    Returns
    -------
    LineSolution
        Its direction is c.
    """
    state = _State(problem, C, start)
    theta, secant = start.theta, Secant()
    for _ in range(max_rounds):
        state.settle_scale(theta, tol)
        if state.best.closed(tol):
            break
        theta = secant.next_share(theta, state.spreads[0] / sum(state.spreads))
    return LineSolution(state.best_c, state.best_line, state.best)


class _Part:
    """The SVM's kernel between the rows of a working set, at one theta."""

    def __init__(self, metric: GramMetric, rows: NDArray):
        self.metric, self.rows = metric, rows
        self._columns = metric.columns(rows)
        self.factor = self._factor()

    def join(self, rows: NDArray) -> None:
        """Add rows."""
        self.rows = np.append(self.rows, rows)
        self._columns = np.hstack([self._columns, self.metric.columns(rows)])
        self.factor = self._factor()

    def _factor(self) -> NDArray:
        """Return a Cholesky factor of the kernel: its rows stand in for coordinates."""
        block = self.metric.block(self.rows, self._columns)
        block[np.diag_indices_from(block)] *= 1.0 + 1e-13
        return cholesky(block, lower=True, overwrite_a=True, check_finite=False)


class _State:
    """Working set, multipliers and scale, kept from one theta to the next."""

    def __init__(self, problem: SpreadGram, C: float, start: GramDirection):
        self.problem, self.C = problem, C
        self.scale = 2.0 * (start.spread_x + start.spread_y)
        self.u = np.zeros(len(problem.y))
        decision = 2.0 * start.decision
        margins = problem.y * (decision + best_bias(decision, problem.y))
        self.rows = np.sort(np.argsort(margins, kind="stable")[:FIRST])
        self.rounds = 0
        self.best_c = start.c
        self.spreads = (2.0 * start.spread_x, 2.0 * start.spread_y)
        self.best_line = self._line(decision)
        self.best = self.best_line.trivial_solution()

    def settle_scale(self, theta: float, tol: float) -> None:
        """Train at one theta until ``s`` is that of its own solution, and keep the best."""
        part, secant = _Part(GramMetric(self.problem, theta), self.rows), Secant()
        for _ in range(MAX_SCALES):
            c, decision = self._train(part, tol)
            self.spreads = self.problem.spreads(c, decision)
            image = float(
                np.hypot(self.spreads[0] / theta**0.5, self.spreads[1] / (1 - theta) ** 0.5)
            )
            self._keep(theta, c, decision)
            settled = abs(image / self.scale - 1.0) <= SETTLED * tol
            if settled or not image or self.best.closed(0.1 * tol):
                break
            self.scale = float(secant.next(np.array([self.scale]), np.array([image]))[0])
        self.rows = part.rows

    def _train(self, part: _Part, tol: float) -> tuple[NDArray, NDArray]:
        """Return the SVM's c and decisions at this scale; rows join until none is missing."""
        y, self.rounds = self.problem.y, self.rounds + 1
        while True:
            rows = part.rows
            metric = np.full(len(rows), self.scale)
            u = train_scaled(part.factor, metric, y[rows], self.C, self.u[rows], 1e-2 * tol)
            self.u[rows] = u
            c = self.scale * part.metric.solve(self.u)[0]
            decision = self.problem.gram @ c
            free = rows[(np.abs(u) > 0) & (np.abs(u) < self.C)]
            b = float(np.mean(y[free] - decision[free])) if len(free) else best_bias(decision, y)
            margins = y * (decision + b)
            margins[rows] = np.inf
            missing = np.flatnonzero(margins < 1.0 - OUTSIDE)
            if not len(missing):
                return c, decision
            most = max(JOIN, len(rows) // 2)
            part.join(missing[np.argsort(margins[missing], kind="stable")[:most]])

    def _line(self, decision: NDArray) -> MarginProblem:
        return along(decision, self.problem.y, np.array(self.spreads), self.C)

    def _keep(self, theta: float, c: NDArray, decision: NDArray) -> None:
        """Take a solution where it has the smaller value; its multipliers may raise the bound."""
        line = self._line(decision)
        factor, b = line.tuned(np.ones(1))
        a = np.abs(self.u)
        reach = self.scale / max(self.spreads[0] / theta, self.spreads[1] / (1.0 - theta))
        room = self.C / max(float(a.max()), 1e-300)
        bound = float(a.sum()) * min(reach, max(1.0, room))
        found = MarginSolution(factor, b, line.value(factor, b), bound, a, self.rounds)
        if found.value < self.best.value:
            self.best_c, self.best_line = c, line
        self.best = self.best.better(found)
