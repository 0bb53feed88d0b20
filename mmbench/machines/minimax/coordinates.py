"""Coordinates of the training rows in which both class covariances are diagonal.

Everything that LDA, MPM, MEMPM and M4 ask of the data are inner products with the training points
and the spreads ``||Sx^{1/2}w||`` and ``||Sy^{1/2}w||``. A change of coordinates that diagonalises
Sx and Sy together makes a spread cost O(k) and turns every machine into one over n rows of k
numbers. It is made once for a training set, a kernel width and a ridge, and serves every C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve, cholesky, eigh, lapack, qr, solve_triangular

from mmbench.machines.base.problem import BinaryModel, BinaryProblem
from mmbench.solvers.rows import MappedRows, Rows, blocks

#: From so many rows on, features are mapped in products; coordinates of a row are not kept.
LEAST_MAPPED_ROWS = 5000

#: Without a ridge, a direction with less than this share of the largest variance has none.
NO_VARIANCE = 1e-12

#: Class means closer than this, in units of the spread between them, are equal.
EQUAL_MEANS = 1e-9


@dataclass(frozen=True)
class DiagonalData:
    """The training rows in coordinates that are uncorrelated within both classes."""

    #: U; their mean is the origin. Shape (n, k).
    rows: Rows
    #: Shape (n,).
    y: NDArray
    #: Means of the positive and the negative class. Shape (k,).
    mean_x: NDArray
    mean_y: NDArray
    #: Variances of the two classes, ridge included. Shape (k,).
    var_x: NDArray
    var_y: NDArray
    #: The one coordinate is a direction along which neither class varies while their means differ:
    #: every machine of this family separates the classes along it with an infinite margin.
    free: bool = False
    #: Of the rows; 1 by default. Shape (n,).
    weights: NDArray | None = None
    #: The negative and the positive class as the user labelled them, where they are known.
    classes: tuple = ()

    @property
    def delta(self) -> NDArray:
        """Difference of the class means."""
        return self.mean_x - self.mean_y

    @property
    def equal_means(self) -> bool:
        """Whether no direction tells the class means apart."""
        return float(np.linalg.norm(self.delta)) <= EQUAL_MEANS

    @property
    def totals(self) -> tuple[float, float]:
        """The weight of the positive and of the negative class."""
        positive, negative = _sides(self.y, self.weights)
        return float(positive.sum()), float(negative.sum())

    @property
    def majority(self) -> float:
        """The sign of the larger class; of equal ones the positive."""
        positive, negative = self.totals
        return 1.0 if positive >= negative else -1.0

    def distances(self) -> NDArray:
        """Return the squared Mahalanobis distance of each row to its class mean."""
        positive = (self.y > 0)[:, None]
        centred = np.asarray(self.rows) - np.where(positive, self.mean_x, self.mean_y)
        variance = np.where(positive, self.var_x, self.var_y)
        return np.einsum("ij,ij->i", centred, centred / np.maximum(variance, 1e-300))

    def with_scatter(self, scatter: str) -> DiagonalData:
        """Return this data with covariances (scatter "mean") or sums of squares ("sum")."""
        if scatter == "mean":
            return self
        n_x, n_y = self.totals
        return replace(self, var_x=n_x * self.var_x, var_y=n_y * self.var_y)


def _sides(y: NDArray, weights: NDArray | None) -> tuple[NDArray, NDArray]:
    """Return the weights of the rows of either class, zero in the other; the positive first."""
    own = 1.0 if weights is None else weights
    return (y > 0) * own, (y < 0) * own


def n_smaller(y: NDArray) -> int:
    """Return the number of rows of the smaller class."""
    n_positive = int((y > 0).sum())
    return min(n_positive, len(y) - n_positive)


def diagonalise(
    rows: Rows,
    y: NDArray,
    ridge_x: float,
    ridge_y: float,
    carry: NDArray,
    weights: NDArray | None = None,
) -> tuple[DiagonalData, NDArray]:
    """Change to coordinates in which both class covariances are diagonal and sum to the identity.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, d)
        Their mean is the origin. Where they are mapped, their map alone changes.
    y : ndarray of shape (n,)
    ridge_x, ridge_y : float
        Added to the variances of the positive and the negative class.
    carry : ndarray of shape (m, d)
        Other vectors to take along.
    weights : ndarray of shape (n,), optional
        Of the rows; 1 by default.

    Returns
    -------
    DiagonalData
    ndarray of shape (m, k)
        `carry` in the new coordinates.

    Notes
    -----
    With ``Sx + Sy = L L'`` the rows ``F L^-T`` have covariances A and I - A, and the eigenvectors
    of A finish. At no time are there more than four arrays of the size of `rows`, the caller's
    included.
    """
    sides = _sides(y, weights)
    if not rows.shape[1]:  # a kernel matrix of zeros
        return _diagonal_data(rows, y, np.zeros(0), np.zeros(0), weights=weights), carry
    total = np.zeros((rows.shape[1], rows.shape[1]), order="F")
    for side in sides:
        total = _add_covariance(total, rows, side, 1.0)
    both = ridge_x + ridge_y
    if both == 0:
        change, free = _without_ridge(total, rows, sides)
        rows, carry = _changed(rows, lambda part: part @ change), carry @ change
        if free or not rows.shape[1]:  # the second: all rows are equal
            none = np.zeros(rows.shape[1])
            return _diagonal_data(rows, y, none, none, free, weights), carry
    else:
        total[np.diag_indices_from(total)] += both
        factor = cholesky(total, lower=True, overwrite_a=True, check_finite=False)

        def whitened(part: NDArray) -> NDArray:
            return solve_triangular(factor, part.T, lower=True, check_finite=False).T

        rows, carry = _changed(rows, whitened), whitened(carry)
        del factor
    del total
    # A = cov_x + ridge_x L^-1 L^-T, and I = cov_x + cov_y + (ridge_x + ridge_y) L^-1 L^-T.
    share = ridge_x / both if both else 0.5
    matrix = np.zeros((rows.shape[1], rows.shape[1]), order="F")
    matrix[np.diag_indices_from(matrix)] = share
    for side, factor in zip(sides, (1.0 - share, -share), strict=True):
        matrix = _add_covariance(matrix, rows, side, factor)
    values, vectors = eigh(matrix, driver="evr", overwrite_a=True, check_finite=False)
    del matrix
    rows, carry = _changed(rows, lambda part: part @ vectors), carry @ vectors
    values = np.clip(values, 0.0, 1.0)
    return _diagonal_data(rows, y, values, 1.0 - values, weights=weights), carry


def _changed(rows: Rows, change: Callable[[NDArray], NDArray]) -> Rows:
    """Return rows in other coordinates: a copy, or the map to them."""
    if isinstance(rows, MappedRows):
        return replace(rows, map=change(np.asarray(rows.map)))
    return change(rows)


def _add_covariance(matrix: NDArray, rows: Rows, side: NDArray, factor: float) -> NDArray:
    """Add a multiple of the covariance of some rows to the lower triangle of a matrix, in place.

    BLAS adds to its argument; numpy would need a second matrix for the product.
    """
    mean, factor = _mean(rows, side), factor / float(side.sum())
    for own in blocks(*rows.shape):
        weights = side[own]
        part = rows[own][weights > 0]
        if len(part):
            part -= mean
            part *= np.sqrt(weights[weights > 0])[:, None]
            matrix = blas.dsyrk(factor, part.T, beta=1, c=matrix, lower=True, overwrite_c=True)
    return matrix


def _mean(rows: Rows, side: NDArray) -> NDArray:
    """Return the mean of rows by weights."""
    return (rows.T @ side) / side.sum()


def _without_ridge(
    total: NDArray, rows: Rows, sides: tuple[NDArray, NDArray]
) -> tuple[NDArray, bool]:
    """Return a map (d, k) onto the directions with variance, scaled to one; or onto a free one."""
    delta = _mean(rows, sides[0]) - _mean(rows, sides[1])
    values, vectors = eigh(total, check_finite=False)
    has = values > NO_VARIANCE * values[-1]
    rest = vectors[:, ~has]
    outside = rest @ (rest.T @ delta)
    if outside @ outside > NO_VARIANCE * (values[-1] + delta @ delta):
        return outside[:, None] / np.linalg.norm(outside), True
    return vectors[:, has] / np.sqrt(values[has]), False


def _diagonal_data(
    rows: Rows,
    y: NDArray,
    var_x: NDArray,
    var_y: NDArray,
    free: bool = False,
    weights: NDArray | None = None,
) -> DiagonalData:
    mean_x, mean_y = (_mean(rows, side) for side in _sides(y, weights))
    return DiagonalData(rows, y, mean_x, mean_y, var_x, var_y, free, weights)


class LinearCoordinates:
    """The features, or coordinates of the span of the rows where that is smaller."""

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
        self.rows = (
            MappedRows(problem.X, self.origin, self.basis) if mapped else problem.X - self.origin
        )

    def diagonal(self, ridge: float) -> DiagonalData:
        """Return the rows in the coordinates that belong to a ridge."""
        ridges = self.ridges(ridge)
        data, self.change = diagonalise(self.rows, self.y, *ridges, self.basis, self.weights)
        return data

    def ridges(self, ridge: float) -> tuple[float, float]:
        """Return the absolute ridges of the positive and the negative class."""
        x, y = (
            ridge * float(self._variances(side).sum()) / len(self.origin)
            for side in (self.y > 0, self.y < 0)
        )
        return x, y

    def _variances(self, side: NDArray) -> NDArray:
        """Return the variance of each coordinate within a class."""
        if self.weights is None:
            return self.rows[side].var(axis=0)
        part = self.rows[side] - _mean(self.rows, side * self.weights)
        return np.average(part**2, axis=0, weights=self.weights[side])

    def models(self, found: Sequence[BinaryModel]) -> list[BinaryModel]:
        """Return models over the features, given some in the coordinates of the last data."""
        weights = [self.change @ model.w for model in found]
        return [
            replace(model, intercept=model.intercept - float(self.origin @ w), w=w)
            for model, w in zip(found, weights, strict=True)
        ]


class KernelCoordinates:
    """A pivoted Cholesky factor of the Gram matrix, ``K = F F'``.

    It stops where what is left is rounding. A direction w is expanded over the pivots alone: the
    values ``g = F w`` are reproduced there by ``a = K_pp^-1 g_p``, and so everywhere.
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

    def diagonal(self, ridge: float) -> DiagonalData:
        """Return the rows in the coordinates that belong to a ridge."""
        amount = ridge * self.unit
        carry = self.origin[None]
        self.last, carried = diagonalise(self.rows, self.y, amount, amount, carry, self.weights)
        self.shift = carried[0]
        return self.last

    def models(self, found: Sequence[BinaryModel]) -> list[BinaryModel]:
        """Return expansions over the rows of models in the coordinates of the last data."""
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


def pivoted_cholesky(gram: NDArray, left: float = -1.0) -> tuple[NDArray, NDArray]:
    """Factor a positive semidefinite matrix up to a small remainder, in place.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Symmetric, C-contiguous; destroyed.
    left : float, optional
        Largest diagonal element that may remain; by default rounding alone does.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        F with ``gram = F F'``; its rows at the pivots are lower triangular.
    pivots : ndarray of shape (rank,)

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
    # The transpose of a symmetric array is itself, in the order of LAPACK.
    triangle, order, rank, _ = lapack.dpstrf(gram.T, tol=left, lower=1, overwrite_a=1)
    for column in range(1, rank):
        triangle[:column, column] = 0.0
    factor = np.empty((len(gram), rank))
    factor[order - 1] = triangle[:, :rank]
    return factor, order[:rank] - 1
