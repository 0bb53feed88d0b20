"""Base class of machines that train all pairs of classes jointly, with shared model parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmbench.allowance import NoTimeLeft, allowed, within
from mmbench.machines.base.estimator import PairwiseClassifier, row_weights
from mmbench.machines.base.one_vs_one import PairModels, PairPlan
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, not_begun, out_of_time
from mmbench.machines.base.row_samples import largest_sample, on_all_rows
from mmbench.machines.base.voting import class_pairs, pair_rows


class JointClassifier(PairwiseClassifier):
    """Base class of machines that train all pairs of classes jointly.

    A subclass implements `train_jointly`. The model of each pair of classes has coefficients for
    the training rows of all classes.
    """

    def train_jointly(
        self, problem: "JointProblem", points: Sequence[Mapping[str, Any]]
    ) -> list[list[BinaryModel]]:
        """Return a list of models for each grid point, with one model per pair of classes.

        All grid points have the same kernel.
        """
        raise TypeError(f"{type(self).__name__} does not implement train_jointly")

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        joint = JointProblem(problem, (problem.y > 0).astype(int))
        return [models[0] for models in self.train_jointly(joint, points)]

    def fit_pairs(
        self, X: ArrayLike, y: ArrayLike, pair_params: Sequence[Mapping[str, Any]]
    ) -> Self:
        if any(params != pair_params[0] for params in pair_params):
            problem = (
                "all pairs of classes are trained together and cannot have different parameters"
            )
            raise ValueError(f"{problem}; select with scope 'global'")
        return super().fit_pairs(X, y, pair_params[:1])

    @staticmethod
    def rows_of_pair(labels: NDArray, *pair: int) -> tuple[NDArray, NDArray]:
        return np.arange(len(labels)), np.ones(len(labels))

    def _train_all(self, plan: PairPlan, hooks: Any, indefinite: NDArray | None) -> PairModels:
        # overflows are ignored, since `_store` raises an error if a solution is not finite
        with within(allowed(self.time_limit)) as time, np.errstate(all="ignore"):
            time.name = type(self).__name__
            data = replace(plan.problem(0), classes=tuple(self.classes_))
            machine: Any = plan.machines[0]
            try:
                models = machine.train_jointly(JointProblem(data, plan.labels), [{}])[0]
            except NoTimeLeft:
                models = self._on_sample(machine, JointProblem(data, plan.labels))
        models = [out_of_time(model) for model in models] if time.exceeded else models
        return self._joined(plan, models, indefinite)

    def _on_sample(self, machine: Any, problem: "JointProblem") -> list[BinaryModel]:
        """Return models of the largest sample of the rows for which there is time."""

        def train(rows: NDArray) -> list[BinaryModel]:
            part = JointProblem(problem.data.part(rows), problem.labels[rows])
            return machine.train_jointly(part, [{}])[0]

        data, labels = problem
        found = None if self.time_limit is None else largest_sample(labels, train)
        if found:
            return [on_all_rows(model, found.rows, len(labels)) for model in found.models]
        sides = [(labels == high).astype(float) - (labels == low) for low, high in problem.pairs]
        return [not_begun(replace(data, y=y)) for y in sides]


class JointProblem(NamedTuple):
    """The joint training problem of all pairs of classes."""

    #: Training rows of all classes, with the kernel. The labels `BinaryProblem.y` are not used.
    data: BinaryProblem
    #: Class index of each row, from 0 to n_classes - 1; every class occurs. Shape (n_samples,).
    labels: NDArray

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of class indices, in the order of `class_pairs`."""
        return class_pairs(int(self.labels.max()) + 1)

    def weights(self, class_weight: Any) -> list[NDArray] | None:
        """Return the `row_weights` of each pair of classes, or None if there are no weights."""
        data = self.data
        if class_weight is None and data.weights is None:
            return None
        found = []
        for i, j in self.pairs:
            index, y = pair_rows(self.labels, i, j)
            classes = (data.classes[i], data.classes[j]) if data.classes else ()
            own = np.ones(len(y)) if data.weights is None else data.weights[index]
            pair = BinaryProblem(data.X[:0], y, data.kernel, classes=classes, weights=own)
            found.append(np.asarray(row_weights(pair, class_weight)))
        return found
