"""The base of LDA, MPM, MEMPM and M4: class covariances, their ridge, kernels, and coordinates.

The covariances are the plug-in estimates with 1/n_c; ``scatter="sum"`` multiplies them by n_c. A
ridge is added first:

    linear   Sc + ridge tr(Sc)/d I
    kernel   Sc + ridge tr(K)/n I,   in coordinates F of the rows with K = F F'

A kernel machine needs the ridge: rows that are linearly independent can be mapped onto their class
means exactly, both spreads are zero then, and every criterion is infinite. Proposition 1 of the M4
paper, on which its kernel form rests, has the ridge; its theorem omits it.

With row weights the means, the covariances and ``tr(K)/n`` are weighted, and n_c is the weight of a
class (LDA, MPM and MEMPM). The M4 has no row weights: its programs have one penalty for all slacks.
Class weights cancel in means and covariances; in the LDA they are costs of errors.

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

#: A kernel matrix is taken for one of low rank if the rank of its part on every k-th row, at most
#: RANK_ROWS of them and at least every other row, is below LOW_RANK_SHARE of that part.
RANK_ROWS, LOW_RANK_SHARE = 1000, 0.5

#: Smaller relative ridges are lost in the rounding of a kernel matrix, but not in coordinates.
LEAST_GRAM_RIDGE = 1e-8

#: Class means are equal if their squared distance is below this share of the mean squared length of
#: a row.
EQUAL_KERNEL_MEANS = 1e-13


class CovarianceMachine(PairwiseClassifier):
    """Base of the machines that see each class through its mean and covariance.

    A subclass implements `solve`.
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"ridge": ("ridge", (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))},
        prefer={"gamma": "small", "degree": "small", "ridge": "large"},
        single_precision=False,  # rounding of float32 values would count as rank
    )
    #: The peak of the Gram route, reached if most rows have multipliers; 2 is usual.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=4, linear_row_copies=4)
    translation_invariant: ClassVar[bool] = True

    ridge: float = parameter(
        1e-8,
        Param(low=0),
        "Relative ridge: ``Sc + ridge tr(Sc)/d I``, with a kernel ``ridge tr(K)/n``. A kernel needs"
        " a larger one, chosen like its width.",
    )
    scatter: str = parameter(
        "mean",
        choice("mean", "sum"),
        "Covariances with 1/n_c, or sums of squares, as the MMRM paper writes them.",
    )
    kernel: Any = kernel_parameter("linear")
    tol: float = parameter(1e-6, positive(), "Relative gap of an optimal solution.")

    def solve(self, data: DiagonalData, state: Any) -> BinaryModel:
        """Solve one binary problem in diagonal coordinates.

        Parameters
        ----------
        data : DiagonalData
        state : object
            The state of the model of a neighbouring problem on the same rows, or None.

        Returns
        -------
        BinaryModel
            Its `w` is in the coordinates of `data`.
        """
        raise TypeError(f"{type(self).__name__} does not implement solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return self._train_ordered([self], problem, None if warm is None else warm.state)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; the coordinates, or the factor of a ridge, serve all points."""
        order = sorted(range(len(points)), key=lambda k: self.path_key(points[k]))
        models = self._train_ordered([self.with_params(points[k]) for k in order], problem)
        return [models[k] for k in np.argsort(order)]

    def _train_ordered(
        self, machines: Sequence[Self], problem: BinaryProblem, state: Any = None
    ) -> list[BinaryModel]:
        """Train machines of one kernel, in the order of `path_key`."""
        return train_in_coordinates(machines, problem, state)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel != "linear" and self.ridge == 0:
            raise ValueError(
                f"{type(self).__name__}: ridge must be > 0 with kernel {self.kernel!r}, where "
                "without it every training set is separated with an infinite margin"
            )


class SpreadMachine(CovarianceMachine):
    """Base of the machines of the total spread, MPM and M4, which have a Gram route.

    Diagonal coordinates serve every theta and C, but cost ten times a Cholesky factor of a kernel
    matrix of full rank; of a low-rank matrix they cost next to nothing. Solver "gram" trains over
    the kernel matrix, and so does "auto" if its rank is not low, scatter is "mean" and the ridge is
    not lost in rounding. benchmarks/m4_search.py and benchmarks/m4_growth.py compare the routes.

    A subclass implements `solve_gram` beside `solve`.
    """

    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 3, "poly": 3}

    def solve_gram(self, machines: Sequence[Self], spread: GramSpread) -> list[BinaryModel]:
        """Solve for machines of one ridge, whose C ascend, over a kernel matrix."""
        raise TypeError(f"{type(self).__name__} does not implement solve_gram")

    def _has_gram_route(self) -> bool:
        plain = self.scatter == "mean" and self.ridge >= LEAST_GRAM_RIDGE
        return plain and self.solver in ("auto", "gram")

    def _train_ordered(
        self, machines: Sequence[Self], problem: BinaryProblem, state: Any = None
    ) -> list[BinaryModel]:
        models: dict[int, BinaryModel] = {}
        if problem.kernel.name != "linear" and problem.weights is None:
            able = [k for k, machine in enumerate(machines) if machine._has_gram_route()]
            if able and (self.solver == "gram" or not _is_low_rank(problem)):
                models = self._train_over_gram({k: machines[k] for k in able}, problem)
        rest = [k for k in range(len(machines)) if k not in models]
        if rest:
            found = train_in_coordinates([machines[k] for k in rest], problem, state)
            models.update(zip(rest, found, strict=True))
        return [models[k] for k in range(len(machines))]

    def _train_over_gram(
        self, machines: Mapping[int, Self], problem: BinaryProblem
    ) -> dict[int, BinaryModel]:
        """Return the models that are certified; the others are left to diagonal coordinates."""
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
            except LinAlgError:  # rows so similar that rounding decides
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
    """Return the certificate of a solver's result; `tol` is the relative gap of an optimum."""
    return Fit(
        found.status if found.closed(tol) else Status.INACCURATE,
        objective=found.value,
        bound=found.bound,
        max_violation=found.violation,
        iterations=found.iterations,
        seconds=0.0,
        n_support=n_support,
        route=found.route,
        extra=extra,
    )


