"""The linear program of the max-margin ratio machine.

    min_{u,b,xi}  c'u + sum_i cost_i xi_i   s.t.  A u + y b + xi >= 1,  xi >= 0      (28), (30)
    max_lam       sum_i lam_i               s.t.  0 <= lam <= cost,  y'lam = 0,  A'lam <= c

Kernel machine (30): A = diag(y) K diag(y) and u = (alpha, beta) >= 0, whose sum has a limit.
The multiplier nu of ``sum(u) <= limit`` makes the dual ``max sum(lam) - limit nu`` with
``A'lam - nu <= c``, so that every lam proves a bound. Linear machine (28): A = diag(y) Z with the
standardised data Z and u = w free, so that A'lam = c. In both, c is the
difference of the class means of the decision: with s_q the sum of the rows of class q in A,
c = s_+/n_+ + s_-/n_-. Hence lam_i = 1/n_class is dual feasible as soon as every cost is at least
that: the program is then bounded.

With sample weights s_q and n_q are weighted sums and within a class costs are proportional to
weights; lam_i = weight_i/n_class replaces 1/n_class.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.rows import MappedRows, Rows, moments

#: Default limit of the sum of the coefficients, about a million. Decisions then have an error of
#: 1e-9 and bounds a relative error of 1e-10, far below the tolerance. From 64 times this limit on
#: double precision fails to solve some programs to 1e-6.
COEFFICIENT_LIMIT = 2.0**20

#: Rows from which a linear program is solved by an interior point and its standardised rows are a
#: linear operator.
LEAST_ROWS = 200

#: Size of the blocks of a Gram matrix that are converted to float64.
CHUNK_BYTES = 32 * 2**20

#: Largest rank of a low-rank factor, relative to the rows and absolute, and its largest size: an
#: iteration with more is no faster than with the dense matrix.
MOST_RANK_SHARE, MOST_RANK, MOST_NUMBERS = 0.5, 2000, 3e7


class Program(ABC):
    """Labels, costs and class sums of a program; a subclass provides the matrix A.

    `row_weights` are the sample weights. A row that repeats another has cost zero: the first of
    them carries the costs of all. `columns` are the columns in use, one of each set of equal ones;
    `class_sums`, shape (2, n_columns), are s_- and s_+; `limit` is the largest sum of ``|u|``.
    """

    #: Whether u >= 0; else u is free.
    nonnegative: ClassVar[bool]

    def __init__(
        self,
        y: NDArray,
        cost: NDArray,
        n_columns: int,
        class_sums: NDArray,
        limit: float,
        weights: NDArray,
    ) -> None:
        self.limit = limit
        self.row_weights = weights
        self.y = y
        self.cost = cost
        self.n_columns = n_columns
        self.columns = np.arange(n_columns)
        self.class_sums = class_sums

    @abstractmethod
    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of A in float64, shape (len(rows), len(columns))."""

    @abstractmethod
    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""

    @abstractmethod
    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam."""

    @cached_property
    def class_rows(self) -> tuple[NDArray, NDArray]:
        """Rows with a cost, of the negative and of the positive class."""
        used = self.cost > 0
        return np.flatnonzero(used & (self.y < 0)), np.flatnonzero(used & (self.y > 0))

    @cached_property
    def rows(self) -> NDArray:
        """Rows with a cost."""
        return np.flatnonzero(self.cost > 0)

    @cached_property
    def class_cost(self) -> NDArray:
        """Sum of the costs per class (negative, positive)."""
        return np.array([self.cost[rows].sum() for rows in self.class_rows])

    @cached_property
    def class_sizes(self) -> NDArray:
        """Sum of the weights per class (negative, positive)."""
        return np.array([self.row_weights[self.y < 0].sum(), self.row_weights[self.y > 0].sum()])

    @property
    def class_shares(self) -> NDArray:
        """Weight of each row relative to its class: the multipliers 1/n_class."""
        return self.row_weights / self.class_sizes[(self.y > 0).astype(int)]

    @cached_property
    def c(self) -> NDArray:
        """Cost of u: the difference of the class means of the decision."""
        return (self.class_sums / self.class_sizes[:, None]).sum(axis=0)

    @property
    def surely_bounded(self) -> bool:
        """Whether all costs are at least 1/n_class, so that lam_i = 1/n_class is feasible."""
        return bool(np.all(self.class_cost >= 1 - 1e-12))


class KernelProgram(Program):
    """Program (30) of a Gram matrix, stored in float32 or float64 or computed in blocks.

    The Gram matrix is divided by `scale`, the magnitude of the mean of its diagonal, so that
    tolerances mean the same for every kernel; `coefficients` undoes that.
    """

    nonnegative = True

    def __init__(
        self,
        gram: NDArray | KernelMatrix,
        y: NDArray,
        cost: NDArray,
        limit: float = COEFFICIENT_LIMIT,
        weights: NDArray | None = None,
    ) -> None:
        self.gram = gram
        mean = float(np.average(gram.diagonal().astype(np.float64), weights=weights))
        self.scale = abs(mean) or 1.0  # negative with some given matrices
        weights = np.ones(len(y)) if weights is None else weights
        sums = [y * self._product(np.where(y == sign, sign * weights, 0.0)) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, len(y), np.array(sums), limit, weights)
        self.columns = self.rows

    def kernel_values(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of the Gram matrix in float64, which may be overwritten."""
        if isinstance(self.gram, KernelMatrix):
            return self.gram.block(rows, columns)
        return self.gram[np.ix_(rows, columns)].astype(np.float64, copy=False)

    @cached_property
    def factor(self) -> NDArray | None:
        """F with ``K / scale = F F'``, shape (n_rows, rank), if the numerical rank is low."""

        def values(rows: NDArray, columns: NDArray) -> NDArray:
            return self.kernel_values(rows, columns) / self.scale

        n = len(self.y)
        most = int(min(MOST_RANK_SHARE * n, MOST_RANK, MOST_NUMBERS / n))
        return low_rank_factor(self.gram.diagonal() / self.scale, values, most)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of A in float64, shape (len(rows), len(columns))."""
        out = self.kernel_values(rows, columns)
        out *= self.y[columns] / self.scale
        out *= self.y[rows][:, None]
        return out

    def forward(self, u: NDArray) -> NDArray:
        """Return A u; only rows of the Gram matrix with a nonzero u are read."""
        return self.y * self._product(self.y * u)

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; A is symmetric."""
        return self.forward(lam)

    def coefficients(self, u: NDArray) -> NDArray:
        """Return the expansion over the training rows: alpha for positives, -beta for negatives."""
        return self.y * u / self.scale

    def _product(self, v: NDArray) -> NDArray:
        """Return K v / scale."""
        if isinstance(self.gram, KernelMatrix):
            return self.gram.product(v) / self.scale
        out, support = np.zeros(len(v)), np.flatnonzero(v)
        step = max(1, CHUNK_BYTES // (8 * len(v)))
        for start in range(0, len(support), step):
            part = support[start : start + step]
            out += v[part] @ self.gram[part].astype(np.float64, copy=False)
        return out / self.scale


class LinearProgram(Program):
    """Program (28) of standardised features; the machine is affine invariant.

    `Z`, shape (n_samples, n_features), are the standardised rows, an array or a linear operator;
    `centre` and `spread` are the mean and the standard deviation of each feature.
    """

    nonnegative = False

    def __init__(
        self,
        X: NDArray,
        y: NDArray,
        cost: NDArray,
        limit: float = COEFFICIENT_LIMIT,
        weights: NDArray | None = None,
    ) -> None:
        weights = np.ones(len(y)) if weights is None else weights
        few = isinstance(X, np.ndarray) and len(y) < LEAST_ROWS
        self.centre, self.spread = moments(X)
        self.scale = np.where(self.spread > 0, self.spread, 1.0)
        self.Z: Rows
        if few:
            self.Z = (X - self.centre) / self.scale
            signed = self.Z * (y * weights)[:, None]
            sums = [signed[y == sign].sum(axis=0) for sign in (-1.0, 1.0)]
        else:
            self.Z = MappedRows(X, self.centre, np.diag(1 / self.scale))
            sums = [self.Z.T @ np.where(y == sign, sign * weights, 0.0) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, X.shape[1], np.array(sums), limit, weights)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of A, shape (len(rows), len(columns))."""
        return self.Z[rows][:, columns] * self.y[rows][:, None]

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        return self.y * (self.Z @ u)

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam."""
        return self.Z.T @ (self.y * lam)

    def weights(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return w and b of the original features."""
        w = u / self.scale
        return w, b - float(w @ self.centre)


def without_repeats(X: NDArray, y: NDArray, cost: NDArray) -> NDArray:
    """Move the costs of equal samples of a class to the first of them.

    Their rows and columns are equal, which would make the vertex degenerate.
    """
    keys = np.column_stack([X, y]) if isinstance(X, np.ndarray) else _sparse_keys(X, y)
    _, first, member = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.zeros_like(cost)
    np.add.at(merged, first[member.ravel()], cost)
    return merged


def _sparse_keys(X: Any, y: NDArray) -> NDArray:
    """Return a number for each sparse row and its sign; equal rows have equal numbers."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    numbers: dict[tuple, int] = {}
    ends = zip(X.indptr, X.indptr[1:], y, strict=False)
    rows = ((X.indices[a:e].tobytes(), X.data[a:e].tobytes(), sign) for a, e, sign in ends)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows])


