"""Successive parts in time, each tested by what all rows before it train (TimeSeriesSplit)."""

import numpy as np

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits.base import Cut, Described, one_partition, whole_number
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    return whole_number("time_series", arg)


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split."""
    one_partition("time_series", repeats)
    return [(0, fold) for fold in range(int(arg or 0))]


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return the rows of one part in time as test rows, and those before it as training rows.

    Both are in the order of time, which without a column of time is that of the file.

    Raises
    ------
    UserError
        If there are too few rows.
    """
    from sklearn.model_selection import TimeSeriesSplit

    time = np.arange(len(data.y)) if data.time is None else data.time
    order = np.argsort(time, kind="stable")
    try:
        parts = list(TimeSeriesSplit(int(arg or 0)).split(order))
    except ValueError:
        message = f"{len(order)} rows are too few for time_series {arg:g}"
        raise UserError(f"data set {data.name!r}: {message}") from None
    train, test = parts[fold]
    return Cut(order[train], order[test], "drawn")
