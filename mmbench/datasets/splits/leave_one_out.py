"""Every row tested once, by what all others train; or every group, where rows belong together."""

import numpy as np

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits.base import Cut, Described, one_partition
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    return None if arg is None else f"leave_one_out takes no number, got {arg!r}"


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split; none while the rows are not known."""
    one_partition("leave_one_out", repeats)
    return [(0, fold) for fold in range(len(_units(data)))] if isinstance(data, Dataset) else []


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return one row, or the rows of one group, as test rows.

    Raises
    ------
    UserError
        If there is one group only.
    """
    units = _units(data)
    if len(units) < 2:
        raise UserError(f"data set {data.name!r}: leave_one_out needs two groups, there is one")
    of_row = np.arange(len(data.y)) if data.groups is None else data.groups
    held = of_row == units[fold]
    return Cut(np.flatnonzero(~held), np.flatnonzero(held), "drawn")


def _units(data: Dataset) -> np.ndarray:
    return np.arange(len(data.y)) if data.groups is None else np.unique(data.groups)
