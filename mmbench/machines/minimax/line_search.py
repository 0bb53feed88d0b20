"""Searches along one number: the outer loops of the M4 and the MEMPM."""

import heapq
from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up

#: Largest change of a logarithm in one step of a `Secant`.
MAX_LOG_STEP = 1.5


class Evaluated(Protocol):
    """A number and the value of a function there."""

    @property
    def at(self) -> float:
        """The number."""

    @property
    def value(self) -> float:
        """The value."""


Point = TypeVar("Point", bound=Evaluated)


def minimise(
    evaluate: Callable[[float], Point],
    lower: Callable[[Point, Point], float],
    ends: Sequence[Point],
    tol: float,
    max_points: int = 300,
    narrowest: float = 0.0,
) -> tuple[Point, float]:
    """Minimise a function that may have several local minima, by branch and bound.

    Parameters
    ----------
    evaluate : callable
        Returns the point at a number.
    lower : callable
        Returns a lower bound of all values between two points.
    ends : sequence of points
        Ascending; the function is minimised from the first to the last.
    tol : float
        Gap of value and bound, relative to the larger of their magnitudes, at which to stop.
    max_points : int, default=300
        How many to evaluate.
    narrowest : float, default=0.0
        The search ends, too, where the lowest bound is that of an interval narrower than this share
        of its upper end.

    Returns
    -------
    point
        The best.
    float
        A lower bound of all values.
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


class Secant:
    """Secant steps on a fixed point of positive numbers in their logarithms.

    Where they do not help, the plain step is taken.
    """

    def __init__(self) -> None:
        self._last: tuple[NDArray, NDArray] | None = None

    def next(self, weights: NDArray, image: NDArray) -> NDArray:
        """Return the next point, given a point and its image under the plain iteration."""
        at, residual = np.log(weights), np.log(image / weights)
        step = residual
        if self._last is not None:
            before, last_residual = self._last
            change = residual - last_residual
            helped = np.linalg.norm(residual) < np.linalg.norm(last_residual)
            if helped and change.any():
                share = (change @ residual) / (change @ change)
                step = residual - share * (at - before + change)
        self._last = at, residual
        return np.exp(at + np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP))

    def next_share(self, theta: float, image: float) -> float:
        """Return the next point of a share in (0, 1), sought by its odds."""
        odds = self.next(*(np.array([share / (1.0 - share)]) for share in (theta, image)))
        return float(odds[0] / (1.0 + odds[0]))
