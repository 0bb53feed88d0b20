"""KLDA: the printed system, the least squares SVM and LDA as oracles, its two thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import KLDA, LDA, LSSVM, klda
from mmbench.machines.base.problem import BinaryProblem, judged

KERNELS = (Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=1.0))
LINEAR, RBF = KERNELS[0], KERNELS[2]
ETAS = (1e-6, 1e-3, 10.0)


def scores(problem, model, rows=None):
    """``f(z) - b`` of a model at rows, by default at those of training."""
    if model.w is not None:
        return (problem.X if rows is None else rows) @ model.w
    return (problem.gram if rows is None else problem.kernel(rows, problem.X)) @ model.coef


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("eta", ETAS)
def test_direction_is_that_of_the_least_squares_svm(pair, kernel, eta):
    """w is a positive multiple, so centred scores are, on training and on new rows."""
    whole = pair(kernel)
    train = BinaryProblem(whole.X[::2], whole.y[::2], kernel)
    level = np.trace(train.gram) / len(train.y)
    ours = KLDA(eta=eta, solver="reference").train(train)
    theirs = LSSVM(C=1 / (eta * level)).train(train)
    for rows in (whole.X[::2], whole.X[1::2]):
        a, b = (scores(train, model, rows) for model in (ours, theirs))
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert cosine == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("kernel", (*KERNELS, Kernel("poly", degree=1, divisor=2.0)), ids=str)
@pytest.mark.parametrize("eta", [1e-3, 10.0])
def test_fast_and_reference_agree(pair, kernel, eta):
    problem = pair(kernel)
    fast, printed = (KLDA(eta=eta, solver=s).train(problem) for s in ("auto", "reference"))
    (n, d), of_features = problem.X.shape, kernel.name == "linear" or kernel.degree == 1
    assert (fast.fit.route == "Cholesky in features") == (of_features and n >= 2 * d)
    assert fast.fit.objective == pytest.approx(printed.fit.objective, rel=1e-6)
    np.testing.assert_allclose(
        scores(problem, fast), scores(problem, printed), atol=1e-5 * np.ptp(scores(problem, fast))
    )


@pytest.mark.parametrize("eta", ETAS)
def test_linear_direction_is_fisher_s_with_a_ridge(pair, eta):
    """(Sw + eta I)^-1 delta in the space of the features."""
    problem = pair(LINEAR)
    X, y = problem.X, problem.y
    parts = [X[y > 0], X[y < 0]]
    Sw = sum((p - p.mean(axis=0)).T @ (p - p.mean(axis=0)) for p in parts)
    ridge = eta * np.trace(problem.gram) / len(y)
    delta = parts[0].mean(axis=0) - parts[1].mean(axis=0)
    w = np.linalg.solve(Sw + ridge * np.eye(X.shape[1]), delta)
    model = KLDA(eta=eta).train(problem)
    ours = X.T @ model.coef if model.w is None else model.w
    np.testing.assert_allclose(ours, w, rtol=1e-6, atol=1e-8 * np.abs(w).max())
    assert model.fit.objective == pytest.approx(-0.5 * w @ delta, rel=1e-6)
    assert model.fit.bound <= model.fit.objective


@pytest.mark.parametrize("bias", ["optimized", "midpoint"])
def test_threshold(pair, bias):
    problem = pair(RBF)
    s, y = scores(problem, KLDA(eta=1.0).train(problem)), problem.y
    b = KLDA(eta=1.0, bias=bias).train(problem).intercept
    if bias == "midpoint":
        assert b == pytest.approx(-(s[y > 0].mean() + s[y < 0].mean()) / 2)
        return
    wrong = ((s + b >= 0) != (y > 0)).sum()
    middles = -(np.sort(s)[1:] + np.sort(s)[:-1]) / 2
    assert wrong == min(((s + m >= 0) != (y > 0)).sum() for m in middles)


@pytest.mark.parametrize("eta", [1e-3, 1e-1])
@pytest.mark.parametrize("kernel", [LINEAR, RBF], ids=lambda kernel: kernel.name)
def test_any_coefficients_bound_the_optimum_from_both_sides(pair, kernel, eta):
    """Away from the optimum the gap is wide, and the optimum inside."""
    problem = pair(kernel)
    y, gram = problem.y, np.asarray(problem.gram, dtype=float)
    features = problem.X if kernel is LINEAR else None
    rows, optimum = klda._Rows(gram, y, None), KLDA(eta=eta).train(problem)
    best, products = optimum.coef, gram
    if features is not None:
        best, products = klda.linear_weights(features, optimum), features.T @ features
    # directions in which the kernel hardly varies, where the ridge is all there is
    n = len(best)
    away = np.linalg.norm(best) * np.linalg.eigh(products)[1][:, [n // 8, n // 2]]
    etas = np.full(2, eta * np.trace(gram) / len(y))
    for model in klda._certified(rows, etas, best[:, None] + away, "midpoint", None, features):
        assert model.fit.bound < optimum.fit.bound * (1 - 1e-9)
        assert model.fit.objective > optimum.fit.objective
        assert judged(model.fit, 1e-6, 1e-6).status is Status.INACCURATE


def test_kernel_values_may_have_any_scale(pair):
    """eta is relative to tr(K)/n."""
    problem = pair(RBF)
    scaled = replace(problem, given_gram=problem.gram * 1000)
    one, other = (KLDA(eta=1e-3).train(p) for p in (problem, scaled))
    np.testing.assert_allclose(scores(problem, one) * 1, scores(scaled, other), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_equal_class_means_are_called_trivial(unit):
    X = unit * np.array([[-1.0], [1.0], [-2.0], [2.1], [-0.1]])
    model = KLDA(eta=0.1).train(BinaryProblem(X, np.array([1.0, 1, -1, -1, -1]), LINEAR))
    assert model.fit.status is Status.TRIVIAL
    assert not model.coef.any()
    assert model.intercept < 0  # the larger class


def test_predictions_at_equal_thresholds_are_the_least_squares_svm_s(real_data):
    """Balanced classes and midpoints: both machines separate at the same place."""
    data = real_data("usps")
    rows = np.concatenate([np.flatnonzero(data.y == c)[:100] for c in (3, 5)])
    X, y = data.X[rows], data.y[rows]
    ours = KLDA(eta=1e-2, gamma=2.0**-7, bias="midpoint").fit(X, y)
    lssvm = LSSVM(C=100, gamma=2.0**-7).fit(X, y)
    np.testing.assert_array_equal(ours.predict(data.X), lssvm.predict(data.X))


def test_weights_of_classes_are_costs_of_errors(pair):
    """They move b alone, and to fewer errors of the class whose errors cost more."""
    problem = pair(RBF)
    y = problem.y
    plain = KLDA(kernel="rbf", eta=1.0).fit(problem.X, y)
    machine = KLDA(kernel="rbf", eta=1.0, class_weight={1.0: 1000.0}).fit(problem.X, y)
    np.testing.assert_array_equal(machine.dual_coef_, plain.dual_coef_)
    assert (machine.predict(problem.X[y > 0]) == 1).all()
    with pytest.raises(ValueError, match='class_weight needs bias="optimized"'):
        KLDA(bias="midpoint", class_weight="balanced").fit(problem.X, y)


def test_columns_of_any_unit_are_solved_to_the_last_digits():
    random = np.random.default_rng(0)
    y = (random.random(5000) < 0.3).astype(int)
    X = random.normal(size=(5000, 3)) * [1, 2886, 300] + np.outer(y, [1, 1000, 0])
    (fit,) = KLDA(kernel="linear", eta=1e-9).fit(X, y).fits_
    assert fit.status is Status.OPTIMAL
    assert abs(fit.gap) < 1e-12


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("machine", [KLDA(eta=1e-6), LDA(ridge=2e-7, bias="optimized")], ids=repr)
def test_a_small_ridge_puts_no_threshold_between_equal_rows(machine, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(25, 2)).astype(float)
    y = X[:, 0] + 2 * rng.normal(size=25) > 0
    f = machine.set_params(kernel="rbf", gamma=0.1).fit(X, y).decision_function(X)
    assert np.abs(f).min() > 4e-10 * np.ptp(f)  # half the resolution of the scores


@pytest.mark.parametrize("shape", [(60, 4), (30, 20)])
@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_linear_rows_far_from_the_origin_lose_no_digits(shape, solver):
    """Only the ridge depends on the origin; a Gram matrix of such rows loses ten digits."""
    random = np.random.RandomState(0)
    Z = random.standard_normal(shape)
    y = np.where(Z[:, 1] + 0.3 * random.standard_normal(len(Z)) > 0, 1, -1)
    X = Z + 1e6
    machine = KLDA(kernel="linear", solver=solver).fit(X, y)
    fit = machine.fits_[0]
    within = sum((part := Z[y == c] - Z[y == c].mean(axis=0)).T @ part for c in (-1, 1))
    ahead = Z[y == 1].mean(axis=0) - Z[y == -1].mean(axis=0)
    eta = 1e-3 * np.square(X).sum(axis=1).mean()
    optimum = -0.5 * ahead @ np.linalg.solve(within + eta * np.eye(shape[1]), ahead)
    assert fit.status == "optimal"
    assert fit.objective == pytest.approx(optimum, 1e-9)
    assert fit.bound <= optimum * (1 - 1e-9)
    assert fit.n_support == len(X)
    assert machine.score(X, y) > 0.8
