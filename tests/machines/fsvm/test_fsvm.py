"""F-SVM: the estimator, its objective in the units of the data, and its invariances."""

from __future__ import annotations

import warnings
from math import sqrt

import numpy as np
import pytest
from helpers.examples import examples
from helpers.joint_rows import VARIANTS, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from mmbench.machines import FSVM, SVM
from mmbench.machines.base.voting import class_pairs
from mmbench.selection import SelectRef, select
from mmbench.selection.folds import inner_splits


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_fit_is_certified(variant, kernel, wine):
    machine = FSVM(variant=variant, kernel=kernel, gamma=0.05).fit(*wine)
    optimum = FSVM(variant="opt", kernel=kernel, gamma=0.05, tol=1e-7).fit(*wine).fits_[0]
    for fit in machine.fits_:
        small, large = fit.extra["eigenvalues"]
        assert fit.bound <= optimum.objective * (1 + 1e-6) or variant == "eps"
        assert optimum.bound <= fit.objective
        assert 0 <= small <= large and np.isfinite(large)
        assert fit.extra["objectives"][-1] == fit.objective
        assert fit.max_violation < 1e-9
    if variant != "eps":
        assert machine.fits_[0].bound <= machine.fits_[0].objective


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_the_ratio_of_C_and_the_root_of_rho_matters(variant, wine):
    X, y = wine
    one = FSVM(C=2.0, rho=4.0, variant=variant).fit(X, y)
    other = FSVM(C=1.0, rho=1.0, variant=variant).fit(X, y)
    np.testing.assert_array_equal(
        one.pairwise_decision_function(X), other.pairwise_decision_function(X)
    )
    assert one.fits_[0].objective == pytest.approx(2 * other.fits_[0].objective)
    assert one.fits_[0].extra["eigenvalues"][1] == pytest.approx(
        other.fits_[0].extra["eigenvalues"][1] / 2
    )


