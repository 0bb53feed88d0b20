"""The theorems of the F-SVM paper and the start (17) of its alternation, on real rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array
from sklearn.svm import SVC

from mmbench.machines import FSVM
from mmbench.solvers.clarabel_ import solve_qp


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


@pytest.fixture(params=range(3))
def maps(request, pair):
    """A random transformation A, the matrices M = A'A and S, and the radius Rbar of (8)."""
    X, _ = pair
    A = np.random.default_rng(request.param).normal(size=(5, X.shape[1]))
    S = np.cov(X.T, bias=True)
    return A, A.T @ A, S, np.linalg.norm((X - X.mean(axis=0)) @ A.T, axis=1).max()


def svm_value(X, y, C):
    svm = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    slack = np.maximum(0.0, 1.0 - y * svm.decision_function(X)).sum()
    return 0.5 * float(np.sum(svm.coef_**2)) + C * slack, svm


def test_theorem_2_the_ratio_9_has_the_optimum_of_10(pair, maps):
    """For each A the ratio form (9) has the value of (10) at A / Rbar, and a smaller A is worse."""
    X, y = pair
    A, _, _, Rbar = maps
    ratio = Rbar**2 * svm_value(X @ A.T, y, 0.7 / Rbar**2)[0]
    on_the_boundary, inside = (svm_value(X @ A.T / (Rbar * s), y, 0.7)[0] for s in (1.0, 1.5))
    assert ratio == pytest.approx(on_the_boundary, rel=1e-6)
    assert inside > ratio


def test_theorem_4_semi_whitening_is_the_optimum_of_16(maps):
    """``norm^2/2 tr(M^-1) + rho tr(MS)``, the bound (14) by (13), at (15) and at other matrices."""
    A, M, S, _ = maps
    norm, rho = 1.7, 0.6
    values, U = np.linalg.eigh(S)
    best = norm / np.sqrt(2 * rho) * (U * values**-0.5) @ U.T

    def bound(M):
        return norm**2 / 2 * np.trace(np.linalg.inv(M)) + rho * np.trace(M @ S)

    least = norm * np.sqrt(2 * rho) * np.sqrt(values).sum()
    assert bound(best) == pytest.approx(least)
    others = [M, best + 0.01 * M, 0.9 * best, 1.1 * best]
    assert min(map(bound, others)) > least
    w = A[0] * norm / np.linalg.norm(A[0])
    assert w @ np.linalg.solve(M, w) <= norm**2 * np.trace(np.linalg.inv(M))  # (13)


def test_23_and_24_the_integrated_constraint_is_the_mean_of_all_constraints(pair, maps):
    X, _ = pair
    A, M, S, Rbar = maps
    squares = np.sum(((X - X.mean(axis=0)) @ A.T) ** 2, axis=1)
    assert squares.mean() == pytest.approx(np.trace(M @ S))
    assert np.trace(M @ S) <= Rbar**2


@pytest.mark.parametrize("rho", [1.0, 4.0])
def test_11_with_the_trace_of_the_optimum_has_the_solution_of_12(pair, rho):
    """With ``tr(MS) <= k``, the optimum of (11) over M is an SVM on whitened rows with C k."""
    X, y = pair
    machine = FSVM(C=0.7, rho=rho, variant="opt", ridge=0.0, tol=1e-8).fit(X, y)
    values, U = np.linalg.eigh(np.cov(X.T, bias=True))
    length = np.linalg.norm(np.sqrt(values) * (machine.coef_[0] @ U))
    trace = length / np.sqrt(2 * rho)  # tr(MS) of the optimal M = c ww'
    whitened = X @ (U * values**-0.5)
    value, svm = svm_value(whitened, y, 0.7 * trace)
    np.testing.assert_allclose(
        svm.decision_function(whitened), machine.decision_function(X), atol=1e-4
    )
    assert value / trace + rho * trace == pytest.approx(machine.fits_[0].objective, rel=1e-6)


def test_the_optimum_of_10_over_A_is_a_quadratic_program(pair, maps):
    """``1/2 max_i (v'(x_i - xbar))^2 + C sum_i xi_i`` over v and b; the best A has one row."""
    X, y = pair
    (n, d), C, Z = X.shape, 0.7, X - X.mean(axis=0)
    # the variables are v, b, xi, the surplus of the margins, r, and the slacks of |Z v| <= r
    margins = np.hstack(
        [y[:, None] * X, y[:, None], np.eye(n), -np.eye(n), np.zeros((n, 2 * n + 1))]
    )
    ends = [
        np.hstack([sign * Z, np.zeros((n, 2 * n + 1)), -np.ones((n, 1)), *slacks])
        for sign, slacks in ((1, (np.eye(n), 0 * np.eye(n))), (-1, (0 * np.eye(n), np.eye(n))))
    ]
    sizes = (d + 1, n, n, 1, 2 * n)
    found = solve_qp(
        P=csc_array(np.diag(np.repeat([0.0, 0.0, 0.0, 1.0, 0.0], sizes))),
        q=np.repeat([0.0, C, 0.0, 0.0, 0.0], sizes),
        A=csc_array(np.vstack([margins, *ends])),
        b=np.repeat([1.0, 0.0], [n, 2 * n]),
        lower=np.repeat([-np.inf, 0.0], [d + 1, 4 * n + 1]),
        upper=np.full(sum(sizes), np.inf),
        tol=1e-10,
    )
    v = found.x[:d]
    best = svm_value((Z @ v / np.abs(Z @ v).max())[:, None], y, C)[0]
    assert found.value == pytest.approx(best, rel=1e-6)
    A, _, _, Rbar = maps
    assert found.value < svm_value(Z @ A.T / Rbar, y, C)[0]
