"""The Sigma-SVM: an SVM that pays for the spread of its decisions as well as for its norm.

    min over w, b   (1-D)/2 ||w||^2 + D/2 ||Sigma^(1/2) w||^2 + C sum_i xi_i
    subject to      y_i (w'(phi(x_i) - mu) + b) >= 1 - xi_i,  xi_i >= 0                      (3)

with mu and Sigma the mean and the covariance (1/n) of all training rows, whatever their class. It
is the SVM with the kernel

    k_D(x, z) = (phi(x) - mu)' ((1-D) I + D Sigma)^-1 (phi(z) - mu).                         (4)

In the coordinates in which Sigma is diagonal (kernel PCA, see `spectrum`) the matrix of (4) is
diagonal too, so one decomposition of the centred Gram matrix serves every D and C. A training that
is not part of a search takes an inverse instead (`sigma_inverse`).

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.base import PairwiseClassifier, common_parameters
from mmbench.machines.kernel_pca import Spectrum, is_flat, spectrum
from mmbench.machines.parameter import Param, choice, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem
from mmbench.machines.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.sigma_svm.inverse import inverse_kernel
from mmbench.machines.svm import SVM, train_svm

#: Most of the effect lies near D = 1: variances are small numbers beside the 1 of the identity.
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)

#: From this `tol` on a search rounds (4) to float32.
SEARCH_TOL = 1e-4

#: How much larger than their difference, by trace, the terms of one in float32 may be.
CANCELLED = 1.5


class SigmaSVM(PairwiseClassifier):
    """SVM with a price on the spread of its decisions, one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Price of one unit of slack.
    D : float, default=0.5
        From 0, the SVM on centred data, to 1, the SVM on whitened data. There Sigma is inverted
        where the training rows vary, and the machine is affinely invariant.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        ``exp(-gamma ||u - v||^2)``, ``u'v`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    kernel_scaling : {"none", "trace"}, default="none"
        "trace" divides ``poly`` by the mean of k(x, x) over the training rows.
    solver : {"auto", "smo", "reference"}, default="auto"
        "auto" is "smo", pairwise steps on the matrix of (4); "reference" is libsvm.
    tol : float, default=1e-5
        Largest violation of the optimality conditions, in units of f. Where that leaves a relative
        gap of more than a hundred times this, down to a 512th of it is asked of the rows.
    ties : {"lowest", "random"}, default="lowest"
        Which of several classes with most votes is predicted.
    random_state : int, optional
        Seed of ``ties="random"``.
    n_jobs : int, optional
        Threads over pairs of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        The certificate of each pair. `objective` is (3) at the returned w and b, `bound` its dual
        at a feasible point, so the optimum lies between them. `n_support` counts the rows with a
        multiplier.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of w over the training rows (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient: all, since each has a part in Sigma (``rbf``, ``poly``).
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
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

    parameters: ClassVar[dict[str, Param]] = common_parameters() | {
        "kernel_scaling": choice("none", "trace"),
        "C": positive(),
        "D": Param(low=0, high=1),
        "solver": choice("auto", "smo", "reference"),
    }
    search_space: ClassVar[SearchSpace] = SVM.search_space.extended(
        {"D": ("D", SHARES)},
        prefer={**SVM.search_space.prefer, "D": "small"},
        # Near D = 1 directions of little variance are blown up, and the rounding of the matrix that
        # they are found in; that of (4) itself is not.
        single_precision=False,
    )
    # The matrix, centred, its vectors, and these scaled in two ways. In a search they are of the
    # rows of all folds, whose square is up to 16/9 of that of a fold's.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=9, linear_gram_copies=3)
    gap_tolerance_factor = SVM.gap_tolerance_factor
    version: ClassVar[int] = 2

    def __init__(
        self,
        C=1.0,
        D=0.5,
        kernel="rbf",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        kernel_scaling="none",
        solver="auto",
        tol=1e-5,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.D = D
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.kernel_scaling = kernel_scaling
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return train_sigma_svm(problem, [(self.D, self.C)], self.solver, self.tol)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; one decomposition serves them all."""
        if any(set(point) - {"C", "D"} for point in points):
            return super().train_path(problem, points)
        prices = [(point.get("D", self.D), point.get("C", self.C)) for point in points]
        return train_sigma_svm(problem, prices, self.solver, self.tol, self.tol >= SEARCH_TOL)

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold; one decomposition serves all folds of a search."""
        from mmbench.machines.sigma_svm.folds import shared_folds, train_folds

        problems = list(problems)
        search = self.solver == "auto" and self.tol >= SEARCH_TOL
        parts = shared_folds(problems) if search else None
        if parts is None or any(set(point) - {"C", "D"} for point in points):
            return super().train_folds(problems, points)
        prices = [(point.get("D", self.D), point.get("C", self.C)) for point in points]
        return iter(train_folds(parts, prices, self.tol))


def train_sigma_svm(
    problem: BinaryProblem,
    prices: Sequence[tuple[float, float]],
    solver: str = "auto",
    tol: float = 1e-5,
    single: bool = False,
) -> list[BinaryModel]:
    """Train binary Sigma-SVMs at several (D, C), each D from its smallest C up.

    Parameters
    ----------
    problem : BinaryProblem
    prices : sequence of (D, C)
    solver : {"auto", "smo", "reference"}, default="auto"
    tol : float, default=1e-5
    single : bool, default=False
        Whether (4) may be rounded to float32; then no certificate is of the digits of `tol`.

    Returns
    -------
    list of BinaryModel
        One a pair of prices, in their order. `state` is the SVM with the kernel (4).
    """
    wanted, models = dict(enumerate(prices)), {}
    cheap = problem.kernel.name == "linear" or is_flat(problem)  # to decompose
    if not (single or cheap or solver == "reference"):
        models = _by_inverse(problem, wanted, solver, tol)
    left = {k: price for k, price in wanted.items() if k not in models}
    if left:
        models |= _by_spectrum(problem, left, solver, tol, single)
    return [models[k] for k in wanted]


def _by_inverse(
    problem: BinaryProblem, prices: Mapping[int, tuple[float, float]], solver: str, tol: float
) -> dict[int, BinaryModel]:
    """Return the machines at several (D, C) by key, but for a D that has no `inverse_kernel`."""
    models: dict[int, BinaryModel] = {}
    for D in dict(prices.values()):
        started = time.perf_counter()
        kernel = inverse_kernel(problem, D)
        if kernel is None:
            continue
        points = {k: C for k, (own, C) in prices.items() if own == D}
        shared = (time.perf_counter() - started) / len(points)
        for k, svm in along_costs(problem, kernel.gram, points, solver, tol):
            assert svm.coef is not None
            weights, intercept = kernel.original(svm.coef, svm.intercept)
            fit = replace(svm.fit, seconds=svm.fit.seconds + shared)
            models[k] = BinaryModel(intercept=intercept, fit=fit, coef=weights, state=svm)
    return models


def _by_spectrum(
    problem: BinaryProblem,
    prices: Mapping[int, tuple[float, float]],
    solver: str,
    tol: float,
    single: bool,
) -> dict[int, BinaryModel]:
    """Return the machines at several (D, C) by key, from one decomposition."""
    started = time.perf_counter()
    scatter = spectrum(problem)
    centred = centred_gram(scatter, problem.gram) if single and not scatter.linear else None
    shared = (time.perf_counter() - started) / len(prices)
    models: dict[int, BinaryModel] = {}
    for D in dict(prices.values()):
        inverse = inverse_metric(scatter, D)
        if centred is None:
            gram = sigma_gram(scatter, inverse)
        else:
            gram = rounded_gram(scatter, inverse, centred)
        points = {k: C for k, (own, C) in prices.items() if own == D}
        for k, svm in along_costs(problem, gram, points, solver, tol):
            models[k] = _in_the_original_space(scatter, inverse, svm, shared)
    return models


def along_costs(
    problem: BinaryProblem,
    gram: NDArray,
    points: Mapping[int, float],
    solver: str = "auto",
    tol: float = 1e-5,
) -> Iterator[tuple[int, BinaryModel]]:
    """Yield the key of every point and the SVM at its C, with `gram` in place of the kernel's."""
    modified, start = BinaryProblem(problem.X, problem.y, problem.kernel, gram), None
    for k in sorted(points, key=points.__getitem__):
        svm = train_svm(modified, points[k], solver, tol, start)
        start = svm.state
        yield k, svm


def inverse_metric(scatter: Spectrum, D: float) -> NDArray:
    """Return the diagonal of ``((1-D) I + D Sigma)^-1`` in the coordinates of `scatter`.

    Of Sigma = 0, where all rows are equal, it is the pseudo-inverse that D = 1 takes: 0.
    """
    metric = (1 - D) + D * scatter.variances
    return np.divide(1.0, metric, out=np.zeros_like(metric), where=metric > 0)


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
    if c * squares.sum() > CANCELLED * (inverse @ squares):
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
    w = inverse * (scatter.rows.T @ svm.coef)
    weights, intercept = scatter.original(w, svm.intercept)
    return BinaryModel(
        intercept=intercept,
        fit=replace(svm.fit, seconds=svm.fit.seconds + shared),
        state=svm,
        **{"w" if scatter.linear else "coef": weights},
    )
