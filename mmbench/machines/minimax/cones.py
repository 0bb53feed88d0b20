"""Cone programs of the M4 and the MPM, and the searches over rho of the M4 paper.

    min over x, xi   c'x + sum_i p_i xi_i
    subject to       R x + xi >= h,  xi >= 0          (xi_i = 0 if its penalty is infinite)
                     ||D_j x[:k]|| <= x[s_j]          for a few diagonal D_j
                     q'x = 1                          (if there is a q)

In (2), (3), (21) and (22) of the paper every training point has a separate cone. Two cones suffice,
because only the two spreads of the classes occur; ``cone_a_row=True`` keeps the form of the paper.
Let a be the multipliers of the rows and (z_j, zeta_j) the multipliers of the cones. The dual is

    max   h'a + lambda   subject to   c - R'a - sum_j (zeta_j e_{s_j} + D_j z_j) - lambda q = 0,
    0 <= a <= p,  ||z_j|| <= zeta_j

The programs of the M4 over (w, b, sx, sy) are

    margin     min sx + sy + C sum xi     y_i (w'z_i + b) >= 1 - xi_i
    budget     min sum xi                 the same rows,   sx + sy = 2/rho
    fixed rho  min sum xi                 y_i (w'z_i + b) >= rho s_i - xi_i,   w'(xm - ym) = 1
    step       min t                      the constraints of "fixed rho" with xi_i = t for all i

The program "step" has t as an additional variable; rho is feasible if and only if its minimum is
not positive. With a reduction (parameter nu of the M4) the last row is the constraint on the class
means: ``w'(xm - ym) >= 2 - xi_m`` in "margin" and "budget", and
``w'(xm - ym) >= rho (sx + sy) - xi_m`` in "fixed rho" and "step".

``solver="reference"`` follows the algorithms of the paper: a search over rho with one cone program
per value of rho (`search_budget` for the soft margin, `bisect_rho` for the hard margin) and, for
the normalization "mean", one cone per row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import bisect, minimize_scalar

from mmbench.machines.minimax.problem import MarginProblem, MarginSolution
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.result import Result


@dataclass(frozen=True)
class SpreadProgram:
    """A cone program in the notation of the module docstring."""

    #: Costs c, shape (n_columns,).
    cost: NDArray
    #: Constraint matrix R, shape (n_rows, n_columns).
    rows: NDArray
    #: Right-hand sides h, shape (n_rows,).
    sides: NDArray
    #: Penalties p on the slacks, shape (n_rows,); infinite for rows without slack.
    penalties: NDArray
    #: Diagonals of the matrices D_j, each of shape (k,).
    roots: tuple[NDArray, ...]
    #: Column indices s_j of the spreads, all at least k.
    scales: tuple[int, ...]
    #: Coefficients q of the equation, shape (n_columns,); None without an equation.
    equation: NDArray | None = None

    @property
    def soft(self) -> NDArray:
        """Mask of the rows with slack, shape (n_rows,)."""
        return np.isfinite(self.penalties)

    def value(self, x: NDArray) -> float:
        """Return the objective at `x` with the smallest feasible slacks."""
        slack = np.maximum(0.0, self.sides - self.rows @ x)[self.soft]
        return float(self.cost @ x + self.penalties[self.soft] @ slack)

    def violation(self, x: NDArray) -> float:
        """Return the largest violation at `x` over all constraints without slack."""
        worst = float((self.sides - self.rows @ x)[~self.soft].max(initial=0.0))
        for root, scale in zip(self.roots, self.scales, strict=True):
            worst = max(worst, float(np.linalg.norm(root * x[: len(root)]) - x[scale]))
        if self.equation is not None:
            worst = max(worst, abs(float(self.equation @ x) - 1.0))
        return worst


@dataclass(frozen=True)
class SpreadSolution(Result):
    """Solution of a `SpreadProgram`; `bound` is the dual value that the solver returns."""

    #: Variables x, shape (n_columns,).
    x: NDArray
    #: Multipliers a of the rows, shape (n_rows,).
    multipliers: NDArray
    #: Multiplier lambda of the equation; 0 without an equation.
    equation_multiplier: float

    def for_problem(self, problem: MarginProblem) -> MarginSolution:
        """Return the solution of `problem` along this w, with the bound of these multipliers."""
        w = self.x[: len(problem.delta)]
        return problem.solution(w, self.multipliers, self.iterations)


def solve_spread(
    program: SpreadProgram,
    solver: str = "clarabel",
    tol: float = 1e-9,
    cone_a_row: bool = False,
) -> SpreadSolution:
    """Solve a spread program by Clarabel, or by ECOS if `solver` is "ecos".

    With `cone_a_row` every row that contains exactly one spread is stated as a separate cone.
    """
    layout = _Layout(program, cone_a_row)
    native = "ecos" if solver == "ecos" else "clarabel"
    found = solve_socp(layout.cone_program(), native, tol)
    x = layout.point(found.x)
    return SpreadSolution(
        x,
        layout.multipliers(found.z),
        -float(found.y[0]) if len(found.y) else 0.0,
        value=program.value(x),
        bound=found.bound,
        violation=program.violation(x),
        iterations=found.iterations,
        status=found.status,
    )


class _Cone(NamedTuple):
    """The constraint ``head (x, xi) >= side + ||root * w||`` with a row vector head."""

    #: Column indices and values of the non-zero entries of head, shape (n_nonzero,).
    columns: NDArray
    values: NDArray
    side: float
    root: NDArray


class _Layout:
    """Conversion of a spread program to the standard form of `ConeProgram`.

    The variables are x and the slacks of the rows with finite penalty. A spread is left out if it
    has no cost, does not occur in the equation, and occurs only in rows with separate cones.
    """

    def __init__(self, program: SpreadProgram, cone_a_row: bool):
        self.program = program
        m, n = program.rows.shape
        self.soft = np.flatnonzero(program.soft)
        self.width = n + len(self.soft)
        self.slack_of = np.full(m, -1)
        self.slack_of[self.soft] = np.arange(n, self.width)
        self.owners = self._owners() if cone_a_row else {}
        self.shared = np.array([i for i in range(m) if i not in self.owners], dtype=int)
        self.columns = np.arange(self.width)

    def cone_program(self) -> ConeProgram:
        """Return the cone program, and set `columns` to the indices of its variables."""
        program, n_slack = self.program, len(self.soft)
        n = len(program.cost)
        cones = [self._own_cone(i) for i in self.owners] + self._shared_cones()
        sides = [program.sides[self.shared], np.zeros(n_slack)]
        sides += [np.append(cone.side, np.zeros(len(cone.root))) for cone in cones]
        h = -np.concatenate(sides)
        G = self._inequalities(cones, len(h))
        equation = np.zeros((0 if program.equation is None else 1, self.width))
        if program.equation is not None:
            equation[0, :n] = program.equation
        self.columns = np.flatnonzero((np.diff(G.indptr) > 0) | equation.any(axis=0))
        return ConeProgram(
            c=np.append(program.cost, program.penalties[self.soft])[self.columns],
            A=sparse.csc_array(equation[:, self.columns]),
            b=np.ones(len(equation)),
            G=G[:, self.columns],
            h=h,
            n_linear=len(self.shared) + n_slack,
            cones=tuple(1 + len(cone.root) for cone in cones),
        )

    def _inequalities(self, cones: Sequence[_Cone], height: int) -> sparse.csc_array:
        """Return G: the rows with slacks, ``xi >= 0``, and the cones (head, then diagonal of root).

        G is built from its non-zero entries: for small programs joining sparse blocks with SciPy
        takes longer than the solver.
        """
        rows, slack = self.program.rows[self.shared], self.slack_of[self.shared]
        n_rows, n_slack = len(rows), len(self.soft)
        at, soft = rows.nonzero(), np.flatnonzero(slack >= 0)
        entries = [
            (*at, rows[at]),
            (soft, slack[soft], np.ones(len(soft))),
            (n_rows + np.arange(n_slack), self.slack_of[self.soft], np.ones(n_slack)),
        ]
        start = n_rows + n_slack
        for cone in cones:
            inside = np.arange(len(cone.root))
            entries.append((np.full(len(cone.columns), start), cone.columns, cone.values))
            entries.append((start + 1 + inside, inside, cone.root))
            start += 1 + len(inside)
        i, j, values = map(np.concatenate, zip(*entries, strict=True))
        return sparse.csc_array((-values, (i, j)), shape=(height, self.width))

    def point(self, found: NDArray) -> NDArray:
        """Return x, including the values of the spreads that are not in the cone program."""
        x = np.zeros(self.width)
        x[self.columns] = found
        for column, root in zip(self.program.scales, self.program.roots, strict=True):
            if self.owners or column not in self.columns:
                x[column] = np.linalg.norm(root * x[: len(root)])
        return x[: len(self.program.cost)]

    def multipliers(self, z: NDArray) -> NDArray:
        """Return the multipliers of the rows, shape (n_rows,)."""
        out = np.empty(len(self.program.rows))
        out[self.shared] = z[: len(self.shared)]
        height = len(self.shared) + len(self.soft)
        for i, spread in self.owners.items():
            out[i] = z[height] / -self.program.rows[i, self.program.scales[spread]]
            height += 1 + len(self.program.roots[spread])
        return out

    def _owners(self) -> dict[int, int]:
        """Return {row: index of its spread} for the rows that contain exactly one spread."""
        taken = self.program.rows[:, list(self.program.scales)] < 0
        single = np.flatnonzero(taken.sum(axis=1) == 1)
        return {int(i): int(taken[i].argmax()) for i in single}

    def _own_cone(self, i: int) -> _Cone:
        """Return the cone ``(R_i x + xi_i - h_i)/rho >= ||D_j w||``.

        R_i excludes the coefficient of the spread, which is -rho.
        """
        spread = self.owners[i]
        rho = -float(self.program.rows[i, self.program.scales[spread]])
        head = self.program.rows[i].copy()
        head[self.program.scales[spread]] = 0.0
        columns = head.nonzero()[0]
        values = head[columns]
        if self.slack_of[i] >= 0:
            columns, values = np.append(columns, self.slack_of[i]), np.append(values, 1.0)
        side, root = self.program.sides[i] / rho, self.program.roots[spread]
        return _Cone(columns, values * (1.0 / rho), side, root)

    def _shared_cones(self) -> list[_Cone]:
        program, cones = self.program, []
        for column, root in zip(program.scales, program.roots, strict=True):
            uses = [program.cost[column] != 0, program.rows[self.shared, column].any()]
            uses.append(program.equation is not None and program.equation[column] != 0)
            if any(uses):
                cones.append(_Cone(np.array([column]), np.ones(1), 0.0, root))
        return cones


def margin_program(problem: MarginProblem) -> SpreadProgram:
    """Return the program "margin"."""
    rows, sides, penalties = _unit_rows(problem, problem.C)
    return _program(problem, _columns(problem, sx=1.0, sy=1.0), rows, sides, penalties)


def budget_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the program "budget"."""
    rows, sides, penalties = _unit_rows(problem, 1.0)
    equation = _columns(problem, sx=0.5 * rho, sy=0.5 * rho)
    return _program(problem, _columns(problem), rows, sides, penalties, equation)


