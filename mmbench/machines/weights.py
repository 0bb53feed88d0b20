"""Weights of rows and of classes: a row of weight s counts as s rows that are all equal to it.

The two multiply. Wherever a machine sums or averages over training rows, the terms have these
factors s_i, and a count of rows is a sum of them.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.base import PairwiseClassifier
from mmbench.machines.parameter import Param, parameter
from mmbench.machines.problem import BinaryProblem


def class_weight(after: str = "C") -> Any:
    """Declare the weights of classes."""
    return parameter(
        None,
        Param(numeric=False, choices=("balanced",), optional=True, mapping=True),
        'Factor of the weights of rows: a dict by class; "balanced", for each pair, is '
        "``n / (2 n_class)``.",
        after=after,
    )


def row_weights(problem: BinaryProblem, class_weight: Any) -> NDArray | None:
    """Return the weights s of the rows, those of their classes included; None where all are 1.

    Parameters
    ----------
    problem : BinaryProblem
        Its weights are factors of `s`. Rows with ``y = 0``, which are none of the problem, have 0.
    class_weight : dict, "balanced" or None

    Raises
    ------
    ValueError
        If weights by label are asked for where labels are not known: in a grid search.
    """
    if class_weight is None and problem.weights is None:
        return None
    y, s = problem.y, np.ones(len(problem.y)) if problem.weights is None else problem.weights
    if class_weight == "balanced":
        sums = [float(s[y == sign].sum()) for sign in (-1.0, 1.0)]
        negative, positive = (sum(sums) / (2.0 * own) for own in sums)
    elif isinstance(class_weight, Mapping):
        if not problem.classes:
            raise ValueError("class_weight by label has no grid search, only 'balanced' has")
        negative, positive = (float(class_weight.get(label, 1.0)) for label in problem.classes)
    else:
        negative = positive = 1.0
    return s * np.where(y > 0, positive, np.where(y < 0, negative, 0.0))


class WeightedClassifier(PairwiseClassifier):
    """Base of the machines whose `fit` takes weights of rows.

    `train` finds them as ``problem.weights``, rows of weight 0 left out; see `row_weights`.
    """

    def fit(self, X: NDArray, y: NDArray, sample_weight: NDArray | None = None) -> Self:
        """Train one binary machine per pair of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: one of weight 2 counts as two that are equal, rows of weight 0
            are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        self._fit(X, y, None, sample_weight)
        return self

    def _validated(self, X: Any, *y: NDArray, reset: bool = True) -> Any:
        data = super()._validated(X, *y, reset=reset)
        weights = getattr(self, "class_weight", None)
        if y and isinstance(weights, Mapping):
            _check_labels(weights, np.unique(data[1]).tolist())
        return data


def _check_labels(class_weight: Mapping[Any, float], classes: list) -> None:
    """Refuse weights of labels that do not occur, where a class has none: as scikit-learn does.

    Its `compute_class_weight` would take the label "1" for the number 1.
    """
    without = [label for label in classes if label not in class_weight]
    unknown = [label for label in class_weight if label not in classes]
    if without and unknown:
        raise ValueError(
            f"The classes, {without}, are not in class_weight, "
            f"and {unknown}, which are, do not occur in y"
        )
