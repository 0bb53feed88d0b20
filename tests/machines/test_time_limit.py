"""A fit that reaches its time limit ends, says so with its gap, and predicts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.machines import (
    FSVM,
    KLDA,
    M4,
    MMRM,
    MRSVM,
    RMM,
    SVM,
    RSVMMuPlus,
    RSVMPlus,
    SigmaSVM,
)
from mmbench.machines.problem import Fit, judged

#: Seconds in which nothing can be solved.
AT_ONCE = 1e-9

ITERATIVE = [
    SVM(),
    SVM(kernel="linear", C=100.0),
    RMM(),
    RMM(form="penalty"),
    SigmaSVM(),
    M4(),
    M4(kernel="linear", normalization="mean"),
    MMRM(),
    MMRM(kernel="linear"),
    MMRM(solver="interior"),
    MMRM(solver="generation"),
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
    with pytest.warns(ConvergenceWarning, match=r"ended time_limit: relative gap \d"):
        fitted = machine.set_params(time_limit=AT_ONCE).fit(X, y)
    machine.set_params(time_limit=None)
    assert Status.TIME_LIMIT in {fit.status for fit in fitted.fits_}
    for fit in fitted.fits_:
        assert fit.bound <= fit.objective
    assert np.isfinite(fitted.decision_function(X)).all()
    assert set(fitted.predict(X)) <= {0, 1, 2}


def test_a_limit_that_is_not_reached_changes_nothing(rows):
    X, y = rows
    limited, free = SVM(time_limit=600.0).fit(X, y), SVM().fit(X, y)
    np.testing.assert_array_equal(limited.dual_coef_, free.dual_coef_)
    assert {fit.status for fit in limited.fits_} == {Status.OPTIMAL}


def test_a_closed_form_does_not_ask(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {f.status for f in KLDA(time_limit=AT_ONCE).fit(*rows).fits_} == {Status.OPTIMAL}


def test_pairs_that_are_left_share_the_time_that_is_left():
    shares = SVM(time_limit=60.0)._shares_of_time(3)
    assert [left for _, left in shares] == [3, 2, 1]
    assert [left for _, left in SVM(time_limit=60.0, n_jobs=2)._shares_of_time(3)] == [2, 1, 1]
    assert all(59 < time.seconds <= 60 for time, _ in shares)


def test_what_was_solved_when_the_time_was_up_is_optimal():
    fit = Fit(Status.TIME_LIMIT, 1.0, 1.0 - 1e-9, 0.0, 5, 0.0, 3)
    assert judged(fit, 1e-6, 1e-6).status is Status.OPTIMAL
    assert judged(fit, 1e-12, 1e-6).status is Status.TIME_LIMIT
