"""Data matrices as linear operators: centred or transformed sparse rows without a dense copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from mmbench.kernels import row_squares

#: Bytes of a block of rows, so that temporary arrays of products remain small.
BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class MappedRows:
    """The matrix with rows ``(x - origin)' map``, computed from the rows x of the data.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> rows = MappedRows(X, origin=np.array([1.0, 2.0]), map=np.array([[1.0], [2.0]]))
    >>> rows[[0, 1]].T, rows @ np.ones(1), rows.T @ np.ones(2), weighted_product(rows, np.ones(2))
    (array([[0., 6.]]), array([0., 6.]), array([6.]), array([[36.]]))
    """

    #: Data. Shape (n, d).
    X: NDArray | sparse.csr_array
    #: Vector subtracted from each row; zero by default. Shape (d,).
    origin: NDArray | None = None
    #: Matrix by which each row is multiplied; the identity by default. Shape (d, k).
    map: NDArray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and number of features after multiplication by `map`."""
        n, d = self.X.shape
        return n, d if self.map is None else self.map.shape[1]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray:
        return np.asarray(self[np.arange(len(self))], dtype=dtype)

    def __len__(self) -> int:
        return self.X.shape[0]

    def __matmul__(self, v: NDArray) -> NDArray:
        v = v if self.map is None else self.map @ v
        return self.X @ v if self.origin is None else self.X @ v - self.origin @ v

    @property
    def T(self) -> _Transposed:
        """Transpose of the rows, as a linear operator."""
        return _Transposed(self)

    def __getitem__(self, index: NDArray | slice) -> NDArray:
        part = self._moved(self.X[index])
        return part if self.map is None else part @ self.map

    def _moved(self, part: NDArray | sparse.csr_array) -> NDArray:
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        return dense if self.origin is None else dense - self.origin

    @cached_property
    def squares(self) -> NDArray:
        """Squared norm of each row. Shape (n,)."""
        if self.map is None and self.origin is None:
            return row_squares(self.X)
        return np.concatenate([row_squares(self[own]) for own in blocks(*self.X.shape)])

    def product(self, weights: NDArray | None = None) -> NDArray:
        """Return ``rows' diag(weights) rows``; all weights are 1 by default.

        First, this product is computed for the rows ``x - origin``. Then it is multiplied by the
        transpose of `map` from the left and by `map` from the right, which takes less time than a
        multiplication of each row by `map`.
        """
        if isinstance(self.X, np.ndarray):
            out = np.zeros((self.X.shape[1],) * 2)
            for own in blocks(*self.X.shape):
                part = self._moved(self.X[own])
                part = part if weights is None else part * np.sqrt(weights[own])[:, None]
                out += part.T @ part
        else:
            weights = np.ones(len(self)) if weights is None else weights
            out = (self.X.T @ self.X.multiply(weights[:, None]).tocsr()).toarray()
            if self.origin is not None:
                cross = np.outer(self.X.T @ weights, self.origin)
                out += weights.sum() * np.outer(self.origin, self.origin) - cross - cross.T
        return out if self.map is None else self.map.T @ out @ self.map


@dataclass(frozen=True)
class _Transposed:
    rows: MappedRows

    def __matmul__(self, a: NDArray) -> NDArray:
        rows = self.rows
        v = rows.X.T @ a
        v = v if rows.origin is None else v - np.multiply.outer(rows.origin, a.sum(axis=0))
        return v if rows.map is None else rows.map.T @ v


#: Rows as an array or as a linear operator.
Rows = NDArray | MappedRows


def weighted_product(rows: Rows, weights: NDArray | None = None) -> NDArray:
    """Return ``rows' diag(weights) rows`` for non-negative weights, 1 by default.

    Dense rows are processed block by block.

    Examples
    --------
    >>> weighted_product(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.25]))
    array([[3.25, 5.  ],
           [5.  , 8.  ]])
    """
    rows = rows if isinstance(rows, MappedRows) else MappedRows(rows)
    return rows.product(weights)


def moments(X: NDArray | sparse.csr_array) -> tuple[NDArray, NDArray]:
    """Return the mean and the standard deviation of each column, without a dense copy of the data.

    Examples
    --------
    >>> moments(np.array([[1.0, 2.0], [3.0, 2.0]]))
    (array([2., 2.]), array([1., 0.]))
    """
    n, d = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    if isinstance(X, np.ndarray):
        squares = sum(np.square(X[own] - mean).sum(axis=0) for own in blocks(n, d))
        return mean, np.sqrt(squares / n)
    squares = np.asarray(X.multiply(X).mean(axis=0)).ravel() - mean**2
    return mean, np.sqrt(np.maximum(squares, 0))


def blocks(n: int, d: int) -> Iterator[slice]:
    """Yield slices that divide n rows of d floats into blocks of at most BLOCK_BYTES bytes.

    A row of more than BLOCK_BYTES bytes is a block by itself.
    """
    step = max(1, BLOCK_BYTES // (8 * max(d, 1)))
    return (slice(start, start + step) for start in range(0, n, step))
