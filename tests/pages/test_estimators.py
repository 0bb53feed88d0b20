"""Classifiers of readings: M4 and MPM with an absolute ridge, the released steps of the F-SVM."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import MinMaxScaler

from mmbench.machines import M4, MPM, SVM
from results.pages.estimators import AbsoluteRidgeM4, AbsoluteRidgeMPM, ReleasedFSVM


@pytest.fixture(scope="module")
def rows() -> tuple[NDArray, NDArray]:
    X, y = load_breast_cancer(return_X_y=True)
    return MinMaxScaler().fit_transform(X[::3, :6]), y[::3]


def objective(machine: AbsoluteRidgeM4, X: NDArray, y: NDArray, C: float, ridge: float) -> float:
    w, decision = machine.coef_, machine.decision_function(X)
    spreads = [
        np.sqrt(w @ np.cov(X[y == label].T, bias=True) @ w + ridge * w @ w) for label in (0, 1)
    ]
    return sum(spreads) + C * np.maximum(0.0, 1.0 - np.where(y, 1, -1) * decision).sum()


def test_without_a_ridge_the_m4_has_the_optimum_of_the_machine(rows):
    X, y = rows
    machine = AbsoluteRidgeM4(C=0.3, ridge=1e-12).fit(X, y)
    fit = M4(C=0.3, ridge=0).fit(X, y).fits_[0]
    assert objective(machine, X, y, 0.3, 1e-12) == pytest.approx(fit.objective, rel=1e-6)


def test_the_ridge_of_the_m4_is_absolute(rows):
    X, y = rows
    machine = AbsoluteRidgeM4(C=0.3, ridge=0.1).fit(X, y)
    best = objective(machine, X, y, 0.3, 0.1)
    for other in (AbsoluteRidgeM4(C=0.3, ridge=0.01), AbsoluteRidgeM4(C=0.3, ridge=1.0)):
        assert objective(other.fit(X, y), X, y, 0.3, 0.1) > best * (1 + 1e-4)


def test_without_a_ridge_the_mpm_has_the_optimum_and_labels_of_the_machine(rows):
    X, y = rows
    ours, theirs = AbsoluteRidgeMPM(ridge=1e-12).fit(X, y), MPM(ridge=0).fit(X, y)
    sums = [
        sum(np.std(X[y == label] @ w) for label in (0, 1))
        / ((X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) @ w)
        for w in (ours.coef_, theirs.coef_[0])
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("scatter", ["total", "within"])
def test_the_released_steps_classify_with_another_direction_than_the_svm(rows, scatter: str):
    X, y = rows
    machine = ReleasedFSVM(rho=0.5, scatter=scatter).fit(X[::2], y[::2])
    svm = SVM(kernel="linear", C=machine.C_).fit(X[::2], y[::2])
    assert machine.score(X[1::2], y[1::2]) > 0.85
    assert not np.allclose(machine.coef_, svm.coef_[0], rtol=0.01)
    assert np.log2(machine.C_) in range(-10, 21)


def test_the_released_steps_depend_on_rho_and_on_the_scatter(rows):
    X, y = rows[0][::2], rows[1][::2]
    one = ReleasedFSVM(rho=0.1).fit(X, y)
    for other in (ReleasedFSVM(rho=10), ReleasedFSVM(rho=0.1, scatter="within")):
        assert not np.allclose(one.coef_, other.fit(X, y).coef_, rtol=1e-3)
