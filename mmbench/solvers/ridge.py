"""Ridge systems ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]`` with a bias b, for G = K or K K'.

K = F F' is a Gram matrix of n rows with d features.

    function                   when                                        cost per C
    solve_path                 Cholesky factor of G + I/C                  n^3 / 3
    solve_path                 n >= SINGLE_ROWS, small C: one Krylov       at most n / 50 products
                               space for all of them                       with G for a next C
    solve_path                 n >= SINGLE_ROWS, large C: factors in       n^3 / 3 in float32
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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import (
    LinAlgError,
    blas,
    cho_factor,
    cho_solve,
    eigh,
    lapack,
    lstsq,
    qr,
    solveh_banded,
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

#: With at least SINGLE_ROWS rows, the systems with a Gram matrix are solved by products with it:
#: for small C in one Krylov space, and for the others by conjugate gradients whose preconditioner
#: is a Cholesky factor in float32 for the largest remaining C (`benchmarks/routes.py`, "ridge
#: path", compares them with a factor in float64 for each C).
SINGLE_ROWS = 900

#: Conjugate gradients end if the norm of the preconditioned residual is at most SHARE of the
#: residual that is asked for, times the first one. The ``n / ROWS_PER_STEP`` steps that are tried
#: for each C take about as long as a factor of its own. After FIRST_STEPS steps, the remaining
#: number of steps is extrapolated.
SHARE, ROWS_PER_STEP, FIRST_STEPS = 0.1, 150, 6

#: A Krylov space grows for the next larger C by ``n / ROWS_PER_PRODUCT`` products at most, which
#: take about as long as a factor in float32 and the conjugate gradients with it. After a quarter of
#: them, their number is extrapolated. The space has at most MOST_DIRECTIONS directions.
ROWS_PER_PRODUCT, MOST_DIRECTIONS = 50, 400


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
    """Return the solutions for all C from a Krylov space and few Cholesky factors in float32.

    A factor for one C is the preconditioner for each smaller C whose conjugate gradients converge.
    If they don't converge for the C of the factor, this C is solved by `_by_dual`.
    """
    ridges = 1 / np.array(costs)
    least = np.finfo(np.float32).eps * float(np.trace(gram))

    def biases(a: NDArray, own: NDArray) -> tuple[NDArray, NDArray]:
        """Return the biases for the ridges `own`, and whether the residuals are small."""
        errors = y[:, None] - gram @ a
        b = border @ errors / (border @ border)
        errors -= np.outer(border, b) + own * a
        target = y - border * (border @ y / (border @ border))
        return b, np.linalg.norm(errors, axis=0) <= residual * np.linalg.norm(target)

    a, found = _by_lanczos(gram, y, ridges, border, residual / 2)
    b, accurate = biases(a, ridges)
    left = np.argsort(ridges, kind="stable")
    left = left[~(found & accurate)[left]]
    while len(left):
        ridge, own = max(ridges[left[0]], least), ridges[left]
        a[:, left], found = _conjugate_gradients(gram, y, own, border, ridge, SHARE * residual)
        b[left], accurate = biases(a[:, left], own)
        solved = found & accurate
        for k in left[~solved & (ridges[left] <= ridge)]:
            a[:, k], b[k] = _by_dual(gram, y, costs[k], border)
        left = left[~solved & (ridges[left] > ridge)]
    return Solutions(a, a, b)


def _by_lanczos(
    gram: NDArray, y: NDArray, ridges: NDArray, border: NDArray, error: float
) -> tuple[NDArray, NDArray]:
    """Solve the systems of `_conjugate_gradients` for the largest ridges in one Krylov space.

    Returns the solutions a, and whether each of them has a relative residual of at most `error`. In
    the orthonormal basis of Lanczos, ``H G H`` is a tridiagonal matrix T, and the residual for the
    ridge R is the last entry of ``(T + R I)^-1 e_1`` times the next entry beside the diagonal.
    """
    n, most = len(y), min(len(y), MOST_DIRECTIONS)
    a, solved = np.zeros((n, len(ridges))), np.zeros(len(ridges), dtype=bool)
    basis, bands, unit = np.empty((most + 1, n)), np.zeros((2, most + 1)), np.eye(1, most)[0]
    root = border / np.linalg.norm(border)
    basis[0] = y - root * (root @ y)
    length = float(np.linalg.norm(basis[0]))
    basis[0] /= length
    left, since, patience = np.argsort(-ridges).tolist(), 0, n / ROWS_PER_PRODUCT
    # a product with one half of the symmetric matrix takes half the time
    half, scale = np.asfortranarray(gram.T, dtype=float), float(np.trace(gram)) / n or 1.0
    for size in range(1, most + 1):
        check_time(float(n) ** 2)
        known, ahead = basis[:size], blas.dsymv(1 / scale, half, basis[size - 1], lower=1)
        ahead -= root * (root @ ahead)
        bands[1, size - 1] = known[-1] @ ahead
        for _ in range(2):  # the second pass removes rounding errors of the first
            ahead -= (known @ ahead) @ known
        beside = bands[0, size] = np.linalg.norm(ahead)
        while left and size > 1:  # LAPACK refuses a matrix of order 1 here
            ridge = ridges[left[0]]
            shifted = bands[:, :size] + np.array([[0.0], [ridge / scale]])
            try:
                share = solveh_banded(shifted, unit[:size], check_finite=False)
            except LinAlgError:  # the ridge is below rounding errors
                return a, solved
            now = beside * abs(share[-1])
            if not now <= error:
                break
            a[:, left[0]], since = length / scale * (share @ known), size
            solved[left.pop(0)] = True
        tried = size - since
        if not left or tried >= patience:
            break
        if tried >= patience / 4 and size * math.log(error) < (since + patience) * math.log(now):
            break
        basis[size] = ahead / (beside or 1.0)
    return a, solved


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
