"""Rows and columns of a stored kernel matrix, copied without holding the interpreter lock."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(nogil=True, cache=True)
def submatrix(matrix: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
    """Return ``matrix[np.ix_(rows, columns)]``.

    Threads that cut folds out of one matrix would queue up in numpy's indexing, which keeps the
    lock, and its element-wise gather is several times slower than this loop.
    """
    out = np.empty((rows.shape[0], columns.shape[0]), matrix.dtype)
    for i in range(rows.shape[0]):
        row, to = matrix[np.uintp(rows[i])], out[i]
        for j in range(columns.shape[0]):
            to[j] = row[np.uintp(columns[j])]  # unsigned: no test for negative numbers
    return out
