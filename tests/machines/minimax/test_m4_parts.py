"""What the routes of the M4 are made of: bias, scale, bounds, interior point, line searches."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.minimax_family import gaussians, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from mmbench.machines import LDA, M4, MEMPM, MPM
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax import coordinates
from mmbench.machines.minimax.branch_and_bound import lowest_of_lines, minimise
from mmbench.machines.minimax.soft import solve_soft

seeds = st.integers(0, 10**6)


def hinge(decision, y, b):
    return np.maximum(0, 1 - y * (decision + b)).sum()


@given(seeds, st.integers(2, 20))
@settings(deadline=None)
def test_no_bias_has_less_slack(seed, n):
    rng = np.random.RandomState(seed)
    y = np.where(rng.rand(n) < 0.5, 1.0, -1.0)
    decision = rng.normal(size=n).round(1)
    found = hinge(decision, y, best_bias(decision, y))
    assert found <= min(hinge(decision, y, b) for b in y - decision) + 1e-12


@given(seeds, st.sampled_from([0, 6]), st.sampled_from([0.01, 0.3, 10.0]))
@settings(deadline=None, max_examples=50)
def test_no_multiple_of_a_direction_is_better(seed, removed, C):
    problem = random_problem(seed, C=C, removed=removed)
    w = np.random.RandomState(seed).normal(size=len(problem.delta))
    w *= np.sign(w @ problem.delta)
    tuned, b = problem.tuned(w)
    value = problem.value(tuned, b)
    for factor in np.linspace(0.5, 2.0, 31):
        assert problem.value(factor * tuned, factor * b) >= value - 1e-9


@given(seeds, st.sampled_from([0, 6]))
@settings(deadline=None, max_examples=50)
def test_any_multipliers_give_a_lower_bound(seed, removed):
    problem = random_problem(seed, removed=removed)
    rng = np.random.RandomState(seed)
    bound = problem.bound(rng.rand(len(problem.y)), rng.rand())
    w = 0.3 * rng.normal(size=len(problem.delta))
    assert bound <= problem.value(w, best_bias(problem.rows @ w, problem.y)) + 1e-9
    assert bound <= problem.trivial[0] + 1e-9


def test_balanced_multipliers_are_feasible():
    rng = np.random.RandomState(0)
    y = np.where(rng.rand(20) < 0.3, 1.0, -1.0)
    a = balanced(rng.normal(size=20), y, 0.5)
    assert a.min() >= 0
    assert a.max() <= 0.5
    assert a @ y == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("C", [0.005, 0.03, 0.3, 50.0, 1e4])
def test_the_interior_point_reaches_a_cone_solver_s_objective(C):
    """With the smallest C the solution is w = 0, which must not be returned before it is proven."""
    problem = random_problem(0, n=300, k=6, C=C)
    found = solve_soft(problem, tol=1e-9)
    assert found.route == "interior point"
    assert found.is_trivial == (C == 0.005)
    assert found.value == pytest.approx(solve_soft(problem, "clarabel").value, rel=1e-8)


def test_equal_class_means_are_no_obstacle_to_the_interior_point():
    part = random_problem(2, n=60)
    rows, y = np.vstack([part.rows, -part.rows]), np.append(part.y, part.y)
    found = solve_soft(replace(part, rows=rows, y=y, delta=0.0 * part.delta, C=1.0))
    assert found.route == "interior point"


# -- searches along a line ---------------------------------------------------------------------


def two_dips(t):
    return min(0.5 + abs(t - 0.5), 0.1 + 2 * abs(t - 2.5), 3.0)


@pytest.mark.parametrize("function", [two_dips, lambda t: (t - 0.7) ** 2 + 1, lambda t: t + 1])
def test_branch_and_bound_finds_and_proves_the_global_minimum(function):
    evaluated = []

    def evaluate(t):
        evaluated.append(SimpleNamespace(at=t, value=function(t)))
        return evaluated[-1]

    def lower(left, right):  # no slope is steeper than 5
        rise = 5 * (right.at - left.at)
        return lowest_of_lines((left.value, left.value - rise), (right.value - rise, right.value))

    best, bound = minimise(evaluate, lower, [evaluate(0.0), evaluate(3.0)], 1e-2)
    least = min(map(function, np.linspace(0, 3, 1001)))
    assert bound <= least
    assert bound <= best.value <= bound * 1.011
    assert len(evaluated) < 200


def test_branch_and_bound_says_what_it_proved_when_it_has_to_stop():
    points = [SimpleNamespace(at=t, value=1.0) for t in (0.0, 1.0)]
    best, bound = minimise(
        lambda t: SimpleNamespace(at=t, value=1.0), lambda *_: -np.inf, points, 1e-3, max_points=5
    )
    assert (best.value, bound) == (1.0, -np.inf)


# -- rows that are mapped ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [
        LDA(bias="optimized"),
        MPM(),
        MPM(ridge=0),
        MEMPM(),
        M4(),
        M4(margin="hard"),
        M4(normalization="mean", C_factor=2),
        M4(nu=0.7),
    ],
    ids=str,
)
def test_many_rows_are_not_copied_for_another_machine(machine, monkeypatch):
    X, y = gaussians(d=3, shift=6.0 if machine.get_params().get("margin") == "hard" else 1.5)
    copied = clone(machine).fit(X, y)
    monkeypatch.setattr(coordinates, "LEAST_MAPPED_ROWS", 0)
    mapped = clone(machine).fit(X, y)
    assert mapped.fits_[0].status is copied.fits_[0].status
    np.testing.assert_allclose(mapped.coef_, copied.coef_, rtol=1e-4, atol=1e-6)


def test_many_rows_hold_less_than_is_stated():
    random = np.random.RandomState(0)
    X = random.normal(size=(8000, 40))
    y = X[:, 0] + random.normal(size=8000) > 0
    machine = M4(tol=1e-3)
    machine.fit(X[:100], y[:100])
    tracemalloc.start()
    machine.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= 3 * X.nbytes  # beside X, blocks of it included
    assert peak <= machine.memory_needs.training_bytes("linear", X.shape)
    cones = M4.needs_at({"nu": 0.9}).training_bytes("linear", X.shape)
    assert cones > 20 * X.nbytes


def test_rows_far_from_zero_give_the_same_m4():
    X, y = gaussians()
    near, far = M4().fit(X, y), M4().fit(X + 1e8, y)
    assert far.fits_[0].objective == pytest.approx(near.fits_[0].objective, rel=1e-6)
    np.testing.assert_allclose(far.decision_function(X + 1e8), near.decision_function(X), atol=1e-5)
