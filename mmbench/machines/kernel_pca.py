"""Coordinates of the training rows in which their total scatter is diagonal.

    S = (1/n) sum_i (x_i - xbar)(x_i - xbar)' = U diag(s) U',    z(x) = U'(x - xbar)

With a kernel these are the components of kernel PCA: with ``H K H = V diag(n s) V'`` and H the
centring matrix, row i has the coordinates ``sqrt(n s_k) V_ik``. One decomposition serves every
hyper-parameter of a machine that depends on the data through S, and every number of components.

With weights of the rows, p_i of sum 1, these take the place of 1/n in S and in the mean. With P
their diagonal matrix, ``P^(1/2) Kc P^(1/2) = V diag(s) V'`` for the matrix Kc of the rows less that
mean, and row i has the coordinates ``sqrt(s_k / p_i) V_ik``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from mmbench.machines.base.problem import BinaryProblem
from mmbench.solvers.ridge import FeatureGram, Gram
from mmbench.solvers.rows import MappedRows

#: Relative variance below which a direction is left out.
NO_VARIANCE = 1e-12

#: Least rows per feature for which a Gram matrix is not formed.
ROWS_PER_FEATURE = 2

#: Largest share of the components for which LAPACK finds no others.
PARTIAL_SHARE = 0.25

#: Least rows, and largest share of the components, for which Lanczos steps are faster than a
#: reduction of the whole matrix: 2 to 40 times (`benchmarks/kernel_pca.py`).
LANCZOS_ROWS, LANCZOS_SHARE = 2000, 0.04


@dataclass(frozen=True)
class Spectrum:
    """The training rows in uncorrelated coordinates, and the way back."""

    #: z of each row; variances descend. Shape (n, k).
    rows: NDArray
    #: s. Shape (k,).
    variances: NDArray
    #: Linear: U. Kernel: ``P^(1/2) V / sqrt(s)``, by which a direction is expanded over the rows.
    #: Shape (n_features, k) or (n, k).
    basis: NDArray
    #: Linear: the mean. Kernel: the mean of the kernel's columns. Shape (n_features,) or (n,).
    origin: NDArray
    linear: bool

    def first(self, n_components: int | float | None) -> Spectrum:
        """Return the first components: a number, a share of the variance below 1, or None for all.

        Examples
        --------
        >>> three = Spectrum(np.eye(3), np.array([6.0, 3.0, 1.0]), np.eye(3), np.zeros(3), True)
        >>> [len(three.first(wanted).variances) for wanted in (None, 2, 0.5, 0.95)]
        [3, 2, 1, 3]
        """
        if n_components is None:
            return self
        k = int(n_components)
        if n_components < 1:
            shares = np.cumsum(self.variances) / max(self.variances.sum(), 1e-300)
            k = int(np.searchsorted(shares, n_components * (1 - 1e-12))) + 1
        if k >= len(self.variances):
            return self
        return Spectrum(
            self.rows[:, :k], self.variances[:k], self.basis[:, :k], self.origin, self.linear
        )

    def original(self, w: NDArray, b: float) -> tuple[NDArray, float]:
        """Return ``f(x) = w'z(x) + b`` by weights of features, or of training rows, and a bias."""
        weights = self.basis @ w
        return weights, b - float(self.origin @ weights)


def spectrum(
    problem: BinaryProblem, most: int | None = None, weights: NDArray | None = None
) -> Spectrum:
    """Decompose the total scatter of the training rows of all classes.

    With a kernel, `most` is the number of components needed; weights may have any sum. Directions
    without variance are left out; rows that are all equal get one coordinate, which is zero.
    """
    # (n P)^(1/2) as a column; None if all weights are equal
    roots = None if weights is None else np.sqrt(weights / weights.mean())[:, None]
    if problem.kernel.name == "linear":
        found = _linear(problem.X, roots)
    elif is_flat(problem):
        found = _first_degree(problem, roots)
    else:
        found = _kernel(np.asarray(problem.gram, dtype=np.float64), roots, most)
    if len(found.variances):
        return found
    nothing = np.zeros((len(problem.X), 1)), np.zeros(1), np.zeros((len(found.basis), 1))
    return Spectrum(*nothing, found.origin, found.linear)


def spectrum_of_many(X: NDArray, weights: NDArray | None = None) -> Spectrum:
    """Decompose the scatter of many rows of few features; `rows` is a linear operator."""
    shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    origin = X.mean(axis=0) if weights is None else shares @ X
    variances, basis = _eigh(MappedRows(X, origin).product(shares))
    rows: Any = MappedRows(X, origin, basis)
    return Spectrum(rows, variances, basis, origin, True)


def _times(roots: NDArray | None, values: NDArray) -> NDArray:
    return values if roots is None else roots * values


def _mean(values: NDArray, roots: NDArray | None) -> NDArray:
    """Return the mean of rows."""
    return values.mean(axis=0) if roots is None else (roots[:, 0] ** 2 @ values) / len(values)


