"""Kernel matrices: what every solver takes for granted of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mmbench.kernels import Kernel
from mmbench.kernels.matrix import submatrix


@pytest.mark.parametrize("name", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_gram_matrix_is_exactly_symmetric(name, dtype):
    X = np.random.RandomState(0).normal(size=(300, 7))
    gram = Kernel(name, gamma=0.3)(X, X, dtype)
    assert gram.dtype == dtype
    np.testing.assert_array_equal(gram, gram.T)


def test_distances_keep_their_digits_far_from_the_origin():
    rng = np.random.RandomState(0)
    X, Z = rng.normal(size=(300, 4)) + 1e6, rng.normal(size=(20, 4)) + 1e6
    np.testing.assert_allclose(Kernel("rbf").base(X, Z), cdist(X, Z) ** 2, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Kernel("rbf", 0.7), lambda X: np.exp(-0.7 * cdist(X, X) ** 2)),
        (Kernel("poly", degree=3), lambda X: (1 + X @ X.T) ** 3),
    ],
)
def test_values_of_a_base_matrix_are_the_kernel_matrix(kernel, expected, overwrite):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    base = kernel.base(X, X)
    values = kernel.apply(base, out=base if overwrite else None)
    assert (values is base) == overwrite
    np.testing.assert_allclose(values, expected(X), rtol=1e-9, atol=1e-12)
    rows, columns = np.array([3, 1]), np.array([0, 299, 5])
    np.testing.assert_array_equal(submatrix(values, rows, columns), values[np.ix_(rows, columns)])


@pytest.mark.parametrize("degree", [1, 2, 7])
def test_trace_normalisation_halves_unit_rows_degree_times(degree):
    """(1 + u'u)^d is 2^d for rows of unit length."""
    X = np.random.RandomState(0).normal(size=(300, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = Kernel("poly", degree=degree)
    scaled = kernel.trace_normalised(X)
    assert scaled.divisor == pytest.approx(2**degree)
    np.testing.assert_allclose(scaled(X, X), kernel(X, X) / 2**degree)
    np.testing.assert_allclose(kernel(X, X), (1 + X @ X.T) ** degree)
    assert Kernel("rbf").trace_normalised(X) == Kernel("rbf")
