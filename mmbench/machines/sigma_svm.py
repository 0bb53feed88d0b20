"""The Sigma-SVM's kernel at one D by an inverse: a decomposition takes ten times as long.

With Kc the centred Gram matrix of n rows and ``s = n (1-D)/D`` the kernel (4) between these rows is

    Kc ((1-D) I + D/n Kc)^-1 = (n/D) (I - s P),    P = (Kc + s I)^-1

and the machine with the multipliers u has the coefficients ``(n/D) P u`` over the rows. A Cholesky
factor and the inverse from it take n^3 operations, and one array beside the Gram matrix (5 to 8
times faster: benchmarks/sigma_inverse.py).

Training of binary Sigma-SVMs: the kernel (4), an SVM with it, and the way back to the data.

In the coordinates in which Sigma is diagonal (kernel PCA, see `mmbench.machines.kernel_pca`) the
matrix of (4) is diagonal too, so one decomposition of the centred Gram matrix serves every D and C.
A training that is not part of a search takes an inverse instead (`inverse`).

Sigma-SVMs of all folds of a search, from one decomposition of the rows of all.

A fold trains on n of the N rows and leaves out the rows h. In coordinates z about the mean of all
rows, in which ``Z'Z`` is diagonal (see `kernel_pca`), the covariance Sigma of those n rows obeys

    (1-D) I + D Sigma = P - (D/n) Z_h' (I + 11'/n) Z_h,    P = (1-D) I + (D/n) Z'Z

so that by Woodbury's formula the kernel (4) of the fold, but for what its bias takes up, is

    B + B_h' S^-1 B_h,    B = Z P^-1 Z',    S = (n/D) (I - 11'/N) - B_hh

with B_h the rows h of B. B serves all folds; what is left for each is a product with its few rows
h. A search wants no more digits than float32 has, and gets no more.

The Sigma-SVM: an SVM that pays for the spread of its decisions as well as for its norm.

    min over w, b   (1-D)/2 ||w||^2 + D/2 ||Sigma^(1/2) w||^2 + C sum_i xi_i
    subject to      y_i (w'(phi(x_i) - mu) + b) >= 1 - xi_i,  xi_i >= 0                      (3)

with mu and Sigma the mean and the covariance (1/n) of all training rows, whatever their class. It
is the SVM with the kernel

    k_D(x, z) = (phi(x) - mu)' ((1-D) I + D Sigma)^-1 (phi(z) - mu).                         (4)

With weights s_i of the rows the penalty on xi_i is ``C s_i`` in (3), and mu and Sigma are weighted:
``Sigma = sum_i s_i (phi(x_i) - mu)(phi(x_i) - mu)' / sum_i s_i``. How it is trained is in
`mmbench.machines.sigma_svm`.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.

The Sigma-SVM.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from mmbench.kernels import CHUNK_ROWS
from mmbench.kernels.matrix import submatrix
from mmbench.machines.base.estimator import (
    WeightedClassifier,
    class_weight,
    kernel_scaling,
    row_weights,
)
from mmbench.machines.base.parameters import Param, choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, PartProblem
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.kernel_pca import Spectrum, is_flat, spectrum, spectrum_of_many
from mmbench.machines.svm import ROWS_PER_FEATURE, SVM, in_features, tolerance, train_svm
from mmbench.solvers.rows import MappedRows

#: Least mean eigenvalue of Kc relative to s: below, ``I - s P`` is a difference of near equals.
LEAST_EIGENVALUE_RATIO = 1e-7

#: Least s relative to the trace of Kc: below, a Cholesky factor is one of rounding errors.
LEAST_SHIFT = 1e-9


@dataclass(frozen=True)
class InverseKernel:
    """The matrix of (4) at one D, and the way back to the kernel of the data."""

    #: Of (4). Shape (n, n).
    gram: NDArray
    #: Of the columns of the kernel's own matrix. Shape (n,).
    means: NDArray
    D: float

    def original(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return coefficients over the rows and the intercept of multipliers u and a bias."""
        n, D = len(u), self.D
        weights = u
        if D > 0:
            weights = ((n / D) * u - self.gram @ u) * (D / (n * (1 - D)))
            weights -= weights.mean()  # 1'u = 0, and 1 is an eigenvector of P
        return weights, b - float(self.means @ weights)


