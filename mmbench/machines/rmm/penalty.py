"""The RMM whose bound has a price, and its relaxation: programs (13) and (14) of the journal paper.

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
from scipy import sparse

from mmbench.errors import Status, worst
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.rmm.rmm import rmm_dual
from mmbench.machines.svm import GAP_TOLERANCE_FACTOR, TIGHTER_TOLERANCES, hinge_objective
from mmbench.solvers.svm_dual.smo import solve_smo

#: Bounds from the SVM's theta down to 1 that are tried until D is exceeded, by their fraction.
DESCENT = (0.4, 0.16, 0.06, 0.025, 0.0)
MAX_ROUNDS = 50


@dataclass(frozen=True)
class Prices:
    """C, D, and what (14) adds: `cap` bounds each lambda, `spare` rows may exceed t at its best."""

    C: float
    D: float
    cap: float = np.inf
    spare: int = 0


@dataclass(frozen=True)
class Dual:
    """A point of the dual: u, ``Ku``, b, and the parts of u: ``y_i u_i = alpha_i + rest``.

    `total` is the sum of lambda and lambda*.
    """

    u: NDArray
    decision: NDArray
    bias: float
    alpha: float
    total: float

    def mixed(self, other: Dual, share: float) -> Dual:
        """Return ``share`` of this point and the rest of the other: feasible where both are."""
        mix = [
            share * getattr(self, name) + (1 - share) * getattr(other, name)
            for name in ("u", "decision", "bias", "alpha", "total")
        ]
        return Dual(*mix)


def train_priced(
    problem: BinaryProblem,
    C: float,
    D: float,
    nu: float | None,
    solver: str,
    tol: float,
    svm: BinaryModel,
    start: NDArray,
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
        The SVM at the same C: the solution for D = 0, with ``Ku`` as its state.
    start : ndarray of shape (n_samples,)
        u of a neighbouring problem.

    Returns
    -------
    BinaryModel
        `state` is u. `fit.extra` holds ``B``, the t of the solution.
    """
    n, started = len(problem.y), time.perf_counter()
    prices = Prices(C, D)
    if nu is not None:
        prices = Prices(C, D, D * nu / n, min(n - 1, int(n / nu)) if nu > 1 else n)
    if solver == "reference":
        found = _solve_dual(problem, prices, tol)
        points, iterations, status = [found[0]], found[1], found[2]
    else:
        points, iterations, status = _search_to_gap(problem, prices, tol, svm, start)
    best, objective, bound_t, bound = _best(points, problem.y, prices)
    dual = rmm_dual(problem.gram, problem.y, C, 1.0, prices.cap)
    fit = Fit(
        status=status,
        objective=objective,
        bound=bound,
        max_violation=dual.violation(best.u),
        iterations=iterations,
        seconds=time.perf_counter() - started,
        n_support=int(np.count_nonzero(best.u)),
        extra={"B": bound_t},
    )
    return BinaryModel(intercept=best.bias, fit=fit, coef=best.u, state=best.u)


def _search_to_gap(
    problem: BinaryProblem, prices: Prices, tol: float, svm: BinaryModel, start: NDArray
) -> tuple[list[Dual], int, Status]:
    """Search to `tol`, and to parts of it until the relative gap is small; see `solve_to_gap`."""
    points, iterations, status = _search(problem, prices, tol, svm, start)
    for part in TIGHTER_TOLERANCES:
        best, objective, _, bound = _best(points, problem.y, prices)
        small = objective - bound <= GAP_TOLERANCE_FACTOR * tol * max(abs(objective), abs(bound))
        if small or status is not Status.OPTIMAL:
            break
        finer, spent, reached = _search(problem, prices, part * tol, svm, best.u)
        points, iterations = points + finer, iterations + spent
        if reached is not Status.OPTIMAL:  # rounding ends it; `tol` itself has been reached
            break
    return points, iterations, status


