"""One-vs-one training: a plan of all pairs of classes, their threads and their time.

Order of the calls: `fit`, `train_pairs`, `train_pair`, `train` of the machine, solver.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array

from mmbench.allowance import Allowance, NoTimeLeft, allowed, delayed, time_is_up, within
from mmbench.errors import NotEnoughMemory, worst
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import is_semidefinite, part_of
from mmbench.machines.base.problem import (
    BinaryModel,
    BinaryProblem,
    Fit,
    not_begun,
    out_of_time,
)
from mmbench.machines.base.row_samples import largest_sample, on_all_rows
from mmbench.machines.base.voting import UNLABELLED, class_pairs
from mmbench.memory import TrainingSize, stored_numbers
from mmbench.solvers.result import native_statuses

if TYPE_CHECKING:
    from mmbench.machines.base.estimator import PairwiseClassifier

#: Remaining time of `fit`, and the number of trainings in turn that share it; None without a limit.
Share = tuple[Allowance, int] | None


@dataclass
class PairPlan:
    """The trainings of all pairs of classes, in the order of `class_pairs`."""

    #: Unfitted machine of each pair, with its parameters.
    machines: list[PairwiseClassifier]
    #: Kernel of each pair, with the numerical value of gamma.
    kernels: list[Kernel]
    #: Rows of all classes, without their offset from the origin.
    X: NDArray
    #: Kernel matrix of all rows, if it is given in place of features.
    gram: NDArray | None
    classes: NDArray
    #: Class index of each row.
    labels: NDArray
    weights: NDArray | None

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Class indices of each pair."""
        return class_pairs(len(self.classes))

    @cached_property
    def parts(self) -> list[tuple[NDArray, NDArray]]:
        """Indices of the rows of each pair, and their labels -1.0, +1.0, or 0.0 if unlabelled."""
        return [self.machines[0].rows_of_pair(self.labels, *pair) for pair in self.pairs]

    @property
    def rows(self) -> list[NDArray]:
        """Indices of the rows of each pair."""
        return [index for index, _ in self.parts]

    @cached_property
    def size(self) -> TrainingSize:
        """Size of the largest training, which has the two largest classes."""
        largest = np.argsort(np.bincount(self.labels[self.labels != UNLABELLED]))[-2:]
        n = len(self.machines[0].rows_of_pair(self.labels, *largest)[0])
        return TrainingSize(n, self.X.shape[1], stored_numbers(self.X), self.weights is not None)

    def problem(self, k: int) -> BinaryProblem:
        """Return the training problem of pair k."""
        index, signs = self.parts[k]
        classes = tuple(self.classes[list(self.pairs[k])])
        part = None if self.gram is None else part_of(self.gram, index)
        data = rows_at(self.X, index) if part is None else part
        weights = None if self.weights is None else self.weights[index]
        return BinaryProblem(data, signs, self.kernels[k], part, classes, weights)


class PairModels(NamedTuple):
    """The trained models of all pairs of classes, as arrays over pairs."""

    fits: list[Fit]
    #: Bias b of each pair.
    intercepts: NDArray
    #: Weights of a linear machine, shape (n_pairs, n_features); None for other kernels.
    weights: NDArray | None
    #: Coefficients of the training rows, shape (n_pairs, n_rows); None if a model has only weights.
    coefs: csr_array | None


