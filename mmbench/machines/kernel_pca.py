"""Principal components: coordinates in which the scatter matrix of the training rows is diagonal.

    S = (1/n) sum_i (x_i - xbar)(x_i - xbar)' = U diag(s) U',    z(x) = U'(x - xbar)

Row weights p_i with sum 1 replace 1/n. With a nonlinear kernel, the Gram matrix Kc of the centred
rows and P = diag(p), ``P^(1/2) Kc P^(1/2) = V diag(s) V'``, and coordinate k of row i is
``sqrt(s_k / p_i) V_ik``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from mmbench.allowance import check_time
from mmbench.machines.base.problem import BinaryProblem
from mmbench.solvers.ridge import FeatureGram, Gram
from mmbench.solvers.rows import MappedRows

#: Directions are omitted if their variance is at most NO_VARIANCE times the largest variance.
NO_VARIANCE = 1e-12

#: Variances are considered equal if their relative difference is at most TIE. Rounding errors turn
#: the principal directions of so close variances.
TIE = 1e-8

#: `gram_by_features` returns the features instead of the Gram matrix if the kernel is linear and
#: there are at least ROWS_PER_FEATURE rows per feature.
ROWS_PER_FEATURE = 2

#: If at most the fraction PARTIAL_SHARE of all eigenvectors is requested, LAPACK computes only the
#: requested eigenvectors.
PARTIAL_SHARE = 0.25


@dataclass(frozen=True)
class Spectrum:
    """The training rows in uncorrelated coordinates, and the inverse transformation."""

    #: Coordinates z of the rows, shape (n, k), in the order of descending variances.
    rows: NDArray
    #: Variances s of the coordinates, descending, shape (k,).
    variances: NDArray
    #: For a linear kernel, the directions U, shape (n_features, k). For other kernels, the matrix
    #: ``P^(1/2) V / sqrt(s)``, shape (n, k). Column k contains the coefficients of the training
    #: rows in principal direction k.
    basis: NDArray
    #: For a linear kernel, the mean of the rows, shape (n_features,). For other kernels, the mean
    #: of the rows of the kernel matrix, shape (n,).
    origin: NDArray
    linear: bool

    def first(self, n_components: int | float | None) -> Spectrum:
        """Return the first components.

        If `n_components` is at least 1, it is the number of returned components. If `n_components`
        is below 1, it is the fraction of the total variance that the returned components explain.
        None stands for all components. Components of equal variance are kept together, since their
        directions depend on the order of the rows.

        Examples
        --------
        >>> three = Spectrum(np.eye(3), np.array([6.0, 3.0, 1.0]), np.eye(3), np.zeros(3), True)
        >>> [len(three.first(wanted).variances) for wanted in (None, 2, 0.5, 0.95)]
        [3, 2, 1, 3]
        >>> equal = Spectrum(np.eye(3), np.array([6.0, 3.0, 3.0]), np.eye(3), np.zeros(3), True)
        >>> [len(equal.first(wanted).variances) for wanted in (1, 2, 0.6)]
        [1, 3, 3]
        """
        if n_components is None:
            return self
        k = int(n_components)
        if n_components < 1:
            shares = np.cumsum(self.variances) / max(self.variances.sum(), 1e-300)
            k = int(np.searchsorted(shares, n_components * (1 - 1e-12))) + 1
        k += int(np.argmin(np.append(self._tied[k - 1 :], False)))
        if k >= len(self.variances):
            return self
        return Spectrum(
            self.rows[:, :k], self.variances[:k], self.basis[:, :k], self.origin, self.linear
        )

    @property
    def _tied(self) -> NDArray:
        """Whether the variance of each component, except the last, equals the next variance."""
        return self.variances[1:] >= (1 - TIE) * self.variances[:-1]

    def original(self, w: NDArray, b: float) -> tuple[NDArray, float]:
        """Convert ``f(x) = w'z(x) + b`` to a function of the features or of the kernel values.

        Returns weights and a bias. For a linear kernel, the weights belong to the features. For
        other kernels, the weights are the coefficients of the kernel values ``k(x_i, x)``.
        """
        weights = self.basis @ w
        return weights, b - float(self.origin @ weights)


def spectrum(
    problem: BinaryProblem, n_components: int | None = None, weights: NDArray | None = None
) -> Spectrum:
    """Return the eigendecomposition of the total scatter matrix of all training rows.

    With a nonlinear kernel and `n_components` of at most PARTIAL_SHARE times the number of rows,
    only ``n_components + 1`` components are computed, unless the last two have equal variances (see
    `Spectrum.first`). The row weights need not sum to 1. Directions with zero variance are omitted;
    if all rows are equal, there is one coordinate, which is zero.
    """
    s = np.ones(len(problem.y)) if weights is None else weights / weights.mean()
    roots = np.sqrt(s)[:, None]  # the square roots of n p_i, with row weights p_i of sum 1
    if problem.kernel.name == "linear":
        found = _linear(problem.X, weights, roots)
    else:
        gram, few = np.asarray(problem.gram, dtype=np.float64), n_components and n_components + 1
        found = _kernel(gram, weights, roots, few)
        if few and len(found.variances) == few and found._tied[-1]:
            found = _kernel(gram, weights, roots, None)
        found = found.first(n_components)
    if len(found.variances):
        return found
    nothing = np.zeros((len(problem.X), 1)), np.zeros(1), np.zeros((len(found.basis), 1))
    return Spectrum(*nothing, found.origin, found.linear)


def spectrum_of_many(X: NDArray, weights: NDArray | None = None) -> Spectrum:
    """Compute `spectrum` for a linear kernel and many rows with few features.

    `Spectrum.rows` is a linear operator, so that the coordinates are not stored.
    """
    shares = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    origin = np.average(X, axis=0, weights=weights)
    variances, basis = _eigh(MappedRows(X, origin).product(shares))
    rows: Any = MappedRows(X, origin, basis)
    return Spectrum(rows, variances, basis, origin, True)


def _linear(X: NDArray, weights: NDArray | None, roots: NDArray) -> Spectrum:
    origin = np.average(X, axis=0, weights=weights)
    rows = X - origin
    scaled = roots * rows
    n, d = rows.shape
    if d <= n:
        with np.errstate(over="ignore"):  # `_eigh` raises ValueError if values are not finite
            scatter = scaled.T @ scaled / n
        variances, basis = _eigh(scatter)
        return Spectrum(rows @ basis, variances, basis, origin, True)
    variances, vectors = _eigh(scaled @ scaled.T / n)
    lengths = np.sqrt(n * variances)
    basis = scaled.T @ (vectors / lengths)
    return Spectrum(vectors * lengths / roots, variances, basis, origin, True)


def gram_by_features(problem: BinaryProblem) -> Gram:
    """Return the float64 Gram matrix, or a `FeatureGram` for a linear kernel with few features."""
    n, d = problem.X.shape
    few = problem.kernel.name == "linear" and d <= n // ROWS_PER_FEATURE
    return FeatureGram(problem.X) if few else np.asarray(problem.gram, dtype=np.float64)


def _kernel(
    gram: NDArray, weights: NDArray | None, roots: NDArray, n_components: int | None
) -> Spectrum:
    means = np.average(gram, axis=0, weights=weights)
    n = len(gram)
    centred = gram - means
    centred -= means[:, None]
    centred += np.average(means, weights=weights)
    centred *= roots
    centred *= roots.T
    centred /= n
    variances, vectors = _eigh(centred, n_components)
    lengths = np.sqrt(n * variances)
    # in exact arithmetic, each column of `scaled` has the sum 0; the rounding error of the sum is
    # removed, since the division by small `lengths` would amplify the error
    scaled = roots * vectors
    basis = (scaled - roots**2 * scaled.mean(axis=0)) / lengths
    return Spectrum(vectors * lengths / roots, variances, basis, means, False)


def _eigh(matrix: NDArray, n_components: int | None = None) -> tuple[NDArray, NDArray]:
    """Return the non-zero eigenvalues in descending order, and their eigenvectors.

    If `n_components` is small (see PARTIAL_SHARE), only the largest eigenvalues are computed.
    """
    if not np.isfinite(matrix).all():
        raise ValueError("the scatter of the training rows is not finite; scale the data")
    n = len(matrix)
    few = n_components if n_components is not None and n_components <= PARTIAL_SHARE * n else n
    check_time((4.0 if few == n else 4 / 3) * n**3)
    wanted = [n - few, n - 1] if few < n else None
    values, vectors = eigh(matrix, driver="evr", subset_by_index=wanted, check_finite=False)
    if len(values) < few:  # the driver evr may miss some of several equal eigenvalues
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        values, vectors = values[-few:], vectors[:, -few:]
    kept = np.flatnonzero(values > NO_VARIANCE * max(values[-1], 0.0))[::-1]
    return values[kept], vectors[:, kept]
