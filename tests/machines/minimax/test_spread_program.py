"""The cone programs of the M4: their certificates, both cone solvers, and the printed form."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import random_problem
from scipy import sparse

from mmbench.machines.minimax.spread_program import (
    budget_program,
    fixed_program,
    margin_program,
    solve_spread,
    step_program,
)
from mmbench.solvers.cones import SOLVERS, ConeProgram, is_available, solve_socp

AVAILABLE = [name for name in SOLVERS if is_available(name)]

PROGRAMS = {
    "margin": lambda p: margin_program(p),
    "budget": lambda p: budget_program(p, 1.0),
    "fixed": lambda p: fixed_program(p, 1.0),
    "step": lambda p: step_program(p, 0.5),
    "step at zero": lambda p: step_program(p, 0.0),
}


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize("removed", [0, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_solution_is_feasible_and_its_multipliers_prove_it(solver, name, removed):
    program = PROGRAMS[name](random_problem(0, removed=removed))
    found = solve_spread(program, solver)
    assert found.violation < 1e-7
    dual = program.sides @ found.multipliers + found.equation_multiplier
    assert dual == pytest.approx(found.value, rel=1e-6, abs=1e-6)
    assert found.bound == pytest.approx(dual, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize("rho", [0.2, 1.0])
def test_a_cone_per_row_as_in_the_paper_gives_the_same_optimum(solver, rho):
    problem = random_problem(1)
    n, k = problem.rows.shape
    heads = np.column_stack([problem.y[:, None] * problem.rows, problem.y, np.eye(n)]) / rho
    roots = [
        np.pad(np.diag(np.sqrt(problem.var_x if y > 0 else problem.var_y)), ((0, 0), (0, 1 + n)))
        for y in problem.y
    ]
    cones = np.vstack([np.vstack([head, root]) for head, root in zip(heads, roots, strict=True)])
    own = ConeProgram(
        c=np.append(np.zeros(k + 1), np.ones(n)),
        A=sparse.csc_array(np.append(problem.delta, np.zeros(1 + n))[None]),
        b=np.ones(1),
        G=sparse.csc_array(-np.vstack([np.eye(1 + k + n)[1 + k :], cones])),
        h=np.zeros(n + len(cones)),
        n_linear=n,
        cones=(1 + k,) * n,
    )
    shared = solve_spread(fixed_program(problem, rho), solver)
    assert solve_socp(own, solver).value == pytest.approx(shared.value, rel=1e-6)