def inverse_kernel(problem: BinaryProblem, D: float) -> InverseKernel | None:
    """Return (4) between the training rows; None where rounding would count, as at D = 1.

    Parameters
    ----------
    problem : BinaryProblem
        Of two rows at least.
    D : float
        From 0 to 1.
    """
    given = problem.gram
    n, means = len(given), given.mean(axis=0, dtype=np.float64)
    # The transpose of a symmetric array is itself, in the order of LAPACK.
    matrix = np.array(given.T, dtype=np.float64, order="F")
    matrix -= means
    matrix -= (means - means.mean())[:, None]
    if D == 0:
        _mirror(matrix)  # what was taken off in two steps is not symmetric to the last digit
        return InverseKernel(matrix.T, means, D)
    trace, s = float(np.trace(matrix)), n * (1 - D) / D
    if s < LEAST_SHIFT * trace or trace < LEAST_EIGENVALUE_RATIO * n * s:
        return None
    matrix[np.diag_indices(n)] += s
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse *= -s * n / D
    inverse[np.diag_indices(n)] += n / D
    _mirror(inverse)  # LAPACK leaves the upper triangle alone
    return InverseKernel(inverse.T, means, D)


def _mirror(matrix: NDArray) -> None:
    """Copy the lower triangle to the upper one."""
    for start in range(0, len(matrix), CHUNK_ROWS):
        own = slice(start, start + CHUNK_ROWS)
        corner = np.tril(matrix[own, own])
        matrix[own, own] = corner + np.tril(corner, -1).T
        matrix[own, start + CHUNK_ROWS :] = matrix[start + CHUNK_ROWS :, own].T


#: In float32 (4) is a difference of two terms, if these are at most so much larger, by trace.
CANCELLATION_LIMIT = 1.5

#: Share of the largest variance that a direction of a kernel's space has to have at D = 1. With
#: less, the coefficients over the rows are so large that sums of them lose half of their digits.
LEAST_VARIANCE = float(np.sqrt(np.finfo(float).eps))


def train_sigma_svm(
    problem: BinaryProblem,
    penalties: Sequence[tuple[float, float]],
    solver: str = "auto",
    tol: float = 1e-5,
    single: bool = False,
    weights: NDArray | None = None,
) -> list[BinaryModel]:
    """Train binary Sigma-SVMs at several (D, C), each D from its smallest C up.

    Parameters
    ----------
    problem : BinaryProblem
    penalties : sequence of (D, C)
    solver : {"auto", "smo", "reference"}, default="auto"
    tol : float, default=1e-5
    single : bool, default=False
        Whether (4) may be rounded to float32; then no certificate is of the digits of `tol`.
    weights : ndarray of shape (n,), optional
        Of the rows; these take decompositions in float64.

    Returns
    -------
    list of BinaryModel
        One a pair of penalties, in their order. `state` is the SVM with the kernel (4).
    """
    wanted, models = dict(enumerate(penalties)), {}
    cheap = problem.kernel.name == "linear" or is_flat(problem)  # to decompose
    if not (single or cheap or solver == "reference" or weights is not None):
        models = train_by_inverse(problem, wanted, solver, tol)
    left = {k: pair for k, pair in wanted.items() if k not in models}
    if left:
        single = single and weights is None
        models |= train_by_decomposition(problem, left, solver, tol, single, weights)
    return [models[k] for k in wanted]


