"""The forms of the M4 as cone programs with two spreads.

    margin     min sx + sy + C sum xi     y_i (w'z_i + b) >= 1 - xi_i
    budget     min sum xi                 the same rows,   sx + sy = 2/rho
    fixed rho  min sum xi                 y_i (w'z_i + b) >= rho s_i - xi_i,   w'(xm - ym) = 1
    step       min t                      the same with t for every xi_i: rho is feasible iff t <= 0

With a reduction the last row is that of the class means: ``w'(xm - ym) >= 2 - xi_m`` in the first
two, ``>= rho (sx + sy) - xi_m`` in the others. All are over (w, b, sx, sy), "step" over t too.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.minimax.m4_problem import MarginProblem
from mmbench.machines.minimax.spread_program import SpreadProgram


def margin_program(problem: MarginProblem) -> SpreadProgram:
    """Return "margin"."""
    rows, sides, penalties = _unit_rows(problem, problem.C)
    return _program(problem, _columns(problem, sx=1.0, sy=1.0), rows, sides, penalties)


def budget_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return "budget"."""
    rows, sides, penalties = _unit_rows(problem, 1.0)
    equation = _columns(problem, sx=0.5 * rho, sy=0.5 * rho)
    return _program(problem, _columns(problem), rows, sides, penalties, equation)


def fixed_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return "fixed rho"."""
    rows, penalties = _rho_rows(problem, rho)
    equation = _columns(problem, problem.delta)
    return _program(problem, _columns(problem), rows, np.zeros(len(rows)), penalties, equation)


def step_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return "step"."""
    rows, _ = _rho_rows(problem, rho)
    rows = np.column_stack([rows, np.ones(len(rows))])
    cost = np.append(_columns(problem), 1.0)
    equation = np.append(_columns(problem, problem.delta), 0.0)
    penalties = np.full(len(rows), np.inf)
    return _program(problem, cost, rows, np.zeros(len(rows)), penalties, equation)


def _unit_rows(problem: MarginProblem, unit: float) -> tuple[NDArray, NDArray, NDArray]:
    n = len(problem.y)
    rows = _own_rows(problem, np.zeros((n, 2)))
    sides, penalties = np.ones(n), np.full(n, unit)
    if problem.removed:
        rows = np.vstack([rows, _columns(problem, problem.delta)])
        sides, penalties = np.append(sides, 2.0), np.append(penalties, unit * problem.removed)
    return rows, sides, penalties


def _rho_rows(problem: MarginProblem, rho: float) -> tuple[NDArray, NDArray]:
    positive = problem.y > 0
    rows = _own_rows(problem, -rho * np.column_stack([positive, ~positive]))
    penalties = np.ones(len(problem.y))
    if problem.removed:
        rows = np.vstack([rows, _columns(problem, problem.delta, sx=-rho, sy=-rho)])
        penalties = np.append(penalties, float(problem.removed))
    return rows, penalties


def _own_rows(problem: MarginProblem, spreads: NDArray) -> NDArray:
    return np.column_stack([problem.y[:, None] * problem.rows, problem.y, spreads])


def _columns(
    problem: MarginProblem, w: NDArray | None = None, sx: float = 0.0, sy: float = 0.0
) -> NDArray:
    """Return coefficients of (w, b, sx, sy), that of b zero."""
    w = np.zeros(len(problem.delta)) if w is None else w
    return np.concatenate([w, [0.0, sx, sy]])


def _program(
    problem: MarginProblem,
    cost: NDArray,
    rows: NDArray,
    sides: NDArray,
    penalties: NDArray,
    equation: NDArray | None = None,
) -> SpreadProgram:
    k = len(problem.delta)
    roots = (np.sqrt(problem.var_x), np.sqrt(problem.var_y))
    return SpreadProgram(cost, rows, sides, penalties, roots, (k + 1, k + 2), equation)
