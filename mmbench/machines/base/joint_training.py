"""Base class of machines that train all pairs of classes jointly, with shared model parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import NoTimeLeft, allowed, within
from mmbench.kernels.matrix import given_gram
from mmbench.machines.base.estimator import PairwiseClassifier, row_weights, without_false_bounds
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, not_begun, out_of_time
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

    def _fit_pairs(
        self,
        X: NDArray,
        labels: NDArray,
        pair_params: Sequence[Mapping[str, Any]] | None,
        weights: NDArray | None,
        task: Any,
    ) -> None:
        params = pair_params[0] if pair_params else {}
        if any(other != params for other in pair_params or ()):
            problem = (
                "all pairs of classes are trained together and cannot have different parameters"
            )
            raise ValueError(f"{problem}; select with scope 'global'")
        machine = self.with_params(params)
        machine._check_parameters()
        machine.check_memory(len(X), X.shape[1], weights is not None)
        kernel, gram = machine.kernel_for(X, weights), given_gram(self.kernel, X)
        rows = X if gram is None else gram
        data = BinaryProblem(rows, np.ones(len(X)), kernel, gram, tuple(self.classes_), weights)
        with (
            within(allowed(self.time_limit)) as time,
            self.failures_named(gram) as indefinite,
            # overflows are ignored, since `_store` raises an error if a solution is not finite
            np.errstate(all="ignore"),
        ):
            try:
                models = machine.train_jointly(JointProblem(data, labels), [{}])[0]
            except NoTimeLeft:
                sides = [
                    (labels == high).astype(float) - (labels == low)
                    for low, high in class_pairs(len(self.classes_))
                ]
                models = [not_begun(replace(data, y=y)) for y in sides]
        if time.exceeded:
            models = [out_of_time(model) for model in models]
        self.kernels_ = [kernel] * len(models)
        every = [np.arange(len(X))] * len(models)
        self._store(X, labels, every, without_false_bounds(models, indefinite, every))


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
