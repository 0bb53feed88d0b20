"""Data classes for the training problem of a machine, the trained model and its certificate."""

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

from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.kernels import Kernel, moved, row_squares, sparse_centre
from mmbench.kernels.matrix import KernelMatrix, KernelRows, LazyGram, submatrix
from mmbench.memory import cache_bytes
from mmbench.solvers.result import Result, relative_gap

#: For at most STORED_ROWS training rows, the whole kernel matrix is stored, unless `cache_size` is
#: too small. For so few rows, computing the whole matrix is faster than computing blocks on demand.
STORED_ROWS = 3000

#: With at most LAZY_FEATURES features, each row of an ``rbf`` kernel matrix is computed at its
#: first use. The CPU time of an SVM is then 1/2 on the 325 pairs of Letter (16 features). With more
#: than STORED_ROWS rows, a matrix of at most LAZY_ROWS rows is stored so if kernel values are
#: computed from differences of rows: on 6000 rows of Letter in two classes, this takes 0.3 to 0.5
#: of the CPU time of working sets, on 12,000 rows 0.6 to 1.3.
LAZY_FEATURES, LAZY_ROWS = 64, 10_000

#: Statuses that are changed to "optimal" if the duality gap and the constraint violation are within
#: their tolerances.
UNPROVEN = (Status.INACCURATE, Status.ITERATION_LIMIT, Status.TIME_LIMIT)

#: If a lower bound exceeds the objective of a feasible solution by more than this relative
#: difference and the violation tolerance, the status is ``failed``; less may be a rounding error.
FALSE_BOUND_EXCESS = 1e-3

#: Decision values of at most FEW_ROWS rows, or with fewer than SPARSE_SHARE non-zero coefficients,
#: are computed from a sparse array. With c classes, at most ``c - 1`` of the ``c (c - 1) / 2``
#: coefficients of a support vector are not zero. With 26 and 100 classes, the product takes 1/3 and
#: 1/7 to 1/10 of the time.
FEW_ROWS, SPARSE_SHARE = 32, 0.1

#: Maximum size of a block of kernel values in prediction, in bytes.
BLOCK_BYTES = 2**24

#: Rows are considered far from the origin if their variance is below FAR_VARIANCE_SHARE times their
#: mean squared norm. Inner products of rows far from the origin lose digits by cancellation.
FAR_VARIANCE_SHARE = 1e-4


