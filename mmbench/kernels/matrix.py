"""The kernel matrix of a training, of which no more is held than a bound on memory allows.

Values are computed in blocks. Whole rows that are asked for again are stored: K is symmetric, so a
row of K is what the decisions at all training rows need of one whose coefficient has changed.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mmbench.kernels import Kernel, row_squares
from mmbench.kernels.rows import KernelRows

#: Bytes of a block of values that are computed together: the last cache holds as many as the most.
#: With fewer than the least, or with fewer rows, products are slower.
LEAST_BLOCK_BYTES, MOST_BLOCK_BYTES, BLOCK_ROWS = 2**18, 2**22, 256

#: Shares of the memory for stored rows, for one part of K, and for a block, at most.
STORED_SHARE, PART_SHARE, BLOCK_SHARE = 0.6, 0.55, 0.05

#: What a solver copies of a part. Stored rows give way to a part and its copy.
COPIED_SHARE = 0.65

#: Memory for a part, at least, 866 rows in float32: 1400 support vectors come seven times as fast
#: by parts of 1000 rows as of 500. What copies of it take beside it there always is memory for.
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
        """Return the rows for which there is memory beside a part of some rows and its copy."""
        size, memory = self.dtype.itemsize, self._cache_bytes
        left = (1 - BLOCK_SHARE) * memory - (1 + COPIED_SHARE) * size * n_part**2
        return int(np.clip(min(STORED_SHARE * memory, left) / (size * len(self)), 0, len(self)))

    def _most_beside(self, n_stored: int) -> int:
        """Return the rows of a part for which, and for its copy, stored rows leave memory."""
        size = self.dtype.itemsize
        left = (1 - BLOCK_SHARE) * self._cache_bytes - n_stored * size * len(self)
        return int(min(math.sqrt(max(0.0, left) / ((1 + COPIED_SHARE) * size)), len(self)))

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
