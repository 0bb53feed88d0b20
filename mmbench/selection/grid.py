"""The grid points of a grid search: enumeration, grouping by kernel, and resolution of ties."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Parameters that change the Gram matrix; grid points that differ only in other parameters share
#: the Gram matrix.
KERNEL_AXES = ("kernel", "gamma", "gamma_scaling", "degree")

GridPoint = dict[str, Any]

#: Sort key of each tie rule in `SearchSpace.prefer`; the preferred value has the smallest key.
RANKS: dict[str, Callable[[float], float]] = {
    "small": lambda value: value,
    "large": lambda value: -value,
    "near_one": lambda value: abs(math.log(value)),
}


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[GridPoint]:
    """Return all combinations of the values of a grid; raise ValueError if there are none.

    Examples
    --------
    >>> grid_points({"C": [1, 10], "gamma": [0.5]})
    [{'C': 1, 'gamma': 0.5}, {'C': 10, 'gamma': 0.5}]
    """
    lists = {n: np.iterable(v) and not isinstance(v, str) and list(v) for n, v in grid.items()}
    empty = [name for name, values in lists.items() if not values]
    if not grid or empty:
        raise ValueError(f"every axis of a grid needs values; empty: {empty or 'the grid'}")
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def group_by_kernel(points: Sequence[GridPoint]) -> list[tuple[GridPoint, list[int]]]:
    """Return the parameters of each kernel, and the indices of the grid points with this kernel.

    Examples
    --------
    >>> group_by_kernel([{"C": 1, "gamma": 2}, {"C": 1, "gamma": 3}, {"C": 9, "gamma": 2}])
    [({'gamma': 2}, [0, 2]), ({'gamma': 3}, [1])]
    """
    groups: dict[tuple, list[int]] = {}
    for k, point in enumerate(points):
        groups.setdefault(tuple(kernel_part(point).items()), []).append(k)
    return [(dict(key), members) for key, members in groups.items()]


def kernel_part(point: GridPoint) -> GridPoint:
    """Return the parameters of a grid point that change the Gram matrix."""
    return {axis: point[axis] for axis in KERNEL_AXES if axis in point}


def without_kernel(point: GridPoint) -> GridPoint:
    """Return the parameters of a grid point that do not change the Gram matrix."""
    return {name: value for name, value in point.items() if name not in KERNEL_AXES}


def best_point(points: Sequence[GridPoint], scores: NDArray, prefer: Mapping[str, str]) -> int:
    """Return the index of the grid point with the largest score.

    Scores at most 1e-12 below the largest score are tied. Ties are resolved by the rules in
    `prefer`, one rule after the other. If several grid points are still tied, the first tied grid
    point is returned.

    Examples
    --------
    >>> points = [{"C": 1, "gamma": 1}, {"C": 10, "gamma": 1}, {"C": 10, "gamma": 0.1}]
    >>> best_point(points, np.array([0.9, 0.95, 0.95]), {"C": "small", "gamma": "small"})
    2
    """
    tied: list[int] = np.flatnonzero(scores >= scores.max() - 1e-12).tolist()
    ranks = {name: RANKS[rule] for name, rule in prefer.items() if name in points[0]}

    def order(k: int) -> list[tuple[bool, float]]:
        """Return the sort key of grid point k; all other values rank after all numbers."""
        values = ((points[k][name], rank) for name, rank in ranks.items())
        other = str | tuple | dict | None
        return [(no := isinstance(v, other), 0.0 if no else rank(v)) for v, rank in values]

    return min(tied, key=order)


def staged(
    grid: Mapping[str, Sequence[Any]], stages: Sequence[Sequence[str]]
) -> list[dict[str, Sequence[Any]]]:
    """Return the subgrids that are searched one after the other.

    A stage is a group of parameter names. The first subgrid contains the parameters of the first
    stage, and the parameters that are in no stage. Each later stage gives one subgrid, if the grid
    contains parameters of this stage.

    Examples
    --------
    >>> staged({"Cm": [1, 2], "gamma": [3]}, [("gamma",), ("Cm",)])
    [{'gamma': [3]}, {'Cm': [1, 2]}]
    >>> staged({"Cm": [1, 2], "gamma": [3]}, [])
    [{'Cm': [1, 2], 'gamma': [3]}]
    """
    later = [axes for axes in ([a for a in stage if a in grid] for stage in stages[1:]) if axes]
    first = [axis for axis in grid if not any(axis in axes for axes in later)]
    return [{axis: grid[axis] for axis in axes} for axes in [first, *later] if axes or not grid]