@dataclass
class BinaryProblem:
    """A training problem with two classes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features of the rows of both classes.
    y : ndarray of shape (n_samples,)
        Labels of the rows, -1.0 or +1.0; both labels occur. Rows without a label have 0.0.
    kernel : instance of Kernel
        Kernel with a numerical value of gamma.
    given_gram : ndarray of shape (n_samples, n_samples), optional
        Kernel matrix of `X`, in float32 or float64; by default computed from `X`.
    classes : tuple, default=()
        Original labels of the negative and of the positive class; empty if unknown.
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

    def part(self, rows: NDArray) -> BinaryProblem:
        """Return the problem of the rows with ascending indices `rows`."""
        gram = None if self.given_gram is None else submatrix(self.given_gram, rows, rows)
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], given_gram=gram, weights=weights)

    def matrix(self, cache_size: float | None) -> Any:
        """Return the kernel matrix as an array, a `LazyGram` or a `KernelMatrix`.

        The type depends on the kernel, the size of the matrix and `cache_size`. An array contains
        all kernel values, a `LazyGram` computes each row at its first use, and a `KernelMatrix`
        computes blocks of rows.

        Parameters
        ----------
        cache_size : float or None
            Memory for kernel values in MB; see `mmbench.memory.cache_bytes`.
        """
        if self.given_gram is not None:
            return self.given_gram
        if self._matrix is not None:
            return self._matrix
        n, d = self.X.shape
        lazy = self.kernel.name == "rbf" and isinstance(self.X, np.ndarray) and d <= LAZY_FEATURES
        most = LAZY_ROWS if self.kernel.is_direct(self.X) else STORED_ROWS
        small = n <= STORED_ROWS and cache_size is None
        if n > most or not (small or 8 * n**2 <= cache_bytes(cache_size)):
            return self.blocks(cache_size)
        if lazy:
            self._matrix = LazyGram.gaussian(self.kernel.gamma, self.X)
        return self._matrix if lazy else self.gram

    def blocks(self, cache_size: float | None) -> KernelMatrix:
        """Return a kernel matrix that is computed in blocks and stores at most `cache_size` MB."""
        if not isinstance(self._matrix, KernelMatrix):
            single = self.kernel.fits_single_precision(self.X, self.kernel.is_direct(self.X))
            self._matrix = KernelMatrix(self.kernel, self.X, cache_bytes(cache_size), single)
        return self._matrix

    @property
    def is_linear(self) -> bool:
        """Whether the kernel is linear, and the features are given, not the kernel matrix."""
        return self.kernel.name == "linear" and self.given_gram is None

    @cached_property
    def gram(self) -> NDArray:
        """The kernel matrix of the training rows, shape (n_samples, n_samples)."""
        return self.kernel(self.X, self.X) if self.given_gram is None else self.given_gram

    def copied_gram(self) -> NDArray:
        """Return the kernel matrix as a float64 array that the caller may overwrite."""
        given = self.given_gram
        return self.kernel(self.X, self.X) if given is None else np.array(given, dtype=float)


@dataclass
class BinaryModel:
    """A trained decision function f, which predicts the positive class if ``f(z) >= 0``.

    Attributes
    ----------
    intercept : float
        Bias b.
    fit : instance of Fit
        Certificate of the training.
    coef : ndarray of shape (n_samples,) or None
        Coefficients of the training rows, ``f(z) = sum_i coef_i k(x_i, z) + b``.
    w : ndarray of shape (n_features,) or None
        Weights of a linear machine, ``f(z) = w'z + b``. A model has `coef` or `w` or both. If a
        model has both, predictions are computed from `w`, since `w` is more accurate than `coef`.
    state : object
        Warm start for the next grid point; the type depends on the machine.
    scores : ndarray of shape (n_all,) or None
        Values ``f(z) - b`` at all rows z of the kernel matrix `PartProblem.whole`; None if the
        training does not compute these values.
    """

    intercept: float
    fit: Fit
    coef: NDArray | None = None
    w: NDArray | None = None
    state: Any = None
    scores: NDArray | None = None


@dataclass(frozen=True)
class Fit:
    """The certificate of one binary training: evidence of how close a solution is to the optimum.

    Attributes
    ----------
    status : Status
        Outcome of the training.
    objective : float
        Objective value of the optimisation problem stated in the machine's documentation.
    bound : float
        Proven lower bound on the optimum, for example a dual objective value.
    gap : float
        Duality gap ``objective - bound``, divided by ``max(|objective|, |bound|)``.
    max_violation : float
        Largest constraint violation, recomputed from the returned solution.
    iterations : int
        Number of solver iterations, summed over all stages of the training.
    seconds : float
        Wall-clock time of the training in seconds. The time for a Gram matrix that is computed
        before the training is excluded.
    n_support : int
        Number of training rows with a non-zero coefficient.
    pair : tuple
        Labels of the negative and of the positive class.
    route : str
        Name of the algorithm that found the returned solution. The names are listed in the module
        docstrings of the machines and of the solvers.
    extra : dict
        Additional values by name; the names depend on the machine. If the training ends with a
        warning, ``extra["reason"]`` is appended to the warning.
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

    @classmethod
    def of(cls, found: Result, **others: Any) -> Fit:
        """Return the certificate of a solver's result; `others` are further or other values."""
        values = {"objective": found.value, "bound": found.bound, "max_violation": found.violation}
        work = {"status": found.status, "iterations": found.iterations, "route": found.route}
        return cls(**{**values, **work, **others})

    @property
    def gap(self) -> float:
        """Duality gap ``objective - bound``, divided by ``max(|objective|, |bound|)``."""
        return relative_gap(self.objective, self.bound)


