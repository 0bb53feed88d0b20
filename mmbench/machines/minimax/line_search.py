"""Searches along one number: the outer loops of the M4 and the MEMPM.

A criterion may have several local optima, so the default looks at a grid first. The papers' own
searches, bisection and three-point quadratic interpolation, are here as they are printed.

References
----------
D. Bertsekas: Nonlinear programming, 2nd edition, 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import minimize_scalar


def bisect(feasible: Callable[[float], bool], low: float, high: float, tol: float) -> float:
    """Return the largest value known to be feasible, within `tol` of the smallest that is not.

    Parameters
    ----------
    feasible : callable
        True up to some value, false from there on.
    low, high : float
        Feasible, and infeasible.
    tol : float
    """
    while high - low > tol:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if feasible(middle) else (low, middle)
    return low


def maximise(
    criterion: Callable[[float], float], grid: Sequence[float], tol: float
) -> tuple[float, float]:
    """Return (argument, value) of the best point of a grid, refined between its neighbours.

    Parameters
    ----------
    criterion : callable
    grid : sequence of float
        Ascending, two points at least.
    tol : float
        Accuracy of the argument.
    """
    values = [criterion(point) for point in grid]
    k = int(np.argmax(values))
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda point: -criterion(point),
        bounds=(low, high),
        method="bounded",
        options={"xatol": tol},
    )
    if -found.fun > values[k]:
        return float(found.x), float(-found.fun)
    return float(grid[k]), float(values[k])


def interpolate(
    criterion: Callable[[float], float],
    pattern: tuple[float, float, float],
    tol: float,
    max_iter: int = 100,
) -> tuple[float, float]:
    """Return (argument, value) of a local maximum by quadratic interpolation.

    Parameters
    ----------
    criterion : callable
    pattern : tuple of three float
        Ascending; the first is the least argument allowed. Where the last is the best the pattern
        moves up, where the first is it shrinks towards it.
    tol : float
        Accuracy of the argument.
    max_iter : int, default=100
        Evaluations.

    Notes
    -----
    The bare method stalls where the new point falls on a known one, or where the criterion has a
    kink. It then looks `tol` to the side, or halves the longer interval.
    """
    points = [(float(point), float(criterion(point))) for point in pattern]
    widths = [np.inf, np.inf]
    for _ in range(max_iter):
        (low, f_low), (middle, f_middle), (high, f_high) = points
        if high - low <= 2.0 * tol:
            break
        if f_high > max(f_low, f_middle):
            new = high + 2.0 * (high - middle)
            points = [points[1], points[2], (new, float(criterion(new)))]
            continue
        if f_low > f_middle:
            new = 0.5 * (low + middle)
            points = [points[0], (new, float(criterion(new))), points[1]]
            continue
        side = 1.0 if high - middle > middle - low else -1.0
        longer = max(high - middle, middle - low)
        new = _vertex(points)
        if high - low > 0.5 * widths[-2]:
            new = middle + 0.5 * side * longer
        elif not abs(new - middle) > 0.5 * tol:
            new = middle + side * min(tol, 0.5 * longer)
        widths.append(high - low)
        points = _narrowed(points, (new, float(criterion(new))))
    return max(points, key=lambda point: point[1])


def _vertex(points: list[tuple[float, float]]) -> float:
    """Return where the parabola through three points is largest, the middle where it is flat."""
    (a, f_a), (b, f_b), (c, f_c) = points
    left, right = (b - a) * (f_b - f_c), (b - c) * (f_b - f_a)
    if left == right:
        return b
    return b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right)


def _narrowed(
    points: list[tuple[float, float]], new: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the three neighbouring points around the best of four."""
    four = sorted([*points, new])
    best = max((1, 2), key=lambda k: four[k][1])
    return four[best - 1 : best + 2]
