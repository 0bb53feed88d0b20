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
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import LinAlgError

from mmbench.errors import Status
from mmbench.machines.base.estimator import PairwiseClassifier, kernel_parameter
from mmbench.machines.base.parameter import Param, choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.minimax.coordinates import KernelCoordinates, LinearCoordinates, Pencil
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
