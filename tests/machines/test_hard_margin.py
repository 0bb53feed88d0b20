"""`C=inf`: a margin without slack, and `max_iter`: a limit on pairwise steps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mmbench.errors import Status
from mmbench.machines import SVM


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_every_margin_is_at_least_one_at_the_least_norm(scale, iris):
    X, y = iris[0][:100] * scale, iris[1][:100]
    machine = SVM(kernel="linear", C=np.inf).fit(X, y)
    margins = np.where(y == 1, 1, -1) * machine.decision_function(X)
    assert margins.min() == pytest.approx(1.0, abs=1e-9)
    (fit,) = machine.fits_
    assert fit.status == Status.OPTIMAL
    assert fit.objective == pytest.approx(0.5 * float(machine.coef_[0] @ machine.coef_[0]))
    u = np.zeros(len(y))
    u[machine.support_] = machine.dual_coef_[0]
    signs = np.where(y == 1, 1.0, -1.0)
    dual = signs @ u - 0.5 * float((X.T @ u) @ (X.T @ u))
    assert (signs * u >= 0).all() and u.sum() == pytest.approx(0, abs=1e-9 * np.abs(u).max())
    assert fit.objective == pytest.approx(dual, rel=1e-6)


def test_a_kernel_machine_is_svc_with_a_large_penalty(cancer):
    X, y = cancer
    ours, theirs = SVM(C=np.inf).fit(X, y), SVC(C=1e8, tol=1e-6).fit(X, y)
    assert ours.fits_[0].status == Status.OPTIMAL
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_weights_have_no_effect_unless_they_are_zero(iris):
    X, y = iris[0][:100], iris[1][:100]
    machine = SVM(C=np.inf, gamma=0.5, class_weight={0: 0.1})
    plain = SVM(C=np.inf, gamma=0.5).fit(X, y).decision_function(X)
    weighted = machine.fit(X, y, np.linspace(0.01, 5, 100)).decision_function(X)
    np.testing.assert_array_equal(plain, weighted)
    support = machine.support_[0]  # the hyperplane depends on it
    without = machine.fit(X, y, np.arange(100) != support).decision_function(X)
    assert np.abs(plain - without).max() > 1e-3


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_classes_that_overlap_are_infeasible(kernel, iris):
    X, y = iris[0][50:, :2], iris[1][50:]
    machine = SVM(kernel=kernel, degree=2, C=np.inf)
    with pytest.warns(ConvergenceWarning, match=r"1/2 ended infeasible.*no margin above \de-\d+"):
        machine.fit(X, y)
    (fit,) = machine.fits_
    assert fit.objective == np.inf and np.isfinite(fit.bound)
    assert 0.6 < machine.score(X, y) < 1.0


def test_a_limit_on_steps_is_reported_and_kept(cancer):
    X, y = cancer
    for kernel in ("linear", "rbf"):
        machine = SVM(kernel=kernel, C=1e4, max_iter=50)
        with pytest.warns(ConvergenceWarning, match="ended iteration_limit"):
            machine.fit(X, y)
        assert machine.fits_[0].status == Status.ITERATION_LIMIT
        assert machine.n_iter_.tolist() == [50]


def test_a_limit_that_is_not_reached_changes_nothing(cancer):
    X, y = cancer
    free, limited = SVM().fit(X, y), SVM(max_iter=10**6).fit(X, y)
    np.testing.assert_array_equal(free.decision_function(X), limited.decision_function(X))
    assert 0 < limited.n_iter_[0] == free.n_iter_[0]
