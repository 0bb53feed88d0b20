"""Input and output of a machine's `train`: `BinaryProblem`, and `BinaryModel` with its `Fit`."""

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
from mmbench.kernels import Kernel, row_squares
from mmbench.kernels.matrix import KernelMatrix, KernelRows, LazyGram, submatrix
from mmbench.machines.base.search_space import cache_bytes
from mmbench.solvers.result import relative_gap

#: Maximum number of rows for which the whole kernel matrix is stored; up to this size, the whole
#: matrix is computed faster than the individual matrix rows that a solver needs.
STORED_ROWS = 3000

#: Maximum number of features for which rows of an ``rbf`` kernel matrix are computed one by one, at
#: their first use. Compared with one matrix product for the whole matrix, the CPU time of an SVM is
#: 1/2 on the 325 pairs of Letter (16 features), and 1/6 on 5300 rows of Banana (2 features).
LAZY_FEATURES = 64

#: Statuses that are changed to "optimal" if the gap and the violation are within the tolerances.
UNPROVEN = (Status.INACCURATE, Status.ITERATION_LIMIT, Status.TIME_LIMIT)

#: Maximum relative excess of a lower bound over the objective that is attributed to rounding; with
#: a larger excess the certificate is refused.
FALSE_BOUND_EXCESS = 1e-3

#: Maximum number of rows for which predictions are computed with a sparse array of coefficients.
#: With c classes, a support vector has one coefficient for each of the c (c - 1) / 2 pairs; at most
#: c - 1 of these coefficients are not zero.
FEW_ROWS = 32

#: Maximum size of a block of kernel values in prediction, in bytes.
BLOCK_BYTES = 2**24

#: Rows are far from the origin if their variance is below this fraction of their mean square; inner
#: products of these rows lose digits by cancellation.
FAR_VARIANCE_SHARE = 1e-4


@dataclass
class BinaryProblem:
    """A training problem with two classes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features of the rows of both classes.
    y : ndarray of shape (n_samples,)
        Signs of the rows, -1.0 or +1.0; both occur.
    kernel : Kernel
        Kernel, with the numerical value of gamma.
    given_gram : ndarray of shape (n_samples, n_samples), optional
        The kernel matrix of `X` in float32 or float64; computed if not given.
    classes : tuple, default=()
        Labels of the negative and of the positive class; empty if unknown.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows; all 1 by default.
    """

    X: NDArray
    y: NDArray
    kernel: Kernel
    given_gram: NDArray | None = None
    classes: tuple = ()
    weights: NDArray | None = None
    _matrix: KernelMatrix | LazyGram | None = field(default=None, init=False, repr=False)

    def matrix(self, cache_size: float | None) -> Any:
        """Return the kernel matrix: an array, a `LazyGram` or a `KernelMatrix`.

        Parameters
        ----------
        cache_size : float or None
            Memory for kernel values in MB; see `mmbench.machines.base.search_space`.
        """
        if self.given_gram is not None:
            return self.given_gram
        if self._matrix is not None:
            return self._matrix
        n, d = self.X.shape
        lazy = self.kernel.name == "rbf" and isinstance(self.X, np.ndarray) and d <= LAZY_FEATURES
        small = n <= STORED_ROWS and cache_size is None
        fits = small or 8 * n**2 <= cache_bytes(cache_size)
        if fits and lazy:
            self._matrix = LazyGram.gaussian(self.kernel.gamma, self.X)
            return self._matrix
        return self.gram if fits and n <= STORED_ROWS else self.blocks(cache_size)

    def blocks(self, cache_size: float | None) -> KernelMatrix:
        """Return a kernel matrix that is computed in blocks; `cache_size` MB are stored."""
        if not isinstance(self._matrix, KernelMatrix):
            single = self.kernel.fits_single_precision(self.X)
            self._matrix = KernelMatrix(self.kernel, self.X, cache_bytes(cache_size), single)
        return self._matrix

    @cached_property
    def gram(self) -> NDArray:
        """The kernel matrix of the training rows, shape (n_samples, n_samples)."""
        return self.kernel(self.X, self.X) if self.given_gram is None else self.given_gram

    def copied_gram(self) -> NDArray:
        """Return a copy of the kernel matrix in float64 that the caller may overwrite."""
        given = self.given_gram
        return self.kernel(self.X, self.X) if given is None else np.array(given, dtype=float)