def train_by_inverse(
    problem: BinaryProblem, penalties: Mapping[int, tuple[float, float]], solver: str, tol: float
) -> dict[int, BinaryModel]:
    """Return the machines at several (D, C) by key, but for a D that has no `inverse_kernel`."""
    models: dict[int, BinaryModel] = {}
    for D in dict(penalties.values()):
        started = time.perf_counter()
        kernel = inverse_kernel(problem, D)
        if kernel is None:
            continue
        points = {k: C for k, (own, C) in penalties.items() if own == D}
        shared = (time.perf_counter() - started) / len(points)
        for k, svm in along_costs(with_gram(problem, kernel.gram), points, solver, tol):
            assert svm.coef is not None
            weights, intercept = kernel.original(svm.coef, svm.intercept)
            fit = replace(svm.fit, seconds=svm.fit.seconds + shared)
            model = BinaryModel(intercept=intercept, fit=fit, coef=weights, state=svm)
            models[k] = certified(problem, model, *penalties[k])
    return models


def train_by_decomposition(
    problem: BinaryProblem,
    penalties: Mapping[int, tuple[float, float]],
    solver: str,
    tol: float,
    single: bool = False,
    weights: NDArray | None = None,
) -> dict[int, BinaryModel]:
    """Return the machines at several (D, C) by key, from one decomposition."""
    started = time.perf_counter()
    many = in_features(problem, solver)
    scatter = spectrum_of_many(problem.X, weights) if many else spectrum(problem, weights=weights)
    centred = centred_gram(scatter, problem.gram) if single and not scatter.linear else None
    shared = (time.perf_counter() - started) / len(penalties)
    models: dict[int, BinaryModel] = {}
    for D in dict(penalties.values()):
        inverse = inverse_metric(scatter, D)
        if many:
            modified = whitened(problem, scatter, inverse)
        elif centred is None:
            modified = with_gram(problem, sigma_gram(scatter, inverse))
        else:
            modified = with_gram(problem, rounded_gram(scatter, inverse, centred))
        points = {k: C for k, (own, C) in penalties.items() if own == D}
        for k, svm in along_costs(modified, points, solver, tol, weights):
            model = _in_the_original_space(scatter, inverse, svm, shared)
            models[k] = model if single else certified(problem, model, *penalties[k], weights)
    return models


def certified(
    problem: BinaryProblem, model: BinaryModel, D: float, C: float, weights: NDArray | None = None
) -> BinaryModel:
    """Return a model with the objective (3) of its own coefficients.

    That of the SVM with the kernel (4) is another one where their way back to the kernel of the
    data loses digits, as near D = 1 on a singular Gram matrix.
    """
    if model.w is None:
        products = problem.gram @ model.coef
        norm = float(model.coef @ products)
    else:
        products, norm = problem.X @ model.w, float(model.w @ model.w)
    f = products + model.intercept
    slack = np.maximum(0.0, 1.0 - problem.y * f)
    variance = np.average((f - np.average(f, weights=weights)) ** 2, weights=weights)
    total = slack.sum() if weights is None else weights @ slack
    objective = 0.5 * ((1 - D) * norm + D * float(variance)) + C * float(total)
    return replace(model, fit=replace(model.fit, objective=objective))


def with_gram(problem: BinaryProblem, gram: NDArray) -> BinaryProblem:
    """Return a problem with another matrix in place of its kernel's."""
    return BinaryProblem(problem.X, problem.y, problem.kernel, gram)


def whitened(problem: BinaryProblem, scatter: Spectrum, inverse: NDArray) -> BinaryProblem:
    """Return the problem in coordinates whose inner products are (4), of a linear kernel."""
    rows: Any = MappedRows(problem.X, scatter.origin, scatter.basis * np.sqrt(inverse))
    return BinaryProblem(rows, problem.y, problem.kernel)


