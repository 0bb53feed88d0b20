"""Kernels as a base matrix and a scalar function, so that a grid shares one matrix product.

A kernel matrix is a scalar function of a *base* matrix: squared distances for ``rbf``, inner
products for ``linear`` and ``poly``. On a grid of kernel parameters the base matrix is computed
once, and the function is applied per grid point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

KERNELS = ("linear", "poly", "rbf")

#: Largest value of a normalised kernel (the mean of ``k(x, x)`` is 1) that is stored in float32.
SINGLE_PRECISION_MAX = 4.0

#: Largest ``gamma ||x||^2`` of centred rows for which distances are computed in float32.
SINGLE_PRECISION_EXPONENT = 100.0

#: Squared distances below this fraction of ``x'x + z'z`` are computed from differences of rows. The
#: relative error of the exponent of ``rbf`` is then 1e-6, even if ``gamma (x'x + z'z) > 1e10``.
NEAR_SHARE = 1e-10

#: Number of matrix rows per chunk; temporary arrays have the size of a chunk, not of the matrix.
CHUNK_ROWS = 256

#: If ``NEAR_SHARE * gamma * (x'x + z'z)`` is at most this value, the rounding error of ``rbf`` at
#: close rows is negligible, and no differences of rows are computed.
NEAR_EXPONENT = 1e-3

#: Size in bytes of a chunk of distances, which fits in the cache.
CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class Kernel:
    """A kernel function.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> Kernel("poly", degree=2)(X, X)
    array([[1., 1.],
           [1., 9.]])
    """

    #: "linear", "poly" or "rbf": ``u'v``, ``(1 + u'v)**degree``, ``exp(-gamma * ||u - v||**2)``.
    name: str
    #: Coefficient of the squared distance in ``rbf``.
    gamma: float = 1.0
    #: Degree of ``poly``.
    degree: int = 3
    #: Divisor of the values of ``poly``; see `trace_normalised`.
    divisor: float = 1.0

    def trace_normalised(self, X: NDArray, weights: NDArray | None = None) -> Kernel:
        """Return this kernel divided by the mean of ``k(x, x)``.

        The trace of the Gram matrix is then n. Only ``poly`` is divided: for ``rbf`` the trace is
        always n, and for ``linear`` the rows can be scaled instead. If rows have weights, the mean
        is weighted.

        Examples
        --------
        >>> X = np.array([[0.6, 0.8], [1.0, 0.0]])
        >>> round(float(Kernel("poly", degree=2).trace_normalised(X)(X, X).trace()), 9)
        2.0
        """
        if self.name != "poly":
            return self
        mean = float(np.average((1 + row_squares(X)) ** self.degree, weights=weights))
        return replace(self, divisor=self.divisor * mean)

    def is_finite(self, X: NDArray) -> bool:
        """Return whether all kernel values between rows of X are finite.

        Every ``|k(x, z)|`` is at most the largest ``k(x, x)``.

        Examples
        --------
        >>> Kernel("poly", degree=3).is_finite(np.array([[1e52, 0.0]]))
        False
        """
        with np.errstate(over="ignore"):
            values = row_squares(X)
            if self.name == "poly":
                values = (1 + values) ** self.degree
        return bool(np.isfinite(values).all())

    def fits_single_precision(self, X: Any) -> bool:
        """Whether float32 is accurate enough for the kernel values between the rows of X.

        For ``rbf`` the rounding error of ``gamma ||x - z||^2`` must be small. For a normalised
        ``poly`` the largest ``k(x, x)`` must be at most SINGLE_PRECISION_MAX times their mean.
        """
        if self.name == "linear" or (self.name == "poly" and self.divisor == 1):
            return False
        centred = self.name == "rbf" and not issparse(X)
        largest = float(row_squares(X - X.mean(axis=0) if centred else X).max())
        if self.name == "rbf":
            return self.gamma * largest <= SINGLE_PRECISION_EXPONENT
        return (1 + largest) ** self.degree <= SINGLE_PRECISION_MAX * self.divisor

    def base(self, X: Any, Z: Any, dtype: DTypeLike = np.float64) -> NDArray:
        """Return the base matrix for `apply`, shape (len(X), len(Z)).

        `X` and `Z` are both dense or both sparse; sparse rows are not converted to dense rows. If
        ``X is Z``, the matrix of squared distances is exactly symmetric with a diagonal of exact
        zeros, also in float32.
        """
        same = X is Z
        if issparse(X):
            products = (X @ Z.T).toarray()
            base = as_distances(products, X, Z) if self.name == "rbf" else products
            return base.astype(dtype, copy=False)
        X = np.asarray(X, dtype=dtype)
        Z = X if same else np.asarray(Z, dtype=dtype)
        if self.name != "rbf":
            return X @ Z.T
        centre = Z.mean(axis=0)  # x'x + z'z - 2x'z cancels if the data are far from the origin
        X = X - centre
        Z = X if same else Z - centre
        return as_distances(X @ Z.T, X, Z)

    def apply(self, base: NDArray, out: NDArray | None = None) -> NDArray:
        """Return the kernel values of a base matrix; with ``out=base`` the base is overwritten."""
        if self.name == "rbf":
            with np.errstate(over="ignore"):  # exp of minus infinity is 0
                out = np.multiply(base, base.dtype.type(-self.gamma), out=out)
            return np.exp(out, out=out)
        if self.name == "poly":
            out = np.add(base, base.dtype.type(1), out=out)
            return _integer_power(out, self.degree, self.divisor)
        return base

    def __call__(self, X: NDArray, Z: NDArray, dtype: DTypeLike = np.float64) -> NDArray:
        """Return the kernel matrix, shape (len(X), len(Z))."""
        base = self.base(X, Z, dtype)
        return self.apply(base, out=base)


def as_distances(out: NDArray, X: Any, Z: Any, gamma: float = np.inf) -> NDArray:
    """Replace inner products by squared distances, in place, in chunks that fit in the cache.

    Distances of close rows are computed again from differences of the rows. This step is omitted if
    `gamma` is so small that the rounding errors of distances do not matter.
    """
    squares, others = row_squares(X), row_squares(Z)
    largest = float(squares.max(initial=0)) + float(others.max(initial=0))
    exact = out.dtype == np.float64 and isinstance(X, np.ndarray)
    exact = exact and gamma * largest * NEAR_SHARE > NEAR_EXPONENT
    step = max(1, CHUNK_BYTES // max(1, out.itemsize * len(others)))
    for start in range(0, len(out), step):
        # adding the two squares one after the other would round (i, j) and (j, i) differently
        part, sums = out[start : start + step], squares[start : start + step, None] + others
        part *= -2
        part += sums
        if X is Z:
            own = np.arange(len(part))
            part[own, start + own] = np.inf  # set to 0 below
        least = part.min(initial=np.inf)
        if exact and least < NEAR_SHARE * largest:
            sums *= NEAR_SHARE
            close = np.flatnonzero(part < sums)  # x'x + z'z - 2x'z cancels
            near, columns = np.divmod(close, part.shape[1])
            pairs = max(1, CHUNK_BYTES // (8 * X.shape[1]))
            for some in (slice(k, k + pairs) for k in range(0, len(near), pairs)):
                differences = X[start + near[some]] - Z[columns[some]]
                part[near[some], columns[some]] = row_squares(differences)
        if least < 0:
            np.maximum(part, 0, out=part)
    if X is Z:
        np.fill_diagonal(out, 0)
    return out


def row_squares(X: Any) -> NDArray:
    """Return ``x'x`` of each dense or sparse row, shape (n_samples,).

    Examples
    --------
    >>> row_squares(np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([25.,  1.])
    """
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _integer_power(base: NDArray, degree: int, divisor: float) -> NDArray:
    """Raise values to an integer power by repeated products, and divide them; in place. `np.power`
    is slower.
    """
    if degree == 1 and divisor == 1:
        return base
    for start in range(0, len(base), CHUNK_ROWS):
        rows = base[start : start + CHUNK_ROWS]
        factor = rows.copy()
        for _ in range(degree - 1):
            rows *= factor
        if divisor != 1:
            rows /= rows.dtype.type(divisor)
    return base
