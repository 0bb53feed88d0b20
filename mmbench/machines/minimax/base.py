"""What LDA, MPM, MEMPM and M4 share: class covariances, their ridge, kernels, and the estimator.

The covariances are the plug-in estimates with 1/n_c; ``scatter="sum"`` multiplies them by n_c. A
ridge is added first:

    linear   Sc + ridge tr(Sc)/d I
    kernel   Sc + ridge tr(K)/n I,   in coordinates F of the rows with K = F F'

In the span of the data a kernel machine needs the ridge: rows that are linearly independent can be
mapped onto their class means exactly, both spreads are zero then, and every criterion is infinite.
Proposition 1 of the M4 paper, on which its kernel form rests, has the ridge; its theorem lost it.

References
----------
K. Huang, H. Yang, I. King, M. Lyu: Maxi-min margin machine: learning large margin classifiers
locally and globally. IEEE Trans. Neural Networks 19(2), 2008.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, lapack, qr

from mmbench.errors import Status
from mmbench.machines.base import PairwiseClassifier, common_parameters
from mmbench.machines.minimax.coordinates import Pencil, diagonalise
from mmbench.machines.minimax.factor import SpreadFactor
from mmbench.machines.minimax.gram import SpreadGram
from mmbench.machines.parameter import Param, choice
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.search_space import MemoryNeeds, SearchSpace

#: From this many rows on a single training on a kernel does not pay for diagonal coordinates.
LARGE = 1000

#: A ridge below this is lost in the rounding of the Gram matrix; coordinates leave it its digits.
LEAST_RIDGE = 1e-8

#: Up to this many rows a search takes a Cholesky factor for each theta.
MOST_FACTORED = 3000

#: From this relative gap on a path of trainings is one of a search.
ROUGH = 1e-4


@dataclass(frozen=True)
class Answer:
    """What a machine found in the coordinates of a `Pencil`.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
        ``f = U w + b`` on the training rows.
    fit : Fit
    state : object
        For a neighbouring problem.
    """

    w: NDArray
    b: float
    fit: Fit
    state: Any = None


class Coordinates(Protocol):
    """Finite coordinates of the training rows, and the way back from a direction in them."""

    def pencil(self, ridge: float) -> Pencil:
        """Return the rows in the coordinates that belong to a ridge."""

    def models(self, answers: Sequence[Answer]) -> list[BinaryModel]:
        """Return the models of answers given in the coordinates of the last pencil."""


class LinearCoordinates:
    """The features, or coordinates of the span of the rows where that is smaller."""

    def __init__(self, problem: BinaryProblem):
        self.y = problem.y
        self.origin = problem.X.mean(axis=0)
        self.rows = problem.X - self.origin
        self.basis = np.eye(self.rows.shape[1])
        if self.rows.shape[1] > self.rows.shape[0]:
            self.basis, triangle = qr(self.rows.T, mode="economic", check_finite=False)
            self.rows = triangle.T

    def pencil(self, ridge: float) -> Pencil:
        """Return the rows in the coordinates that belong to a ridge."""
        pencil, self.change = diagonalise(self.rows, self.y, *self.ridges(ridge), self.basis)
        return pencil

    def ridges(self, ridge: float) -> tuple[float, float]:
        """Return the absolute ridges of the positive and the negative class."""
        x, y = (
            ridge * float(self.rows[side].var(axis=0).sum()) / len(self.origin)
            for side in (self.y > 0, self.y < 0)
        )
        return x, y

    def models(self, answers: Sequence[Answer]) -> list[BinaryModel]:
        """Return the models of answers given in the coordinates of the last pencil."""
        weights = [self.change @ answer.w for answer in answers]
        return [
            BinaryModel(answer.b - float(self.origin @ w), answer.fit, w=w, state=answer.state)
            for answer, w in zip(answers, weights, strict=True)
        ]


class KernelCoordinates:
    """A pivoted Cholesky factor of the Gram matrix, ``K = F F'``.

    It stops where what is left is rounding. A direction w is expanded over the pivots alone: the
    values ``g = F w`` are reproduced there by ``a = K_pp^-1 g_p``, and so everywhere.
    """

    def __init__(self, problem: BinaryProblem):
        self.y = problem.y
        gram = problem.copied_gram()
        self.unit = float(np.trace(gram)) / len(gram)
        self.rows, self.pivots = pivoted_cholesky(gram)
        self.origin = self.rows.mean(axis=0)
        self.rows -= self.origin

    def pencil(self, ridge: float) -> Pencil:
        """Return the rows in the coordinates that belong to a ridge."""
        amount = ridge * self.unit
        self.last, carried = diagonalise(self.rows, self.y, amount, amount, self.origin[None])
        self.shift = carried[0]
        return self.last

    def models(self, answers: Sequence[Answer]) -> list[BinaryModel]:
        """Return the models of answers given in the coordinates of the last pencil."""
        W = np.column_stack([answer.w for answer in answers])
        shifts = self.shift @ W
        values = (self.last.rows @ W + shifts)[self.pivots]
        triangle = self.rows[self.pivots]
        triangle += self.origin
        coef = np.zeros((len(answers), len(self.y)))
        coef[:, self.pivots] = cho_solve((triangle, True), values, check_finite=False).T
        return [
            BinaryModel(answer.b - float(shift), answer.fit, coef=a, state=answer.state)
            for answer, shift, a in zip(answers, shifts, coef, strict=True)
        ]


def pivoted_cholesky(gram: NDArray, left: float = -1.0) -> tuple[NDArray, NDArray]:
    """Factor a positive semidefinite matrix up to a small remainder, in place.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Symmetric, C-contiguous; destroyed.
    left : float, optional
        Largest diagonal element that may remain; by default rounding alone does.

    Returns
    -------
    factor : ndarray of shape (n, rank)
        F with ``gram = F F'``; its rows at the pivots are lower triangular.
    pivots : ndarray of shape (rank,)

    Examples
    --------
    >>> factor, pivots = pivoted_cholesky(np.array([[4.0, 2.0, 2.0], [2.0, 1.0, 1.0], [2, 1, 5]]))
    >>> (factor @ factor.T).round(12)
    array([[4., 2., 2.],
           [2., 1., 1.],
           [2., 1., 5.]])
    >>> pivots
    array([2, 0], dtype=int32)
    """
    # The transpose of a symmetric array is itself, in the order of LAPACK.
    triangle, order, rank, _ = lapack.dpstrf(gram.T, tol=left, lower=1, overwrite_a=1)
    for column in range(1, rank):
        triangle[:column, column] = 0.0
    factor = np.empty((len(gram), rank))
    factor[order - 1] = triangle[:, :rank]
    return factor, order[:rank] - 1


# -- the estimator -------------------------------------------------------------------------------


def covariance_parameters() -> dict[str, Param]:
    """Return the declarations of the parameters that every machine of the family takes."""
    return common_parameters() | {"ridge": Param(low=0), "scatter": choice("mean", "sum")}


class CovarianceMachine(PairwiseClassifier):
    """Base of the machines that see each class through its mean and covariance.

    A subclass implements `_answer`.
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"ridge": ("ridge", (1e-6, 1e-4, 1e-3, 1e-2, 1e-1))},
        prefer={"gamma": "small", "degree": "small", "ridge": "large"},
        single_precision=False,  # a factor of float32 values has their noise for rank
    )
    # What a search holds; above LARGE rows a training has 2.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=4)

    ridge: float
    scatter: str
    solver: str

    def _answer(self, pencil: Pencil, warm: Any) -> Answer:
        """Solve one binary problem in diagonal coordinates, from a neighbour's state if given."""
        raise TypeError(f"{type(self).__name__} does not implement _answer")

    def _fit_of(
        self,
        pencil: Pencil | SpreadFactor,
        objective: float,
        bound: float,
        w: NDArray,
        iterations: int,
    ) -> Fit:
        """Return the certificate of a criterion under ``w'(xm - ym) = 1``."""
        fit = Fit(
            Status.OPTIMAL,
            objective=objective,
            bound=bound,
            max_violation=abs(float(pencil.delta @ w) - 1.0),
            iterations=iterations,
            seconds=0.0,
            n_support=len(pencil.y),
        )
        accurate = objective - bound <= self.tol * abs(objective)
        return fit if accurate else replace(fit, status=Status.INACCURATE)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.kernel != "linear" and self.ridge == 0:
            raise ValueError(
                f"{type(self).__name__}: ridge must be > 0 with kernel {self.kernel!r}, where "
                "without it every training set is separated with an infinite margin"
            )

    @property
    def _searches_by_factor(self) -> bool:
        """Whether a search may take `_search`."""
        return False

    def _search(
        self, machines: Sequence[Self], factor: SpreadFactor, theta: float
    ) -> tuple[list[Answer], float]:
        """Solve for machines of one ridge to the accuracy of a search.

        Parameters
        ----------
        machines : sequence of this class
            Their prices ascend.
        factor : SpreadFactor
        theta : float
            To start from.

        Returns
        -------
        list of Answer
            In the coordinates of the factor.
        float
            The theta from which to start at another ridge.
        """
        raise TypeError(f"{type(self).__name__} does not implement _search")

    def _large_answer(self, problem: SpreadGram) -> Answer | None:
        """Solve a kernel problem of many rows over its Gram matrix; None: it takes coordinates."""
        return None

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        large = problem.kernel.name != "linear" and len(problem.y) > LARGE
        sound = self.scatter == "mean" and self.ridge >= LEAST_RIDGE
        if large and sound and self.solver == "auto":
            model = self._train_large(problem)
            if model is not None:
                return model
        return train_all([self], problem, None if warm is None else warm.state)[0]

    def _train_large(self, problem: BinaryProblem) -> BinaryModel | None:
        started = time.perf_counter()
        gram = np.asarray(problem.gram, dtype=float)
        ridge = self.ridge * float(np.trace(gram)) / len(gram)
        try:
            answer = self._large_answer(SpreadGram(gram, problem.y, ridge))
        except LinAlgError:  # rows so alike that rounding decides
            return None
        if answer is None:
            return None
        fit = replace(answer.fit, seconds=time.perf_counter() - started)
        return BinaryModel(answer.b, fit, coef=answer.w)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point; one factor of the Gram matrix serves all."""
        order = sorted(range(len(points)), key=lambda k: self.path_key(points[k]))
        machines = [self.with_params(points[k]) for k in order]
        models = self._train_for_search(machines, problem) or train_all(machines, problem, None)
        back = np.argsort(order)
        return [models[k] for k in back]

    def _train_for_search(
        self, machines: Sequence[Self], problem: BinaryProblem
    ) -> list[BinaryModel] | None:
        """Train with a Cholesky factor for each theta; None where that does not serve."""
        if len(problem.y) > MOST_FACTORED or min(machine.ridge for machine in machines) == 0:
            return None
        if not all(machine._searches_by_factor for machine in machines):
            return None
        from mmbench.machines.minimax.search import train_for_search

        try:
            return train_for_search(machines, problem)
        except LinAlgError:  # rows so alike that rounding decides
            return None


def constant(pencil: Pencil, status: Status, reason: str, **facts: Any) -> Answer:
    """Return the classifier that says the larger class whatever it sees.

    Parameters
    ----------
    pencil : Pencil
    status : Status
    reason : str
        Why there is no other answer; goes to `Fit.extra`.
    **facts
        Fields of `Fit` that differ from zero.
    """
    empty = {"objective": 0.0, "bound": 0.0, "max_violation": 0.0, "iterations": 0}
    extra = {"reason": reason, **facts.pop("extra", {})}
    fit = Fit(status, **{**empty, **facts}, seconds=0.0, n_support=0, extra=extra)
    return Answer(np.zeros(pencil.rows.shape[1]), pencil.majority, fit)


def separated(pencil: Pencil) -> Answer:
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
    return Answer(w, -0.5 * float(w @ (pencil.mean_x + pencil.mean_y)), fit)


def train_all(
    machines: Sequence[CovarianceMachine], problem: BinaryProblem, state: Any
) -> list[BinaryModel]:
    """Train machines of one kernel on one problem, each from the state of the one before it.

    Parameters
    ----------
    machines : sequence of CovarianceMachine
    problem : BinaryProblem
    state : object
        For the first; None where there is none.

    Returns
    -------
    list of BinaryModel
        In the order of `machines`. What they share is charged to them in equal parts.
    """
    linear = problem.kernel.name == "linear"
    started = time.perf_counter()
    coordinates = LinearCoordinates(problem) if linear else KernelCoordinates(problem)
    shared = time.perf_counter() - started
    models: dict[int, BinaryModel] = {}
    for ridge in dict.fromkeys(machine.ridge for machine in machines):
        started = time.perf_counter()
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        pencil = coordinates.pencil(ridge)
        answers = []
        for k in members:
            answers.append(_timed_answer(machines[k], pencil, state))
            state = answers[-1].state
        found = coordinates.models(answers)
        own = sum(model.fit.seconds for model in found)
        shared += (time.perf_counter() - started) - own
        models.update(zip(members, found, strict=True))
    return [
        replace(model, fit=replace(model.fit, seconds=model.fit.seconds + shared / len(models)))
        for _, model in sorted(models.items())
    ]


def _timed_answer(machine: CovarianceMachine, pencil: Pencil, state: Any) -> Answer:
    started = time.perf_counter()
    if pencil.free:
        answer = separated(pencil)
    else:
        answer = machine._answer(pencil.with_scatter(machine.scatter), state)
    seconds = time.perf_counter() - started
    return replace(answer, fit=replace(answer.fit, seconds=seconds))
