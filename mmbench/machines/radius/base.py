"""What R-SVM+, R-SVM_mu+ and MR-SVM share: the coordinates of the rows, units, and the model.

These machines weigh single features, so that a kernel does not enter through inner products. As
published, its matrix takes the place of the data ("proximity space"): feature k of x is
``k(x_k, x)``, and ``f(x) = sum_k w_k k(x_k, x) + b`` is linear in those.

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import (
    WeightedClassifier,
    class_weight,
    kernel_parameter,
    row_weights,
)
from mmbench.machines.base.parameters import Param, choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem
from mmbench.machines.radius.programs import passed_on, solve_all_pairs, solve_generating
from mmbench.machines.svm import tolerance

#: The published grid of C and of lambda.
GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)

#: A coefficient, as a share of the largest, that is zero but for the accuracy of an interior point.
ZERO_COEFFICIENT = 1e-6


class Features:
    """The rows of a problem in features of their own, centred and of unit mean square length.

    Attributes
    ----------
    rows : ndarray of shape (n, k)
    unit : float
        Length that was divided by.
    """

    def __init__(self, problem: BinaryProblem):
        self.linear = problem.kernel.name == "linear"
        rows = np.asarray(problem.X if self.linear else problem.gram, dtype=np.float64)
        self.origin = rows.mean(axis=0)
        self.rows = rows - self.origin
        self.unit = float(np.sqrt(np.mean(np.einsum("ij,ij->i", self.rows, self.rows))))
        if self.unit > 0:
            self.rows /= self.unit

    def model(self, w: NDArray, b: float, u: NDArray, state: Any = None, **fit: Any) -> BinaryModel:
        """Return the model of w and b in these features.

        Parameters
        ----------
        w : ndarray of shape (k,)
        b : float
        u : ndarray of shape (n,)
            Signed multipliers of the rows.
        state : object
            For a neighbouring problem.
        **fit
            Of the certificate, in the units of the data.
        """
        w = w / self.unit if self.unit > 0 else w
        coefficients = np.abs(u if self.linear else w)
        n_support = int((coefficients > ZERO_COEFFICIENT * coefficients.max()).sum())
        weights = {"w": w} if self.linear else {"coef": w}
        intercept = b - float(self.origin @ w)
        return BinaryModel(
            intercept, Fit(**fit, seconds=0.0, n_support=n_support), state=state, **weights
        )


class RadiusMachine(WeightedClassifier):
    """Base of the machines that weigh the margin against a radius.

    A subclass implements `_solve`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        w of each pair, over the training rows that make its features (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows whose feature has a non-zero w in some pair (``rbf``, ``poly``).
    """

    #: The features, centred and times weights, with what an interior point makes of them. Pairs of
    #: rows are up to some times the rows.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(
        gram_copies=9, linear_row_copies=4, covariance_copies=20
    )
    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"C": ("C", GRID)}, tol=1e-3
    )

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    kernel: Any = kernel_parameter(
        "linear",
        ' Other than "linear" it makes the features: feature k of x is ``k(x_k, x)``, one a '
        "training row.",
    )

    def _solve(self, features: Features, y: NDArray, s: NDArray | None, warm: Any) -> BinaryModel:
        """Solve one binary problem, from a neighbour's state where one is given; s are weights."""
        raise TypeError(f"{type(self).__name__} does not implement _solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        started = time.perf_counter()
        features = Features(problem)
        solve = self._solve if features.unit > 0 else self._all_equal
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # the status says so
            s = row_weights(problem, self.class_weight)
            model = solve(features, problem.y, s, None if warm is None else warm.state)
        return replace(model, fit=replace(model.fit, seconds=time.perf_counter() - started))

    def _all_equal(
        self, features: Features, y: NDArray, s: NDArray | None, warm: Any
    ) -> BinaryModel:
        """Return the larger class, where all rows are equal; the others have slack 2."""
        s = np.ones(len(y)) if s is None else s
        negative, positive = float(s[y < 0].sum()), float(s[y > 0].sum())
        smaller = min(negative, positive)
        return features.model(
            np.zeros(features.rows.shape[1]),
            1.0 if positive >= negative else -1.0,
            np.zeros(len(y)),
            status=Status.TRIVIAL,
            objective=2.0 * self.C * smaller,
            bound=2.0 * self.C * smaller,
            max_violation=0.0,
            iterations=0,
            extra={"reason": "all rows are equal"},
        )


class PairwiseRadiusMachine(RadiusMachine):
    """Base of R-SVM+ and R-SVM_mu+, whose radius is the largest distance of a pair of rows.

    A subclass says by `simplex` which distance that is.
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
        '"auto" is "interior": an interior point for few pairs and few features, to which the '
        'most violated are added. "clarabel" does the same with cone programs of a general '
        'solver, "reference" lists all pairs in one.',
    )
    tol: float = parameter(1e-6, positive(), "Relative duality gap.")

    def _solve(self, features: Features, y: NDArray, s: NDArray | None, warm: Any) -> BinaryModel:
        # In units of the rows w is larger, 1/2 ||w||^2 by their square; so is r of R-SVM_mu+.
        square = features.unit**2
        length = square if self.simplex else 1.0
        lam = self.lam * square * length
        C = self.C if s is None else self.C * s
        of_features = None if features.linear or self.simplex else s
        roots = 1.0 if of_features is None else np.sqrt(of_features)
        problem = RadiusProblem(features.rows * roots, y, C * square, lam, self.simplex, roots)
        if warm is not None:
            before, start = warm  # multipliers at C stay there when C grows
            warm = replace(start, u=start.u * (problem.C / before))
        found = self._minimise(problem, warm)
        u = found.u / square
        # w = 0 is also what is left where a solver gave up: that proves nothing
        trivial = found.status is Status.OPTIMAL and not found.w.any()
        return features.model(
            *(found.w * roots, found.b, u),
            state=(problem.C, passed_on(found)),
            status=Status.TRIVIAL if trivial else found.status,
            objective=found.value / square,
            bound=found.bound / square,
            max_violation=max(abs(float(u.sum())), float((y * u - C).max()), 0.0),
            iterations=found.iterations,
            extra={"r": found.r * length, "pairs": len(found.pairs), "rounds": found.rounds},
        )

    def _minimise(self, problem: RadiusProblem, start: RadiusPoint | None) -> RadiusPoint:
        tol = tolerance(self.tol, len(problem.y))
        if self.solver == "reference":
            return solve_all_pairs(problem, tol)
        return solve_generating(problem, tol, start, cone=self.solver == "clarabel")

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Order a path by C, then lambda."""
        return (point.get("C", 0), point.get("lam", 0))