def judged(fit: Fit, gap_tolerance: float, violation_tolerance: float) -> Fit:
    """Return the certificate with a status determined by its duality gap and its largest violation.

    The status is "optimal" if the relative duality gap and the largest constraint violation are
    within their tolerances, even if the solver's status is "inaccurate", "iteration_limit" or
    "time_limit".

    In exact arithmetic, a lower bound is at most the objective of a feasible solution. A computed
    `bound` with a positive excess ``bound - objective`` is replaced:

    - If the solution is infeasible, `bound` is set to `objective`.

    - If the solution is feasible and the excess is too large for a rounding error (see
      FALSE_BOUND_EXCESS), the status is ``failed`` and `bound` is set to minus infinity.

    - If the solution is feasible and the excess is at most the gap tolerance, `bound` is set to
      `objective`.

    - If the solution is feasible and the excess is a rounding error above the gap tolerance,
      `bound` is set to minus infinity.

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
    if math.isinf(gap_tolerance):  # an infinite gap tolerance changes no status
        return fit
    if solved:
        return fit if fit.status is Status.OPTIMAL else replace(fit, status=Status.OPTIMAL)
    return replace(fit, status=Status.INACCURATE) if fit.status is Status.OPTIMAL else fit


def refused(fit: Fit, reason: str) -> Fit:
    """Return a certificate with the status ``failed``, a reason, and a bound of minus infinity."""
    extra = {**fit.extra, "reason": f"{reason}; scale the data"}
    return replace(fit, status=Status.FAILED, bound=-math.inf, extra=extra)


def warn_unless_solved(fits: Sequence[Fit], machine: str, gap_tolerance: float) -> None:
    """Emit a warning unless the status of all fits is ``optimal``, ``stopped_by_rule`` or
    ``trivial``. The warning names the pair of classes with the most severe status.

    The warning is also emitted if the paper's stopping rule ended the training at a solution that
    is worse than w = 0.
    """
    ended = [fit for fit in fits if fit.status is not Status.TRIVIAL]
    bad = [fit for fit in ended if fit.status not in FINISHED or "reason" in fit.extra]
    if not bad:
        return
    fit = max(bad, key=lambda fit: SEVERITY.index(fit.status))
    low, high = fit.pair
    asked = f" (tolerance {gap_tolerance:.1e})" if math.isfinite(gap_tolerance) else ""
    reason = f": {fit.extra['reason']}" if "reason" in fit.extra else ""
    more = f"; {len(bad) - 1} more pairs of classes are not optimal, see `fits_`" * (len(bad) > 1)
    warnings.warn(
        f"{machine} on classes {low!s}/{high!s} ended {fit.status}: relative gap {fit.gap:.1e}"
        f"{asked}, largest violation {fit.max_violation:.1e}{reason}{more}",
        ConvergenceWarning,
        stacklevel=6,  # the caller of `fit`
    )


def out_of_time(model: BinaryModel) -> BinaryModel:
    """Set the status of a model to ``time_limit``, since its training exceeded the time limit.

    Statuses that do not depend on time, for example ``trivial``, are not changed. If the duality
    gap and the constraint violation are within their tolerances, `judged` later sets the status to
    "optimal".
    """
    if model.fit.status not in (Status.OPTIMAL, Status.STOPPED_BY_RULE, Status.FAILED, *UNPROVEN):
        return model
    return replace(model, fit=replace(model.fit, status=Status.TIME_LIMIT))


#: Reason in the warning of a training that was not begun.
NOT_BEGUN = (
    "no solution within the time limit, so the larger class is predicted; "
    "raise the time limit, or train on fewer rows"
)


def not_begun(problem: BinaryProblem) -> BinaryModel:
    """Return a model that predicts the larger class, since no time remains for its training."""
    fit = Fit(
        *(Status.TIME_LIMIT, math.inf, -math.inf, 0.0, 0, 0.0, 0),
        route="not begun",
        extra={"reason": NOT_BEGUN},
    )
    intercept = 1.0 if problem.y.sum() >= 0 else -1.0
    return BinaryModel(intercept, fit, coef=np.zeros(len(problem.y)))


class PartProblem(BinaryProblem):
    """The training problem of a cross-validation fold, with the Gram matrix of all rows.

    The Gram matrix of the fold is a submatrix of the stored matrix `whole`. The submatrix is copied
    when it is first used. Machines that need only products with the Gram matrix use `whole`, and
    copy no submatrix.
    """

    def __init__(self, X: NDArray, y: NDArray, kernel: Kernel, whole: NDArray, rows: NDArray):
        # the base constructor is not called, since it would overwrite the property `given_gram`
        self.X, self.y, self.kernel, self.classes, self.weights = X, y, kernel, (), None
        self.whole, self.rows = whole, rows

    @cached_property
    def given_gram(self) -> NDArray:  # type: ignore[override]
        """Kernel matrix of `X`, shape (n_samples, n_samples)."""
        return submatrix(self.whole, self.rows, self.rows)

    def copied_gram(self) -> NDArray:
        """Return the fold's kernel matrix as a new float64 array that the caller may overwrite."""
        return submatrix(self.whole, self.rows, self.rows).astype(float, copy=False)