def _search(
    problem: BinaryProblem, prices: Prices, tol: float, svm: BinaryModel, start: NDArray
) -> tuple[list[Dual], int, Status]:
    """Return points around the best t: one at either side, and their mixture of total D."""
    y, C, D = problem.y, prices.C, prices.D
    iterations, statuses, last = 0, [svm.fit.status], start

    def solve(t: float) -> Dual:
        nonlocal iterations, last
        found = solve_smo(rmm_dual(problem.gram, y, C, t, prices.cap), last, tol)
        iterations, last = iterations + found.iterations, found.u
        statuses.append(found.status)
        return _dual(found.u, found.decision, found.bias, y, C)

    assert svm.coef is not None
    high = _dual(svm.coef, svm.state, svm.intercept, y, C)
    theta = float(np.abs(high.decision + high.bias).max())
    if theta <= 1:
        return [high], iterations, worst(statuses)
    t_high, t_low, low = theta, theta, high
    for fraction in DESCENT:
        t_low = 1 + fraction * (theta - 1)
        low = solve(t_low)
        if low.total > D:
            break
        t_high, high = t_low, low
    if low.total <= D:  # even at t = 1
        return [low], iterations, worst(statuses)
    gain_low, gain_high, side = low.total - D, high.total - D, 0
    for _ in range(MAX_ROUNDS):
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
    return [low.mixed(high, share), low, high], iterations, worst(statuses)


def _dual(u: NDArray, decision: NDArray, bias: float, y: NDArray, C: float) -> Dual:
    """Split u into ``y alpha`` and ``lambda* - lambda``."""
    alpha = np.clip(y * u, 0, C)
    return Dual(u, decision, bias, float(alpha.sum()), float(np.abs(u - y * alpha).sum()))


def _best(points: list[Dual], y: NDArray, prices: Prices) -> tuple[Dual, float, float, float]:
    """Return the point with the smallest value, that value and its t, and the largest bound."""
    best = min(points, key=lambda point: _primal(point, y, prices)[0])
    return best, *_primal(best, y, prices), max(_bound(point, prices) for point in points)


def _primal(point: Dual, y: NDArray, prices: Prices) -> tuple[float, float]:
    """Return the value of (13) or (14) at w and b, and the best t for them."""
    size = np.sort(np.abs(point.decision + point.bias))[::-1]
    t = max(1.0, float(size[prices.spare])) if prices.spare < len(size) else 1.0
    excess = float(np.maximum(0, size - t).sum()) if np.isfinite(prices.cap) else 0.0
    priced = prices.D * t + (prices.cap * excess if excess else 0.0)
    return hinge_objective(point.u, point.decision, point.bias, y, prices.C) + priced, t


def _bound(point: Dual, prices: Prices) -> float:
    """Return the dual value; a total above D, by rounding or at a smaller t, is scaled down."""
    scale = 1.0 if point.total <= prices.D else prices.D / point.total
    linear = point.alpha - point.total
    return prices.D + scale * linear - 0.5 * scale**2 * float(point.u @ point.decision)


def _solve_dual(problem: BinaryProblem, prices: Prices, tol: float) -> tuple[Dual, int, Status]:
    """Solve the dual as it stands by an interior point, in (u, alpha, lambda, lambda*, slack)."""
    from mmbench.solvers.clarabel_ import solve_qp

    gram, y, n = problem.gram, problem.y, len(problem.y)
    none, ones = np.zeros(n), np.ones(n)
    eye, empty = sparse.eye_array(n), sparse.coo_array((3 * n + 1, 3 * n + 1))
    column = sparse.coo_array((n, 1))
    definition = sparse.hstack([eye, -sparse.diags_array(y), eye, -eye, column])
    sums = sparse.csr_array([[*ones, *none, *none, *none, 0.0], [*none, *none, *ones, *ones, 1.0]])
    found = solve_qp(
        P=sparse.csc_array(sparse.block_diag([gram, empty])),
        q=np.concatenate([none, -ones, ones, ones, [0.0]]),
        A=sparse.csc_array(sparse.vstack([sums, definition])),
        b=np.concatenate([[0.0, prices.D], none]),
        lower=np.concatenate([-np.inf * ones, none, none, none, [0.0]]),
        upper=np.concatenate(
            [np.inf * ones, prices.C * ones, prices.cap * ones, prices.cap * ones, [np.inf]]
        ),
        tol=min(tol, 1e-9),
    )
    u = rmm_dual(gram, y, prices.C, 1.0, prices.cap).feasible(found.x[:n])
    bias = float(found.multipliers[0])
    return _dual(u, gram @ u, bias, y, prices.C), found.iterations, found.status
