"""The Clarabel adapter, on programs that can be solved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mmbench.allowance import allowed, within
from mmbench.errors import Status
from mmbench.solvers.clarabel_ import solve_qp

EYE = sparse.csc_array(np.eye(2))
SUM = sparse.csc_array([[1.0, 1.0]])
FREE = np.full(2, np.inf)


def test_projection_onto_a_line_and_its_multiplier():
    found = solve_qp(EYE, np.zeros(2), SUM, np.array([1.0]), -FREE, FREE)
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-8)
    np.testing.assert_allclose(found.multipliers, [-0.5], atol=1e-8)


def test_only_the_upper_triangle_is_read_and_bounds_hold():
    P = sparse.csc_array([[2.0, 1.0], [1.0, 2.0]])
    found = solve_qp(P, np.array([-4.0, -4.0]), SUM, np.array([1.0]), -FREE, np.array([0.2, 9.0]))
    np.testing.assert_allclose(found.x, [0.2, 0.8], atol=1e-6)
    assert [found.value, found.bound] == pytest.approx([-3.16, -3.16])
    assert found.violation < 1e-7


def test_outcomes_are_translated():
    none, side = sparse.csc_array((2, 2)), np.array([1.0])
    assert solve_qp(none, np.array([1.0, 0]), SUM, side, -FREE, FREE).status is Status.UNBOUNDED
    high = np.array([0.1, 0.1])
    assert solve_qp(EYE, np.zeros(2), SUM, side, -FREE, high).status is Status.INFEASIBLE


def test_the_time_limit_is_passed_on():
    factor = np.random.RandomState(0).normal(size=(200, 200))
    P, total = sparse.csc_array(factor @ factor.T), sparse.csc_array(np.ones((1, 200)))
    bounds = -np.ones(200), np.ones(200)
    with within(allowed(seconds=1e-6)):
        found = solve_qp(P, factor[0], total, np.zeros(1), *bounds)
    assert found.status is Status.TIME_LIMIT
