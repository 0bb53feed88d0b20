"""The F-SVM's optimum: a whitened SVM for one pair, a semidefinite program for several."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from helpers.examples import examples
from helpers.joint_rows import COSTS, optimum_of, random_problem, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import FINISHED, Status
from mmbench.kernels import Kernel
from mmbench.machines import FSVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.fsvm.optimum import ADMMState, solve_pairs
from mmbench.machines.fsvm.pair_svms import lower_bound, train_hyperplanes
from mmbench.machines.fsvm.reference import solve_reference
from mmbench.machines.kernel_pca import spectrum
from mmbench.machines.svm import train_svm


@pytest.mark.parametrize("C", COSTS)
def test_the_optimum_is_that_of_one_cone_program(two, C):
    _, rows = two
    fast, reference = optimum_of(rows, C), solve_reference(rows, C)
    assert reference.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fast.value == pytest.approx(reference.value, rel=1e-6)
    assert fast.bound == pytest.approx(reference.bound, rel=1e-6)
    assert fast.bound <= reference.value * (1 + 1e-8)


def test_the_optimum_is_the_svm_on_whitened_data(two):
    """With C' = C ||S^{1/2}w*|| / sqrt(2 rho); F* follows from that SVM alone."""
    (problem, rows), C = two, 0.3
    found = optimum_of(rows, C)
    length = float(np.linalg.norm(np.sqrt(rows.s) * found.W[:, 0]))
    whitened = BinaryProblem(rows.Z / np.sqrt(rows.s), problem.y, Kernel("linear"))
    svm = train_svm(whitened, C * length / sqrt(2), "reference", 1e-8)
    w = whitened.X.T @ svm.coef
    slack = np.maximum(0, 1 - problem.y * (whitened.X @ w + svm.intercept)).sum()
    assert np.linalg.norm(w) == pytest.approx(length, rel=1e-3)
    assert sqrt(2) * np.linalg.norm(w) + C * slack == pytest.approx(found.value, rel=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
@examples(seed=range(5))
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
    assert fits[0].status is (Status.OPTIMAL if variant == "opt" else Status.STOPPED_BY_RULE)
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)


@pytest.mark.parametrize("variant", ["pg", "opt"])
def test_a_path_to_a_search_tolerance_ends_beside_the_optimum(variant, real_problem):
    """Each C from the last."""
    problem = real_problem("pima", 0, 1, Kernel("rbf", gamma=2.0**-5), rows=520)
    path = [{"C": C, "n_components": 20} for C in (0.01, 0.3, 10.0)]
    machines = [FSVM(kernel="rbf", variant=variant, tol=tol) for tol in (1e-3, 1e-5)]
    fits = [[model.fit for model in machine.train_path(problem, path)] for machine in machines]
    for loose, exact in zip(*fits, strict=True):
        assert loose.status in (*FINISHED, Status.TRIVIAL)
        assert loose.bound <= loose.objective * (1 + 1e-12)
        allowed = 1e-2 if variant == "pg" else 1e-3  # a round may lower F by less than 1e-3
        assert loose.objective == pytest.approx(exact.objective, rel=allowed)


def test_an_alternation_on_a_path_of_large_C_is_the_one_of_the_last_C_alone(real_problem):
    problem = real_problem("ionosphere", "b", "g", Kernel("rbf", gamma=2.0**-3), rows=200)
    machine = FSVM(kernel="rbf", n_components=100, tol=1e-3)
    *_, last = machine.train_path(problem, [{"C": C} for C in (1e2, 1e3, 1e4, 1e5)])
    alone = machine.with_params({"C": 1e5}).train(problem)
    largest = np.abs(alone.coef).max()
    np.testing.assert_allclose(alone.coef, last.coef, rtol=0, atol=1e-4 * largest)
    assert alone.fit.objective == pytest.approx(last.fit.objective, rel=1e-4)
    assert last.fit.status is alone.fit.status and last.fit.gap >= 0


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
    found = solve_pairs(rows, images, C, 1e-7, 1e-6, ADMMState(nothing, nothing, penalty, None))
    assert found.status is ends
    assert found.value == pytest.approx(plain.value, rel=2e-6)
    assert found.bound <= plain.value * (1 + 1e-12)
    assert found.violation <= 1e-9


def test_any_multipliers_bound_the_optimum_from_below(two):
    _, rows = two
    planes = train_hyperplanes(rows, rows.transformed(rows.s**-0.25), 3.0, None, 1e-6)
    best = optimum_of(rows, 3.0).value
    for factor in (0.01, 0.5, 1.0):
        scaled = factor * planes.q, factor * planes.multipliers
        assert lower_bound(*scaled, rows.s) <= best * (1 + 1e-9)


@pytest.mark.parametrize("C", [1e-12, 3e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_certificate_of_the_reference_is_of_the_returned_hyperplanes(n_classes, C):
    """The objective is computed from w, b and the data; w = 0 is optimal if C is small."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 4)) + 0.5 * y[:, None] * [1, 0, 1, 0]
    machines = [
        FSVM(variant="opt", C=C, ridge=0, solver=solver) for solver in ("auto", "reference")
    ]
    for machine in machines:
        machine.fit(X, y)
    auto, reference = (machine.fits_[0] for machine in machines)
    assert auto.status is reference.status
    assert auto.bound * (1 - 1e-6) <= reference.bound <= reference.objective
    assert reference.objective == pytest.approx(auto.objective, rel=1e-6)
    coef, b = machines[1].coef_, machines[1].intercept_
    root = np.linalg.cholesky(np.cov(X.T, bias=True)).T
    value = sqrt(2) * np.linalg.norm(root @ np.atleast_2d(coef).T, "nuc")
    for p, (low, high) in enumerate(fit.pair for fit in machines[1].fits_):
        rows = (y == low) | (y == high)
        margins = np.where(y[rows] == high, 1, -1) * (X[rows] @ coef[p] + b[p])
        value += C * np.maximum(0, 1 - margins).sum()
    assert reference.objective == pytest.approx(value, rel=1e-9)
    assert (auto.status is Status.TRIVIAL) == (not coef.any())


@pytest.mark.parametrize("seed", [0, 9, 12])
def test_a_reference_that_fails_is_neither_trivial_nor_infeasible(seed):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(12, 3)), np.arange(12) % 2, rng.choice([1, 1e6, 1e-6], size=12)
    machine = FSVM(variant="opt", C=1e6, solver="reference")
    with pytest.warns(ConvergenceWarning, match="ended inaccurate"):
        machine.fit(X, y, weights)
