"""Linear machines of many rows: no Gram matrix, the same solution, whatever the origin."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import KLDA, LSSVM, MMRM, RMM, SVM, SigmaSVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.svm import in_features
from mmbench.selection import select

FREE = [SVM(), RMM(), LSSVM(), SigmaSVM(), MMRM()]
ALL = [*FREE, KLDA()]


def data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0.3).astype(int)


def test_many_rows_of_few_features_are_solved_in_these():
    def route(n, d, kernel="linear", solver="auto"):
        X, y = data(n, d)
        return in_features(BinaryProblem(X, 2.0 * y - 1, Kernel(kernel)), solver)

    assert route(1000, 20)
    assert route(30, 20)
    assert route(400, 100)
    assert not route(300, 100)
    assert not route(20, 20)
    assert not route(1000, 20, kernel="rbf")
    assert not route(1000, 20, solver="smo")


@pytest.mark.slow
def test_few_rows_of_columns_in_units_of_their_own_are_solved():
    """Pairwise steps end with a gap of up to 0.7 here, after seconds."""
    rng = np.random.default_rng(0)
    town = rng.random(70) < 0.5
    X = np.column_stack([rng.lognormal(10, 1, 70), rng.uniform(0, 0.05, 70), town, ~town])
    (fit,) = SVM(kernel="linear", C=8192.0).fit(X, np.arange(70) < 9).fits_
    assert fit.status is Status.OPTIMAL
    assert fit.gap <= 1e-6


@pytest.mark.parametrize("machine", [SVM(), RMM(B_fraction=0.5)], ids=["svm", "rmm"])
def test_what_pairwise_steps_do_not_end_is_solved_in_the_features(machine):
    rng = np.random.default_rng(200)
    X = np.exp(rng.normal(size=(200, 100))) * 10.0 ** rng.uniform(-3, 5, 100)
    y = rng.random(200) < 0.2
    assert not in_features(BinaryProblem(X, 2.0 * y - 1, Kernel("linear")))
    (fit,) = machine.set_params(kernel="linear", C=32768.0).fit(X, y).fits_
    assert fit.status is Status.OPTIMAL
    assert fit.route in ("active set", "interior point")


def test_an_RMM_whose_decisions_are_all_zero_is_certified():
    X, y = data(300, 4)
    machine = RMM(B=0.0, kernel="linear").fit(X, y)
    assert machine.fits_[0].status is Status.OPTIMAL
    np.testing.assert_array_equal(machine.coef_, 0.0)


@pytest.mark.parametrize(
    "machine",
    [SVM(C=0.3), RMM(C=0.3), SigmaSVM(D=0.0), SigmaSVM(D=0.9, C=0.3), SigmaSVM(D=1.0, C=0.01)],
    ids=["svm", "rmm", "sigma 0", "sigma 0.9", "sigma 1"],
)
def test_the_machine_is_that_of_pairwise_steps(machine):
    X, y = data(900, 6)
    machine.set_params(kernel="linear", tol=1e-7)
    one = machine.fit(X, y)
    decisions, fit = one.decision_function(X), one.fits_[0]
    other = machine.set_params(solver="smo").fit(X, y)
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(other.fits_[0].objective, rel=1e-6)
    assert fit.route != other.fits_[0].route
    np.testing.assert_allclose(decisions, other.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_memory_is_a_few_numbers_a_row(machine):
    X, y = data(20000, 5)
    machine.set_params(kernel="linear").fit(X[:1000], y[:1000])
    tracemalloc.start()
    machine.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * len(X) * (2 * X.shape[1] + 60)
    assert machine.fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize("rows", [300, 1500])
@pytest.mark.parametrize("machine", FREE, ids=lambda m: type(m).__name__)
def test_rows_far_from_zero_have_the_machine_of_centred_rows(machine, rows):
    """Inner products of such rows have no digits left for the differences that matter."""
    X, y = data(rows, 4)
    near = machine.set_params(kernel="linear", tol=1e-7).fit(X, y).decision_function(X)
    far = X + 1e8
    machine.fit(far, y)
    assert machine.fits_[0].status is Status.OPTIMAL
    np.testing.assert_allclose(machine.decision_function(far), near, atol=1e-5)
    np.testing.assert_allclose(far @ machine.coef_.T + machine.intercept_, near[:, None], atol=1e-4)


def test_selection_far_from_zero_is_that_near_it():
    X, y = data(300, 4)
    scores = [
        [row["score"] for row in select(SVM(kernel="linear"), rows, y, {"C": [0.01, 1.0]}).scores]
        for rows in (X, X + 2.0**26)
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.01)


def test_a_rare_class_among_many_rows_is_certified():
    """The interior point stalls: many rows far from the margin outweigh the few that decide."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(12_000) < 0.005, 1.0, -1.0)
    X = rng.normal(size=(len(y), 3)) + 1.2 * (y[:, None] > 0)
    for machine in (SVM(), SigmaSVM(), RMM(form="penalty", D=10.0)):
        fit = machine.set_params(kernel="linear").fit(X, y).fits_[0]
        assert fit.status is Status.OPTIMAL
        assert fit.gap <= 1e-5


@pytest.mark.parametrize("machine", [SVM(), RMM(), RMM(form="penalty"), SigmaSVM()], ids=repr)
def test_every_fit_says_its_route(machine):
    X, y = data(60, 3)
    routes = {
        (kernel, solver): machine.set_params(kernel=kernel, solver=solver).fit(X, y).fits_[0].route
        for kernel in ("rbf", "linear")
        for solver in ("auto", "smo", "reference")
    }
    assert all(routes.values())
    assert routes["rbf", "auto"] == routes["rbf", "smo"] in ("SMO", "root search")
    assert any(
        r in routes["linear", "auto"] for r in ("active set", "interior point", "root search")
    )
    assert routes["linear", "reference"] in ("libsvm", "Clarabel")
