"""LDA: its closed form, its invariances, scikit-learn as oracle."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import covariances, gaussians, kernel_forms, problem, twins
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import LDA, MEMPM, MPM


def unit(v):
    return v / np.linalg.norm(v)


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_w_is_the_printed_one(solver):
    X, y = gaussians()
    model = LDA(ridge=0.01, solver=solver).train(problem(X, y))
    S = sum(covariances(X, y, 0.01))
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    np.testing.assert_allclose(unit(model.w), unit(np.linalg.solve(S, delta)), atol=1e-5)
    assert model.fit.objective == pytest.approx(1 / np.sqrt(delta @ np.linalg.solve(S, delta)))
    assert model.fit.bound == pytest.approx(model.fit.objective)
    middle = X[y > 0].mean(axis=0) + X[y < 0].mean(axis=0)
    assert model.intercept == pytest.approx(-model.w @ middle / 2)


def test_equal_classes_give_scikit_learn_s_classifier():
    X, y = gaussians(n_x=30, n_y=30)
    other = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    machine = LDA(ridge=0).fit(X, y)
    f, g = machine.decision_function(X), other.decision_function(X)
    np.testing.assert_allclose(f / np.abs(f).max(), g / np.abs(g).max(), atol=1e-9)


def test_classes_of_one_shape_give_the_mpm():
    X, y = twins()
    f, g = (M(ridge=0).fit(X, y).decision_function(X) for M in (LDA, MPM))
    np.testing.assert_allclose(f, g, atol=1e-9)


def errors(scores, y, weight):
    """Return the training errors, with a weight for rows of the class +1."""
    return np.where(y > 0, weight, 1.0)[(scores >= 0) != (y > 0)].sum()


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_optimized_bias_minimises_the_weighted_training_errors(weight):
    """Among the thresholds between two scores."""
    improved = 0
    for seed in range(5):
        X, y = gaussians(seed=seed, shift=0.7)
        machine = LDA(class_weight={1.0: weight})
        at_midpoint = errors(machine.fit(X, y).decision_function(X), y, weight)
        scores = machine.set_params(bias="optimized").fit(X, y).decision_function(X)
        found, ordered = errors(scores, y, weight), np.sort(scores)
        between = [errors(scores - m, y, weight) for m in (ordered[1:] + ordered[:-1]) / 2]
        outside = [weight * np.sum(y > 0), np.sum(y < 0)]
        assert min(found, *outside) == min(*between, *outside)
        improved += found < at_midpoint
    assert improved > 0


def test_kernel_machine_is_the_same_criterion_over_coefficients():
    X, y = gaussians()
    data = problem(X, y, Kernel("rbf", 0.5))
    model = LDA(kernel="rbf", ridge=1e-2).train(data)
    K, a = data.gram, model.coef
    value = np.sqrt(a @ sum(kernel_forms(K, y, 1e-2)) @ a)
    assert a @ (K[y > 0].mean(axis=0) - K[y < 0].mean(axis=0)) == pytest.approx(1)
    assert model.fit.objective == pytest.approx(value)


@pytest.mark.parametrize("machine", [LDA(), MPM(), MEMPM()], ids=repr)
def test_equal_means_give_the_larger_class(machine):
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0]])
    (fit,) = machine.fit(X, [0, 0, 0, 0, 1, 1]).fits_
    assert fit.status is (Status.TRIVIAL if type(machine) is LDA else Status.INFEASIBLE)
    assert fit.extra.get("kappa", 0) == 0
    np.testing.assert_array_equal(machine.predict(X), 0)


@pytest.mark.parametrize("scatter", ["mean", "sum"])
def test_weights_of_classes_move_b_by_the_rule_of_bayes(scatter):
    """As priors do in scikit-learn's LDA, which has one covariance for both classes."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 3)), 2, axis=0) + np.outer(np.arange(80) % 2, [1, 0, 1])
    y = np.where(np.arange(80) % 2, "ill", "well")
    ours = LDA(ridge=0.0, scatter=scatter, class_weight={"ill": 3.0}).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.75, 0.25]).fit(X, y)
    decisions, expected = ours.decision_function(X), theirs.decision_function(X)
    ratio = np.ptp(decisions) / np.ptp(expected)
    np.testing.assert_allclose(decisions, ratio * expected, atol=1e-8)
    plain, balanced = LDA(ridge=0.0), LDA(ridge=0.0, class_weight="balanced")
    np.testing.assert_array_equal(plain.fit(X, y).coef_, balanced.fit(X, y).coef_)
    assert plain.intercept_ == balanced.intercept_


def test_no_threshold_lies_between_equal_rows():
    """The decision values of repeated rows differ by rounding errors."""
    rng = np.random.default_rng(2)
    X, y = np.repeat(rng.normal(size=(6, 2)), 5, axis=0), rng.integers(0, 2, 30)
    machine = LDA(kernel="rbf", gamma=1.0, ridge=0.01, bias="optimized").fit(X, y)
    assert (machine.predict(X) != y).sum() == 9
    order = rng.permutation(30)
    again = LDA(kernel="rbf", gamma=1.0, ridge=0.01, bias="optimized").fit(X[order], y[order])
    assert again.intercept_ == pytest.approx(machine.intercept_)


@pytest.mark.parametrize("bias", ["midpoint", "optimized"])
@pytest.mark.parametrize("class_weight, label", [(None, 1), ({0: 10, 1: 1}, 0), ({0: 1, 1: 10}, 1)])
def test_equal_means_give_the_class_of_the_larger_cost(bias, class_weight, label):
    half = np.random.default_rng(0).normal(size=(10, 3))
    X, y = np.vstack([half, -half] * 2), np.repeat([0, 1], 20)
    machine = LDA(bias=bias, class_weight=class_weight).fit(X, y)
    assert machine.fits_[0].status is Status.TRIVIAL
    assert set(machine.predict(X)) == {label}
