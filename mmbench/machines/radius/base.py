"""What R-SVM+, R-SVM_mu+ and MR-SVM share: the coordinates of the rows, units, and the model.

These machines weigh single features, so that a kernel does not enter through inner products. As
published, its matrix takes the place of the data ("proximity space"): feature k of x is
``k(x_k, x)``, and ``f(x) = sum_k w_k k(x_k, x) + b`` is linear in those.

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base import PairwiseClassifier, common_parameters
from mmbench.machines.parameter import Param, choice, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.radius.generation import handed_on
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem
from mmbench.machines.search_space import MemoryNeeds, SearchSpace

#: The published grid of C and of lambda.
GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Answer:
    """What a machine found in the units of `Features`.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
    u : ndarray of shape (n,)
        Signed multipliers of the rows.
    fit : Fit
        In the units of the data; without `seconds` and `n_support`.
    state : object
        For a neighbouring problem.
    """

    w: NDArray
    b: float
    u: NDArray
    fit: Fit
    state: Any = None


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

    def model(self, answer: Answer, seconds: float) -> BinaryModel:
        """Return the model of an answer."""
        w = answer.w / self.unit if self.unit > 0 else answer.w
        n_support = int(np.count_nonzero(answer.u if self.linear else w))
        fit = replace(answer.fit, seconds=seconds, n_support=n_support)
        weights = {"w": w} if self.linear else {"coef": w}
        intercept = answer.b - float(self.origin @ w)
        return BinaryModel(intercept, fit, state=answer.state, **weights)


class RadiusMachine(PairwiseClassifier):
    """Base of the machines that weigh the margin against a radius.

    A subclass implements `_solve`.
    """

    # the matrix, its centred copy, and one scaled by weights
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=3)
    parameters: ClassVar[dict[str, Param]] = common_parameters() | {
        "C": positive(),
        "solver": choice("auto", "reference"),
    }
    search_space: ClassVar[SearchSpace] = PairwiseClassifier.search_space.extended(
        {"C": ("C", GRID)}, tol=1e-3
    )

    C: float

    def _solve(self, features: Features, y: NDArray, warm: Any) -> Answer:
        """Solve one binary problem, from a neighbour's state where one is given."""
        raise TypeError(f"{type(self).__name__} does not implement _solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        started = time.perf_counter()
        features = Features(problem)
        if features.unit > 0:
            answer = self._solve(features, problem.y, None if warm is None else warm.state)
        else:
            answer = self._all_equal(features, problem.y)
        return features.model(answer, time.perf_counter() - started)

    def _all_equal(self, features: Features, y: NDArray) -> Answer:
        """Return the larger class, where all rows are equal; the others have slack 2."""
        positive, negative = int((y > 0).sum()), int((y < 0).sum())
        value = 2.0 * self.C * min(positive, negative)
        reason = {"reason": "all rows are equal"}
        fit = Fit(Status.TRIVIAL, value, value, 0.0, 0, 0.0, 0, extra=reason)
        w, u = np.zeros(features.rows.shape[1]), np.zeros(len(y))
        return Answer(w, 1.0 if positive >= negative else -1.0, u, fit)


class PairwiseRadiusMachine(RadiusMachine):
    """Base of R-SVM+ and R-SVM_mu+, whose radius is the largest distance of a pair of rows.

    A subclass says by `simplex` which distance that is, and implements `_minimise`.
    """

    simplex: ClassVar[bool]
    parameters: ClassVar[dict[str, Param]] = RadiusMachine.parameters | {"lam": Param(low=0)}
    search_space: ClassVar[SearchSpace] = RadiusMachine.search_space.extended(
        {"lam": ("lam", GRID)},
        prefer={"C": "small", "lam": "large", "gamma": "small", "degree": "small"},
    )

    def __init__(
        self,
        C=1.0,
        lam=1.0,
        kernel="linear",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        solver="auto",
        tol=1e-6,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.lam = lam
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _minimise(self, problem: RadiusProblem, start: RadiusPoint | None) -> RadiusPoint:
        """Solve one problem by the route that `solver` names."""
        raise TypeError(f"{type(self).__name__} does not implement _minimise")

    def _solve(self, features: Features, y: NDArray, warm: Any) -> Answer:
        # In units of the rows w is larger, 1/2 ||w||^2 by their square; so is r of R-SVM_mu+.
        square = features.unit**2
        price = self.lam * square * (square if self.simplex else 1.0)
        problem = RadiusProblem(features.rows, y, self.C * square, price, self.simplex)
        if warm is not None:
            before, start = warm  # multipliers at C stay there when C grows
            warm = replace(start, u=start.u * (problem.C / before))
        found = self._minimise(problem, warm)
        long = square if self.simplex else 1.0
        u = found.u / square
        outside = max(abs(float(u.sum())), float((y * u).max()) - self.C, -float((y * u).min()))
        # w = 0 is also what is left where a solver gave up: that proves nothing
        trivial = found.status is Status.OPTIMAL and not found.w.any()
        fit = Fit(
            Status.TRIVIAL if trivial else found.status,
            objective=found.value / square,
            bound=found.bound / square,
            max_violation=max(outside, found.violation * long),
            iterations=found.iterations,
            seconds=0.0,
            n_support=0,
            extra={"r": found.r * long, "pairs": len(found.pairs), "rounds": found.rounds},
        )
        return Answer(found.w, found.b, u, fit, state=(problem.C, handed_on(found)))

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Order a path by C, then lambda."""
        return (point.get("C", 0), point.get("lam", 0))