def along_costs(
    problem: BinaryProblem,
    points: Mapping[int, float],
    solver: str = "auto",
    tol: float = 1e-5,
    weights: NDArray | None = None,
) -> Iterator[tuple[int, BinaryModel]]:
    """Yield the key of every point and the SVM at its C."""
    start = None
    for k in sorted(points, key=points.__getitem__):
        C = points[k] if weights is None else points[k] * weights
        svm = train_svm(problem, C, solver, tol, start)
        start = svm.state
        yield k, svm


def inverse_metric(scatter: Spectrum, D: float) -> NDArray:
    """Return the diagonal of ``((1-D) I + D Sigma)^-1`` in the coordinates of `scatter`.

    At D = 1 it is the pseudo-inverse, which is 0 where a kernel has no variance to speak of.
    """
    metric = (1 - D) + D * scatter.variances
    least = LEAST_VARIANCE * metric.max() if D == 1 and not scatter.linear else 0.0
    return np.divide(1.0, metric, out=np.zeros_like(metric), where=metric > least)


def sigma_gram(scatter: Spectrum, inverse: NDArray) -> NDArray:
    """Return the matrix of (4), shape (n_samples, n_samples), from the `inverse_metric`."""
    half = scatter.rows * np.sqrt(inverse)
    return half @ half.T


def centred_gram(scatter: Spectrum, gram: NDArray) -> NDArray:
    """Return the centred Gram matrix of a kernel in float32, from the matrix and its scatter."""
    means = scatter.origin
    return (gram - means - (means - means.mean())[:, None]).astype(np.float32)


def rounded_gram(scatter: Spectrum, inverse: NDArray, centred: NDArray) -> NDArray:
    """Return the matrix of (4) in float32, from as few directions as float32 can tell.

    With c the largest number of `inverse` it is ``c Z Z' - Z diag(c - inverse) Z'``. Directions of
    little variance hardly count in the second term, and are left out where they add less than the
    rounding of the largest eigenvalue. `centred` is ``Z Z'`` in float32.
    """
    squares = len(scatter.rows) * scatter.variances
    c = inverse.max()
    if c * squares.sum() > CANCELLATION_LIMIT * (inverse @ squares):
        c = 0.0  # the difference would have too few digits left
    weights = inverse - c
    rounding = np.finfo(np.float32).eps * (inverse * squares).max()
    kept = np.count_nonzero(np.abs(weights) * squares > rounding)  # variances descend
    half = np.empty((len(centred), kept), np.float32)
    scale = np.sqrt(np.abs(weights[:kept]))
    np.multiply(scatter.rows[:, :kept], scale, out=half, casting="same_kind")
    product = half @ half.T
    return product if c == 0 else np.float32(c) * centred - product


def _in_the_original_space(
    scatter: Spectrum, inverse: NDArray, svm: BinaryModel, shared: float
) -> BinaryModel:
    """Return the machine over the kernel of the data: ``w = ((1-D) I + D Sigma)^-1 Z'u``."""
    w = inverse * (scatter.rows.T @ svm.coef) if svm.w is None else np.sqrt(inverse) * svm.w
    weights, intercept = scatter.original(w, svm.intercept)
    return BinaryModel(
        intercept=intercept,
        fit=replace(svm.fit, seconds=svm.fit.seconds + shared),
        state=svm,
        **{"w" if scatter.linear else "coef": weights},
    )


#: Folds share a decomposition if each leaves out at most this share of the rows: with more, that of
#: all rows takes longer than those of the folds.
LARGEST_HELD_OUT_SHARE = 0.25

#: Largest eigenvalue of ``D Sigma / (1-D)`` for which float32 is enough: along the direction of
#: most variance a coefficient is a difference of decisions, multiplied by as much.
LARGEST_MAGNIFICATION = 1e3


