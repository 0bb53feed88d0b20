"""The start (17) of the F-SVM's alternation against a direct computation on real rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mmbench.machines import FSVM


@pytest.fixture(scope="module")
def pair(wine):
    X, y = wine
    kept = y > 0
    return X[kept][:, :4] @ np.diag([3.0, 1.0, 0.3, 2.0]), np.where(y[kept] == 2, 1.0, -1.0)


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
    slack = np.maximum(0.0, 1.0 - y * svm.decision_function(X @ A.T)).sum()
    expected = 0.5 * float(np.sum(svm.coef_**2)) + C * slack + trace
    assert machine.fits_[0].objective == pytest.approx(expected, rel=1e-7)