@dataclass
class BinaryModel:
    """A trained decision function ``f(z)``, which is positive for rows of the positive class.

    Attributes
    ----------
    intercept : float
        Bias b.
    fit : Fit
        Certificate of the training.
    coef : ndarray of shape (n_samples,) or None
        Coefficients over the training rows, ``f(z) = sum_i coef_i k(x_i, z) + b``.
    w : ndarray of shape (n_features,) or None
        Weights of a linear machine, ``f(z) = w'z + b``. At least one of `coef` and `w` is given; if
        both are given, `w` is more accurate and is used in prediction.
    state : object
        Data for a warm start at the next grid point; only the machine reads them.
    scores : ndarray of shape (n_all,) or None
        ``f(z) - b`` at all rows of the stored matrix of a `PartProblem`; None if the training does
        not compute these values.
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
        Outcome of the training.
    objective : float
        Objective value of the optimisation problem in the machine's documentation.
    bound : float
        Proven lower bound on the optimum, for example a dual objective value.
    gap : float
        Duality gap ``objective - bound``, relative to the larger of the two magnitudes.
    max_violation : float
        Largest constraint violation, recomputed from the returned solution.
    iterations : int
        Number of solver iterations, summed over all stages.
    seconds : float
        Wall-clock time of the training in seconds, excluding a Gram matrix computed beforehand.
    n_support : int
        Number of training rows with a non-zero coefficient.
    pair : tuple
        Labels of the negative and of the positive class.
    route : str
        Name of the algorithm that found the returned solution; the names are listed in the
        docstring of the machine's or solver's module.
    extra : dict
        Additional values that depend on the machine, by name; "reason" is appended to the warning
        about a fit that is not optimal.
    """

    status: Status
    objective: float
    bound: float
    max_violation: float
    iterations: int = 0
    seconds: float = 0.0
    n_support: int = 0
    pair: tuple = ()
    route: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Duality gap ``objective - bound``, relative to the larger of the two magnitudes."""
        return relative_gap(self.objective, self.bound)


def judged(fit: Fit, gap_tolerance: float, violation_tolerance: float) -> Fit:
    """Return a certificate whose status follows from its gap and its violation.

    A solution is optimal if its relative gap and its largest violation are within the tolerances,
    regardless of the status that the solver reports. A lower bound above the objective of a
    feasible solution is a contradiction. If the excess is larger than rounding errors, the status
    is ``failed`` and the bound is minus infinity. If the excess is smaller, the bound is lowered:
    to the objective if the excess is within the gap tolerance or the solution is infeasible,
    otherwise to minus infinity.

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
    endless = fit.bound == math.inf or fit.objective == -math.inf  # an infinite gap
    if feasible and (endless or fit.gap < -max(FALSE_BOUND_EXCESS, violation_tolerance)):
        return refused(fit, "the bound is above the objective by more than rounding")
    solved = feasible and abs(fit.gap) <= gap_tolerance
    if fit.bound > fit.objective:
        fit = replace(fit, bound=fit.objective if solved or not feasible else -math.inf)
    if math.isinf(gap_tolerance):  # the status set by the machine is kept
        return fit
    if solved:
        return replace(fit, status=Status.OPTIMAL)
    return replace(fit, status=Status.INACCURATE) if fit.status is Status.OPTIMAL else fit


def refused(fit: Fit, reason: str) -> Fit:
    """Return a certificate with the status ``failed``, the bound minus infinity, and a reason."""
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
        stacklevel=7,  # the caller of `fit`
    )


