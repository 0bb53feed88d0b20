"""Solvers of other packages: their own status, their objectives, and messages if one is missing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from mmbench import memory
from mmbench.errors import NotEnoughMemory, Status
from mmbench.machines import MPM, MRSVM, SVM
from mmbench.memory import TrainingSize
from mmbench.solvers import clarabel_, libsvm_


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[::4]), y[::4]


def test_the_status_of_the_solver_is_stored_beside_the_recomputed_status(data, monkeypatch):
    monkeypatch.setitem(clarabel_.STATUS, "Solved", Status.INACCURATE)
    [fit] = MPM(ridge=0.01, solver="clarabel").fit(*data).fits_
    assert (fit.status, fit.extra["solver_status"]) == (Status.OPTIMAL, Status.INACCURATE)
    [fit] = MPM(ridge=0.01).fit(*data).fits_
    assert "solver_status" not in fit.extra  # no solver of another package


def test_liblinear_is_linear_svc_with_the_objective_of_the_svm(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = SVM(kernel="linear", C=0.1, solver="liblinear").fit(X, y)
    theirs = LinearSVC(C=0.1, loss="hinge", tol=machine.tol, max_iter=10**5, random_state=0)
    theirs.fit(X, y)
    np.testing.assert_allclose(machine.coef_[0], theirs.coef_[0], atol=1e-6)
    [fit], signs = machine.fits_, 2.0 * y - 1
    slack = np.maximum(0, 1 - signs * theirs.decision_function(X))
    value = theirs.coef_[0] @ theirs.coef_[0] / 2 + 0.1 * slack.sum()
    assert fit.objective == pytest.approx(value)
    [best] = SVM(kernel="linear", C=0.1).fit(X, y).fits_
    assert fit.bound <= best.objective <= fit.objective
    # the relative gap is far above the tolerance: LinearSVC returns no multipliers
    assert (fit.status, fit.extra["solver_status"]) == (Status.INACCURATE, Status.OPTIMAL)


def test_liblinear_has_no_kernel(data):
    with pytest.raises(ValueError, match="'liblinear' needs kernel 'linear'"):
        SVM(solver="liblinear").fit(*data)


def test_libsvm_official_names_its_extra_and_refuses_row_weights(data, monkeypatch):
    monkeypatch.setattr(libsvm_, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"libsvm-official: pip .*mmbench\[solvers\]"):
        SVM(solver="libsvm").fit(*data)
    monkeypatch.setattr(libsvm_, "find_spec", lambda name: "installed")
    with pytest.raises(ValueError, match="no row weights; take solver='sklearn'"):
        SVM(solver="libsvm").fit(*data, sample_weight=data[1] + 1.0)


@pytest.mark.parametrize("solver", ["libsvm", "sklearn", "clarabel"])
def test_a_solver_that_stores_the_whole_matrix_is_refused_without_memory(solver, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2 * 10**9)
    SVM().check_memory(TrainingSize(20_000, 10))  # in parts
    with pytest.raises(NotEnoughMemory, match="20000 rows"):
        SVM(solver=solver).check_memory(TrainingSize(20_000, 10))


def test_mrsvm_by_ecos_has_the_same_objective(data):
    pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    (ours,), (other,) = (MRSVM(C=1.0, solver=s).fit(*data).fits_ for s in ("auto", "ecos"))
    assert (ours.route, other.route) == ("clarabel", "ecos")
    assert other.objective == pytest.approx(ours.objective, rel=1e-6)
