"""Rows and columns of a stored kernel matrix, copied without holding the interpreter lock.

``exp(-gamma ||x - z||^2)`` from inner products, compiled: one pass, at the cost of the product.

NumPy's `exp` in float64 takes three times as long as the product that it is applied to, and every
step of the exponent (norms, twice the product, the limit at zero) another pass over memory. Here
``exp(v) = 2^q exp(r)`` with an integer q and ``|r| <= ln(2) / 2``, a Taylor polynomial in r, and
``2^q`` by its bits. The result differs from NumPy's by a unit in the last place or two.

Kernels that a machine does not know by name: a matrix of their values, or a function.

With ``kernel="precomputed"`` the data are the kernel matrix: between the training rows in `fit`,
between rows and training rows in `predict`. A function takes two sets of rows and returns the
matrix. Either way the matrix of the training rows is stored, and checked as a whole: one that is
not symmetric is refused; of one that is not positive semidefinite few machines have a bound.

Rows of data, made ready for blocks of kernel values between them and others.

The kernel matrix of one set of rows, computed when it is first read, or never.

The kernel matrix of a training, of which no more is held than a bound on memory allows.

Values are computed in blocks. Whole rows that are asked for again are stored: K is symmetric, so a
row of K is what the decisions at all training rows need of one whose coefficient has changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from math import factorial
from threading import Lock
from typing import Any

import numpy as np

from mmbench.compiled import njit  # isort: skip - before Numba
from numba import types
from numba.extending import overload
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse import issparse

from mmbench.kernels import NEAR_SHARE, Kernel, near_pairs, row_squares


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


#: Entries of a row handled together: they stay in the first cache.
SEGMENT = 1024

_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nnan", "nsz", "contract", "arcp"},
}


def gaussian(products: NDArray, squares: NDArray, others: NDArray, gamma: float) -> None:
    """Turn inner products into values of the Gaussian kernel, in place.

    Parameters
    ----------
    products : ndarray of shape (n, m)
        ``x'z``, float32 or float64, its rows contiguous.
    squares, others : ndarray of shape (n,) and (m,)
        ``x'x`` and ``z'z`` in the same type.
    gamma : float

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> K = X @ X.T
    >>> gaussian(K, np.diag(K).copy(), np.diag(K).copy(), 0.5)
    >>> K.round(6)
    array([[1.      , 0.367879],
           [0.367879, 1.      ]])
    """
    dtype = products.dtype
    buffer = np.empty(SEGMENT, dtype)
    bits = buffer.view(np.int32 if dtype == np.float32 else np.int64)
    _finish(products, squares, others, dtype.type(gamma), buffer, bits)


@njit(cache=True, **_OPTIONS)
def _finish(products, squares, others, gamma, buffer, bits):
    for i in range(products.shape[0]):
        for start in range(0, products.shape[1], buffer.shape[0]):
            part = products[i, start : start + buffer.shape[0]]
            size = part.shape[0]
            beside = others[start : start + size]
            _segment(part, squares[i], beside, gamma, buffer[:size], bits[:size])


def _segment(products, square, others, gamma, buffer, bits):
    """Finish some entries of a row: one of two functions, by the type of numbers.

    `_finish` does not enclose them: Numba knows a function by what it encloses, compiled ones by a
    random name, and would compile `_finish` anew in every process, and store it once more.
    """


@overload(_segment, jit_options=_OPTIONS)
def _segment_of(products, square, others, gamma, buffer, bits):
    return _segment_single if products.dtype == types.float32 else _segment_double


def _segment_for(real, integer, terms, mantissa_bits, exponent_bias, ln2_high):
    """Return what `_segment` is for one type of numbers."""
    magic = real(1.5 * 2.0**mantissa_bits)  # adding it rounds to an integer, held in the last bits
    log2e, high, low = real(1 / np.log(2)), real(ln2_high), real(np.log(2) - ln2_high)
    lowest = real(-exponent_bias * np.log(2))  # the bits of 2^q are then those of zero
    shift, bias = integer(mantissa_bits), integer(exponent_bias << mantissa_bits)
    factors = tuple(real(1 / factorial(k)) for k in range(terms, -1, -1))
    zero, two = real(0), real(2)

    def segment(products, square, others, gamma, buffer, bits):
        for k in range(products.shape[0]):
            v = -gamma * max(square + others[k] - two * products[k], zero)
            v = max(v, lowest)
            t = v * log2e + magic
            buffer[k] = t
            q = t - magic
            r = (v - q * high) - q * low
            p = factors[0]
            for factor in factors[1:]:
                p = p * r + factor
            products[k] = p
        for k in range(products.shape[0]):
            bits[k] = (bits[k] << shift) + bias
        for k in range(products.shape[0]):
            products[k] *= buffer[k]

    return segment


_segment_single = _segment_for(np.float32, np.int32, 6, 23, 127, 0.693359375)
_segment_double = _segment_for(np.float64, np.int64, 13, 52, 1023, 0.693147180369123816490)


PRECOMPUTED = "precomputed"

#: Exponent at `NEAR_SHARE` of the largest squared norms from which near rows are compared exactly.
NEAR_EXPONENT = 1e-3

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
            gamma, near = self.kernel.gamma, []
            largest = float(self.squares.max(initial=0)) + float(other.squares.max(initial=0))
            if gamma * largest * NEAR_SHARE > NEAR_EXPONENT and not issparse(self.X):
                sums = self.squares[:, None] + other.squares
                near = list(near_pairs(sums - 2 * out, sums))
            gaussian(out, self.squares, other.squares, gamma)
            for i, columns in near:
                out[i, columns] = np.exp(-gamma * row_squares(self.X[i] - other.X[columns]))
            return out
        return self.kernel.apply(out, out=out)


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


#: Bytes of a block of values that are computed together: the last cache holds as many as the most.
#: With fewer than the least, or with fewer rows, products are slower.
LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, BLOCK_ROWS = 2**18, 2**22, 256

#: Shares of the memory for stored rows, for one part of K, and for a block, at most.
STORED_SHARE, PART_SHARE, BLOCK_SHARE = 0.6, 0.55, 0.05

#: Workspace of Newton steps on a part, relative to the part. Stored rows give way to both.
WORKSPACE_SHARE = 0.65

#: Least memory for a part, 866 rows in float32: 1400 support vectors are found seven times as fast
#: by parts of 1000 rows as of 500. There is always memory for the workspace beside it.
LEAST_PART_BYTES = 3_000_000


class KernelMatrix:
    """A symmetric kernel matrix that is never whole.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or sparse array of shape (n_samples, n_features)
    cache_bytes : float, default=inf
        Memory that values may take, besides a copy of `X`.
    single : bool, default=False
        Whether parts and columns are float32. `product` is float64 always.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> matrix = KernelMatrix(Kernel("poly", degree=2), X)
    >>> matrix.product(np.array([1.0, -1.0]))
    array([ 0., -8.])
    """

    def __init__(self, kernel: Kernel, X: Any, cache_bytes: float = np.inf, single: bool = False):
        self._kernel, self._X, self._cache_bytes = kernel, X, cache_bytes
        self._set_type(np.float32 if single else np.float64)

    def _set_type(self, dtype: type) -> None:
        self._rows = KernelRows(self._kernel, self._X, dtype=dtype)
        self._memory: NDArray = np.empty(0, dtype)
        self._store = _RowStore(len(self), self._most_stored(0), dtype)

    def __len__(self) -> int:
        return self._X.shape[0]  # a sparse array has no length

    @property
    def dtype(self) -> np.dtype:
        """The type of parts and columns."""
        return self._rows.X.dtype

    @property
    def most_part_rows(self) -> int:
        """The rows of the largest part."""
        allowed = max(self._cache_bytes * PART_SHARE, LEAST_PART_BYTES) / self.dtype.itemsize
        return int(min(math.sqrt(allowed), len(self)))

    def _most_stored(self, n_part: int) -> int:
        """Return the number of stored rows for which a part and its workspace leave memory."""
        size, memory = self.dtype.itemsize, self._cache_bytes
        left = (1 - BLOCK_SHARE) * memory - (1 + WORKSPACE_SHARE) * size * n_part**2
        return int(np.clip(min(STORED_SHARE * memory, left) / (size * len(self)), 0, len(self)))

    def _most_beside(self, n_stored: int) -> int:
        """Return the rows of a part for which, and for its workspace, stored rows leave memory."""
        size = self.dtype.itemsize
        left = (1 - BLOCK_SHARE) * self._cache_bytes - n_stored * size * len(self)
        return int(min(math.sqrt(max(0.0, left) / ((1 + WORKSPACE_SHARE) * size)), len(self)))

    def _make_room(self, n_stored: int) -> None:
        """Forget the stored rows if no more than so many are to be stored."""
        if n_stored < self._store.most:
            self._store = _RowStore(len(self), 0, self.dtype)  # the old go before the new come
            self._store = _RowStore(len(self), n_stored, self.dtype)

    def to_double(self) -> None:
        """Go on in float64, where float32 has met its rounding errors."""
        self._make_room(0)
        self._set_type(np.float64)

    def diagonal(self) -> NDArray:
        """Return ``k(x, x)`` of all rows, shape (n_samples,), in float64."""
        if self._kernel.name == "rbf":
            return np.ones(len(self))
        return self._kernel.apply(row_squares(self._X)[None, :])[0]

    def part(self, rows: NDArray) -> NDArray:
        """Return the matrix of some rows, shape (len(rows), len(rows)).

        It holds until the next part, which takes its memory: fresh memory costs as much as values.
        """
        n, some = len(rows), self._rows.take(rows)
        if len(self._memory) < n**2:
            self._memory = np.empty(0, self.dtype)  # the old goes before the new comes
            self._make_room(self._most_stored(n))
            larger = min(2 * n, self.most_part_rows, self._most_beside(self._store.most))
            self._memory = np.empty(max(n, larger) ** 2, self.dtype)  # for the next ones, too
        out = self._memory[: n**2].reshape(n, n)
        slots = self._store.slots(rows)
        stored, missing = slots >= 0, np.flatnonzero(slots < 0)
        if 2 * len(missing) > n:
            out = some.values(some, out)
        else:
            _copy_entries(self._store.values, slots[stored], rows, np.flatnonzero(stored), out)
            values = some.take(missing).values(some)
            out[missing], out[:, missing] = values, values.T
        if self._kernel.name == "rbf":
            np.fill_diagonal(out, 1)
        return out

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return some rows and columns in float64, shape (len(rows), len(columns))."""
        some, others = (
            KernelRows(self._kernel, self._X[part], self._rows.centre) for part in (rows, columns)
        )
        values = some.values(others)
        if self._kernel.name == "rbf":  # with a large gamma a rounded distance of 0 counts
            values[rows[:, None] == columns] = 1
        return values

    def add_columns(self, rows: NDArray, coefficients: NDArray, out: NDArray) -> None:
        """Add a combination of columns to `out`, shape (n_samples,), in place.

        Parameters
        ----------
        rows : ndarray of int of shape (n_columns,)
            Which columns.
        coefficients : ndarray of shape (n_columns,)
        out : ndarray of shape (n_samples,)
        """
        slots = self._store.find(rows)
        stored = slots >= 0
        accumulate(self._store.values, slots[stored], coefficients[stored], out)
        rows, coefficients = rows[~stored], coefficients[~stored]
        slots = self._store.put(rows)
        for some, columns, values in self._blocks(self._rows.take(rows), self._rows):
            self._set_diagonal(values, rows[some], columns.start)
            accumulate(values, np.arange(len(values)), coefficients[some], out[columns])
            room = slots[some]
            self._store.values[room, columns] = values[: len(room)]

    def product(self, u: NDArray) -> NDArray:
        """Return ``K u`` of shape (n_samples,), from float64 values.

        A value between two rows of the expansion is computed once, for both.
        """
        support, rest, out = np.flatnonzero(u), np.flatnonzero(u == 0), np.zeros(len(u))
        coefficients = u[support]
        expansion = KernelRows(self._kernel, self._X[support], self._rows.centre)
        for start in range(0, len(support), BLOCK_ROWS):
            here, later = slice(start, start + BLOCK_ROWS), slice(start, None)
            some, others, weights = support[here], support[later], coefficients[later]
            for _, columns, values in self._blocks(expansion.take(here), expansion.take(later)):
                self._set_diagonal(values, np.arange(len(some)), columns.start)
                out[some] += values @ weights[columns]
                first = max(len(some) - columns.start, 0)  # of the columns behind the block's own
                out[others[columns][first:]] += coefficients[here] @ values[:, first:]
        for start in range(0, len(rest) if len(support) else 0, BLOCK_ROWS):
            some = rest[start : start + BLOCK_ROWS]
            rows = KernelRows(self._kernel, self._X[some], self._rows.centre)
            for _, columns, values in self._blocks(rows, expansion):
                out[some] += values @ coefficients[columns]
        return out

    def _blocks(
        self, rows: KernelRows, others: KernelRows
    ) -> Iterator[tuple[slice, slice, NDArray]]:
        """Yield the values between rows and others by blocks: its rows, its columns, the block.

        A block holds until the next, which takes its memory.
        """
        n_rows, n_columns, dtype = rows.X.shape[0], others.X.shape[0], rows.X.dtype
        allowed = np.clip(self._cache_bytes * BLOCK_SHARE, LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES)
        height = max(1, min(n_rows, BLOCK_ROWS))
        width = min(n_columns, int(allowed) // (height * dtype.itemsize))
        memory = np.empty(height * width, dtype)
        for start in range(0, n_rows, height):
            some = slice(start, min(start + height, n_rows))
            left = rows.take(some)
            for first in range(0, n_columns, width):
                columns = slice(first, min(first + width, n_columns))
                shape = some.stop - start, columns.stop - first
                out = memory[: shape[0] * shape[1]].reshape(shape)
                yield some, columns, left.values(others.take(columns), out)

    def _set_diagonal(self, values: NDArray, rows: NDArray, first: int) -> None:
        """Set ``k(x, x)`` in a block of some rows and of the columns from `first` on.

        With a large gamma a rounded distance of 0 counts.
        """
        if self._kernel.name == "rbf":
            here = np.flatnonzero((first <= rows) & (rows < first + values.shape[1]))
            values[here, rows[here] - first] = 1


class _RowStore:
    """Rows of a matrix under their numbers; those that were not asked for longest leave first."""

    def __init__(self, n: int, most: int, dtype: np.dtype | type):
        self.most = most
        self.values: NDArray = np.empty((most, n), dtype)  # memory is taken as it is written
        self._slot_of = np.full(n, -1)
        self._row_of, self._asked_at = np.full(most, -1), np.zeros(most, dtype=int)
        self._time = 0

    def slots(self, rows: NDArray) -> NDArray:
        """Return where rows are stored, -1 for those that are not."""
        return self._slot_of[rows]

    def find(self, rows: NDArray) -> NDArray:
        """Return the same for rows that are asked for, which then are the last to leave."""
        self._time += 1
        slots = self.slots(rows)
        self._asked_at[slots[slots >= 0]] = self._time
        return slots

    def put(self, rows: NDArray) -> NDArray:
        """Return where to store rows: the first of them, as many as there is room for.

        Rows that were asked for just now stay: more than fit, asked for in turn, would otherwise
        drive one another out.
        """
        room = np.flatnonzero(self._asked_at < self._time)
        oldest = room[np.argsort(self._asked_at[room], kind="stable")[: len(rows)]]
        rows = rows[: len(oldest)]
        gone = self._row_of[oldest]
        self._slot_of[gone[gone >= 0]] = -1
        self._slot_of[rows], self._row_of[oldest] = oldest, rows
        self._asked_at[oldest] = self._time
        return oldest


@njit(
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)
def accumulate(values, rows, coefficients, out):
    """Add a combination of some rows of a matrix to `out` in float64, four at a time."""
    whole = rows.shape[0] // 4 * 4
    for s in range(0, whole, 4):
        a, b, c, d = values[rows[s]], values[rows[s + 1]], values[rows[s + 2]], values[rows[s + 3]]
        i, j, k, m = (
            coefficients[s],
            coefficients[s + 1],
            coefficients[s + 2],
            coefficients[s + 3],
        )
        for p in range(out.shape[0]):
            out[p] += i * a[p] + j * b[p] + (k * c[p] + m * d[p])
    for s in range(whole, rows.shape[0]):
        row, coefficient = values[rows[s]], coefficients[s]
        for p in range(out.shape[0]):
            out[p] += coefficient * row[p]


@njit(nogil=True, cache=True)
def _copy_entries(values, slots, columns, places, out):
    """Copy some columns of stored rows to the places of these rows."""
    for k in range(slots.shape[0]):
        row, to = values[slots[k]], out[places[k]]
        for j in range(columns.shape[0]):
            to[j] = row[np.uintp(columns[j])]  # unsigned: no test for negative numbers
