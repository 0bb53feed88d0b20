"""What machines with hinge loss share: thresholds, feasible multipliers, weights of slacks.

    min over w, b   penalty(w) + C sum_i max(0, 1 - y_i (w'z_i + b))

Whatever the penalty, b is the minimiser of the loss for a given w, and the dual asks of the
multipliers ``0 <= a_i <= C`` and, as the penalty does not know b, ``y'a = 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.parameter import Param, parameter
from mmbench.machines.problem import BinaryProblem


def class_weight() -> Any:
    """Declare the weights of classes in the penalty on slack."""
    return parameter(
        None,
        Param(numeric=False, choices=("balanced",), optional=True, mapping=True),
        'Factor of the penalty on slack: a dict by class; "balanced", for each pair, is '
        "``n / (2 n_class)``.",
        after="C",
    )


def slack_penalties(problem: BinaryProblem, C: float, class_weight: Any) -> float | NDArray:
    """Return the penalty on the slack of each row, ``C s_i``; C where all weights are 1.

    Parameters
    ----------
    problem : BinaryProblem
        Its weights are factors of `s`. Rows with ``y = 0``, which are none of the problem, have 0.
    C : float
    class_weight : dict, "balanced" or None

    Raises
    ------
    ValueError
        If weights by label are asked for where labels are not known: in a grid search.
    """
    if class_weight is None and problem.weights is None:
        return C
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
    return C * s * np.where(y > 0, positive, np.where(y < 0, negative, 0.0))


def best_bias(decision: NDArray, y: NDArray) -> float:
    """Return a minimiser of ``sum_i max(0, 1 - y_i (decision_i + b))`` over b.

    The slope is minus the number of positive rows before the first kink and grows by one at each;
    of the interval where it is zero the middle is taken, as it knows nothing of the classes' names.

    Examples
    --------
    >>> best_bias(np.array([3.0, 1.0, -2.0]), np.array([1.0, 1.0, -1.0]))
    0.5
    """
    n_positive = int((y > 0).sum())
    kinks = np.sort(y - decision)
    if n_positive in (0, len(y)):
        return float(kinks[-1] if n_positive else kinks[0])
    return float(0.5 * (kinks[n_positive - 1] + kinks[n_positive]))


def balanced(a: NDArray, y: NDArray, upper: float) -> NDArray:
    """Return multipliers clipped to [0, upper], the heavier class scaled so that ``y'a = 0``."""
    a = np.clip(a, 0.0, upper)
    positive, negative = float(a[y > 0].sum()), float(a[y < 0].sum())
    lighter = min(positive, negative)
    if lighter == 0:
        return np.zeros_like(a)
    return a * np.where(y > 0, lighter / positive, lighter / negative)
