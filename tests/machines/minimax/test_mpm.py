"""MPM: its closed forms, its duality, its invariances, cone solvers as oracles."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from helpers.examples import examples
from helpers.minimax_family import (
    LINEAR,
    covariances,
    gaussians,
    kernel_forms,
    minmax,
    problem,
    spread,
    twins,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh, sqrtm

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import LDA, M4, MEMPM, MPM
from mmbench.machines.minimax.spread import minimax_direction

RBF = Kernel("rbf", 0.5)


@pytest.fixture(scope="module")
def heart(real_data):
    data = real_data("heart")
    return minmax(data.X), np.where(data.y == data.y.max(), 1.0, -1.0)


@pytest.mark.parametrize("ridge", [0.0, 1e-8, 0.1])
def test_certificate_follows_from_w_and_b(ridge):
    X, y = gaussians()
    model = MPM(ridge=ridge).train(problem(X, y))
    Sx, Sy = covariances(X, y, ridge)
    sx, sy = (np.sqrt(model.w @ S @ model.w) for S in (Sx, Sy))
    mean_x, mean_y = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)
    kappa = model.fit.extra["kappa"]
    assert model.w @ (mean_x - mean_y) == pytest.approx(1)
    assert model.fit.objective == pytest.approx(sx + sy)
    assert kappa == pytest.approx(1 / (sx + sy))
    assert model.intercept == pytest.approx(kappa * sx - model.w @ mean_x)
    assert model.intercept == pytest.approx(-kappa * sy - model.w @ mean_y)
    assert 0 < model.fit.extra["alpha"] < 1


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=30, deadline=None)
@examples(seed=range(16), d=(1, 2, 3, 5, 8))
def test_the_two_bounds_meet(seed, d):
    rng = np.random.RandomState(seed)
    var_x = rng.rand(d) ** rng.choice([1, 4])
    found = minimax_direction(rng.normal(size=d), var_x, 1 - var_x)
    assert found.bound <= found.value * (1 + 1e-12)
    assert found.bound == pytest.approx(found.value, rel=1e-9)


def test_a_class_without_spread_along_the_solution_is_no_obstacle():
    var_x = np.array([0.0, 0.5, 0.5])
    found = minimax_direction(np.array([5.0, 0.1, 0.1]), var_x, 1 - var_x)
    assert found.spread_x == pytest.approx(0, abs=1e-9)
    assert found.bound == pytest.approx(found.value, rel=1e-9)


def test_cone_solver_in_the_original_coordinates_finds_no_less(heart):
    """Independent of the data: Clarabel on the program with the covariances' square roots."""
    import clarabel
    from scipy import sparse

    X, y = heart
    d = X.shape[1]
    roots = [np.real(sqrtm(S)) for S in covariances(X, y, 1e-8)]
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    cones = []
    for k, root in enumerate(roots):
        head = np.zeros(d + 2)
        head[d + k] = 1
        cones.append(-np.vstack([head, np.hstack([root, np.zeros((d, 2))])]))
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    found = clarabel.DefaultSolver(
        sparse.csc_matrix((d + 2, d + 2)),
        np.r_[np.zeros(d), 1.0, 1.0],
        sparse.csc_matrix(np.vstack([np.r_[delta, 0, 0], *cones])),
        np.r_[1.0, np.zeros(2 * (d + 1))],
        [clarabel.ZeroConeT(1), clarabel.SecondOrderConeT(d + 1), clarabel.SecondOrderConeT(d + 1)],
        settings_,
    ).solve()
    fit = MPM().train(problem(X, y)).fit
    assert fit.objective == pytest.approx(found.obj_val, rel=1e-6)


