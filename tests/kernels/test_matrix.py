"""A kernel matrix that is never whole, against the whole one."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench.kernels import Kernel, matrix
from mmbench.kernels.matrix import KernelMatrix, KernelRows, LazyGram

KERNELS = [Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=0.1)]


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(size=(300, 4)) + 5


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("cache_bytes", [0.0, 2e5, np.inf])
def test_any_memory_gives_the_values_of_the_whole_matrix(X, kernel, cache_bytes):
    whole, matrix = kernel(X, X), KernelMatrix(kernel, X, cache_bytes)
    rng, size = np.random.RandomState(1), np.abs(whole).max()
    rows = rng.permutation(300)[:40]
    np.testing.assert_allclose(matrix.diagonal(), np.diagonal(whole))
    np.testing.assert_allclose(matrix.part(rows), whole[np.ix_(rows, rows)], atol=1e-13 * size)
    out = np.zeros(300)
    expected = np.zeros(300)
    for _ in range(4):  # rows are computed, stored, found again, and driven out
        rows = rng.permutation(300)[:90]
        coefficients = rng.normal(size=90)
        matrix.add_columns(rows, coefficients, out)
        expected += whole[:, rows] @ coefficients
        np.testing.assert_allclose(out, expected, atol=1e-11 * size)
    u = np.where(rng.uniform(size=300) < 0.5, rng.normal(size=300), 0.0)
    np.testing.assert_allclose(matrix.product(u), whole @ u, atol=1e-11 * size)


@pytest.mark.parametrize("bytes_a_row, stored", [(0.0, 0), (100.0, 100), (1e9, 300)])
def test_no_more_rows_are_stored_than_memory_allows(X, bytes_a_row, stored):
    share = 0.6  # of the memory, for rows
    matrix = KernelMatrix(KERNELS[2], X, bytes_a_row * 8 * 300 / share * (1 + 1e-9))
    for start in (0, 100, 200):
        matrix.add_columns(np.arange(start, start + 100), np.ones(100), np.zeros(300))
    assert (matrix._store._row_of >= 0).sum() == stored


def test_stored_rows_fit_beside_a_part_and_its_workspace():
    n, memory = 1500, 8 * 1500**2
    X = np.random.RandomState(0).normal(size=(n, 4))
    matrix, whole = KernelMatrix(KERNELS[2], X, memory), KERNELS[2](X, X)
    matrix.add_columns(np.arange(n), np.ones(n), np.zeros(n))
    assert len(matrix._store.values) == int(0.6 * n)
    part = matrix.part(np.arange(matrix.most_part_rows))
    assert len(part) == int(0.21**0.5 * n)
    assert 1.65 * part.nbytes + matrix._store.values.nbytes <= 0.95 * memory
    np.testing.assert_allclose(part, whole[: len(part), : len(part)], atol=1e-13)


def test_rows_asked_for_together_do_not_drive_one_another_out(X):
    """Else a cyclic order of more rows than fit would never find one stored."""
    matrix = KernelMatrix(KERNELS[2], X, 50 * 8 * 300 / 0.6 * (1 + 1e-9))
    rows = np.arange(100)
    matrix.add_columns(rows, np.ones(100), np.zeros(300))
    assert (matrix._store.find(rows) >= 0).sum() == 50


def test_little_memory_leaves_blocks_of_many_rows(X, monkeypatch):
    """A product with few rows takes ten times as long a value."""
    heights, values = [], KernelRows.values
    monkeypatch.setattr(
        KernelRows, "values", lambda *args: heights.append(len(args[0].X)) or values(*args)
    )
    matrix = KernelMatrix(KERNELS[2], X, cache_bytes=0)
    matrix.add_columns(np.arange(200), np.ones(200), np.zeros(300))
    assert set(heights) == {200}


def test_equal_rows_are_equal_at_any_width(X):
    matrix = KernelMatrix(Kernel("rbf", gamma=1e12), X, single=True)
    out = np.zeros(300)
    matrix.add_columns(np.arange(300), np.ones(300), out)
    assert np.array_equal(out, np.ones(300))
    assert np.array_equal(matrix.product(np.ones(300)), np.ones(300))
    assert np.array_equal(matrix.part(np.arange(300)), np.eye(300))


def test_rows_far_from_the_origin_keep_their_distances(X):
    kernel = Kernel("rbf", gamma=0.1)
    near, far = KernelRows(kernel, X), KernelRows(kernel, X + 1e6)
    np.testing.assert_allclose(far.values(far), near.values(near), atol=1e-8)


@pytest.mark.parametrize(
    "kernel, fits",
    [
        (Kernel("rbf", gamma=1.0), True),
        (Kernel("rbf", gamma=1e4), False),
        (Kernel("poly", degree=3), False),
        (Kernel("linear"), False),
    ],
)
def test_single_precision_is_for_values_that_it_holds(X, kernel, fits):
    assert kernel.fits_single_precision(X) is fits


@pytest.mark.parametrize("gamma", [1e-2, 1.0, 1e2])
def test_single_precision_holds_values_of_differences_of_rows(X, gamma):
    kernel = Kernel("rbf", gamma=gamma)
    assert kernel.is_direct(X) and kernel.fits_single_precision(X, direct=True)
    rows, exact = KernelRows(kernel, X, dtype=np.float32), KernelRows(kernel, X)
    np.testing.assert_allclose(
        rows.values(rows), exact.values(exact), atol=1e-7 + 4e-7 * gamma**0.5
    )


def test_normalised_values_fit_single_precision(X):
    assert Kernel("poly", degree=3).trace_normalised(X / 10).fits_single_precision(X / 10)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale, fits", [(1e2, True), (1e3, False), (1e15, False)])
def test_single_precision_holds_powers_before_they_are_normalised(X, scale, fits):
    X = X * (scale / np.linalg.norm(X, axis=1))[:, None]
    kernel = Kernel("poly", degree=8).trace_normalised(X)
    assert kernel.fits_single_precision(X) is fits
    if fits:
        assert np.isfinite(kernel(X, X, np.float32)).all()


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_equal_rows_have_the_kernel_value_one_at_any_scale(scale, offset):
    X = (np.random.default_rng(0).normal(size=(40, 5)) + offset) * scale
    X[20:] = X[:20]
    X[30:] *= 1 + 1e-15
    exact = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    assert Kernel("rbf")(X, X) == pytest.approx(exact, abs=1e-5)
    rows = KernelRows(Kernel("rbf"), X)
    assert rows.values(KernelRows(Kernel("rbf"), X.copy(), rows.centre)) == pytest.approx(
        exact, abs=1e-5
    )


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 1.0, 1e6])
def test_rows_of_a_lazy_matrix_are_computed_once_and_exactly(gamma):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3)) + 1e4
    X[1] = X[0]
    gram, u = LazyGram.gaussian(gamma, X), np.zeros(700)
    u[[0, 600, 5]] = 1.0, -2.0, 0.5
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    exact = np.exp(-gamma * distances)
    np.testing.assert_allclose(gram.product(u), exact @ u, rtol=0, atol=1e-14)
    assert gram.slots[-1] == 3
    gram.values[0] += 1.0  # row 0 of the data is the first stored row
    np.testing.assert_array_equal(gram.product(np.eye(700)[0]), gram.values[0])
    np.testing.assert_allclose(
        gram.part(np.array([1, 5])), exact[np.ix_([1, 5], [1, 5])], 1e-13, 1e-300
    )


def test_functions_for_python_without_numba_compute_the_same():
    rng = np.random.default_rng(0)
    X, columns, rows = rng.normal(size=(3, 4)), rng.normal(size=(4, 700)), np.array([2, 0, 1])
    compiled_values, values, sums = np.empty((3, 700)), np.empty((3, 700)), np.zeros((2, 700))
    matrix.gaussian_values(X, columns, 0.5, compiled_values)
    for x, row in zip(X, values, strict=True):
        for start in (0, matrix.READ_COLUMNS):
            matrix._gaussian_block_numpy(x, columns, 0.5, start, row)
    for function, out in zip((matrix.accumulate, matrix._accumulate_numpy), sums, strict=True):
        function(values, rows, np.array([1.0, -2.0, 0.5]), out)
    np.testing.assert_allclose(values, compiled_values, rtol=1e-14)
    np.testing.assert_allclose(*sums, atol=1e-15)
