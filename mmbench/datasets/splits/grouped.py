"""Splits of rows that belong together: all rows of a group train or all test."""

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits.base import Cut, IntArray
from mmbench.errors import UserError


def fold_of_row(
    data: Dataset, groups: NDArray, folds: int, random: np.random.RandomState
) -> IntArray:
    """Deal whole groups to the folds, each with nearly its share of every class.

    Raises
    ------
    UserError
        If there are fewer groups than folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    n_groups = len(np.unique(groups))
    if n_groups < folds:
        raise UserError(f"data set {data.name!r}: {n_groups} groups are fewer than {folds} folds")
    cutter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
    of_row = np.empty(len(data.y), dtype=np.intp)
    for fold, (_, test) in enumerate(cutter.split(data.y, data.y, groups)):
        of_row[test] = fold
    return of_row


def hold_out(data: Dataset, groups: NDArray, share: float, random: np.random.RandomState) -> Cut:
    """Hold out a share of the groups, drawn at random.

    Raises
    ------
    UserError
        If a class would have no training row.
    """
    from sklearn.model_selection import GroupShuffleSplit

    cutter = GroupShuffleSplit(1, test_size=share, random_state=random)
    try:
        train, test = next(cutter.split(data.y, data.y, groups))
    except ValueError:
        message = f"holdout {share:g} of {len(np.unique(groups))} groups leaves a part empty"
        raise UserError(f"data set {data.name!r}: {message}") from None
    lacking = np.setdiff1d(data.classes, data.y[train])
    if len(lacking):
        message = f"holdout {share:g} of the groups leaves no training row of class {lacking[0]!s}"
        raise UserError(f"data set {data.name!r}: {message}")
    return Cut(train, test, "drawn")
