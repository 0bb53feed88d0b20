"""The M4 in the normalization "margin", soft and hard, in diagonal coordinates.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     rho = 2/(sx + sy)

`m4` lists the routes. The interior point is `mmbench.solvers.sum_of_norms`. The reweighted SVM
rests on ``s = min over e > 0 of (s^2/e + e)/2``: the soft M4 is the minimum over two numbers ex, ey
of an SVM with the quadratic form ``w'(Sx/ex + Sy/ey)w``, jointly convex. Setting ``e = (sx, sy)``
and training again never raises the objective, but converges linearly; here its fixed point is
found by secant steps on log e. Every round gives an upper and a lower bound of the optimum.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.minimax.cones import (
    bisect_rho,
    margin_program,
    search_budget,
    solve_program,
    step_program,
)
from mmbench.machines.minimax.problem import MarginProblem, MarginSolution, middle_bias
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.highs_ import solve_lp
from mmbench.solvers.sum_of_norms import SumOfNorms
from mmbench.solvers.svm_dual.active_set import FREE_ROWS_TOLERANCE, train_scaled

#: With more than this many coordinates per row the reweighted SVM is the faster route.
REWEIGHTED_WIDTH = 0.25

#: An open gap is left to Clarabel up to this many rows, as it holds 28 copies of them.
MOST_CONE_ROWS = 30_000

#: Classes are not separable if their margin is below this share of the distance of the means.
LEAST_MARGIN = 1e-9

#: A dual solution proves an overlap if its bound on the margin and its violation are below this.
OVERLAP_TOLERANCE = 1e-6

#: A smaller spread relative to the sum of both counts as this share.
LEAST_SPREAD_SHARE = 1e-13

#: Largest change of log e per secant step, and the largest number of steps.
MAX_LOG_STEP, MAX_ROUNDS = 1.5, 40


def solve_soft(
    problem: MarginProblem,
    solver: str = "auto",
    tol: float = 1e-6,
    start: MarginSolution | None = None,
) -> MarginSolution:
    """Minimise the objective to a relative gap; both classes have points.

    The reweighted SVM may start from the solution of a neighbouring problem.
    """
    if solver == "reference":
        return replace(search_budget(problem, tol), route="rho search")
    n, k = problem.rows.shape
    if not problem.removed and solver in ("auto", "reweighted"):
        if k > REWEIGHTED_WIDTH * n or solver == "reweighted":
            found = solve_reweighted(problem, tol, start)
        else:
            point = SumOfNorms(
                problem.rows, problem.y, problem.C, np.stack([problem.var_x, problem.var_y])
            )
            point.run(min(1e-10, 1e-4 * tol))
            found = problem.solution(point.at["w"], point.at["a"], point.iterations)
            found = replace(found, route="interior point")
        last = solver == "reweighted" or n > MOST_CONE_ROWS or time_is_up()
        if found.closed(tol) or last:
            return found
    found = solve_program(margin_program(problem), solver, tol).for_problem(problem)
    return replace(found, route="cone program")


def solve_hard(
    problem: MarginProblem, solver: str = "auto", tol: float = 1e-6
) -> MarginSolution | Status:
    """Minimise ``sx + sy`` without slack; C is infinite.

    Returns INFEASIBLE if the classes are proven not to be separable, FAILED if neither is known.
    """
    w, margin, overlap = widest_margin(problem)
    if margin <= LEAST_MARGIN:
        return Status.INFEASIBLE if overlap else Status.FAILED
    if solver == "reference":
        return replace(bisect_rho(problem, tol), route="rho search")
    # The length of w is free: at this one the spreads are of order 1.
    scale = 1.0 / float(problem.spreads(w).sum())
    program = margin_program(problem)
    program = replace(program, sides=0.5 * scale * margin * program.sides)
    found = solve_program(program, solver, tol).for_problem(problem)
    return replace(found, route="cone program")


def widest_margin(problem: MarginProblem) -> tuple[NDArray, float, bool]:
    """Return the direction of the widest margin relative to the distance of the means.

    It is found by linear programming: at rho = 0 the program "step" has no cones. Returns w with
    ``w'(xm - ym) = 1``, its margin at the best b, and whether a dual solution proves an overlap.
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
    return w, margin, max(found.violation, -found.bound) <= OVERLAP_TOLERANCE


def solve_reweighted(
    problem: MarginProblem, tol: float = 1e-6, start: MarginSolution | None = None
) -> MarginSolution:
    """Minimise the objective of a problem without reduction; the gap may stay open."""
    u, e = np.zeros(len(problem.y)), np.ones(2)
    if start is not None and start.weights is not None:
        u, e = np.minimum(start.multipliers, problem.C) * problem.y, start.weights
    elif problem.delta.any():
        mpm = minimax_direction(problem.delta, problem.var_x, problem.var_y)
        e = 2.0 * np.array([mpm.spread_x, mpm.spread_y])
        e = np.maximum(e, LEAST_SPREAD_SHARE * e.sum())
    best, gap = problem.trivial_solution(), 1.0
    last: tuple[NDArray, NDArray] | None = None
    for rounds in range(1, MAX_ROUNDS + 1):
        metric = 1.0 / (problem.var_x / e[0] + problem.var_y / e[1])
        accuracy = min(FREE_ROWS_TOLERANCE, max(0.1 * gap * FREE_ROWS_TOLERANCE, 0.01 * tol))
        u = train_scaled(np.asarray(problem.rows), metric, problem.y, problem.C, u, accuracy)
        w = metric * (problem.rows.T @ u)
        best = best.better(problem.solution(w, np.abs(u), iterations=rounds, weights=e))
        if best.closed(tol) or time_is_up():
            break
        gap = best.gap
        spreads = problem.spreads(w)
        spreads = np.maximum(spreads, LEAST_SPREAD_SHARE * spreads.sum() + 1e-300)
        at, residual = np.log(e), np.log(spreads / e)
        step = residual
        if last is not None and np.linalg.norm(residual) < np.linalg.norm(last[1]):
            change = residual - last[1]
            step = residual - (change @ residual) / (change @ change) * (at - last[0] + change)
        last = at, residual
        e = np.exp(at + np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP))
    return replace(best, route="reweighted")
