"""F-SVM: its optimum is a whitened SVM, no value lies below a dual bound, rounds only descend."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import GridSearchCV

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import FSVM, SVM
from mmbench.machines.fsvm.alternation import alternate
from mmbench.machines.fsvm.hyperplanes import JointRows, lower_bound, train_hyperplanes
from mmbench.machines.fsvm.optimum import solve_pair
from mmbench.machines.fsvm.reference import solve_reference
from mmbench.machines.fsvm.shared import SplitState, solve_pairs
from mmbench.machines.fsvm.transformation import above_floor, closed_form_root, gradient_steps
from mmbench.machines.kernel_pca import Spectrum, spectrum
from mmbench.machines.problem import BinaryProblem
from mmbench.machines.svm import train_svm
from mmbench.machines.voting import class_pairs, pair_rows
from mmbench.selection import select
from mmbench.selection.folds import inner_splits

VARIANTS = ("semi", "pg", "eps", "opt")
COSTS = (0.03, 0.3, 3.0)


@pytest.fixture(params=[("ionosphere", "b", "g"), ("pima", 0, 1)], ids=["ionosphere", "pima"])
def two(request, real_problem):
    """A real pair of classes, and its rows in uncorrelated coordinates."""
    problem = real_problem(*request.param, Kernel("linear"), rows=250)
    return problem, rows_of(spectrum(problem), (problem.y > 0).astype(int))


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def wine_rows(wine):
    """Two of the three classes."""
    X, y = wine
    X, y = X[y > 0], y[y > 0]
    return rows_of(spectrum(BinaryProblem(X, np.ones(len(X)), Kernel("linear"))), y - 1)


def rows_of(found: Spectrum, labels: np.ndarray) -> JointRows:
    pairs = class_pairs(int(labels.max()) + 1)
    s = found.variances + 1e-8 * found.variances.mean()
    return JointRows(found.rows, s, [pair_rows(labels, i, j) for i, j in pairs])


def random_problem(seed: int, n: int = 24, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.7 * y[:, None], y


def transform_value(M, W, s, eps=0.0) -> float:
    """``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``."""
    inverse = np.linalg.inv(M)
    return 0.5 * np.trace(W.T @ inverse @ W) + np.diagonal(M) @ s + 0.5 * eps * np.trace(inverse)


def gradient(M, W, s, eps=0.0) -> np.ndarray:
    """That of `transform_value`, equation (21)."""
    inverse = np.linalg.inv(M)
    return -0.5 * inverse @ (W @ W.T + eps * np.eye(len(s))) @ inverse + np.diag(s)


def optimum_of(rows: JointRows, C: float, tol: float = 1e-8):
    return solve_pair(rows, rows.transformed(rows.s**-0.5)[0], C, tol)


# -- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("C", COSTS)
def test_the_optimum_is_that_of_one_cone_program(two, C):
    _, rows = two
    fast, reference = optimum_of(rows, C), solve_reference(rows, C)
    assert reference.status is Status.OPTIMAL
    assert fast.value == pytest.approx(reference.value, rel=1e-6)
    assert fast.bound == pytest.approx(reference.bound, rel=1e-6)
    assert fast.bound <= reference.value * (1 + 1e-8)


@pytest.mark.parametrize("C", COSTS)
def test_the_optimum_is_the_svm_on_whitened_data(two, C):
    """With C' = C ||S^{1/2}w*|| / sqrt(2 rho); F* follows from that SVM alone."""
    problem, rows = two
    found = optimum_of(rows, C)
    if found.status is Status.TRIVIAL:
        pytest.skip("no direction is worth its norm")
    length = float(np.linalg.norm(np.sqrt(rows.s) * found.W[:, 0]))
    whitened = BinaryProblem(rows.Z / np.sqrt(rows.s), problem.y, Kernel("linear"))
    svm = train_svm(whitened, C * length / sqrt(2), "reference", 1e-8)
    w = whitened.X.T @ svm.coef
    slack = np.maximum(0, 1 - problem.y * (whitened.X @ w + svm.intercept)).sum()
    assert np.linalg.norm(w) == pytest.approx(length, rel=1e-3)
    assert sqrt(2) * np.linalg.norm(w) + C * slack == pytest.approx(found.value, rel=1e-5)


