"""The soft M4 at many penalties C on slack, to the accuracy of a search.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b))

At a fixed theta, with ``q = sqrt(w'S w)`` in the place of ``sx + sy``, see
`mmbench.machines.minimax.factor`, this is

    min over w, b   q + C sum_i max(0, 1 - y_i (w'z_i + b))
        = min over s   s/2 + min over w, b   q^2/(2 s) + C sum_i ...

an SVM for every s, solved at ``s = q``. In multipliers ``v = s u`` its dual has the kernel
``G = F S^-1 F'`` whatever s and C are, and both only move the bounds ``0 <= y v <= s C``: all C
share G, and each starts from the multipliers, the s and the theta of the C before it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.factor import FactorMetric, SpreadFactor, minimax_factor
from mmbench.machines.minimax.line_search import Secant
from mmbench.machines.minimax.m4_problem import LineSolution, along
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo

#: Most values of theta that are tried for a C, and of s for a theta.
MAX_THETAS, MAX_SCALES = 10, 30

#: From one s to the next it shrinks by no more than this.
LEAST_SCALE_RATIO = 1e-3

#: Tolerance of the first training for a theta: it has to be near enough for the next s.
FIRST_TRAINING_TOLERANCE = 1e-2

#: Pairwise steps that a row is worth.
SMO_STEPS_PER_ROW = 200


def solve_path(
    problem: SpreadFactor,
    penalties_at: Callable[[float], Sequence[float]],
    theta: float,
    tol: float,
) -> tuple[list[LineSolution], float, float]:
    """Minimise the objective at ascending penalties C on slack.

    Parameters
    ----------
    problem : SpreadFactor
    penalties_at : callable
        Given the total spread of the MPM: C, ascending.
    theta : float
        From which the MPM's is sought.
    tol : float
        Relative accuracy of the objective.

    Returns
    -------
    list of LineSolution
        In coordinates of F. Bounds are of first order in the distance of theta from its optimum.
    float
        Total spread of the MPM.
    float
        The MPM's theta.
    """
    start, metric = minimax_factor(problem, theta, tol)
    path, theta = _Path(problem, metric, 2.0 * start.value), metric.theta
    del metric  # the path lets it go before it makes another
    return [path.solve(C, tol) for C in penalties_at(start.value)], start.value, theta


class ScaleSearch:
    """The s at which ``s = q``, q being larger below it and smaller above it.

    Secant steps alone leave it where q is nearly s over a wide range, as it is for a C close to the
    least useful one: there they stay between the largest s known to be too small and the smallest
    known to be too large.
    """

    def __init__(self, tol: float):
        self._tol, self._secant = tol, Secant()
        self._forget()

    def _forget(self) -> None:
        self._low, self._high = 0.0, np.inf

    def next(self, scale: float, q: float) -> float:
        """Return the s to try after one at which the training gave q."""
        if q > scale:
            self._low = scale
        else:
            self._high = scale
        if self._high <= (1.0 + self._tol) * self._low:  # one of the trainings was too rough
            self._forget()
        step = float(self._secant.next(np.array([scale]), np.array([q]))[0])
        if self._low < step < self._high:
            return step
        inside = self._low > 0.0 and self._high < np.inf
        return float(np.sqrt(self._low * self._high)) if inside else q


class _Path:
    """What one C hands to the next: theta and its kernel, s, and the multipliers."""

    def __init__(self, problem: SpreadFactor, metric: FactorMetric, scale: float):
        self.problem, self.metric, self.kernel = problem, metric, metric.kernel()
        self.scale, self.v = scale, np.zeros(len(problem.y))

    def solve(self, C: float, tol: float) -> LineSolution:
        """Return the solution at one C."""
        secant, trainings = Secant(), 0
        for _ in range(MAX_THETAS):
            decision, more = self._settle(C, tol)
            trainings += more
            w = self.metric.solve(self.problem.rows.T @ self.v)
            spreads = self.problem.spreads(w, decision)
            found = self._solution(C, w, decision, spreads, trainings)
            if found.solution.is_trivial or self.metric.fits(spreads, tol) or time_is_up():
                break
            theta = secant.next_share(self.metric.theta, float(spreads[0] / spreads.sum()))
            del self.metric, self.kernel  # before there is another
            self.metric = FactorMetric(self.problem, theta)
            self.kernel = self.metric.kernel()
        return found

    def _settle(self, C: float, tol: float) -> tuple[NDArray, int]:
        """Train at this theta until ``s = q``; return the decisions and the number of trainings.

        The objective is convex in s, so that s is too small where q is larger. Multipliers a have
        the dual value ``sum a / max(1, q/s)``. Where it is that of w = 0, s would go on to zero.
        """
        y, scale, step = self.problem.y, self.scale, ScaleSearch(tol)
        finest, accuracy = tol, FIRST_TRAINING_TOLERANCE
        trivial = 2.0 * C * min((y > 0).sum(), (y < 0).sum())
        for trainings in range(1, MAX_SCALES + 1):  # noqa: B007 - how many it took is returned
            found = self.train(C, scale, max(finest, accuracy))
            self.scale, self.v = scale, found.u
            q = float(np.sqrt(max(0.0, found.u @ found.decision)))
            bound = float(np.abs(found.u).sum()) / max(scale, q)
            gap = 1.0 - bound / self._value(found.decision, q, C)
            if gap <= tol or bound >= (1.0 - tol) * trivial:
                break
            if abs(q - scale) <= tol * scale:  # it is the training that is too rough
                finest *= 0.1
            accuracy = 0.1 * gap
            scale = step.next(scale, max(q, LEAST_SCALE_RATIO * scale))
        return found.decision, trainings

    def _value(self, decision: NDArray, q: float, C: float) -> float:
        """Return the objective at the best b and multiple of a direction."""
        line = along(decision, self.problem.y, np.array([q, 0.0]), C)
        return line.value(*line.tuned(np.ones(1)))

    def train(self, C: float, scale: float, tol: float) -> PiecewiseSolution:
        """Return the multipliers v of the SVM at one s, from those of the last one."""
        y = self.problem.y
        ends = np.sort(np.outer(scale * C * y, [0.0, 1.0]), axis=1)
        dual = PiecewiseQP(self.kernel, ends, -y[:, None])
        return solve_smo(dual, self.v * (scale / self.scale), tol, SMO_STEPS_PER_ROW * len(y))

    def _solution(
        self, C: float, w: NDArray, decision: NDArray, spreads: NDArray, iterations: int
    ) -> LineSolution:
        """Return the best multiple of a direction, or w = 0, with the bound of the multipliers."""
        line = along(decision, self.problem.y, spreads, C)
        factor, b = line.tuned(np.ones(1))
        theta, a = self.metric.theta, np.abs(self.v) / self.scale
        longest = max(spreads[0] / theta, spreads[1] / (1.0 - theta))
        bound = float(a.sum()) * min(1.0, self.scale / longest)
        found = line.certified(factor, b, a, bound, iterations)
        return LineSolution(w, line, line.trivial_solution().better(found))
