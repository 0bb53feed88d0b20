"""Ridge systems ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]`` with a bias b, for G = K or K K'.

K = F F' is a Gram matrix of n rows with d features.

    function                   when                                        cost per C
    solve_path                 Cholesky factor of G + I/C                  n^3 / 3
    solve_path                 n >= SINGLE_ROWS, G = K: factors in         n^3 / 3 in float32
                               float32 and conjugate gradients             and products with G
    solve_path                 G = K K', 1/C below its rounding errors:    n^2
                               eigenvectors of K
    solve_path, solve_weights  few features: Cholesky factor of order d    d^3 / 3 + n d
    solve_by_products          sparse rows, many features                  products with F
    solve_printed              solver="reference": the dense system        n^3

Times: `benchmarks/peers.py`. With row weights s, ``r = sqrt(s)`` (parameter `border`, otherwise
ones) and R = diag(r), the system is ``[[RGR + I/C, r], [r', 0]] [a; b] = [Ry; 0]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import (
    LinAlgError,
    cho_factor,
    cho_solve,
    eigh,
    lapack,
    lstsq,
    qr,
)
from scipy.sparse.linalg import LinearOperator, cg

from mmbench.allowance import check_time
from mmbench.kernels import row_squares
from mmbench.solvers.rows import MappedRows, Rows, weighted_product

#: Reciprocal condition number so small that LAPACK treats every matrix as of full rank.
FULL_RANK = 1e-300

#: Relative residual at which conjugate gradients end, and maximum number of their products.
RESIDUAL, MOST_PRODUCTS = 1e-10, 5000

#: Largest relative residual of `solve_path` by products with the Gram matrix, in units of `tol`.
RESIDUAL_FACTOR = 1e-4

#: With at least SINGLE_ROWS rows, systems are solved by conjugate gradients whose preconditioner is
#: a Cholesky factor in float32 for the largest remaining C (`benchmarks/routes.py`, "ridge path",
#: compares it with a factor in float64 for each C, which takes less time for fewer rows).
SINGLE_ROWS = 2000

#: Conjugate gradients end if the norm of the preconditioned residual is at most SHARE of the
#: residual that is asked for, times the first one. The ``n / ROWS_PER_STEP`` steps that are tried
#: for each C take about as long as a factor of its own. After FIRST_STEPS steps, the remaining
#: number of steps is extrapolated.
SHARE, ROWS_PER_STEP, FIRST_STEPS = 0.1, 150, 6


@dataclass(frozen=True)
class FeatureGram:
    """The Gram matrix ``F F'`` of a data matrix F with few features, as a linear operator.

    Examples
    --------
    >>> F = np.array([[1.0], [2.0], [0.0]])
    >>> gram = FeatureGram(F)
    >>> gram @ np.ones(3), gram.trace()
    (array([3., 6., 0.]), 5.0)
    """

    #: Data matrix F. Shape (n_samples, n_features).
    features: NDArray

    def __matmul__(self, columns: NDArray) -> NDArray:
        return self.features @ (self.features.T @ columns)

    @property
    def T(self) -> FeatureGram:
        """The transpose, which equals the matrix."""
        return self

    def trace(self) -> float:
        """Return the sum of the diagonal entries."""
        return float(row_squares(self.features).sum())


#: Gram matrix as a dense array or as a linear operator.
Gram = NDArray | FeatureGram


@dataclass(frozen=True)
class Solutions:
    """Solutions of a ridge system for several values of C, with one column per value of C."""

    #: Multipliers. Shape (n_samples, n_costs).
    a: NDArray
    #: Coefficients of kernel values: a for G = K, ``K a`` for G = K K'; shape (n_samples, n_costs).
    coef: NDArray
    #: Biases. Shape (n_costs,).
    b: NDArray


def scaled(gram: Gram, root: NDArray) -> Gram:
    """Return ``diag(root) K diag(root)``, the Gram matrix of rows that are multiplied by `root`.

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
    tol: float = 1e-6,
) -> Solutions:
    """Solve the system ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]`` for every C.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples) or FeatureGram
        Gram matrix K, symmetric and positive semidefinite. A `FeatureGram` needs ``squared=True``;
        for ``squared=False``, use `solve_weights`.
    y : ndarray of shape (n_samples,)
        Targets.
    costs : sequence of float
        Values of C.
    squared : bool, default=False
        Whether G is ``K K'`` in place of K.
    border : ndarray of shape (n_samples,), optional
        Vector r that replaces the vector of ones in the system; see the module's docstring.
    tol : float, default=1e-6
        Tolerance of the machine. Solutions by products with the Gram matrix have relative residuals
        of at most RESIDUAL_FACTOR times `tol`.
    """
    border = np.ones(len(y)) if border is None else border
    if not squared and len(y) >= SINGLE_ROWS:
        return _by_products_with_gram(np.asarray(gram), y, costs, border, RESIDUAL_FACTOR * tol)
    if not squared:
        found = [_by_dual(np.asarray(gram), y, C, border) for C in costs]
        a = np.column_stack([one for one, _ in found])
        return Solutions(a, a, np.array([b for _, b in found]))
    rows: Any = gram
    if isinstance(gram, FeatureGram):  # K K' = F (F'F) F' = F R (F R)' for F'F = R R'
        F = gram.features
        if isinstance(F, np.ndarray):
            root = qr(F, mode="r")[0][: F.shape[1]].T
        else:
            values, vectors = eigh(weighted_product(F))
            root = vectors * np.sqrt(np.maximum(values, 0))
        rows = MappedRows(F, map=root)
        square = weighted_product(rows)
    elif 1 / max(costs) < np.finfo(float).eps * np.linalg.norm(gram) ** 2:
        return _by_eigenvectors(gram, y, costs, border)
    else:
        check_time(float(len(y)) ** 3)
        square = gram @ gram.T
    w, b = _by_primal(rows, square, y, costs, border)
    a = costs * (y[:, None] - rows @ w - np.outer(border, b))
    features = isinstance(gram, FeatureGram)
    coef = F @ lstsq(root.T, w, check_finite=False)[0] if features else w
    return Solutions(a, coef, b)


