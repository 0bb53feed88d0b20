"""The HiGHS adapter, on programs that can be solved by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from mmbench.allowance import allowed, within
from mmbench.errors import Status
from mmbench.solvers.highs_ import Basis, LpModel, solve_lp


def test_value_and_multipliers_of_a_small_program():
    # max x + y under x + 2y <= 4, 3x + y <= 6: both rows hold at (1.6, 1.2)
    A = np.array([[1.0, 2.0], [3.0, 1.0]])
    found = solve_lp(np.array([-1.0, -1.0]), A, row_upper=np.array([4.0, 6.0]))
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.x, [1.6, 1.2], atol=1e-9)
    np.testing.assert_allclose(found.row_dual, [-0.4, -0.2], atol=1e-9)
    assert found.value == pytest.approx(-2.8)
    assert found.bound == pytest.approx(-2.8)
    assert found.violation < 1e-9


def test_nothing_is_printed():
    """HiGHS prints its name once a process: a new one."""
    code = """
import numpy as np
from mmbench.solvers.highs_ import solve_lp
print(solve_lp(np.ones(1), np.ones((1, 1)), np.full(1, 2.0)).value)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("2.0\n", "")


@pytest.mark.parametrize("method", ["simplex", "ipm"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_bound_and_violation_are_recomputed_whatever_the_method_and_layout(method, layout):
    rng = np.random.RandomState(0)
    A, x = rng.normal(size=(15, 8)), rng.uniform(size=8)
    c = rng.uniform(size=8)
    found = solve_lp(c, layout(A), A @ x - 1, A @ x + 1, 0.0, 2.0, method=method)
    assert found.status is Status.OPTIMAL
    assert found.bound == pytest.approx(found.value, abs=1e-6)
    assert found.violation < 1e-6


@pytest.mark.parametrize("presolve", [True, False])
def test_native_outcomes_are_translated(presolve):
    difference = np.array([[1.0, -1.0]])
    free = solve_lp(np.array([-1.0, 0.0]), difference, 0.0, presolve=presolve)
    assert free.status is Status.UNBOUNDED
    empty = solve_lp(np.ones(2), difference, 3.0, col_upper=1.0, presolve=presolve)
    assert empty.status is Status.INFEASIBLE


def _hard_program(seed=0, n=120):
    rng = np.random.RandomState(seed)
    return -rng.uniform(1, 2, n), rng.uniform(size=(n, n)), rng.uniform(n / 4, n / 3, n)


def test_limits_reach_the_solver():
    c, A, upper = _hard_program()
    few = solve_lp(c, A, row_upper=upper, method="simplex", presolve=False, iteration_limit=3)
    assert few.status is Status.ITERATION_LIMIT
    assert few.iterations <= 4
    with within(allowed(seconds=0.0)):
        none = solve_lp(c, A, row_upper=upper, method="simplex", presolve=False)
    assert none.status is Status.TIME_LIMIT


def test_a_basis_makes_the_next_solution_cheap():
    c, A, upper = _hard_program()
    first = solve_lp(c, A, row_upper=upper, method="simplex", presolve=False)
    again = solve_lp(c, A, row_upper=upper * 1.01, method="simplex", basis=first.basis)
    cold = solve_lp(c, A, row_upper=upper * 1.01, method="simplex", presolve=False)
    assert again.value == pytest.approx(cold.value)
    assert again.iterations < cold.iterations / 2


def test_a_basis_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="another shape"):
        solve_lp(np.ones(2), np.ones((1, 2)), 1.0, basis=Basis(np.zeros(3), np.ones(1)))


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="HiGHS refused"):
        solve_lp(np.ones(2), np.ones((1, 2)), 1.0, method="magic")


def test_a_model_that_grows_ends_where_the_whole_program_does():
    c, A, upper = _hard_program()
    whole = solve_lp(c, A, row_upper=upper)
    model = LpModel()
    model.add_columns(c[:60], 0.0, np.inf)
    model.add_rows(-np.inf, upper[:60], A[:60, :60])
    model.add_columns(np.zeros(1), 0.0, 0.0)  # a column that no later one may be confused with
    assert model.solve().status is Status.OPTIMAL
    model.add_rows(-np.inf, upper[60:], np.pad(A[60:, :60], ((0, 0), (0, 1))))
    model.solve("dual")
    model.add_columns(c[60:], 0.0, np.inf, A[:, 60:])
    assert model.solve("primal").value == pytest.approx(whole.value)
    assert model.shape == (120, 121)


def test_an_unbounded_model_has_a_ray_of_descent():
    model = LpModel()
    model.add_columns([-1.0, 1.0], 0.0, np.inf)
    model.add_rows(-np.inf, 1.0, np.array([[1.0, -2.0]]))
    assert model.solve().status is Status.UNBOUNDED
    ray = model.primal_ray()
    assert ray @ [-1.0, 1.0] < 0
    assert ray @ [1.0, -2.0] <= 1e-9
