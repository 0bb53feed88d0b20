"""The HiGHS adapter, on programs that can be solved by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from mmbench.allowance import allowed, within
from mmbench.errors import Status
from mmbench.solvers.highs_ import solve_lp


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


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_bound_and_violation_are_recomputed_whatever_the_layout(layout):
    rng = np.random.RandomState(0)
    A, x = rng.normal(size=(15, 8)), rng.uniform(size=8)
    c = rng.uniform(size=8)
    found = solve_lp(c, layout(A), A @ x - 1, A @ x + 1, 0.0, 2.0)
    assert found.status is Status.OPTIMAL
    assert found.bound == pytest.approx(found.value, abs=1e-6)
    assert found.violation < 1e-6


def test_native_outcomes_are_translated():
    difference = np.array([[1.0, -1.0]])
    free = solve_lp(np.array([-1.0, 0.0]), difference, 0.0)
    assert free.status is Status.UNBOUNDED
    empty = solve_lp(np.ones(2), difference, 3.0, col_upper=1.0)
    assert empty.status is Status.INFEASIBLE


def _hard_program(seed=0, n=120):
    rng = np.random.RandomState(seed)
    return -rng.uniform(1, 2, n), rng.uniform(size=(n, n)), rng.uniform(n / 4, n / 3, n)


def test_limits_reach_the_solver():
    c, A, upper = _hard_program()
    few = solve_lp(c, A, row_upper=upper, iteration_limit=3)
    assert few.status is Status.ITERATION_LIMIT
    assert few.iterations <= 4
    with within(allowed(seconds=0.0)):
        none = solve_lp(c, A, row_upper=upper)
    assert none.status is Status.TIME_LIMIT


def test_an_optimal_basis_has_a_basic_variable_per_row():
    c, A, upper = _hard_program()
    columns, rows = solve_lp(c, A, row_upper=upper).basic
    assert columns.sum() + rows.sum() == len(upper)


def test_an_impossible_option_is_refused_in_one_line():
    with pytest.raises(ValueError, match="HiGHS refused"):
        solve_lp(np.ones(1), np.ones((1, 1)), 1.0, tol=-1.0)
