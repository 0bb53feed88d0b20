"""What machines with hinge loss share: thresholds, feasible multipliers, weights of slacks.

    min over w, b   penalty(w) + C sum_i max(0, 1 - y_i (w'z_i + b))

Whatever the penalty, b is the minimiser of the loss for a given w, and the dual asks of the
multipliers ``0 <= a_i <= C`` and, as the penalty does not know b, ``y'a = 0``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.problem import BinaryProblem
from mmbench.machines.weights import row_weights


def slack_penalties(problem: BinaryProblem, C: float, class_weight: Any) -> float | NDArray:
    """Return the penalty on the slack of each row, ``C s_i``; C where all weights are 1.

    Parameters
    ----------
    problem, class_weight
        As for `row_weights`.
    C : float
    """
    s = row_weights(problem, class_weight)
    return C if s is None else C * s


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
