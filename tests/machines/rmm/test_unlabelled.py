"""The RMM with rows that have no label, against its primal problem and the RMM without them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale

from mmbench.errors import Status
from mmbench.machines import RMM
from mmbench.solvers.clarabel_ import solve_qp

FORMS = ({"form": "bound", "B": 1.3}, {"form": "penalty"}, {"form": "relaxed", "nu": 5.0})


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:40, :5], y[:40], 2 * scale(X)[40:120, :5]


def primal_optimum(X, y, U, C, B):
    """The optimum of (7) in the variables w, b, xi, surplus and decisions of all rows."""
    Z, t = np.vstack([X, U]), np.where(y > 0, 1.0, -1.0)
    n, d, m = len(X), X.shape[1], len(Z)
    decisions = [Z, np.ones((m, 1)), np.zeros((m, 2 * n)), -np.eye(m)]
    margins = [np.zeros((n, d + 1)), np.eye(n), -np.eye(n), np.diag(t), np.zeros((n, m - n))]
    sizes = (d + 1, 2 * n, m)
    found = solve_qp(
        P=sparse.csc_array(np.diag(np.repeat([1.0, 0.0], [d, 1 + 2 * n + m]))),
        q=np.repeat([0.0, C, 0.0], [d + 1, n, n + m]),
        A=sparse.csc_array(np.vstack([np.hstack(decisions), np.hstack(margins)])),
        b=np.repeat([0.0, 1.0], [m, n]),
        lower=np.repeat([-np.inf, 0.0, -B], sizes),
        upper=np.repeat([np.inf, np.inf, B], sizes),
        tol=1e-10,
    )
    return found.value


def test_the_objective_is_the_optimum_of_the_primal_problem(rows):
    X, y, U = rows
    machine = RMM(C=5.0, B=1.3, kernel="linear", tol=1e-8).fit(X, y, unlabelled=U)
    fit = machine.fits_[0]
    expected = primal_optimum(X, y, U, 5.0, 1.3)
    assert (fit.objective, fit.bound) == pytest.approx((expected, expected), rel=1e-6)
    assert np.abs(machine.decision_function(U)).max() == pytest.approx(1.3, rel=1e-6)
    assert fit.objective > 1.01 * primal_optimum(X, y, U[:0], 5.0, 1.3)


@pytest.mark.parametrize("params", FORMS, ids=lambda params: params["form"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weights", [None, np.arange(40) % 3])
def test_all_solvers_reach_the_same_objective(rows, params, kernel, weights):
    X, y, U = rows
    fits = [
        RMM(C=5.0, kernel=kernel, gamma=0.1, solver=solver, tol=1e-8, **params)
        .fit(X, y, weights, unlabelled=U)
        .fits_[0]
        for solver in ("auto", "reference")
    ]
    assert {fit.status for fit in fits} == {Status.OPTIMAL}
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_within_the_bound_change_nothing(rows, kernel):
    X, y, _ = rows
    with_copies, alone = (
        RMM(C=5.0, kernel=kernel, tol=1e-8).fit(X, y, unlabelled=U) for U in (X, None)
    )
    assert with_copies.fits_[0].objective == pytest.approx(alone.fits_[0].objective, rel=1e-6)
    np.testing.assert_allclose(
        with_copies.decision_function(X), alone.decision_function(X), atol=1e-5
    )


def test_each_pair_of_classes_is_bounded():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    machine = RMM(B=1.1, kernel="linear").fit(X[::4], y[::4], unlabelled=X)
    assert np.abs(machine.pairwise_decision_function(X)).max() <= 1.1 + 1e-9


def test_support_vectors_without_a_label_have_indices_after_all_rows(rows):
    X, y, U = rows
    weights = (np.arange(40) % 4 > 0).astype(float)  # `fit` leaves out rows of weight 0
    machine = RMM(C=5.0, B=1.05, gamma=0.1).fit(X, y, weights, unlabelled=U)
    own = machine.support_ < 40
    assert 0 < own.sum() == machine.n_support_.sum() < len(own)
    everything = np.vstack([X, U])[machine.support_]
    np.testing.assert_array_equal(machine.support_vectors_, everything)
    function = RMM(C=5.0, B=1.05, kernel=lambda X, Z: rbf_kernel(X, Z, 0.1))
    function.fit(X, y, weights, unlabelled=sparse.csr_array(U).toarray())
    np.testing.assert_allclose(
        function.decision_function(U), machine.decision_function(U), atol=1e-4
    )


def test_sparse_rows_and_wrong_rows(rows):
    X, y, U = rows
    dense, mixed = (
        RMM(kernel="linear", B=1.3).fit(X, y, unlabelled=own).decision_function(X)
        for own in (U, sparse.csr_array(U))
    )
    np.testing.assert_allclose(dense, mixed, atol=1e-4)
    with pytest.raises(ValueError, match="unlabelled rows need features"):
        RMM(kernel="precomputed").fit(X @ X.T, y, unlabelled=U)
    with pytest.raises(ValueError, match="features"):
        RMM().fit(X, y, unlabelled=U[:, :3])
