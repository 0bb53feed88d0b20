"""Cone programs: known answers, one verb for all solvers, and numbers that are recomputed."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.minimax.cone import solve_spread
from mmbench.machines.minimax.interior import solve_interior
from mmbench.machines.minimax.m4_programs import (
    budget_program,
    fixed_program,
    margin_program,
    step_program,
)
from mmbench.solvers import cone_program as socp
from mmbench.solvers.cone_program import SOLVERS, ConeProgram, is_available, solve_socp

AVAILABLE = [name for name in SOLVERS if is_available(name)]


def least_norm(target=2.0):
    """min t subject to x1 + x2 = target, ||x|| <= t over (x1, x2, t): target / sqrt(2)."""
    return ConeProgram(
        c=np.array([0.0, 0.0, 1.0]),
        A=sparse.csc_array(np.array([[1.0, 1.0, 0.0]])),
        b=np.array([target]),
        G=sparse.csc_array(-np.array([[1.0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]])),
        h=np.zeros(4),
        n_linear=1,
        cones=(3,),
    )


@pytest.mark.parametrize("solver", AVAILABLE)
def test_known_answer_and_its_certificate(solver):
    found = solve_socp(least_norm(), solver)
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.x, [1, 1, np.sqrt(2)], atol=1e-4)
    assert found.objective == pytest.approx(np.sqrt(2))
    assert found.bound == pytest.approx(np.sqrt(2))
    assert found.max_violation < 1e-7


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize(
    ("target", "cost", "status"),
    [
        (-2.0, [0.0, 1.0, 1.0], Status.OPTIMAL),
        (2.0, [0.0, 0.0, -1.0], Status.UNBOUNDED),
    ],
)
def test_native_status_is_translated(solver, target, cost, status):
    program = least_norm(target)
    program = ConeProgram(
        np.array(cost), program.A, program.b, program.G, program.h, program.n_linear, program.cones
    )
    assert solve_socp(program, solver).status is status


@pytest.mark.parametrize("solver", AVAILABLE)
def test_infeasible(solver):
    """x1 >= 0 and, by its equation, x1 = -1."""
    program = least_norm(-1.0)
    A = sparse.csc_array(np.array([[1.0, 0.0, 0.0]]))
    program = ConeProgram(
        program.c, A, program.b, program.G, program.h, program.n_linear, program.cones
    )
    assert solve_socp(program, solver).status is Status.INFEASIBLE


@pytest.mark.parametrize("solver", AVAILABLE)
def test_iteration_limit_is_passed_on(solver):
    found = solve_socp(least_norm(), solver, max_iter=1)
    assert found.status in (Status.ITERATION_LIMIT, Status.INACCURATE)


def test_violation_is_recomputed_not_believed(monkeypatch):
    class Liar:
        @staticmethod
        def solve(program, tol, max_iter, time_limit):
            x = np.array([-1.0, 3.0, 0.0])
            return socp.ConeSolution(x, np.zeros(1), np.zeros(4), 1, Status.OPTIMAL)

    monkeypatch.setattr(socp, "import_module", lambda name: Liar)
    found = solve_socp(least_norm())
    assert found.max_violation == pytest.approx(np.sqrt(10))  # ||x|| <= t is missed by most
    assert found.objective == 0


def test_missing_solver_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(socp, "find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match=r"mmbench\[ecos\]"):
        solve_socp(least_norm(), "ecos")


# -- spread programs ---------------------------------------------------------------------------


PROGRAMS = {
    "margin": lambda p: margin_program(p),
    "budget": lambda p: budget_program(p, 1.0),
    "fixed": lambda p: fixed_program(p, 1.0),
    "step": lambda p: step_program(p, 0.5),
    "step at zero": lambda p: step_program(p, 0.0),
}


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 10**6), st.sampled_from([0, 5]))
@settings(max_examples=40, deadline=None)
def test_interior_point_agrees_with_clarabel(name, seed, removed):
    program = PROGRAMS[name](random_problem(seed, removed=removed))
    ours, theirs = solve_interior(program), solve_spread(program, "clarabel")
    assert program.violation(ours.x) < 1e-8
    assert program.value(ours.x) == pytest.approx(program.value(theirs.x), rel=1e-6, abs=1e-7)
    dual = program.sides @ ours.multipliers + ours.price_of_equation
    assert dual == pytest.approx(program.value(ours.x), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_cone_solvers_agree(solver, name):
    program = PROGRAMS[name](random_problem(0))
    ours, theirs = solve_interior(program), solve_spread(program, solver)
    assert program.value(theirs.x) == pytest.approx(program.value(ours.x), rel=1e-6)
    np.testing.assert_allclose(theirs.multipliers, ours.multipliers, atol=1e-4)


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize("removed", [0, 5])
@pytest.mark.parametrize("rho", [0.2, 1.0])
def test_a_cone_a_row_is_the_same_program(solver, removed, rho):
    program = fixed_program(random_problem(1, removed=removed), rho)
    shared = solve_spread(program, solver)
    own = solve_spread(program, solver, cone_a_row=True)
    assert program.violation(own.x) < 1e-7
    assert own.price_of_equation == pytest.approx(shared.price_of_equation, rel=1e-6)
    np.testing.assert_allclose(own.multipliers, shared.multipliers, atol=1e-4)
    if not removed:  # else a spread may exceed its size, and only the solver's slacks know
        assert program.value(own.x) == pytest.approx(program.value(shared.x), rel=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e3, 1e6])
def test_interior_point_at_extreme_prices(C):
    program = margin_program(random_problem(2, C=C))
    ours, theirs = solve_interior(program), solve_spread(program)
    assert program.value(ours.x) == pytest.approx(program.value(theirs.x), rel=1e-6)


def test_interior_point_stops_at_its_limit():
    program = margin_program(random_problem(0))
    assert solve_interior(program, max_iter=2).status is Status.ITERATION_LIMIT


def test_interior_point_on_an_impossible_program_ends_and_says_so():
    problem = random_problem(0, C=np.inf)  # the classes overlap
    assert solve_interior(margin_program(problem)).status is not Status.OPTIMAL
