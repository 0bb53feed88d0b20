"""The rows of a grid search, and inner splits of these rows into training and validation rows."""

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
from mmbench.machines.base.voting import class_pairs, encode_labels

#: Indices of the training rows and of the validation rows, as two arrays per inner split.
Splits = list[tuple[NDArray, NDArray]]


class Fold(NamedTuple):
    """The training rows and the held-out rows of one inner split, as indices.

    All training rows belong to one pair of classes. The attribute `signs` contains the label of
    each training row, -1.0 or +1.0.
    """

    train: NDArray
    signs: NDArray
    held: NDArray

    @property
    def both(self) -> bool:
        """Whether both classes occur in the training rows."""
        return bool((self.signs != self.signs[:1]).any())


class Cut(NamedTuple):
    """The settings of the inner splits."""

    #: Number of folds of the cross-validation, or None for random splits.
    folds: int | None
    #: Fraction of rows held out in each random split. If `folds` and `split` are both None, the
    #: only split holds out all rows after the first `n_train` rows.
    split: float | None
    #: Number of repetitions of the cross-validation, or number of random splits.
    repeats: int
    seed: int
    #: Group of each row, shape (n_rows,), or None. Splits never separate rows of the same group.
    groups: NDArray | None
    #: Whether the rows are in temporal order; held-out rows then follow the training rows.
    ordered: bool


class SearchRows:
    """The rows of a grid search: first the training rows, then rows used for validation only.

    The attribute `labels` contains the class index of each row, or -1 for a row of a class without
    training rows.

    Parameters
    ----------
    X, y, n_train
        Features, classes and number of training rows; `n_train` is None if all rows are training
        rows.
    n_points : int
        Number of grid points.
    cut : Cut
    """

    def __init__(self, X: NDArray, y: NDArray, n_train: int | None, n_points: int, cut: Cut):
        self.n_train = len(y) if n_train is None else n_train
        self._on_rest = cut.folds is None and cut.split is None
        kept = slice(None) if self._on_rest else slice(self.n_train)
        classes, _ = encode_labels(y[: self.n_train])  # ValueError if there is only one class
        labels = np.where(np.isin(y, classes), np.searchsorted(classes, y), -1)
        X = csr_array(X) if issparse(X) else np.asarray(X)
        self.X, self.labels = X.astype(np.float64, copy=False)[kept], labels[kept]
        # gamma="scale" is computed from `X_train`, as in the final training after the search
        self.X_train, self.pairs = self.X[: self.n_train], class_pairs(len(classes))
        self._cut = cut
        n_splits = (cut.folds or 1) * (1 if cut.ordered or self._on_rest else cut.repeats)
        self._planned = n_points * n_splits * len(self.pairs)  # Planned number of binary trainings.
        self._done: list[int] = []  # Numbers of completed trainings, one per call of `count`.

    def count(self, n_trainings: int) -> None:
        """Count completed binary trainings; raise OutOfTime if the time limit is reached."""
        self._done.append(n_trainings)
        if time_is_up():
            raise OutOfTime(sum(self._done), self._planned)

    def splits(self, rows: NDArray) -> Splits:
        """Return the inner splits of the rows with the indices `rows`, as positions in `rows`."""
        if self._on_rest:
            return [(np.flatnonzero(rows < self.n_train), np.flatnonzero(rows >= self.n_train))]
        if self._cut.ordered:
            return time_splits(len(rows), self._cut.folds, self._cut.split)
        groups = None if self._cut.groups is None else self._cut.groups[rows]
        return inner_splits(self.labels[rows], *self._cut[:4], groups)


def inner_splits(
    labels: NDArray,
    folds: int | None,
    split: float | None,
    repeats: int,
    seed: int,
    groups: NDArray | None = None,
) -> Splits:
    """Return the training rows and the validation rows of each inner split.

    All splits are stratified, except random splits with `groups`. `labels` contains the class index
    of each row; the other parameters are described in `Cut`. Raises ValueError if `folds` and
    `split` are both given or both None, if a class has fewer rows than there are folds, or if there
    are fewer groups than folds.
    """
    if (folds is None) == (split is None):
        raise ValueError("selection needs either folds or split")
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if folds is not None and smallest < folds:
        raise ValueError(f"the smallest class has {smallest} rows, fewer than {folds} folds")
    if folds is None:
        shuffle = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
        cutters = [shuffle(n_splits=repeats, test_size=split, random_state=seed)]
    elif groups is None:
        cutters = [RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)]
    else:
        if (n_groups := len(np.unique(groups))) < folds:
            raise ValueError(f"there are {n_groups} groups to train on, fewer than {folds} folds")
        seeds = range(seed, seed + repeats)
        cutters = [StratifiedGroupKFold(folds, shuffle=True, random_state=k) for k in seeds]
    return [found for cutter in cutters for found in cutter.split(labels, labels, groups)]


def time_splits(n_rows: int, folds: int | None, split: float | None) -> Splits:
    """Return inner splits of rows in temporal order; held-out rows follow the training rows."""
    if folds is not None:
        return list(TimeSeriesSplit(folds).split(np.arange(n_rows)))
    first = max(1, n_rows - max(1, round(float(split or 0) * n_rows)))
    return [(np.arange(first), np.arange(first, n_rows))]
