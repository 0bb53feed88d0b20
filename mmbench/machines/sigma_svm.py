"""The Sigma-SVM, an SVM with penalties on the norm of w and on the variance of decision values.

    min over w, b   (1-D)/2 ||w||^2 + D/2 ||Sigma^(1/2) w||^2 + C sum_i xi_i
    subject to      y_i (w'(phi(x_i) - mu) + b) >= 1 - xi_i,  xi_i >= 0                      (3)
    k_D(x, z) = (phi(x) - mu)' ((1-D) I + D Sigma)^-1 (phi(z) - mu)                          (4)

(Shivaswamy, Jebara; NIPS 21, 2008.) The mean mu and the covariance Sigma (divisor n) are of the
training rows of both classes. (3) is the SVM with the kernel (4), and `Fit.route` its algorithm:

    matrix          when                              cost
    inverse         nonlinear kernel, D < 1, no row   n^3 per D, one more n x n array; 4 to 7 times
                    weights, "auto" or "smo"          faster (benchmarks/routes.py, "inverse")
    decomposition   otherwise                         one kernel PCA for all D; no n x n array for
                                                      a linear SVM on features

With the centred Gram matrix Kc of n rows and ``s = n (1-D)/D``, the inverse is P in

    Kc ((1-D) I + D/n Kc)^-1 = (n/D) (I - s P),    P = (Kc + s I)^-1

and the coefficients of w are ``(n/D) P u`` for the dual variables u. Working sets would not help:
most rows are support vectors.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mmbench.allowance import check_time
from mmbench.kernels import CHUNK_ROWS
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import (
    Param,
    choice,
    class_weight,
    kernel_scaling,
    parameter,
    positive,
)
from mmbench.machines.base.problem import BinaryModel, BinaryProblem
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.variance import dual_bound, primal_objective
from mmbench.machines.kernel_pca import Spectrum, spectrum, spectrum_of_many
from mmbench.machines.svm import NATIVE, ROWS_PER_FEATURE, SVM, in_features, tolerance, train_svm
from mmbench.memory import TrainingSize
from mmbench.solvers.rows import MappedRows

#: Grid of D. The variances in Sigma are far smaller than 1, and D Sigma is small compared with
#: (1-D) I except for D near 1. Therefore the grid contains several values of D near 1.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)

#: The inverse P is used only if the mean eigenvalue of the centred Gram matrix Kc is at least
#: LEAST_EIGENVALUE_RATIO times ``s = n (1-D)/D``; otherwise ``I - s P`` loses its digits.
LEAST_EIGENVALUE_RATIO = 1e-7

#: The inverse P is used only if ``s = n (1-D)/D`` is at least LEAST_SHIFT times the trace of Kc;
#: otherwise the Cholesky factor of ``Kc + s I`` consists of rounding errors.
LEAST_SHIFT = 1e-9

#: For D = 1 and a nonlinear kernel, directions with at most LEAST_VARIANCE times the largest
#: variance are omitted: their coefficients would make sums lose half of their digits.
LEAST_VARIANCE = float(np.sqrt(np.finfo(float).eps))


class SigmaSVM(WeightedClassifier):
    """SVM with a penalty on the variance of its decision values, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of (3) at the returned w and
        b, and `bound` is the dual objective of (3) at a feasible point. The optimum lies between
        `bound` and `objective`. `n_support` is the number of rows with a non-zero dual variable.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of w over the training rows, for kernels other than ``linear``.
    support_, support_vectors_ : ndarray
        Indices and features of the rows with a non-zero coefficient, for kernels other than
        ``linear``. If D > 0, usually all training rows have non-zero coefficients, since each row
        contributes to Sigma.
    intercept_ : ndarray of shape (n_pairs,)
        Intercept ``b - w'mu`` of each pair, so that ``f(x) = w'phi(x) + intercept``.

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
        # float64 is needed, since rounding errors in directions of small variance are magnified if
        # D is near 1
        single_precision=False,
    )
    translation_invariant = True
    #: 6: before w = 0 is returned, smaller tolerances are tried.
    version: ClassVar[int] = 6
    #: linear 4: version 6 of ``linear`` in `SVM`.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 4, "poly": 1}
    gap_tolerance_factor = SVM.gap_tolerance_factor

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    D: float = parameter(
        0.5,
        Param(low=0, high=1),
        "Weight of the variance in (3), from 0 (the SVM on centred data) to 1 (the SVM on "
        "whitened data). At D = 1 the machine is affinely invariant, and Sigma is inverted in the "
        "directions with more than 1e-12 (with a kernel 1.5e-8) times the largest variance.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference", "libsvm", "sklearn", "clarabel"),
        '"smo" is sequential minimal optimisation on the kernel matrix of (4). "auto" is "smo", or '
        "an interior-point method without this matrix for a linear kernel, many rows and few "
        "features. The other solvers train the SVM with the kernel (4), as in `SVM`.",
    )
    tol: float = SVM.parameters["tol"]

    def bytes_needed(self, size: TrainingSize) -> float:
        if self._in_features(size, ROWS_PER_FEATURE):
            return size.rows(2) + size.covariances(3)
        # the Gram matrix, the centred Gram matrix and, with row weights, its eigenvectors, two
        # scaled copies of the eigenvectors, the matrix of (4), and the system of Newton steps
        weighted = size.weighted or self.class_weight is not None
        copies = 8 if weighted and self.kernel != "linear" else 5
        return self._gram_bytes(size, copies) + size.rows(2)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every grid point, with one kernel matrix of (4) for each value of D.

        For each D, trainings are in ascending order of C, and each training starts at the previous
        solution.
        """
        if any(set(point) - {"C", "D"} for point in points):
            return super().train_path(problem, points)
        penalties = [(point.get("D", self.D), point.get("C", self.C)) for point in points]
        solver, tol = self.solver, tolerance(self.tol, len(problem.y))
        weights = row_weights(problem, self.class_weight)
        decompose = problem.kernel.name == "linear" or solver in NATIVE or weights is not None
        models: dict[int, BinaryModel] = {}
        scatter = None
        for D in dict(penalties):
            started = time.perf_counter()
            modified = None if decompose else inverse_kernel(problem, D)
            if modified is None:
                if scatter is None:
                    if in_features(problem, solver):
                        scatter = spectrum_of_many(problem.X, weights)
                    else:
                        scatter = spectrum(problem, weights=weights)
                modified = spectral_kernel(problem, scatter, D)
            twin, original = modified
            costs = {k: C for k, (own, C) in enumerate(penalties) if own == D}
            start, shared = None, (time.perf_counter() - started) / len(costs)
            for k in sorted(costs, key=costs.__getitem__):
                C = costs[k] if weights is None else costs[k] * weights
                svm = train_svm(twin, C, solver, tol, start)
                start = svm.state
                model = models[k] = replace(original(svm), state=svm)
                if self._searching:
                    continue
                objective = primal_objective(problem, model, 1 - D, D, costs[k], weights)
                bound = svm.fit.bound
                if D < 1:
                    dual = replace(svm, coef=svm.state.u, w=svm.state.weights)  # unscaled u and w
                    lower = dual_bound(problem, svm.state.u, original(dual), 1 - D, D, weights)
                    # if `lower` is nan, this order of the arguments of min and max gives 0
                    bound = max(0.0, min(lower, bound))
                seconds = svm.fit.seconds + shared
                fit = replace(svm.fit, objective=objective, bound=bound, seconds=seconds)
                models[k] = replace(model, fit=fit)
        return [models[k] for k in range(len(penalties))]


#: The training problem with the kernel (4), and a function that converts its model to a model with
#: the kernel of the data.
Modified = tuple[BinaryProblem, Callable[[BinaryModel], BinaryModel]]


def inverse_kernel(problem: BinaryProblem, D: float) -> Modified | None:
    """Return the training problem with the kernel matrix of (4), computed by a matrix inverse.

    Returns None if the inverse is inaccurate, for example for D = 1.
    """
    given = problem.gram
    n, means = len(given), given.mean(axis=0, dtype=np.float64)
    # LAPACK needs a column-major array, and the transpose of the symmetric matrix K is column-major
    matrix = np.array(given.T, dtype=np.float64, order="F")
    matrix -= means
    matrix -= (means - means.mean())[:, None]

    def original(svm: BinaryModel) -> BinaryModel:
        coef: Any = svm.coef
        if D > 0:
            coef = ((n / D) * coef - matrix.T @ coef) * (D / (n * (1 - D)))
            # the sum of the coefficients is zero in exact arithmetic: the sum of u is zero, and the
            # vector of ones is an eigenvector of P
            coef -= coef.mean()
        return BinaryModel(svm.intercept - float(means @ coef), svm.fit, coef=coef)

    if D == 0:
        # the centred Gram matrix is symmetric only up to rounding errors, since column means are
        # subtracted before row means
        _mirror(matrix)
        return BinaryProblem(problem.X, problem.y, problem.kernel, matrix.T), original
    trace, s = float(np.trace(matrix)), n * (1 - D) / D
    if s < LEAST_SHIFT * trace or trace < LEAST_EIGENVALUE_RATIO * n * s:
        return None
    matrix[np.diag_indices(n)] += s
    check_time(float(n) ** 3)
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    matrix, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    matrix *= -s * n / D
    matrix[np.diag_indices(n)] += n / D
    _mirror(matrix)  # LAPACK computes only the lower triangle of the inverse
    return BinaryProblem(problem.X, problem.y, problem.kernel, matrix.T), original


def _mirror(matrix: NDArray) -> None:
    """Copy the lower triangle of a matrix to its upper triangle."""
    for start in range(0, len(matrix), CHUNK_ROWS):
        own = slice(start, start + CHUNK_ROWS)
        corner = np.tril(matrix[own, own])
        matrix[own, own] = corner + np.tril(corner, -1).T
        matrix[own, start + CHUNK_ROWS :] = matrix[start + CHUNK_ROWS :, own].T


def spectral_kernel(problem: BinaryProblem, scatter: Spectrum, D: float) -> Modified:
    """Return the training problem with the kernel (4), from the eigendecomposition of Sigma."""
    inverse = (1 - D) + D * scatter.variances
    least = LEAST_VARIANCE * inverse.max() if D == 1 and not scatter.linear else 0.0
    # diagonal of ((1-D) I + D Sigma)^-1, or of the pseudo-inverse if D = 1
    metric = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=inverse > least)
    root, X = np.sqrt(metric), problem.X

    def original(svm: BinaryModel) -> BinaryModel:
        w = metric * (scatter.rows.T @ svm.coef) if svm.w is None else root * svm.w
        weights, intercept = scatter.original(w, svm.intercept)
        return BinaryModel(intercept, svm.fit, **{"w" if scatter.linear else "coef": weights})

    if isinstance(scatter.rows, MappedRows):
        rows: Any = MappedRows(X, scatter.origin, scatter.basis * root)
        return BinaryProblem(rows, problem.y, problem.kernel), original
    half = scatter.rows * root
    return BinaryProblem(X, problem.y, problem.kernel, half @ half.T), original
