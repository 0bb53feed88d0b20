"""The linear SVM in the space of its features reaches what pairwise steps reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmbench.solvers.linear_svm import solve_inside, solve_near
from mmbench.solvers.svm_dual.problem import PiecewiseQP
from mmbench.solvers.svm_dual.smo import solve_smo


@pytest.fixture(params=["apart", "mixed", "repeated"])
def rows(request):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(300) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(300, 4)) + (3.0 if request.param == "apart" else 0.5) * y[:, None]
    if request.param == "repeated":  # rows share their multipliers in many ways
        X = np.round(X)
    return X - X.mean(axis=0), y


def dual(X, y, C):
    return PiecewiseQP(X @ X.T, np.sort(np.column_stack([0 * y, C * y]), axis=1), -y[:, None])


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_interior_point_and_pairwise_steps_agree(rows, C):
    X, y = rows
    problem = dual(X, y, C)
    slow, fast = solve_smo(problem, tol=1e-8), solve_inside(X, y, C, tol=1e-4)
    assert fast is not None
    assert fast.value == pytest.approx(slow.value, rel=1e-6)
    assert problem.violation(fast.u) <= 1e-12 * C * len(y)
    np.testing.assert_allclose(X.T @ fast.u, X.T @ slow.u, atol=1e-3)


def test_a_neighbour_settles_to_rounding_or_says_that_it_does_not(rows):
    X, y = rows
    first = solve_smo(dual(X, y, 1.0), tol=1e-8)
    problem = dual(X, y, 1.05)
    found = solve_near(X, y, 1.05, 1.05 * first.u, tol=1e-9)
    if found is not None:
        slow = solve_smo(problem, tol=1e-9)
        assert found.value == pytest.approx(slow.value, rel=1e-9)
    assert solve_near(X, y, 1.0, np.zeros(len(y))) is None


def test_a_neighbour_settles_beside_given_decisions(rows):
    X, y = rows
    offset = 0.5 * X[:, 0] + 0.1
    problem = dual(X, y, 1.05)
    problem = replace(problem, slopes=problem.slopes + offset[:, None])
    slow = solve_smo(problem, tol=1e-9)
    found = solve_near(X, y, 1.05, slow.u, 1e-7, offset)
    if found is None:  # equal rows may share their multipliers in a way that leaves all free
        assert len(np.unique(X, axis=0)) < len(X)
        return
    assert found.value == pytest.approx(slow.value, rel=1e-9)
    np.testing.assert_allclose(found.decision, X @ (X.T @ found.u), atol=1e-12)
    assert found.bias == pytest.approx(slow.bias, abs=1e-6)


@pytest.mark.parametrize("C", [1.0, 1e4, 1e12])
def test_a_C_far_above_all_multipliers_takes_the_interior_point_no_longer(C):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(200, 3)) + 3.0 * y[:, None]
    found, hard = solve_inside(X, y, C), solve_inside(X, y, 1e3)
    assert found is not None
    np.testing.assert_allclose(X.T @ found.u, X.T @ hard.u, rtol=1e-6)
    assert found.iterations < 60
