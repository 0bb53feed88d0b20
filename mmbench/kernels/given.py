"""Kernels that a machine does not know by name: a matrix of their values, or a function.

With ``kernel="precomputed"`` the data are the kernel matrix: between the training rows in `fit`,
between rows and training rows in `predict`. A function takes two sets of rows and returns the
matrix. Either way the matrix of the training rows is stored, and checked as a whole: one that is
not symmetric is refused; of one that is not positive semidefinite few machines have a bound.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from mmbench.kernels.submatrix import submatrix

PRECOMPUTED = "precomputed"

#: Largest difference of two entries that are equal in a symmetric matrix, as a share of the largest
#: entry: matrices in float32 pass.
SYMMETRY = 1e-6

#: A negative eigenvalue above minus this share of the trace is rounding: matrices in float32 pass.
ROUNDING_SHARE = 1e-6


def is_given(kernel: Any) -> bool:
    """Whether a kernel is a matrix or a function.

    Examples
    --------
    >>> is_given("precomputed"), is_given(np.dot), is_given("rbf")
    (True, True, False)
    """
    return kernel == PRECOMPUTED or callable(kernel)


def given_gram(kernel: Any, X: Any) -> NDArray | None:
    """Return the kernel matrix of the training rows, or None where the kernel has a name.

    Parameters
    ----------
    kernel : str or callable
    X : array of shape (n_samples, n_features)
        The matrix itself where it is precomputed.

    Raises
    ------
    ValueError
        If it is not a symmetric matrix of finite numbers.

    Examples
    --------
    >>> given_gram(lambda X, Z: X @ Z.T, np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """
    if not is_given(kernel):
        return None
    return _symmetric(np.ascontiguousarray(given_values(kernel, X, X)))


def given_values(kernel: Any, X: Any, Z: Any, columns: NDArray | None = None) -> NDArray:
    """Return the kernel values between rows, shape (len(X), len(Z)).

    Parameters
    ----------
    kernel : str or callable
    X, Z : array of shape (n_samples, n_features)
        `X` holds the values where they are precomputed, `Z` then is not read.
    columns : ndarray of int, optional
        The columns of precomputed values that are meant.
    """
    if not callable(kernel):
        return X if columns is None else X[:, columns]
    expected = (X.shape[0], Z.shape[0])
    if not all(expected):  # functions of scikit-learn refuse no rows
        return np.zeros(expected)
    values = np.asarray(kernel(X, Z), dtype=np.float64)
    if values.shape != expected:
        raise ValueError(f"the kernel function returned shape {values.shape}, not {expected}")
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned values that are not finite")
    return values


def part_of(gram: NDArray, rows: NDArray) -> NDArray:
    """Return the matrix of some rows, in ascending order: without a copy if they are all."""
    return gram if len(rows) == len(gram) else submatrix(gram, rows, rows)


def _symmetric(gram: NDArray) -> NDArray:
    """Return a kernel matrix, its entries exactly symmetric."""
    differences = np.abs(gram - gram.T)
    if differences.max() > SYMMETRY * np.abs(gram).max():
        i, j = np.unravel_index(np.argmax(differences), gram.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: K[{i}, {j}] = {gram[i, j]:g}, "
            f"K[{j}, {i}] = {gram[j, i]:g}"
        )
    return 0.5 * (gram + gram.T) if differences.any() else gram


def is_semidefinite(gram: NDArray) -> bool:
    """Whether a symmetric matrix has no negative eigenvalues, by one Cholesky factor in float32."""
    n, trace = len(gram), float(gram.trace())
    scaled = (gram / (trace / n if trace > 0 else 1.0)).astype(np.float32)
    scaled[np.diag_indices(n)] += n * ROUNDING_SHARE
    try:
        cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
