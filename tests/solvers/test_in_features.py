"""A linear SVM or RMM solved in the space of its features is that of pairwise steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.machines.rmm import rmm_dual
from mmbench.machines.svm import svm_dual
from mmbench.solvers.features import solve_active_set, solve_in_features, solve_near
from mmbench.solvers.svm_dual.smo import solve_to_gap


def problem(kind):
    """Return rows and signs, of which not all are in general position."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(240) < (4 if kind == "tiny class" else 90), 1.0, -1.0)
    X = rng.normal(size=(240, 4)) + (2.0 if kind == "apart" else 0.4) * y[:, None]
    if kind == "repeated":  # rows share their multipliers in many ways
        X = np.round(X)
    if kind == "constant column":
        X[:, 1] = 3.0
    return X, y


KINDS = ("apart", "mixed", "repeated", "tiny class", "constant column")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_svm_and_rmm_are_those_of_pairwise_steps(kind, C):
    X, y = problem(kind)
    svm = solve_to_gap(svm_dual(X @ X.T, y, C), 1e-8, 1e-8)
    found = solve_in_features(svm_dual(X, y, C), y, C, gap_tolerance=1e-7)
    assert found.value == pytest.approx(svm.value, rel=1e-6)
    assert found.gap <= 1e-6
    B = 1 + 0.5 * (np.abs(svm.f).max() - 1)
    assert B > 1
    rmm = solve_to_gap(rmm_dual(X @ X.T, y, C, B), 1e-8, 1e-8)
    found = solve_in_features(rmm_dual(X, y, C, B), y, C, gap_tolerance=1e-7, B=B)
    assert found.value == pytest.approx(rmm.value, rel=1e-6)
    assert np.abs(found.f).max() <= B * (1 + 1e-12)
    assert found.gap <= 2e-5


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_a_huge_C_on_separable_rows_is_no_obstacle(C):
    """Multipliers that start at 1/n of such a C, or far less, would allow no long step."""
    X, y = problem("apart")
    X += 3.0 * y[:, None]
    found = solve_in_features(svm_dual(X, y, C), y, C, gap_tolerance=1e-3)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(solve_in_features(svm_dual(X, y, 10.0), y, 10.0).value)


@pytest.mark.parametrize("C", [1.0, 32.0, 1024.0, 32768.0])
@pytest.mark.parametrize("B", [None, 1.5])
def test_columns_in_units_of_their_own_lose_no_digits(C, B):
    """``X'u`` cancels to all but nothing beside rows of prices, and decisions multiply the rest."""
    rng = np.random.default_rng(9)
    y = np.where(rng.random(1200) < 0.6, 1.0, -1.0)
    price = rng.lognormal(8, 1, 1200) * (1.15 - 0.15 * y)
    rate = rng.normal(0.02, 0.01, 1200) - 0.0025 * y
    X = np.column_stack([price, rate, rng.poisson(6 - y), rng.integers(0, 2, 1200)])
    X -= X.mean(axis=0)
    dual = svm_dual(X, y, C) if B is None else rmm_dual(X, y, C, B)
    found = solve_in_features(dual, y, C, gap_tolerance=1e-6, B=B)
    assert found.status is Status.OPTIMAL
    assert found.iterations < 30
    # what is claimed, by sums that lose nothing: the objective of w and b, and that of u
    f = found.f
    assert found.scale * (X @ found.weights + found.bias) == pytest.approx(f, abs=1e-8)
    v = np.array([math.fsum(column * found.u) for column in X.T])
    exact = dual.constant + 0.5 * v @ v + dual.cost(found.u)
    assert found.value - found.rounding == pytest.approx(exact, rel=1e-9)
    assert exact <= found.value <= exact + 1e-7 * abs(exact)
    assert -found.bound == pytest.approx(
        0.5 * found.scale**2 * found.weights @ found.weights + dual.loss(f) - dual.constant
    )


@pytest.mark.parametrize("C", [32.0, 512.0, 8192.0])
@pytest.mark.parametrize("B", [None, 1.0 + 1e-6])
def test_rows_that_no_hyperplane_tells_apart_leave_w_at_zero(C, B):
    """Sums of large multipliers then lose w, and so does one that makes up for the others' sum."""
    rng = np.random.default_rng(45)
    town = rng.integers(0, 2, 70)
    price, rate = rng.lognormal(10, 1, 70), rng.normal(0.02, 0.01, 70)
    X = np.column_stack([price, rate, town == 0, town == 1])
    X -= X.mean(axis=0)
    y = np.where(np.arange(70) < 9, 1.0, -1.0)
    dual = svm_dual(X, y, C) if B is None else rmm_dual(X, y, C, B)
    found = solve_in_features(dual, y, C, gap_tolerance=1e-6, B=B)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(-2 * 9 * C, rel=1e-6)
    assert abs(found.u.sum()) <= 1e-9 * C


def test_a_solution_that_still_holds_costs_no_iteration():
    X, y = problem("apart")
    X += 3.0 * y[:, None]
    first = solve_in_features(svm_dual(X, y, 10.0), y, 10.0)
    again = solve_in_features(svm_dual(X, y, 20.0), y, 20.0, start=first.u)
    assert first.iterations > 0
    assert again.iterations == 0
    np.testing.assert_array_equal(again.u, first.u)


def test_a_guess_settles_to_the_last_digits_or_says_that_it_does_not():
    X, y = problem("mixed")
    dual = svm_dual(X, y, 1.0)
    rough = solve_to_gap(svm_dual(X @ X.T, y, 1.0), 1e-6, 1.0).u
    exact = solve_active_set(dual, rough)
    assert exact is not None
    u, w = exact.u, exact.w
    assert w == pytest.approx(X.T @ u, abs=1e-12)
    free = (np.abs(u) > 0) & (np.abs(u) < 1.0)
    assert np.ptp((y - X @ w)[free]) < 1e-12
    assert solve_active_set(dual, np.zeros(len(y))) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_neighbour_settles_beside_given_decisions_or_says_that_it_does_not(kind, share):
    X, y = problem(kind)
    given = share * (X[:, :1] + 0.2)
    whole, dual = svm_dual(X @ X.T, y, 1.05), svm_dual(X, y, 1.05)
    whole = replace(whole, slopes=whole.slopes + given)
    dual = replace(dual, slopes=dual.slopes + given)
    slow = solve_to_gap(whole, 1e-9, 1e-9)
    inside = solve_in_features(dual, y, 1.05, tol=1e-7)
    assert inside.value == pytest.approx(slow.value, rel=1e-7)
    found = solve_near(dual, slow.u, tol=1e-7)
    if found is None:  # more rows than features are free
        assert kind in ("repeated", "tiny class")
        return
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(slow.value, rel=1e-9)
    assert found.bias == pytest.approx(slow.bias, abs=1e-6)
    assert solve_near(dual, np.zeros(len(y))) is None


def test_a_C_far_above_all_multipliers_takes_the_interior_point_little_longer():
    X, y = problem("apart")
    X = X + 2.0 * y[:, None]
    found, hard = (solve_in_features(svm_dual(X, y, C), y, C) for C in (1e12, 1e3))
    np.testing.assert_allclose(X.T @ found.u, X.T @ hard.u, rtol=1e-6)
    assert found.iterations < 80
