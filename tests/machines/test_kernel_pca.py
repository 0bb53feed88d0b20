"""Kernel PCA: coordinates in which the total scatter is diagonal."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.joint_rows import random_problem
from sklearn.datasets import load_wine

from mmbench.kernels import Kernel
from mmbench.machines import FSVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.kernel_pca import spectrum
from mmbench.machines.svm import train_svm


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.3), Kernel("poly", degree=2)])
def test_a_linear_svm_on_all_components_is_the_kernel_svm(pair, kernel):
    problem = pair(kernel)
    components = spectrum(problem)
    linear = BinaryProblem(components.rows, problem.y, Kernel("linear"))
    one, other = (train_svm(p, 3.0, tol=1e-7) for p in (linear, problem))
    assert one.fit.objective == pytest.approx(other.fit.objective, rel=1e-6)
    weights, b = components.original(components.rows.T @ one.coef, one.intercept)
    np.testing.assert_allclose(
        problem.gram @ weights + b, problem.gram @ other.coef + other.intercept, atol=5e-3
    )


def test_the_linear_kernel_by_components_is_the_linear_machine(wine):
    """Kernel PCA of inner products has the features' own components."""
    X, y = wine
    kernel = BinaryProblem(X, np.ones(len(X)), Kernel("poly", degree=1))
    ours, theirs = spectrum(BinaryProblem(X, kernel.y, Kernel("linear"))), spectrum(kernel)
    np.testing.assert_allclose(ours.variances, theirs.variances[: len(ours.variances)], rtol=1e-9)
    linear = FSVM(variant="opt", n_components=None, ridge=0.0).fit(X, y)
    poly = FSVM(variant="opt", n_components=len(ours.variances), kernel="poly", degree=1, ridge=0.0)
    np.testing.assert_allclose(
        linear.pairwise_decision_function(X),
        poly.fit(X, y).pairwise_decision_function(X),
        atol=1e-2,
    )


def test_more_features_than_rows_are_seen_through_their_span():
    X, y = random_problem(0, n=12, d=40)
    found = spectrum(BinaryProblem(X, y, Kernel("linear")))
    assert found.rows.shape == (12, 11)
    np.testing.assert_allclose(found.rows @ found.basis.T, X - X.mean(axis=0), atol=1e-10)
    assert FSVM(variant="opt").fit(X, y).score(X, y) == 1.0


def test_components_are_counted_or_reach_a_share(wine):
    X, y = wine
    found = spectrum(BinaryProblem(X, np.ones(len(X)), Kernel("rbf", 0.05)))
    kept = found.first(0.9).variances
    assert kept.sum() >= 0.9 * found.variances.sum() > kept[:-1].sum()
    assert len(found.first(7).variances) == 7
    with pytest.raises(ValueError, match="whole number"):
        FSVM(n_components=2.5).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_ridge_is_of_the_components_not_of_the_columns(kernel, wine):
    """Columns of zeros change no kernel value and no direction: no decision, with any ridge."""
    X, y = wine
    machine = FSVM(variant="semi", kernel=kernel, gamma=0.05, ridge=0.5)
    plain = machine.fit(X, y).pairwise_decision_function(X)
    wide = np.hstack([X, np.zeros((len(X), 100))])
    np.testing.assert_allclose(
        machine.fit(wide, y).pairwise_decision_function(wide), plain, atol=1e-4
    )


def test_a_few_components_are_the_first_of_all(real_problem):
    problem = real_problem("pima", 0, 1, Kernel("rbf", gamma=1.0), rows=200)
    few, all_ = spectrum(problem, 20), spectrum(problem).first(20)
    np.testing.assert_allclose(few.variances, all_.variances, rtol=1e-9)
    np.testing.assert_allclose(np.abs(few.rows), np.abs(all_.rows), atol=1e-9)
    np.testing.assert_allclose(np.abs(few.basis), np.abs(all_.basis), rtol=1e-6, atol=1e-9)


def test_components_are_found_where_all_have_the_same_variance():
    """So narrow a kernel makes the Gram matrix the identity, of which LAPACK finds no part."""
    X = np.round(np.random.default_rng(0).normal(size=(120, 60)))
    found = spectrum(BinaryProblem(X, np.ones(120), Kernel("rbf", 1000.0)), 2)
    np.testing.assert_allclose(found.variances, np.full(119, 1 / 120))  # and none is left out
    np.testing.assert_allclose(found.rows.T @ found.rows, np.eye(119), atol=1e-12)


@pytest.mark.parametrize("gamma", [5.0, 50.0, 1000.0])
@pytest.mark.parametrize("n_components", ["auto", 0.95, 30, 2])
def test_the_order_of_rows_has_no_effect_where_variances_are_equal(n_components, gamma):
    """Next to the identity as kernel matrix, nearly all are; the objective was 10.0 to 12.9."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 5)), rng.normal(size=60)
    y = X[:, 0] + 0.5 * noise > 0
    machine = FSVM(kernel="rbf", gamma=gamma, n_components=n_components)
    orders = [np.arange(60), *(rng.permutation(60) for _ in range(2))]
    values = [machine.fit(X[order], y[order]).fits_[0].objective for order in orders]
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)


@pytest.mark.parametrize(
    "rows",
    [
        np.eye(300),
        np.zeros((300, 1)),
        np.random.default_rng(0).normal(size=(300, 3)),
        np.repeat(np.random.default_rng(1).normal(size=(6, 30)), 50, axis=0),
    ],
    ids=["equal", "zero", "three", "repeated"],
)
def test_a_few_components_are_found_where_eigenvalues_are_equal_or_zero(rows):
    problem = BinaryProblem(rows, np.ones(300), Kernel("rbf"), rows @ rows.T)
    found, all_ = spectrum(problem, 6), spectrum(problem).first(6)
    assert found.rows.shape == all_.rows.shape
    np.testing.assert_allclose(found.variances, all_.variances, rtol=1e-9)
    scatter = found.rows.T @ found.rows / 300
    np.testing.assert_allclose(scatter, np.diag(found.variances), atol=1e-12)


def test_a_scatter_that_overflows_is_refused():
    X = 1e160 * np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="scale the data"):
        spectrum(BinaryProblem(X, np.ones(20), Kernel("linear")))
