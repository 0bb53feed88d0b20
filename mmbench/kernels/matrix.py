"""Kernel matrices that are stored, given by the user, or computed by blocks in limited memory.

With ``kernel="precomputed"``, `fit` takes the kernel matrix of the training rows, and `predict` the
kernel values of new and training rows. If a matrix is not positive semidefinite, the problems are
not convex, and few classifiers return a lower bound.

`LazyGram` computes each row at its first use. `KernelMatrix` computes blocks, and stores rows up to
a memory limit: a change of one coefficient adds a multiple of one row to the decision values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mmbench.compiled import compiled, compiled_inside  # isort: skip - before Numba
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse import issparse

from mmbench.allowance import check_time
from mmbench.kernels import OPERATIONS_PER_VALUE, Kernel, as_distances, moved, row_squares

#: Number of columns per block of `read_row`; a block fits in the cache of a core.
READ_COLUMNS = 512

#: The powers ``2**-m`` for all m from 0 to 1022.
POWERS = 2.0 ** -np.arange(1023)


@compiled()
def submatrix(matrix: NDArray, rows: NDArray, columns: NDArray) -> NDArray:
    """Return ``matrix[np.ix_(rows, columns)]``.

    This function releases the interpreter lock, so that several threads can copy submatrices at the
    same time. NumPy's indexing holds the interpreter lock, and is several times slower.
    """
    out = np.empty((rows.shape[0], columns.shape[0]), matrix.dtype)
    for i in range(rows.shape[0]):
        row, to = matrix[np.uintp(rows[i])], out[i]
        for j in range(columns.shape[0]):
            to[j] = row[np.uintp(columns[j])]  # unsigned indices need no test for negative values
    return out


PRECOMPUTED = "precomputed"

#: A kernel matrix K is considered symmetric if ``|K[i, j] - K[j, i]|`` is at most SYMMETRY times
#: the largest ``|K[i, j]|``. The tolerance SYMMETRY exceeds the rounding errors of float32.
SYMMETRY = 1e-6
#: Allowed range of the largest absolute value in a user's kernel matrix. Outside this range,
#: squares or sums of the values would underflow or overflow.
KERNEL_RANGE = (1e-290, 1e290)

#: Tolerance for negative eigenvalues of a kernel matrix, relative to its trace. The tolerance
#: ROUNDING_SHARE exceeds the rounding errors of float32.
ROUNDING_SHARE = 1e-6


#: A kernel: its name, or a function of two sets of rows that returns their kernel matrix.
KernelLike = str | Callable[[Any, Any], Any]


def is_given(kernel: KernelLike) -> bool:
    """Whether a kernel is given as a matrix or a function, not by name.

    Examples
    --------
    >>> is_given("precomputed"), is_given(np.dot), is_given("rbf")
    (True, True, False)
    """
    return kernel == PRECOMPUTED or callable(kernel)


def given_gram(kernel: KernelLike, X: Any) -> NDArray | None:
    """Return the kernel matrix of the training rows, or None if the kernel is given by name.

    Parameters
    ----------
    kernel : str or callable
        Kernel name, "precomputed", or a function of two sets of rows.
    X : array of shape (n_samples, n_features)
        Training rows, or the kernel matrix if `kernel` is "precomputed".

    Raises
    ------
    ValueError
        If the kernel matrix is not symmetric or has values that are not finite.

    Examples
    --------
    >>> given_gram(lambda X, Z: X @ Z.T, np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """
    if not is_given(kernel):
        return None
    return _symmetric(np.ascontiguousarray(given_values(kernel, X, X)))


def given_values(kernel: KernelLike, X: Any, Z: Any, columns: NDArray | None = None) -> NDArray:
    """Return the kernel values between the rows of X and Z, shape (len(X), len(Z)).

    Parameters
    ----------
    kernel : str or callable
        "precomputed", or a function of two sets of rows.
    X, Z : array of shape (n_samples, n_features)
        Data rows. If `kernel` is "precomputed", `X` contains the kernel values and `Z` is ignored.
    columns : ndarray of int, optional
        Columns of precomputed values to return; all columns by default.
    """
    if not callable(kernel):
        return X if columns is None else X[:, columns]
    expected = (X.shape[0], Z.shape[0])
    if not all(expected):  # scikit-learn's kernel functions raise an error for empty input
        return np.zeros(expected)
    values = kernel(X, Z)  # sparse if the kernel is ``X @ Z.T`` and the rows are sparse
    values = np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64)
    if values.shape != expected:
        raise ValueError(f"the kernel function returned shape {values.shape}, not {expected}")
    if not np.isfinite(values).all():
        raise ValueError("the kernel function returned values that are not finite")
    return values


def part_of(gram: NDArray, rows: NDArray) -> NDArray:
    """Return the submatrix for ascending indices `rows`, or `gram` itself for all indices."""
    return gram if len(rows) == len(gram) else submatrix(gram, rows, rows)


def _symmetric(gram: NDArray) -> NDArray:
    """Return an exactly symmetric kernel matrix.

    Raises ValueError if the given matrix is not symmetric up to the tolerance SYMMETRY, or if its
    largest value is outside KERNEL_RANGE.
    """
    differences, largest = np.abs(gram - gram.T), np.abs(gram).max()
    if largest and not KERNEL_RANGE[0] < largest < KERNEL_RANGE[1]:
        raise ValueError(f"the kernel matrix has values up to {largest:.0e}; scale the matrix")
    if differences.max() > SYMMETRY * largest:
        i, j = np.unravel_index(np.argmax(differences), gram.shape)
        raise ValueError(
            f"the kernel matrix is not symmetric: K[{i}, {j}] = {gram[i, j]:g}, "
            f"K[{j}, {i}] = {gram[j, i]:g}"
        )
    return 0.5 * (gram + gram.T) if differences.any() else gram


def is_semidefinite(gram: NDArray) -> bool:
    """Whether a symmetric matrix is positive semidefinite up to float32 rounding errors."""
    n, trace = len(gram), float(gram.trace())
    scaled = (gram / (trace / n if trace > 0 else 1.0)).astype(np.float32)
    scaled[np.diag_indices(n)] += n * ROUNDING_SHARE
    try:
        cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


class KernelRows:
    """Copy of data rows in one data type, for the computation of kernel values.

    For ``rbf``, a centre is subtracted from the rows. Far from the origin, the expansion ``x'x +
    z'z - 2x'z`` of squared distances would suffer from cancellation.

    Parameters
    ----------
    kernel : Kernel
        Kernel function.
    X : ndarray or sparse array of shape (n_samples, n_features)
        Data rows.
    centre : ndarray of shape (n_features,), optional
        Vector that is subtracted from the rows for ``rbf``, by default `Kernel.centre`.
    dtype : data type, default=float64
        Data type of the kernel values.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> rows = KernelRows(Kernel("rbf", gamma=0.5), X)
    >>> rows.values(rows.take([0])).round(6)
    array([[1.      ],
           [0.367879]])
    """

    def __init__(
        self, kernel: Kernel, X: Any, centre: NDArray | None = None, dtype: DTypeLike = np.float64
    ):
        self.kernel, self.centre = kernel, centre
        if kernel.name == "rbf":
            self.centre = kernel.centre(X) if centre is None else centre
            X = moved(X, self.centre)
        self.X = X.astype(dtype) if issparse(X) else np.ascontiguousarray(X, dtype=dtype)
        self._direct = kernel.is_direct(X)

    def take(self, rows: NDArray | list[int] | slice) -> KernelRows:
        """Return a selection of the rows as another `KernelRows`."""
        other = object.__new__(KernelRows)  # a copy takes ten times as long
        vars(other).update(vars(self), X=self.X[rows])
        return other

    def values(self, other: KernelRows, out: NDArray | None = None) -> NDArray:
        """Return the kernel values between the rows of X and the rows of `other`.

        `X` and the rows of `other` must have the same centre. If the rows are dense and `out` is
        given, the kernel values are written to `out`.
        """
        if self._direct:
            if out is None:
                out = np.empty((len(self.X), len(other.X)), self.X.dtype)
            check_time(OPERATIONS_PER_VALUE * out.size)
            gaussian_values(self.X, np.ascontiguousarray(other.X.T), self.kernel.gamma, out)
            return out
        if issparse(self.X):
            out = (self.X @ other.X.T).toarray()
        else:
            out = np.matmul(self.X, other.X.T, out=out)
        if self.kernel.name == "rbf":
            as_distances(out, self.X, other.X, self.kernel.gamma)
        return self.kernel.apply(out, out=out)


class LazyGram:
    """A stored kernel matrix whose rows are computed by `read_row` at their first use.

    Rows are stored in the order of their first use. The operating system allocates memory only for
    rows that have been written.
    """

    def __init__(
        self, values: NDArray, columns: NDArray | None, gamma: float, slots: NDArray
    ) -> None:
        self.values, self.columns, self.gamma = values, columns, gamma
        #: Index of each row in `values`, or -1 if the row is not computed. The last entry of
        #: `slots` is the number of stored rows.
        self.slots = slots

    @classmethod
    def gaussian(cls, gamma: float, X: NDArray) -> LazyGram:
        """Return the ``rbf`` kernel matrix of dense rows, with no row computed yet."""
        n = len(X)
        slots = np.append(np.full(n, -1), 0)
        return cls(np.empty((n, n)), np.ascontiguousarray(X.T), gamma, slots)

    @classmethod
    def stored(cls, values: NDArray) -> LazyGram:
        """Return a matrix of any kernel whose rows have all been computed."""
        return cls(np.ascontiguousarray(values), None, 0.0, np.arange(len(values) + 1))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def source(self) -> tuple[NDArray, NDArray | None, float, NDArray]:
        """Arguments of `read_row` except the row number."""
        return self.values, self.columns, self.gamma, self.slots

    @property
    def dtype(self) -> np.dtype:
        """Data type of the kernel values."""
        return self.values.dtype

    @property
    def most_part_rows(self) -> int:
        """Maximum number of rows of a submatrix."""
        return len(self)

    def diagonal(self) -> NDArray:
        """Return the kernel value ``k(x, x)`` of each row x, shape (n_samples,)."""
        return self.values.diagonal() if self.columns is None else np.ones(len(self))

    def part(self, rows: NDArray) -> NDArray:
        """Return a copy of the submatrix of some rows, shape (len(rows), len(rows))."""
        return submatrix(self.values, self._stored(rows), rows)

    def add_columns(self, rows: NDArray, coefficients: NDArray, out: NDArray) -> None:
        """Add a linear combination of columns of the kernel matrix to `out`, in place."""
        accumulate(self.values, self._stored(rows), coefficients, out)

    def product(self, u: NDArray) -> NDArray:
        """Return the product ``K u`` in float64; row k of K is not computed if ``u_k = 0``."""
        rows, out = np.flatnonzero(u), np.zeros(len(u))
        self.add_columns(rows, u[rows], out)
        return out

    def _stored(self, rows: NDArray) -> NDArray:
        """Return the indices of some rows in `values`; compute the rows that are not stored yet."""
        for i in rows[self.slots[rows] < 0]:
            read_row(*self.source, i)
        return self.slots[rows]


def _gaussian_block_numpy(z, columns, gamma, start, row):
    """Do the same without Numba."""
    part = columns[:, start : start + READ_COLUMNS] - z[:, None]
    row[start : start + READ_COLUMNS] = np.exp(-gamma * np.einsum("ij,ij->j", part, part))


@compiled_inside(_gaussian_block_numpy)
def _gaussian_block(z, columns, gamma, start, row):
    """Compute the ``rbf`` kernel values between z and a block of columns, as part of `row`.

    ``exp(x)`` is computed in float64 as ``2**m exp(r)`` with the integer m nearest to ``x /
    log(2)`` and ``r = x - m log(2)``. A Taylor polynomial gives ``exp(r)`` to 1e-16. A loop with
    `np.exp` is not vectorised, and takes four times as long.
    """
    out = row[start : start + READ_COLUMNS]
    for k in range(out.shape[0]):
        out[k] = 0.0
    for f in range(columns.shape[0]):
        x, column = z[f], columns[f, start : start + READ_COLUMNS]
        for k in range(out.shape[0]):
            out[k] += (column[k] - x) * (column[k] - x)
    for k in range(out.shape[0]):
        x = max(-gamma * out[k], -708.0)  # exp(x) is subnormal if x < -708.4
        m = np.floor(x * 1.4426950408889634 + 0.5)
        r = x - m * 0.6931471805599453
        p = 1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600)))
        p = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * p)))
        p = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * p))))
        out[k] = p * POWERS[np.int32(-m)]


@compiled()
def read_row(values, columns, gamma, slots, i):
    """Return row i of a `LazyGram`; it is computed if it is not stored."""
    if columns is None:
        return values[i]
    if slots[i] >= 0:
        return values[slots[i]]
    slots[i] = slots[-1]
    slots[-1] += 1
    row = values[slots[i]]
    for start in range(0, columns.shape[1], READ_COLUMNS):
        _gaussian_block(columns[:, i], columns, gamma, start, row)
    return row


@compiled()
def gaussian_values(X, columns, gamma, out):
    """Compute the ``rbf`` kernel values between the rows of X and `columns`, shape (d, n)."""
    for start in range(0, columns.shape[1], READ_COLUMNS):
        for i in range(X.shape[0]):
            _gaussian_block(X[i], columns, gamma, start, out[i])


#: Minimum and maximum size in bytes, and maximum number of rows, of a block of kernel values. A
#: block of maximum size fits in the last-level cache. Matrix products with small blocks are slow.
LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, BLOCK_ROWS = 2**18, 2**22, 256

#: Maximum shares of the memory limit for stored rows, for a submatrix (`KernelMatrix.part`) without
#: the workspace of a Newton step on it, and for a block of kernel values.
STORED_SHARE, PART_SHARE, BLOCK_SHARE = 0.6, 0.21, 0.05

#: Memory in bytes that a submatrix may use even above the memory limit, enough for 866 rows in
#: float32. For 1400 support vectors, submatrices of 500 rows take seven times as long as of 1000
#: rows.
LEAST_PART_BYTES = 3_000_000


class KernelMatrix:
    """A symmetric kernel matrix that is computed by blocks, with rows stored in limited memory.

    Parameters
    ----------
    kernel : Kernel
        Kernel function.
    X : ndarray or sparse array of shape (n_samples, n_features)
        Data rows.
    cache_bytes : float, default=inf
        Maximum memory in bytes for kernel values, in addition to a copy of `X`.
    single : bool, default=False
        Whether submatrices and columns are float32. `product` always uses float64.

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
        most = STORED_SHARE * self._cache_bytes / (self.dtype.itemsize * len(self))
        self._store = _RowStore(len(self), int(min(most, len(self))), dtype)

    def __len__(self) -> int:
        return self._X.shape[0]  # sparse arrays do not support len()

    @property
    def dtype(self) -> np.dtype:
        """Data type of submatrices and columns."""
        return self._rows.X.dtype

    @property
    def most_part_rows(self) -> int:
        """Maximum number of rows of a submatrix."""
        allowed = max(self._cache_bytes * PART_SHARE, LEAST_PART_BYTES) / self.dtype.itemsize
        return int(min(math.sqrt(allowed), len(self)))

    def to_double(self) -> None:
        """Change the data type to float64, to reduce rounding errors that prevent convergence."""
        del self._store  # free its memory before the new store is allocated
        self._set_type(np.float64)

    def diagonal(self) -> NDArray:
        """Return the kernel value ``k(x, x)`` of each row x in float64, shape (n_samples,)."""
        if self._kernel.name == "rbf":
            return np.ones(len(self))
        return self._kernel.apply(row_squares(self._X)[None, :])[0]

    def part(self, rows: NDArray) -> NDArray:
        """Return the submatrix of some rows, shape (len(rows), len(rows))."""
        some = self._rows.take(rows)
        return some.values(some)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix in float64, shape (len(rows), len(columns))."""
        some, others = (
            KernelRows(self._kernel, self._X[part], self._rows.centre) for part in (rows, columns)
        )
        values = some.values(others)
        if self._kernel.name == "rbf":  # a large gamma magnifies rounding errors of a zero distance
            values[rows[:, None] == columns] = 1
        return values

    def add_columns(self, rows: NDArray, coefficients: NDArray, out: NDArray) -> None:
        """Add a linear combination of columns of the kernel matrix to `out`, in place.

        Parameters
        ----------
        rows : ndarray of int of shape (n_columns,)
            Indices of the columns.
        coefficients : ndarray of shape (n_columns,)
            Coefficients of the linear combination.
        out : ndarray of shape (n_samples,)
            Array to which the linear combination is added.
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
        """Return the product ``K u`` in float64, shape (n_samples,)."""
        support, out, place = np.flatnonzero(u), np.zeros(len(u)), np.full(len(u), -1)
        place[support] = np.arange(len(support))
        expansion = KernelRows(self._kernel, self._X[support], self._rows.centre)
        for start in range(0, len(u) if len(support) else 0, BLOCK_ROWS):
            own = slice(start, start + BLOCK_ROWS)
            rows = KernelRows(self._kernel, self._X[own], self._rows.centre)
            for _, columns, values in self._blocks(rows, expansion):
                self._set_diagonal(values, place[own], columns.start)
                out[own] += values @ u[support[columns]]
        return out

    def _blocks(
        self, rows: KernelRows, others: KernelRows
    ) -> Iterator[tuple[slice, slice, NDArray]]:
        """Yield the row slice, the column slice and the kernel values of each block of a matrix.

        The next block overwrites the values of the previous block.
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
        """Set the diagonal entries ``k(x, x)`` of ``rbf`` in a block of the kernel matrix to 1.

        `first` is the index of the first column of the block.
        """
        if self._kernel.name == "rbf":  # see `block`
            here = np.flatnonzero((first <= rows) & (rows < first + values.shape[1]))
            values[here, rows[here] - first] = 1


class _RowStore:
    """Cache of matrix rows by index; the least recently used rows are replaced first."""

    def __init__(self, n: int, most: int, dtype: np.dtype | type):
        self.most = most
        # the operating system allocates memory only for rows that have been written
        self.values: NDArray = np.empty((most, n), dtype)
        self._slot_of = np.full(n, -1)
        self._row_of, self._asked_at = np.full(most, -1), np.zeros(most, dtype=int)
        self._time = 0

    def find(self, rows: NDArray) -> NDArray:
        """Return the index of each row in `values`, or -1 if the row is not stored.

        The rows that are found are marked as most recently used.
        """
        self._time += 1
        slots = self._slot_of[rows]
        self._asked_at[slots[slots >= 0]] = self._time
        return slots

    def put(self, rows: NDArray) -> NDArray:
        """Return indices in `values` for new rows; if not all rows fit, only for the first rows.

        Rows found by the last call of `find`, and rows stored since this call, are not replaced.
        """
        room = np.flatnonzero(self._asked_at < self._time)
        oldest = room[np.argsort(self._asked_at[room], kind="stable")[: len(rows)]]
        rows = rows[: len(oldest)]
        gone = self._row_of[oldest]
        self._slot_of[gone[gone >= 0]] = -1
        self._slot_of[rows], self._row_of[oldest] = oldest, rows
        self._asked_at[oldest] = self._time
        return oldest


def _accumulate_numpy(values, rows, coefficients, out):
    """Do the same without Numba."""
    out += coefficients @ values[rows]


@compiled(_accumulate_numpy)
def accumulate(values, rows, coefficients, out):
    """Add a linear combination of matrix rows to `out` in float64, four rows at a time."""
    whole = rows.shape[0] // 4 * 4
    for s in range(0, whole, 4):
        a, b, c, d = values[rows[s]], values[rows[s + 1]], values[rows[s + 2]], values[rows[s + 3]]
        i, j = coefficients[s], coefficients[s + 1]
        k, m = coefficients[s + 2], coefficients[s + 3]
        for p in range(out.shape[0]):
            out[p] += i * a[p] + j * b[p] + (k * c[p] + m * d[p])
    for s in range(whole, rows.shape[0]):
        row, coefficient = values[rows[s]], coefficients[s]
        for p in range(out.shape[0]):
            out[p] += coefficient * row[p]
