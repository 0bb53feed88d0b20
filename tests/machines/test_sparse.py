"""Sparse rows have the machines of the same dense rows, and are never made dense."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from mmbench.kernels import Kernel, variance
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines import MACHINES, machine_class
from mmbench.selection import select

SPARSE = [name for name in MACHINES if machine_class(name).sparse_input]


def data(n, d=12):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.3)
    noisy = X[:, 0] + 0.3 * rng.normal(size=n) > 0.1
    return X, np.array(["a", "b", "c"])[noisy.astype(int) + (X[:, 1] > 0)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, sparse.csr_array) for name in SPARSE),
        *(("svm", kind) for kind in (sparse.csr_matrix, sparse.coo_array)),
    ],
)
def test_sparse_and_dense_rows_have_one_machine(name, kind):
    X, y = data(150)
    for kernel in machine_class(name).kernels:
        machine = machine_class(name)(kernel=kernel, gamma=0.3)
        expected = machine.fit(X, y).pairwise_decision_function(X)
        found = machine.fit(kind(X), y).pairwise_decision_function(kind(X))
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())
        assert sparse.issparse(getattr(machine, "support_vectors_", kind(X)))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_far_from_the_origin_have_the_decisions_of_dense_ones(kind):
    X, y = data(150)
    machine = machine_class("svm")(kernel="linear").fit(X + 1e6, y)
    expected, found = (machine.decision_function(rows) for rows in (X + 1e6, kind(X + 1e6)))
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("far", [1e4, 1e7, 1e9])
def test_a_sparse_column_far_from_zero_loses_no_digits(name, kernel, far):
    """For example a time or an id: distances of sparse rows had errors of far^2 times 1e-16."""
    X, y = data(80, d=4)
    X[:, 0] += np.arange(80) % 7 + far
    machine = machine_class(name)(kernel=kernel, gamma=0.3)
    expected = machine.fit(X, y).pairwise_decision_function(X)
    found = machine.fit(sparse.csr_array(X), y).pairwise_decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("zeros", [1, 40, 60])
def test_kernel_values_of_a_sparse_column_of_zeros_and_far_values_are_those_of_dense_rows(zeros):
    X, _ = data(80, d=4)
    X[:, 0] = (np.arange(80) >= zeros) * (1e7 + np.arange(80) % 7)
    kernel, rows = Kernel("rbf", 0.3), sparse.csr_array(X)
    expected = np.exp(-0.3 * cdist(X, X, "sqeuclidean"))
    np.testing.assert_allclose(kernel(rows, rows), expected, atol=1e-6)
    product = KernelMatrix(kernel, rows).product(X[:, 1])
    np.testing.assert_allclose(product, expected @ X[:, 1], atol=1e-5)
    assert variance(rows) == pytest.approx(X.var(), rel=1e-14)


@pytest.mark.parametrize("name", SPARSE)
def test_many_sparse_rows_are_never_dense(name, monkeypatch):
    X, y = data(3000)
    rows = sparse.csr_array(X)
    machine = machine_class(name)(kernel="linear", tol=1e-7)
    expected = machine.fit(X, y).predict(X)
    written = sparse.csr_array.toarray

    def small(self, *arguments, **options):
        assert self.shape[0] < len(X) // 10
        return written(self, *arguments, **options)

    monkeypatch.setattr(sparse.csr_array, "toarray", small)
    assert np.mean(machine.fit(rows, y).predict(rows) == expected) > 0.999


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_selection_takes_sparse_rows(kernel):
    X, y = data(150)
    machine = machine_class("svm")(kernel=kernel, gamma=0.3)
    grid = {"C": [0.1, 1.0]}
    dense = select(machine, X, y, grid)
    found = select(machine, sparse.csr_array(X), y, grid)
    assert found.params == dense.params
    for one, other in zip(found.scores, dense.scores, strict=True):
        assert one["score"] == pytest.approx(other["score"], abs=0.01)


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in SPARSE])
def test_other_machines_say_that_they_need_dense_rows(name):
    X, y = data(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = machine_class(name)()
        if not hasattr(machine, "kernel"):
            pytest.skip("another package's classifier")
        with pytest.raises(TypeError, match="dense data is required"):
            machine.fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_machines_of_sparse_rows_decide_on_dense_ones_and_the_other_way_round(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 2.0
    y = (X[:, 0] > 2).astype(int)
    rows = sparse.csr_array(X)
    dense = machine_class("svm")(kernel=kernel).fit(X, y)
    thin = machine_class("svm")(kernel=kernel).fit(rows, y)
    expected = dense.decision_function(X)
    for machine, given in ((dense, rows), (thin, X), (thin, rows)):
        np.testing.assert_allclose(machine.decision_function(given), expected, atol=1e-4)
