"""Ridge systems with a bias, ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]``, for G = K or G = K K'.

K is a Gram matrix. `solve_path` takes one Cholesky factorisation for each C, of the size of the
features where these are fewer than the rows. `solve_printed` solves the dense system of each C, and
is what the first is held against.

Where rows have weights s, the ridge is ``diag(1/(C s))``. Multiplied by their roots r, rows,
targets and border make it I/C again: ``[[RGR + I/C, r], [r', 0]] [a; b] = [Ry; 0]``, R = diag(r).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lstsq, qr

from mmbench.kernels import row_squares
from mmbench.solvers.rows import MappedRows, Rows, weighted_product


@dataclass(frozen=True)
class FeatureGram:
    """A Gram matrix ``F F'`` of rows with few features, known by its products alone.

    Examples
    --------
    >>> F = np.array([[1.0], [2.0], [0.0]])
    >>> gram = FeatureGram(F)
    >>> gram @ np.ones(3), gram.trace()
    (array([3., 6., 0.]), 5.0)
    """

    #: F. Shape (n_samples, n_features).
    features: NDArray

    def __matmul__(self, columns: NDArray) -> NDArray:
        return self.features @ (self.features.T @ columns)

    @property
    def T(self) -> FeatureGram:
        """The matrix, which is symmetric."""
        return self

    def trace(self) -> float:
        """Return the sum of the diagonal."""
        return float(row_squares(self.features).sum())


#: Dense Gram matrix or its feature factor.
Gram = NDArray | FeatureGram


@dataclass(frozen=True)
class Solutions:
    """Solutions for several C, one a column."""

    #: Shape (n_samples, n_costs).
    a: NDArray
    #: a for G = K, and K a for G = K K': coefficients over the columns of K. Shape (n_samples,
    #: n_costs).
    coef: NDArray
    #: Shape (n_costs,).
    b: NDArray


def scaled(gram: Gram, root: NDArray) -> Gram:
    """Return the Gram matrix of rows that are multiplied by numbers, ``diag(root) K diag(root)``.

    Examples
    --------
    >>> scaled(np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([1.0, 3.0]))
    array([[ 1.,  6.],
           [ 6., 45.]])
    """
    if isinstance(gram, np.ndarray):
        out = gram * root
        out *= root[:, None]
        return out
    F: Any = gram.features
    dense = isinstance(F, np.ndarray)
    return FeatureGram(F * root[:, None] if dense else F.multiply(root[:, None]).tocsr())


def solve_path(
    gram: Gram,
    y: NDArray,
    costs: Sequence[float],
    squared: bool = False,
    border: NDArray | None = None,
) -> Solutions:
    """Solve for every C.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples) or FeatureGram
        K, symmetric and positive semidefinite. Features are taken with ``squared`` only; see
        `solve_weights`.
    y : ndarray of shape (n_samples,)
    costs : sequence of float
        Values of C.
    squared : bool, default=False
        Whether G is ``K K'``.
    border : ndarray of shape (n_samples,), optional
        Replaces the ones of the system; all 1 by default.
    """
    border = np.ones(len(y)) if border is None else border
    if not squared:
        found = [_by_dual(np.asarray(gram), y, C, border) for C in costs]
        a = np.column_stack([one for one, _ in found])
        return Solutions(a, a, np.array([b for _, b in found]))
    rows: Any = gram
    if isinstance(gram, FeatureGram):  # K K' = F (F'F) F' = F R (F R)'
        F = gram.features
        if isinstance(F, np.ndarray):
            root = qr(F, mode="r")[0][: F.shape[1]].T
        else:
            values, vectors = eigh(weighted_product(F, np.ones(F.shape[0])))
            root = vectors * np.sqrt(np.maximum(values, 0))
        rows = MappedRows(F, map=root)
        square = weighted_product(rows, np.ones(F.shape[0]))
    else:
        square = gram @ gram.T
    columns = zip(*(_by_primal(rows, square, y, C, border) for C in costs), strict=True)
    a, w, b = map(np.array, columns)
    features = isinstance(gram, FeatureGram)
    coef = F @ lstsq(root.T, w.T, check_finite=False)[0] if features else w.T
    return Solutions(a.T, coef, b)


def solve_weights(
    rows: Rows, y: NDArray, costs: Sequence[float], border: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """Solve for the weights of features and b, for every C.

    They give decisions to full accuracy where a row is far longer than others, or a column than
    the others, and the multipliers a do not: there rounding of a is multiplied by long rows.

    Parameters
    ----------
    rows : Rows of shape (n_samples, n_features)
        F, by which ``G = F F'``.
    y, costs, border
        As for `solve_path`.

    Returns
    -------
    w : ndarray of shape (n_features, n_costs)
    b : ndarray of shape (n_costs,)

    Examples
    --------
    >>> solve_weights(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), [1e9])
    (array([[1.]]), array([-1.]))
    """
    border = np.ones(len(y)) if border is None else border
    square = weighted_product(rows, np.ones(rows.shape[0]))
    _, w, b = zip(*(_by_primal(rows, square, y, C, border) for C in costs), strict=True)
    return np.column_stack(w), np.array(b)


def _by_primal(
    rows: Rows, square: NDArray, y: NDArray, C: float, border: NDArray
) -> tuple[NDArray, NDArray, float]:
    """Return ``a = C (y - rows w - b)``, w and b for ``G = rows rows'``, from the system of w.

    If G is large, rounding a moves ``G a`` by far more than rounding w moves ``rows w``. The second
    step corrects the first by its residual.
    """
    inverse, ahead = ridge_inverse(square, 1 / C), rows.T @ border
    from_border = inverse(ahead)
    left = float(border @ border - ahead @ from_border)
    w, b, residual = np.zeros(len(ahead)), 0.0, y
    for _ in range(2):
        step = inverse(rows.T @ residual - w / C)
        more = float(border @ residual - ahead @ step) / left
        w, b = w + step - more * from_border, b + more
        residual = y - rows @ w - b * border
    return C * residual, w, b


def _by_dual(gram: NDArray, y: NDArray, C: float, border: NDArray) -> tuple[NDArray, float]:
    """Return a and b, corrected by their residual.

    The KLDA is computed from small differences of a, which magnify the rounding of a factorisation.
    """
    inverse = ridge_inverse(gram, 1 / C)
    from_border = inverse(border)
    size = border @ from_border
    a, b, residual = np.zeros(len(y)), 0.0, y
    for _ in range(2):
        step = inverse(residual)
        more = float(border @ (step + a) / size)  # border'a = 0
        a, b = a + step - more * from_border, b + more
        residual = y - gram @ a - a / C - b * border
    return a, b


def ridge_inverse(matrix: NDArray, ridge: float) -> Callable[[NDArray], NDArray]:
    """Return the function that multiplies columns by ``(matrix + ridge I)^-1``.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric and positive semidefinite; it is left as it is.
    ridge : float

    Examples
    --------
    >>> ridge_inverse(np.diag([0.0, 1.5]), 0.5)(np.ones(2))
    array([2. , 0.5])
    """
    shifted = np.array(matrix.T, order="F")  # LAPACK's order: it would copy any other
    shifted[np.diag_indices_from(shifted)] += ridge
    try:
        factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
    except LinAlgError:  # the ridge is below the rounding of a singular matrix
        values, vectors = eigh(matrix, check_finite=False)
        inverses = 1 / (np.maximum(values, 0) + ridge)
        return lambda columns: vectors @ (inverses * (vectors.T @ columns).T).T
    return lambda columns: cho_solve(factor, columns, check_finite=False)


def solve_printed(
    gram: NDArray,
    y: NDArray,
    costs: Sequence[float],
    squared: bool = False,
    border: NDArray | None = None,
) -> Solutions:
    """Solve a dense bordered system for every C; parameters and result as in `solve_path`.

    For G = K K' it is the primal system that the MAMC paper prints,

        (I/C + K K) w + K 1 b = K y,    1'K w + M b = 1'y                        (36), (37)

    with w = K a, and ``a = C (y - K w - b)``.
    """
    ones = np.ones(len(y)) if border is None else border
    G, right, edge = (gram @ gram, gram @ y, gram @ ones) if squared else (gram, y, ones)
    corner, last = (ones @ ones, ones @ y) if squared else (0.0, 0.0)
    a, coef, b = [], [], []
    for C in costs:
        system = np.block([[G + np.eye(len(y)) / C, edge[:, None]], [edge, corner]])
        solved = np.linalg.solve(system, np.append(right, last))
        coef.append(solved[:-1])
        b.append(solved[-1])
        a.append(C * (y - gram @ coef[-1] - b[-1] * ones) if squared else coef[-1])
    return Solutions(np.column_stack(a), np.column_stack(coef), np.array(b))
