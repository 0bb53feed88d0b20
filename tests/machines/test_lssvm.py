"""LS-SVM and EMAMC: primal against dual, path against single systems, and the paper's remarks."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.class_weight import compute_sample_weight

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import LSSVM, lssvm
from mmbench.machines.base.problem import BinaryProblem, judged
from mmbench.machines.lssvm import COSTS

READINGS = ("gram", "empirical")
PATH = [{"C": C} for C in COSTS]


@pytest.fixture(scope="module")
def problem():
    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X[:150])
    return BinaryProblem(X, np.where(y[:150] == 1, 1.0, -1.0), Kernel("rbf", 0.4))


def bordered_dual(G, y, C):
    """Return a and b of ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]``."""
    n = len(y)
    system = np.block([[G + np.eye(n) / C, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.append(y, 0.0))
    return solved[:-1], solved[-1]


@pytest.mark.parametrize("C", [0.1, 10.0, 2000.0])
def test_gram_reading_is_the_dual_with_k(C, problem):
    a, b = bordered_dual(problem.gram, problem.y, C)
    model = LSSVM(C=C, reading="gram").train(problem)
    assert model.intercept == pytest.approx(b, abs=1e-7)
    np.testing.assert_allclose(problem.gram @ model.coef, problem.gram @ a, atol=1e-7)


@pytest.mark.parametrize("C", [0.1, 10.0, 2000.0])
def test_empirical_reading_is_the_dual_with_k_times_k(C, problem):
    K = problem.gram
    a, b = bordered_dual(K @ K, problem.y, C)
    model = LSSVM(C=C, reading="empirical").train(problem)
    assert model.intercept == pytest.approx(b, abs=1e-6)
    np.testing.assert_allclose(K @ model.coef, K @ K @ a, atol=1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0, 2000.0])
def test_empirical_reading_solves_the_printed_system(C, problem):
    """(36), (37) with phi(x) = (k(x, x_1), ..., k(x, x_M))'."""
    K, y = problem.gram, problem.y
    model = LSSVM(C=C, reading="empirical").train(problem)
    w, b = model.coef, model.intercept
    np.testing.assert_allclose(w / C + K @ (K @ w) + K.sum(axis=1) * b, K @ y, atol=1e-7)
    assert K.sum(axis=0) @ w + len(y) * b == pytest.approx(y.sum(), abs=1e-7)


def test_average_margin_term_only_rescales(problem):
    """C_a of (30) multiplies the right-hand sides of (34), (35), so no prediction changes."""
    K, y, C = problem.gram, problem.y, 50.0
    n = len(y)
    left = np.block(
        [[np.eye(n) + C * K @ K, C * K.sum(axis=1)[:, None]], [C * K.sum(axis=0), C * n]]
    )
    model = LSSVM(C=C, reading="empirical").train(problem)
    expected = K @ model.coef + model.intercept
    for Ca in (0.0, 1.0, 1000.0):
        solved = np.linalg.solve(left, (Ca / n + C) * np.append(K @ y, y.sum()))
        decision = K @ solved[:-1] + solved[-1]
        np.testing.assert_allclose(decision, (Ca / (C * n) + 1) * expected, atol=1e-6)


@pytest.mark.parametrize("reading", READINGS)
def test_optimum_of_the_printed_problem(reading, problem):
    """No random step from the solution lowers (30)."""
    K, y, C = problem.gram, problem.y, 20.0
    model = LSSVM(C=C, reading=reading).train(problem)
    rng = np.random.RandomState(0)

    def value(coef, b):
        norm = coef @ coef if reading == "empirical" else coef @ K @ coef
        return 0.5 * norm + 0.5 * C * np.sum((y - K @ coef - b) ** 2)

    assert model.fit.objective == pytest.approx(value(model.coef, model.intercept))
    for scale in (1e-1, 1e-3):
        step = scale * rng.normal(size=len(y))
        assert value(model.coef + step, model.intercept + scale * rng.normal()) > value(
            model.coef, model.intercept
        )


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("gamma", [0.001, 0.4, 60.0])
def test_path_gives_the_models_of_single_systems(reading, gamma, problem):
    problem = BinaryProblem(problem.X, problem.y, Kernel("rbf", gamma))
    path = LSSVM(reading=reading).train_path(problem, PATH)
    single = LSSVM(reading=reading, solver="reference").train_path(problem, PATH)
    for one, other in zip(path, single, strict=True):
        assert judged(one.fit, 1e-6, 1e-6).status is Status.OPTIMAL
        assert one.fit.objective == pytest.approx(other.fit.objective, rel=1e-6)
        np.testing.assert_allclose(
            problem.gram @ one.coef + one.intercept,
            problem.gram @ other.coef + other.intercept,
            atol=1e-5,
        )


@pytest.mark.parametrize("reading", READINGS)
def test_bound_and_residual_certify_the_solution(reading, problem):
    for model in LSSVM(reading=reading).train_path(problem, PATH):
        assert model.fit.bound <= model.fit.objective + 1e-9 * model.fit.objective
        assert model.fit.gap < 1e-7
        assert model.fit.max_violation < 1e-7


@given(st.integers(2, 9), st.floats(0.01, 1e3), st.integers(0, 99), st.sampled_from(READINGS))
@settings(max_examples=40, deadline=None)
@examples(n=range(2, 10), C=(1e-2, 1.0, 1e3), seed=range(16), reading=READINGS)
def test_small_problems_with_repeated_rows(n, C, seed, reading):
    rng = np.random.RandomState(seed)
    X = rng.randint(3, size=(n, 2)).astype(float)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    problem = BinaryProblem(X, y, Kernel("rbf", 0.7))
    fast = LSSVM(reading=reading).train_path(problem, [{"C": C}, {"C": 2 * C}])[0]
    plain = LSSVM(C=C, reading=reading, solver="reference").train(problem)
    np.testing.assert_allclose(
        problem.gram @ fast.coef + fast.intercept,
        problem.gram @ plain.coef + plain.intercept,
        atol=1e-7,
    )


