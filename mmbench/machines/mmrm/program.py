"""The linear program of the max-margin ratio machine.

    min_{u,b,xi}  c'u + sum_i cost_i xi_i   s.t.  A u + y b + xi >= 1,  xi >= 0      (28), (30)
    max_lam       sum_i lam_i               s.t.  0 <= lam <= cost,  y'lam = 0,  A'lam <= c

Kernel machine (30): A = diag(y) K diag(y), u = (alpha, beta) >= 0, and ``sum(u) <= limit``. With
the multiplier nu of the limit, the dual is ``max sum(lam) - limit nu`` subject to
``A'lam - nu <= c``. With a large enough nu, every lam gives a lower bound on the optimum.

Linear machine (28): A = diag(y) Z with the standardised data Z, and u = w is free, so that
A'lam = c.

In both machines c'u is the difference of the class means of the decision values: if s_q is the sum
of the rows of class q in A, then c = s_+/n_+ + s_-/n_-. Hence lam_i = 1/n_class is dual feasible,
and the program is bounded, if every cost is at least 1/n_class.

With sample weights, s_q and n_q are weighted sums, the costs within a class are proportional to the
weights, and lam_i = weight_i/n_class replaces 1/n_class.
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

#: Default upper limit on the sum of the coefficients. With this limit the error of decisions is
#: 1e-9 and the relative error of bounds is 1e-10, far below the tolerance. With 64 times this limit
#: or more, some programs cannot be solved to 1e-6 in double precision.
COEFFICIENT_LIMIT = 2.0**20

#: With at least this many rows, a linear program is first solved by the interior-point method, and
#: its standardised rows are not stored, but applied as a linear operator.
LEAST_ROWS = 200

#: Size in bytes of the blocks in which a Gram matrix is converted to float64.
CHUNK_BYTES = 32 * 2**20

#: Maxima for a low-rank factor: rank relative to the number of rows, rank, and number of entries.
#: Iterations with a larger factor take as long as iterations with the dense matrix.
MOST_RANK_SHARE, MOST_RANK, MOST_NUMBERS = 0.5, 2000, 3e7


class Program(ABC):
    """Labels, costs and class sums of a program; a subclass provides the matrix A.

    `row_weights` are the sample weights. Among equal rows of a class, the first row has the sum of
    the costs, and the other rows have cost zero. `columns` contains the indices of the columns in
    use, one for each set of equal columns. `class_sums`, shape (2, n_columns), has the rows s_- and
    s_+. `limit` is the upper limit on the sum of ``|u|``.
    """

    #: True if u >= 0, False if u is free.
    nonnegative: ClassVar[bool]

    def __init__(
        self,
        y: NDArray,
        cost: NDArray,
        class_sums: NDArray,
        limit: float,
        weights: NDArray,
    ) -> None:
        self.limit = limit
        self.row_weights = weights
        self.y = y
        self.cost = cost
        self.n_columns = class_sums.shape[1]
        self.columns = np.arange(self.n_columns)
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
        """Indices of the rows with positive cost in the negative and in the positive class."""
        used = self.cost > 0
        return np.flatnonzero(used & (self.y < 0)), np.flatnonzero(used & (self.y > 0))

    @cached_property
    def rows(self) -> NDArray:
        """Indices of the rows with positive cost."""
        return np.flatnonzero(self.cost > 0)

    @cached_property
    def class_cost(self) -> NDArray:
        """Sum of the costs per class (negative, positive)."""
        return np.array([self.cost[rows].sum() for rows in self.class_rows])

    @cached_property
    def class_sizes(self) -> NDArray:
        """Sum of the sample weights per class (negative, positive)."""
        return np.array([self.row_weights[self.y < 0].sum(), self.row_weights[self.y > 0].sum()])

    @property
    def class_shares(self) -> NDArray:
        """Multipliers 1/n_class: the weight of each row divided by the total of its class."""
        return self.row_weights / self.class_sizes[(self.y > 0).astype(int)]

    @cached_property
    def c(self) -> NDArray:
        """Coefficients c of the objective: c'u is the difference of the class means."""
        return (self.class_sums / self.class_sizes[:, None]).sum(axis=0)

    @property
    def surely_bounded(self) -> bool:
        """Whether lam_i = 1/n_class is dual feasible, since all costs are at least 1/n_class."""
        return bool(np.all(self.class_cost >= 1 - 1e-12))


