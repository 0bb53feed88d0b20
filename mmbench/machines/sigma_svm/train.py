"""Training of binary Sigma-SVMs: the kernel (4), an SVM with it, and the way back to the data.

In the coordinates in which Sigma is diagonal (kernel PCA, see `mmbench.machines.kernel_pca`) the
matrix of (4) is diagonal too, so one decomposition of the centred Gram matrix serves every D and C.
A training that is not part of a search takes an inverse instead (`inverse`).
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.kernel_pca import Spectrum, is_flat, spectrum, spectrum_of_many
from mmbench.machines.linear_route import in_features
from mmbench.machines.problem import BinaryModel, BinaryProblem
from mmbench.machines.sigma_svm.inverse import inverse_kernel
from mmbench.machines.svm import train_svm
from mmbench.solvers.rows import MappedRows

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
