"""Cone programs of the M4 and the MPM, and searches over the margin rho of the M4.

    min over x, xi   c'x + sum_i p_i xi_i
    subject to       R x + xi >= h,  xi >= 0          (xi_i = 0 if the penalty p_i is infinite)
                     ||D_j x[:k]|| <= x[s_j]          for each class spread, with D_j diagonal
                     q'x = 1                          (optional)

    max   h'a + lambda   subject to   c - R'a - sum_j (zeta_j e_{s_j} + D_j z_j) - lambda q = 0,
    0 <= a <= p,  ||z_j|| <= zeta_j                   (dual)

The first k entries of x are w, and x[s_j] is a class spread. In the paper there is one cone per
training row. The M4 has four programs; s_i is the spread of row z_i's class:

    margin     min sx + sy + C sum xi     y_i (w'z_i + b) >= 1 - xi_i
    budget     min sum xi                 y_i (w'z_i + b) >= 1 - xi_i,         sx + sy = 2/rho
    fixed rho  min sum xi                 y_i (w'z_i + b) >= rho s_i - xi_i,   w'(xm - ym) = 1
    step       min t                      the constraints of "fixed rho" with xi_i = t for all i

A margin rho is feasible without slack if and only if the minimum of "step" is at most 0. If the
reduction removes points, ``w'(xm - ym) >= 2 - xi_m`` is added in "margin" and "budget", otherwise
``w'(xm - ym) >= rho (sx + sy) - xi_m``. As the paper, ``solver="reference"`` solves one program per
rho: by bisection, or over the budget ``sx + sy``, in which the objective of "margin" is convex.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import bisect, minimize_scalar

from mmbench.machines.minimax.margin_problem import MarginProblem, MarginSolution
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.result import Result


@dataclass(frozen=True)
class SpreadProgram:
    """Data of a cone program, with the symbols of the module docstring."""

    #: Costs c, shape (n_columns,).
    cost: NDArray
    #: Constraint matrix R, shape (n_rows, n_columns).
    rows: NDArray
    #: Right-hand sides h, shape (n_rows,).
    sides: NDArray
    #: Penalties p on the slacks, shape (n_rows,); infinite for constraints without a slack.
    penalties: NDArray
    #: Diagonals of the matrices D_j in the cones ``||D_j w|| <= x[s_j]``, each of shape (k,).
    roots: tuple[NDArray, ...]
    #: Indices s_j of the class spreads in x. The first k entries of x are w.
    scales: tuple[int, ...]
    #: Coefficients q of the equation ``q'x = 1``, shape (n_columns,), or None without an equation.
    equation: NDArray | None = None

    @property
    def soft(self) -> NDArray:
        """Boolean mask of the constraints with a slack, shape (n_rows,)."""
        return np.isfinite(self.penalties)

    def value(self, x: NDArray) -> float:
        """Return the objective at `x`, with the smallest feasible slacks."""
        slack = np.maximum(0.0, self.sides - self.rows @ x)[self.soft]
        return float(self.cost @ x + self.penalties[self.soft] @ slack)

    def violation(self, x: NDArray) -> float:
        """Return the largest violation at `x` over all constraints without a slack."""
        worst = float((self.sides - self.rows @ x)[~self.soft].max(initial=0.0))
        for root, scale in zip(self.roots, self.scales, strict=True):
            worst = max(worst, float(np.linalg.norm(root * x[: len(root)]) - x[scale]))
        if self.equation is not None:
            worst = max(worst, abs(float(self.equation @ x) - 1.0))
        return worst


@dataclass(frozen=True)
class SpreadSolution(Result):
    """Solution of a `SpreadProgram`; `bound` is the dual objective value found by the solver."""

    #: Variables x, shape (n_columns,).
    x: NDArray
    #: Multipliers a of the linear constraints, shape (n_rows,).
    multipliers: NDArray
    #: Multiplier lambda of the equation ``q'x = 1``; 0 without an equation.
    equation_multiplier: float

    def for_problem(self, problem: MarginProblem) -> MarginSolution:
        """Convert to a `MarginSolution`, with a lower bound from the multipliers."""
        w = self.x[: len(problem.delta)]
        return problem.solution(w, self.multipliers, self.iterations)


def solve_spread(
    program: SpreadProgram, solver: str = "clarabel", tol: float = 1e-9
) -> SpreadSolution:
    """Solve a `SpreadProgram` by Clarabel, or by ECOS if `solver` is "ecos".

    The variables of the cone program are x and one slack per constraint with a finite penalty. A
    class spread is a variable of the cone program only if the spread occurs in the objective, in
    the equation ``q'x = 1`` or in a linear constraint.
    """
    (m, n), soft = program.rows.shape, np.flatnonzero(program.soft)
    n_all = n + len(soft)
    equation = np.zeros((0 if program.equation is None else 1, n_all))
    if program.equation is not None:
        equation[0, :n] = program.equation
    cost = np.append(program.cost, program.penalties[soft])
    occurs = (cost != 0)[:n] | program.rows.any(axis=0) | equation[:, :n].any(axis=0)
    cones = [pair for pair in zip(program.scales, program.roots, strict=True) if occurs[pair[0]]]
    # G is built from its non-zero entries. For small programs, joining sparse blocks with SciPy
    # would take longer than solving the program.
    at, slack, start = program.rows.nonzero(), np.arange(n, n_all), m + len(soft)
    ones = np.ones(len(soft))
    entries = [(*at, program.rows[at]), (soft, slack, ones), (np.arange(m, start), slack, ones)]
    for column, root in cones:
        inside = np.arange(len(root))
        entries.append(
            (np.append(start, start + 1 + inside), np.append(column, inside), np.append(1.0, root))
        )
        start += 1 + len(root)
    i, j, values = map(np.concatenate, zip(*entries, strict=True))
    G = sparse.csc_array((-values, (i, j)), shape=(start, n_all))
    used = np.flatnonzero((np.diff(G.indptr) > 0) | equation.any(axis=0))
    cone_program = ConeProgram(
        c=cost[used],
        A=sparse.csc_array(equation[:, used]),
        b=np.ones(len(equation)),
        G=G[:, used],
        h=-np.append(program.sides, np.zeros(start - m)),
        n_linear=m + len(soft),
        cones=tuple(1 + len(root) for _, root in cones),
    )
    found = solve_socp(cone_program, "ecos" if solver == "ecos" else "clarabel", tol)
    x = np.zeros(n_all)
    x[used] = found.x
    for column, root in zip(program.scales, program.roots, strict=True):
        if not occurs[column]:
            x[column] = np.linalg.norm(root * x[: len(root)])
    x = x[:n]
    return SpreadSolution(
        x,
        found.z[:m],
        -float(found.y[0]) if len(found.y) else 0.0,
        value=program.value(x),
        bound=found.bound,
        violation=program.violation(x),
        iterations=found.iterations,
        status=found.status,
    )


def margin_program(problem: MarginProblem) -> SpreadProgram:
    """Return the cone program "margin" of the module docstring."""
    return _program(problem, _columns(problem, sx=1.0, sy=1.0), 0.0, 1.0, problem.C)


def budget_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the cone program "budget" of the module docstring."""
    equation = _columns(problem, sx=0.5 * rho, sy=0.5 * rho)
    return _program(problem, _columns(problem), 0.0, 1.0, equation=equation)


