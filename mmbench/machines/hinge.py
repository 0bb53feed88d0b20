"""What machines with hinge loss share: thresholds, feasible multipliers, weights of slacks.

    min over w, b   penalty(w) + C sum_i max(0, 1 - y_i (w'z_i + b))

Whatever the penalty, b is the minimiser of the loss for a given w, and the dual asks of the
multipliers ``0 <= a_i <= C`` and, as the penalty does not know b, ``y'a = 0``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.problem import BinaryProblem
from mmbench.machines.weights import row_weights

#: Sums of weights that differ by this share of all are the same.
SUM_ROUNDING = 1e-12


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


def best_bias(decision: NDArray, y: NDArray, weights: float | NDArray = 1.0) -> float:
    """Return a minimiser of ``sum_i s_i max(0, 1 - y_i (decision_i + b))`` over b, s the weights.

    The slope is minus the weight of positive rows before the first kink and grows by that of a row
    at each; of the interval where it is zero the middle is taken, as it knows nothing of the
    classes' names.

    Examples
    --------
    >>> best_bias(np.array([3.0, 1.0, -2.0]), np.array([1.0, 1.0, -1.0]))
    0.5
    """
    s, kinks = weights / np.max(weights) * np.ones(len(y)), y - decision
    order = np.argsort(kinks)
    passed, positive = np.cumsum(s[order]), float(s[y > 0].sum())
    rounding = SUM_ROUNDING * passed[-1]
    first, after = np.searchsorted(passed, [positive - rounding, positive + rounding])
    first, after = min(first, len(y) - 1), min(after, len(y) - 1)
    return float(0.5 * (kinks[order[first]] + kinks[order[after]]))


def balanced(a: NDArray, y: NDArray, upper: float | NDArray) -> NDArray:
    """Return multipliers clipped to [0, upper], the heavier class scaled so that ``y'a = 0``."""
    a = np.clip(a, 0.0, upper)
    positive, negative = float(a[y > 0].sum()), float(a[y < 0].sum())
    lighter = min(positive, negative)
    if lighter == 0:
        return np.zeros_like(a)
    return a * np.where(y > 0, lighter / positive, lighter / negative)
