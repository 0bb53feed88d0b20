"""Branch and bound over one number, for functions with several local minima: M4 and MEMPM."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Protocol, TypeVar

import numpy as np

from mmbench.allowance import time_is_up


class Evaluated(Protocol):
    """A number with the value of a function."""

    @property
    def at(self) -> float:
        """The argument."""

    @property
    def value(self) -> float:
        """The value at the argument."""


Node = TypeVar("Node", bound=Evaluated)


def minimise(
    evaluate: Callable[[float], Node],
    lower: Callable[[Node, Node], float],
    ends: Sequence[Node],
    tol: float,
    max_points: int = 300,
    narrowest: float = 0.0,
) -> tuple[Node, float]:
    """Return the minimum of a function between the first and the last of `ends`, and its bound.

    `lower` bounds the function between two evaluated numbers. The search stops at a relative gap of
    `tol`, or if the lowest bound belongs to an interval narrower than the share `narrowest` of its
    upper end.
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
    """Return the minimum of the larger of one or two lines, each given by its values at both ends.

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
