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
variable. Regula falsi finds it over RMMs that start from one another.

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

from mmbench.errors import Status, worst
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.rmm.dual import rmm_dual, solve_paper_dual
from mmbench.machines.svm import GAP_TOLERANCE_FACTOR
from mmbench.solvers.result import relative_gap
from mmbench.solvers.svm_dual import PiecewiseSolution, solve_smo
from mmbench.solvers.svm_dual.tightening import TOLERANCE_FACTORS

#: Bounds between 1 and the SVM's theta that are tried until D is exceeded, by their fraction.
BOUND_FRACTIONS = (0.4, 0.16, 0.06, 0.025, 0.0)

#: Steps of the search for t.
MAX_ROOT_STEPS = 50


@dataclass(frozen=True)
class Penalties:
    """C, D, and what (14) adds.

    Attributes
    ----------
    C, D : float
    cap : float
        Upper bound of each lambda and lambda*.
    n_exceptions : int
        Rows that may exceed t at its best.
    """

    C: float
    D: float
    cap: float = np.inf
    n_exceptions: int = 0


@dataclass(frozen=True)
class DualPoint:
    """A point of the dual: u, ``Ku``, b, and the parts of u: ``y_i u_i = alpha_i + rest``.

    Attributes
    ----------
    alpha : float
        The sum of all alpha.
    total : float
        The sum of all lambda and lambda*.
    """

    u: NDArray
    decision: NDArray
    bias: float
    alpha: float
    total: float

    @classmethod
    def of(cls, found: PiecewiseSolution, y: NDArray, C: float) -> DualPoint:
        """Split u into ``y alpha`` and ``lambda* - lambda``."""
        alpha = np.clip(y * found.u, 0, C)
        total = float(np.abs(found.u - y * alpha).sum())
        return cls(found.u, found.decision, found.bias, float(alpha.sum()), total)

    def mixed(self, other: DualPoint, share: float) -> DualPoint:
        """Return ``share`` of this point and the rest of the other: feasible where both are."""
        mix = [
            share * getattr(self, name) + (1 - share) * getattr(other, name)
            for name in ("u", "decision", "bias", "alpha", "total")
        ]
        return DualPoint(*mix)


@dataclass(frozen=True)
class Search:
    """Points of the dual around the best t, with the work they took."""

    points: list[DualPoint]
    iterations: int
    status: Status


