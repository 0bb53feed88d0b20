"""The linear programs of the max-margin ratio machine.

    min over u, b, xi  c'u + sum_i cost_i xi_i  subject to  A u + y b + xi >= 1, xi >= 0  (28), (30)
    max over lam       sum_i lam_i              subject to  0 <= lam <= cost, y'lam = 0, A'lam <= c

The kernel machine (30) has ``A = diag(y) K diag(y)``, ``u = (alpha, beta) >= 0`` and
``sum(u) <= limit`` with the multiplier nu: the dual objective is ``sum(lam) - limit * nu``, and
``A'lam - nu <= c``, so any lam with ``0 <= lam <= cost`` and ``y'lam = 0`` gives a lower bound. The
linear machine (28) has ``A = diag(y) Z`` with standardised features Z, and free u = w, so that
``A'lam = c``.

With the sums s_q of the n_q rows of A in class q, ``c = s_+/n_+ + s_-/n_-``, so ``c'u`` is the
difference of the class means of the decision values. If every cost_i is at least 1/n_class,
``lam_i = 1/n_class`` (``weight_i/n_class``) is feasible, and the program bounded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from scipy.linalg.lapack import dpstrf

from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.rows import MappedRows, Rows, moments

#: Default upper limit on the sum of the coefficients. Rounding errors are then 1e-9 in decision
#: values and 1e-10 in relative bounds, far below the tolerance. From 64 times the default on, some
#: programs cannot be solved to a gap of 1e-6 in double precision.
COEFFICIENT_LIMIT = 2.0**20

#: From LEAST_ROWS rows on, (28) is first solved by an interior-point method. Then, and for sparse
#: features, the standardised features are a linear operator instead of an array.
LEAST_ROWS = 200

#: A principal component is used if its standard deviation exceeds LEAST_SPREAD times the largest
#: standard deviation. If principal components with tiny standard deviations were used, decision
#: values would have too few correct digits for a certificate.
LEAST_SPREAD = 1e-8

#: A feature is considered constant if its range is at most ROUNDING times its largest magnitude.
ROUNDING = 16 * np.finfo(float).eps

#: Size in bytes of the blocks in which a Gram matrix is converted to float64.
CHUNK_BYTES = 32 * 2**20

#: Limits on a low-rank factor of the Gram matrix: rank relative to the number of rows, rank, and
#: number of entries. Above, iterations take as long as with the dense matrix.
MOST_RANK_SHARE, MOST_RANK, MOST_NUMBERS = 0.5, 2000, 3e7


class Program(ABC):
    """Labels, slack penalties and class sums of a linear program; a subclass provides the matrix A.

    `row_weights` are the sample weights. Of equal rows of a class, the first has the sum of their
    penalties, and the others zero; of equal columns of a kernel program, `columns`, the indices
    that solvers use, has only one. `class_sums`, shape (2, n_columns), are the weighted sums of the
    negative and of the positive rows of A. `limit` is the upper limit on ``sum |u_k|``.
    """

    #: True if the coefficients u are nonnegative, False if they are free.
    nonnegative: ClassVar[bool]

    def __init__(
        self, y: NDArray, cost: NDArray, class_sums: NDArray, limit: float, weights: NDArray
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
        """Indices of the rows with positive slack penalty, per class (negative, positive)."""
        used = self.cost > 0
        return np.flatnonzero(used & (self.y < 0)), np.flatnonzero(used & (self.y > 0))

    @cached_property
    def rows(self) -> NDArray:
        """Indices of the rows with positive slack penalty."""
        return np.flatnonzero(self.cost > 0)

    @cached_property
    def class_cost(self) -> NDArray:
        """Sums of the slack penalties over the negative class and over the positive class."""
        return np.array([self.cost[rows].sum() for rows in self.class_rows])

    @cached_property
    def class_sizes(self) -> NDArray:
        """Sums of the sample weights over the negative class and over the positive class."""
        return np.array([self.row_weights[self.y < 0].sum(), self.row_weights[self.y > 0].sum()])

    @property
    def class_shares(self) -> NDArray:
        """Sample weight of each row divided by the sum of the sample weights of its class."""
        return self.row_weights / self.class_sizes[(self.y > 0).astype(int)]

    @cached_property
    def c(self) -> NDArray:
        """Coefficients c: ``c'u`` is the difference of the class means of the decision values."""
        return (self.class_sums / self.class_sizes[:, None]).sum(axis=0)

    @property
    def surely_bounded(self) -> bool:
        """Whether the slack penalties of each class sum to at least 1, so that the program is
        bounded.
        """
        return bool(np.all(self.class_cost >= 1 - 1e-12))


