"""Kernel functions, computed from inner products or squared distances of rows.

An entry of a kernel matrix is a function of one entry of the *base* matrix: squared distances for
``rbf``, inner products for ``linear`` and ``poly``. All kernel parameters share a base matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, issparse

from mmbench.allowance import check_time

KERNELS = ("linear", "poly", "rbf")

#: A normalised ``poly`` kernel (the mean of ``k(x, x)`` is 1) is stored in float32 if its values
#: are at most SINGLE_PRECISION_MAX.
SINGLE_PRECISION_MAX = 4.0

#: With at most DIRECT_FEATURES features, blocks of ``rbf`` kernel values are computed from
#: differences of data rows, not from a matrix product.
DIRECT_FEATURES = 32

#: Distances are computed in float32 if ``gamma ||x||^2`` is at most SINGLE_PRECISION_EXPONENT for
#: all centred rows x.
SINGLE_PRECISION_EXPONENT = 100.0

#: The squared distance of rows x and z is computed from ``x - z`` if it is below NEAR_SHARE times
#: ``x'x + z'z``. The relative error of the exponent of ``rbf`` is then 1e-6, even if ``gamma (x'x +
#: z'z) > 1e10``.
NEAR_SHARE = 1e-10

#: Number of rows per chunk of a matrix; `_integer_power` changes the matrix chunk by chunk.
CHUNK_ROWS = 256

#: Differences ``x - z`` are used only if ``NEAR_SHARE * gamma * (x'x + z'z)`` exceeds
#: NEAR_EXPONENT. Below this limit, rounding errors of squared distances are negligible in ``rbf``.
NEAR_EXPONENT = 1e-3

#: The median of the rows is the centre if ``gamma ||m||^2`` exceeds FAR_CENTRE for the mean m.
FAR_CENTRE = 1e14

#: Number of arithmetic operations per kernel value, for the time limit; an exponential takes most.
OPERATIONS_PER_VALUE = 100.0

#: Size in bytes of a chunk of distances; a chunk fits in the cache.
CHUNK_BYTES = 2**18

#: Number of pairs of sparse rows whose differences are computed at once.
CHUNK_PAIRS = 2**12


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

    #: Kernel of rows u and v: "linear" is ``u'v``, "poly" is ``(1 + u'v)**degree``, and "rbf" is
    #: ``exp(-gamma * ||u - v||**2)``.
    name: str
    #: Coefficient of the squared distance in ``rbf``.
    gamma: float = 1.0
    #: Degree of ``poly``.
    degree: int = 3
    #: Divisor of the values of ``poly``; see `trace_normalised`.
    divisor: float = 1.0

    def trace_normalised(self, X: NDArray, weights: NDArray | None = None) -> Kernel:
        """Return this kernel divided by the (weighted) mean of ``k(x, x)`` over the rows x of X.

        Only ``poly`` is divided, so that the Gram matrix has the trace n: for ``rbf`` it always
        has, and for ``linear`` the rows can be scaled.

        Examples
        --------
        >>> X = np.array([[0.6, 0.8], [1.0, 0.0]])
        >>> round(float(Kernel("poly", degree=2).trace_normalised(X)(X, X).trace()), 9)
        2.0
        """
        if self.name != "poly":
            return self
        with np.errstate(over="ignore"):  # an infinite divisor is refused by `is_finite`
            mean = float(np.average((1 + row_squares(X)) ** self.degree, weights=weights))
        return replace(self, divisor=self.divisor * mean)

    def is_finite(self, X: NDArray) -> bool:
        """Return whether all kernel values between rows of X are finite.

        Only ``k(x, x)`` is computed, since ``|k(x, z)|`` is at most the largest ``k(x, x)``.

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

    def fits_single_precision(self, X: Any, direct: bool = False) -> bool:
        """Whether float32 is accurate enough for the kernel values between the rows of X.

        For ``rbf``, float32 is accurate enough if the rounding error of ``gamma ||x - z||^2`` is
        small (see SINGLE_PRECISION_EXPONENT); `direct` states that it is computed from ``x - z``.
        For a normalised ``poly``, float32 is accurate enough if the largest ``k(x, x)`` is at most
        SINGLE_PRECISION_MAX times the mean of ``k(x, x)``, and if ``(1 + x'x)**degree`` does not
        overflow.
        """
        if self.name == "linear" or (self.name == "poly" and self.divisor == 1):
            return False
        largest = float(row_squares(moved(X, self.centre(X)) if self.name == "rbf" else X).max())
        if self.name == "rbf":
            # the rounding error of ``exp(-gamma ||x - z||^2)`` from the difference ``x - z`` grows
            # with the square root of gamma
            exponent = self.gamma * largest
            return (exponent**0.5 if direct else exponent) <= SINGLE_PRECISION_EXPONENT
        # powers are computed before they are divided
        most = min(SINGLE_PRECISION_MAX * self.divisor, float(np.finfo(np.float32).max))
        return self.degree * float(np.log1p(largest)) <= float(np.log(most))

    def is_direct(self, X: Any) -> bool:
        """Whether blocks of kernel values are computed from differences of the rows of X."""
        return self.name == "rbf" and not issparse(X) and X.shape[1] <= DIRECT_FEATURES

    def centre(self, X: Any) -> NDArray:
        """Return the row that is subtracted from all rows before squared distances are computed.

        Far from the origin, ``x'x + z'z - 2x'z`` is inaccurate. The centre is the mean of the rows,
        or their median if the mean is so large, for example because of fill values like 1e20, that
        differences from the mean would have too few digits. For sparse rows, see `sparse_centre`.
        """
        if issparse(X):
            return sparse_centre(X)
        mean = X.mean(axis=0)
        with np.errstate(over="ignore"):
            return np.median(X, axis=0) if self.gamma * (mean @ mean) > FAR_CENTRE else mean

    def base(self, X: Any, Z: Any, dtype: DTypeLike = np.float64) -> NDArray:
        """Return the base matrix: squared distances for ``rbf``, inner products for other kernels.

        The returned matrix has the shape (len(X), len(Z)). `X` and `Z` are both dense or both
        sparse; sparse rows are not converted to dense rows. If ``X is Z``, the matrix of squared
        distances is exactly symmetric with a diagonal of exact zeros, also in float32.
        """
        same = X is Z
        if issparse(X):
            if self.name == "rbf":
                centre = sparse_centre(Z)
                X = moved(X, centre)
                Z = X if same else moved(Z, centre)
            products = (X @ Z.T).toarray()
            base = as_distances(products, X, Z) if self.name == "rbf" else products
            return base.astype(dtype, copy=False)
        X = np.asarray(X, dtype=dtype)
        Z = X if same else np.asarray(Z, dtype=dtype)
        check_time(float(len(X)) * len(Z) * X.shape[1])
        if self.name != "rbf":
            return X @ Z.T
        centre = self.centre(Z)
        X = X - centre
        Z = X if same else Z - centre
        return as_distances(X @ Z.T, X, Z)

    def apply(self, base: NDArray, out: NDArray | None = None) -> NDArray:
        """Convert squared distances or inner products to kernel values; `out` may be `base`."""
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

    The squared distances of close rows x and z are recomputed from ``x - z`` if `gamma` is so large
    that rounding errors matter.
    """
    squares, others = row_squares(X), row_squares(Z)
    largest = float(squares.max(initial=0)) + float(others.max(initial=0))
    exact = out.dtype == np.float64 and gamma * largest * NEAR_SHARE > NEAR_EXPONENT
    step = max(1, CHUNK_BYTES // max(1, out.itemsize * len(others)))
    for start in range(0, len(out), step):
        check_time(OPERATIONS_PER_VALUE * (out.size - start * len(others)))
        # the sum x'x + z'z is computed before 2x'z is subtracted, so that entries (i, j) and (j, i)
        # are equal
        part, sums = out[start : start + step], squares[start : start + step, None] + others
        part *= -2
        part += sums
        if X is Z:
            own = np.arange(len(part))
            part[own, start + own] = np.inf  # the diagonal is set to 0 below
        least = part.min(initial=np.inf)
        if exact and least < NEAR_SHARE * largest:
            sums *= NEAR_SHARE
            close = np.flatnonzero(part < sums)  # x'x + z'z - 2x'z is inaccurate for close rows
            near, columns = np.divmod(close, part.shape[1])
            pairs = CHUNK_PAIRS if issparse(X) else max(1, CHUNK_BYTES // (8 * X.shape[1]))
            for some in (slice(k, k + pairs) for k in range(0, len(near), pairs)):
                differences = X[start + near[some]] - Z[columns[some]]
                part[near[some], columns[some]] = row_squares(differences)
        if least < 0:
            np.maximum(part, 0, out=part)
    if X is Z:
        np.fill_diagonal(out, 0)
    return out


def sparse_centre(X: Any) -> NDArray:
    """Return the mean of each column of sparse rows that is far from 0, and 0 for other columns.

    A column is far from 0 if its mean exceeds its standard deviation, for example a year. Most of
    its values are then stored, and a difference from the mean needs little more memory.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> sparse_centre(csr_array([[2001.0, 0.0], [1999.0, 4.0], [2000.0, 0.0]]))
    array([2000.,    0.])
    """
    n = X.shape[0]
    mean, full = np.asarray(X.mean(axis=0)).ravel(), 2 * X.count_nonzero(axis=0) > n
    squares = np.asarray(X[:, full].multiply(X[:, full]).mean(axis=0)).ravel()
    full[full] = 2 * mean[full] ** 2 > squares
    return np.where(full, mean, 0.0)


def moved(X: Any, centre: NDArray) -> Any:
    """Return ``X - centre``; sparse rows stay sparse, and store all values where `centre` is not 0.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> moved(csr_array([[3.0, 0.0], [0.0, 4.0]]), np.array([1.0, 0.0])).toarray()
    array([[ 2.,  0.],
           [-1.,  4.]])
    """
    if not issparse(X):
        return X - centre
    columns = np.flatnonzero(centre)
    if not len(columns):
        return X
    n, k = X.shape[0], len(columns)
    values, places = np.tile(-centre[columns], n), np.tile(columns, n)
    return csr_array(X) + csr_array((values, places, k * np.arange(n + 1)), shape=X.shape)


def variance(X: Any, weights: NDArray | None = None) -> float:
    """Return the variance of all entries of X, including zeros that a sparse X does not store."""
    if weights is None and not issparse(X):
        return float(X.var())
    n, d = X.shape
    share = np.full(n, 1 / (n * d)) if weights is None else weights / (weights.sum() * d)
    mean = float(share @ np.asarray(X.sum(axis=1)).ravel())
    if not issparse(X):
        return float(share @ row_squares(X - mean))
    stored = csr_array((X.data - mean, X.indices, X.indptr), shape=X.shape)
    zeros = d - np.diff(X.indptr)
    return float(share @ (row_squares(stored) + zeros * np.float64(mean) ** 2))


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
    """Replace each entry v of a matrix by ``v**degree / divisor``, in place.

    The power is computed by repeated products, which are faster than `np.power`.
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
