"""Routes over a whole Gram matrix against those in diagonal coordinates."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import M4, MPM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.base import GRAM_ROUTE_ROWS
from mmbench.machines.minimax.spread import GramMetric, SpreadGram, minimax_gram

KERNEL = Kernel("rbf", gamma=0.3)


def classes(n_x: int, n_y: int, shift: float = 1.0, seed: int = 0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n_x + n_y, 4)) * [1, 2, 0.5, 1]
    y = np.repeat([1.0, -1.0], [n_x, n_y])
    X[y > 0, 0] += shift
    order = random.permutation(len(y))
    return X[order], y[order]


def both(machine, X, y, kernel=KERNEL):
    """Return the models over the Gram matrix and in coordinates."""
    problem = BinaryProblem(X, y, kernel)
    return [machine.set_params(solver=solver).train(problem) for solver in ("gram", "auto")]


@given(
    n_x=st.integers(5, 40),
    n_y=st.integers(5, 40),
    shift=st.floats(0.2, 4),
    ridge=st.sampled_from([1e-4, 1e-3, 1e-1]),
    theta=st.floats(0.05, 0.95),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_a_factor_inverts_the_metric_at_its_theta_and_at_others(
    n_x, n_y, shift, ridge, theta, seed
):
    X, y = classes(n_x, n_y, shift, seed)
    problem = SpreadGram(KERNEL(X, X), y, ridge)
    t = np.random.RandomState(seed).normal(size=len(y))
    for near in (0.5, theta):
        metric = GramMetric(problem, near)
        guess = metric.solve(t)[0]
        c, _ = metric.near(theta, t, guess, problem.gram @ guess)
        # S F'c = F't, tested by its values at the rows.
        weights = np.where(y > 0, 1 / (n_x * theta), 1 / (n_y * (1 - theta)))
        inner = problem.centred(weights * problem.centred(problem.gram @ c))
        image = problem.gram @ (inner + (ridge / theta + ridge / (1 - theta)) * c)
        target = problem.gram @ t
        assert np.abs(image - target).max() <= 1e-6 * np.abs(target).max()


@given(
    n_x=st.integers(5, 60),
    n_y=st.integers(5, 60),
    shift=st.floats(0.2, 4),
    ridge=st.sampled_from([1e-4, 1e-2]),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
def test_the_mpm_is_that_of_the_coordinates(n_x, n_y, shift, ridge, seed):
    X, y = classes(n_x, n_y, shift, seed)
    ours, theirs = both(MPM(kernel="rbf", ridge=ridge), X, y)
    assert ours.fit.status == Status.OPTIMAL
    assert ours.fit.objective == pytest.approx(theirs.fit.objective, rel=1e-8)
    gram = KERNEL(X, X)
    decision = gram @ theirs.coef + theirs.intercept
    assert gram @ ours.coef + ours.intercept == pytest.approx(decision, abs=1e-3)


@given(
    n_x=st.integers(5, 60),
    n_y=st.integers(5, 60),
    shift=st.floats(0.2, 4),
    ridge=st.sampled_from([1e-4, 1e-2]),
    factor=st.sampled_from([0.5, 1.2, 2.0, 10.0, 100.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
def test_the_m4_is_that_of_the_coordinates(n_x, n_y, shift, ridge, factor, seed):
    X, y = classes(n_x, n_y, shift, seed)
    ours, theirs = both(M4(kernel="rbf", ridge=ridge, C_factor=factor), X, y)
    assert ours.fit.objective == pytest.approx(theirs.fit.objective, rel=2e-6)
    assert ours.fit.bound <= theirs.fit.objective * (1 + 1e-9)
    assert ours.fit.extra["C"] == pytest.approx(theirs.fit.extra["C"], rel=1e-8)
    assert ours.fit.status == theirs.fit.status


@pytest.mark.parametrize(("ridge", "n_positive"), [(1e-8, 100), (1e-6, 20), (1e-3, 100)])
def test_classes_of_unequal_size_and_spread_on_real_data(real_data, ridge, n_positive):
    """From ridges that want a factor of doubles up to those that do with floats."""
    data, kernel = real_data("usps"), Kernel("rbf", gamma=2.0**-7)
    rows = np.concatenate(
        [np.flatnonzero(data.y == digit)[:most] for digit, most in ((0, 100), (1, n_positive))]
    )
    problem = data.X[rows], np.where(data.y[rows] == 1, 1.0, -1.0), kernel
    for machine, tol in ((M4, 2e-6), (MPM, 1e-8)):
        ours, theirs = both(machine(kernel="rbf", ridge=ridge), *problem)
        assert ours.fit.status == theirs.fit.status == Status.OPTIMAL
        assert ours.fit.objective == pytest.approx(theirs.fit.objective, rel=tol)
        assert ours.fit.bound <= theirs.fit.objective * (1 + 1e-8)


@pytest.mark.parametrize(("cls", "other"), [(M4, "reweighted"), (MPM, "clarabel")])
def test_many_rows_take_the_route_by_themselves(cls, other):
    X, y = classes(GRAM_ROUTE_ROWS - 400, 401)
    machine = cls(kernel="rbf", ridge=1e-2)
    assert machine._takes_gram(BinaryProblem(X, y, KERNEL))
    assert not machine._takes_gram(BinaryProblem(X[1:], y[1:], KERNEL))
    few = np.arange(150)
    problem = BinaryProblem(X[few], y[few], KERNEL)
    auto, gram, other = (
        cls(kernel="rbf", ridge=1e-2, solver=solver).train(problem)
        for solver in ("auto", "gram", other)
    )
    assert not np.array_equal(auto.coef, gram.coef)
    assert problem.gram @ gram.coef == pytest.approx(problem.gram @ other.coef, abs=1e-2)


@pytest.mark.parametrize("machine", [M4, MPM])
def test_rows_that_occur_twice_and_equal_means_are_answered(machine):
    X, y = classes(30, 30)
    machine = machine(kernel="rbf", ridge=1e-4, solver="gram")
    twice = machine.fit(np.vstack([X, X]), np.append(y, y))
    assert twice.fits_[0].status == Status.OPTIMAL
    same = machine.fit(np.vstack([X, X]), np.append(y, -y))
    assert same.fits_[0].status != Status.OPTIMAL


def test_equal_class_means_have_no_direction():
    X, _ = classes(10, 10)
    gram = KERNEL(np.vstack([X, X]), np.vstack([X, X]))
    assert minimax_gram(SpreadGram(gram, np.repeat([1.0, -1.0], 20), 1e-3)) is None


@pytest.mark.parametrize(
    "form",
    [
        {"nu": 0.5},
        {"margin": "hard"},
        {"variant": "lda"},
        {"normalization": "mean", "C_factor": 50},
    ],
    ids=str,
)
def test_what_has_no_such_route_goes_through_coordinates(form):
    X, y = classes(12, 8)
    over_gram, other = both(M4(kernel="rbf", ridge=1e-2, **form), X, y)
    np.testing.assert_array_equal(over_gram.coef, other.coef)


@pytest.mark.parametrize("positive", [700, 680])
def test_rows_of_one_class_alone_in_the_first_working_set_do_not_end_at_zero(positive):
    """With so narrow a kernel all margins of one class are a little smaller than the other's."""
    X = np.random.RandomState(0).normal(size=(1400, 3)) * [1.0, 1e4, 1e-3]
    y = np.where(np.arange(1400) < positive, 1.0, -1.0)
    data = BinaryProblem(X, y, Kernel("rbf", 1e4))
    fit = M4(kernel="rbf", ridge=1e-2, C_factor=1000.0, solver="gram").train(data).fit
    assert fit.status is Status.OPTIMAL
    assert fit.iterations < 50


@pytest.mark.parametrize("factor", [1.1, 1.5])
def test_a_small_penalty_does_not_end_at_the_zero_of_too_few_rows(factor):
    X, y = classes(600, 600)  # nearly all of which have multipliers
    machine = M4(kernel="rbf", ridge=1e-2, C_factor=factor)
    fit = machine.train(BinaryProblem(X, y, KERNEL)).fit
    assert fit.status == Status.OPTIMAL
    assert fit.iterations < 50


def test_a_training_with_multipliers_on_most_rows_holds_no_more_than_it_states():
    X, y = classes(600, 600, 0.2)
    machine = M4(kernel="rbf", ridge=1e-2, C_factor=2.0)
    machine.train(BinaryProblem(X[:1001], y[:1001], KERNEL))  # compiles
    data = BinaryProblem(X, y, KERNEL)
    tracemalloc.start()
    machine.train(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= (machine.memory_needs.gram_copies + 0.25) * 8 * len(y) ** 2
