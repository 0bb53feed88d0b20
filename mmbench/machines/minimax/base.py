"""Base classes of LDA, MPM, MEMPM and M4: class covariances, ridge, kernels, and coordinates.

The covariance Sc of class c is the plug-in estimate with the factor 1/n_c, where n_c is the number
of rows of the class. A ridge is added to Sc:

    linear   Sc + ridge tr(Sc)/d I
    kernel   Sc + ridge tr(K)/n I,   in coordinates F of the rows with K = F F'

With ``scatter="sum"`` the regularized covariance is then multiplied by n_c. The spread of class c
along a direction w is ``sqrt(w'Sc w)``, the standard deviation of its decision values.

A kernel machine needs the ridge. If the rows are linearly independent in feature space, there is a
direction that maps all rows of a class to the same number. Without a ridge both spreads along this
direction are zero, and all criteria are infinite. The kernel form of the M4 is based on Proposition
1 of the M4 paper, which includes the ridge; the theorem of the paper omits the ridge.

If row weights are given, the machines use weighted means, weighted covariances and a weighted
``tr(K)/n``, and n_c is the total weight of a class. Class weights cancel in the means and the
covariances. In the LDA, class weights are costs of errors; in the M4, they are weights of slacks.

References
----------
K. Huang, H. Yang, I. King, M. Lyu: Maxi-min margin machine: learning large margin classifiers
locally and globally. IEEE Trans. Neural Networks 19(2), 2008.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.estimator import PairwiseClassifier, kernel_parameter
from mmbench.machines.base.parameters import Param, choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.minimax.coordinates import (
    DiagonalData,
    KernelCoordinates,
    LinearCoordinates,
    pivoted_cholesky,
)
from mmbench.machines.minimax.spread import GramSpread
from mmbench.solvers.result import Result

#: The rank of a kernel matrix is estimated from a submatrix with every k-th row and column (k >= 2)
#: and with at most `RANK_ROWS` rows. The kernel matrix is treated as low-rank if the rank of the
#: submatrix is at most `LOW_RANK_SHARE` times its number of rows.
RANK_ROWS, LOW_RANK_SHARE = 1000, 0.5

#: Lower bound on the relative ridge for the Gram route. Machines with a smaller ridge are trained
#: in diagonal coordinates, since the rounding errors of a kernel matrix are larger than the ridge.
LEAST_GRAM_RIDGE = 1e-8

#: The class means are treated as equal if their squared distance in feature space, relative to the
#: mean squared norm of a row, is at most this value.
EQUAL_KERNEL_MEANS = 1e-13


class CovarianceMachine(PairwiseClassifier):
    """Base class of the machines based on class means and covariances.

    A subclass implements `solve`.
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"ridge": ("ridge", (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))},
        prefer={"gamma": "small", "degree": "small", "ridge": "large"},
        single_precision=False,  # rounding errors of float32 would increase the numerical rank
    )
    #: Peak memory in copies of the kernel matrix or of the rows. The Gram route usually needs 2
    #: copies, and 4 copies if most rows have non-zero multipliers.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=4, linear_row_copies=4)
    translation_invariant: ClassVar[bool] = True

    ridge: float = parameter(
        1e-8,
        Param(low=0),
        "Relative ridge: ``ridge tr(Sc)/d I``, or with a kernel ``ridge tr(K)/n I``, is added to "
        "each class covariance Sc. A kernel machine needs a larger ridge, selected like the "
        "parameters of the kernel.",
    )
    scatter: str = parameter(
        "mean",
        choice("mean", "sum"),
        'Scale of the class covariances: "mean" has the factor 1/n_c; "sum" is the sum of '
        "squares, as in the MMRM paper.",
    )
    kernel: Any = kernel_parameter("linear")
    tol: float = parameter(1e-6, positive(), "Maximum relative gap of an optimal solution.")

    @property
    def total_only(self) -> bool:
        """Whether the machine uses the covariances only in their sum."""
        return False

    def solve(self, data: DiagonalData) -> BinaryModel:
        """Return the model of one binary problem, with `w` in the coordinates of `data`."""
        raise TypeError(f"{type(self).__name__} does not implement solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return self._train_ordered([self], problem)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every grid point; points with the same ridge share coordinates or a factor."""
        order = sorted(range(len(points)), key=lambda k: self.path_key(points[k]))
        models = self._train_ordered([self.with_params(points[k]) for k in order], problem)
        return [models[k] for k in np.argsort(order)]

    def _train_ordered(self, machines: Sequence[Self], problem: BinaryProblem) -> list[BinaryModel]:
        """Train machines with the same kernel, sorted by `path_key`.

        The computation time is divided equally among the models.
        """
        started = time.perf_counter()
        linear = problem.kernel.name == "linear"
        coordinates = LinearCoordinates(problem) if linear else KernelCoordinates(problem)
        models: dict[int, BinaryModel] = {}
        for ridge in dict.fromkeys(machine.ridge for machine in machines):
            members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
            try:
                total_only = all(machines[k].total_only for k in members)
                data = replace(coordinates.diagonal(ridge, total_only), classes=problem.classes)
            except LinAlgError as error:
                raise ValueError(
                    "the class covariances are singular to working precision with "
                    f"ridge={ridge:g}: take a larger one, or scale the data"
                ) from error
            found = [
                separating_model(data)
                if data.free
                else machines[k].solve(data.with_scatter(machines[k].scatter))
                for k in members
            ]
            models.update(zip(members, coordinates.models(found), strict=True))
        seconds = (time.perf_counter() - started) / len(models)
        ordered = [models[k] for k in range(len(machines))]
        return [replace(model, fit=replace(model.fit, seconds=seconds)) for model in ordered]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel != "linear" and self.ridge == 0:
            raise ValueError(
                f"{type(self).__name__}: ridge must be > 0 with kernel {self.kernel!r}, since "
                "without a ridge every training set is separated with an infinite margin"
            )


class SpreadMachine(CovarianceMachine):
    """Base class of MPM and M4, which minimise the sum of the class spreads and have a Gram route.

    Diagonal coordinates can be used for all C. The computation of the coordinates takes negligible
    time for a low-rank kernel matrix, and ten times as long as a Cholesky factorization for a
    kernel matrix of full rank. Solver "gram" trains on the kernel matrix. Solver "auto" also trains
    on the kernel matrix if the matrix is not of low rank, `scatter` is "mean" and the ridge is at
    least LEAST_GRAM_RIDGE. benchmarks/peers.py measures the growth of both times with n.

    A subclass implements `solve` and `solve_gram`.
    """

    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 3, "poly": 3}

    def solve_gram(self, machines: Sequence[Self], spread: GramSpread) -> list[BinaryModel]:
        """Train machines with the same ridge and ascending C on a kernel matrix."""
        raise TypeError(f"{type(self).__name__} does not implement solve_gram")

    def _has_gram_route(self) -> bool:
        plain = self.scatter == "mean" and self.ridge >= LEAST_GRAM_RIDGE
        return plain and self.solver in ("auto", "gram")

    def _train_ordered(self, machines: Sequence[Self], problem: BinaryProblem) -> list[BinaryModel]:
        models: dict[int, BinaryModel] = {}
        if problem.kernel.name != "linear" and problem.weights is None:
            able = [k for k, machine in enumerate(machines) if machine._has_gram_route()]
            if able and (self.solver == "gram" or not _is_low_rank(problem)):
                models = self._train_over_gram({k: machines[k] for k in able}, problem)
        rest = [k for k in range(len(machines)) if k not in models]
        if rest:
            found = super()._train_ordered([machines[k] for k in rest], problem)
            models.update(zip(rest, found, strict=True))
        return [models[k] for k in range(len(machines))]

    def _train_over_gram(
        self, machines: Mapping[int, Self], problem: BinaryProblem
    ) -> dict[int, BinaryModel]:
        """Return the models with a closed duality gap, by index.

        The caller trains the other machines in diagonal coordinates. After the time limit, models
        with an open gap are returned too.
        """
        gram, y, models = np.asarray(problem.gram, dtype=float), problem.y, {}
        unit = float(np.trace(gram)) / len(y)
        means = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
        if means @ (gram @ means) <= EQUAL_KERNEL_MEANS * unit:
            return {}
        for ridge in dict.fromkeys(machine.ridge for machine in machines.values()):
            started = time.perf_counter()
            members = [k for k, machine in machines.items() if machine.ridge == ridge]
            try:
                spread = GramSpread(gram, y, ridge * unit)
                found = self.solve_gram([machines[k] for k in members], spread)
            except LinAlgError:
                # if rows are nearly equal, the matrix is not positive definite in floating point
                continue
            seconds = (time.perf_counter() - started) / len(members)
            for k, model in zip(members, found, strict=True):
                fit = replace(model.fit, seconds=seconds)
                if fit.status is not Status.INACCURATE or time_is_up():
                    models[k] = replace(model, fit=fit, coef=model.w, w=None)
        return models


