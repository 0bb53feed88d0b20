"""The contract of a machine's `train`: a `BinaryProblem` in, a `BinaryModel` with its `Fit` out."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import FINISHED, Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelMatrix, KernelRows, StoredGram
from mmbench.machines.base.search_space import cache_bytes
from mmbench.solvers.result import relative_gap

#: Up to this many rows a whole kernel matrix is computed faster than the parts that a solver needs.
STORED_ROWS = 3000

#: Statuses that become optimal if gap and violation are within the tolerances.
UNPROVEN = (Status.INACCURATE, Status.ITERATION_LIMIT, Status.TIME_LIMIT)

#: Relative excess of a bound over the objective beyond which the certificate is refused; smaller
#: ones may be rounding.
FALSE_BOUND_EXCESS = 1e-3

#: Largest block of kernel values in prediction, in bytes.
BLOCK_BYTES = 2**24

#: Rows are far from the origin if their variance is below this share of their mean square: products
#: with such rows lose digits of a linear machine.
FAR_VARIANCE_SHARE = 1e-4


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
        The kernel matrix of `X` if the caller has it already (float32 or float64).
    classes : tuple, default=()
        The negative and the positive class as the user labelled them; empty if unknown.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows; all 1 by default.
    """

    X: NDArray
    y: NDArray
    kernel: Kernel
    given_gram: NDArray | None = None
    classes: tuple = ()
    weights: NDArray | None = None
    _matrix: KernelMatrix | None = field(default=None, init=False, repr=False)

    def matrix(self, cache_size: float | None) -> NDArray | KernelMatrix:
        """Return the kernel matrix: stored if it is given or small, else computed in parts.

        Parameters
        ----------
        cache_size : float or None
            Memory for kernel values in MB; see `mmbench.machines.base.search_space`.
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
        """Return a kernel matrix in float64 that the caller may overwrite."""
        given = self.given_gram
        return self.kernel(self.X, self.X) if given is None else np.array(given, dtype=float)


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
        Weights of a linear machine, ``f(z) = w'z + b``. One of `coef` and `w` is given; of both,
        w is the more accurate.
    state : object
        Warm start of a neighbouring problem.
    scores : ndarray of shape (n_all,) or None
        ``f(z) - b`` at every row of the matrix that a `PartProblem` is cut from, if training has
        computed it: the search then does not compute it again.
    """

    intercept: float
    fit: Fit
    coef: NDArray | None = None
    w: NDArray | None = None
    state: Any = None
    scores: NDArray | None = None


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
        Number of training rows with a non-zero coefficient.
    pair : tuple
        The negative and the positive class, as the user labelled them.
    route : str
        The algorithm whose solution is returned, as the head of the solver's module names it.
    extra : dict
        Figures that only one machine reports, by name; "reason" is part of the warning about a fit
        that is not optimal.
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


def judged(fit: Fit, gap_tolerance: float, violation_tolerance: float) -> Fit:
    """Return a certificate whose status follows from its figures: the one rule for all machines.

    A solution is optimal if its relative gap and its largest violation are within the tolerances,
    whatever status the solver reports. A bound far above the objective of a feasible solution
    cannot be true: the status is then ``failed``, and the bound minus infinity. A bound above it
    within the tolerance, or of an infeasible solution, is lowered to the objective.

    Examples
    --------
    >>> fit = Fit(Status.OPTIMAL, 1e-3, 0.9e-3, 0.0, 5, 0.0, 3)
    >>> judged(fit, 1e-6, 1e-6).status, judged(fit, 0.2, 1e-6).status
    (<Status.INACCURATE: 'inaccurate'>, <Status.OPTIMAL: 'optimal'>)
    """
    if fit.status not in (Status.OPTIMAL, *UNPROVEN):
        return replace(fit, bound=min(fit.bound, fit.objective))
    if math.isnan(fit.objective) or math.isnan(fit.bound):
        return refused(fit, "the objective is not a number")
    feasible = fit.max_violation <= violation_tolerance
    endless = fit.bound == math.inf or fit.objective == -math.inf  # their gap is infinite too
    if feasible and (endless or fit.gap < -max(FALSE_BOUND_EXCESS, violation_tolerance)):
        return refused(fit, "the bound is above the objective by more than rounding")
    solved = feasible and abs(fit.gap) <= gap_tolerance
    if fit.bound > fit.objective:
        fit = replace(fit, bound=fit.objective if solved or not feasible else -math.inf)
    if math.isinf(gap_tolerance):  # the machine's own status stands
        return fit
    if solved:
        return replace(fit, status=Status.OPTIMAL)
    return replace(fit, status=Status.INACCURATE) if fit.status is Status.OPTIMAL else fit


def refused(fit: Fit, reason: str) -> Fit:
    """Return a certificate with the status ``failed`` and no bound, for a reason in words."""
    extra = {**fit.extra, "reason": f"{reason}; scale the data"}
    return replace(fit, status=Status.FAILED, bound=-math.inf, extra=extra)


def warn_unless_solved(fit: Fit, machine: str, gap_tolerance: float) -> None:
    """Emit a ConvergenceWarning if a fit is not optimal."""
    if fit.status in (*FINISHED, Status.TRIVIAL):
        return
    low, high = fit.pair
    asked = f" where {gap_tolerance:.1e} is asked" if math.isfinite(gap_tolerance) else ""
    reason = f": {fit.extra['reason']}" if "reason" in fit.extra else ""
    warnings.warn(
        f"{machine} on classes {low!s}/{high!s} ended {fit.status}: relative gap {fit.gap:.1e}"
        f"{asked}, largest violation {fit.max_violation:.1e}{reason}",
        ConvergenceWarning,
        stacklevel=5,  # the caller of `fit`
    )


def out_of_time(model: BinaryModel) -> BinaryModel:
    """Return a model with the status ``time_limit``, unless its solution is optimal or failed."""
    if model.fit.status not in (Status.OPTIMAL, Status.STOPPED_BY_RULE, Status.FAILED, *UNPROVEN):
        return model
    return replace(model, fit=replace(model.fit, status=Status.TIME_LIMIT))


def not_begun(problem: BinaryProblem) -> BinaryModel:
    """Return the decision for the larger class, if no time was left to begin a training."""
    fit = Fit(Status.TIME_LIMIT, math.inf, -math.inf, 0.0, 0, 0.0, 0, route="not begun")
    intercept = 1.0 if 2 * int((problem.y > 0).sum()) >= len(problem.y) else -1.0
    return BinaryModel(intercept, fit, coef=np.zeros(len(problem.y)))


class PartProblem(BinaryProblem):
    """A fold of a cross-validation, whose Gram matrix is cut out of a larger one at its first use.

    A machine that needs products with the matrix only takes them for all folds at once, and no
    part is ever cut out.
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
        """Return a kernel matrix in float64 that is not kept."""
        return self.whole.part(self.rows, self.rows).astype(float, copy=False)


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
        if issparse(block) != issparse(support):  # both or neither are centred
            block = csr_array(block) if issparse(support) else block.toarray()
        rows = KernelRows(kernel, block, expansion.centre, coef.dtype)
        out[start : start + step] = rows.values(expansion) @ coef.T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return w of a linear machine, from its expansion over the training rows if need be."""
    return X.T @ model.coef if model.w is None else model.w


def far_origin(X: NDArray) -> NDArray | None:
    """Return the mean of rows that lie so far from zero that products lose digits, else None.

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
    """Return ``X - origin``, or `X` itself if the origin is None."""
    return X if origin is None else X - origin
