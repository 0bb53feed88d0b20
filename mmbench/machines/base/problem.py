"""What a machine is trained on and what comes of it: problem, model and certificate.

A machine's `train` takes a `BinaryProblem` and returns a `BinaryModel`, whose `Fit` says how good
it is.

Decision functions as expansions over training rows, computed in blocks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import FINISHED, Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelMatrix, KernelRows, StoredGram, is_semidefinite, part_of
from mmbench.machines.base.search_space import cache_bytes
from mmbench.solvers.result import relative_gap


@dataclass(frozen=True)
class Fit:
    """The certificate of one binary training.

    Attributes
    ----------
    status : Status
        How the training ended.
    objective : float
        Value of the optimisation problem as the machine's documentation states it.
    bound : float
        A dual or otherwise proven lower bound of the optimum.
    max_violation : float
        The largest violation of a constraint, recomputed from the returned solution.
    iterations : int
        Iterations of the solver, summed over its stages.
    seconds : float
        Wall-clock seconds of the training, without a Gram matrix that is stored beforehand.
    n_support : int
        Training rows with a non-zero coefficient.
    pair : tuple
        The negative and the positive class, as the user labelled them.
    route : str
        The algorithm whose solution is returned, as the head of the solver's module names it.
    extra : dict
        What only one machine reports, by name.
    """

    status: Status
    objective: float
    bound: float
    max_violation: float
    iterations: int
    seconds: float
    n_support: int
    pair: tuple = ()
    route: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance of `objective` to `bound`, relative to the larger of their magnitudes."""
        return relative_gap(self.objective, self.bound)


#: How a training ends whose figures may prove it optimal all the same.
UNPROVEN = (Status.INACCURATE, Status.ITERATION_LIMIT, Status.TIME_LIMIT)


def judged(fit: Fit, gap_tolerance: float, violation_tolerance: float) -> Fit:
    """Return a certificate whose status follows from its figures: the one rule for all machines.

    A solution is optimal if its relative gap and its largest violation are within the tolerances,
    whatever the solver says of it; a bound that lies above the objective proves nothing.

    Examples
    --------
    >>> fit = Fit(Status.OPTIMAL, 1e-3, 0.9e-3, 0.0, 5, 0.0, 3)
    >>> judged(fit, 1e-6, 1e-6).status, judged(fit, 0.2, 1e-6).status
    (<Status.INACCURATE: 'inaccurate'>, <Status.OPTIMAL: 'optimal'>)
    """
    if fit.status not in (Status.OPTIMAL, *UNPROVEN):
        return fit
    if math.isinf(gap_tolerance):  # none was asked, so none makes good what the machine reports
        return fit
    if abs(fit.gap) <= gap_tolerance and fit.max_violation <= violation_tolerance:
        return replace(fit, status=Status.OPTIMAL)
    return replace(fit, status=Status.INACCURATE) if fit.status is Status.OPTIMAL else fit


def out_of_time(model: BinaryModel) -> BinaryModel:
    """Return a model whose training was told to end: whatever else it says, that is the reason."""
    if model.fit.status not in (Status.OPTIMAL, Status.STOPPED_BY_RULE, Status.FAILED, *UNPROVEN):
        return model
    return replace(model, fit=replace(model.fit, status=Status.TIME_LIMIT))


def not_begun(problem: BinaryProblem) -> BinaryModel:
    """Return the decision for the larger class, where no time was left to begin a training."""
    n_positive = int((problem.y > 0).sum())
    fit = Fit(Status.TIME_LIMIT, math.inf, -math.inf, 0.0, 0, 0.0, 0)
    intercept = 1.0 if 2 * n_positive >= len(problem.y) else -1.0
    return BinaryModel(intercept, fit, coef=np.zeros(len(problem.y)))


