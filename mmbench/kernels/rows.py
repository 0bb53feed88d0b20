"""Rows of data, made ready for blocks of kernel values between them and others."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from mmbench.kernels import Kernel, row_squares
from mmbench.kernels.gaussian import gaussian


class KernelRows:
    """Rows of data with what their kernel values need of each: a copy in one type, squared norms.

    For ``rbf`` they are moved by a centre: the expansion ``x'x + z'z - 2x'z`` loses digits when the
    data lie far from the origin.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or sparse array of shape (n_samples, n_features)
        Zeros of sparse rows hold them near zero: they are not moved.
    centre : ndarray of shape (n_features,), optional
        By default the mean of `X`.
    dtype : data type, default=float64
        Of the kernel values.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> rows = KernelRows(Kernel("rbf", gamma=0.5), X)
    >>> rows.values(rows.take([0])).round(6)
    array([[1.      ],
           [0.367879]])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        centre: NDArray | None = None,
        dtype: DTypeLike = np.float64,
    ):
        self.kernel, self.centre, self.squares = kernel, centre, np.zeros(0, dtype)
        if kernel.name == "rbf":
            if not issparse(X):
                self.centre = X.mean(axis=0) if centre is None else centre
                X = X - self.centre
            self.squares = row_squares(X).astype(dtype, copy=False)
        self.X = X.astype(dtype) if issparse(X) else np.ascontiguousarray(X, dtype=dtype)

    def take(self, rows: NDArray | list[int] | slice) -> KernelRows:
        """Return some of the rows."""
        other = copy(self)
        other.X = self.X[rows]
        other.squares = self.squares[rows] if len(self.squares) else self.squares
        return other

    def values(self, other: KernelRows, out: NDArray | None = None) -> NDArray:
        """Return the kernel values between these rows and others of the same centre.

        Those of dense rows are written to `out`, where it is given.
        """
        if issparse(self.X):
            out = (self.X @ other.X.T).toarray()
        else:
            out = np.matmul(self.X, other.X.T, out=out)
        if self.kernel.name == "rbf":
            gaussian(out, self.squares, other.squares, self.kernel.gamma)
            return out
        return self.kernel.apply(out, out=out)