@pytest.mark.parametrize("solver", ["reference", "clarabel", "ecos"])
@pytest.mark.parametrize("kernel", [LINEAR, RBF], ids=lambda k: k.name)
def test_cone_solvers_agree(heart, solver, kernel):
    if solver == "ecos":
        pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    X, y = heart[0][::2], heart[1][::2]
    fast, other = (
        MPM(kernel=kernel.name, ridge=1e-3, solver=s).train(problem(X, y, kernel)).fit
        for s in ("auto", solver)
    )
    assert other.objective == pytest.approx(fast.objective, rel=1e-6)
    assert other.bound == pytest.approx(fast.objective, rel=1e-6)
    assert fast.status is Status.OPTIMAL


def test_classes_of_one_shape_give_fisher_s_direction_and_the_middle():
    X, y = twins()
    model = MPM(ridge=0).train(problem(X, y))
    S, _ = covariances(X, y)
    mean_x, mean_y = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)
    w = np.linalg.solve(S, mean_x - mean_y)
    np.testing.assert_allclose(model.w / np.linalg.norm(model.w), w / np.linalg.norm(w))
    assert model.intercept == pytest.approx(-model.w @ (mean_x + mean_y) / 2)


def test_sums_of_squares_weigh_a_class_by_the_root_of_its_size():
    X, y = gaussians()
    model = MPM(ridge=0, scatter="sum").train(problem(X, y))
    value = sum(
        np.sqrt(n * model.w @ S @ model.w) for n, S in zip((40, 25), covariances(X, y), strict=True)
    )
    assert model.fit.objective == pytest.approx(value)


def test_more_features_than_rows():
    X, y = gaussians(n_x=8, n_y=7, d=30)
    model = MPM(ridge=0.1).train(problem(X, y))
    Sx, Sy = covariances(X, y, 0.1)
    value = sum(np.sqrt(model.w @ S @ model.w) for S in (Sx, Sy))
    assert model.fit.objective == pytest.approx(value)
    assert model.fit.bound == pytest.approx(value)


# -- kernels -----------------------------------------------------------------------------------


def test_kernel_machine_is_the_program_of_the_paper_over_coefficients(heart):
    X, y = heart
    data = problem(X, y, Kernel("rbf", 1.0))
    model = MPM(kernel="rbf", ridge=1e-2).train(data)
    K, a = data.gram, model.coef
    forms = kernel_forms(K, y, 1e-2)
    assert a @ (K[y > 0].mean(axis=0) - K[y < 0].mean(axis=0)) == pytest.approx(1)
    assert sum(spread(a, form) for form in forms) == pytest.approx(model.fit.objective)


def test_kernel_machine_is_the_linear_one_on_the_empirical_features():
    """Features from the eigenvectors of K, where the machine uses a pivoted factor."""
    X, y = gaussians(d=2)
    test = gaussians(seed=1, d=2)[0]
    ridge, kernel = 1e-2, Kernel("rbf", 0.5)
    K = kernel(X, X)
    values, vectors = eigh(K)
    kept = values > 1e-11 * values[-1]
    inverse = vectors[:, kept] / np.sqrt(values[kept])
    F, G = K @ inverse, kernel(test, X) @ inverse
    Sx, Sy = (S + ridge * np.trace(K) / len(K) * np.eye(len(S)) for S in covariances(F, y))
    mean_x, mean_y = F[y > 0].mean(axis=0), F[y < 0].mean(axis=0)
    w = mean_x - mean_y
    for _ in range(500):  # the textbook iteration
        sx, sy = np.sqrt(w @ Sx @ w), np.sqrt(w @ Sy @ w)
        w = np.linalg.solve(Sx / sx + Sy / sy, mean_x - mean_y)
        w /= w @ (mean_x - mean_y)
    sx, sy = np.sqrt(w @ Sx @ w), np.sqrt(w @ Sy @ w)
    expected = G @ w - w @ mean_x + sx / (sx + sy)
    machine = MPM(kernel="rbf", gamma=0.5, ridge=ridge).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(test), expected, atol=1e-6)


# -- traps -------------------------------------------------------------------------------------


