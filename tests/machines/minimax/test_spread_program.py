"""The cone programs of the M4: their certificates, both cone solvers, and the printed form."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import random_problem

from mmbench.machines.minimax.spread_program import (
    budget_program,
    fixed_program,
    margin_program,
    solve_spread,
    step_program,
)
from mmbench.solvers.cones import SOLVERS, is_available

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
@pytest.mark.parametrize("removed", [0, 5])
@pytest.mark.parametrize("rho", [0.2, 1.0])
def test_a_cone_a_row_is_the_same_program(solver, removed, rho):
    program = fixed_program(random_problem(1, removed=removed), rho)
    shared = solve_spread(program, solver)
    own = solve_spread(program, solver, cone_a_row=True)
    assert own.violation < 1e-7
    assert own.equation_multiplier == pytest.approx(shared.equation_multiplier, rel=1e-6)
    np.testing.assert_allclose(own.multipliers, shared.multipliers, atol=1e-4)
    if not removed:  # else a spread may exceed its size, and only the solver's slacks know
        assert own.value == pytest.approx(shared.value, rel=1e-6)