def expand(kernel: Kernel, X: NDArray, support: NDArray, coef: NDArray | csr_array) -> NDArray:
    """Return ``sum_i coef[p, i] k(support[i], x)`` for each row x of X and each row p of `coef`.

    The returned array has shape (len(X), len(coef)). Kernel values are computed in blocks of rows
    of X. `coef` may be sparse.
    """
    n, n_support = X.shape[0], support.shape[0]  # len() of a sparse array raises an error
    out = np.zeros((n, coef.shape[0]), dtype=coef.dtype)
    if not n_support:
        return out
    if n == 1 and kernel.name == "rbf" and not (issparse(X) or issparse(support)):
        # for a single row, computing distances from differences of features is faster than from
        # inner products
        distances = row_squares(support - X)
        return (coef @ kernel.apply(distances))[None, :]
    expansion = KernelRows(kernel, support, dtype=coef.dtype)
    step = max(1, BLOCK_BYTES // (coef.dtype.itemsize * n_support))
    for start in range(0, n, step):
        block: Any = X[start : start + step]
        # `block` gets the format of `support` (dense or sparse), since KernelRows subtracts a
        # centre only from dense rows
        if issparse(block) != issparse(support):
            block = csr_array(block) if issparse(support) else block.toarray()
        rows = KernelRows(kernel, block, expansion.centre, coef.dtype)
        out[start : start + step] = (coef @ rows.values(expansion).T).T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return the weights w of a linear machine, from `model.coef` if `model.w` is None."""
    return X.T @ model.coef if model.w is None else model.w


def far_origin(X: NDArray) -> NDArray | None:
    """Return the mean of the rows (`sparse_centre`) if they are far from the origin, else None.

    Rows are far from the origin if their variance is a small fraction of their mean squared norm,
    see FAR_VARIANCE_SHARE.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> far_origin(X), far_origin(X + 1e6)
    (None, array([1000000.5, 1000000.5]))
    """
    mean = sparse_centre(X) if issparse(X) else X.mean(axis=0)
    # the mean squared norm is mean @ mean plus the sum of the variances
    total = row_squares(X).sum() if issparse(X) else np.einsum("ij,ij->", X, X)
    square = float(total) / X.shape[0]
    return mean if mean @ mean > (1 - FAR_VARIANCE_SHARE) * square else None


def around(X: NDArray, origin: NDArray | None) -> NDArray:
    """Return ``X - origin``, or `X` itself if `origin` is None."""
    return X if origin is None else moved(X, origin)