def test_constant_feature_and_repeated_rows_without_ridge():
    X, y = gaussians()
    padded = np.column_stack([X, np.full(len(X), 7.0), X[:, 0] + X[:, 1]])
    padded, labels = np.vstack([padded, padded[:20]]), np.r_[y, y[:20]]
    machine = MPM(ridge=0).fit(padded, labels)
    plain = MPM(ridge=0).fit(padded[:, :3], labels)
    assert machine.fits_[0].status is Status.OPTIMAL
    np.testing.assert_allclose(
        machine.decision_function(padded), plain.decision_function(padded[:, :3]), atol=1e-8
    )


def test_single_rows_as_classes():
    machine = MPM().fit([[0.0, 0.0], [1.0, 1.0]], [0, 1])
    np.testing.assert_array_equal(machine.predict([[0.1, 0.0], [0.9, 1.0]]), [0, 1])


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize(
    "machine",
    [
        MPM,
        MEMPM,
        M4,
        partial(M4, margin="hard"),
        partial(M4, normalization="mean"),
        partial(M4, nu=1),
        partial(M4, nu=1, normalization="mean"),
    ],
)
@pytest.mark.parametrize("ridge", [0.0, 1e-8])
def test_the_only_row_of_a_class_is_not_on_the_boundary(machine, label, ridge):
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(20, 3))
        n = 1 + seed % 2  # one row, or two equal rows
        X[:n] = X[0] + 4
        y = np.where(np.arange(20) < n, label, 1 - label)
        fitted = machine(ridge=ridge).fit(X, y)
        decision = fitted.decision_function(X)
        own = decision[0] * (2 * label - 1)
        assert 1e-7 < own < 1e-5 * np.ptp(decision)
        assert fitted.predict(X[:1])[0] == label


@pytest.mark.parametrize("target", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]])
def test_a_target_that_is_no_direction_is_refused(target):
    with pytest.raises(ValueError, match="not a finite vector; scale the data"):
        minimax_direction(np.array(target), np.ones(2), np.ones(2))


@pytest.mark.parametrize("machine", [M4, MPM, LDA, MEMPM])
def test_a_ridge_that_is_lost_in_rounding_is_named(machine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 20)) * 1e6
    with pytest.raises(ValueError, match="singular to working precision with ridge=1e-300"):
        machine(ridge=1e-300).fit(X, np.arange(40) % 2)


@pytest.mark.parametrize("seed", [1, 3, 5, 8])
@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_a_bound_above_the_objective_on_the_kernel_matrix_is_no_solution(seed, solver):
    # the ridge is lost in the rounding errors of the kernel matrix
    X, y = np.random.default_rng(seed).normal(size=(15, 2)), np.arange(15) < 1
    fit, reference = (
        MPM(kernel="poly", degree=2, solver=name).fit(X, y).fits_[0]
        for name in (solver, "reference")
    )
    assert fit.status is reference.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(reference.objective, rel=1e-6)


@pytest.mark.parametrize("machine", [MPM, MEMPM, M4, LDA])
def test_features_that_have_no_effect_without_a_ridge_are_named(machine):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 1] = 1e-8 * (y + 0.1 * X[:, 1])  # the classes differ in this feature alone
    with pytest.warns(UserWarning, match="without a ridge, 1 features with a small standard dev"):
        machine(ridge=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine(ridge=1e-3).fit(X, y)
        X[:, 1] = 1e5  # a constant feature
        machine(ridge=0).fit(X, y)


@pytest.mark.parametrize("machine", [MPM, M4])
@pytest.mark.parametrize("seed", [7, 11])
@pytest.mark.parametrize("ridge", [1e-6, 1e-8])
def test_a_singular_system_on_the_kernel_matrix_is_solved_in_coordinates(machine, seed, ridge):
    """Conjugate gradients divided zero by zero on the kernel matrix of repeated rows."""
    X, y = np.random.default_rng(seed).normal(size=(12, 2)).round(), np.arange(12) % 2
    fits = [
        machine(kernel="rbf", gamma=1.0, ridge=ridge, solver=solver).fit(X, y).fits_[0]
        for solver in ("auto", "reference")
    ]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-5)
