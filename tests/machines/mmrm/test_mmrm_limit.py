"""The MMRM where its kernel is singular: certificates by a second computation, and the limit."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MMRM
from mmbench.machines.mmrm.certificate import certify
from mmbench.machines.mmrm.program import KernelProgram


def clouds(d, n=120, seed=0):
    """Two overlapping normal clouds, scaled to [0, 1]."""
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    X = rng.normal(size=(n, d)) + 0.7 * y[:, None]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), y


def repeated():
    """Half of the samples twice, one of them in both classes."""
    X, y = clouds(2, n=40)
    return np.vstack([X, X[:20], X[:1]]), np.concatenate([y, y[:20], [-1.0]])


def wide():
    rng = np.random.RandomState(1)
    return rng.normal(size=(24, 60)), np.repeat([1.0, -1.0], [8, 16])


def standardised(d=9, n=140, seed=3):
    rng = np.random.RandomState(seed)
    y = np.repeat([1.0, -1.0], n // 2)
    X = rng.normal(size=(n, d)) + 0.4 * y[:, None]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def expansion(machine, X):
    coef = np.zeros(len(X))
    coef[machine.support_] = machine.dual_coef_[0]
    return coef


def value_of(K, y, cost, coef, b):
    """Return (30) at coefficients with signs, in extended precision."""
    f = K.astype(np.longdouble) @ coef.astype(np.longdouble) + b
    return float(f[y > 0].mean() - f[y < 0].mean() + cost @ np.maximum(0, 1 - y * f))


def general_solver(K, y, cost, limit):
    """Return the value of what HiGHS finds for (30) with its limit: no bound, but feasible."""
    n, scale = len(y), np.mean(np.diagonal(K))
    means = np.where(y > 0, 1 / np.sum(y > 0), -1 / np.sum(y < 0))
    A = np.vstack(
        [
            -np.hstack([y[:, None] * K * y / scale, y[:, None], np.eye(n)]),
            np.append(np.full(n, 1 / limit), np.zeros(n + 1)),
        ]
    )
    found = linprog(
        np.concatenate([y * (K @ means) / scale, [0], cost]),
        A_ub=A,
        b_ub=np.append(-np.ones(n), 1.0),
        bounds=[(0, None)] * n + [(None, None)] + [(0, None)] * n,
    )
    if found.x is None:
        return np.inf
    u = np.maximum(found.x[:n], 0)
    return value_of(K, y, cost, y * u * min(1.0, limit / u.sum()) / scale, found.x[n])


def assert_solved(machine, X, y, tol=1e-6):
    """Check a fit by a second computation from the data and the fitted attributes alone."""
    machine.fit(X, y)
    fit, coef = machine.fits_[0], expansion(machine, X)
    K = machine.kernels_[0](X, X)
    cost = np.full(len(y), machine.C or machine.C_factor / min(np.sum(y > 0), np.sum(y < 0)))
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert 0 <= fit.objective - fit.bound + 1e-9 <= tol * fit.objective + 2e-9
    assert np.all(coef * y >= 0)
    limit = machine.coefficient_limit
    assert np.abs(coef).sum() * np.mean(np.diagonal(K)) <= limit * (1 + 1e-12)
    value = value_of(K, y, cost, coef, machine.intercept_[0])
    assert fit.objective == pytest.approx(value, rel=1e-7)
    assert fit.bound <= general_solver(K, y, cost, limit) * (1 + 1e-9)
    return fit


@pytest.mark.parametrize("factor", [1.1, 5.0, 1000.0])
@pytest.mark.parametrize("exponent", [-15, -5, -1, 3])
@pytest.mark.parametrize("d", [2, 3])
def test_smooth_kernels_on_few_features_are_solved_at_every_width_and_C(d, exponent, factor):
    X, y = clouds(d, n=60)
    assert_solved(MMRM(gamma=2.0**exponent, C_factor=factor), X, y)


@pytest.mark.parametrize("factor", MMRM.search_space.auto_grids["C"][1])
def test_every_C_of_the_grid_is_solved_where_simplex_gives_up(factor):
    X, y = clouds(3)
    assert_solved(MMRM(gamma=0.5, C_factor=factor), X, y)


@pytest.mark.parametrize("solver", ["auto", "interior"])
@pytest.mark.parametrize("kernel", [{"gamma": 0.5}, {"kernel": "poly", "degree": 2}])
@pytest.mark.parametrize("data", [repeated, wide, standardised])
def test_repeats_wide_data_and_singular_kernels_are_certified(data, kernel, solver):
    X, y = data()
    assert_solved(MMRM(C_factor=1.5, solver=solver, **kernel), X, y)


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 4),
    exponent=st.floats(-15, 3),
    factor=st.floats(1.0, 1000),
)
@settings(max_examples=25, deadline=None)
@examples(
    seed=range(12),
    d=(1, 2, 3, 4),
    exponent=(-15.0, -6.5, 0.0, 1.0, 3.0),
    factor=(1.0, 1.5, 30.0, 1000.0),
)
def test_any_small_overlapping_data_are_solved(seed, d, exponent, factor):
    X, y = clouds(d, n=30, seed=seed)
    assert_solved(MMRM(gamma=2.0**exponent, C_factor=factor), X, y)


@pytest.mark.parametrize("solver", ["interior", "reference"])
def test_no_route_is_better_than_auto_on_a_polynomial_of_few_features(solver):
    X, y = standardised()
    options = {"kernel": "poly", "degree": 2, "C": 1.1 / 70}
    auto = assert_solved(MMRM(**options), X, y)
    fit = MMRM(solver=solver, **options).fit(X, y).fits_[0]
    assert auto.bound <= fit.objective
    assert auto.objective <= fit.objective * (1 + 1e-6)
    assert not auto.extra["at_coefficient_limit"]


def test_a_fit_says_whether_the_limit_binds_and_a_larger_one_lowers_only_those():
    X, y = clouds(2)
    for gamma, binds in ((0.5, True), (512.0, False)):
        fits = [
            assert_solved(MMRM(gamma=gamma, C_factor=5.0, coefficient_limit=limit), X, y)
            for limit in (2.0**20, 2.0**22)
        ]
        assert [fit.extra["at_coefficient_limit"] for fit in fits] == [binds, binds]
        assert (fits[1].objective < fits[0].bound) == binds


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_nearly_equal_columns_of_separable_data_leave_the_linear_machine_certified(solver):
    rng = np.random.default_rng(0)
    X, y = (rng.normal(size=(40, 12)) > 0.8).astype(float), np.arange(40) % 2
    X[:, 0] = y
    X = np.column_stack([X, X[:, 3] + 1e-8 * (np.arange(40) == 1)])  # HiGHS misses it by 4e-8
    fit = MMRM(kernel="linear", C_factor=3, solver=solver).fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(2.0)
    assert 2.0 - 1e-6 <= fit.bound <= fit.objective


def test_a_negative_value_proves_that_the_program_without_a_limit_has_no_minimum():
    X, y = clouds(2, n=60)
    fit = MMRM(kernel="poly", degree=1, C=0.5 / 30, solver="interior").fit(X, y).fits_[0]
    assert fit.status is Status.UNBOUNDED
    assert fit.bound == -np.inf


def test_the_bound_is_one_of_the_program_as_stated_whatever_the_multipliers():
    X, y = clouds(2, n=40)
    K, cost = Kernel("rbf", gamma=0.5)(X, X), np.full(40, 0.1)
    program = KernelProgram(K, y, cost, limit=1000.0)
    best = MMRM(gamma=0.5, C=0.1, coefficient_limit=1000.0).fit(X, y).fits_[0].objective
    rng = np.random.RandomState(0)
    for _ in range(20):
        lam = rng.uniform(-0.1, 0.2, size=40)  # not within [0, cost], y'lam not zero
        assert certify(program, np.zeros(40), 1.0, lam, 1e-6).bound <= best


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_the_linear_program_has_no_coefficient_limit(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] + rng.normal(size=30) > 0
    machine = MMRM(kernel="linear", C=10.0, solver=solver)
    (free,) = machine.fit(X, y).fits_
    (limited,) = machine.set_params(coefficient_limit=0.5).fit(X, y).fits_
    assert (np.abs(machine.coef_[0]) * X.std(axis=0)).sum() > 0.5
    assert limited.status is free.status is Status.OPTIMAL
    assert limited.objective == pytest.approx(free.objective, rel=1e-9)


@pytest.mark.parametrize("solver", ["auto", "interior", "reference", "highs_ipm", "clarabel"])
@pytest.mark.parametrize("C, limit", [(1e-3, 1e-6), (1e-3, 0.01), (5e-3, 1.0), (1e-3, 1.0)])
def test_every_solver_keeps_the_coefficient_limit_if_C_is_small(solver, C, limit):
    # without the limit, the program is unbounded; with limit 1 and the smaller C, a negative
    # objective value proves it
    X, y = clouds(4, n=60)
    machine = MMRM(gamma=0.5, C=C, coefficient_limit=limit, solver=solver)
    if (C, limit) == (1e-3, 1.0):
        with pytest.warns(ConvergenceWarning, match="ended unbounded"):
            machine.fit(X, y)
        return
    fit = machine.fit(X, y).fits_[0]
    K = Kernel("rbf", gamma=0.5)(X, X)
    exact = general_solver(K, y, np.full(60, C), limit)
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.objective == pytest.approx(exact, rel=3e-6)
    assert fit.extra["at_coefficient_limit"] or fit.status is Status.TRIVIAL


def test_a_large_limit_is_part_of_the_reference_program():
    X, y = clouds(2, n=60)  # HiGHS omits coefficients of 1e-9, the reciprocal of the limit
    fits = [
        MMRM(gamma=0.1, C=1e-3, coefficient_limit=1e10, solver=solver).fit(X, y).fits_[0]
        for solver in ("auto", "reference")
    ]
    assert [fit.status for fit in fits] == [Status.UNBOUNDED] * 2


@pytest.mark.parametrize("limit", [1e-300, 1e-7, 1e300])
def test_limits_that_double_precision_cannot_represent_are_refused_in_one_line(limit):
    X, y = clouds(2, n=20)
    with pytest.raises(ValueError, match="coefficient_limit must be a number >= 1e-06 and <= "):
        MMRM(coefficient_limit=limit).fit(X, y)
