"""Branch and bound for functions of one variable with several local minima (M4 and MEMPM)."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from mmbench.allowance import time_is_up


def minimise(
    evaluate: Callable[[float], Any],
    lower: Callable[[Any, Any], float],
    ends: Sequence[Any],
    tol: float,
    max_points: int = 300,
    narrowest: float = 0.0,
) -> tuple[Any, float]:
    """Minimise a function of one variable on an interval; return the best point and a lower bound.

    `evaluate(x)` returns a point with the argument `at` and the function value `value`; `lower` is
    a lower bound on the function between two points. `ends` has at least two points in ascending
    order, from one end of the interval to the other.

    The search ends if the relative gap is at most `tol`, after `max_points` evaluations, or if the
    subinterval [l, u] with the smallest bound has a width of at most ``narrowest * u``.
    """
    order, best = count(), min(ends, key=lambda point: point.value)
    heap = [(lower(left, right), next(order), left, right) for left, right in pairwise(ends)]
    heapq.heapify(heap)
    for _ in range(max_points):
        bound = heap[0][0]
        if best.value - bound <= tol * max(abs(best.value), abs(bound)) < np.inf or time_is_up():
            break
        _, _, left, right = heap[0]
        if right.at - left.at <= narrowest * right.at:
            break
        heapq.heappop(heap)
        middle = evaluate(0.5 * (left.at + right.at))
        best = min(best, middle, key=lambda point: point.value)
        for pair in ((left, middle), (middle, right)):
            heapq.heappush(heap, (lower(*pair), next(order), *pair))
    return best, min(best.value, heap[0][0])


def lowest_of_lines(*lines: tuple[float, float]) -> float:
    """Return the minimum over an interval of one linear function, or of the maximum of two.

    Each argument contains the values of a linear function at the left and the right end of the
    interval.

    Examples
    --------
    >>> lowest_of_lines((0.0, -2.0), (-3.0, 1.0))
    -1.0
    """
    values = [max(ends) for ends in zip(*lines, strict=True)]
    if len(lines) == 2:
        first, last = np.subtract(*lines)
        if first * last < 0:
            values.append(lines[0][0] + (lines[0][1] - lines[0][0]) * first / (first - last))
    return float(min(values))