def fixed_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the cone program "fixed rho" of the module docstring."""
    equation = _columns(problem, problem.delta)
    return _program(problem, _columns(problem), rho, 0.0, equation=equation)


def step_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the cone program "step" of the module docstring."""
    fixed = fixed_program(problem, rho)
    return replace(
        fixed,
        cost=np.append(fixed.cost, 1.0),
        rows=np.column_stack([fixed.rows, np.ones(len(fixed.rows))]),
        penalties=np.full(len(fixed.rows), np.inf),
        equation=np.append(_columns(problem, problem.delta), 0.0),
    )


def _columns(
    problem: MarginProblem, w: NDArray | None = None, sx: float = 0.0, sy: float = 0.0
) -> NDArray:
    """Return a coefficient vector for the variables (w, b, sx, sy), with the entry 0 for b."""
    w = np.zeros(len(problem.delta)) if w is None else w
    return np.concatenate([w, [0.0, sx, sy]])


def _program(
    problem: MarginProblem,
    cost: NDArray,
    rho: float,
    side: float,
    unit: float = 1.0,
    equation: NDArray | None = None,
) -> SpreadProgram:
    """Return a program with the constraints ``y_i (w'z_i + b) >= side + rho s_i - xi_i``.

    The number s_i is sx for positive rows and sy for negative rows. The penalty on the slack xi_i
    is the row weight times `unit`.
    """
    n, k, positive = len(problem.y), len(problem.delta), problem.y > 0
    spreads = -rho * np.column_stack([positive, ~positive])
    rows = np.column_stack([problem.y[:, None] * problem.rows, problem.y, spreads])
    sides, penalties = np.full(n, side), unit * problem.weights * np.ones(n)
    if problem.removed:
        # the last constraint is the constraint on the class means
        rows = np.vstack([rows, _columns(problem, problem.delta, -rho, -rho)])
        sides = np.append(sides, 2.0 * side)
        penalties = np.append(penalties, unit * problem.removed)
    roots = (np.sqrt(problem.var_x), np.sqrt(problem.var_y))
    return SpreadProgram(cost, rows, sides, penalties, roots, (k + 1, k + 2), equation)


