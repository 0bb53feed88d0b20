"""The interior point for sums of norms reaches what a cone solver reaches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import random_problem

from mmbench.machines.minimax.soft import solve_soft
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.sum_of_norms import SumOfNorms


def solved(problem, rows=None):
    squares = np.stack([problem.var_x, problem.var_y])
    point = SumOfNorms(problem.rows if rows is None else rows, problem.y, problem.C, squares)
    point.run(1e-10)
    return point


@pytest.mark.parametrize("C", [0.005, 0.03, 0.3, 50.0, 1e4])
def test_it_reaches_a_cone_solver_s_objective(C):
    """The smallest C leaves w = 0, which no e may be taken for before it is proven."""
    problem = random_problem(0, n=300, k=6, C=C)
    point = solved(problem)
    found = problem.solution(point.at["w"], point.at["a"], point.iterations)
    assert point.gap <= 1e-10
    assert found.closed(1e-9)
    assert found.is_trivial == (C == 0.005)
    assert found.value == pytest.approx(solve_soft(problem, "clarabel").value, rel=1e-8)


def test_it_takes_rows_by_their_products():
    problem = random_problem(1, n=200)
    mix = np.random.RandomState(1).normal(size=(4, 4))
    rows = MappedRows(problem.rows @ np.linalg.inv(mix) + 3.0, np.full(4, 3.0), mix)
    np.testing.assert_allclose(solved(problem, rows).at["w"], solved(problem).at["w"], rtol=1e-4)


def test_equal_class_means_are_no_obstacle():
    problem = random_problem(2, n=60)
    rows, y = np.vstack([problem.rows, -problem.rows]), np.append(problem.y, problem.y)
    squares = np.stack([problem.var_x, problem.var_y])
    point = SumOfNorms(rows, y, 1.0, squares)
    point.run(1e-9)
    assert point.gap <= 1e-9