def warn_unless_solved(fit: Fit, machine: str, gap_tolerance: float) -> None:
    """Warn of a training whose solution is not proven: nobody has to look at `fits_` to know."""
    if fit.status in (*FINISHED, Status.TRIVIAL):
        return
    low, high = fit.pair
    asked = f" where {gap_tolerance:.1e} is asked" if math.isfinite(gap_tolerance) else ""
    warnings.warn(
        f"{machine} on classes {low!s}/{high!s} ended {fit.status}: relative gap {fit.gap:.1e}"
        f"{asked}, largest violation {fit.max_violation:.1e}",
        ConvergenceWarning,
        stacklevel=5,  # the caller of `fit`
    )


#: Rows up to which a whole kernel matrix is computed faster than the parts that a solver asks for.
STORED_ROWS = 3000


@dataclass
class BinaryProblem:
    """One two-class training problem.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        -1.0 or +1.0; both occur.
    kernel : Kernel
    given_gram : ndarray of shape (n_samples, n_samples), optional
        The kernel matrix of `X` where a caller has it already (float32 or float64).
    classes : tuple, default=()
        The negative and the positive class as the user labelled them, where they are known.
    weights : ndarray of shape (n_samples,), optional
        Of the rows; all 1 when not given.
    """

    X: NDArray
    y: NDArray
    kernel: Kernel
    given_gram: NDArray | None = None
    classes: tuple = ()
    weights: NDArray | None = None
    _matrix: KernelMatrix | None = field(default=None, init=False, repr=False)

    def matrix(self, cache_size: float | None) -> NDArray | KernelMatrix:
        """Return the kernel matrix, whole where it is given or small, and otherwise by parts.

        Parameters
        ----------
        cache_size : float or None
            Memory that kernel values may take, in MB; see `mmbench.machines.base.search_space`.
        """
        if self.given_gram is not None:
            return self.given_gram
        n = len(self.y)
        if n <= STORED_ROWS and (cache_size is None or 8 * n**2 <= cache_bytes(cache_size)):
            return self.gram
        if self._matrix is None:
            single = self.kernel.fits_single_precision(self.X)
            self._matrix = KernelMatrix(self.kernel, self.X, cache_bytes(cache_size), single)
        return self._matrix

    @cached_property
    def gram(self) -> NDArray:
        """The kernel matrix of the training rows, shape (n_samples, n_samples)."""
        return self.kernel(self.X, self.X) if self.given_gram is None else self.given_gram

    def copied_gram(self) -> NDArray:
        """Return the kernel matrix in float64; it is the caller's to overwrite."""
        given = self.given_gram
        return self.kernel(self.X, self.X) if given is None else np.array(given, dtype=float)


class PartProblem(BinaryProblem):
    """A fold of a cross-validation: its own Gram matrix is cut out when first asked for.

    A machine that needs no more than products with the matrix takes them of all folds at once,
    and cuts nothing out; the matrix itself is then never stored.

    Parameters
    ----------
    X, y, kernel
        As for `BinaryProblem`.
    whole : StoredGram
        The kernel matrix of all rows.
    rows : ndarray of int of shape (n_samples,)
        Where the rows of `X` stand in it.
    """

    def __init__(self, X: NDArray, y: NDArray, kernel: Kernel, whole: StoredGram, rows: NDArray):
        # given_gram is computed below, so the base's own constructor must not set it
        self.X, self.y, self.kernel, self.classes, self.weights = X, y, kernel, (), None
        self.whole, self.rows = whole, rows

    @cached_property
    def given_gram(self) -> NDArray:  # type: ignore[override]
        """The kernel matrix of the rows of `X`."""
        return self.whole.part(self.rows, self.rows)

    def copied_gram(self) -> NDArray:
        """Return the kernel matrix in float64; nothing is kept of it here."""
        return self.whole.part(self.rows, self.rows).astype(float, copy=False)