class KernelProgram(Program):
    """Kernel program (30) for a Gram matrix that is stored or computed in blocks.

    The Gram matrix is divided by `scale`, the absolute value of its mean diagonal entry. Therefore
    tolerances do not depend on the magnitude of the kernel values. The method `coefficients`
    converts u to coefficients of the original Gram matrix.
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
        # the mean diagonal entry of a precomputed matrix may be negative
        self.scale = abs(mean) or 1.0
        weights = np.ones(len(y)) if weights is None else weights
        sums = [y * self._product(np.where(y == sign, sign * weights, 0.0)) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, np.array(sums), limit, weights)
        self.columns = self.rows

    def kernel_values(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a submatrix of the Gram matrix as a float64 array, which may be overwritten."""
        if isinstance(self.gram, KernelMatrix):
            return self.gram.block(rows, columns)
        return self.gram[np.ix_(rows, columns)].astype(np.float64, copy=False)

    @cached_property
    def factor(self) -> NDArray | None:
        """Low-rank factor F of the scaled Gram matrix ``K / scale = F F'``, shape (n_rows, rank).

        `factor` is None if the Gram matrix has a large rank or is indefinite.
        """
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
        """Return the product A u, reading only the rows k of the Gram matrix with u_k != 0."""
        return self.y * self._product(self.y * u)

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam, which is A lam since A is symmetric."""
        return self.forward(lam)

    def coefficients(self, u: NDArray) -> NDArray:
        """Return alpha for the positive training rows, and -beta for the negative training rows."""
        return self.y * u / self.scale

    def _product(self, v: NDArray) -> NDArray:
        """Return the product of the scaled Gram matrix and v."""
        if isinstance(self.gram, KernelMatrix):
            return self.gram.product(v) / self.scale
        out, support = np.zeros(len(v)), np.flatnonzero(v)
        step = max(1, CHUNK_BYTES // (8 * len(v)))
        for start in range(0, len(support), step):
            part = support[start : start + step]
            out += v[part] @ self.gram[part].astype(np.float64, copy=False)
        return out / self.scale


class LinearProgram(Program):
    """Linear program (28) with standardised features.

    The linear machine is affine invariant, so that standardisation does not change the classifier.
    `Z`, shape (n_samples, n_features), contains the standardised features as an array or a linear
    operator. `centre` and `spread` are the mean and the standard deviation of each feature.

    Without more rows than features, many w have the same decision values on the rows. The w of
    least norm is a combination of the centred rows; their principal components, of which `basis`
    has the directions, then replace the features. If standard deviations of features or components
    differ by more than the factor 1 / LEAST_SPREAD, the features are kept.
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
        self.basis: NDArray | None = None
        self.centre, self.spread = _centre_and_spread(X)
        if X.shape[0] <= X.shape[1] and _comparable(self.spread[self.spread > 0]):
            rows = MappedRows(X, self.centre)[:]
            basis, spread = principal_directions(rows, max(X.shape) * np.finfo(float).eps)
            # without components of small standard deviation, the optimal value might be larger
            if _comparable(spread):
                self.origin, self.basis, X = self.centre, basis, rows @ basis
                self.centre, self.spread = _centre_and_spread(X)
        varied = self.spread > 0
        self.scale = np.where(varied, self.spread, 1.0)
        self.Z: Rows
        if isinstance(X, np.ndarray) and len(y) < LEAST_ROWS:
            self.Z = (X - self.centre) / self.scale * varied
        else:
            self.Z = MappedRows(X, self.centre, np.diag(varied / self.scale))
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
        """Return the weights w and the intercept b for the original features."""
        w = u / self.scale
        b -= float(w @ self.centre)
        if self.basis is None:
            return w, b
        w = self.basis @ w
        return w, b - float(w @ self.origin)


