"""R-SVM+ and R-SVMμ+, two SVMs with a penalty on the radius of the data (Do, Kalousis; ICML 2013).

    R-SVM+      min over w, b, xi, r      1/2 ||w||^2 + lambda r + C sum_i xi_i              (9)
                subject to                1/2 sum_k w_k^2 (x_ik - x_jk)^2 <= r   for all i, j

    R-SVMμ+     min over w, b, xi, mu, r  1/2 sum_k w_k^2 / mu_k + lambda r + C sum_i xi_i    (7)
                subject to                1/2 sum_k mu_k (x_ik - x_jk)^2 <= r    for all i, j
                                          sum_k mu_k = 1,  mu >= 0

Both have the SVM's constraints. With a kernel, feature k of x is ``k(x_k, x)`` for the training row
x_k (the paper's proximity space); a row of weight s_k is then s_k features, so R-SVM+ has
``w_k^2 / s_k`` in (9). Few pairs are active: "interior" and "clarabel" solve restricted problems
(module `generation`).

    Fit.route    when                                 cost of a restricted problem
    interior     default                              (n + m) k^2 + k^3 per iteration for n rows,
                                                      m pairs, k features; (n + m)^2 k in R-SVM+
                                                      with k > n + m
    clarabel     solver="clarabel", or "interior"     one cone program
                 ends with a gap above 1e-3
    reference    solver="reference"                   one cone program with all pairs
    equal rows   all rows are equal                   none

"interior" may fail if one class is rare and overlaps the other. Times:
``results/reference/solvers/table.csv``, and `benchmarks/peers.py` for "reference".
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import check_time
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelLike
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import (
    Param,
    choice,
    class_weight,
    kernel_parameter,
    parameter,
    positive,
)
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.radius.generation import solve_all_pairs, solve_generating
from mmbench.machines.radius.pairs import PairProblem
from mmbench.machines.svm import tolerance
from mmbench.memory import TrainingSize

#: Values of C and of lambda in the paper's grid search.
GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)

#: A coefficient is considered zero if its magnitude is at most ZERO_COEFFICIENT times the largest
#: magnitude.
ZERO_COEFFICIENT = 1e-6

#: Operations per feature value, for the time limit: the scaling passes over all values six times.
OPERATIONS_PER_VALUE = 300.0

#: A feature is considered constant if its range is at most ROUNDING times its largest magnitude.
ROUNDING = 16 * np.finfo(float).eps


class ScaledFeatures:
    """Features of the training rows, centred and divided by `unit`.

    `unit` is the root mean square length of the centred rows. Raises ValueError if the squared
    lengths of the rows are outside the range of double precision.
    """

    def __init__(self, problem: BinaryProblem):
        self.linear = problem.kernel.name == "linear"
        rows = np.asarray(problem.X if self.linear else problem.gram, dtype=np.float64)
        check_time(OPERATIONS_PER_VALUE * rows.size)
        self.origin = rows.mean(axis=0)
        self.rows = rows - self.origin
        constant = np.ptp(rows, axis=0) <= ROUNDING * np.abs(rows).max(axis=0)
        # the centred values of a constant feature are rounding errors of its mean, and are replaced
        # by 0
        self.rows[:, constant] = 0.0
        largest = float(np.abs(self.rows).max(initial=0.0))
        self.unit = float(np.sqrt(np.mean(np.einsum("ij,ij->i", self.rows, self.rows))))
        if largest > 0 and not 0.0 < self.unit < np.inf:
            raise ValueError(
                "squares of the features leave the range of double precision; scale the data"
            )
        if self.unit > 0:
            self.rows /= self.unit

    def model(self, w: NDArray, b: float, u: NDArray, state: Any = None, **fit: Any) -> BinaryModel:
        """Convert w and b from the scaled features to a model of the original features.

        The keyword arguments are fields of `Fit`, in the units of the original features.
        """
        w = w / self.unit if self.unit > 0 else w
        coefficients = np.abs(u if self.linear else w)
        n_support = int((coefficients > ZERO_COEFFICIENT * coefficients.max()).sum() * w.any())
        weights = {"w": w} if self.linear else {"coef": w}
        intercept = b - float(self.origin @ w)
        return BinaryModel(intercept, Fit(**fit, n_support=n_support), state=state, **weights)


class RadiusMachine(WeightedClassifier):
    """Base class of the machines with a trade-off between margin and radius of the data.

    A subclass implements `_solve`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Weights w of each pair of classes, one weight per support vector (``rbf``, ``poly``).
        Feature k of a row x is the kernel value ``k(x_k, x)`` with the training row x_k.
    support_, support_vectors_ : ndarray
        Indices and features of the training rows x_k with a non-zero weight w_k for at least one
        pair of classes (``rbf``, ``poly``).
    """

    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"C": ("C", GRID)}, tol=1e-3
    )

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    kernel: KernelLike = kernel_parameter(
        "linear",
        ' With a kernel other than "linear", the kernel values of x with the training rows are '
        "its features: feature k is ``k(x_k, x)``.",
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        # the centred features, products of features and weights, and matrices of the interior point
        if self._in_features(size):
            return size.rows(8) + size.covariances(20)
        return self._gram_bytes(size, 9)

    def _solve(self, features: ScaledFeatures, y: NDArray, s: NDArray, warm: Any) -> BinaryModel:
        """Solve one binary problem with row weights s.

        `warm` is the `BinaryModel.state` of a solution with other parameters, or None.
        """
        raise TypeError(f"{type(self).__name__} does not implement _solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        started, y = time.perf_counter(), problem.y
        # the status of the certificate reports numerical failures
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            features, given = ScaledFeatures(problem), row_weights(problem, self.class_weight)
            s = np.ones(len(y)) if given is None else given
            if features.unit > 0:
                model = self._solve(features, y, s, None if warm is None else warm.state)
            else:
                negative, positive = self.C * float(s[y < 0].sum()), self.C * float(s[y > 0].sum())
                # if w = 0, each row of the class with the smaller sum of penalties has slack 2
                value = 2.0 * min(negative, positive)
                model = features.model(
                    np.zeros(features.rows.shape[1]),
                    1.0 if positive >= negative else -1.0,
                    np.zeros(len(y)),
                    status=Status.TRIVIAL,
                    objective=value,
                    bound=value,
                    max_violation=0.0,
                    route="equal rows",
                    extra={"reason": "all rows are equal"},
                )
        return replace(model, fit=replace(model.fit, seconds=time.perf_counter() - started))


class PairwiseRadiusMachine(RadiusMachine):
    """Base class of the machines R-SVM+ and R-SVMμ+.

    Distances of rows are weighted by mu if `simplex` is true, and by w^2 if `simplex` is false.
    """

    simplex: ClassVar[bool]
    search_space: ClassVar[SearchSpace] = RadiusMachine.search_space.extended(
        {"lam": ("lam", GRID)},
        prefer={"C": "small", "lam": "large", "gamma": "small", "degree": "small"},
    )

    lam: float = parameter(
        1.0, Param(low=0), "The paper's lambda: penalty on the radius.", after="C"
    )
    solver: str = parameter(
        "auto",
        choice("auto", "interior", "clarabel", "reference"),
        '"auto" is "interior": an interior point solves restricted problems with few pairs and '
        'few features, and violated pairs and features are added. "clarabel" solves the '
        'restricted problems by Clarabel; "reference" solves one program with all pairs.',
    )
    tol: float = parameter(1e-6, positive(), "Maximum relative duality gap of an optimal solution.")

    def _solve(self, features: ScaledFeatures, y: NDArray, s: NDArray, warm: Any) -> BinaryModel:
        # if the features are divided by `unit`, w is multiplied by `unit`, ``1/2 ||w||^2`` is
        # multiplied by `unit`^2, and r of R-SVMμ+ is divided by `unit`^2
        square = features.unit**2
        length = square if self.simplex else 1.0
        lam = self.lam * square * length
        if not np.isfinite([lam, self.C * float(s.max()) * square]).all():
            raise ValueError(
                "powers of the features leave the range of double precision; scale the data"
            )
        C, roots = self.C * s, 1.0 if features.linear or self.simplex else np.sqrt(s)
        problem = PairProblem(features.rows * roots, y, C * square, lam, self.simplex, roots)
        tol = tolerance(self.tol, len(y))
        if self.solver == "reference":
            found = solve_all_pairs(problem, tol)
        else:
            found = solve_generating(problem, tol, warm, cone=self.solver == "clarabel")
        u = found.u / square
        # w = 0 has the status "trivial" only if the solver has proved that w = 0 is optimal
        trivial = found.status is Status.OPTIMAL and not found.w.any()
        return features.model(
            *(found.w * roots, found.b, u),
            state=found.active,
            status=Status.TRIVIAL if trivial else found.status,
            objective=found.value / square,
            bound=found.bound / square,
            max_violation=max(abs(float(u.sum())), float((y * u - C).max()), 0.0),
            iterations=found.iterations,
            route=found.route,
            extra={"r": found.r * length, "pairs": len(found.listed.pairs), "rounds": found.rounds},
        )

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Return (C, lambda), the key by which the grid points are ordered."""
        return (point.get("C", 0), point.get("lam", 0))