def out_of_time(model: BinaryModel) -> BinaryModel:
    """Set the status ``time_limit``; `judged` changes this status to "optimal" if the gap is
    closed.

    Statuses that do not depend on the remaining time, for example ``trivial``, are kept.
    """
    if model.fit.status not in (Status.OPTIMAL, Status.STOPPED_BY_RULE, Status.FAILED, *UNPROVEN):
        return model
    return replace(model, fit=replace(model.fit, status=Status.TIME_LIMIT))


def not_begun(problem: BinaryProblem) -> BinaryModel:
    """Return a model that predicts the larger class, for a training without remaining time."""
    fit = Fit(Status.TIME_LIMIT, math.inf, -math.inf, 0.0, 0, 0.0, 0, route="not begun")
    intercept = 1.0 if 2 * int((problem.y > 0).sum()) >= len(problem.y) else -1.0
    return BinaryModel(intercept, fit, coef=np.zeros(len(problem.y)))


class PartProblem(BinaryProblem):
    """A fold of a cross-validation; its Gram matrix is a submatrix of a stored matrix of all rows.

    The submatrix is copied at its first use. A machine that only needs matrix products multiplies
    with the stored matrix, so that no submatrix is copied.
    """

    def __init__(self, X: NDArray, y: NDArray, kernel: Kernel, whole: NDArray, rows: NDArray):
        # given_gram is a property of this class, so the base constructor must not be called
        self.X, self.y, self.kernel, self.classes, self.weights = X, y, kernel, (), None
        self.whole, self.rows = whole, rows

    @cached_property
    def given_gram(self) -> NDArray:  # type: ignore[override]
        """Kernel matrix of `X`, shape (n_samples, n_samples)."""
        return submatrix(self.whole, self.rows, self.rows)

    def copied_gram(self) -> NDArray:
        """Return the kernel matrix in float64 without storing it."""
        return submatrix(self.whole, self.rows, self.rows).astype(float, copy=False)


def expand(kernel: Kernel, X: NDArray, support: NDArray, coef: NDArray | csr_array) -> NDArray:
    """Return ``sum_i coef[p, i] k(support[i], x)`` of each row x of X, shape (len(X), len(coef)).

    The kernel values are computed in blocks of rows of X. `coef` may be sparse.
    """
    n, n_support = X.shape[0], support.shape[0]  # len() of a sparse array raises
    out = np.zeros((n, coef.shape[0]), dtype=coef.dtype)
    if not n_support:
        return out
    if n == 1 and kernel.name == "rbf" and not (issparse(X) or issparse(support)):
        distances = row_squares(support - X)  # faster than inner products of centred rows
        return (coef @ kernel.apply(distances))[None, :]
    expansion = KernelRows(kernel, support, dtype=coef.dtype)
    step = max(1, BLOCK_BYTES // (coef.dtype.itemsize * n_support))
    for start in range(0, n, step):
        block: Any = X[start : start + step]
        if issparse(block) != issparse(support):  # only dense rows are centred
            block = csr_array(block) if issparse(support) else block.toarray()
        rows = KernelRows(kernel, block, expansion.centre, coef.dtype)
        out[start : start + step] = (coef @ rows.values(expansion).T).T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return w of a linear machine, computed from the coefficients of the rows if w is None."""
    return X.T @ model.coef if model.w is None else model.w


def far_origin(X: NDArray) -> NDArray | None:
    """Return the mean of the rows if they lie far from the origin (FAR_VARIANCE_SHARE), else None.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> far_origin(X), far_origin(X + 1e6)
    (None, array([1000000.5, 1000000.5]))
    """
    if not isinstance(X, np.ndarray):  # sparse rows have many zeros and lie near the origin
        return None
    mean = X.mean(axis=0)
    # the mean square is mean @ mean plus the variances
    square = float(np.einsum("ij,ij->", X, X)) / len(X)
    return mean if mean @ mean > (1 - FAR_VARIANCE_SHARE) * square else None


def around(X: NDArray, origin: NDArray | None) -> NDArray:
    """Return ``X - origin``, or `X` itself if `origin` is None."""
    return X if origin is None else X - origin