@pytest.mark.parametrize("reading", READINGS)
def test_small_C_leaves_no_weights(reading, problem):
    model = LSSVM(C=1e-9, reading=reading).train(problem)
    assert np.abs(problem.gram @ model.coef).max() < 1e-4
    assert model.intercept == pytest.approx(problem.y.mean(), abs=1e-4)


def test_singular_gram_and_a_huge_C_still_give_an_answer():
    X = np.repeat(np.eye(3), 20, axis=0)
    problem = BinaryProblem(X, np.tile([1.0, -1.0], 30), Kernel("rbf", 1.0))
    model = LSSVM(C=1e18, reading="gram").train(problem)
    assert np.isfinite(model.coef).all()


def test_grids_are_the_paper_s():
    assert COSTS == (0.1, 1, 10, 50, 100, 500, 1000, 2000)


def test_many_rows_are_solved_to_the_last_digits():
    """K K' has entries of n^2: with a rounded a they moved decisions by 1e-6 here."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(2000, 20)), rng.normal(size=20)
    y = np.where(X @ w + 2.0 * rng.normal(size=2000) > 0, 1, -1)
    (fit,) = LSSVM(kernel="linear", C=2000.0, reading="empirical").fit(X, y).fits_
    assert fit.status is Status.OPTIMAL
    assert abs(fit.gap) < 1e-14
    assert fit.max_violation < 1e-13


@pytest.mark.parametrize("weight", [None, "balanced"])
def test_a_row_far_longer_than_the_others_is_solved(weight):
    """The rounding of its multiplier counts 1e12 times in its own decision."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6))
    y = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    X[0] *= 1e6
    fit = LSSVM(kernel="linear", class_weight=weight).fit(X, y).fits_[0]
    assert fit.status == "optimal"
    assert fit.max_violation <= 1e-6
    assert fit.gap <= 1e-9


def test_columns_of_any_unit_are_solved_to_the_last_digits():
    """By multipliers the objective was 0.1 % too large at C = 2000, on 50,000 rows as these."""
    random = np.random.default_rng(0)
    y = (random.random(5000) < 0.3).astype(int)
    X = random.normal(size=(5000, 3)) * [1, 2886, 300] + np.outer(y, [1, 1000, 0])
    for C in (100.0, 2000.0):
        (fit,) = LSSVM(kernel="linear", C=C).fit(X, y).fits_
        assert fit.status is Status.OPTIMAL
        assert abs(fit.gap) < 1e-12


@pytest.mark.parametrize("classes", [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_kernel_values_of_raw_features_are_not_squared(classes, C):
    """The entries of K are 1e12, so a factor of I/C + K K' would consist of rounding errors."""
    X, y = load_wine(return_X_y=True)
    pair = np.isin(y, classes)
    fast, same = (
        LSSVM(reading="empirical", kernel="poly", degree=2, C=C, solver=solver).fit(
            X[pair], y[pair]
        )
        for solver in ("auto", "reference")
    )
    assert fast.score(X[pair], y[pair]) == same.score(X[pair], y[pair]) == 1.0
    assert fast.fits_[0].objective == pytest.approx(same.fits_[0].objective, rel=0.05)
    assert fast.fits_[0].objective == pytest.approx(fast.fits_[0].bound, rel=0.1)


@pytest.mark.parametrize("solver", ["auto", "reference"])
@pytest.mark.parametrize(
    ("n", "d", "weight"), [(80, 5, None), (40, 30, None), (40, 30, "balanced")]
)
def test_the_certificate_of_large_features_is_that_of_the_returned_weights(n, d, weight, solver):
    """a'Ka has lost the digits of w = X'a, and stated an objective below the optimum."""
    random = np.random.default_rng(0)
    X = 1e6 * random.normal(size=(n, d))
    y = np.where(X[:, 0] + 1e6 * random.normal(size=n) > 0, 1.0, -1.0)
    s = compute_sample_weight(weight, y)
    values = []
    for scale in (1.0, 1e-6):  # the same problem, with w in other units
        machine = LSSVM(kernel="linear", C=scale**-2, solver=solver, class_weight=weight)
        fit = machine.fit(scale * X, y).fits_[0]
        w, b = machine.coef_[0].astype(np.longdouble), machine.intercept_[0]
        value = 0.5 * w @ w + 0.5 * machine.C * s @ (y - scale * X @ w - b) ** 2
        assert fit.objective == pytest.approx(float(value), rel=1e-6)
        values.append(scale**2 * value)
        assert scale**2 * fit.bound <= min(values) * (1 + 1e-9)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_many_sparse_rows_and_features_are_solved_by_products(C, weight, monkeypatch):
    random = np.random.default_rng(0)
    X = sparse.random_array((300, 120), density=0.1, rng=random, format="csr")
    y = np.ravel(X.sum(axis=1)) + random.normal(size=300) > 1
    machine = LSSVM(kernel="linear", C=C, class_weight=weight)
    expected = machine.fit(X, y).decision_function(X)
    monkeypatch.setattr(lssvm, "MOST_FEATURES", 100)
    np.testing.assert_allclose(machine.fit(X, y).decision_function(X), expected, atol=1e-7)
    fit = machine.fits_[0]
    assert (fit.route, fit.status) == ("conjugate gradients", Status.OPTIMAL)
