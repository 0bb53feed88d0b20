"""Ridge systems with a bias, ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]``, for G = K or G = K K'.

K is a Gram matrix. `solve_path` takes one Cholesky factorisation for each C, of the size of the
features where these are fewer than the rows. `solve_printed` solves the dense system of each C, and
is what the first is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr

from mmbench.kernels import row_squares
from mmbench.solvers.rows import MappedRows, Rows, weighted_product


@dataclass(frozen=True)
class FeatureGram:
    """A Gram matrix ``F F'`` of rows with few features, known by its products alone.

    Parameters
    ----------
    features : ndarray or sparse array of shape (n_samples, n_features)
        F.

    Examples
    --------
    >>> F = np.array([[1.0], [2.0], [0.0]])
    >>> gram = FeatureGram(F)
    >>> gram @ np.ones(3), gram.trace()
    (array([3., 6., 0.]), 5.0)
    """

    features: NDArray

    def __matmul__(self, columns: NDArray) -> NDArray:
        return self.features @ (self.features.T @ columns)

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(row_squares(self.features).sum())


#: What products are taken with.
Gram = NDArray | FeatureGram


@dataclass(frozen=True)
class Solutions:
    """Solutions for several C, one a column.

    Attributes
    ----------
    a : ndarray of shape (n_samples, n_costs)
    coef : ndarray of shape (n_samples, n_costs)
        a for G = K, and K a for G = K K': coefficients over the columns of K.
    b : ndarray of shape (n_costs,)
    """

    a: NDArray
    coef: NDArray
    b: NDArray


def solve_path(
    gram: Gram,
    y: NDArray,
    costs: Sequence[float],
    squared: bool = False,
) -> Solutions:
    """Solve for every C.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples) or FeatureGram
        K, symmetric and positive semidefinite. By few features everything is cheaper.
    y : ndarray of shape (n_samples,)
    costs : sequence of float
        Values of C.
    squared : bool, default=False
        Whether G is ``K K'``.

    Returns
    -------
    Solutions
    """
    if isinstance(gram, FeatureGram):
        F: Rows = gram.features
        if squared:  # K K' = F (F'F) F'
            F = MappedRows(F, map=_root(F))
        small, border = weighted_product(F, np.ones(F.shape[0])), F
    else:
        small, border = gram @ gram.T if squared else gram, None

    def product(a: NDArray) -> NDArray:
        return gram @ (gram @ a) if squared else gram @ a

    solved = [_solve(ridge_inverse(small, 1 / C, border), product, y, C) for C in costs]
    a, b = np.column_stack([a for a, _ in solved]), np.array([b for _, b in solved])
    return Solutions(a, gram @ a if squared else a, b)


def _root(F: Rows) -> NDArray:
    """Return a matrix R with ``R R' = F'F``."""
    if isinstance(F, np.ndarray):
        return qr(F, mode="r")[0][: F.shape[1]].T
    values, vectors = eigh(weighted_product(F, np.ones(F.shape[0])))
    return vectors * np.sqrt(np.maximum(values, 0))


def _solve(
    inverse: Callable[[NDArray], NDArray],
    product: Callable[[NDArray], NDArray],
    y: NDArray,
    C: float,
) -> tuple[NDArray, float]:
    """Return a and b, given the products with ``(G + I/C)^-1`` and with G.

    The solution is corrected by its residual, once: what is computed from small differences of a,
    as by the KLDA, magnifies the rounding of a factorisation.
    """
    from_y, from_ones = inverse(np.column_stack([y, np.ones(len(y))])).T
    b = from_y.sum() / from_ones.sum()  # 1'a = 0
    a = from_y - b * from_ones
    step = inverse(y - product(a) - a / C - b)
    more = (step.sum() + a.sum()) / from_ones.sum()
    return a + step - more * from_ones, float(b + more)


def ridge_inverse(
    matrix: NDArray, ridge: float, features: Rows | None = None
) -> Callable[[NDArray], NDArray]:
    """Return the function that multiplies columns by ``(matrix + ridge I)^-1``.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric and positive semidefinite; it is left as it is.
    ridge : float
    features : ndarray or MappedRows of shape (n_samples, n), optional
        F, the matrix being ``F'F``: the function then multiplies by ``(F F' + ridge I)^-1``.

    Examples
    --------
    >>> F = np.array([[1.0], [2.0], [0.0]])
    >>> inverse = ridge_inverse(F.T @ F, 0.5, F)
    >>> np.allclose((F @ F.T + 0.5 * np.eye(3)) @ inverse(np.eye(3)), np.eye(3))
    True
    """
    if features is not None:  # the formula of Woodbury
        inner = ridge_inverse(matrix, ridge)
        return lambda columns: (columns - features @ inner(features.T @ columns)) / ridge
    shifted = np.array(matrix.T, order="F")  # LAPACK's order: it would copy any other
    shifted[np.diag_indices_from(shifted)] += ridge
    try:
        factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
    except LinAlgError:  # the ridge drowns in the rounding of a singular matrix
        values, vectors = eigh(matrix, check_finite=False)
        inverses = 1 / (np.maximum(values, 0) + ridge)
        return lambda columns: vectors @ (inverses * (vectors.T @ columns).T).T
    return lambda columns: cho_solve(factor, columns, check_finite=False)


def solve_printed(
    gram: NDArray, y: NDArray, costs: Sequence[float], squared: bool = False
) -> Solutions:
    """Solve a dense bordered system for every C; parameters and result as in `solve_path`.

    For G = K K' it is the primal system that the MAMC paper prints,

        (I/C + K K) w + K 1 b = K y,    1'K w + M b = 1'y                        (36), (37)

    with w = K a, and ``a = C (y - K w - b)``.
    """
    ones = np.ones(len(y))
    G, right, border = (gram @ gram, gram @ y, gram @ ones) if squared else (gram, y, ones)
    corner, last = (len(y), y.sum()) if squared else (0.0, 0.0)
    a, coef, b = [], [], []
    for C in costs:
        system = np.block([[G + np.eye(len(y)) / C, border[:, None]], [border, corner]])
        solved = np.linalg.solve(system, np.append(right, last))
        coef.append(solved[:-1])
        b.append(solved[-1])
        a.append(C * (y - gram @ coef[-1] - b[-1]) if squared else coef[-1])
    return Solutions(np.column_stack(a), np.column_stack(coef), np.array(b))