class KernelProgram(Program):
    """Program (30) for a Gram matrix, stored in float32 or float64 or computed in blocks.

    The Gram matrix is divided by `scale`, the absolute mean of its diagonal, so that tolerances do
    not depend on the magnitude of the kernel. `coefficients` therefore divides u by `scale`.
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
        self.scale = abs(mean) or 1.0  # a precomputed matrix may have a negative mean
        weights = np.ones(len(y)) if weights is None else weights
        sums = [y * self._product(np.where(y == sign, sign * weights, 0.0)) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, np.array(sums), limit, weights)
        self.columns = self.rows

    def kernel_values(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of the Gram matrix in float64; the caller may overwrite it."""
        if isinstance(self.gram, KernelMatrix):
            return self.gram.block(rows, columns)
        return self.gram[np.ix_(rows, columns)].astype(np.float64, copy=False)

    @cached_property
    def factor(self) -> NDArray | None:
        """Factor F with ``K / scale = F F'``, shape (n_rows, rank); None if the rank is large."""
        n = len(self.y)
        most = int(min(MOST_RANK_SHARE * n, MOST_RANK, MOST_NUMBERS / n))
        diagonal = self.gram.diagonal() / self.scale
        return low_rank_factor(
            diagonal, lambda rows, columns: self.kernel_values(rows, columns) / self.scale, most
        )

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of A in float64, shape (len(rows), len(columns))."""
        out = self.kernel_values(rows, columns)
        out *= self.y[columns] / self.scale
        out *= self.y[rows][:, None]
        return out

    def forward(self, u: NDArray) -> NDArray:
        """Return A u; only rows of the Gram matrix with nonzero u_k are read."""
        return self.y * self._product(self.y * u)

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; A is symmetric."""
        return self.forward(lam)

    def coefficients(self, u: NDArray) -> NDArray:
        """Return the coefficients of the training rows, alpha and -beta."""
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
    """Program (28) with standardised features; the machine is affine invariant.

    `Z`, shape (n_samples, n_features), is the matrix of standardised rows, an array or a linear
    operator; `centre` and `spread` are the mean and the standard deviation of each feature.
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
        else:
            self.Z = MappedRows(X, self.centre, np.diag(1 / self.scale))
        sums = [self.Z.T @ np.where(y == sign, sign * weights, 0.0) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, np.array(sums), limit, weights)

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
        """Return w and b in the units of the original features."""
        w = u / self.scale
        return w, b - float(w @ self.centre)


def without_repeats(X: NDArray, y: NDArray, cost: NDArray) -> NDArray:
    """Return costs in which the first of several equal rows of a class has the sum of their costs.

    The other equal rows have cost zero and are not used in the program, since equal rows and
    columns of A would make the vertex degenerate.
    """
    keys = np.column_stack([X, y]) if isinstance(X, np.ndarray) else _sparse_keys(X, y)
    _, first, member = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.zeros_like(cost)
    np.add.at(merged, first[member.ravel()], cost)
    return merged


def _sparse_keys(X: Any, y: NDArray) -> NDArray:
    """Return one number per sparse row; rows with equal entries and labels have equal numbers."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    numbers: dict[tuple, int] = {}
    ends = zip(X.indptr, X.indptr[1:], y, strict=False)
    rows = ((X.indices[a:e].tobytes(), X.data[a:e].tobytes(), sign) for a, e, sign in ends)
    return np.array([numbers.setdefault(row, len(numbers)) for row in rows])


#: A row is near the margin if y f(x) is below this value.
NEAR_MARGIN = 1.05


@dataclass(frozen=True)
class Guess:
    """Warm start: coefficients u, shape (n_columns,), and margins y f(x), shape (n_rows,).

    Both arrays are from an MMRM with another C or from an SVM. The coefficients are nonnegative;
    only their ratios matter.
    """

    u: NDArray
    margins: NDArray

    def near_rows(self, program: Program) -> NDArray:
        """Return the rows near the margin of the warm start or with a positive coefficient."""
        rows = program.rows
        return rows[(self.margins[rows] < NEAR_MARGIN) | (self.u[rows] > 0)]


#: The factorization ends if no diagonal entry of the residual ``K - F F'``, relative to the largest
#: diagonal entry of K, exceeds this value. Smaller residuals are rounding errors of the kernel.
REMAINDER = 1e-14

#: Tolerance of ``K - F F'`` in a sample of rows and columns, relative to the largest diagonal entry
#: of K. An indefinite precomputed matrix exceeds this tolerance.
MOST_DIFFERENCE = 1e-12


def low_rank_factor(
    diagonal: NDArray, block: Callable[[NDArray, NDArray], NDArray], most: int
) -> NDArray | None:
    """Return F with ``K = F F'`` up to rounding errors; None if the rank of K exceeds `most`.

    `diagonal`, the diagonal of K, is overwritten; `block` returns a submatrix of K for given rows
    and columns. Only the pivot columns of K and a sample for the test of F are computed.
    """
    n, largest = len(diagonal), float(diagonal.max())
    if most < 1 or largest <= 0:
        return None
    every, some = np.arange(n), np.linspace(0, n - 1, min(n, most + most // 4)).astype(int)
    # dpstrf returns the rank of the sample, or a smaller number if the sample is indefinite
    if dpstrf(block(some, some).T, tol=REMAINDER * largest, lower=1, overwrite_a=1)[2] > most:
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
