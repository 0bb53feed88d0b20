"""Routes to the M4 in the margin normalisation, soft and hard.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     rho = 2/(sx + sy)

The default is an interior point in the coordinates, the reweighted SVM where these are many, and
one cone program by Clarabel for a hard margin and with a reduction. Their times are compared by
benchmarks/m4_routes.py and benchmarks/linear_growth.py. The reference follows the paper: rho is
fixed, one cone program solved, and rho searched for.

The soft M4 as a few support vector machines: iterative reweighting.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     s_c = ||D_c w||

As ``s = min over e > 0 of (s^2/e + e)/2``, this is the minimum over two numbers ex, ey of an SVM
with the quadratic form ``w'(Dx^2/ex + Dy^2/ey)w``, jointly convex. Setting ``e = (sx, sy)`` and
training again never raises the objective. The plain iteration converges linearly; here its fixed
point is sought by secant steps on log e, and the SVM follows by a linear system in its free rows
where the same rows stay free. Every round gives an upper and a lower bound of the optimum.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import bisect, minimize_scalar

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.minimax.cones import (
    SpreadProgram,
    SpreadSolution,
    budget_program,
    margin_program,
    solve_spread,
    step_program,
)
from mmbench.machines.minimax.line_search import Secant
from mmbench.machines.minimax.problem import MarginProblem, MarginSolution, middle_bias
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.highs_ import solve_lp
from mmbench.solvers.sum_of_norms import SumOfNorms
from mmbench.solvers.svm_dual.active_set import FREE_ROWS_TOLERANCE, train_scaled

#: From this many coordinates a row on, reweighting beats the interior point in the coordinates.
REWEIGHTED_WIDTH = 0.25

#: Up to this many rows Clarabel goes on where other routes end early: it takes 28 copies of them.
MOST_CONE_ROWS = 30_000

#: Classes are not separable if their margin is below this share of the distance of the means.
LEAST_MARGIN = 1e-9

#: A dual solution proves an overlap if its bound on the margin and its violation are below this.
MARGIN_TOL = 1e-6


def solve_soft(
    problem: MarginProblem,
    solver: str = "auto",
    tol: float = 1e-6,
    start: MarginSolution | None = None,
) -> MarginSolution:
    """Minimise the objective.

    Parameters
    ----------
    problem : MarginProblem
        With points of both classes.
    solver : {"auto", "reweighted", "reference", "clarabel", "ecos"}, default="auto"
    tol : float, default=1e-6
        Relative gap.
    start : MarginSolution, optional
        Of a neighbouring problem; for the reweighted SVM.
    """
    if solver == "reference":
        return _search_budget(problem, tol)
    n, k = problem.rows.shape
    if not problem.removed and solver in ("auto", "reweighted"):
        if k > REWEIGHTED_WIDTH * n or solver == "reweighted":
            found = solve_reweighted(problem, tol, start)
        else:
            found = solve_inside(problem, tol)
        last = solver == "reweighted" or n > MOST_CONE_ROWS or time_is_up()
        if found.closed(tol) or last:
            return found
    return _from_program(problem, solve_program(margin_program(problem), solver, tol))


def solve_inside(problem: MarginProblem, tol: float = 1e-6) -> MarginSolution:
    """Minimise the objective of a problem without reduction by an interior point.

    An iteration takes a few products with the rows and one of ``rows' diag rows``; of what has
    their length, some twenty vectors are held.
    """
    squares = np.stack([problem.var_x, problem.var_y])
    point = SumOfNorms(problem.rows, problem.y, problem.C, squares)
    point.run(min(1e-10, 1e-4 * tol))
    return problem.solution(point.at["w"], point.at["a"], point.iterations)


def solve_hard(
    problem: MarginProblem, solver: str = "auto", tol: float = 1e-6
) -> MarginSolution | Status:
    """Minimise ``sx + sy`` without slack.

    Parameters
    ----------
    problem : MarginProblem
        With an infinite C.
    solver : {"auto", "reference", "clarabel", "ecos"}, default="auto"
    tol : float, default=1e-6

    Returns
    -------
    MarginSolution or Status
        INFEASIBLE where the classes are not separable, FAILED where that could not be told.
    """
    w, margin, overlap = widest_margin(problem)
    if margin <= LEAST_MARGIN:
        return Status.INFEASIBLE if overlap else Status.FAILED
    if solver == "reference":
        return _bisect_rho(problem, tol)
    # The length of w is free: at this one the spreads are of order 1.
    scale = 1.0 / float(problem.spreads(w).sum())
    program = margin_program(problem)
    program = replace(program, sides=0.5 * scale * margin * program.sides)
    return _from_program(problem, solve_program(program, solver, tol))


def widest_margin(problem: MarginProblem) -> tuple[NDArray, float, bool]:
    """Return the direction that separates the classes widest, as seen from their means.

    Returns
    -------
    w : ndarray of shape (k,)
        Its decisions at the class means differ by 1.
    margin : float
        Smallest decision of a row on its own side, at the best b; at most 0 where rows overlap.
    overlap : bool
        Whether a dual solution proves that no direction leaves any margin.

    Notes
    -----
    At rho = 0 "step" has no cone left and is a linear program.
    """
    program = step_program(problem, 0.0)
    used = np.setdiff1d(np.arange(len(program.cost)), program.scales)
    sides = np.append(program.sides, 1.0)
    found = solve_lp(
        program.cost[used],
        np.vstack([program.rows[:, used], np.append(problem.delta, [0.0, 0.0])]),
        row_lower=sides,
        row_upper=np.where(np.arange(len(sides)) < len(program.sides), np.inf, 1.0),
        col_lower=-np.inf,
        tol=LEAST_MARGIN,
    )
    w = found.x[: len(problem.delta)]
    decision = problem.rows @ w
    margin = float((problem.y * (decision + middle_bias(decision, problem.y))).min())
    return w, margin, max(found.violation, -found.bound) <= MARGIN_TOL


def solve_program(program: SpreadProgram, solver: str, tol: float) -> SpreadSolution:
    """Solve a spread program to well below a relative gap of `tol`; all but ECOS is Clarabel."""
    return solve_spread(program, "ecos" if solver == "ecos" else "clarabel", min(1e-9, 1e-3 * tol))


def _from_program(problem: MarginProblem, found: SpreadSolution) -> MarginSolution:
    k = len(problem.delta)
    return problem.solution(found.x[:k], found.multipliers, found.iterations)


def _search_budget(problem: MarginProblem, tol: float) -> MarginSolution:
    """Search ``sx + sy = 2/rho``, one cone program each.

    The objective is convex in 2/rho, which makes that the variable to search. A search has no
    multipliers of its own; those of the program in all variables at once give the bound.
    """
    best = problem.trivial_solution()

    def value(budget: float) -> float:
        nonlocal best
        program = budget_program(problem, 2.0 / budget)
        found = solve_program(program, "reference", tol)
        a = problem.C * found.multipliers  # they are those of slack at unit penalty
        iterations = best.iterations + found.iterations
        best = best.better(problem.solution(found.x[: len(problem.delta)], a, iterations))
        return float(budget + problem.C * program.value(found.x))

    most = problem.trivial[0]
    minimize_scalar(value, bounds=(0.0, most), method="bounded", options={"xatol": 1e-9 * most})
    joint = _from_program(problem, solve_program(margin_program(problem), "reference", tol))
    return replace(best, bound=max(best.bound, joint.bound))


def _bisect_rho(problem: MarginProblem, tol: float) -> MarginSolution:
    """Search the largest rho for which the constraints (8), (9) can be met, up to MPM's kappa."""
    k = len(problem.delta)
    kappa = 1.0 / minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    best = problem.trivial_solution()

    def step(rho: float) -> float:
        nonlocal best
        found = solve_program(step_program(problem, rho), "reference", 1e-3 * tol)
        best = best.better(
            problem.solution(found.x[:k], found.multipliers, best.iterations + found.iterations)
        )
        return float(found.x[-1])

    bisect(step, 0.0, (1.0 + 1e-6) * kappa, xtol=0.1 * tol * kappa)
    return best


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