#: Rows with a smaller margin are near it.
NEAR_MARGIN = 1.05


@dataclass(frozen=True)
class Guess:
    """Coefficients, shape (n_columns,), and margins y f(x), shape (n_rows,), of a similar machine.

    The coefficients are nonnegative; only their ratios matter.
    """

    u: NDArray
    margins: NDArray

    def near_rows(self, program: Program) -> NDArray:
        """Return the rows near the neighbour's margin or with a coefficient."""
        rows = program.rows
        return rows[(self.margins[rows] < NEAR_MARGIN) | (self.u[rows] > 0)]


#: Largest diagonal entry of the residual of a factor, relative to the Gram matrix: the size of the
#: kernel's rounding errors, which further columns would multiply.
REMAINDER = 1e-14

#: Largest error of a factor in a sample of the kernel values, relative to the largest diagonal
#: entry: a precomputed matrix may be indefinite.
MOST_DIFFERENCE = 1e-12


def low_rank_factor(
    diagonal: NDArray, block: Callable[[NDArray, NDArray], NDArray], most: int
) -> NDArray | None:
    """Return F with ``K = F F'`` to rounding, None if the rank of K is above `most`.

    `diagonal` of K is overwritten; `block` returns K at given rows and columns. Only the columns of
    the pivots are computed.
    """
    n, largest = len(diagonal), float(diagonal.max())
    if most < 1 or largest <= 0:
        return None
    every, some = np.arange(n), np.linspace(0, n - 1, min(n, most + most // 4)).astype(int)
    if _rank(block(some, some), REMAINDER * largest) > most:
        return None
    factor = np.empty((most, n))
    for k in range(most):
        pivot = int(diagonal.argmax())
        if diagonal[pivot] <= REMAINDER * largest:
            found = factor[:k].T
            left = block(some, some) - found[some] @ found[some].T
            return found if np.abs(left).max(initial=0) <= MOST_DIFFERENCE * largest else None
        column = block(every, every[[pivot]])[:, 0]
        column -= factor[:k, pivot] @ factor[:k]
        factor[k] = column / np.sqrt(diagonal[pivot])
        diagonal -= factor[k] ** 2
        diagonal[pivot] = 0.0
    return None


def _rank(matrix: NDArray, remainder: float) -> int:
    """Return the numerical rank of a positive semidefinite matrix; less if it is indefinite."""
    return int(dpstrf(matrix.T, tol=remainder, lower=1, overwrite_a=1)[2])
