"""The rows of a search: what is trained on and what validates."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.model_selection import (
    GroupShuffleSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from mmbench.allowance import OutOfTime, time_is_up
from mmbench.machines.base.voting import class_pairs

#: Training rows and validation rows of every inner split.
Splits = list[tuple[NDArray, NDArray]]


class Fold(NamedTuple):
    """Rows to train on with their signs, and rows to decide on."""

    train: NDArray
    signs: NDArray
    held: NDArray

    @property
    def both(self) -> bool:
        """Whether both classes are there to train on."""
        return bool((self.signs != self.signs[0]).any())


@dataclass(frozen=True)
class InnerSplits:
    """How a training set is cut for selection."""

    #: Folds of a cross-validation.
    folds: int | None
    #: Share of rows held out in each of several random splits. Where both are None, the rows after
    #: the training rows are held out.
    split: float | None
    #: Repetitions of the folds, or number of random splits.
    repeats: int
    seed: int
    #: What belongs together: no split separates rows of one group. Shape (n_rows,).
    groups: NDArray | None = None
    #: Whether rows are in the order of time: each part is held out once, for what lies before it.
    ordered: bool = False

    @property
    def on_rest(self) -> bool:
        """Whether the rows after the training rows are held out."""
        return self.folds is None and self.split is None

    @property
    def n_splits(self) -> int:
        """Number of inner splits."""
        return (self.folds or 1) * (1 if self.ordered or self.on_rest else self.repeats)


class SearchRows:
    """The rows of a search: those that may be trained on come first, others validate only.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    labels : ndarray of int of shape (n_rows,)
        Classes of the training rows, counted from 0; -1 for one that no training row has.
    n_train : int
    pairs : list of (int, int)
    planned : int
        Trainings of pairs of the whole search.
    """

    planned = 0

    def __init__(self, X: NDArray, y: NDArray, n_train: int | None, cut: InnerSplits):
        self.n_train = len(y) if n_train is None else n_train
        kept = slice(None) if cut.on_rest else slice(self.n_train)
        classes = np.unique(y[: self.n_train])
        labels = np.where(np.isin(y, classes), np.searchsorted(classes, y), -1)
        X = csr_array(X) if issparse(X) else np.asarray(X)
        self.X, self.labels = X.astype(np.float64, copy=False)[kept], labels[kept]
        self.pairs = class_pairs(len(classes))
        self._cut = cut
        self._counted: list[int] = []  # threads append to it

    def plan(self, n_points: int) -> None:
        """Take note of how many grid points the search has."""
        self.planned = n_points * self._cut.n_splits * len(self.pairs)

    def count(self, n_trainings: int) -> None:
        """Take note of trainings of pairs that are done; no choice is made of any that ran short.

        Raises
        ------
        OutOfTime
            If no time is left.
        """
        self._counted.append(n_trainings)
        if time_is_up():
            raise OutOfTime(sum(self._counted), self.planned)

    @property
    def X_train(self) -> NDArray:
        """The rows that may be trained on, by which ``gamma="scale"`` is set in the final fit."""
        return self.X[: self.n_train]

    def splits(self, rows: NDArray) -> Splits:
        """Return the inner splits of some rows, as positions in `rows`."""
        if self._cut.on_rest:
            return [(np.flatnonzero(rows < self.n_train), np.flatnonzero(rows >= self.n_train))]
        cut, labels = self._cut, self.labels[rows]
        if cut.ordered:
            return time_splits(len(rows), cut.folds, cut.split)
        groups = None if cut.groups is None else cut.groups[rows]
        return inner_splits(labels, cut.folds, cut.split, cut.repeats, cut.seed, groups)


def inner_splits(
    labels: NDArray,
    folds: int | None,
    split: float | None,
    repeats: int,
    seed: int,
    groups: NDArray | None = None,
) -> Splits:
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
    groups : ndarray of shape (n_samples,), optional
        What belongs together.

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
    if groups is not None:
        return _grouped_splits(labels, groups, folds, split, repeats, seed)
    if folds is not None:
        cutter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
    else:
        cutter = StratifiedShuffleSplit(n_splits=repeats, test_size=split, random_state=seed)
    return list(cutter.split(np.zeros(len(labels)), labels))


def _grouped_splits(
    labels: NDArray,
    groups: NDArray,
    folds: int | None,
    split: float | None,
    repeats: int,
    seed: int,
) -> Splits:
    """Return inner splits in which rows of one group stay together."""
    if folds is None:
        cutter = GroupShuffleSplit(n_splits=repeats, test_size=split, random_state=seed)
        return list(cutter.split(labels, labels, groups))
    n_groups = len(np.unique(groups))
    if n_groups < folds:
        raise ValueError(f"there are {n_groups} groups to train on, fewer than {folds} folds")
    cutters = (
        StratifiedGroupKFold(folds, shuffle=True, random_state=seed + k) for k in range(repeats)
    )
    return [rows for cutter in cutters for rows in cutter.split(labels, labels, groups)]


def time_splits(n_rows: int, folds: int | None, split: float | None) -> Splits:
    """Return inner splits of rows in the order of time: what is held out lies after the rest."""
    if folds is not None:
        return list(TimeSeriesSplit(folds).split(np.arange(n_rows)))
    first = n_rows - max(1, round(float(split or 0) * n_rows))
    return [(np.arange(first), np.arange(first, n_rows))]
