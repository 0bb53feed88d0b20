"""Grids: their points, grouped by kernel, and the choice among equally good ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Parameters that change the Gram matrix; all other axes of a grid share it.
KERNEL_AXES = ("kernel", "gamma", "gamma_scaling", "degree")

Point = dict[str, Any]


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[Point]:
    """Return every combination of the values of a grid.

    Raises
    ------
    ValueError
        If the grid has no axis or an axis has no value.

    Examples
    --------
    >>> grid_points({"C": [1, 10], "gamma": [0.5]})
    [{'C': 1, 'gamma': 0.5}, {'C': 10, 'gamma': 0.5}]
    """
    empty = [name for name, values in grid.items() if len(values) == 0]
    if not grid or empty:
        raise ValueError(f"a grid needs values on every axis, empty: {empty or 'the grid'}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def group_by_kernel(points: Sequence[Point]) -> list[tuple[Point, list[int]]]:
    """Return (kernel parameters, indices of the points that share them), in order of appearance.

    Examples
    --------
    >>> group_by_kernel([{"C": 1, "gamma": 2}, {"C": 1, "gamma": 3}, {"C": 9, "gamma": 2}])
    [({'gamma': 2}, [0, 2]), ({'gamma': 3}, [1])]
    """
    groups: dict[tuple, list[int]] = {}
    for k, point in enumerate(points):
        groups.setdefault(tuple(kernel_part(point).items()), []).append(k)
    return [(dict(key), members) for key, members in groups.items()]


def kernel_part(point: Point) -> Point:
    """Return the part of a grid point that changes the Gram matrix."""
    return {axis: point[axis] for axis in KERNEL_AXES if axis in point}


def without_kernel(point: Point) -> Point:
    """Return the part of a grid point that does not change the Gram matrix."""
    return {name: value for name, value in point.items() if name not in KERNEL_AXES}


def best_point(points: Sequence[Point], scores: NDArray, prefer: Mapping[str, str]) -> int:
    """Return the index of the best score; ties are decided by `prefer`, then by order.

    Parameters
    ----------
    points : sequence of dict
    scores : ndarray of shape (n_points,)
        The larger the better. Scores that differ by rounding only (1e-12) are ties.
    prefer : mapping of str to {"small", "large"}
        Which value of a parameter wins a tie; the first key counts most.

    Examples
    --------
    >>> points = [{"C": 1, "gamma": 1}, {"C": 10, "gamma": 1}, {"C": 10, "gamma": 0.1}]
    >>> best_point(points, np.array([0.9, 0.95, 0.95]), {"C": "small", "gamma": "small"})
    2
    """
    tied = np.flatnonzero(scores >= scores.max() - 1e-12)
    signs = {name: 1 if rule == "small" else -1 for name, rule in prefer.items()}
    return int(
        min(tied, key=lambda k: [sign * points[k].get(name, 0) for name, sign in signs.items()])
    )
