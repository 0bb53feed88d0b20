"""The Sigma-SVM: its kernel against direct linear algebra, the SVM and whitening as its ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import MinMaxScaler, scale

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import SVM, SigmaSVM, sigma_svm
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.kernel_pca import spectrum
from mmbench.machines.sigma_svm import SHARES, inverse_kernel, spectral_kernel
from mmbench.machines.svm import train_svm
from mmbench.selection import SelectRef, select

KERNELS = (Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=1.0))
LINEAR, RBF = KERNELS[0], KERNELS[2]


def weights(problem, model):
    return problem.X.T @ model.coef if model.w is None else model.w


def decide(problem, model, Z):
    """Return f at rows Z."""
    if model.w is not None:
        return Z @ model.w + model.intercept
    return problem.kernel(Z, problem.X) @ model.coef + model.intercept


def printed_kernel(gram, D, cross=None):
    """``Khat = (Kc - Kc (n(1-D)/D I + Kc)^-1 Kc) / (1-D)``; test rows replace the left factor."""
    n = len(gram)
    H = np.eye(n) - 1 / n
    centred = H @ gram @ H
    left = centred
    if cross is not None:
        left = cross - gram.mean(axis=0) - cross.mean(axis=1, keepdims=True) + gram.mean()
    inverse = np.linalg.inv(n * (1 - D) / D * np.eye(n) + centred)
    return (left - left @ inverse @ centred) / (1 - D)


# -- the kernel --------------------------------------------------------------------------------


@pytest.mark.parametrize("D", [0.1, 0.5, 0.99])
def test_linear_kernel_is_the_formula_with_the_covariance_itself(pair, D):
    problem = pair(LINEAR)
    X, n = problem.X, len(problem.X)
    mu = X.mean(axis=0)
    M = (1 - D) * np.eye(X.shape[1]) + D * (X.T @ X / n - np.outer(mu, mu))
    expected = (X - mu) @ np.linalg.solve(M, (X - mu).T)
    found = spectral_kernel(problem, spectrum(problem), D)[0].gram
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("D", [0.1, 0.5, 0.99])
def test_decisions_are_those_of_an_svm_with_the_printed_kernel(pair, kernel, D):
    """On training and test rows: libsvm on the printed kernel, which is never formed here."""
    whole = pair(kernel)
    train = BinaryProblem(whole.X[::2], whole.y[::2], kernel)
    model = SigmaSVM(D=D, C=3.0, tol=1e-6).train(train)
    gram, cross = train.gram, kernel(whole.X[1::2], train.X)
    printed = replace(train, given_gram=printed_kernel(gram, D))
    svm = train_svm(printed, 3.0, tol=1e-8)
    np.testing.assert_allclose(
        decide(train, model, train.X), printed.gram @ svm.coef + svm.intercept, atol=1e-5
    )
    np.testing.assert_allclose(
        decide(train, model, whole.X[1::2]),
        printed_kernel(gram, D, cross) @ svm.coef + svm.intercept,
        atol=1e-5,
    )
    assert model.fit.objective == pytest.approx(svm.fit.objective, rel=1e-7)


def test_objective_is_the_primal(pair):
    """(3) from w, Sigma and slacks that are computed from the data."""
    problem, C, D = pair(LINEAR), 2.0, 0.8
    model = SigmaSVM(D=D, C=C, tol=1e-7).train(problem)
    w, f = weights(problem, model), decide(problem, model, problem.X)
    spread = w @ np.cov(problem.X.T, bias=True) @ w
    slack = np.maximum(0, 1 - problem.y * f).sum()
    assert model.fit.objective == pytest.approx((1 - D) / 2 * w @ w + D / 2 * spread + C * slack)
    assert model.fit.bound == pytest.approx(model.fit.objective, rel=1e-6)
    assert model.fit.status is Status.OPTIMAL


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_fast_and_reference_reach_the_same_objective(pair, kernel):
    """The dual values: libsvm rounds kernel values to float32, and its primal suffers more."""
    problem = pair(kernel)
    for D in (0.3, 0.99):
        fits = [
            SigmaSVM(C=5.0, D=D, solver=solver, tol=1e-8).train(problem).fit
            for solver in ("auto", "reference")
        ]
        assert fits[0].gap < 1e-5
        assert fits[0].objective == pytest.approx(fits[1].bound, rel=1e-5)
        assert fits[0].bound <= fits[1].objective


# -- its ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_D_zero_is_the_svm(pair, kernel):
    """On centred data; the free bias of the SVM takes up the centring, so on any data."""
    problem = pair(kernel)
    model = SigmaSVM(C=2.0, D=0.0, tol=1e-8).train(problem)
    svm = train_svm(problem, 2.0, tol=1e-8)
    assert model.fit.objective == pytest.approx(svm.fit.objective, rel=1e-7)
    np.testing.assert_allclose(
        decide(problem, model, problem.X), problem.gram @ svm.coef + svm.intercept, atol=1e-5
    )


def test_D_one_is_the_svm_on_whitened_data(pair):
    problem = pair(LINEAR)
    centred = problem.X - problem.X.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    white = left[:, values > 1e-6 * values[0]] * np.sqrt(len(centred))
    svm = train_svm(BinaryProblem(white, problem.y, LINEAR), 2.0, tol=1e-8)
    model = SigmaSVM(C=2.0, D=1.0, tol=1e-8).train(problem)
    assert model.fit.objective == pytest.approx(svm.fit.objective, rel=1e-6)


def test_affine_invariance_comes_with_D_one():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X[:200, :10])
    problem = BinaryProblem(X, np.where(y[:200] == 1, 1.0, -1.0), LINEAR)
    stretched = replace(problem, X=X @ np.diag(np.logspace(-0.5, 0.5, 10)) + 1.0)
    gaps = []
    for D in (0.0, 0.9, 0.9999, 1.0):
        one, other = (SigmaSVM(C=1.0, D=D, tol=1e-8).train(p) for p in (problem, stretched))
        gaps.append(np.abs(decide(problem, one, X) - decide(stretched, other, stretched.X)).max())
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-4


# -- one D by an inverse --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS[1:], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("D", [0.0, 0.01, 0.5, 0.999, 1 - 1e-6])
def test_an_inverse_gives_what_the_decomposition_does(pair, kernel, D, monkeypatch):
    problem, C = pair(kernel), 10.0
    found = inverse_kernel(problem, D)[0].gram
    gram = spectral_kernel(problem, spectrum(problem), D)[0].gram
    np.testing.assert_allclose(found, gram, atol=1e-8 * np.abs(gram).max())
    np.testing.assert_array_equal(found, found.T)
    model = SigmaSVM(D=D, C=C, tol=1e-6).train(problem)
    monkeypatch.setattr(sigma_svm, "inverse_kernel", lambda problem, D: None)
    other = SigmaSVM(D=D, C=C, tol=1e-6).train(problem)
    assert model.fit.objective == pytest.approx(other.fit.objective, rel=1e-6)
    np.testing.assert_allclose(
        decide(problem, model, problem.X), decide(problem, other, problem.X), atol=1e-5
    )


@pytest.mark.parametrize(
    ("D", "values"), [(1.0, 1.0), (1 - 1e-12, 1.0), (1e-9, 1.0), (0.5, 1e-9), (0.5, 0.0)]
)
def test_where_rounding_would_count_there_is_no_inverse(pair, D, values):
    """D at its ends, a kernel without extent, and rows that are all equal."""
    problem = pair(RBF)
    assert inverse_kernel(replace(problem, given_gram=values * problem.gram), D) is None


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_search_scores_as_plain_cross_validation(kernel):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X)[:200], y[:200]
    grid = {"C": [1.0, 100.0], "D": [0.0, 0.9]}
    found = select(SigmaSVM(kernel=kernel, gamma=0.5), X, y, grid, SelectRef(folds=3))
    from mmbench.selection.folds import inner_splits

    for row in found.scores:
        machine = SigmaSVM(kernel=kernel, gamma=0.5, C=row["C"], D=row["D"])
        hits = [
            machine.fit(X[train], y[train]).score(X[held], y[held])
            for train, held in inner_splits(y, 3, None, 1, 0)
        ]
        assert row["score"] == pytest.approx(np.mean(hits))


def test_degree_one_needs_no_decomposition_of_its_gram_matrix(pair):
    X = pair(LINEAR).X
    problem = BinaryProblem(X, pair(LINEAR).y, Kernel("poly", degree=1, divisor=3.0))
    twin = replace(problem, kernel=Kernel("poly", degree=2), given_gram=problem.gram)
    ours, theirs = spectrum(problem), spectrum(twin)
    k = len(theirs.variances)
    np.testing.assert_allclose(ours.variances[:k], theirs.variances, rtol=1e-6, atol=1e-14)
    np.testing.assert_allclose(ours.rows @ ours.rows.T, theirs.rows @ theirs.rows.T, atol=1e-9)
    np.testing.assert_allclose(ours.basis @ ours.rows.T, theirs.basis @ theirs.rows.T, atol=1e-6)
    np.testing.assert_allclose(ours.origin, theirs.origin)


def test_auto_grid_runs_from_the_svm_to_near_whitening():
    name, values = SigmaSVM.search_space.auto_grids["D"]
    assert (name, values) == ("D", SHARES)
    assert values[0] == 0
    assert max(values) < 1
    assert SigmaSVM.search_space.auto_grids["C"] == SVM.search_space.auto_grids["C"]


@pytest.mark.parametrize("D", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.filterwarnings("error")
def test_equal_rows_get_the_larger_class(kernel, D):
    """Also at D = 1, where there is no Sigma to invert."""
    y = np.array([-1.0, -1.0, 1.0, -1.0, -1.0])
    problem = BinaryProblem(np.ones((5, 2)), y, kernel)
    model = SigmaSVM(C=3.0, D=D).train(problem)
    assert (decide(problem, model, np.ones((2, 2))) < 0).all()
    assert model.fit.status is Status.OPTIMAL
    assert model.fit.objective == pytest.approx(3.0 * 2)
    assert model.fit.bound == pytest.approx(3.0 * 2)


@pytest.mark.parametrize("machine", [SVM(C=1e4, gamma=1e-3), SigmaSVM(C=100, D=0.999, gamma=1e-3)])
def test_a_high_penalty_on_many_small_slacks_leaves_no_gap(machine):
    fit = machine.fit(*load_digits(n_class=2, return_X_y=True)).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert fit.gap <= 100 * machine.tol  # 9e-2 and 3e-2 where each row is exact to tol and no more


def test_the_objective_is_that_of_the_coefficients_on_a_singular_kernel():
    """With D = 1 the rounding errors of a singular matrix must not be inverted with the rest.

    Half of the digits of a decision are left: each of 60 slacks may be off by 1e-8.
    """
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    machine = SigmaSVM(gamma=0.01, C=1e3, D=1.0).fit(X, y)
    f = machine.decision_function(X)
    objective = f.var() / 2 + 1e3 * np.maximum(0, 1 - y * f).sum()
    assert machine.fits_[0].objective == pytest.approx(objective, abs=1e3 * 60 * 1e-8)
    assert machine.fits_[0].status is Status.OPTIMAL
