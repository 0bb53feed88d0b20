"""The kernel matrix of a training, of which no more is held than a bound on memory allows.

Values are computed in blocks. Whole rows that are asked for again are stored: K is symmetric, so a
row of K is what the decisions at all training rows need of one whose coefficient has changed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mmbench.kernels import Kernel, row_squares
from mmbench.kernels.rows import KernelRows

#: Bytes of a block of values that are computed together, about what the last cache holds, and its
#: least number of rows: a product with fewer is slower.
BLOCK_BYTES, LEAST_BLOCK_ROWS = 2**22, 64

#: Shares of the memory for stored rows, for one part of K, and for a block. The rest is for the
#: copies of a part that a solver makes.
STORED_SHARE, PART_SHARE, BLOCK_SHARE = 0.6, 0.15, 0.05

#: Rows of a part, at least: with fewer, solutions come slowly, and memory for them there always is.
LEAST_PART_ROWS = 500


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
        n = len(self)
        most = self._cache_bytes * STORED_SHARE / (np.dtype(dtype).itemsize * n)
        self._store = _RowStore(n, int(min(most, n)), dtype)
        self._memory: NDArray = np.empty(0, dtype)

    def __len__(self) -> int:
        return self._X.shape[0]  # a sparse array has no length

    @property
    def dtype(self) -> np.dtype:
        """The type of parts and columns."""
        return self._rows.X.dtype

    @property
    def most_part_rows(self) -> int:
        """The rows of the largest part that there is memory for."""
        most = self._cache_bytes * PART_SHARE / self.dtype.itemsize
        return len(self) if math.isinf(most) else max(LEAST_PART_ROWS, math.isqrt(int(most)))

    def to_double(self) -> None:
        """Go on in float64, where float32 has met its rounding errors."""
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
        n = len(rows)
        if len(self._memory) < n**2:
            self._memory = np.empty(n**2, self.dtype)
        out = self._memory[: n**2].reshape(n, n)
        slots = self._store.slots(rows)
        stored, missing = slots >= 0, np.flatnonzero(slots < 0)
        if 2 * len(missing) > n:
            some = self._rows.take(rows)
            return self._with_diagonal(some.values(some, out), np.arange(n))
        _copy_entries(self._store.values, slots[stored], rows, np.flatnonzero(stored), out)
        values = self._rows.take(rows[missing]).values(self._rows.take(rows))
        out[missing], out[:, missing] = values, values.T
        return self._with_diagonal(out, missing, missing)

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
        step = min(self._block_rows(len(self), self.dtype.itemsize), len(rows))
        memory = np.empty((step, len(self)), self.dtype)
        for start in range(0, len(rows), max(1, step)):
            members = rows[start : start + step]
            values = self._rows.take(members).values(self._rows, memory[: len(members)])
            block = self._with_diagonal(values, members)
            some = np.arange(len(members))
            accumulate(block, some, coefficients[start : start + step], out)
            self._store.put(members, block)

    def product(self, u: NDArray) -> NDArray:
        """Return ``K u`` of shape (n_samples,), from float64 values."""
        support, out = np.flatnonzero(u), np.zeros(len(u))
        if not len(support):
            return out
        centre = self._rows.centre
        expansion = KernelRows(self._kernel, self._X[support], centre)
        step = self._block_rows(len(support), 8)
        memory = np.empty((step, len(support)))
        for start in range(0, len(u), step):
            some = KernelRows(self._kernel, self._X[start : start + step], centre)
            here = np.flatnonzero((start <= support) & (support < start + step))
            values = some.values(expansion, memory[: some.X.shape[0]])
            self._with_diagonal(values, here, support[here] - start)
            out[start : start + step] = values @ u[support]
        return out

    def _with_diagonal(
        self, values: NDArray, columns: NDArray, rows: NDArray | None = None
    ) -> NDArray:
        """Set ``k(x, x)`` in a block: with a large gamma a rounded distance of 0 counts."""
        if self._kernel.name == "rbf":
            values[np.arange(len(columns)) if rows is None else rows, columns] = 1
        return values

    def _block_rows(self, n_columns: int, itemsize: int) -> int:
        row_bytes = n_columns * itemsize
        best = max(LEAST_BLOCK_ROWS, BLOCK_BYTES // row_bytes)
        return int(max(1, min(best, self._cache_bytes * BLOCK_SHARE // row_bytes)))


class _RowStore:
    """Rows of a matrix under their numbers; those that were not asked for longest leave first."""

    def __init__(self, n: int, most: int, dtype: type):
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

    def put(self, rows: NDArray, values: NDArray) -> None:
        """Store rows, as many as there is room for without those that were asked for just now.

        More rows than fit, asked for in turn, would otherwise drive one another out.
        """
        room = np.flatnonzero(self._asked_at < self._time)
        oldest = room[np.argsort(self._asked_at[room], kind="stable")[: len(rows)]]
        rows = rows[: len(oldest)]
        gone = self._row_of[oldest]
        self._slot_of[gone[gone >= 0]] = -1
        self._slot_of[rows], self._row_of[oldest] = oldest, rows
        self._asked_at[oldest] = self._time
        self.values[oldest] = values[: len(oldest)]


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