def _linear(X: NDArray, roots: NDArray | None) -> Spectrum:
    origin = _mean(X, roots)
    rows = X - origin
    scaled = _times(roots, rows)
    n, d = rows.shape
    if d <= n:
        with np.errstate(over="ignore"):  # refused there
            scatter = scaled.T @ scaled / n
        variances, basis = _eigh(scatter)
        return Spectrum(rows @ basis, variances, basis, origin, True)
    variances, vectors = _eigh(scaled @ scaled.T / n)
    lengths = np.sqrt(n * variances)
    basis = scaled.T @ (vectors / lengths)
    return Spectrum(_rows(vectors * lengths, roots), variances, basis, origin, True)


def _rows(scaled: NDArray, roots: NDArray | None) -> NDArray:
    return scaled if roots is None else scaled / roots


def is_flat(problem: BinaryProblem) -> bool:
    """Whether the kernel is of first degree, with fewer features than rows."""
    kernel, (n, d) = problem.kernel, problem.X.shape
    return kernel.name == "poly" and kernel.degree == 1 and d < n


def gram_by_features(problem: BinaryProblem) -> Gram:
    """Return the Gram matrix in float64, as features if a linear kernel has few of them."""
    n, d = problem.X.shape
    few = problem.kernel.name == "linear" and d <= n // ROWS_PER_FEATURE
    return FeatureGram(problem.X) if few else np.asarray(problem.gram, dtype=np.float64)


def _first_degree(problem: BinaryProblem, roots: NDArray | None) -> Spectrum:
    """Return the result of `_kernel` for a kernel of first degree, at the cost of `_linear`."""
    found = _linear(problem.X / np.sqrt(problem.kernel.divisor), roots)
    squares = None if roots is None else roots**2
    centred = _times(squares, found.rows - _mean(found.rows, roots))
    basis = centred / (len(problem.X) * found.variances)
    means = _mean(np.asarray(problem.gram, dtype=np.float64), roots)
    return Spectrum(found.rows, found.variances, basis, means, False)


def _kernel(gram: NDArray, roots: NDArray | None, most: int | None) -> Spectrum:
    means = _mean(gram, roots)
    n = len(gram)
    centred = gram - means
    centred -= means[:, None]
    centred += _mean(means, roots)
    if roots is not None:
        centred *= roots
        centred *= roots.T
    centred /= n
    variances, vectors = _eigh(centred, most)
    lengths = np.sqrt(n * variances)
    # expansions have sum 0 up to rounding, which short directions would magnify
    scaled = _times(roots, vectors)
    rest = _times(None if roots is None else roots**2, scaled.mean(axis=0))
    return Spectrum(
        _rows(vectors * lengths, roots), variances, (scaled - rest) / lengths, means, False
    )


def _eigh(matrix: NDArray, most: int | None = None) -> tuple[NDArray, NDArray]:
    """Return the non-zero eigenvalues, descending, at most `most`, and their vectors."""
    if not np.isfinite(matrix).all():
        raise ValueError("the scatter of the training rows is not finite; scale the data")
    n = len(matrix)
    few = most if most is not None and most <= PARTIAL_SHARE * n else n
    lanczos = n >= LANCZOS_ROWS and few <= LANCZOS_SHARE * n
    found = _eigh_lanczos(matrix, few) if lanczos else None
    values, vectors = found or _eigh_lapack(matrix, few)
    kept = np.flatnonzero(values > NO_VARIANCE * max(values[-1], 0.0))[::-1]
    return values[kept], vectors[:, kept]


def _eigh_lapack(matrix: NDArray, few: int) -> tuple[NDArray, NDArray]:
    """Return the largest eigenvalues, ascending, and their vectors."""
    n = len(matrix)
    wanted = [n - few, n - 1] if few < n else None
    values, vectors = eigh(matrix, driver="evr", subset_by_index=wanted, check_finite=False)
    if len(values) < few:  # LAPACK may miss some of many equal ones
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[-few:], vectors[:, -few:]
    return values, vectors


def _eigh_lanczos(matrix: NDArray, few: int) -> tuple[NDArray, NDArray] | None:
    """Return the result of `_eigh_lapack`; None if it does not converge: many equal eigenvalues."""
    from scipy.linalg.blas import dsymv
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    n = len(matrix)
    # products are bound by memory bandwidth: read one triangle, of the transpose in BLAS's order
    triangle = matrix.T
    products = LinearOperator((n, n), lambda v: dsymv(1.0, triangle, v, lower=1), dtype=np.float64)
    # a fixed start, as the default is random; at most the work of a reduction
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    try:
        values, vectors = eigsh(products, few, which="LA", v0=start, maxiter=n // (2 * few))
    except ArpackError:
        return None
    order = np.argsort(values)
    return values[order], vectors[:, order]
