"""Base classes of LDA, MPM, MEMPM and M4, the machines that use class means and covariances.

The covariance Sc of class c has the factor 1/n_c, where n_c is the size of the class, and a ridge:

    linear kernel   Sc + ridge tr(Sc)/d I,   for d features
    other kernels   Sc + ridge tr(K)/n I,    for the kernel matrix K = F F' of n rows

With a kernel, Sc is the covariance of the rows of F. With ``scatter="sum"``, the sum is multiplied
by n_c. The spread of class c along w is ``sqrt(w'Sc w)``. Kernel machines need the ridge: if the
rows are linearly independent in feature space, there are directions in which neither class has a
spread. The M4 paper has it in Proposition 1, but not in its theorem on kernels.

The guaranteed accuracy is derived in docs/machines/minimax.md. A class without spread would lie on
its boundary, which therefore moves towards the other class by 5e-7 times the distance of the
projected means.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelLike
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.parameters import Param, choice, kernel_parameter, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import GAMMA_GRID, SearchSpace
from mmbench.machines.minimax.coordinates import (
    NO_VARIANCE,
    DiagonalData,
    KernelCoordinates,
    LinearCoordinates,
    pivoted_cholesky,
)
from mmbench.machines.minimax.spread import GramSpread, spreads, worst_case_accuracy
from mmbench.memory import TrainingSize
from mmbench.solvers.result import Result

#: The kernel matrix is treated as low-rank if the matrix of a sample of at most RANK_ROWS rows has
#: a rank of at most LOW_RANK_SHARE times the number of these rows.
RANK_ROWS, LOW_RANK_SHARE = 1000, 0.5

#: Smallest relative ridge for training on the kernel matrix (route "gram"), whose rounding errors
#: may exceed a smaller ridge. Below, machines are trained in diagonal coordinates.
LEAST_GRAM_RIDGE = 1e-8

#: In the feature space of the kernel, two class means are treated as equal if their squared
#: distance is at most EQUAL_KERNEL_MEANS times the mean squared norm of the rows.
EQUAL_KERNEL_MEANS = 1e-13


class CovarianceMachine(PairwiseClassifier):
    """Base class of the machines based on class means and covariances.

    A subclass implements `solve`.
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {**GAMMA_GRID, "ridge": ("ridge", (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))},
        prefer={"gamma": "small", "degree": "small", "ridge": "large"},
        single_precision=False,  # float32 errors would increase the rank of the kernel matrix
    )
    translation_invariant: ClassVar[bool] = True

    ridge: float = parameter(
        1e-8,
        Param(low=0),
        "Relative ridge: ``ridge tr(Sc)/d I``, or with a kernel ``ridge tr(K)/n I``, is added to "
        "each class covariance Sc. A kernel machine needs a larger ridge, selected like gamma.",
    )
    scatter: str = parameter(
        "mean",
        choice("mean", "sum"),
        'Scale of the class covariances: "mean" has the factor 1/n_c; "sum" (MMRM paper) has none.',
    )
    kernel: KernelLike = kernel_parameter("linear")
    tol: float = parameter(1e-6, positive(), "Maximum relative gap of an optimal solution.")

    @property
    def total_ridge(self) -> float:
        """Relative ridge added to the class covariances."""
        return self.ridge

    @property
    def total_only(self) -> bool:
        """Whether the machine uses only the sum of both class covariances."""
        return False

    def solve(self, data: DiagonalData) -> BinaryModel:
        """Return a model of the two classes, with weights `w` in the coordinates of `data`."""
        raise TypeError(f"{type(self).__name__} does not implement solve")

    def solved(self, data: DiagonalData) -> BinaryModel:
        """Return the model of `solve`, or a separating model if `DiagonalData.free` is true."""
        return separating_model(data) if data.free else self.solve(data.with_scatter(self.scatter))

    def bytes_needed(self, size: TrainingSize) -> float:
        # in diagonal coordinates, 4 copies of the rows or of the kernel matrix, and blocks
        if self._in_features(size):
            return size.rows(5) + size.covariances(4)
        return self._gram_bytes(size, 5)

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return self._train_ordered([self], problem)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train one model per grid point, with one matrix factorization per value of the ridge."""
        order = sorted(range(len(points)), key=lambda k: self.path_key(points[k]))
        models = self._train_ordered([self.with_params(points[k]) for k in order], problem)
        return [models[k] for k in np.argsort(order)]

    def _train_ordered(self, machines: Sequence[Self], problem: BinaryProblem) -> list[BinaryModel]:
        """Train machines that have the same kernel and are sorted by `path_key`.

        The `seconds` of each `Fit` are the total computation time divided by the number of models.
        """
        started = time.perf_counter()
        linear = problem.kernel.name == "linear"
        if linear and not all(machine.total_ridge for machine in machines):
            _warn_of_omitted(problem.X)
        coordinates = LinearCoordinates(problem) if linear else KernelCoordinates(problem)
        models: dict[int, BinaryModel] = {}
        for ridge in dict.fromkeys(machine.total_ridge for machine in machines):
            members = [k for k, machine in enumerate(machines) if machine.total_ridge == ridge]
            try:
                total_only = all(machines[k].total_only for k in members)
                data = replace(coordinates.diagonal(ridge, total_only), classes=problem.classes)
            except LinAlgError as error:
                raise ValueError(
                    "the class covariances are singular to working precision with "
                    f"ridge={ridge:g}: set a larger ridge, or scale the data"
                ) from error
            found = [machines[k].solved(data) for k in members]
            models.update(zip(members, coordinates.models(found), strict=True))
        seconds = (time.perf_counter() - started) / len(models)
        return [replace(m, fit=replace(m.fit, seconds=seconds)) for _, m in sorted(models.items())]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel != "linear" and self.total_ridge == 0:
            raise ValueError(
                f"{type(self).__name__}: ridge must be > 0 with kernel {self.kernel!r}, since "
                "without a ridge every training set is separated with an infinite margin"
            )


class WorstCaseMachine(CovarianceMachine):
    """Base class of MPM, MEMPM and M4, whose solutions guarantee an accuracy.

    Attributes
    ----------
    worst_case_accuracy_ : ndarray of shape (n_pairs,)
        Lower bound on the accuracy of the worse class of each pair. The bound holds for all class
        distributions with the means and the covariances of the training rows, including the ridge,
        or with means and covariances within the radii `robust_mean` and `robust_covariance`. For
        other distributions, the accuracy on new rows may be smaller. The bound is 0 if the machine
        predicts only the larger class, and 1 if the classes do not vary along w.
    """

    robust_mean: float = parameter(
        0.0,
        Param(low=0),
        "Radius of the set of means m of class c: ``(m - mc)'S^-1 (m - mc) <= robust_mean^2`` for "
        "the mean mc of the rows and the covariance S of the class. Changes "
        "`worst_case_accuracy_`, and the solution of the MEMPM.",
        after="ridge",
    )
    robust_covariance: float = parameter(
        0.0,
        Param(low=0),
        "Radius of the set of covariances S of class c, in the unit of `ridge`: ``||S - Sc||_F <= "
        "robust_covariance tr(Sc)/d``, or with a kernel ``robust_covariance tr(K)/n``. Adds to "
        "`ridge`.",
        after="ridge",
    )

    @property
    def worst_case_accuracy_(self) -> NDArray:
        """Lower bound on the accuracy of the worse class of each pair."""
        return np.array([fit.extra.get("worst_case_accuracy", 0.0) for fit in self.fits_])

    @property
    def total_ridge(self) -> float:
        return self.ridge + self.robust_covariance

    def solved(self, data: DiagonalData) -> BinaryModel:
        model = super().solved(data)
        w = np.asarray(model.w)
        means = np.array([data.mean_x @ w, data.mean_y @ w])
        return self.assessed(model, means, spreads(w, data.var_x, data.var_y))

    def assessed(self, model: BinaryModel, means: NDArray, spreads: NDArray) -> BinaryModel:
        """Add the worst-case accuracy to `Fit.extra`, given the projected means and the spreads."""
        margins = np.array([1.0, -1.0]) * (means + model.intercept)
        bound = worst_case_accuracy(margins, spreads, self.robust_mean)
        extra = {**model.fit.extra, "worst_case_accuracy": bound}
        return replace(model, fit=replace(model.fit, extra=extra))


class SpreadMachine(WorstCaseMachine):
    """Base class of MPM and M4, the machines that may also be trained on the kernel matrix.

    Linear machines are trained in coordinates in which both class covariances are diagonal. They
    take negligible time at a low rank of the kernel matrix, and ten times as long as a Cholesky
    factor of the matrix at full rank (`benchmarks/peers.py`). Therefore "auto" trains on a kernel
    matrix of high rank, and "gram" on any, if ``scatter="mean"``, row weights are 1, and the ridge
    is at least LEAST_GRAM_RIDGE.

    A subclass implements `solve` and `solve_gram`.
    """

    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 3, "poly": 3}

    def solve_gram(self, machines: Sequence[Self], spread: GramSpread) -> list[BinaryModel]:
        """Train machines with the same ridge, in ascending order of C, on a kernel matrix."""
        raise TypeError(f"{type(self).__name__} does not implement solve_gram")

    def _has_gram_route(self) -> bool:
        plain = self.scatter == "mean" and self.total_ridge >= LEAST_GRAM_RIDGE
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
        """Train on the kernel matrix, and return a dictionary with the keys of `machines`.

        Models with a duality gap above the tolerance are returned only if the time limit is
        reached.
        """
        gram, y, models = np.asarray(problem.gram, dtype=float), problem.y, {}
        unit = float(np.trace(gram)) / len(y)
        means = np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
        if means @ (gram @ means) <= EQUAL_KERNEL_MEANS * unit:
            return {}
        for ridge in dict.fromkeys(machine.total_ridge for machine in machines.values()):
            started = time.perf_counter()
            members = [k for k, machine in machines.items() if machine.total_ridge == ridge]
            try:
                spread = GramSpread(gram, y, ridge * unit)
                found = self.solve_gram([machines[k] for k in members], spread)
            except (ArithmeticError, LinAlgError):
                # rounding errors can make the kernel matrix of nearly equal rows indefinite; the
                # caller then trains in diagonal coordinates
                continue
            seconds = (time.perf_counter() - started) / len(members)
            for k, model in zip(members, found, strict=True):
                fit = replace(model.fit, seconds=seconds)
                # if a model is missing, the caller trains its machine in diagonal coordinates
                if abs(fit.gap) <= self.tol or time_is_up():
                    coef = np.asarray(model.w)
                    f = gram @ coef
                    means = np.array([f[y > 0].mean(), f[y < 0].mean()])
                    models[k] = machines[k].assessed(
                        replace(model, fit=fit, coef=coef, w=None), means, spread.spreads(coef, f)
                    )
        return models


def _warn_of_omitted(X: NDArray) -> None:
    """Emit a warning if features vary too little to have an effect without a ridge."""
    deviation = X.std(axis=0)
    rounding = 1e-12 * np.abs(X).max(axis=0)  # a constant feature may have a tiny deviation
    small = (deviation <= NO_VARIANCE**0.5 * deviation.max()) & (deviation > rounding)
    if small.any():
        few = f"{small.sum()} features with a small standard deviation"
        warnings.warn(f"without a ridge, {few} have no effect; standardise them", stacklevel=2)


def _is_low_rank(problem: BinaryProblem) -> bool:
    step = max(2, -(-len(problem.y) // RANK_ROWS))
    part = np.array(problem.gram[::step, ::step], dtype=float)
    return len(pivoted_cholesky(part)[1]) <= LOW_RANK_SHARE * len(part)


def certificate(found: Result, tol: float, n_support: int, **extra: Any) -> Fit:
    """Return the `Fit` of a solver's result, with status INACCURATE if the gap exceeds `tol`."""
    status = found.status if found.closed(tol) else Status.INACCURATE
    return Fit.of(found, status=status, n_support=n_support, extra=extra)


def majority_model(data: DiagonalData, status: Status, reason: str, **facts: Any) -> BinaryModel:
    """Return a model that always predicts the larger class, with `facts` as fields of its `Fit`."""
    extra = {"reason": reason, **facts.pop("extra", {})}
    values = {"objective": 0.0, "bound": 0.0, "max_violation": 0.0, **facts}
    fit = Fit(status, **values, route="closed form", extra=extra)
    return BinaryModel(data.majority, fit, w=np.zeros(data.rows.shape[1]))


def separating_model(data: DiagonalData) -> BinaryModel:
    """Return a model for data with a single coordinate of zero variance (`DiagonalData.free`)."""
    reason = "the class means differ along a direction of zero variance in both classes"
    model = majority_model(data, Status.UNBOUNDED, reason)
    w = 2.0 / data.delta
    intercept = -0.5 * float(w @ (data.mean_x + data.mean_y))
    return replace(model, intercept=intercept, w=w, fit=replace(model.fit, n_support=len(data.y)))
