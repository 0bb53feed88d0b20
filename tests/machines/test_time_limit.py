"""A fit that reaches its time limit ends, says so with its gap, and predicts."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from mmbench.allowance import allowed, check_time, time_left, within
from mmbench.errors import Status
from mmbench.machines import (
    FSVM,
    M4,
    MMRM,
    MRSVM,
    RMM,
    SVM,
    RSVMMuPlus,
    RSVMPlus,
    SigmaSVM,
    machine_class,
)
from mmbench.machines.base.problem import BinaryProblem, Fit, judged, out_of_time
from mmbench.machines.base.row_samples import largest_sample

#: Seconds in which nothing can be solved.
AT_ONCE = 1e-9

#: Problems that take more steps than are done between two looks at the clock.
ITERATIVE = [
    SVM(C=1e4),
    SVM(kernel="linear", C=100.0),
    RMM(C=1e4),
    RMM(form="penalty"),
    SigmaSVM(C=1e4),
    M4(),
    M4(kernel="linear", normalization="mean"),
    MMRM(),
    MMRM(kernel="linear"),
    MMRM(solver="interior"),
    FSVM(),
    FSVM(variant="opt"),
    RSVMPlus(),
    RSVMMuPlus(),
    MRSVM(),
]


@pytest.fixture(scope="module")
def rows():
    """Two classes that overlap, and twenty rows of another."""
    X, y = load_iris(return_X_y=True)
    kept = np.arange(len(y)) >= 30
    return X[kept], y[kept]


@pytest.mark.parametrize("machine", ITERATIVE, ids=str)
def test_a_solver_that_is_asked_to_end_returns_what_it_has(machine, rows):
    X, y = rows
    kept = y > 0
    problem = BinaryProblem(X[kept], np.where(y[kept] > 1, 1.0, -1.0), machine.kernel_for(X[kept]))
    with within(allowed(0.0)) as time:
        model = machine.train(problem)
    assert time.exceeded
    fit = judged(out_of_time(model).fit, machine.gap_tolerance, machine.violation_tolerance)
    assert fit.status is Status.TIME_LIMIT
    assert (
        np.isfinite(model.intercept)
        and np.isfinite(model.coef if model.w is None else model.w).all()
    )


def test_a_fit_that_ends_early_warns_of_its_gap_and_predicts(rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match=r"ended time_limit: relative gap \d"):
        fitted = FSVM(time_limit=AT_ONCE).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()


def test_pairs_for_which_no_time_is_left_are_not_begun_and_the_larger_class_is_predicted(rows):
    X, y = rows
    with pytest.warns(ConvergenceWarning, match="larger class is predicted; raise the time"):
        fitted = MMRM(time_limit=AT_ONCE).fit(X, y)
    assert {fit.status for fit in fitted.fits_} == {Status.TIME_LIMIT}
    assert set(fitted.predict(X)) == {2}


def test_svms_of_many_classes_end_at_the_limit_around_them():
    """All pairs are solved in one call per class, which asks for the time as separate pairs do."""
    X, y = np.random.RandomState(0).standard_normal((200, 5)), np.arange(200) % 20
    with within(allowed(0.0)), pytest.warns(ConvergenceWarning, match="time_limit"):
        machine = SVM(gamma=0.1).fit(X, y)
    assert {str(fit.status) for fit in machine.fits_} == {"time_limit"}


def test_a_limit_that_is_not_reached_changes_nothing(rows):
    X, y = rows
    limited, free = SVM(time_limit=600.0).fit(X, y), SVM().fit(X, y)
    np.testing.assert_array_equal(limited.dual_coef_, free.dual_coef_)
    assert {fit.status for fit in limited.fits_} == {Status.OPTIMAL}


class Asking(SVM):
    """An SVM that notes the time it may take."""

    shares: ClassVar[list[float]] = []

    def train(self, problem, warm=None):
        self.shares.append(time_left())
        return super().train(problem, warm)


@pytest.mark.parametrize(("n_jobs", "expected"), [(1, [20, 30, 60]), (2, [30, 60, 60])])
def test_pairs_that_are_left_share_the_time_that_is_left(rows, n_jobs, expected):
    Asking.shares.clear()
    Asking(time_limit=60.0, n_jobs=n_jobs).fit(*rows)
    assert sorted(Asking.shares) == pytest.approx(expected, abs=2.0)


def test_what_was_solved_when_the_time_was_up_is_optimal():
    fit = Fit(Status.TIME_LIMIT, 1.0, 1.0 - 1e-9, 0.0, 5, 0.0, 3)
    assert judged(fit, 1e-6, 1e-6).status is Status.OPTIMAL
    assert judged(fit, 1e-12, 1e-6).status is Status.TIME_LIMIT


@pytest.mark.parametrize("name", ["ldm", "lda", "mempm", "fsvm", "mmrm", "klda", "sigma_svm"])
def test_the_matrices_of_a_training_count_towards_its_limit(name):
    X = np.random.default_rng(0).normal(size=(2000, 20))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.5).astype(int)
    machine = machine_class(name)(kernel="rbf", time_limit=1e-3)
    with pytest.warns(ConvergenceWarning, match="larger class is predicted; raise|takes more time"):
        fitted = machine.fit(X, y)
    assert fitted.fits_[0].route in (
        "not begun",
        "250 of 2000 rows",
    )  # by when the limit was reached


def test_a_sample_is_trained_even_if_the_matrices_used_the_whole_time():
    labels = np.repeat([0, 1], 1000)
    with within(allowed(0.0)):
        assert len(largest_sample(labels, lambda rows: []).rows) == 250
        assert largest_sample(labels, lambda rows: check_time(1e99)) is None


@pytest.mark.parametrize("name", ["klda", "lssvm", "m4", "fsvm"])
def test_a_matrix_that_takes_too_long_leaves_a_machine_of_some_rows(name, monkeypatch):
    monkeypatch.setattr("mmbench.allowance._speed", lambda: 1.0)  # a matrix takes years
    X = np.random.default_rng(0).normal(size=(3000, 20))
    y = (X[:, 0] > 0.8).astype(int) + (X[:, 1] > 0.8)
    with pytest.warns(ConvergenceWarning, match="trained on 250 of .* rows, since a matrix of all"):
        fitted = machine_class(name)(kernel="rbf", gamma=0.01, time_limit=100.0).fit(X, y)
    assert {str(fit.status) for fit in fitted.fits_} == {"time_limit"}
    assert (fitted.predict(X) == y).mean() > (y == 0).mean() + 0.1


@pytest.mark.parametrize("name", ["mrsvm", "rsvm_plus", "rsvm_mu_plus", "mempm"])
def test_a_step_that_ends_long_after_the_limit_is_not_begun(name):
    """Native code cannot be interrupted: the first step of MR-SVM took 30 CPU seconds here."""
    X = np.random.default_rng(0).normal(size=(3000, 5))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.5).astype(int)
    started = time.process_time()
    with pytest.warns(ConvergenceWarning, match="ended time_limit: relative gap"):
        fitted = machine_class(name)(kernel="rbf", time_limit=0.5).fit(X, y)
    assert time.process_time() - started < 5.0
    (fit,) = fitted.fits_
    assert fit.status is Status.TIME_LIMIT and not fit.gap < 0.1
    assert fitted.predict(X[:9]).shape == (9,)