def train_pairs(
    machine: PairwiseClassifier, plan: PairPlan, hooks: Callable[[int], AbstractContextManager]
) -> list[BinaryModel]:
    """Train all pairs of classes in `n_jobs` threads within `time_limit`.

    If the machine has callbacks, pair k is trained inside the context manager ``hooks(k)``.
    """
    time, at_a_time = allowed(machine.time_limit), effective_n_jobs(machine.n_jobs)
    n_pairs, watched = len(plan.pairs), bool(getattr(machine, "_skl_callbacks", ()))

    def train_watched(k: int, share: Share) -> BinaryModel:
        with hooks(k):
            return train_pair(plan.machines[k], plan.problem(k), share)

    def calls() -> Iterator[Any]:
        for k in range(n_pairs):
            turns = -(-(n_pairs - k) // at_a_time)
            share = None if machine.time_limit is None else (time, turns)
            # without callbacks, joblib calls a module-level function, which can run on a cluster
            yield (
                delayed(train_watched)(k, share)
                if watched
                else delayed(train_pair)(plan.machines[k], plan.problem(k), share)
            )

    return Parallel(n_jobs=machine.n_jobs, prefer="threads")(calls())


def train_pair(machine: PairwiseClassifier, problem: BinaryProblem, share: Share) -> BinaryModel:
    """Train the machine of one pair of classes within its share of the remaining time."""
    seconds = share and share[0].seconds / share[1]
    # overflow warnings are ignored, since a solution that is not finite raises an error later
    with within(allowed(seconds)) as time, np.errstate(all="ignore"), native_statuses() as native:
        time.name = f"{type(machine).__name__} on classes {'/'.join(map(str, problem.classes))}"
        try:
            model = not_begun(problem) if time_is_up() else machine.train(problem)
        except NoTimeLeft:
            model = not_begun(problem)
            # a job of a run has its own limit, and stores no result of some of its rows
            found = share and largest_sample(
                problem.y, lambda rows: [machine.train(problem.part(rows))], pairs_left=share[1]
            )
            if found:
                model = on_all_rows(found.models[0], found.rows, len(problem.y))
    if native:
        extra = {**model.fit.extra, "solver_status": worst(native)}
        model = replace(model, fit=replace(model.fit, extra=extra))
    return out_of_time(model) if time.exceeded else model


@contextmanager
def failures_named(machine: PairwiseClassifier, gram: NDArray | None) -> Iterator[NDArray | None]:
    """Convert numerical errors to a ValueError that names their cause.

    If the kernel matrix `gram` is indefinite and the training problem is therefore not convex, the
    context manager warns and yields `gram`. Otherwise it yields None.
    """
    name, nonconvex = type(machine).__name__, False
    text = f"{name} found no solution in double precision; scale the data"
    caught: tuple[type[Exception], ...] = (ArithmeticError, np.linalg.LinAlgError)
    if gram is not None and not gram.any():
        text = f"the kernel matrix is zero; {name} has no solution on it"
        # a solver's ValueError is also replaced, since its message may not name the kernel matrix
        caught = (ArithmeticError, ValueError)
    elif not (gram is None or machine.convex_on_any_matrix or is_semidefinite(gram)):
        least = float(eigvalsh(gram, subset_by_index=[0, 0])[0])
        flaw = f"kernel matrix is not positive semidefinite: its least eigenvalue is {least:.3g}"
        remedy = f"add at least {-least:.3g} to its diagonal, or set negative eigenvalues to 0"
        text, nonconvex = f"the {flaw}; {name} has no solution on it; {remedy}", True
        caught = (ArithmeticError, ValueError)
        warnings.warn(
            f"the {flaw}; the problem of {name} is not convex, and has no bound in "
            f"`fits_`; {remedy}",
            stacklevel=6,  # the caller of `fit`
        )
    try:
        with np.errstate(all="ignore" if nonconvex else None):
            yield gram if nonconvex else None
    except NotEnoughMemory:
        raise
    except caught as error:
        raise ValueError(text) from error


def without_false_bounds(
    models: Sequence[BinaryModel], gram: NDArray | None, rows: Sequence[NDArray]
) -> Sequence[BinaryModel]:
    """Set the lower bound of a model to minus infinity if its kernel matrix is indefinite.

    With an indefinite kernel matrix, the training problem is nonconvex, and dual objective values
    are not lower bounds on its optimum.
    """
    if gram is None:
        return models
    return [
        model
        if is_semidefinite(part_of(gram, own))
        else replace(model, fit=replace(model.fit, bound=-math.inf))
        for model, own in zip(models, rows, strict=True)
    ]


def rows_at(X: NDArray, index: NDArray) -> NDArray:
    """Return the rows of X at ascending indices, without a copy if all rows are selected."""
    return X if len(index) == X.shape[0] else X[index]
