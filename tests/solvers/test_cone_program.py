"""Cone programs: known answers, one verb for all solvers, and numbers that are recomputed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mmbench.errors import Status
from mmbench.solvers import cones as socp
from mmbench.solvers.cones import SOLVERS, ConeProgram, is_available, solve_socp

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
    assert found.value == pytest.approx(np.sqrt(2))
    assert found.bound == pytest.approx(np.sqrt(2))
    assert found.violation < 1e-7


@pytest.mark.parametrize("solver", AVAILABLE)
@pytest.mark.parametrize(
    ("target", "cost", "status"),
    [(-2.0, [0.0, 1.0, 1.0], Status.OPTIMAL), (2.0, [0.0, 0.0, -1.0], Status.UNBOUNDED)],
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
    def liar(program, tol, max_iter):
        return np.array([-1.0, 3.0, 0.0]), np.zeros(1), np.zeros(4), 1, Status.OPTIMAL

    monkeypatch.setitem(SOLVERS, "clarabel", liar)
    found = solve_socp(least_norm())
    assert found.violation == pytest.approx(np.sqrt(10))  # ||x|| <= t is missed by most
    assert found.value == 0


def test_missing_solver_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(socp, "find_spec", lambda package: None)
    with pytest.raises(ModuleNotFoundError, match="pip install ecos"):
        solve_socp(least_norm(), "ecos")


def test_least_shift_that_makes_a_matrix_semidefinite():
    """min t subject to t I - M semidefinite: the largest eigenvalue of M."""
    M = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 0.5], [0.0, 0.5, 3.0]])
    columns, rows = np.tril_indices(3)
    scale = np.where(columns == rows, 1.0, np.sqrt(2.0))
    program = ConeProgram(
        c=np.ones(1),
        A=sparse.csc_array((0, 1)),
        b=np.zeros(0),
        G=sparse.csc_array(-(columns == rows).astype(float)[:, None]),
        h=-scale * M[columns, rows],
        n_linear=0,
        cones=(),
        matrix_order=3,
    )
    found = solve_socp(program)
    largest = np.linalg.eigvalsh(M)[-1]
    assert [found.value, found.bound] == pytest.approx([largest] * 2)
    assert found.violation < 1e-7
    assert program.outside(program.h - program.G @ [largest - 0.1]) == pytest.approx(0.1)
