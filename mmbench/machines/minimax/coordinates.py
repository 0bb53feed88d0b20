"""Coordinates of the training rows in which both class covariances are diagonal.

A class spread then takes O(k) operations, and every machine is linear. They are computed once per
training set, kernel and ridge, for all values of C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve, cholesky, eigh, lapack, qr, solve_triangular

from mmbench.allowance import check_time
from mmbench.kernels import Kernel
from mmbench.machines.base.estimator import row_weights
from mmbench.machines.base.problem import BinaryModel, BinaryProblem
from mmbench.solvers.rows import MappedRows, Rows, blocks

#: If the kernel is linear and there are at least LEAST_MAPPED_ROWS rows, transformed rows are not
#: stored. Instead, each product with the transformed rows is computed from the features and a
#: linear map.
LEAST_MAPPED_ROWS = 5000

#: Without a ridge, variances below NO_VARIANCE times the largest variance are treated as zero.
NO_VARIANCE = 1e-12

#: A class is treated as copies of one row if its variance is at most NO_SPREAD times the squared
#: distance of its mean from the mean of all rows. Such a variance consists of rounding errors.
NO_SPREAD = 1e-26

#: Class means are treated as equal if their distance is at most EQUAL_MEANS in coordinates in which
#: the class covariances sum to the identity matrix.
EQUAL_MEANS = 1e-9


@dataclass(frozen=True)
class DiagonalData:
    """Training rows in coordinates in which the covariances of both classes are diagonal."""

    #: Coordinates of the training rows, with mean zero, shape (n, k).
    rows: Rows
    #: Labels -1 or +1, shape (n,).
    y: NDArray
    #: Means of the positive and the negative class, each of shape (k,).
    mean_x: NDArray
    mean_y: NDArray
    #: Variances of the positive and the negative class, including the ridge, each of shape (k,).
    var_x: NDArray
    var_y: NDArray
    #: True if the rows have a single coordinate, in which both classes have zero variance and
    #: different means. The ratio of margin to class spreads is infinite along this coordinate.
    free: bool = False
    #: Row weights, shape (n,); None for unit weights.
    weights: NDArray | None = None
    #: Labels of the negative and the positive class in the training data; empty if unknown.
    classes: tuple = ()

    @property
    def delta(self) -> NDArray:
        """Mean of the positive class minus mean of the negative class, shape (k,)."""
        return self.mean_x - self.mean_y

    @property
    def equal_means(self) -> bool:
        """Whether the class means are equal up to rounding errors."""
        return float(np.linalg.norm(self.delta)) <= EQUAL_MEANS

    @property
    def totals(self) -> tuple[float, float]:
        """Sums of the row weights of the positive class and of the negative class."""
        positive, negative = _sides(self.y, self.weights)
        return float(positive.sum()), float(negative.sum())

    @property
    def majority(self) -> float:
        """Label of the class with the larger total weight; +1 if the weights are equal."""
        return 1.0 if self.totals[0] >= self.totals[1] else -1.0

    def costs(self, class_weight: Any) -> NDArray | None:
        """Return the row weights multiplied by the class weights; see `row_weights`."""
        rows: Any = self.rows
        known: dict[str, Any] = {"classes": self.classes, "weights": self.weights}
        return row_weights(BinaryProblem(rows, self.y, Kernel("linear"), **known), class_weight)

    def distances(self) -> NDArray:
        """Return the squared Mahalanobis distances of the rows to their class means, shape (n,)."""
        positive = (self.y > 0)[:, None]
        centred = np.asarray(self.rows) - np.where(positive, self.mean_x, self.mean_y)
        variance = np.where(positive, self.var_x, self.var_y)
        # coordinates in which a class does not vary are ignored, since distances there are rounding
        # errors
        variance = np.where(variance > NO_VARIANCE * variance.max(), variance, np.inf)
        return np.einsum("ij,ij->i", centred, centred / variance)

    def with_scatter(self, scatter: str) -> DiagonalData:
        """Multiply the variances of each class by its sum of row weights if `scatter` is "sum"."""
        if scatter == "mean":
            return self
        n_x, n_y = self.totals
        return replace(self, var_x=n_x * self.var_x, var_y=n_y * self.var_y)


def _sides(y: NDArray, weights: NDArray | None) -> tuple[NDArray, NDArray]:
    """Return the row weights of each class, shape (n,), with zeros for the other class."""
    own = 1.0 if weights is None else weights
    return (y > 0) * own, (y < 0) * own


def diagonalise(
    rows: Rows,
    y: NDArray,
    ridge_x: float,
    ridge_y: float,
    carry: NDArray,
    weights: NDArray | None = None,
    total_only: bool = False,
) -> tuple[DiagonalData, NDArray]:
    """Transform rows to coordinates in which both class covariances are diagonal and sum to I.

    With the Cholesky factor L of the class covariances with ridges, ``Sx + Sy = L L'``, the rows F
    are replaced by ``F L^-T``. The new covariances are A and ``I - A``, diagonal in the
    eigenvectors of A.

    The mean of `rows` must be zero. `carry` is transformed like `rows`. With `total_only`, no
    eigenvectors are computed, and I/2 is returned for both covariances. The peak memory is four
    arrays of the size of `rows`, including `rows`.
    """
    sides = _sides(y, weights)

    def data(var_x: NDArray, var_y: NDArray, free: bool = False) -> DiagonalData:
        mean_x, mean_y = (_mean(rows, side) for side in sides)
        return DiagonalData(rows, y, mean_x, mean_y, var_x, var_y, free, weights)

    if not rows.shape[1]:  # a kernel matrix of zeros has a factor without columns
        return data(np.zeros(0), np.zeros(0)), carry
    total = np.zeros((rows.shape[1], rows.shape[1]), order="F")
    for side in sides:
        total = _add_covariance(total, rows, side, 1.0)
    both = ridge_x + ridge_y
    if both == 0:
        change, free = _without_ridge(total, rows, sides)
        rows, carry = _changed(rows, lambda part: part @ change), carry @ change
        if free or not rows.shape[1]:  # if all rows are equal, no columns remain
            none = np.zeros(rows.shape[1])
            return data(none, none, free), carry
    else:
        total[np.diag_indices_from(total)] += both
        check_time(float(rows.shape[0]) * rows.shape[1] ** 2)
        factor = cholesky(total, lower=True, overwrite_a=True, check_finite=False)

        def whitened(part: NDArray) -> NDArray:
            return solve_triangular(factor, part.T, lower=True, check_finite=False).T

        rows, carry = _changed(rows, whitened), whitened(carry)
        del factor
    del total
    if total_only:
        half = np.full(rows.shape[1], 0.5)
        return data(half, half), carry
    # With the class covariances cov_x and cov_y of F L^-T without the ridge, A is cov_x + ridge_x
    # L^-1 L^-T. The product L^-1 L^-T follows from cov_x + cov_y + (ridge_x + ridge_y) L^-1 L^-T =
    # I.
    share = ridge_x / both if both else 0.5
    matrix = np.zeros((rows.shape[1], rows.shape[1]), order="F")
    matrix[np.diag_indices_from(matrix)] = share
    for side, factor in zip(sides, (1.0 - share, -share), strict=True):
        matrix = _add_covariance(matrix, rows, side, factor)
    check_time(4.0 * len(matrix) ** 3 + float(rows.shape[0]) * len(matrix) ** 2)
    values, vectors = eigh(matrix, driver="evr", overwrite_a=True, check_finite=False)
    del matrix
    rows, carry = _changed(rows, lambda part: part @ vectors), carry @ vectors
    values = np.clip(values, 0.0, 1.0)
    if not both:
        # tiny variances become zero, since an error of 1e-14 in a variance is an error of 1e-7 in a
        # spread
        values[values < NO_VARIANCE], values[values > 1.0 - NO_VARIANCE] = 0.0, 1.0
    return data(values, 1.0 - values), carry


def _changed(rows: Rows, change: Callable[[NDArray], NDArray]) -> Rows:
    """Apply a linear map to rows; for `MappedRows`, only the matrix `map` is changed."""
    if isinstance(rows, MappedRows):
        return replace(rows, map=change(np.eye(rows.shape[1]) if rows.map is None else rows.map))
    return change(rows)


def _add_covariance(matrix: NDArray, rows: Rows, side: NDArray, factor: float) -> NDArray:
    """Add `factor` times a class covariance to the lower triangle of `matrix`, in place."""
    mean, factor, members = _mean(rows, side), factor / float(side.sum()), np.flatnonzero(side)
    for own in blocks(len(members), rows.shape[1]):
        check_time(float(len(members) - own.start) * rows.shape[1] ** 2)
        part = rows[members[own]] - mean
        part *= np.sqrt(side[members[own]])[:, None]
        matrix = blas.dsyrk(factor, part.T, beta=1, c=matrix, lower=True, overwrite_c=True)
    return matrix


def _mean(rows: Rows, side: NDArray) -> NDArray:
    """Return the mean of the rows with the row weights `side`, shape (n_columns,)."""
    return (rows.T @ side) / side.sum()


def _without_ridge(
    total: NDArray, rows: Rows, sides: tuple[NDArray, NDArray]
) -> tuple[NDArray, bool]:
    """Return the (d, k) matrix that maps rows to coordinates, and `DiagonalData.free`.

    This function is used if the ridge is zero. If `DiagonalData.free` is false, the class
    covariances in the new coordinates sum to the identity matrix.
    """
    delta = _mean(rows, sides[0]) - _mean(rows, sides[1])
    values, vectors = eigh(total, check_finite=False)
    has = values > max(NO_VARIANCE * values[-1], NO_SPREAD * float(delta @ delta))
    rest = vectors[:, ~has]
    outside = rest @ (rest.T @ delta)
    if outside @ outside > NO_VARIANCE * (values[-1] + delta @ delta):
        # the class means differ along a direction of zero variance in both classes
        return outside[:, None] / np.linalg.norm(outside), True
    return vectors[:, has] / np.sqrt(values[has]), False


class LinearCoordinates:
    """Coordinates for a linear kernel: the centred features, or n coordinates if n < d.

    If the number of features d exceeds the number of rows n, the coordinates belong to an
    orthonormal basis of the space that the centred rows span.
    """

    def __init__(self, problem: BinaryProblem):
        self.y, self.weights = problem.y, problem.weights
        self.origin = problem.X.mean(axis=0)
        n, d = problem.X.shape
        self.rows: Rows
        if d > n:
            self.basis, triangle = qr(
                (problem.X - self.origin).T, mode="economic", check_finite=False
            )
            self.rows = triangle.T
            return
        self.basis = np.eye(d)
        mapped = n >= LEAST_MAPPED_ROWS
        self.rows = MappedRows(problem.X, self.origin) if mapped else problem.X - self.origin

    def diagonal(self, ridge: float, total_only: bool = False) -> DiagonalData:
        """Return the training rows in coordinates with diagonal covariances; see `diagonalise`."""
        amounts = []  # the absolute ridges of both classes, ``ridge tr(Sc)/d``
        for side in (self.y > 0, self.y < 0):
            weights = None if self.weights is None else self.weights[side]
            part = self.rows[side]
            mean = np.average(part, axis=0, weights=weights)
            variance = float(np.average((part - mean) ** 2, axis=0, weights=weights).sum())
            varies = variance > NO_SPREAD * float(mean @ mean)
            amounts.append(ridge * variance / len(self.origin) if varies else 0.0)
        x, y = amounts
        data, self.change = diagonalise(
            self.rows, self.y, x, y, self.basis, self.weights, total_only
        )
        return data

    def models(self, found: Sequence[BinaryModel]) -> list[BinaryModel]:
        """Convert models in the coordinates of the last `diagonal` call to models of features."""
        weights = [self.change @ model.w for model in found]
        return [
            replace(model, intercept=model.intercept - float(self.origin @ w), w=w)
            for model, w in zip(found, weights, strict=True)
        ]


class KernelCoordinates:
    """Coordinates for a nonlinear kernel: a pivoted Cholesky factor F of the Gram matrix K = F F'.

    The factorization stops at the numerical rank of K. A direction w has the kernel coefficients
    ``a = K_pp^-1 (F w)_p`` of the pivot rows p, and zeros elsewhere, so that ``K a = F w``.
    """

    def __init__(self, problem: BinaryProblem):
        self.y, self.weights = problem.y, problem.weights
        gram = problem.copied_gram()
        self.unit = float(np.average(np.diagonal(gram), weights=problem.weights))
        if self.unit < 0:
            raise ValueError("the diagonal of the kernel matrix is negative")
        self.rows, self.pivots = pivoted_cholesky(gram)
        self.origin = self.rows.mean(axis=0)
        self.rows -= self.origin

    def diagonal(self, ridge: float, total_only: bool = False) -> DiagonalData:
        """Return the training rows in coordinates with diagonal covariances; see `diagonalise`."""
        amount = ridge * self.unit
        carry = self.origin[None]
        self.last, carried = diagonalise(
            self.rows, self.y, amount, amount, carry, self.weights, total_only
        )
        self.shift = carried[0]
        return self.last

    def models(self, found: Sequence[BinaryModel]) -> list[BinaryModel]:
        """Convert models in the coordinates of the last `diagonal` call to kernel models."""
        W = np.column_stack([np.asarray(model.w) for model in found])
        shifts = self.shift @ W
        values = (self.last.rows @ W + shifts)[self.pivots]
        triangle = self.rows[self.pivots]
        triangle += self.origin
        coef = np.zeros((len(found), len(self.y)))
        coef[:, self.pivots] = cho_solve((triangle, True), values, check_finite=False).T
        return [
            replace(model, intercept=model.intercept - float(shift), w=None, coef=a)
            for model, shift, a in zip(found, shifts, coef, strict=True)
        ]


def pivoted_cholesky(gram: NDArray) -> tuple[NDArray, NDArray]:
    """Return F with ``gram = F F'`` up to rounding errors, shape (n, rank), and the pivot indices.

    The rows of F at the pivots form a lower triangular matrix. `gram` must be C-contiguous and is
    overwritten.

    Examples
    --------
    >>> factor, pivots = pivoted_cholesky(np.array([[4.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2, 1, 5]]))
    >>> (factor @ factor.T).round(12)
    array([[4., 2., 2.],
           [2., 1., 1.],
           [2., 1., 5.]])
    >>> pivots
    array([2, 0], dtype=int32)
    """
    # the transpose converts a symmetric matrix to column-major order without a copy
    check_time(len(gram) ** 3 / 4)
    triangle, order, rank, _ = lapack.dpstrf(gram.T, lower=1, overwrite_a=1)
    factor = np.empty((len(gram), rank))
    factor[order - 1] = np.tril(triangle[:, :rank])
    return factor, order[:rank] - 1