@given(st.integers(0, 10_000), st.floats(0.1, 10), st.floats(0.1, 10))
@settings(max_examples=20, deadline=None)
def test_no_transformation_is_better_than_the_closed_infimum(seed, rho, scale):
    """1/2 w'M^{-1}w + rho tr(MS) >= sqrt(2 rho) ||S^{1/2}w||, reached as M tends to c ww'."""
    rng = np.random.default_rng(seed)
    s, w = rng.uniform(0.1, 2, 5), scale * rng.normal(size=5)
    infimum = sqrt(2 * rho) * np.linalg.norm(np.sqrt(s) * w)
    root = rng.normal(size=(5, 5))
    W = w[:, None]
    for M in (root @ root.T + 0.01 * np.eye(5), np.outer(w, w) + np.eye(5)):
        assert transform_value(M, W, rho * s) >= infimum * (1 - 1e-9)
    near = np.outer(w, w) / (sqrt(2 * rho) * np.linalg.norm(np.sqrt(s) * w)) + 1e-9 * np.eye(5)
    assert transform_value(near, W, rho * s) == pytest.approx(infimum, rel=1e-3)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_the_optimum_is_affine_invariant(seed):
    X, y = random_problem(seed)
    rng = np.random.default_rng(seed + 1)
    other = X @ (rng.normal(size=(4, 4)) + 2 * np.eye(4)) + rng.normal(size=4)
    machine = FSVM(C=0.5, variant="opt", ridge=0.0, tol=1e-7)
    plain, moved = machine.fit(X, y).decision_function(X), machine.fit(other, y)
    # an objective to tol gives decisions to its root, times what the map stretches
    np.testing.assert_allclose(moved.decision_function(other), plain, atol=5e-3)