@dataclass
class BinaryModel:
    """A trained decision function ``f(z)``; positive for the positive class.

    Attributes
    ----------
    intercept : float
        b.
    fit : Fit
        The certificate.
    coef : ndarray of shape (n_samples,) or None
        Coefficients over the training rows, ``f(z) = sum_i coef_i k(x_i, z) + b``.
    w : ndarray of shape (n_features,) or None
        Weights of a linear machine, ``f(z) = w'z + b``. One of `coef` and `w` is given; where both
        are, w has more digits.
    state : object
        Whatever lets the machine start a neighbouring problem from here.
    scores : ndarray of shape (n_all,) or None
        ``f(z) - b`` at every row of the matrix that a `PartProblem` is cut from, where training
        had to compute it: the search then need not do so again.
    """

    intercept: float
    fit: Fit
    coef: NDArray | None = None
    w: NDArray | None = None
    state: Any = None
    scores: NDArray | None = None


def without_false_bounds(
    models: Sequence[BinaryModel], gram: NDArray | None, rows: Sequence[NDArray]
) -> Sequence[BinaryModel]:
    """Return models whose bound is minus infinity where their part of a matrix is indefinite.

    A dual point of a problem that is not convex bounds nothing; the model is a stationary point.

    Parameters
    ----------
    models : sequence of BinaryModel
    gram : ndarray of shape (n_samples, n_samples) or None
        That of `PairwiseTrainer.indefinite_named`.
    rows : sequence of ndarray of int
        Training rows of each model.
    """
    if gram is None:
        return models
    return [
        model
        if is_semidefinite(part_of(gram, own))
        else replace(model, fit=replace(model.fit, bound=-math.inf))
        for model, own in zip(models, rows, strict=True)
    ]


#: Rows of a kernel block in prediction are chosen so that one block stays below this many bytes.
BLOCK_BYTES = 2**24

#: Rows are far from the origin if their variance is less than this share of their mean square:
#: products with them then lose more digits than a linear machine has to lose.
FAR_VARIANCE_SHARE = 1e-4


def expand(kernel: Kernel, X: NDArray, support: NDArray, coef: NDArray) -> NDArray:
    """Return ``sum_i coef[p, i] k(support[i], x)``, shape (len(X), len(coef)), block by block."""
    n, n_support = X.shape[0], support.shape[0]  # a sparse array has no length
    out = np.zeros((n, len(coef)), dtype=coef.dtype)
    if not n_support:
        return out
    expansion = KernelRows(kernel, support, dtype=coef.dtype)
    step = max(1, BLOCK_BYTES // (coef.itemsize * n_support))
    for start in range(0, n, step):
        block: Any = X[start : start + step]
        if issparse(block) != issparse(support):  # rows are moved or not, all alike
            block = csr_array(block) if issparse(support) else block.toarray()
        rows = KernelRows(kernel, block, expansion.centre, coef.dtype)
        out[start : start + step] = rows.values(expansion) @ coef.T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return w of a linear machine, from its expansion over the training rows if need be."""
    return X.T @ model.coef if model.w is None else model.w


def is_finite(model: BinaryModel) -> bool:
    """Whether all numbers of a model are finite."""
    numbers = (part for part in (model.intercept, model.coef, model.w) if part is not None)
    return all(np.isfinite(part).all() for part in numbers)


def far_origin(X: NDArray) -> NDArray | None:
    """Return the mean of rows that lie so far from zero that digits would be lost, else None.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> far_origin(X), far_origin(X + 1e6)
    (None, array([1000000.5, 1000000.5]))
    """
    if not isinstance(X, np.ndarray):  # zeros of sparse rows hold them near zero
        return None
    mean = X.mean(axis=0)
    square = float(np.einsum("ij,ij->", X, X)) / len(X)  # of the mean, plus the variances
    return mean if mean @ mean > (1 - FAR_VARIANCE_SHARE) * square else None


def around(X: NDArray, origin: NDArray | None) -> NDArray:
    """Return rows counted from an origin; None is zero, and makes no copy."""
    return X if origin is None else X - origin