def shared_folds(problems: Sequence[BinaryProblem]) -> list[PartProblem] | None:
    """Return the problems if they are folds of one stored matrix that should share.

    They have most rows in common, and no cheaper decomposition each (see `is_flat`).
    """
    parts = [problem for problem in problems if isinstance(problem, PartProblem)]
    if len(parts) < max(2, len(problems)) or any(map(is_flat, parts)):
        return None
    if any(part.whole is not parts[0].whole for part in parts):
        return None
    n_rows = len(np.unique(np.concatenate([part.rows for part in parts])))
    return (
        parts
        if min(len(part.rows) for part in parts) >= (1 - LARGEST_HELD_OUT_SHARE) * n_rows
        else None
    )


def train_folds(
    parts: Sequence[PartProblem], penalties: Sequence[tuple[float, float]], tol: float
) -> list[list[BinaryModel]]:
    """Train every fold at several (D, C), each D from its smallest C up.

    Parameters
    ----------
    parts : sequence of PartProblem
        Folds of one stored matrix.
    penalties : sequence of (D, C)
    tol : float

    Returns
    -------
    list of list of BinaryModel
        For each fold one a pair of penalties. `state` is the SVM with the kernel (4).
    """
    started = time.perf_counter()
    rows = np.unique(np.concatenate([part.rows for part in parts]))
    whole = parts[0].whole
    gram = whole.values if len(rows) == whole.n else whole.part(rows, rows)
    gram = gram.astype(np.float64, copy=False)
    places = [np.searchsorted(rows, part.rows) for part in parts]
    scatter = spectrum(BinaryProblem(gram, np.ones(len(rows)), parts[0].kernel, gram))
    centred = centred_gram(scatter, gram)
    shared = (time.perf_counter() - started) / (len(penalties) * len(parts))
    shares = np.zeros((len(rows), len(parts)))
    for fold, own in enumerate(places):
        shares[own, fold] = 1 / len(own)
    origins = [column[own] for column, own in zip((gram @ shares).T, places, strict=True)]
    models: list[dict[int, BinaryModel]] = [{} for _ in parts]
    for D in dict(penalties):
        points = {k: C for k, (own, C) in enumerate(penalties) if own == D}
        if D * scatter.variances[0] >= LARGEST_MAGNIFICATION * (1 - D):  # so always at D = 1
            for fold, part in enumerate(parts):
                alone = train_sigma_svm(part, [penalties[k] for k in points], tol=tol)
                models[fold] |= dict(zip(points, alone, strict=True))
            continue
        for n in {len(own) for own in places}:
            inverse = 1 / ((1 - D) + (D * len(rows) / n) * scatter.variances)
            common = rounded_gram(scatter, inverse, centred)
            for fold in (fold for fold, own in enumerate(places) if len(own) == n):
                own, part = places[fold], parts[fold]
                kernel = _of_fold(common, own, D)
                for k, svm in along_costs(with_gram(part, kernel), points, tol=tol):
                    models[fold][k] = _expanded(svm, D, origins[fold], shared)
    return [[fold[k] for k in range(len(penalties))] for fold in models]


def _of_fold(common: NDArray, own: NDArray, D: float) -> NDArray:
    """Return the matrix of (4) for a fold that trains on the rows `own`, from B of all rows."""
    held = np.setdiff1d(np.arange(len(common)), own)
    kernel = submatrix(common, own, own)
    if D == 0 or not len(held):
        return kernel
    scale = len(own) / D
    small = -submatrix(common, held, held).astype(np.float64)
    small -= scale / len(common)
    small[np.diag_indices_from(small)] += scale
    factor = np.linalg.cholesky(small).astype(kernel.dtype)
    across = submatrix(common, own, held).T  # in the order of memory that it is solved in
    half = solve_triangular(factor, across, lower=True, overwrite_b=True, check_finite=False)
    kernel += half.T @ half
    return kernel