@pytest.mark.parametrize("variant", ["semi", "opt"])
def test_many_rows_of_few_features_reach_what_the_reference_reaches(variant):
    """Without the Gram matrix of the rows."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(2100) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(2100, 3)) * [1.0, 5.0, 0.2] + 0.4 * y[:, None]
    fits = [
        FSVM(C=0.3, variant=variant, solver=s).fit(X, y).fits_[0] for s in ("auto", "reference")
    ]
    assert fits[0].status is Status.OPTIMAL
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)


@pytest.mark.parametrize("variant", ["pg", "opt"])
def test_a_path_to_a_search_tolerance_ends_beside_the_optimum(variant, real_problem):
    """Each C from the last."""
    problem = real_problem("pima", 0, 1, Kernel("rbf", gamma=2.0**-5), rows=520)
    path = [{"C": C, "n_components": 20} for C in (0.01, 0.3, 10.0)]
    machines = [FSVM(kernel="rbf", variant=variant, tol=tol) for tol in (1e-3, 1e-5)]
    fits = [[model.fit for model in machine.train_path(problem, path)] for machine in machines]
    for loose, exact in zip(*fits, strict=True):
        assert loose.status in (Status.OPTIMAL, Status.TRIVIAL)
        assert loose.bound <= loose.objective * (1 + 1e-12)
        allowed = 1e-2 if variant == "pg" else 1e-3  # a round may lower F by less than 1e-3
        assert loose.objective == pytest.approx(exact.objective, rel=allowed)


def test_points_of_a_path_that_differ_in_tol_are_trained_apart(two):
    problem, _ = two
    path = [{"tol": 1e-1}, {"tol": 1e-8}]
    loose, exact = (m.fit for m in FSVM(variant="opt").train_path(problem, path))
    alone = FSVM(variant="opt", tol=1e-8).train(problem).fit
    assert exact.objective == pytest.approx(alone.objective, rel=1e-8)
    assert exact.gap < 1e-7 < loose.gap


def test_a_small_C_is_worth_no_direction(two):
    problem, rows = two
    found = optimum_of(rows, 1e-4)
    fewer = min((problem.y > 0).sum(), (problem.y < 0).sum())
    assert found.status is Status.TRIVIAL and not found.W.any()
    assert found.value == pytest.approx(2e-4 * fewer) and found.bound == pytest.approx(found.value)
    machine = FSVM(C=1e-4, variant="opt").fit(problem.X, problem.y)
    majority = 1.0 if fewer == (problem.y < 0).sum() else -1.0
    assert (machine.predict(problem.X) == majority).all()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_pairs_that_share_M_reach_the_semidefinite_program(wine, C):
    X, labels = wine
    problem = BinaryProblem(X, np.ones(len(X)), Kernel("linear"))
    rows = rows_of(spectrum(problem), labels)
    fast = solve_pairs(rows, rows.transformed(rows.s**-0.5), C, 1e-7, 1e-6)
    reference = solve_reference(rows, C)
    assert fast.status is reference.status is Status.OPTIMAL
    assert fast.value == pytest.approx(reference.value, rel=1e-6)
    assert fast.bound <= reference.value * (1 + 1e-9)


@pytest.mark.parametrize(("C", "ends"), [(0.003, Status.TRIVIAL), (1.0, Status.OPTIMAL)])
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_pairs_that_share_M_end_there_from_any_penalty(wine, penalty, C, ends):
    X, labels = wine
    rows = rows_of(spectrum(BinaryProblem(X, np.ones(len(X)), Kernel("linear"))), labels)
    images, nothing = rows.transformed(rows.s**-0.5), np.zeros((len(rows.s), 3))
    plain = solve_pairs(rows, images, C, 1e-7, 1e-6)
    found = solve_pairs(rows, images, C, 1e-7, 1e-6, SplitState(nothing, nothing, penalty, None))
    assert found.status is ends
    assert found.value == pytest.approx(plain.value, rel=2e-6)
    assert found.bound <= plain.value * (1 + 1e-12)
    assert found.violation <= 1e-9


# -- the rounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", COSTS)
def test_rounds_descend_from_the_semi_whitening_to_no_less_than_the_optimum(two, C):
    _, rows = two
    best = optimum_of(rows, C)
    found = alternate(rows, rows.transformed(rows.s**-0.25), C, 1e-6, rounds=15, decrease=0.0)
    assert (np.diff(found.values) <= 0).all()
    assert found.bound <= best.value * (1 + 1e-6) <= found.values[-1] * (1 + 2e-6)
    assert found.values[0] > found.values[-1]
    assert found.extreme_eigenvalues()[0] > 0.999e-5


def test_the_regularised_objective_has_one_optimum_with_a_tight_bound(wine_rows):
    rows = wine_rows
    for eps in (1.0, 0.01):
        found = alternate(
            rows, rows.transformed(rows.s**-0.25), 1.0, 1e-7, rounds=500, decrease=1e-10, eps=eps
        )
        assert (np.diff(found.values) <= 0).all()
        assert 0 <= found.value - found.bound <= 1e-4 * found.value


def test_eps_goes_from_the_semi_whitening_to_the_whitening(wine_rows):
    rows = wine_rows
    s = rows.s
    W = optimum_of(rows, 1.0).W
    far = closed_form_root(W, s, 1e8)
    far = far @ far.T
    np.testing.assert_allclose(far / far[0, 0], np.diag(np.sqrt(s[0] / s)), atol=1e-4)
    near = alternate(
        rows, rows.transformed(s**-0.25), 1.0, 1e-6, rounds=1000, decrease=1e-7, eps=1e-6
    )
    assert near.values[-1] == pytest.approx(optimum_of(rows, 1.0).value, rel=0.02)


@given(st.integers(0, 10_000), st.floats(1e-3, 10))
@settings(max_examples=25, deadline=None)
def test_the_closed_M_step_has_gradient_zero(seed, eps):
    rng = np.random.default_rng(seed)
    s, W = rng.uniform(0.1, 3, 5), rng.normal(size=(5, 3))
    root = closed_form_root(W, s, eps)
    M = root @ root.T
    np.testing.assert_allclose(gradient(M, W, s, eps), 0, atol=1e-7 * max(1, s.max()))
    value = transform_value(M, W, s, eps)
    for _ in range(5):
        other = root @ (np.eye(5) + 0.1 * rng.normal(size=(5, 5)))
        assert transform_value(other @ other.T, W, s, eps) >= value * (1 - 1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_objective_is_convex_and_its_gradient_right(seed):
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.1, 3, 4)
    ends = []
    for _ in range(2):
        root = rng.normal(size=(4, 4))
        ends.append((root @ root.T + 0.1 * np.eye(4), rng.normal(size=(4, 2))))
    values = [transform_value(M, W, s) for M, W in ends]
    middle = [(one + other) / 2 for one, other in zip(*ends, strict=True)]
    assert transform_value(*middle, s) <= (1 + 1e-12) * sum(values) / 2
    M, W = ends[0]
    turn = 1e-6 * (root + root.T)
    slope = transform_value(M + turn, W, s) - transform_value(M - turn, W, s)
    assert slope == pytest.approx(2 * np.sum(gradient(M, W, s) * turn), rel=1e-3, abs=1e-10)
    assert transform_value(gradient_steps(M, W, s), W, s) <= transform_value(M, W, s)


@pytest.mark.parametrize("seed", range(5))
def test_a_gradient_step_goes_against_the_gradient(seed):
    """As far as t0 = 0.1 or, where that does not lower the value, a half of it, a quarter, ..."""
    rng = np.random.default_rng(seed)
    s, W, root = rng.uniform(0.1, 3, 4), rng.normal(size=(4, 2)), rng.normal(size=(4, 4))
    M = root @ root.T + np.eye(4)
    slope = gradient(M, W, s)
    change = M - gradient_steps(M, W, s, max_steps=1)
    step = np.sum(change * slope) / np.sum(slope * slope)
    np.testing.assert_allclose(change, step * slope, atol=1e-12)
    assert np.log2(0.1 / step) == pytest.approx(round(np.log2(0.1 / step)), abs=1e-9)


def test_the_floor_is_the_nearest_matrix_above_it():
    M = np.diag([1.0, -2.0])
    np.testing.assert_allclose(above_floor(M), np.diag([1.0, 1e-5]))
    np.testing.assert_array_equal(above_floor(np.eye(2)), np.eye(2))


def test_any_multipliers_bound_the_optimum_from_below(two):
    _, rows = two
    planes = train_hyperplanes(rows, rows.transformed(rows.s**-0.25), 3.0, None, 1e-6)
    best = optimum_of(rows, 3.0).value
    for factor in (0.01, 0.5, 1.0):
        scaled = replace(planes, u=[factor * u for u in planes.u], q=factor * planes.q)
        assert lower_bound(scaled, rows.s) <= best * (1 + 1e-9)


# -- the estimator -------------------------------------------------------------------------------


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


def test_the_objective_is_that_of_the_paper(wine):
    """(12) recomputed from M, w and b in the features themselves."""
    X, y = wine
    X, y = X[y > 0], y[y > 0]
    rho, C = 3.0, 0.7
    machine = FSVM(C=C, rho=rho, variant="semi", ridge=0.0).fit(X, y)
    S = np.cov(X.T, bias=True)
    values, vectors = np.linalg.eigh(rho * S)
    M = (vectors / np.sqrt(values)) @ vectors.T
    w, signs = machine.coef_[0], np.where(y == 2, 1, -1)
    slack = np.maximum(0, 1 - signs * machine.decision_function(X)).sum()
    stated = 0.5 * w @ np.linalg.solve(M, w) + rho * np.trace(M @ S) + C * slack
    assert machine.fits_[0].objective == pytest.approx(stated, rel=1e-9)


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


def test_swapping_labels_flips_the_sign(wine):
    X, y = wine
    X, y = X[y > 0], y[y > 0]
    for variant in VARIANTS:
        machine = FSVM(variant=variant, tol=1e-7)
        plain = machine.fit(X, y).decision_function(X)
        np.testing.assert_allclose(machine.fit(X, -y).decision_function(X), -plain, atol=2e-3)


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
    ours = select(machine, X, y, grid, folds=3)
    plain = GridSearchCV(machine, grid, cv=inner_splits(y, 3, None, 1, 0)).fit(X, y).cv_results_
    theirs = {
        tuple(sorted(point.items())): score
        for point, score in zip(plain["params"], plain["mean_test_score"], strict=True)
    }
    for row in ours.scores:
        point = {name: value for name, value in row.items() if name in grid}
        assert row["score"] == pytest.approx(theirs[tuple(sorted(point.items()))], abs=0.03)


def test_a_training_part_with_one_class_scores_as_the_constant():
    X = np.arange(12.0)[:, None]
    y = np.repeat([0, 1, 2], 4)
    found = select(FSVM(), X, y, {"C": [1.0]}, folds=2)
    assert 0 <= found.best_score <= 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_rows_get_the_larger_class(variant):
    machine = FSVM(variant=variant).fit(np.ones((9, 3)), [0, 1, 1, 2, 1, 1, 0, 2, 1])
    assert (machine.predict(np.eye(3)) == 1).all()
