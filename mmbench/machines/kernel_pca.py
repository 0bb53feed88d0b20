"""Coordinates of the training rows in which their total scatter is diagonal.

    S = (1/n) sum_i (x_i - xbar)(x_i - xbar)' = U diag(s) U',    z(x) = U'(x - xbar)

With a kernel these are the components of kernel PCA: with ``H K H = V diag(n s) V'`` and H the
centring matrix, row i has the coordinates ``sqrt(n s_k) V_ik``. One decomposition serves every
hyper-parameter of a machine that sees the data through S, and every number of components.

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

#: A direction with less than this share of the largest variance has none.
NO_VARIANCE = 1e-12

#: Rows a feature from which a Gram matrix is not formed.
ROWS_PER_FEATURE = 2

#: Up to this share of all components it pays to find no more than those that are wanted.
PARTIAL_SHARE = 0.25

#: From so many rows on, and up to this share of all components, Lanczos steps find them faster than
#: a reduction of the whole matrix: 2 to 40 times (`benchmarks/kernel_pca.py`).
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
        """Return the first components only.

        Parameters
        ----------
        n_components : int, float or None
            How many; below 1 the share of the variance that they must reach; None: all.

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
    """Decompose the total scatter of the training rows, whatever their classes.

    Parameters
    ----------
    problem : BinaryProblem
        Its kernel says in which space; its labels are not used.
    most : int, optional
        With a kernel, components that will do: those of largest variance.
    weights : ndarray of shape (n,), optional
        Of the rows, whatever their sum.

    Returns
    -------
    Spectrum
        Directions without variance are left out: no training row has a part in them. Rows that
        are all equal get one coordinate, which is zero.
    """
    roots = _roots(weights)
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
    """Decompose the scatter of many rows of few features; `rows` are known by their products."""
    shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    origin = X.mean(axis=0) if weights is None else shares @ X
    variances, basis = _eigh(MappedRows(X, origin).product(shares))
    rows: Any = MappedRows(X, origin, basis)
    return Spectrum(rows, variances, basis, origin, True)


def _roots(weights: NDArray | None) -> NDArray | None:
    """Return ``(n P)^(1/2)`` as a column; None where all weights are equal."""
    return None if weights is None else np.sqrt(weights / weights.mean())[:, None]


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
    """Whether a kernel's space is that of fewer features than rows, but for a constant."""
    kernel, (n, d) = problem.kernel, problem.X.shape
    return kernel.name == "poly" and kernel.degree == 1 and d < n


def gram_by_features(problem: BinaryProblem) -> Gram:
    """Return the Gram matrix in float64, as rows of features where these are few.

    That is where a kernel has rows whose inner products are its values, shape (n, k) with
    ``k <= n / ROWS_PER_FEATURE``.
    """
    kernel, X = problem.kernel, problem.X
    n, d = X.shape
    flat = is_flat(problem) and isinstance(X, np.ndarray)
    if not (flat or kernel.name == "linear") or d + flat > n // ROWS_PER_FEATURE:
        return np.asarray(problem.gram, dtype=np.float64)
    if flat:
        return FeatureGram(np.hstack([np.ones((n, 1)), X]) / np.sqrt(kernel.divisor))
    return FeatureGram(X)


def _first_degree(problem: BinaryProblem, roots: NDArray | None) -> Spectrum:
    """Return what `_kernel` does, at the cost of `_linear`."""
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
    # Expansions are centred, sum 0, but for rounding, which short directions would magnify.
    scaled = _times(roots, vectors)
    rest = _times(None if roots is None else roots**2, scaled.mean(axis=0))
    return Spectrum(
        _rows(vectors * lengths, roots), variances, (scaled - rest) / lengths, means, False
    )


def _eigh(matrix: NDArray, most: int | None = None) -> tuple[NDArray, NDArray]:
    """Return the eigenvalues that are not zero, descending, at most so many, and their vectors."""
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
    if len(values) < few:  # LAPACK misses some where many are equal
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[-few:], vectors[:, -few:]
    return values, vectors


def _eigh_lanczos(matrix: NDArray, few: int) -> tuple[NDArray, NDArray] | None:
    """Return what `_eigh_lapack` does; None where many eigenvalues are equal, zero for one."""
    from scipy.linalg.blas import dsymv
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    n = len(matrix)
    # memory bounds these products, and one triangle is half of it; a transpose is in BLAS's order
    triangle = matrix.T
    products = LinearOperator((n, n), lambda v: dsymv(1.0, triangle, v, lower=1), dtype=np.float64)
    # a start of its own, as the default is another one each time; the work of a reduction at most
    start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
    try:
        values, vectors = eigsh(products, few, which="LA", v0=start, maxiter=n // (2 * few))
    except ArpackError:
        return None
    order = np.argsort(values)
    return values[order], vectors[:, order]