def solve_weights(
    rows: Rows, y: NDArray, costs: Sequence[float], border: NDArray | None = None
) -> tuple[NDArray, NDArray]:
    """Return the weights w of the features and the bias b that solve the ridge system, for every C.

    Decisions ``F w + b`` are accurate to machine precision, even if the norms of rows or columns of
    F differ by orders of magnitude. If some rows have a large norm, decisions ``G a + b`` are
    inaccurate, since G magnifies the rounding errors of the multipliers a.

    Parameters
    ----------
    rows : Rows of shape (n_samples, n_features)
        Rows F, with ``G = F F'``.
    y, costs, border
        See `solve_path`.

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
    return _by_primal(rows, weighted_product(rows), y, costs, border)


def solve_by_products(
    rows: Any, y: NDArray, costs: Sequence[float], border: NDArray
) -> tuple[NDArray, NDArray]:
    """Solve the system of `solve_weights` with products of sparse rows only, for every C.

    Conjugate gradients are preconditioned by the diagonal of the system, and start at the solution
    for the previous C.
    """
    d, size, ahead = rows.shape[1], border @ border, rows.T @ border

    def centred(v: NDArray) -> NDArray:
        return v - border * (border @ v / size)

    target, squares = rows.T @ centred(y), row_squares(rows.T) - ahead**2 / size
    w, weights, biases = np.zeros(d), [], []
    for C in costs:
        diagonal = np.maximum(squares, 0.0) + 1 / C
        system, preconditioner = (
            LinearOperator((d, d), product, dtype=float)
            for product in (
                lambda w, C=C: rows.T @ centred(rows @ w) + w / C,
                lambda w, diagonal=diagonal: w / diagonal,
            )
        )
        options = {"rtol": RESIDUAL, "maxiter": MOST_PRODUCTS, "M": preconditioner}
        w, _ = cg(system, target, w, **options)
        weights.append(w)
        biases.append(border @ (y - rows @ w) / size)
    return np.column_stack(weights), np.array(biases)


def _by_primal(
    rows: Rows, square: NDArray, y: NDArray, costs: Sequence[float], border: NDArray
) -> tuple[NDArray, NDArray]:
    """Return the weights w and the bias b for ``G = rows rows'``, for every C.

    The multipliers are ``a = C (y - rows w - b)``. If the entries of G are large, ``rows w`` has
    far smaller rounding errors than ``G a``.
    """
    ahead, target = (rows.T @ np.column_stack([border, y])).T  # each pass over the rows takes time
    weights, biases = [], []
    for C in costs:
        inverse = ridge_inverse(square, 1 / C)
        from_border = inverse(ahead)
        left = float(border @ border - ahead @ from_border)
        w, b, residual, right = np.zeros(len(ahead)), 0.0, y, target
        for refined in (False, True):  # one step of iterative refinement
            if refined:
                residual = y - rows @ w - b * border
                right = rows.T @ residual - w / C
            step = inverse(right)
            more = float(border @ residual - ahead @ step) / left
            w, b = w + step - more * from_border, b + more
        weights.append(w)
        biases.append(b)
    return np.column_stack(weights), np.array(biases)


def _by_eigenvectors(
    gram: NDArray, y: NDArray, costs: Sequence[float], border: NDArray
) -> Solutions:
    """Return the solutions for ``G = K K'`` from an eigendecomposition of K.

    If 1/C is below the rounding errors of ``K K'``, the eigendecomposition is more accurate than a
    Cholesky factorisation of ``K K' + I/C``.
    """
    check_time(4.0 * len(y) ** 3)
    eigenvalues, vectors = eigh(gram, check_finite=False)
    C, values, of_border = np.array(costs), eigenvalues[:, None], (vectors.T @ border)[:, None]
    inverses = 1 / (values**2 + 1 / C)
    w, b, residual = np.zeros((len(y), len(C))), np.zeros(len(C)), np.tile(y[:, None], len(C))
    for _ in range(2):  # the second pass is one step of iterative refinement
        of_w, right = vectors.T @ w, vectors.T @ residual
        a = inverses * (right + values * of_w)
        more = (of_border * a).sum(axis=0) / (of_border**2 * inverses).sum(axis=0)
        a = a - more * inverses * of_border
        step = inverses * (values * right - of_w / C - more * values * of_border)
        w, b = w + vectors @ step, b + more
        residual = y[:, None] - gram @ w - np.outer(border, b)
    return Solutions(vectors @ a, w, b)


def _by_dual(gram: NDArray, y: NDArray, C: float, border: NDArray) -> tuple[NDArray, float]:
    """Return the multipliers a and the bias b for the Gram matrix G, after iterative refinement.

    Iterative refinement is necessary for the KLDA, which is computed from small differences of the
    multipliers a.
    """
    inverse = ridge_inverse(gram, 1 / C)
    from_border = inverse(border)
    size = border @ from_border
    a, b, residual = np.zeros(len(y)), 0.0, y
    for _ in range(2):
        step = inverse(residual)
        more = float(border @ (step + a) / size)  # border'a = 0 up to rounding
        a, b = a + step - more * from_border, b + more
        residual = y - gram @ a - a / C - b * border
    return a, b


def _by_products_with_gram(
    gram: NDArray, y: NDArray, costs: Sequence[float], border: NDArray, residual: float
) -> Solutions:
    """Return the solutions for all C from few Cholesky factors in float32.

    A factor for one C is the preconditioner for each smaller C whose conjugate gradients converge.
    If they don't converge for the C of the factor, this C is solved by `_by_dual`.
    """
    n, ridges, size = len(y), 1 / np.array(costs), border @ border
    least = np.finfo(np.float32).eps * float(np.trace(gram))
    allowed = residual * np.linalg.norm(y - border * (border @ y / size))
    a, b = np.zeros((n, len(costs))), np.zeros(len(costs))
    left = np.argsort(ridges, kind="stable")
    while len(left):
        ridge, own = max(ridges[left[0]], least), ridges[left]
        found, solved = _conjugate_gradients(gram, y, own, border, ridge, SHARE * residual)
        errors = y[:, None] - gram @ found
        a[:, left], b[left] = found, border @ errors / size
        errors -= np.outer(border, b[left]) + own * found
        solved &= np.linalg.norm(errors, axis=0) <= allowed
        for k in left[~solved & (own <= ridge)]:
            a[:, k], b[k] = _by_dual(gram, y, costs[k], border)
        left = left[~solved & (own > ridge)]
    return Solutions(a, a, b)


def _conjugate_gradients(
    gram: NDArray, y: NDArray, ridges: NDArray, border: NDArray, ridge: float, error: float
) -> tuple[NDArray, NDArray]:
    """Solve ``(H G H + R I) a = H y`` for all R in `ridges`; ``H = I - rr'/r'r``, r is the border.

    The preconditioner is a Cholesky factor of ``G + ridge I`` in float32. Returns the solutions a
    with ``r'a = 0``, and whether the preconditioned residual of each of them is at most `error`
    times the first one.
    """
    n, size = len(y), border @ border
    a, solved = np.zeros((n, len(ridges))), np.zeros(len(ridges), dtype=bool)
    unit = float(np.trace(gram)) / n
    check_time(float(n) ** 3 / 4)
    shifted = np.empty((n, n), np.float32, order="F")
    with np.errstate(all="ignore"):  # the factor of a matrix that is not finite fails
        np.multiply(gram.T, 1 / unit, out=shifted, casting="same_kind")
        shifted[np.diag_indices(n)] += np.float32(ridge / unit)
    factor, failed = lapack.spotrf(shifted, lower=1, clean=0, overwrite_a=1)
    if failed or not np.isfinite(factor[-1, -1]):
        return a, solved

    def inverse(columns: NDArray) -> NDArray:
        lengths = np.abs(columns).max(axis=0)
        scaled = (columns / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
        return lengths * lapack.spotrs(factor, scaled, lower=1)[0]

    def centred(columns: NDArray) -> NDArray:
        return columns - np.outer(border, border @ columns / size)

    from_border = inverse(border[:, None])[:, 0]
    most, share, left = max(1, n // ROWS_PER_STEP), border @ from_border, np.arange(len(ridges))
    target = centred(y[:, None])
    residual = np.repeat(target, len(ridges), axis=1)
    ahead, length, first = residual, np.zeros(len(ridges)), np.ones(len(ridges))
    for step in range(most + 1):
        if step:
            image = centred(gram @ ahead) + ridges[left] * ahead
            moves = length / np.einsum("ij,ij->j", ahead, image)
            a[:, left] += moves * ahead
            residual = residual - moves * image
        solution = inverse(residual)
        solution -= np.outer(from_border, border @ solution / share)
        last, length = length, np.einsum("ij,ij->j", residual, solution)
        first = first if step else length
        ended = length <= error**2 * first
        solved[left[ended]] = True
        promising = (step < FIRST_STEPS) | (length <= first * error ** (2 * step / most))
        kept = ~ended & promising
        if not kept.any():
            break
        ahead = solution + (length / last if step else 0.0) * ahead
        left, ahead, residual = left[kept], ahead[:, kept], residual[:, kept]
        length, first = length[kept], first[kept]
    return a, solved


def ridge_inverse(matrix: NDArray, ridge: float) -> Callable[[NDArray], NDArray]:
    """Return a function that multiplies columns by ``(matrix + ridge I)^-1``.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric and positive semidefinite; not overwritten.
    ridge : float

    Examples
    --------
    >>> ridge_inverse(np.diag([0.0, 1.5]), 0.5)(np.ones(2))
    array([2. , 0.5])
    """
    check_time(len(matrix) ** 3 / 4)
    # column-major order, since LAPACK would copy any other array
    shifted = np.array(matrix.T, order="F")
    shifted[np.diag_indices_from(shifted)] += ridge
    try:
        factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
    except LinAlgError:  # `matrix` is singular and the ridge is below rounding errors
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
    """Solve a dense bordered system for every C; see `solve_path` for parameters and result.

    If G = K K', the MAMC paper prints a system in ``w = K a`` and b, for M training rows:

        (I/C + K K) w + K 1 b = K y,    1'K w + M b = 1'y                        (36), (37)

    Equations (36) and (37) are the normal equations of the least squares problem ``min over w, b
    ||y - K w - b||^2 + ||w||^2 / C``. This function solves the least squares problem, since the
    normal equations square the condition number of K. The multipliers of the printed system are
    ``a = C (y - K w - b)``.
    """
    n, ones = len(y), np.ones(len(y)) if border is None else border
    a, coef, b = [], [], []
    for C in costs:
        if squared:
            system = np.block([[gram, ones[:, None]], [np.eye(n) / np.sqrt(C), np.zeros((n, 1))]])
            # QR with column pivoting; the threshold FULL_RANK keeps every column
            solved = lstsq(system, np.append(y, np.zeros(n)), FULL_RANK, lapack_driver="gelsy")[0]
        else:
            system = np.block([[gram + np.eye(n) / C, ones[:, None]], [ones, 0.0]])
            solved = np.linalg.solve(system, np.append(y, 0.0))
        coef.append(solved[:-1])
        b.append(solved[-1])
        a.append(C * (y - gram @ coef[-1] - b[-1] * ones) if squared else coef[-1])
    return Solutions(np.column_stack(a), np.column_stack(coef), np.array(b))
