"""Theorems of the F-SVM paper against direct computations on real rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from mmbench.machines import FSVM


@pytest.fixture(scope="module")
def pair(wine):
    X, y = wine
    kept = y > 0
    return X[kept][:, :4] @ np.diag([3.0, 1.0, 0.3, 2.0]), np.where(y[kept] == 2, 1.0, -1.0)


def largest_radius(A, X):
    """Largest distance of the transformed rows from their mean."""
    return np.linalg.norm((X - X.mean(axis=0)) @ A.T, axis=1).max()


def margin_problem(A, X, y, C, factor=1.0):
    """Minimum over w and b of ``factor/2 ||w||^2 + C sum hinge(t (w'Ax + b))``, by libsvm."""
    svm = SVC(C=C / factor, kernel="linear", tol=1e-9).fit(X @ A.T, y)
    slack = np.maximum(0.0, 1.0 - y * svm.decision_function(X @ A.T)).sum()
    return 0.5 * factor * float(np.sum(svm.coef_**2)) + C * slack


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_problems_9_and_10_have_the_same_value(pair, seed, C):
    """Theorem 2: (9) does not depend on the scale of A; with Rbar = 1 it is (10)."""
    X, y = pair
    A = np.random.default_rng(seed).normal(size=(4, 4))
    R = largest_radius(A, X)
    ratio = margin_problem(A, X, y, C, factor=R**2)  # (9): the squared radius times ||w||^2
    constrained = margin_problem(A / R, X, y, C)  # (10): on the boundary of Rbar <= 1
    assert ratio == pytest.approx(constrained, rel=1e-6)
    other = margin_problem(7.0 * A, X, y, C, factor=(7.0 * R) ** 2)
    assert other == pytest.approx(ratio, rel=1e-6)
    for inside in (0.9, 0.3):  # a feasible A with a smaller radius is no better
        assert margin_problem(inside * A / R, X, y, C) >= constrained * (1 - 1e-7)


@pytest.mark.parametrize("rho", [0.2, 1.0, 30.0])
def test_the_semi_whitening_minimises_16(pair, rho):
    """Theorem 4: ``||w||^2/2 tr(M^{-1}) + rho tr(MS)`` is least at ``(2 rho S)^{-1/2} ||w||``."""
    X, _ = pair
    S, w = np.cov(X.T, bias=True), 1.7
    values, U = np.linalg.eigh(2.0 * rho * S)
    stated = w * (U / np.sqrt(values)) @ U.T

    def value(entries):
        root = np.zeros((4, 4))
        root[np.tril_indices(4)] = entries
        M = root @ root.T
        inverse = np.linalg.inv(M)
        slope = 2.0 * (rho * S - 0.5 * w**2 * inverse @ inverse) @ root
        found = 0.5 * w**2 * np.trace(inverse) + rho * np.trace(M @ S)
        return found, slope[np.tril_indices(4)]

    start = np.eye(4)[np.tril_indices(4)]
    found = minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-10})
    root = np.zeros((4, 4))
    root[np.tril_indices(4)] = found.x
    np.testing.assert_allclose(root @ root.T, stated, rtol=1e-4, atol=1e-5 * np.abs(stated).max())
    least = value(np.linalg.cholesky(stated)[np.tril_indices(4)])[0]
    assert least == pytest.approx(found.fun, rel=1e-9)
    assert least == pytest.approx(w * np.sqrt(2.0 * rho) * np.sqrt(np.linalg.eigvalsh(S)).sum())


@pytest.mark.parametrize("rho", [1.0, 4.0])
def test_the_alternation_starts_from_17(pair, rho):
    """``variant="semi"`` is the SVM on ``A x``, ``A = rho^{-1/4} Lambda^{-1/4} U'``."""
    X, y = pair
    values, U = np.linalg.eigh(np.cov(X.T, bias=True))
    A = (U * values**-0.25).T * rho**-0.25
    C = 0.7
    machine = FSVM(C=C, rho=rho, variant="semi", ridge=0.0, tol=1e-8).fit(X, y)
    svm = SVC(C=C, kernel="linear", tol=1e-9).fit(X @ A.T, y)
    ours = machine.decision_function(X)
    np.testing.assert_allclose(ours, svm.decision_function(X @ A.T), atol=1e-5)
    trace = rho * np.trace(A.T @ A @ np.cov(X.T, bias=True))
    expected = margin_problem(A, X, y, C) + trace
    assert machine.fits_[0].objective == pytest.approx(expected, rel=1e-7)
