"""The kernel matrix of one set of rows, computed when it is first read, or never."""

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from mmbench.kernels import Kernel
from mmbench.kernels.submatrix import submatrix

#: Kernel values computed together for a product that keeps none: they stay in the cache.
BLOCK_BYTES = 2**18


class StoredGram:
    """A symmetric kernel matrix that many problems read.

    Parameters
    ----------
    kernel : Kernel
    base : ndarray of shape (n_samples, n_samples)
        What `Kernel.apply` turns into kernel values.
    overwrite : bool, default=False
        Whether the values may take the place of the base: nobody else reads it.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> kernel = Kernel("poly", degree=2)
    >>> StoredGram(kernel, kernel.base(X, X)).product(np.ones((2, 1)))
    array([[ 2.],
           [10.]])
    """

    def __init__(self, kernel: Kernel, base: NDArray, overwrite: bool = False):
        self._kernel, self._base, self._overwrite = kernel, base, overwrite
        self._values: NDArray | None = None
        self._lock = Lock()

    @property
    def values(self) -> NDArray:
        """The kernel matrix, shape (n_samples, n_samples)."""
        with self._lock:  # the pairs of classes are trained in threads, and the base may go
            if self._values is None:
                out = self._base if self._overwrite else None
                self._values = self._kernel.apply(self._base, out=out)
        return self._values

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self._base)

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self._base.dtype

    def part(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a copy of some rows and columns, shape (len(rows), len(columns))."""
        return submatrix(self.values, rows, columns)

    def product(self, V: NDArray) -> NDArray:
        """Return ``K V`` of shape (n_samples, V.shape[1]).

        Values that nobody has read are not stored, but for those that would replace the base.
        """
        if self._overwrite or self._values is not None:
            return self.values @ V
        base, n = self._base, self.n
        step = max(1, BLOCK_BYTES // (n * base.itemsize))
        block, out = np.empty(step * n, base.dtype), np.zeros((n, V.shape[1]), base.dtype)
        for start in range(0, n, step):
            # Each block from its diagonal on: the matrix is symmetric.
            rows = base[start : start + step, start:]
            values = self._kernel.apply(rows, out=block[: rows.size].reshape(rows.shape))
            stop = start + len(rows)
            out[start:stop] += values @ V[start:]
            out[stop:] += values[:, len(rows) :].T @ V[start:stop]
        return out
