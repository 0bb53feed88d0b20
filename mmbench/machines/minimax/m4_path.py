"""The soft M4 at many penalties C on slack, to the accuracy of a search.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b))

At a fixed theta, with ``q = sqrt(w'S w)`` in the place of ``sx + sy``, see
`mmbench.machines.minimax.spread`, this is

    min over w, b   q + C sum_i max(0, 1 - y_i (w'z_i + b))
        = min over s   s/2 + min over w, b   q^2/(2 s) + C sum_i ...

an SVM for every s, solved at ``s = q``. In multipliers ``v = s u`` its dual has the kernel
``G = F S^-1 F'`` whatever s and C are, and both only move the bounds ``0 <= y v <= s C``: each C
starts from the multipliers, the s and the theta of the C before it.

G costs four times a factor of S. All C and theta have the one of a theta near by, and the decisions
that it gives are corrected by what they were off for the last multipliers. Where the log-odds of
the two thetas differ by delta, such a round leaves a share delta of the error.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.line_search import Secant
from mmbench.machines.minimax.problem import LineSolution, along
from mmbench.machines.minimax.spread import FactorMetric, SpreadFactor, minimax_factor
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo
from mmbench.solvers.svm_dual.steps import combine

#: Most rounds for a C, each at one theta, and values of s in a round.
MAX_ROUNDS, MAX_SCALES = 20, 30

#: From this distance of the log-odds on the kernel is that of another theta.
FAR_THETA = 0.1

#: Length of what w lacks to be that of its multipliers, as a share of the tolerance.
DIRECTION_SHARE = 0.3

#: From one s to the next it shrinks by no more than this.
LEAST_SCALE_RATIO = 1e-3

#: Tolerance of the first training for a theta: it has to be near enough for the next s.
FIRST_TRAINING_TOLERANCE = 1e-2

#: Pairwise steps that a row is worth.
SMO_STEPS_PER_ROW = 200

NO_KERNEL = np.zeros((0, 0), dtype=np.float32)


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
    start, metric, theta = minimax_factor(problem, theta, tol)
    path = _Path(problem, metric, theta, 2.0 * start.value, tol)
    del metric  # the path lets it go before it makes another
    return [path.solve(C) for C in penalties_at(start.value)], start.value, theta


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
    """What one C hands to the next: theta, a kernel and what it is off, s, and the multipliers."""

    def __init__(
        self, problem: SpreadFactor, metric: FactorMetric, theta: float, scale: float, tol: float
    ):
        self.problem, self.tol, self.theta = problem, tol, theta
        self.scale, self.v = scale, np.zeros(len(problem.y))
        # F'v's w and its decisions, and these less the ones of the kernel, in units of s.
        self.w, self.decision, self.offset = np.zeros(len(metric.factor)), self.v, self.v
        self.metric, self.kernel = metric, NO_KERNEL
        self._move(theta)

    def solve(self, C: float) -> LineSolution:
        """Return the solution at one C."""
        secant, trainings = Secant(), 0
        for _ in range(MAX_ROUNDS):
            trainings += self._settle(C)
            found, spreads, gap = self._look(C, trainings)
            step = log_odds(spreads[0] / spreads.sum()) - log_odds(self.theta)
            near = step**2 <= 2.0 * self.tol  # it makes the objective a share of tol/4 less
            if found.solution.closed(self.tol) or (near and gap <= self.tol) or time_is_up():
                break
            if not near:
                self._move(secant.next_share(self.theta, float(spreads[0] / spreads.sum())))
        return found

    def _move(self, theta: float) -> None:
        """Go to a theta."""
        self.theta = theta
        if abs(log_odds(theta) - log_odds(self.metric.theta)) > FAR_THETA:
            self.kernel = NO_KERNEL  # before there is another
            del self.metric
            self.metric = FactorMetric(self.problem, theta)
        if self.kernel is NO_KERNEL:
            self.kernel = self.metric.kernel()
        self._correct()

    def _correct(self) -> float:
        """Solve for w; return a length of what it lacks to be that of the multipliers."""
        self.w, self.decision, missing = self.metric.solve(
            self.v @ self.problem.rows, self.theta, DIRECTION_SHARE * self.tol, self.w
        )
        self.offset = (self.decision - combine(self.kernel, self.v)) / self.scale
        return missing

    def _settle(self, C: float) -> int:
        """Train at this theta until ``s = q``; return the number of trainings.

        The objective is convex in s, so that s is too small where q is larger. Where the dual value
        is that of w = 0, s would go on to zero.
        """
        y, tol = self.problem.y, self.tol
        scale, step = self.scale, ScaleSearch(tol)
        finest, accuracy = tol, FIRST_TRAINING_TOLERANCE
        trivial = 2.0 * C * min((y > 0).sum(), (y < 0).sum())
        for trainings in range(1, MAX_SCALES + 1):  # noqa: B007 - how many it took is returned
            found = self.train(C, scale, max(finest, accuracy))
            decision = found.decision + scale * self.offset
            self.scale, self.v = scale, found.u
            q, bound, gap = self._gap(C, decision)
            if gap <= tol or bound >= (1.0 - tol) * trivial:
                break
            if abs(q - scale) <= tol * scale:  # it is the training that is too rough
                finest *= 0.1
            accuracy = 0.1 * gap
            scale = step.next(scale, max(q, LEAST_SCALE_RATIO * scale))
        return trainings

    def _gap(self, C: float, decision: NDArray) -> tuple[float, float, float]:
        """Return q, the dual value ``sum a / max(1, q/s)`` and the gap at this theta.

        The objective is that of the best b and multiple of the multipliers' w.
        """
        q = float(np.sqrt(max(0.0, float(self.v @ decision))))
        bound = float(np.abs(self.v).sum()) / max(self.scale, q)
        line = along(decision, self.problem.y, np.array([q, 0.0]), C)
        return q, bound, 1.0 - bound / line.value(*line.tuned(np.ones(1)))

    def train(self, C: float, scale: float, tol: float) -> PiecewiseSolution:
        """Return the multipliers v of the SVM at one s, from those of the last one."""
        y = self.problem.y
        ends = np.sort(np.outer(scale * C * y, [0.0, 1.0]), axis=1)
        dual = PiecewiseQP(self.kernel, ends, (scale * self.offset - y)[:, None])
        return solve_smo(dual, self.v * (scale / self.scale), tol, SMO_STEPS_PER_ROW * len(y))

    def _look(self, C: float, iterations: int) -> tuple[LineSolution, NDArray, float]:
        """Return the best multiple of the multipliers' w, or w = 0, with their bound.

        Returns
        -------
        LineSolution
        ndarray of shape (2,)
            (sx, sy) of w.
        float
            The gap at this theta.
        """
        problem, theta, a = self.problem, self.theta, np.abs(self.v) / self.scale
        missing = self._correct()
        spreads = problem.spreads(self.w, self.decision)
        line = along(self.decision, problem.y, spreads, C)
        factor, b = line.tuned(np.ones(1))
        longest = max(spreads[0] / theta, spreads[1] / (1.0 - theta)) + missing
        bound = float(a.sum()) * min(1.0, self.scale / longest)
        found = line.certified(factor, b, a, bound, iterations)
        best = line.trivial_solution().better(found)
        return LineSolution(self.w, line, best), spreads, self._gap(C, self.decision)[2]


def log_odds(share: float) -> float:
    """Return the logarithm of the odds of a share in (0, 1)."""
    return float(np.log(share / (1.0 - share)))
