"""How a training set is cut for selection: k folds, or repeated random splits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit


def inner_splits(
    labels: NDArray, folds: int | None, split: float | None, repeats: int, seed: int
) -> list[tuple[NDArray, NDArray]]:
    """Return (training rows, validation rows) of every inner split, stratified.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
    folds : int or None
        Number of folds; None when `split` is given.
    split : float or None
        Share of rows held out in each random split.
    repeats : int
        Repetitions of the folds, or number of random splits.
    seed : int

    Raises
    ------
    ValueError
        If both or neither of `folds` and `split` are given, or a class has too few rows.
    """
    if (folds is None) == (split is None):
        raise ValueError("selection takes either folds or split, not both and not neither")
    counts = np.bincount(labels)
    smallest = int(counts[counts > 0].min())
    if folds is not None and smallest < folds:
        raise ValueError(f"the smallest class has {smallest} rows, fewer than {folds} folds")
    if folds is not None:
        cutter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
    else:
        cutter = StratifiedShuffleSplit(n_splits=repeats, test_size=split, random_state=seed)
    return list(cutter.split(np.zeros(len(labels)), labels))
