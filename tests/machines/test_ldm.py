"""The LDM: other solvers, the printed dual problem, and the SVM and the MAMC as its ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from mmbench.kernels import Kernel
from mmbench.machines import LDM, MAMC

KERNELS = (Kernel("linear"), Kernel("poly", degree=2), Kernel("rbf", gamma=1.0))
EACH = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def margins(problem, model):
    f = problem.X @ model.w if model.w is not None else problem.gram @ model.coef
    return problem.y * f


@EACH
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("C", "lambda_1", "lambda_2"), [(0.01, 0.1, 2.0), (3, 0, 0), (300, 5, 1)])
def test_all_solvers_reach_the_same_objective(pair, kernel, weighted, C, lambda_1, lambda_2):
    problem = pair(kernel)
    weights = np.random.default_rng(0).integers(1, 4, len(problem.y)) if weighted else None
    problem = replace(problem, weights=weights)
    machine = LDM(C=C, lambda_1=lambda_1, lambda_2=lambda_2, tol=1e-9)
    solvers = ("auto", "smo", "reference")
    fits = [machine.with_params({"solver": solver}).train(problem).fit for solver in solvers]
    for fit in fits:
        assert fit.objective == pytest.approx(fits[0].objective, rel=1e-6)
        assert fit.bound == pytest.approx(fits[0].objective, rel=1e-6)


@EACH
def test_the_bound_is_the_printed_dual_problem(pair, kernel):
    """With the paper's matrices Q and H; the ridge on Q is for Gram matrices of low rank."""
    problem, lambda_1, lambda_2 = pair(kernel), 0.3, 0.5
    K, t, m = problem.gram, problem.y, len(problem.y)
    machine = LDM(C=2.0, lambda_1=lambda_1, lambda_2=lambda_2, tol=1e-9)
    model = machine.train(problem)
    Q = 4 * lambda_1 * (m * K.T @ K - np.outer(K @ t, K @ t)) / m**2 + K + 1e-12 * np.eye(m)
    H = (K * t).T @ np.linalg.solve(Q, K * t)
    # beta_i is C where the margin is below 1 and 0 where it is above; elsewhere it is free
    gap = 1 - margins(problem, model)
    beta = np.where(gap > 1e-5, 2.0, 0.0)
    free = np.flatnonzero(np.abs(gap) <= 1e-5)
    right = 1 - lambda_2 / m * H.sum(axis=1) - H @ beta
    beta[free] = np.linalg.lstsq(H[np.ix_(free, free)], right[free], rcond=1e-9)[0]
    assert beta.min() >= -1e-3 and beta.max() <= 2 + 1e-3
    v = beta + lambda_2 / m
    assert model.fit.bound == pytest.approx(beta.sum() - 0.5 * v @ H @ v, rel=1e-5)


def test_without_lambda_it_is_the_svm_without_bias_term(pair):
    problem = pair(KERNELS[0])
    model = LDM(C=2.0, lambda_1=0, lambda_2=0, tol=1e-10).train(problem)
    svm = LinearSVC(C=2.0, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    svm.fit(problem.X, problem.y)
    np.testing.assert_allclose(model.w, svm.coef_[0], atol=1e-4)
    assert model.intercept == 0


@EACH
def test_with_a_tiny_C_it_has_the_direction_of_the_mamc(pair, kernel):
    problem = pair(kernel)
    found = LDM(C=1e-9, lambda_1=0, lambda_2=0.5).train(problem)
    np.testing.assert_allclose(
        margins(problem, found), 0.5 * margins(problem, MAMC().train(problem)), atol=1e-6
    )


@EACH
def test_lambda_trades_the_mean_of_the_margins_for_their_variance(pair, kernel):
    """V does not rise with lambda_1, and the mean does not fall with lambda_2."""
    problem = pair(kernel)
    grid = [{"lambda_1": a, "lambda_2": b} for a, b in ((0, 1), (1, 1), (9, 1), (9, 3), (9, 9))]
    found = [margins(problem, m) for m in LDM(C=1, tol=1e-8).train_path(problem, grid)]
    spread, mean = [m.var() for m in found], [m.mean() for m in found]
    assert np.all(np.diff(spread[:3]) <= 1e-6) and np.all(np.diff(mean[2:]) >= -1e-6)


@EACH
@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_the_constant_feature_is_a_column_or_a_part_of_the_kernel(pair, kernel, solver):
    problem, constant = pair(kernel), 3.0
    machine = LDM(C=1, lambda_1=1, tol=1e-9, solver=solver)
    column = np.column_stack([problem.X, np.full(len(problem.y), constant)])
    by_hand = replace(problem, X=column)
    if kernel.name != "linear":
        by_hand = replace(problem, given_gram=problem.gram + constant**2)
    found = machine.with_params({"constant": constant}).train(problem)
    expected = machine.train(by_hand)
    ours = margins(problem, found) + problem.y * found.intercept
    np.testing.assert_allclose(ours, margins(by_hand, expected), atol=1e-6)
    assert found.intercept != 0 and expected.intercept == 0
