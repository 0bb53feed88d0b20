"""The soft M4 as a few support vector machines: iterative reweighting.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     s_c = ||D_c w||

As ``s = min over e > 0 of (s^2/e + e)/2``, this is the minimum over two numbers ex, ey of an SVM
with the quadratic form ``w'(Dx^2/ex + Dy^2/ey)w``, jointly convex. Setting ``e = (sx, sy)`` and
training again never raises the objective. The plain iteration converges linearly; here its fixed
point is sought by secant steps on log e, and the SVM follows by a linear system in its free rows
where the same rows stay free. Every round gives an upper and a lower bound of the optimum.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.direction import minimax_direction
from mmbench.machines.minimax.line_search import Secant
from mmbench.machines.minimax.m4_problem import MarginProblem, MarginSolution
from mmbench.solvers.svm_dual.active_set import FREE_ROWS_TOLERANCE, train_scaled

#: A spread below this share of the other counts as this share.
LEAST_SPREAD_SHARE = 1e-13


def solve_reweighted(
    problem: MarginProblem,
    tol: float = 1e-6,
    start: MarginSolution | None = None,
    max_rounds: int = 40,
) -> MarginSolution:
    """Minimise the objective "margin" of a problem without reduction.

    Parameters
    ----------
    problem : MarginProblem
    tol : float, default=1e-6
        Relative gap at which to stop.
    start : MarginSolution, optional
        Of a neighbouring problem on the same rows.
    max_rounds : int, default=40

    Returns
    -------
    MarginSolution
        Whether it is `closed` at `tol` says whether the rounds sufficed.
    """
    weights, u = _first(problem, start)
    best, secant, gap = problem.trivial_solution(), Secant(), 1.0
    for rounds in range(1, max_rounds + 1):
        metric = 1.0 / (problem.var_x / weights[0] + problem.var_y / weights[1])
        accuracy = min(FREE_ROWS_TOLERANCE, max(0.1 * gap * FREE_ROWS_TOLERANCE, 0.01 * tol))
        u = train_scaled(np.asarray(problem.rows), metric, problem.y, problem.C, u, accuracy)
        w = metric * (problem.rows.T @ u)
        found = problem.solution(w, np.abs(u), iterations=rounds, weights=weights)
        best = best.better(found)
        if best.closed(tol) or time_is_up():
            break
        gap = best.gap
        spreads = problem.spreads(w)
        weights = secant.next(
            weights, np.maximum(spreads, LEAST_SPREAD_SHARE * spreads.sum() + 1e-300)
        )
    return best


def _first(problem: MarginProblem, start: MarginSolution | None) -> tuple[NDArray, NDArray]:
    """Return (ex, ey) and u: the neighbour's, or those of the MPM at unit margin of the means."""
    if start is not None and start.weights is not None:
        return start.weights, np.minimum(start.multipliers, problem.C) * problem.y
    u = np.zeros(len(problem.y))
    if not problem.delta.any():
        return np.ones(2), u
    found = minimax_direction(problem.delta, problem.var_x, problem.var_y)
    weights = 2.0 * np.array([found.spread_x, found.spread_y])
    return np.maximum(weights, LEAST_SPREAD_SHARE * weights.sum()), u
