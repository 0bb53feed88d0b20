"""Repeated stratified random splits that hold out a share of the rows, or of groups of rows."""

import numpy as np

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits import grouped
from mmbench.datasets.splits.base import (
    Cut,
    Described,
    allocate,
    codes_and_counts,
    pick_stratified,
)
from mmbench.datasets.stream import random_stream
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    if isinstance(arg, bool) or not isinstance(arg, int | float) or not 0 < arg < 1:
        return f"holdout must be a share of the rows between 0 and 1, got {arg!r}"
    return None


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split."""
    return [(repeat, 0) for repeat in range(repeats or 1)]


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return round(arg * n) test rows, each class in proportion.

    Raises
    ------
    UserError
        If there would be no test row, or a class would have no training row.
    """
    if data.groups is not None:
        return grouped.hold_out(data, data.groups, float(arg or 0), random_stream(seed, repeat))
    codes, counts = codes_and_counts(data.y)
    n_test = round(float(arg or 0) * len(codes))
    if n_test == 0:
        message = f"holdout {arg:g} of {len(codes)} rows leaves no test row"
        raise UserError(f"data set {data.name!r}: {message}")
    share = allocate(counts, n_test)
    if (share >= counts).any():
        label = data.classes[int(np.argmax(share >= counts))]
        message = f"holdout {arg:g} leaves no training row of class {label!s}"
        raise UserError(f"data set {data.name!r}: {message}")
    test = pick_stratified(codes, share, random_stream(seed, repeat))
    return Cut(np.setdiff1d(np.arange(len(codes)), test), test, "drawn")