# -- searches over rho -----------------------------------------------------------------------------


def solve_program(program: SpreadProgram, solver: str, tol: float) -> SpreadSolution:
    """Solve a `SpreadProgram` with the tolerance ``min(1e-9, 1e-3 * tol)``."""
    return solve_spread(program, solver, min(1e-9, 1e-3 * tol))


def search_budget(problem: MarginProblem, tol: float) -> MarginSolution:
    """Minimise the soft-margin objective of the M4 over the budget, the sum ``sx + sy = 2/rho``.

    The soft-margin objective is a convex function of the budget. Each solution of the program
    "budget" gives a lower bound on the optimal value. Another lower bound is computed from the
    program "margin". The largest of all lower bounds is returned.
    """
    best = problem.trivial_solution()

    def value(budget: float) -> float:
        nonlocal best
        program = budget_program(problem, 2.0 / budget)
        found = solve_program(program, "reference", tol)
        # in the program "budget", the penalty on the slack of a row is the row weight, without the
        # factor C
        a = problem.C * found.multipliers
        iterations = best.iterations + found.iterations
        best = best.better(problem.solution(found.x[: len(problem.delta)], a, iterations))
        return float(budget + problem.C * program.value(found.x))

    most = problem.trivial[0]
    minimize_scalar(value, bounds=(0.0, most), method="bounded", options={"xatol": 1e-9 * most})
    joint = solve_program(margin_program(problem), "reference", tol).for_problem(problem)
    return replace(best, bound=max(best.bound, joint.bound))


def bisect_rho(problem: MarginProblem, tol: float) -> MarginSolution:
    """Find the largest margin rho for which (8), (9) of the M4 paper are feasible, by bisection.

    The search starts with the interval from 0 to kappa, because the classes are separable, and the
    value kappa of the MPM is an upper bound on rho.
    """
    k = len(problem.delta)
    kappa = 1.0 / minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    best = problem.trivial_solution()

    def step(rho: float) -> float:
        nonlocal best
        if rho in (0.0, kappa):  # Clarabel may fail; the signs at both ends are known
            return rho - 0.5 * kappa
        found = solve_program(step_program(problem, rho), "reference", 1e-3 * tol)
        best = best.better(
            problem.solution(found.x[:k], found.multipliers, best.iterations + found.iterations)
        )
        return float(found.x[-1])

    bisect(step, 0.0, kappa, xtol=0.1 * tol * kappa)
    return best