def _centre_and_spread(X: NDArray) -> tuple[NDArray, NDArray]:
    """Return the mean and the standard deviation of each feature; 0 for a constant feature."""
    centre, spread = moments(X)
    ends = [X.min(axis=0), X.max(axis=0)]
    low, high = ends if isinstance(X, np.ndarray) else [end.toarray().ravel() for end in ends]
    # the standard deviation of a constant feature is a rounding error of its mean
    spread[high - low <= ROUNDING * np.maximum(-low, high)] = 0.0
    return centre, spread


def _comparable(spread: NDArray) -> bool:
    """Return whether no standard deviation is tiny relative to the largest."""
    return bool(spread.min(initial=np.inf) > LEAST_SPREAD * spread.max(initial=0.0))


def principal_directions(rows: NDArray, least: float = LEAST_SPREAD) -> tuple[NDArray, NDArray]:
    """Return the directions of the principal components of centred rows, shape (d, k), and the
    standard deviations of the components, if they exceed `least` times the largest.
    """
    basis: NDArray | None = None
    if len(rows) < rows.shape[1]:
        basis, triangle = qr(rows.T, mode="economic")
        triangle = triangle.T
    else:
        [triangle] = qr(rows, mode="r")
    _, spread, directions = svd(triangle, full_matrices=False)
    used = spread > least * spread.max(initial=0.0)
    directions, spread = directions[used].T, spread[used] / np.sqrt(len(rows))
    return directions if basis is None else basis @ directions, spread


def without_repeats(X: NDArray, y: NDArray, cost: NDArray) -> NDArray:
    """Return the slack penalties after equal rows of a class are merged.

    The first of several equal rows has the sum of their slack penalties, and the other equal rows
    have penalty zero. Solvers omit the rows with penalty zero, since equal rows of A would make a
    vertex degenerate.
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


#: A row is near the margin if its margin y f(x) is below NEAR_MARGIN.
NEAR_MARGIN = 1.05


@dataclass(frozen=True)
class Guess:
    """Warm start of a kernel program: coefficients u, shape (n_columns,), and margins, (n_rows,).

    The warm start is the solution of an MMRM with another C, or of an SVM with the same slack
    penalties. The coefficients u are nonnegative, and need to be accurate only up to a common
    factor.
    """

    u: NDArray
    margins: NDArray

    def near_rows(self, program: Program) -> NDArray:
        """Return the rows with margins below NEAR_MARGIN or with positive coefficients."""
        rows = program.rows
        return rows[(self.margins[rows] < NEAR_MARGIN) | (self.u[rows] > 0)]


#: The pivoted Cholesky factorization ends if no diagonal entry of ``K - F F'`` exceeds REMAINDER
#: times the largest of K: smaller entries are rounding errors.
REMAINDER = 1e-14

#: Maximum entry of ``K - F F'`` in a sample, relative to the largest diagonal entry of K. Entries
#: exceed it if a precomputed K is indefinite.
MOST_DIFFERENCE = 1e-12


def low_rank_factor(
    diagonal: NDArray, block: Callable[[NDArray, NDArray], NDArray], most: int
) -> NDArray | None:
    """Return a factor F with ``K = F F'`` up to rounding errors.

    Return None if the rank of K exceeds `most`, or if K is indefinite. `diagonal` is the diagonal
    of K, and is overwritten. `block` returns submatrices of K; it is called for the pivot columns,
    and for a sample that tests the rank of K and the accuracy of F.
    """
    n, largest = len(diagonal), float(diagonal.max())
    if most < 1 or largest <= 0:
        return None
    every, some = np.arange(n), np.linspace(0, n - 1, min(n, most + most // 4)).astype(int)
    # dpstrf returns the rank of the sampled submatrix, or a smaller number for an indefinite
    # submatrix
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
