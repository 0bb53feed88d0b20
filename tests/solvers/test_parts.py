"""Growing parts of a kernel matrix lead where the stored matrix does, in any memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelMatrix, LazyGram
from mmbench.machines.rmm import rmm_dual
from mmbench.machines.svm import svm_dual
from mmbench.solvers.svm_dual.smo import solve_smo, solve_to_gap

RBF = Kernel("rbf", gamma=1e-3)


@pytest.fixture(scope="module")
def digits():
    """Odd against even."""
    X, labels = load_digits(return_X_y=True)
    return X, np.where(labels % 2, 1.0, -1.0)


def by_parts(dual, kernel, X, y, *args, cache_bytes=1e5, tol=1e-7):
    """Return the solution by parts of at most 1000 rows, and that on the stored matrix."""
    matrix = KernelMatrix(kernel, X, cache_bytes, kernel.fits_single_precision(X))
    return (
        solve_smo(dual(matrix, y, *args), tol=tol),
        solve_smo(dual(kernel(X, X), y, *args), tol=tol),
    )


@pytest.mark.parametrize("cache_bytes", [0.0, 1e6, np.inf])
@pytest.mark.parametrize(
    "kernel", [RBF, Kernel("poly", degree=2), Kernel("linear")], ids=lambda kernel: kernel.name
)
def test_any_memory_gives_the_svm_of_the_stored_matrix(digits, kernel, cache_bytes, monkeypatch):
    monkeypatch.setattr("mmbench.kernels.matrix.LEAST_PART_BYTES", 8 * 500**2)
    X, y = digits
    X = X / 16
    found, stored = by_parts(svm_dual, kernel, X, y, 1.0, cache_bytes=cache_bytes)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(stored.value, rel=1e-6)
    assert found.bound == pytest.approx(stored.bound, rel=1e-6)


def test_rows_at_their_first_use_give_the_svm_of_the_stored_matrix():
    X = np.random.default_rng(0).normal(size=(1200, 2))
    y = np.where(np.sin(3 * X[:, 0]) * X[:, 1] > 0, 1.0, -1.0)
    kernel = Kernel("rbf", gamma=2.0)
    gram = LazyGram.gaussian(kernel.gamma, X)
    found = solve_smo(svm_dual(gram, y, 1000.0), tol=1e-7)
    stored = solve_smo(svm_dual(kernel(X, X), y, 1000.0), tol=1e-7)
    assert (found.status, found.route) == (Status.OPTIMAL, "SMO")
    assert found.value == pytest.approx(stored.value, rel=1e-6)
    assert found.bound == pytest.approx(stored.bound, rel=1e-6)
    np.testing.assert_allclose(found.decision, kernel(X, X) @ found.u, atol=1e-9)
    assert gram.slots[-1] < len(X)


@pytest.mark.parametrize("B, cap", [(1.5, np.inf), (2.0, 0.1)])
def test_any_form_of_the_rmm_is_that_of_the_stored_matrix(digits, B, cap):
    found, stored = by_parts(rmm_dual, RBF, *digits, 10.0, B, cap)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(stored.value, rel=1e-6)
    assert found.bound == pytest.approx(stored.bound, rel=1e-6)


def test_decisions_are_those_of_u_in_float64(digits):
    X, y = digits
    found, _ = by_parts(svm_dual, RBF, X, y, 10.0)
    np.testing.assert_allclose(found.decision, RBF(X, X) @ found.u, atol=1e-12)


def test_decisions_of_all_rows_are_computed_in_float64_once(digits, monkeypatch):
    """After that, changes are so small that float32 keeps their digits."""
    products, product = [], KernelMatrix.product
    monkeypatch.setattr(
        KernelMatrix, "product", lambda self, u: products.append(u) or product(self, u)
    )
    X, y = digits
    found = solve_smo(svm_dual(KernelMatrix(RBF, X, single=True), y, 10.0))
    assert found.status is Status.OPTIMAL
    assert len(products) == 1
    np.testing.assert_allclose(found.decision, RBF(X, X) @ found.u, atol=1e-8)


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("gamma", [1e-3, 1e6])
def test_extreme_parameters_are_certified(digits, C, gamma):
    X, y = digits
    kernel = Kernel("rbf", gamma=gamma)
    matrix = KernelMatrix(kernel, X, 1e5, kernel.fits_single_precision(X))
    found = solve_to_gap(svm_dual(matrix, y, C), 1e-5, 1e-3)
    assert found.gap <= 1e-3
    assert found.violation <= 1e-9


def test_repeated_rows_and_contradictions_are_certified(digits):
    X, y = (part[:500] for part in digits)
    X, y = np.vstack([X, X, X]), np.concatenate([y, y, -y])
    found, stored = by_parts(svm_dual, RBF, X, y, 1.0)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(stored.value, rel=1e-6)


def test_a_single_row_of_a_class_joins_the_first_part(digits):
    X, y = digits
    rows = np.concatenate([np.flatnonzero(y > 0), np.flatnonzero(y < 0)[:1]])
    found, stored = by_parts(svm_dual, RBF, X[rows], y[rows], 10.0)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(stored.value, rel=1e-6)


def test_a_start_at_the_solution_takes_no_step(digits):
    X, y = digits
    matrix = KernelMatrix(RBF, X, 1e6, single=True)
    found = solve_smo(svm_dual(matrix, y, 10.0))
    again = solve_smo(svm_dual(matrix, y, 10.0), found)
    assert again.iterations == 0
    assert again.value == found.value


def test_float64_takes_over_where_float32_ends(digits):
    """With so small a gamma all float32 values are 1."""
    X, y = (part[:300] for part in digits)
    matrix = KernelMatrix(Kernel("rbf", gamma=1e-10), X, 1e6, single=True)
    found = solve_smo(svm_dual(matrix, y, 1e6))
    assert found.status is Status.OPTIMAL
    assert matrix.dtype == np.float64


def test_steps_are_limited(digits):
    X, y = digits
    found = solve_smo(svm_dual(KernelMatrix(RBF, X), y, 10.0), max_iter=50)
    assert found.status is Status.ITERATION_LIMIT
    assert found.iterations <= 50