def train_penalty(
    problem: BinaryProblem,
    C: float,
    D: float,
    nu: float | None,
    solver: str,
    tol: float,
    svm: BinaryModel,
    start: NDArray | None,
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
    start : ndarray of shape (n_samples,) or None
        u of a neighbouring problem.

    Returns
    -------
    BinaryModel
        `state` is its point of the dual. `fit.extra` holds ``B``, the t of the solution.
    """
    n, started = len(problem.y), time.perf_counter()
    penalties = Penalties(C, D)
    if nu is not None:
        penalties = Penalties(C, D, D * nu / n, min(n - 1, int(n / nu)) if nu > 1 else n)
    dual = rmm_dual(problem.gram, problem.y, C, 1.0, penalties.cap)
    if solver == "reference":
        found = solve_paper_dual(dual, problem.y, C, 1.0, tol, penalties.cap, D)
        search = Search([DualPoint.of(found, problem.y, C)], found.iterations, found.status)
    else:
        search = _search_to_gap(problem, penalties, tol, svm, start)
    best, objective, t, bound = _best(search.points, problem.y, penalties)
    state = dual.solution(best.u, best.decision, best.bias, search.iterations, search.status)
    fit = Fit(
        status=search.status,
        objective=objective,
        bound=bound,
        max_violation=state.violation,
        iterations=search.iterations,
        seconds=time.perf_counter() - started,
        n_support=int(np.count_nonzero(best.u)),
        extra={"B": t},
    )
    return BinaryModel(intercept=best.bias, fit=fit, coef=best.u, state=state)


def _search_to_gap(
    problem: BinaryProblem,
    penalties: Penalties,
    tol: float,
    svm: BinaryModel,
    start: NDArray | None,
) -> Search:
    """Search to `tol`, and to parts of it until the relative gap is small; see `solve_to_gap`."""
    search = _search(problem, penalties, tol, svm, start)
    for factor in TOLERANCE_FACTORS[1:]:
        best, objective, _, bound = _best(search.points, problem.y, penalties)
        small = relative_gap(objective, bound) <= GAP_TOLERANCE_FACTOR * tol
        if small or search.status is not Status.OPTIMAL:
            break
        finer = _search(problem, penalties, factor * tol, svm, best.u)
        iterations = search.iterations + finer.iterations
        search = Search(search.points + finer.points, iterations, search.status)
        if finer.status is not Status.OPTIMAL:  # rounding ends it; `tol` itself has been reached
            break
    return search


def _search(
    problem: BinaryProblem,
    penalties: Penalties,
    tol: float,
    svm: BinaryModel,
    start: NDArray | None,
) -> Search:
    """Return points around the best t: one at either side, and their mixture of total D."""
    y, C, D = problem.y, penalties.C, penalties.D
    iterations, statuses, last = 0, [svm.fit.status], start

    def solve(t: float) -> DualPoint:
        nonlocal iterations, last
        found = solve_smo(rmm_dual(problem.gram, y, C, t, penalties.cap), last, tol)
        iterations, last = iterations + found.iterations, found.u
        statuses.append(found.status)
        return DualPoint.of(found, y, C)

    high = DualPoint.of(svm.state, y, C)
    theta = float(np.abs(high.decision + high.bias).max())
    if theta <= 1:
        return Search([high], iterations, worst(statuses))
    t_high, t_low, low = theta, theta, high
    for fraction in BOUND_FRACTIONS:
        t_low = 1 + fraction * (theta - 1)
        low = solve(t_low)
        if low.total > D:
            break
        t_high, high = t_low, low
    if low.total <= D:  # even at t = 1
        return Search([low], iterations, worst(statuses))
    gain_low, gain_high, side = low.total - D, high.total - D, 0
    for _ in range(MAX_ROOT_STEPS):
        if t_high - t_low <= tol * t_high or gain_high == 0:
            break
        t = t_low + (t_high - t_low) * gain_low / (gain_low - gain_high)
        if not t_low < t < t_high:
            break
        point = solve(t)
        # Illinois: an end that stays twice counts half, so that both ends close in
        if point.total > D:
            t_low, low, gain_low = t, point, point.total - D
            gain_high *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            t_high, high, gain_high = t, point, point.total - D
            gain_low *= 0.5 if side > 0 else 1.0
            side = 1
    share = (D - high.total) / (low.total - high.total)
    return Search([low.mixed(high, share), low, high], iterations, worst(statuses))


def _best(
    points: list[DualPoint], y: NDArray, penalties: Penalties
) -> tuple[DualPoint, float, float, float]:
    """Return the point with the smallest value, that value and its t, and the largest bound."""
    best = min(points, key=lambda point: _primal(point, y, penalties)[0])
    return best, *_primal(best, y, penalties), max(_bound(point, penalties) for point in points)


def _primal(point: DualPoint, y: NDArray, penalties: Penalties) -> tuple[float, float]:
    """Return the value of (13) or (14) at w and b, and the best t for them."""
    f = point.decision + point.bias
    size = np.sort(np.abs(f))[::-1]
    t = max(1.0, float(size[penalties.n_exceptions])) if penalties.n_exceptions < len(f) else 1.0
    excess = float(np.maximum(0, size - t).sum()) if np.isfinite(penalties.cap) else 0.0
    slack = float(np.maximum(0, 1 - y * f).sum())
    penalty = penalties.C * slack + penalties.D * t + (penalties.cap * excess if excess else 0.0)
    return 0.5 * float(point.u @ point.decision) + penalty, t


def _bound(point: DualPoint, penalties: Penalties) -> float:
    """Return the dual value; a total above D, by rounding or at a smaller t, is scaled down."""
    scale = 1.0 if point.total <= penalties.D else penalties.D / point.total
    linear = point.alpha - point.total
    return penalties.D + scale * linear - 0.5 * scale**2 * float(point.u @ point.decision)