def majority_model(data: DiagonalData, status: Status, reason: str, **facts: Any) -> BinaryModel:
    """Return the constant decision for the larger class; `facts` are fields of `Fit`."""
    empty = {"objective": 0.0, "bound": 0.0, "max_violation": 0.0, "iterations": 0}
    extra = {"reason": reason, **facts.pop("extra", {})}
    values = {**empty, **facts, "seconds": 0.0, "n_support": 0, "route": "closed form"}
    fit = Fit(status, **values, extra=extra)
    return BinaryModel(data.majority, fit, w=np.zeros(data.rows.shape[1]))


def separating_model(data: DiagonalData) -> BinaryModel:
    """Return the separation along a direction in which neither class varies."""
    reason = "the classes differ along a direction in which neither varies"
    model = majority_model(data, Status.UNBOUNDED, reason)
    w = 2.0 / data.delta
    intercept = -0.5 * float(w @ (data.mean_x + data.mean_y))
    return replace(model, intercept=intercept, w=w, fit=replace(model.fit, n_support=len(data.y)))


def train_in_coordinates(
    machines: Sequence[CovarianceMachine], problem: BinaryProblem, state: Any = None
) -> list[BinaryModel]:
    """Train machines of one kernel on one problem, each from the state of the one before it.

    The time for shared coordinates is divided equally among the models.
    """
    started = time.perf_counter()
    linear = problem.kernel.name == "linear"
    coordinates = LinearCoordinates(problem) if linear else KernelCoordinates(problem)
    models: dict[int, BinaryModel] = {}
    training = 0.0
    for ridge in dict.fromkeys(machine.ridge for machine in machines):
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        try:
            data = replace(coordinates.diagonal(ridge), classes=problem.classes)
        except LinAlgError as error:
            raise ValueError(
                "the class covariances are singular to working precision with "
                f"ridge={ridge:g}: take a larger one, or scale the data"
            ) from error
        found = []
        for k in members:
            began = time.perf_counter()
            if data.free:
                model = separating_model(data)
            else:
                model = machines[k].solve(data.with_scatter(machines[k].scatter), state)
            seconds = time.perf_counter() - began
            training += seconds
            found.append(replace(model, fit=replace(model.fit, seconds=seconds)))
            state = model.state
        models.update(zip(members, coordinates.models(found), strict=True))
    shared = (time.perf_counter() - started - training) / len(models)
    return [
        replace(models[k], fit=replace(models[k].fit, seconds=models[k].fit.seconds + shared))
        for k in range(len(machines))
    ]