def scatter_within(X, y):
    """The matrix of the authors' code of 2018: rows weighted by distances to their class mean."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for label in np.unique(y):
        centred = X[y == label] - X[y == label].mean(axis=0)
        distances = np.sqrt((centred**2).sum(axis=1))
        S += sum(d * np.outer(z, z) for d, z in zip(distances, centred, strict=True)) / sum(
            distances
        )
    return S


SCATTERS = {"total": lambda X, y: np.cov(X.T, bias=True), "within": scatter_within}


@pytest.mark.parametrize("scatter", SCATTERS)
def test_the_objective_is_that_of_the_paper(wine, scatter):
    """(12) recomputed from M, w and b in the features themselves."""
    X, y = wine
    X, y = X[y > 0], y[y > 0]
    rho, C = 3.0, 0.7
    given = {"C": C, "rho": rho, "scatter": scatter}
    machine = FSVM(variant="semi", ridge=0.0, **given).fit(X, y)
    S = SCATTERS[scatter](X, y)
    values, vectors = np.linalg.eigh(rho * S)
    M = (vectors / np.sqrt(values)) @ vectors.T
    w, signs = machine.coef_[0], np.where(y == 2, 1, -1)
    slack = np.maximum(0, 1 - signs * machine.decision_function(X)).sum()
    stated = 0.5 * w @ np.linalg.solve(M, w) + rho * np.trace(M @ S) + C * slack
    assert machine.fits_[0].objective == pytest.approx(stated, rel=1e-9)
    best = FSVM(variant="opt", ridge=0.0, **given).fit(X, y)
    slack = np.maximum(0, 1 - signs * best.decision_function(X)).sum()
    (w,) = best.coef_
    stated = sqrt(2 * rho * w @ S @ w) + C * slack
    assert best.fits_[0].objective == pytest.approx(stated, rel=1e-6)
    assert best.fits_[0].bound <= stated < machine.fits_[0].objective


@pytest.mark.parametrize("classes", [2, 3])
def test_eigenvalues_of_the_optimum_are_those_of_its_M(wine, classes):
    """``M = W (W'S W)^{-1/2} W' / sqrt(2 rho)``, with which (12) is F*; of one pair c ww'."""
    X, y = wine
    X, y, rho = X[y < classes], y[y < classes], 3.0
    machine = FSVM(C=0.7, rho=rho, variant="opt", ridge=0.0).fit(X, y)
    W, S = machine.coef_.T, np.cov(X.T, bias=True)
    values, vectors = np.linalg.eigh(W.T @ S @ W)
    M = (W @ vectors / np.sqrt(values)) @ (W @ vectors).T / sqrt(2 * rho)
    small, large = machine.fits_[0].extra["eigenvalues"]
    assert small == 0
    assert large == pytest.approx(np.linalg.eigvalsh(M)[-1])
    price = 0.5 * np.trace(W.T @ np.linalg.pinv(M) @ W) + rho * np.trace(M @ S)
    signs = [np.where(y == j, 1, -1) for _, j in class_pairs(classes)]
    used = [(y == i) | (y == j) for i, j in class_pairs(classes)]
    margins = (X @ W + machine.intercept_).T * signs
    slack = sum(np.maximum(0, 1 - m[own]).sum() for m, own in zip(margins, used, strict=True))
    assert machine.fits_[0].objective == pytest.approx(price + 0.7 * slack)


def test_without_correlation_and_scale_the_semi_whitening_is_the_svm(wine):
    X, y = wine
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    white = X @ vectors / np.sqrt(values)
    semi = FSVM(C=0.3, variant="semi", tol=1e-7).fit(white, y)
    svm = SVM(C=0.3, kernel="linear", tol=1e-7).fit(white, y)
    np.testing.assert_allclose(semi.coef_, svm.coef_, atol=1e-4)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
@examples(seed=range(5))
def test_semi_whitening_is_invariant_to_rotations(seed):
    X, y = random_problem(seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]
    machine = FSVM(C=0.5, variant="semi", tol=1e-7)
    plain = machine.fit(X, y).decision_function(X)
    np.testing.assert_allclose(
        machine.fit(X @ turn + 1, y).decision_function(X @ turn + 1), plain, atol=1e-4
    )


def test_semi_whitening_depends_on_the_scale_of_features(wine):
    X, y = wine
    machine = FSVM(C=0.1, variant="semi")
    plain = machine.fit(X, y).pairwise_decision_function(X)
    stretched = X * np.linspace(1, 30, X.shape[1])
    other = machine.fit(stretched, y).pairwise_decision_function(stretched)
    assert np.abs(other - plain).max() > 0.01


def test_large_columns_leave_the_alternation_at_its_start_but_not_the_optimum():
    """docs/machines/fsvm.md: two classes of raw Wine, and all columns multiplied by 1000."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    near, far = (FSVM().fit(factor * X, y) for factor in (1, 1000))
    assert round(near.fits_[0].gap, 2) == 0.73
    assert far.fits_[0].extra["rounds"] == 0
    assert far.fits_[0].objective > 2 * min(np.bincount(y)) > far.fits_[0].bound
    semi = FSVM(variant="semi").fit(1000 * X, y)
    np.testing.assert_allclose(1000 * far.coef_, 1000 * semi.coef_, atol=1e-6)
    small, large = (FSVM(variant="opt").fit(factor * X, y) for factor in (1, 1000))
    np.testing.assert_allclose(1000 * large.coef_, small.coef_, rtol=1e-3, atol=1e-6)


def test_an_objective_above_its_value_at_zero_is_warned_of():
    """It happens on raw columns with a polynomial kernel, but not with the RBF kernel."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    with pytest.warns(ConvergenceWarning, match=r"its value 1.2e\+02 at w = 0; set variant"):
        machine = FSVM(kernel="poly", degree=2).fit(X, y)
    assert machine.fits_[0].objective > 2 * min(np.bincount(y))
    heavy = 3.0 * np.ones(len(y))
    with pytest.warns(ConvergenceWarning, match=r"exceeds its value 3.5e\+02 at w = 0"):
        FSVM(kernel="poly", degree=2).fit(X, y, sample_weight=heavy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FSVM(kernel="rbf").fit(X, y).fits_[0].objective < 2 * min(np.bincount(y))


def test_one_transformation_serves_all_pairs_and_refuses_parameters_of_each(wine):
    X, y = wine
    fits = FSVM().fit(X, y).fits_
    assert len({fit.objective for fit in fits}) == 1
    same = [{"C": 2.0}] * 3
    np.testing.assert_array_equal(FSVM().fit_pairs(X, y, same).coef_, FSVM(C=2.0).fit(X, y).coef_)
    with pytest.raises(ValueError, match="cannot have different parameters"):
        FSVM().fit_pairs(X, y, [{"C": 1.0}, {"C": 2.0}, {"C": 1.0}])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("classes", [2, 3])
def test_selection_scores_are_those_of_a_plain_search(kernel, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes][::2, :2], y[y < classes][::2]
    grid = {"C": [0.01, 1.0], "rho": [1.0, 4.0]}
    grid |= {"gamma": [0.1, 1.0], "n_components": [2, 0.9]} if kernel == "rbf" else {}
    machine = FSVM(kernel=kernel, rounds=2, tol=1e-6)
    ours = select(machine, X, y, grid, SelectRef(folds=3))
    plain = GridSearchCV(machine, grid, cv=inner_splits(y, 3, None, 1, 0)).fit(X, y).cv_results_
    theirs = {
        tuple(sorted(point.items())): score
        for point, score in zip(plain["params"], plain["mean_test_score"], strict=True)
    }
    for row in ours.scores:
        point = {name: value for name, value in row.items() if name in grid}
        assert row["score"] == pytest.approx(theirs[tuple(sorted(point.items()))], abs=0.03)


def test_a_training_part_with_one_class_scores_as_the_constant():
    X, y = np.arange(12.0)[:, None], np.array([0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 1, 2])
    found = select(FSVM(), X, y, {"C": [1.0]}, SelectRef(folds=None, split=2 / 3), ordered=True)
    assert found.best_score == 0.25  # two of the eight last rows


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_rows_get_the_larger_class(variant):
    machine = FSVM(variant=variant).fit(np.ones((9, 3)), [0, 1, 1, 2, 1, 1, 0, 2, 1])
    assert (machine.predict(np.eye(3)) == 1).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_decisions_below_the_tolerance_are_constant(variant, classes):
    """Without the rule noise is ranked: decisions range over 1e-16 to 1e-5."""
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.2).astype(int)
    X = rng.normal(160, 6, (300, 2))
    y[200:] = 2 if classes == 3 else y[200:]
    X[y == 2] += 30
    machine = FSVM(C=0.01, variant=variant).fit(X, y)
    fit, decisions = machine.fits_[0], X @ machine.coef_.T + machine.intercept_
    assert np.ptp(decisions[:, 0]) == 0 and fit.n_support == 0
    assert np.all(np.ptp(decisions, axis=0)[1:] > 1)
    if variant == "opt":
        S = np.cov(X.T, bias=True)
        S += 1e-8 * np.trace(S) / 2 * np.eye(2)
        roots = np.linalg.norm(np.linalg.cholesky(S).T @ machine.coef_.T, "nuc")
        pairs = class_pairs(classes)
        slack = sum(
            np.maximum(0, 1 - np.where(y == j, 1, -1) * f)[(y == i) | (y == j)].sum()
            for (i, j), f in zip(pairs, decisions.T, strict=True)
        )
        assert fit.objective == pytest.approx(sqrt(2) * roots + 0.01 * slack, rel=1e-9)


def test_short_weights_without_cancellation_are_kept():
    X, y = random_problem(0)
    machine = FSVM(C=1e-9, variant="semi").fit(X, y)
    assert 0 < np.ptp(machine.decision_function(X)) < 1e-5


@pytest.mark.parametrize("variant", ["pg", "opt"])
def test_pairs_that_share_a_transformation_have_weights(variant):
    """Weights of rows are in the scatter too, those of classes in the slacks alone."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::4, :2], y[::4]
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    machine = FSVM(variant=variant, class_weight={1: 3.0}, tol=1e-7)
    one = [fit.objective for fit in machine.fit(X, y, sample_weight=weights).fits_]
    other = [fit.objective for fit in machine.fit(X[rows], y[rows]).fits_]
    assert one == pytest.approx(other, rel=1e-6)
    plain = FSVM(variant=variant, tol=1e-7).fit(X[rows], y[rows]).fits_
    assert plain[0].objective < one[0] < 3.0 * plain[0].objective


@pytest.mark.parametrize("variant", ["semi", "opt"])
def test_weights_of_classes_by_a_general_solver(variant):
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    fits = [
        FSVM(variant=variant, class_weight="balanced", solver=solver).fit(X[:80], y[:80]).fits_[0]
        for solver in ("auto", "reference")
    ]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)
