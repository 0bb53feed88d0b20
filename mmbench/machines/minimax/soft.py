"""The M4 in the normalization "margin", with a soft or a hard margin, in diagonal coordinates.

    min over w, b   sx + sy + C sum_i max(0, 1 - y_i (w'z_i + b)),     rho = 2/(sx + sy)

The routes are listed in `m4`. The interior point method is in `mmbench.solvers.sum_of_norms`. The
reweighted SVM uses the identity ``s = min over e > 0 of (s^2/e + e)/2``: the soft M4 is the minimum
over (w, b, ex, ey) of an SVM objective with the quadratic form ``w'(Sx/ex + Sy/ey)w``, which is
jointly convex. Alternating between ``e = (sx, sy)`` and the training of the SVM never increases the
objective, but converges only linearly. Here the fixed point of this iteration is computed by secant
steps on log e. Every round gives an upper and a lower bound on the optimum.
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

#: Ratio k/n of coordinates to rows above which the reweighted SVM is used: it is then faster than
#: the interior point method.
REWEIGHTED_WIDTH = 0.25

#: Maximum number of rows for which a problem with an open gap is solved again by Clarabel, which
#: needs memory for 28 copies of the rows.
MOST_CONE_ROWS = 30_000

#: Lower bound on the margin of separable classes, relative to the distance of the class means.
LEAST_MARGIN = 1e-9

#: Upper bound on the constraint violation of a linear program, and on the margin that its dual
#: solution allows, for which the classes count as not separable.
OVERLAP_TOLERANCE = 1e-6

#: Lower bound on the spread of a class relative to the sum of both spreads; smaller spreads are
#: replaced by this bound.
LEAST_SPREAD_SHARE = 1e-13

#: Maximum change of log e per secant step, and the maximum number of secant steps.
MAX_LOG_STEP, MAX_ROUNDS = 1.5, 40


def solve_soft(
    problem: MarginProblem,
    solver: str = "auto",
    tol: float = 1e-6,
    start: MarginSolution | None = None,
) -> MarginSolution:
    """Minimise the objective to the relative gap `tol`; both classes must have points.

    `start` is a warm start for the reweighted SVM: the solution for similar parameters.
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
    """Minimise ``sx + sy`` without slacks; C must be infinite.

    Returns INFEASIBLE if the classes are proven not to be separable, and FAILED if neither a
    separating hyperplane nor this proof has been found.
    """
    w, margin, overlap = widest_margin(problem)
    if margin <= LEAST_MARGIN:
        return Status.INFEASIBLE if overlap else Status.FAILED
    if solver == "reference":
        return replace(bisect_rho(problem, tol), route="rho search")
    # The scale of the right-hand sides is arbitrary; this scale gives spreads of order 1.
    scale = 1.0 / float(problem.spreads(w).sum())
    program = margin_program(problem)
    program = replace(program, sides=0.5 * scale * margin * program.sides)
    found = solve_program(program, solver, tol).for_problem(problem)
    return replace(found, route="cone program")


def widest_margin(problem: MarginProblem) -> tuple[NDArray, float, bool]:
    """Return the direction of the widest margin relative to the distance of the means.

    The direction is the solution of a linear program: at rho = 0 the program "step" has no cones.
    Returns w with ``w'(xm - ym) = 1``, the margin of w at the best b, and whether a dual solution
    proves that the classes are not separable.
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
    """Minimise the objective of a problem without reduction by reweighted SVMs.

    The gap of the result exceeds `tol` if the iteration does not converge within MAX_ROUNDS rounds
    or the time limit.
    """
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
