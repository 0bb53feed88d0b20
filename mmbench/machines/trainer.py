"""What a machine implements, and what selection uses of it: the training of one pair of classes."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from mmbench.errors import NotEnoughMemory
from mmbench.kernels import KERNELS, Kernel, row_squares
from mmbench.kernels.given import PRECOMPUTED, is_given, is_semidefinite
from mmbench.machines.free_memory import LEAST_CHECKED_BYTES, cache_bytes, refuse_what_does_not_fit
from mmbench.machines.parameter import Declared, Param, choice, parameter, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem
from mmbench.machines.search_space import MemoryNeeds, SearchSpace


def kernel_parameter(default: str = "rbf", more: str = "") -> Any:
    """Declare the kernel of a machine; `more` is what it says of its own."""
    return parameter(
        default,
        Param(numeric=False, choices=(*KERNELS, PRECOMPUTED), function=True),
        "``u'v``, ``(1 + u'v)**degree`` or ``exp(-gamma ||u - v||^2)``; \"precomputed\": X is the "
        "kernel matrix, (n_samples, n_samples) in `fit` and (n_rows, n_samples) in `predict`; or a "
        f"function that takes X and Z and returns their kernel matrix.{more}",
    )


class PairwiseTrainer(Declared):
    """The trainer of a two-class machine, with its parameters.

    A subclass declares its parameters (see `parameter`) and implements `train`. Selection
    calls `with_params`, `kernel_for`, `train_path` and `train_folds`, which a machine may override
    where it shares work between grid points or folds, and reads these class attributes:

    - ``kernels``: names of the kernels for which the machine is defined; with one that is not
      linear it also takes kernel matrices and functions;
    - ``parameters``: the declared parameters by name;
    - ``search_space``: how its parameters are searched, a `SearchSpace`;
    - ``memory_needs``: what a training holds at once, a `MemoryNeeds`;
    - ``sparse_input``: whether rows may be sparse; they are then never made dense;
    - ``translation_invariant``: whether a linear machine is the same for rows that are all moved;
    - ``convex_on_any_matrix``: whether its problem is convex on a kernel matrix with negative
      eigenvalues too; its bounds then hold;
    - ``gap_tolerance_factor``: largest relative gap of an optimal solution, in units of ``tol``;
    - ``version``: raised whenever a change may alter results; part of every record's key;
    - ``kernel_versions``: the same for what alters those of one kernel only, by its name.
    """

    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf")
    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"gamma": ("gamma", tuple(2.0**k for k in range(-15, 4, 2)))},  # libsvm's guide
        prefer={"C": "small", "gamma": "small", "degree": "small"},
    )
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds()
    sparse_input: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = False
    convex_on_any_matrix: ClassVar[bool] = False
    gap_tolerance_factor: ClassVar[float] = 1.0
    version: ClassVar[int] = 1
    kernel_versions: ClassVar[Mapping[str, int]] = MappingProxyType({})

    kernel: Any = kernel_parameter()
    gamma: float | str = parameter(
        "scale",
        Param(low=0, open_low=True, choices=("scale", "auto")),
        'Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``, "auto" ``1 / n_features``.',
    )
    gamma_scaling: str = parameter(
        "none",
        choice("none", "per_feature"),
        '"per_feature" divides gamma by the number of features.',
    )
    degree: int = parameter(3, Param(low=1, integer=True), "Degree of ``poly``.")
    solver: str = parameter(
        "auto", choice("auto", "reference"), "Which route solves the optimisation problem."
    )
    tol: float = parameter(1e-6, positive(), "Tolerance of the solver.")
    ties: str = parameter(
        "lowest",
        choice("lowest", "random"),
        "Which of several classes with most votes is predicted.",
    )
    random_state: int | None = parameter(
        None, Param(low=0, integer=True, optional=True), 'Seed of ``ties="random"``.'
    )
    n_jobs: int | None = parameter(
        None, Param(integer=True, optional=True), "Threads over pairs of classes."
    )
    time_limit: float | None = parameter(
        None,
        positive(optional=True),
        "Seconds for `fit`, of which the pairs of classes that are left share what is left. A "
        "solver that reaches it ends with the best that it has, some steps later: see `status` and "
        "`gap` in `fits_`. What has a closed form does not ask. Pairs for which nothing is left "
        "are not begun, and predict the larger class.",
    )

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        """Solve one binary problem: the method that a machine has to implement.

        Parameters
        ----------
        problem : BinaryProblem
        warm : BinaryModel, optional
            The solution of a neighbouring problem on the same rows, to start from.

        Returns
        -------
        BinaryModel
            With its certificate, whose `pair` the caller sets.
        """
        raise TypeError(f"{type(self).__name__} does not implement train")

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Return the sort key of a grid point on a warm-started path: C ascending by default."""
        return (point.get("C", 0),)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every grid point of one kernel; the models come back in the order of `points`.

        Each training starts from the one before it on the path. A machine that shares more than
        that between points (an eigendecomposition, class sums) overrides this.
        """
        models: list[BinaryModel | None] = [None] * len(points)
        model = None
        for k in sorted(range(len(points)), key=lambda k: self.path_key(points[k])):
            model = models[k] = self.with_params(points[k]).train(problem, model)
        return models  # type: ignore[return-value]

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold of a cross-validation, one fold's matrix alive at a time.

        A machine that shares work between folds overrides this.
        """
        for problem in problems:
            yield self.train_path(problem, points)

    def with_params(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted copy with other parameters, at a fraction of the cost of `clone`.

        `clone` inspects signatures and copies deeply: on a path of a thousand small problems that
        takes longer than the training.
        """
        other = copy(self)
        other.__dict__.update(params)
        return other

    def kernel_for(self, X: NDArray, weights: NDArray | None = None) -> Kernel:
        """Return the kernel with the width and scaling that follow from the training rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        weights : ndarray of shape (n_samples,), optional
            How often a row counts in the variance by which ``gamma="scale"`` is set.

        Raises
        ------
        ValueError
            If it has values on these rows that are not finite.
        """
        if is_given(self.kernel):
            return Kernel(PRECOMPUTED)
        gamma = self.gamma if self.kernel == "rbf" else 1.0
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                variance = X.shape[1] * _variance(X, weights)
            gamma = 1.0 / variance if variance > np.finfo(float).tiny else 1.0
        if self.gamma_scaling == "per_feature":
            gamma = gamma / X.shape[1]
        kernel = Kernel(self.kernel, gamma=float(gamma), degree=self.degree)
        # a parameter of the machines that were published with it
        trace = getattr(self, "kernel_scaling", "none") == "trace"
        kernel = kernel.trace_normalised(X, weights) if trace else kernel
        if not kernel.is_finite(X):
            raise ValueError("the kernel matrix has values that are not finite; scale the data")
        return kernel

    @classmethod
    def needs_at(cls, params: Mapping[str, Any]) -> MemoryNeeds:
        """Return what a training with some parameters holds, where these change it."""
        return cls.memory_needs

    def check_memory(self, n_rows: int, n_features: int, weighted: bool = False) -> None:
        """Refuse a training that needs more memory than is free, before anything is computed.

        Parameters
        ----------
        n_rows : int
            Of the pair of classes.
        n_features : int
        weighted : bool, default=False
            Whether rows have weights.
        """
        needs, shape = self.needs_at(vars(self)), (n_rows, n_features)
        needs = needs.with_weights() if weighted else needs
        by_reference = self.solver == "reference"
        if needs.training_bytes(self.kernel, shape, by_reference) > LEAST_CHECKED_BYTES:
            most = cache_bytes(getattr(self, "cache_size", None))
            needed = needs.training_bytes(self.kernel, shape, by_reference, most)
            task = f"{type(self).__name__} on {n_rows} rows with kernel {self.kernel!r}"
            refuse_what_does_not_fit(task, needed)

    @contextmanager
    def indefinite_named(self, gram: NDArray | None) -> Iterator[NDArray | None]:
        """Warn of a given matrix that makes a problem nonconvex, and name it where training fails.

        Duals are unbounded then, and factors empty: what solvers say of that names no cause.

        Parameters
        ----------
        gram : ndarray of shape (n_samples, n_samples) or None

        Yields
        ------
        ndarray of shape (n_samples, n_samples) or None
            The matrix if it makes the problem nonconvex.
        """
        if gram is None or self.convex_on_any_matrix or is_semidefinite(gram):
            yield None
            return
        machine, least = type(self).__name__, float(eigvalsh(gram, subset_by_index=[0, 0])[0])
        flaw = f"kernel matrix is not positive semidefinite: its least eigenvalue is {least:.3g}"
        remedy = f"add at least {-least:.3g} to its diagonal, or set negative eigenvalues to 0"
        warnings.warn(
            f"the {flaw}; {machine} solves no convex problem then, and has no bound in `fits_`; "
            f"{remedy}",
            stacklevel=5,  # the caller of `fit`
        )
        try:
            with np.errstate(all="ignore"):  # roots of negative squares: it has been said why
                yield gram
        except NotEnoughMemory:
            raise
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"the {flaw}; {machine} has no solution on it; {remedy}") from error

    @property
    def gap_tolerance(self) -> float:
        """Largest relative gap of a solution that counts as optimal."""
        return self.gap_tolerance_factor * self.tol

    @property
    def violation_tolerance(self) -> float:
        """Largest violation of a constraint by a solution that counts as optimal."""
        return self.tol


def _variance(X: Any, weights: NDArray | None = None) -> float:
    """Return the variance of all entries, those that a sparse array does not hold included."""
    if weights is not None:
        share = weights / (weights.sum() * X.shape[1])
        mean = float(share @ np.asarray(X.sum(axis=1)).ravel())
        return float(share @ row_squares(X)) - mean**2
    if isinstance(X, np.ndarray):
        return float(X.var())
    return float(row_squares(X).sum()) / np.prod(X.shape) - float(X.mean()) ** 2
