"""What LDA, MPM, MEMPM and M4 share: class covariances, their ridge, kernels, and the estimator.

The covariances are the plug-in estimates with 1/n_c; ``scatter="sum"`` multiplies them by n_c. A
ridge is added first:

    linear   Sc + ridge tr(Sc)/d I
    kernel   Sc + ridge tr(K)/n I,   in coordinates F of the rows with K = F F'

In the span of the data a kernel machine needs the ridge: rows that are linearly independent can be
mapped onto their class means exactly, both spreads are zero then, and every criterion is infinite.
Proposition 1 of the M4 paper, on which its kernel form rests, has the ridge; its theorem lost it.

With weights of the rows the means, the covariances and ``tr(K)/n`` are weighted, and n_c is the
weight of a class: LDA, MPM and MEMPM. The M4 takes none: its programs have one penalty for all
slacks. Weights of classes cancel in means and covariances; the LDA has them as costs of errors.

References
----------
K. Huang, H. Yang, I. King, M. Lyu: Maxi-min margin machine: learning large margin classifiers
locally and globally. IEEE Trans. Neural Networks 19(2), 2008.

MPM and M4 with many rows, and at every point of a grid: routes without diagonal coordinates.

Both machines need ``S = Sx/theta + Sy/(1 - theta)`` at few theta only, while the coordinates of
`coordinates` serve every theta and cost as much as ten Cholesky factors of S. One training on many
rows goes over the whole Gram matrix, see `gram`. A grid search ranks accuracies; the training that
follows it is certified. So with a kernel one Cholesky factor of S serves a ridge, see `factor`, and
the factor ``K = F F'`` stops where what is left of K cannot be seen beside the ridge. F, the
covariances, a factor, and a kernel in single precision with what it is made of are alive at once:
no more than four arrays of the size of K. benchmarks/m4_search.py compares this with trainings one
by one and in coordinates.

The M4 is searched to the tolerance of its training, as scores at a rough one are not those of the
machine: at 1e-3 they differed at one point in 20 of Heart, Sonar and Ionosphere, by up to 0.05 near
the least useful C, where w = 0 is nearly as good. At 1e-6 none of 672 differs, for 2 to 3 times the
time.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from mmbench.errors import Status
from mmbench.machines.base.estimator import PairwiseClassifier, kernel_parameter
from mmbench.machines.base.parameters import Param, choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.minimax.coordinates import (
    KernelCoordinates,
    LinearCoordinates,
    Pencil,
    pivoted_cholesky,
)
from mmbench.machines.minimax.spread import SpreadFactor, SpreadGram
from mmbench.solvers.result import Result


class CovarianceMachine(PairwiseClassifier):
    """Base of the machines that see each class through its mean and covariance.

    A subclass implements `solve`.
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"ridge": ("ridge", (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))},
        prefer={"gamma": "small", "degree": "small", "ridge": "large"},
        single_precision=False,  # a factor of float32 values has their noise for rank
    )
    #: What a search holds, and a training over a Gram matrix where most rows have multipliers; 2 is
    #: usual. Many rows are not even copied.
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

    def solve(self, pencil: Pencil, state: Any) -> BinaryModel:
        """Solve one binary problem in diagonal coordinates: what a machine has to implement.

        Parameters
        ----------
        pencil : Pencil
        state : object
            That of the model of a neighbouring problem on the same rows, or None.

        Returns
        -------
        BinaryModel
            Its `w` is in the coordinates of the pencil.
        """
        raise TypeError(f"{type(self).__name__} does not implement solve")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return train_in_coordinates([self], problem, None if warm is None else warm.state)[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; one factor of the Gram matrix serves all."""
        order = sorted(range(len(points)), key=lambda k: self.path_key(points[k]))
        models = self._train_ordered([self.with_params(points[k]) for k in order], problem)
        return [models[k] for k in np.argsort(order)]

    def _train_ordered(self, machines: Sequence[Self], problem: BinaryProblem) -> list[BinaryModel]:
        """Train machines of one kernel, in the order of `path_key`."""
        return train_in_coordinates(machines, problem)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel != "linear" and self.ridge == 0:
            raise ValueError(
                f"{type(self).__name__}: ridge must be > 0 with kernel {self.kernel!r}, where "
                "without it every training set is separated with an infinite margin"
            )


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
        extra=extra,
    )


def majority_model(pencil: Pencil, status: Status, reason: str, **facts: Any) -> BinaryModel:
    """Return the decision for the larger class, whatever the row.

    Parameters
    ----------
    pencil : Pencil
    status : Status
    reason : str
        Why there is no other solution; goes to `Fit.extra`.
    **facts
        Fields of `Fit` that differ from zero.
    """
    empty = {"objective": 0.0, "bound": 0.0, "max_violation": 0.0, "iterations": 0}
    extra = {"reason": reason, **facts.pop("extra", {})}
    fit = Fit(status, **{**empty, **facts}, seconds=0.0, n_support=0, extra=extra)
    return BinaryModel(pencil.majority, fit, w=np.zeros(pencil.rows.shape[1]))


def separating_model(pencil: Pencil) -> BinaryModel:
    """Return the separation along a direction in which neither class varies."""
    fit = Fit(
        Status.UNBOUNDED,
        objective=0.0,
        bound=0.0,
        max_violation=0.0,
        iterations=0,
        seconds=0.0,
        n_support=len(pencil.y),
        extra={"reason": "the classes differ along a direction in which neither varies"},
    )
    w = 2.0 / pencil.delta
    return BinaryModel(-0.5 * float(w @ (pencil.mean_x + pencil.mean_y)), fit, w=w)


def train_in_coordinates(
    machines: Sequence[CovarianceMachine], problem: BinaryProblem, state: Any = None
) -> list[BinaryModel]:
    """Train machines of one kernel on one problem, each from the state of the one before it.

    Parameters
    ----------
    machines : sequence of CovarianceMachine
    problem : BinaryProblem
    state : object, optional
        For the first.

    Returns
    -------
    list of BinaryModel
        In the order of `machines`. What they share is charged to them in equal parts.

    Raises
    ------
    ValueError
        If a ridge is lost in the rounding of the covariances.
    """
    linear = problem.kernel.name == "linear"
    started = time.perf_counter()
    coordinates = LinearCoordinates(problem) if linear else KernelCoordinates(problem)
    shared = time.perf_counter() - started
    models: dict[int, BinaryModel] = {}
    for ridge in dict.fromkeys(machine.ridge for machine in machines):
        started = time.perf_counter()
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        try:
            pencil = replace(coordinates.pencil(ridge), classes=problem.classes)
        except LinAlgError as error:
            raise ValueError(
                "the class covariances are singular to working precision with "
                f"ridge={ridge:g}: take a larger one, or scale the data"
            ) from error
        found = []
        for k in members:
            found.append(_timed(machines[k], pencil, state))
            state = found[-1].state
        models.update(zip(members, coordinates.models(found), strict=True))
        own = sum(model.fit.seconds for model in found)
        shared += (time.perf_counter() - started) - own
    return [
        replace(model, fit=replace(model.fit, seconds=model.fit.seconds + shared / len(models)))
        for _, model in sorted(models.items())
    ]


def _timed(machine: CovarianceMachine, pencil: Pencil, state: Any) -> BinaryModel:
    started = time.perf_counter()
    if pencil.free:
        model = separating_model(pencil)
    else:
        model = machine.solve(pencil.with_scatter(machine.scatter), state)
    seconds = time.perf_counter() - started
    return replace(model, fit=replace(model.fit, seconds=seconds))


#: From this many rows on a single training on a kernel does not pay for diagonal coordinates.
GRAM_ROUTE_ROWS = 1000

#: A ridge below this is lost in the rounding of the Gram matrix; coordinates leave it its digits.
LEAST_GRAM_RIDGE = 1e-8

#: From this relative gap on a path of trainings is one of a search.
LEAST_SEARCH_TOL = 1e-6

#: Class means are equal if their squared distance is below this share of the rows' mean square.
EQUAL_KERNEL_MEANS = 1e-13


class SpreadMachine(CovarianceMachine):
    """Base of the machines of the total spread, MPM and M4.

    A subclass implements `solve_gram` and `solve_factor` beside `solve`. With a kernel, ``scatter``
    "mean" and a ridge that is not lost in rounding, solver "gram" trains over the Gram matrix, and
    so does "auto" from `GRAM_ROUTE_ROWS` rows on.
    """

    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 2, "poly": 2}

    def solve_gram(self, problem: SpreadGram) -> BinaryModel | None:
        """Solve a kernel problem over its Gram matrix; None where it takes coordinates."""
        raise TypeError(f"{type(self).__name__} does not implement solve_gram")

    def solve_factor(
        self, machines: Sequence[Self], factor: SpreadFactor, theta: float
    ) -> tuple[list[BinaryModel], float]:
        """Solve for machines of one ridge to the accuracy of a search.

        Parameters
        ----------
        machines : sequence of this class
            Their C ascend.
        factor : SpreadFactor
        theta : float
            To start from.

        Returns
        -------
        list of BinaryModel
            In the coordinates of the factor.
        float
            The theta from which to start at another ridge.
        """
        raise TypeError(f"{type(self).__name__} does not implement solve_factor")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        model = self._train_over_gram(problem) if self._takes_gram(problem) else None
        return super().train(problem, warm) if model is None else model

    def _takes_gram(self, problem: BinaryProblem) -> bool:
        plain = self.scatter == "mean" and problem.weights is None
        sound = plain and self.ridge >= LEAST_GRAM_RIDGE
        chosen = self.solver == "gram"
        if self.solver == "auto":
            chosen = len(problem.y) > GRAM_ROUTE_ROWS
        return chosen and sound and problem.kernel.name != "linear"

    def _train_over_gram(self, problem: BinaryProblem) -> BinaryModel | None:
        started = time.perf_counter()
        gram = np.asarray(problem.gram, dtype=float)
        ridge = self.ridge * float(np.trace(gram)) / len(gram)
        try:
            model = self.solve_gram(SpreadGram(gram, problem.y, ridge))
        except LinAlgError:  # rows so alike that rounding decides
            return None
        if model is None:
            return None
        return replace(model, fit=replace(model.fit, seconds=time.perf_counter() - started))

    def _train_ordered(self, machines: Sequence[Self], problem: BinaryProblem) -> list[BinaryModel]:
        models = None
        kernel = problem.kernel.name != "linear"  # features are fewer: coordinates cost nothing
        plain = kernel and problem.weights is None
        if plain and all(machine._searches_by_factor for machine in machines):
            try:
                models = train_for_search(machines, problem)
            except LinAlgError:  # rows so alike that rounding decides
                models = None
        return super()._train_ordered(machines, problem) if models is None else models

    @property
    def _solver_in_coordinates(self) -> str:
        """The solver where a problem is not one over a Gram matrix."""
        return "auto" if self.solver == "gram" else self.solver

    @property
    def _searches_by_factor(self) -> bool:
        """Whether a search may take `solve_factor`."""
        rough = self.solver == "auto" and self.tol >= LEAST_SEARCH_TOL
        return rough and self.scatter == "mean" and self.ridge > 0


class KernelRows:
    """A pivoted Cholesky factor ``K = F F'``, as far as each ridge sees it.

    Notes
    -----
    A row whose distance from the span of F is ``e`` moves a decision by at most ``e^2 sum|c|``, c
    being the expansion of w over the rows, and ``ridge sum|c|`` is a small number in units of the
    margin, as c is a multiplier or a residual divided by the ridge. With ``e^2 <= tol ridge/10`` a
    decision moves by less than `tol`.
    """

    def __init__(self, problem: BinaryProblem, least_ridge: float, tol: float):
        gram = problem.copied_gram()
        self._unit, self._unseen = float(np.trace(gram)) / len(gram), 0.1 * tol
        rows, self._pivots = pivoted_cholesky(gram, self._unseen * least_ridge * self._unit)
        del gram
        self._lengths = rows[self._pivots, np.arange(rows.shape[1])] ** 2
        self._origin = rows.mean(axis=0)
        rows -= self._origin
        self.whole = SpreadFactor.of(rows, problem.y)

    def at(self, ridge: float) -> SpreadFactor:
        """Return the problem at a ridge, in the coordinates that it sees."""
        amount = ridge * self._unit
        seen = int((self._lengths > self._unseen * amount).sum())
        return self.whole.first(max(1, seen), (amount, amount))

    def expanded(self, W: NDArray) -> tuple[list[dict[str, Any]], NDArray]:
        """Return expansions of directions, columns of W, over the rows, and what to take from b."""
        coef = np.zeros((W.shape[1], len(self.whole.y)))
        triangle = self.whole.rows[self._pivots]
        triangle += self._origin
        solved = solve_triangular(triangle.T, W, lower=False, check_finite=False)
        coef[:, self._pivots] = solved.T
        return [{"coef": c} for c in coef], self._origin @ W


def train_for_search(
    machines: Sequence[SpreadMachine], problem: BinaryProblem
) -> list[BinaryModel] | None:
    """Train kernel machines that differ in ridge and C alone.

    Parameters
    ----------
    machines : sequence of SpreadMachine
        Their C ascend.
    problem : BinaryProblem

    Returns
    -------
    list of BinaryModel or None
        In the order of `machines`; None where the class means are equal.

    Raises
    ------
    scipy.linalg.LinAlgError
        If rounding makes a covariance singular.
    """
    started = time.perf_counter()
    ridges = list(dict.fromkeys(machine.ridge for machine in machines))
    rows = KernelRows(problem, min(ridges), machines[0].tol)
    whole = rows.whole
    if (
        whole.delta @ whole.delta
        <= EQUAL_KERNEL_MEANS * np.mean(whole.rows**2) * whole.rows.shape[1]
    ):
        return None
    W, theta = np.zeros((whole.rows.shape[1], len(machines))), 0.5
    models: dict[int, BinaryModel] = {}
    for ridge in ridges:
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        factor = rows.at(ridge)
        found, theta = machines[0].solve_factor([machines[k] for k in members], factor, theta)
        for k, model in zip(members, found, strict=True):
            w = np.asarray(model.w)
            W[: len(w), k], models[k] = w, model
    weights, shifts = rows.expanded(W)
    seconds = (time.perf_counter() - started) / len(machines)
    return [
        BinaryModel(
            models[k].intercept - float(shifts[k]),
            replace(models[k].fit, seconds=seconds),
            **weights[k],
        )
        for k in range(len(machines))
    ]