def _expanded(svm: BinaryModel, D: float, origin: NDArray, shared: float) -> BinaryModel:
    """Return the machine over the kernel of the data, whose columns have the means `origin`.

    ``((1-D) I + D Sigma) w = Z'u`` and ``Sigma w = Z'(f - mean f) / n`` give the coefficients
    ``(u - D/n (f - mean f)) / (1-D)`` of w, with f the decisions at the rows of Z.
    """
    assert svm.coef is not None
    decisions = svm.state.f
    mean = float(decisions.mean())
    coef = (svm.coef - D / len(origin) * (decisions - mean)) / (1 - D)
    return BinaryModel(
        intercept=mean - float(origin @ coef),
        fit=replace(svm.fit, seconds=svm.fit.seconds + shared),
        coef=coef,
        state=svm,
    )


#: Most of the effect lies near D = 1: variances are small numbers beside the 1 of the identity.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)

#: Tolerance from which on a search rounds (4) to float32.
SINGLE_PRECISION_TOLERANCE = 1e-4


class SigmaSVM(WeightedClassifier):
    """SVM with a penalty on the spread of its decisions, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair. `objective` is (3) at the returned w and b, `bound` its dual
        at a feasible point, so the optimum lies between them. `n_support` counts the rows with a
        multiplier.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of w over the training rows (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient: all, since each has a part in Sigma (``rbf``, ``poly``).
    intercept_ : ndarray of shape (n_pairs,)
        ``b - w'mu`` of each pair: ``f(x) = w'phi(x) + intercept``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import SigmaSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SigmaSVM(C=10, D=0.9, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.96
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    search_space: ClassVar[SearchSpace] = SVM.search_space.extended(
        {"D": ("D", SHARES)},
        prefer={**SVM.search_space.prefer, "D": "small"},
        # Near D = 1 directions of little variance are blown up, and the rounding of the matrix that
        # they are found in; that of (4) itself is not.
        single_precision=False,
    )
    # The matrix, centred, its vectors, and these scaled in two ways. In a search they are of the
    # rows of all folds, whose square is up to 16/9 of that of a fold's.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(
        gram_copies=9,
        linear_gram_copies=3,
        linear_row_copies=2,
        rows_per_feature=ROWS_PER_FEATURE,
    )
    translation_invariant = True
    kernel_versions = SVM.kernel_versions
    gap_tolerance_factor = SVM.gap_tolerance_factor
    version: ClassVar[int] = 2

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    D: float = parameter(
        0.5,
        Param(low=0, high=1),
        "From 0, the SVM on centred data, to 1, the SVM on whitened data. There Sigma is inverted "
        "where the training rows vary (with a kernel, by more than 1.5e-8 of the largest "
        "variance), and the machine is affinely invariant.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" takes pairwise steps on the matrix of (4); "auto" does too, but for a linear kernel '
        "and many rows of few features, which an interior point solves without that matrix; "
        '"reference" is libsvm.',
    )
    tol: float = SVM.parameters["tol"]

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        weights, tol = row_weights(problem, self.class_weight), tolerance(self.tol, len(problem.y))
        penalties = [(self.D, self.C)]
        return train_sigma_svm(problem, penalties, self.solver, tol, weights=weights)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; one decomposition serves them all."""
        if any(set(point) - {"C", "D"} for point in points):
            return super().train_path(problem, points)
        single = self.tol >= SINGLE_PRECISION_TOLERANCE
        return train_sigma_svm(
            *(problem, self._penalties(points), self.solver, self.tol, single),
            row_weights(problem, self.class_weight),
        )

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold; one decomposition serves all folds of a search."""
        problems = list(problems)
        search = self.solver == "auto" and self.tol >= SINGLE_PRECISION_TOLERANCE
        parts = shared_folds(problems) if search and self.class_weight is None else None
        if parts is None or any(set(point) - {"C", "D"} for point in points):
            return super().train_folds(problems, points)
        return iter(train_folds(parts, self._penalties(points), self.tol))

    def _penalties(self, points: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
        """Return D and C at every point."""
        return [(point.get("D", self.D), point.get("C", self.C)) for point in points]