def _is_low_rank(problem: BinaryProblem) -> bool:
    step = max(2, -(-len(problem.y) // RANK_ROWS))
    part = np.array(problem.gram[::step, ::step], dtype=float)
    return len(pivoted_cholesky(part)[1]) <= LOW_RANK_SHARE * len(part)


def certificate(found: Result, tol: float, n_support: int, **extra: Any) -> Fit:
    """Return the certificate of a result; the status is INACCURATE if the gap exceeds `tol`."""
    return Fit(
        found.status if found.closed(tol) else Status.INACCURATE,
        objective=found.value,
        bound=found.bound,
        max_violation=found.violation,
        iterations=found.iterations,
        n_support=n_support,
        route=found.route,
        extra=extra,
    )


def majority_model(data: DiagonalData, status: Status, reason: str, **facts: Any) -> BinaryModel:
    """Return a model that always predicts the larger class; `facts` are fields of its `Fit`."""
    extra = {"reason": reason, **facts.pop("extra", {})}
    values = {"objective": 0.0, "bound": 0.0, "max_violation": 0.0, **facts}
    fit = Fit(status, **values, route="closed form", extra=extra)
    return BinaryModel(data.majority, fit, w=np.zeros(data.rows.shape[1]))


def separating_model(data: DiagonalData) -> BinaryModel:
    """Return a model that separates the classes along a direction of zero within-class variance."""
    reason = "the class means differ along a direction of zero variance in both classes"
    model = majority_model(data, Status.UNBOUNDED, reason)
    w = 2.0 / data.delta
    intercept = -0.5 * float(w @ (data.mean_x + data.mean_y))
    return replace(model, intercept=intercept, w=w, fit=replace(model.fit, n_support=len(data.y)))
