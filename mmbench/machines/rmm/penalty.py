"""The RMM whose bound is a variable, and its relaxation: (13) and (14) of the journal paper.

    min over w, b, t   1/2 ||w||^2 + C sum_i xi_i + D t                                      (13)
    subject to         y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,  -t <= f(x_i) <= t,  t >= 1

    min over w, b, t   1/2 ||w||^2 + C sum_i xi_i + D (t + nu/n sum_i (tau_i + tau*_i))      (14)
    subject to         y_i f(x_i) >= 1 - xi_i,  -t - tau*_i <= f(x_i) <= t + tau_i,  t >= 1,
                       xi_i, tau_i, tau*_i >= 0

Their duals are (8) with B = 1, D added, and the sum of all lambda_i and lambda*_i at most D; in
(14) each is at most ``D nu / n`` as well. With v(B) the optimal value of the RMM of bound B (for
(14) with such lambda), both are ``min over t >= 1 of v(t) + D t``. The slope of v is minus the sum
of lambda_i and lambda*_i, so t is the root of a monotone, piecewise linear function of one
variable. Regula falsi finds it over RMMs that start from one another. (13) on many rows of few
features is one interior point in these, and RMMs in these where it ends too early.

With weights s_i of the rows the penalty on xi_i is ``C s_i`` in both, and the penalty on tau_i and
tau*_i in (14) is ``D nu s_i / sum_j s_j``; multipliers have these bounds.

References
----------
P. K. Shivaswamy, T. Jebara: Maximum relative margin and data-dependent regularization. JMLR 11,
2010.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status, worst
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.linear_route import in_features, kernel_values, rows_or_gram
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.rmm.dual import rmm_dual, solve_paper_dual
from mmbench.machines.svm import GAP_TOLERANCE_FACTOR
from mmbench.solvers.free_bound import FreeBound
from mmbench.solvers.in_features import ROUNDING_SHARE, solve_in_features
from mmbench.solvers.result import relative_gap
from mmbench.solvers.rows import Rows
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_smo
from mmbench.solvers.svm_dual.tightening import TOLERANCE_FACTORS

#: Bounds between 1 and the SVM's theta that are tried until D is exceeded, by their fraction.
BOUND_FRACTIONS = (0.4, 0.16, 0.06, 0.025, 0.0)

#: Relative gap to which the interior point goes.
INSIDE_GAP_TOLERANCE = 1e-10

#: Steps of the search for t.
MAX_ROOT_STEPS = 50


@dataclass(frozen=True)
class Penalties:
    """C, D, and what (14) adds."""

    #: Shape (n,).
    C: float | NDArray
    D: float
    #: Shape (n,).
    weights: NDArray
    #: Upper bound of each lambda and lambda*. Shape (n,).
    cap: NDArray
    #: Largest sum of weights of rows that exceed t at its best.
    exceptions: float

    @classmethod
    def of(cls, C: float, D: float, nu: float | None, weights: NDArray | None, n: int) -> Penalties:
        """Return those of (13), or of (14) with `nu`, on n rows."""
        s = np.ones(n) if weights is None else weights
        own = C if weights is None else C * s
        if nu is None:
            return cls(own, D, s, np.full(n, np.inf), 0.0)
        return cls(own, D, s, D * nu / s.sum() * s, s.sum() / nu)


@dataclass(frozen=True)
class DualPoint:
    """A point of the dual: u, ``Ku``, b, and the parts of u: ``y_i u_i = alpha_i + rest``.

    In the space of the features it has w too, and the decisions are those of w.
    """

    u: NDArray
    decision: NDArray
    bias: float
    #: The sum of all alpha.
    alpha: float
    #: The sum of all lambda and lambda*.
    total: float
    w: NDArray | None = None

    @classmethod
    def of(cls, found: PiecewiseSolution, y: NDArray, C: float | NDArray) -> DualPoint:
        """Split u into ``y alpha`` and ``lambda* - lambda``."""
        alpha = np.clip(y * found.u, 0, C)
        total = float(np.abs(found.u - y * alpha).sum())
        return cls(found.u, found.decision, found.bias, float(alpha.sum()), total, found.weights)

    def mixed(self, other: DualPoint, share: float) -> DualPoint:
        """Return ``share`` of this point and the rest of the other: feasible where both are."""
        names = ["u", "decision", "bias", "alpha", "total"]
        if self.w is not None and other.w is not None:
            names.append("w")
        mix = {
            name: share * getattr(self, name) + (1 - share) * getattr(other, name) for name in names
        }
        return DualPoint(**mix)


def train_penalty(
    problem: BinaryProblem,
    C: float,
    D: float,
    nu: float | None,
    solver: str,
    tol: float,
    svm: BinaryModel,
    start: PiecewiseSolution | None,
    cache_size: float | None = None,
    weights: NDArray | None = None,
) -> BinaryModel:
    """Train one binary RMM of (13), or of (14) with `nu`.

    Parameters
    ----------
    problem : BinaryProblem
    C, D : float
    nu : float or None
        None for (13). Below 1 no t above 1 pays.
    solver : {"auto", "smo", "reference"}
        "reference" is an interior point (Clarabel) on the dual.
    tol : float
    svm : BinaryModel
        The SVM at the same C: the solution for D = 0.
    start : PiecewiseSolution or None
        The solution of a neighbouring problem.
    cache_size : float, optional
        Memory for kernel values in MB.
    weights : ndarray of shape (n_samples,), optional
        s.

    Returns
    -------
    BinaryModel
        `state` is its point of the dual. `fit.extra` holds ``B``, the t of the solution.
    """
    started = time.perf_counter()
    penalties = Penalties.of(C, D, nu, weights, len(problem.y))
    inside = nu is None and in_features(problem, solver)
    values = rows_or_gram if inside else kernel_values
    gram = values(problem, solver, cache_size)
    dual = rmm_dual(gram, problem.y, penalties.C, 1.0, penalties.cap)
    points, iterations, status = [], 0, Status.INACCURATE
    if inside or solver == "reference":
        if inside:
            found = _solve_inside(dual, problem.y, penalties)
        else:
            found = solve_paper_dual(dual, problem.y, penalties.C, 1.0, tol, penalties.cap, D)
        points = [DualPoint.of(found, problem.y, penalties.C)]
        iterations, status = found.iterations, found.status
    if solver != "reference" and _gap(points, problem.y, penalties) > GAP_TOLERANCE_FACTOR * tol:
        search = _Search(gram, problem.y, penalties, svm, start, inside)
        points += search.to_gap(tol)
        iterations, status = iterations + search.iterations, worst(search.statuses)
    best, objective, t, bound = _best(points, problem.y, penalties)
    state = dual.solution(best.u, best.decision, best.bias, iterations, status, weights=best.w)
    fit = Fit(
        status=status,
        objective=objective,
        bound=bound,
        max_violation=state.violation,
        iterations=iterations,
        seconds=time.perf_counter() - started,
        n_support=int(np.count_nonzero(best.u)),
        extra={"B": t},
    )
    return BinaryModel(intercept=best.bias, fit=fit, coef=best.u, w=best.w, state=state)


def _solve_inside(dual: PiecewiseQP, y: NDArray, penalties: Penalties) -> PiecewiseSolution:
    """Return the solution of (13) by an interior point, u that is nothing but rounding set to 0."""
    rows: Rows = dual.gram  # type: ignore[assignment]
    point = FreeBound(rows, y, penalties.C, penalties.D)
    point.run(INSIDE_GAP_TOLERANCE)
    u = point.dual_variables()
    u = dual.feasible(np.where(np.abs(u) <= ROUNDING_SHARE * np.abs(u).max(), 0.0, u))
    w, b = point.at["w"], float(point.at["b"])
    return dual.solution(u, rows @ w, b, point.iterations, Status.OPTIMAL, weights=w)


class _Search:
    """The search for t over RMMs of bound t, which start from one another."""

    def __init__(
        self,
        gram: NDArray | KernelMatrix,
        y: NDArray,
        penalties: Penalties,
        svm: BinaryModel,
        start: PiecewiseSolution | None,
        inside: bool,
    ):
        self.gram, self.y, self.penalties, self.inside = gram, y, penalties, inside
        self.last: PiecewiseSolution | NDArray | None = start
        self.high = DualPoint.of(svm.state, y, penalties.C)
        self.theta = float(np.abs(self.high.decision + self.high.bias).max())
        self.statuses, self.iterations = [svm.fit.status], 0
        self.inaccurate: list[DualPoint] = []
        self.max_iter = max(10**7, 100 * len(y))

    def to_gap(self, tol: float) -> list[DualPoint]:
        """Search to `tol`, and to parts of it until the relative gap is small; see `solve_to_gap`.

        Returned are all points around the best t, for each tolerance one at either side and their
        mixture of total D.
        """
        points: list[DualPoint] = []
        for factor in TOLERANCE_FACTORS:
            points += self.around(factor * tol, GAP_TOLERANCE_FACTOR * tol)
            accurate = _gap(points, self.y, self.penalties) <= GAP_TOLERANCE_FACTOR * tol
            if accurate or self.statuses[-1] is not Status.OPTIMAL:
                break
            self.last = _best(points, self.y, self.penalties)[0].u
        return points

    def around(self, tol: float, gap_tolerance: float) -> list[DualPoint]:
        """Return points around the best t, to a tolerance of t and of the RMMs."""
        D, t_high, high = self.penalties.D, self.theta, self.high
        t_low, low = t_high, high
        for fraction in BOUND_FRACTIONS if self.theta > 1 else ():
            t_low = 1 + fraction * (self.theta - 1)
            low = self.solve(t_low, tol)
            if low.total > D:
                break
            t_high, high = t_low, low
        if low.total <= D:  # even at t = 1
            return [low]
        gain_low, gain_high, side = low.total - D, high.total - D, 0
        for _ in range(MAX_ROOT_STEPS):
            if t_high - t_low <= tol * t_high or gain_high == 0:
                break
            t = t_low + (t_high - t_low) * gain_low / (gain_low - gain_high)
            if not t_low < t < t_high or self.exhausted(low, high, gap_tolerance):
                break
            point = self.solve(t, tol)
            # Illinois: an end that stays twice counts half, so that both ends close in
            if point.total > D:
                t_low, low, gain_low = t, point, point.total - D
                gain_high *= 0.5 if side < 0 else 1.0
                side = -1
            else:
                t_high, high, gain_high = t, point, point.total - D
                gain_low *= 0.5 if side > 0 else 1.0
                side = 1
        return [_mixture(low, high, D), low, high, *self.inaccurate]

    def solve(self, t: float, tol: float) -> DualPoint:
        """Return the RMM of bound t."""
        y, C = self.y, self.penalties.C
        dual = rmm_dual(self.gram, y, C, t, self.penalties.cap)
        if self.inside:
            found = solve_in_features(dual, y, C, tol, GAP_TOLERANCE_FACTOR * tol, t)
        else:
            found = solve_smo(dual, self.last, tol, self.max_iter // 10)
        self.last = found
        self.iterations += found.iterations
        self.statuses.append(found.status)
        point = DualPoint.of(found, y, C)
        if found.status is not Status.OPTIMAL:  # not where the search believes it to be
            self.inaccurate.append(point)
        return point

    def exhausted(self, low: DualPoint, high: DualPoint, gap_tolerance: float) -> bool:
        """Whether more RMMs are of no use: no steps or time is left, or rounding ends them near."""
        if self.iterations >= self.max_iter or time_is_up():
            return True
        if self.statuses[-1] is Status.OPTIMAL:
            return False
        around = [_mixture(low, high, self.penalties.D), low, high]
        return _gap(around, self.y, self.penalties) <= gap_tolerance


def _mixture(low: DualPoint, high: DualPoint, D: float) -> DualPoint:
    """Return the point between two whose total is D."""
    return low.mixed(high, (D - high.total) / (low.total - high.total))


def _best(
    points: list[DualPoint], y: NDArray, penalties: Penalties
) -> tuple[DualPoint, float, float, float]:
    """Return the point with the smallest value, that value and its t, and the largest bound."""
    best = min(points, key=lambda point: _primal(point, y, penalties)[0])
    return best, *_primal(best, y, penalties), max(_bound(point, penalties) for point in points)


def _gap(points: list[DualPoint], y: NDArray, penalties: Penalties) -> float:
    """Return the relative gap that points leave."""
    if not points:
        return np.inf
    _, objective, _, bound = _best(points, y, penalties)
    return relative_gap(objective, bound)


def _primal(point: DualPoint, y: NDArray, penalties: Penalties) -> tuple[float, float]:
    """Return the value of (13) or (14) at w and b, and the best t for them."""
    f = point.decision + point.bias
    size, order = np.abs(f), np.argsort(-np.abs(f))
    larger = np.count_nonzero(np.cumsum(penalties.weights[order]) <= penalties.exceptions)
    t = max(1.0, float(size[order[larger]])) if larger < len(f) else 1.0
    beyond = size > t
    penalty = float(np.sum(penalties.C * np.maximum(0, 1 - y * f))) + penalties.D * t
    penalty += float(penalties.cap[beyond] @ (size[beyond] - t))
    return 0.5 * float(point.u @ point.decision) + penalty, t


def _bound(point: DualPoint, penalties: Penalties) -> float:
    """Return the dual value; a total above D, by rounding or at a smaller t, is scaled down."""
    scale = 1.0 if point.total <= penalties.D else penalties.D / point.total
    linear = point.alpha - point.total
    return penalties.D + scale * linear - 0.5 * scale**2 * float(point.u @ point.decision)