class RSVMPlus(PairwiseRadiusMachine):
    """R-SVM+: SVM with a penalty on the radius of the features weighted by w, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is the value of (9) at the returned w
        and b, where r is half the largest squared distance of two rows, weighted by w^2. `bound` is
        a lower bound on the optimal value, and `max_violation` is the largest violation of a dual
        constraint. `extra` has the entries "r", "pairs" (number of pairs of rows in the last
        restricted problem) and "rounds" (number of restricted problems).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import RSVMPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RSVMPlus(C=10, lam=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    version: ClassVar[int] = 5
    #: 1: every restricted problem is solved to the final tolerance.
    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 1, "poly": 1}
    simplex = False


class RSVMMuPlus(PairwiseRadiusMachine):
    """R-SVMμ+: SVM with separate feature weights and a penalty on the radius, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is the value of (7) at the returned w,
        b and mu, where r is half the largest squared distance of two rows, weighted by mu. `bound`
        is a lower bound on the optimal value, and `max_violation` is the largest violation of a
        dual constraint. `extra` has the entries "r", "pairs" (number of pairs of rows in the last
        restricted problem) and "rounds" (number of restricted problems).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import RSVMMuPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RSVMMuPlus(C=10, lam=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    version: ClassVar[int] = 6
    simplex = True