def fixed_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the program "fixed rho"."""
    rows, penalties = _rho_rows(problem, rho)
    equation = _columns(problem, problem.delta)
    return _program(problem, _columns(problem), rows, np.zeros(len(rows)), penalties, equation)


def step_program(problem: MarginProblem, rho: float) -> SpreadProgram:
    """Return the program "step"."""
    rows, _ = _rho_rows(problem, rho)
    rows = np.column_stack([rows, np.ones(len(rows))])
    cost = np.append(_columns(problem), 1.0)
    equation = np.append(_columns(problem, problem.delta), 0.0)
    penalties = np.full(len(rows), np.inf)
    return _program(problem, cost, rows, np.zeros(len(rows)), penalties, equation)


def _unit_rows(problem: MarginProblem, unit: float) -> tuple[NDArray, NDArray, NDArray]:
    n = len(problem.y)
    rows = _own_rows(problem, np.zeros((n, 2)))
    sides, penalties = np.ones(n), unit * problem.weights * np.ones(n)
    if problem.removed:
        rows = np.vstack([rows, _columns(problem, problem.delta)])
        sides, penalties = np.append(sides, 2.0), np.append(penalties, unit * problem.removed)
    return rows, sides, penalties


def _rho_rows(problem: MarginProblem, rho: float) -> tuple[NDArray, NDArray]:
    positive = problem.y > 0
    rows = _own_rows(problem, -rho * np.column_stack([positive, ~positive]))
    penalties = problem.weights * np.ones(len(problem.y))
    if problem.removed:
        rows = np.vstack([rows, _columns(problem, problem.delta, sx=-rho, sy=-rho)])
        penalties = np.append(penalties, problem.removed)
    return rows, penalties


def _own_rows(problem: MarginProblem, spreads: NDArray) -> NDArray:
    return np.column_stack([problem.y[:, None] * problem.rows, problem.y, spreads])


def _columns(
    problem: MarginProblem, w: NDArray | None = None, sx: float = 0.0, sy: float = 0.0
) -> NDArray:
    """Return the coefficient vector of (w, b, sx, sy) with coefficient 0 for b."""
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


# -- searches over rho -----------------------------------------------------------------------------


def solve_program(program: SpreadProgram, solver: str, tol: float) -> SpreadSolution:
    """Solve a spread program with the tolerance ``min(1e-9, 1e-3 * tol)``."""
    return solve_spread(program, solver, min(1e-9, 1e-3 * tol))


def search_budget(problem: MarginProblem, tol: float) -> MarginSolution:
    """Minimise the soft-margin objective over the budget ``sx + sy = 2/rho``.

    The objective is a convex function of the budget. The search gives no multipliers for the joint
    problem in w, b and the budget; the program "margin" is also solved, for the lower bound.
    """
    best = problem.trivial_solution()

    def value(budget: float) -> float:
        nonlocal best
        program = budget_program(problem, 2.0 / budget)
        found = solve_program(program, "reference", tol)
        a = problem.C * found.multipliers  # the program has unit penalties
        iterations = best.iterations + found.iterations
        best = best.better(problem.solution(found.x[: len(problem.delta)], a, iterations))
        return float(budget + problem.C * program.value(found.x))

    most = problem.trivial[0]
    minimize_scalar(value, bounds=(0.0, most), method="bounded", options={"xatol": 1e-9 * most})
    joint = solve_program(margin_program(problem), "reference", tol).for_problem(problem)
    return replace(best, bound=max(best.bound, joint.bound))


def bisect_rho(problem: MarginProblem, tol: float) -> MarginSolution:
    """Find the largest rho for which (8), (9) are feasible, by bisection.

    The value kappa of the MPM is an upper bound on rho.
    """
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
