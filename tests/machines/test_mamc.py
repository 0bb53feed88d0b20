"""MAMC: closed forms, the exact threshold, and the invariances of section 2 of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import MinMaxScaler

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MAMC
from mmbench.machines.base.problem import BinaryProblem, PartProblem
from mmbench.machines.base.threshold import optimal_bias, reference_bias
from mmbench.machines.mamc import SLOPES, class_sums

labels = st.lists(st.sampled_from([-1.0, 1.0]), min_size=2, max_size=40).filter(
    lambda y: len(set(y)) == 2
)


@st.composite
def scored(draw):
    """Return scores with many repeated values, and labels of both classes."""
    y = np.array(draw(labels))
    scores = draw(st.lists(st.integers(-8, 8), min_size=len(y), max_size=len(y)))
    return np.array(scores, dtype=float), y


RANDOM = np.random.RandomState(0)
SCORED = [
    (
        RANDOM.randint(-8, 9, size=n).astype(float),
        RANDOM.permutation(np.arange(n) < n - m) * 2.0 - 1,
    )
    for n, m in (
        (2, 1),
        (3, 1),
        (3, 2),
        (5, 2),
        (8, 1),
        (8, 7),
        (13, 6),
        (20, 10),
        (40, 3),
        (40, 20),
    )
]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return MinMaxScaler().fit_transform(X[:200]), y[:200]


# -- the threshold -----------------------------------------------------------------------------


@given(scored())
@examples(case=SCORED)
def test_no_threshold_has_fewer_errors_but_those_of_one_class(case):
    scores, y = case
    found = optimal_bias(scores, y)
    one_class = [int(np.sum(y > 0)), int(np.sum(y < 0))]
    values = np.unique(scores)
    between = [int(np.sum((scores > m) != (y > 0))) for m in (values[:-1] + values[1:]) / 2]
    assert min(found.errors, *one_class) == min(between + one_class)
    assert found.errors == int(np.sum((scores + found.b >= 0) != (y > 0)))
    assert found.one_class == (not np.any(scores[y < 0][:, None] < scores[y > 0]))


@given(scored())
@examples(case=SCORED)
def test_sorting_finds_what_the_paper_s_pairs_find(case):
    scores, y = case
    fast, plain = optimal_bias(scores, y), reference_bias(scores, y)
    assert (fast.errors, fast.one_class) == (plain.errors, plain.one_class)
    assert fast.slack == pytest.approx(plain.slack, abs=1e-9)
    assert fast.rho == pytest.approx(plain.rho)
    assert abs(fast.b) == pytest.approx(abs(plain.b))


@given(scored(), st.floats(0.01, 100))
@examples(case=SCORED, factor=(0.01, 3.0, 100.0))
def test_scale_of_the_scores_is_irrelevant(case, factor):
    scores, y = case
    before, after = optimal_bias(scores, y), optimal_bias(scores * factor, y)
    if np.ptp(scores) > 0:
        assert after.b == pytest.approx(before.b * factor, abs=1e-9 * factor)
        assert after.rho == pytest.approx(before.rho * factor)


@given(labels, st.floats(0.01, 10))
@examples(y=[y for _, y in SCORED], gap=(0.01, 1.0, 10.0))
def test_separable_scores_leave_no_error_and_the_largest_margin(y, gap):
    y = np.array(y)
    scores = np.where(y > 0, gap, 0.0) + np.where(y > 0, 1, -1) * np.arange(len(y))
    found = optimal_bias(scores, y)
    assert found.errors == 0
    assert found.slack == 0
    assert found.rho == pytest.approx((scores[y > 0].min() - scores[y < 0].max()) / 2)


def test_equal_scores_of_both_classes_have_no_gap_between_them():
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    found = optimal_bias(np.array([0.0, 1.0, 1.0, 2.0]), y)
    assert found.b in (-0.5, -1.5)
    noisy = np.array([0.0, 1.0 + 1e-15, 1.0, 2.0])
    assert optimal_bias(noisy, y, resolution=0.0).b not in (-0.5, -1.5)
    assert optimal_bias(noisy, y).b == pytest.approx(found.b)


def test_of_equal_errors_and_slacks_the_wider_margin_wins():
    scores, y = np.array([0.0, 1.0, 2.0, 5.0, 6.0]), np.array([-1.0, 1.0, -1.0, 1.0, -1.0])
    found = optimal_bias(scores, y)
    assert (found.errors, found.slack) == (2, 8.0)  # as at b = -0.5, where rho is 0.5
    assert (found.b, found.rho) == (-3.5, 1.5)


def test_no_candidate_falls_back_to_the_larger_class():
    scores, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, -1.0, -1.0])
    found = optimal_bias(scores, y)
    assert found.one_class
    assert found.errors == 1
    assert np.all(scores + found.b < 0)
    equal = optimal_bias(np.zeros(3), -y)
    assert equal.one_class
    assert equal.errors == 1
    assert np.all(equal.b > 0)


# -- the machine -------------------------------------------------------------------------------


def test_decisions_are_the_printed_sums(cancer):
    X, y = cancer
    signs = np.where(y == 1, 1.0, -1.0)
    for unit, size in (("per_feature", X.shape[1]), ("variance", X.shape[1] * X.var())):
        machine = MAMC(gamma=0.7, gamma_scaling=unit).fit(X, y)
        kernel = Kernel("rbf", gamma=0.7 / size)(X, X)
        np.testing.assert_allclose(machine.decision_function(X), (kernel + 1) @ signs / len(y))


def test_slope_weighs_class_2(cancer):
    X, y = cancer
    machine = MAMC(gamma=0.7, bias="optimized", Cm=0.25).fit(X, y)
    kernel = Kernel("rbf", gamma=0.7)(X, X)
    sums = (kernel[:, y == 1].sum(axis=1) - 0.25 * kernel[:, y == 0].sum(axis=1)) / len(y)
    np.testing.assert_allclose(machine.decision_function(X) - machine.intercept_, sums)


def test_one_changed_label_changes_the_decision_by_its_kernel(cancer):
    """(12), (13) are linear in the labels."""
    X, y = cancer
    changed = y.copy()
    changed[7] = 1 - y[7]
    before, after = (MAMC(gamma=1.0).fit(X, t).decision_function(X) for t in (y, changed))
    step = 2 * (changed[7] - y[7]) * (Kernel("rbf", 1.0)(X, X[7:8])[:, 0] + 1) / len(y)
    np.testing.assert_allclose(after - before, step, atol=1e-12)


def test_balanced_classes_have_no_prior_bias(cancer):
    X, y = cancer
    rows = np.concatenate([np.flatnonzero(y == c)[:50] for c in (0, 1)])
    assert MAMC().fit(X[rows], y[rows]).intercept_ == 0


@pytest.mark.parametrize("gamma", [0.01, 1.0, 50.0])
def test_optimised_bias_never_adds_training_errors(gamma, cancer):
    plain, optimised = (
        MAMC(gamma=gamma, bias=bias).fit(*cancer).fits_[0].extra["errors"]
        for bias in ("prior", "optimized")
    )
    assert optimised <= plain


def test_repeated_rows_share_one_side():
    """Scores of equal rows differ by rounding; a threshold between them would be an accident."""
    rng = np.random.RandomState(0)
    distinct = rng.rand(12, 3)
    rows = rng.randint(12, size=300)
    y = np.where(rng.rand(300) < 0.3 + 0.5 * (rows > 5), 1, -1)
    machine = MAMC(gamma=2.0, bias="optimized").fit(distinct[rows], y)
    scores = machine.decision_function(distinct[rows]) - machine.intercept_
    assert machine.fits_[0].extra["rho"] > 1e-6
    assert np.abs(scores + machine.intercept_).min() > 1e-6


def test_class_sums_do_not_need_a_stored_gram(cancer):
    X, y = cancer
    signs = np.where(y == 1, 1.0, -1.0)
    for kernel in (Kernel("linear"), Kernel("poly", degree=2), Kernel("rbf", 0.3)):
        stored = class_sums(BinaryProblem(X, signs, kernel, kernel(X, X)))
        computed = class_sums(BinaryProblem(X, signs, kernel))
        np.testing.assert_allclose(computed.own, stored.own)


def test_class_sums_of_folds_are_those_of_their_own_matrices(cancer):
    X, y = cancer
    signs = np.where(y == 1, 1.0, -1.0)
    kernel = Kernel("rbf", 0.3)
    whole = kernel(X, X)
    for k in range(4):
        rows = np.flatnonzero(np.arange(len(y)) % 4 != k)
        sums = class_sums(PartProblem(X[rows], signs[rows], kernel, whole, rows))
        alone = BinaryProblem(X[rows], signs[rows], kernel, kernel(X[rows], X[rows]))
        np.testing.assert_allclose(sums.own, class_sums(alone).own)
        held = np.setdiff1d(np.arange(len(y)), rows)
        values = kernel(X[held], X[rows])
        np.testing.assert_allclose(sums.whole[held, 0], values @ (signs[rows] > 0) / len(rows))


def test_objective_is_the_minimum_of_the_printed_problem(cancer):
    """(11), at the solution and at random other places."""
    X, y = cancer
    signs = np.where(y == 1, 1.0, -1.0)
    K = Kernel("rbf", 0.3)(X, X)

    def value(coef, b):
        return 0.5 * (coef @ K @ coef + b**2) - np.mean(signs * (K @ coef + b))

    machine = MAMC(gamma=0.3).fit(X, y)
    best = machine.fits_[0].objective
    assert best == pytest.approx(value(signs / len(y), signs.mean()))
    rng = np.random.RandomState(0)
    for _ in range(20):
        assert value(signs / len(y) + 0.01 * rng.normal(size=len(y)), rng.normal()) > best


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_path_gives_the_models_of_single_trainings(solver, cancer):
    X, y = cancer
    kernel = Kernel("rbf", 0.5)
    problem = BinaryProblem(X, np.where(y == 1, 1.0, -1.0), kernel, kernel(X, X))
    machine = MAMC(gamma=0.5, bias="optimized", solver=solver)
    points = [{"Cm": slope} for slope in SLOPES[::4]]
    for point, model in zip(points, machine.train_path(problem, points), strict=True):
        alone = clone(machine).set_params(**point).fit(X, y)
        assert model.intercept == pytest.approx(alone.intercept_[0])
        np.testing.assert_allclose(model.coef, alone.dual_coef_[0])


def test_classes_the_wrong_way_round_are_reported_as_trivial():
    X, y = np.array([[0.0], [1.0], [1.0]]), np.array([0, 1, 1])
    fit = MAMC(kernel="linear", bias="optimized").fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL
    # One row of class 2 far out pulls w over: class 1 scores below class 2.
    X, y = np.array([[1.0], [1.0], [3.0]]), np.array([1, 1, 0])
    machine = MAMC(kernel="linear", bias="optimized", Cm=0.5).fit(X, y)
    assert machine.fits_[0].status is Status.TRIVIAL
    assert machine.fits_[0].extra["errors"] == 1
    assert set(machine.predict(X)) == {1}


def test_grids_are_the_paper_s():
    below = [0.05, *(k / 10 for k in range(1, 10))]
    np.testing.assert_allclose(SLOPES, sorted(below + [1.0] + [1 / v for v in below]))
    assert len(SLOPES) == 21
    assert SLOPES[11] == pytest.approx(1.1111, abs=1e-4)
