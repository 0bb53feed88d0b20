"""The rows of a grid search, and inner splits of these rows into training and validation rows."""

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.model_selection import (
    GroupShuffleSplit,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from mmbench.allowance import OutOfTime, begin_stage, time_is_up
from mmbench.machines.base.search_space import SelectRef
from mmbench.machines.base.voting import class_pairs, encode_labels

#: Indices of the training rows and of the validation rows, as two arrays per inner split.
Splits = list[tuple[NDArray, NDArray]]


#: Class index of rows whose class has no training rows; -1 is the index of rows without labels.
UNSEEN = -2


class Fold(NamedTuple):
    """The training rows and the held-out rows of one inner split, as indices.

    All training rows belong to one pair of classes. The attribute `signs` contains the label of
    each training row, -1.0 or +1.0.
    """

    train: NDArray
    signs: NDArray
    held: NDArray
    #: Labels of the two classes.
    classes: tuple

    @property
    def both(self) -> bool:
        """Whether both classes occur in the training rows."""
        return bool((self.signs != self.signs[:1]).any())


class SearchRows:
    """The rows of a grid search: first the training rows, then rows used for validation only.

    The attribute `y` contains the label of each row. The attribute `labels` contains the index of
    the label in `classes`, or `UNSEEN` for a row of a class without training
    rows.

    Parameters
    ----------
    X, y, n_train
        Features, classes and number of training rows; `n_train` is None if all rows are training
        rows.
    n_points : int
        Number of grid points.
    how : SelectRef
        Rule of the inner splits.
    seed : int
    groups : array, optional
        Group of each row, shape (n_rows,). Splits never separate rows of the same group.
    ordered : bool
        Whether the rows are in temporal order; held-out rows then follow the training rows.
    steps : Pipeline, optional
        Unfitted preprocessing steps; see `parts`.
    """

    def __init__(
        self,
        X: NDArray,
        y: NDArray,
        n_train: int | None,
        n_points: int,
        how: SelectRef,
        seed: int = 0,
        groups: NDArray | None = None,
        ordered: bool = False,
        steps: Any = None,
    ):
        self.n_train = len(y) if n_train is None else n_train
        self._how, self._seed, self._groups, self._ordered = how, seed, groups, ordered
        self._on_rest = how.folds is None and how.split is None
        kept = slice(None) if self._on_rest else slice(self.n_train)
        classes, _ = encode_labels(y[: self.n_train])  # ValueError if there is only one class
        labels = np.where(np.isin(y, classes), np.searchsorted(classes, y), UNSEEN)
        self.classes, self.y, self.labels = classes, y[kept], labels[kept]
        self.pairs, self._steps = class_pairs(len(classes)), steps
        self._set_rows(X[kept] if steps is not None else _as_floats(X)[kept])
        n_splits = (how.folds or 1) * (1 if ordered or self._on_rest else how.repeats)
        self._planned = n_points * n_splits * len(self.pairs)  # Planned number of binary trainings.
        self._done: list[int] = []  # Numbers of completed trainings, one per call of `count`.
        self._show()

    def _set_rows(self, X: NDArray) -> None:
        # gamma="scale" is computed from `X_train`, as in the final training after the search
        self.X, self.X_train = X, X[: self.n_train]

    def parts(self) -> Iterator[Self]:
        """Yield the rows of searches whose scores together are the scores of this search.

        Without steps, this object. With steps, which use labels, one object per inner split, with
        its training and held-out rows, transformed by steps that are fitted on its training rows
        only.
        """
        if self._steps is None:
            yield self
            return
        for train, held in self.splits(np.arange(len(self.labels))):
            part, rows = copy(self), np.append(train, held)
            part.n_train, part._on_rest = len(train), True
            part.y, part.labels = self.y[rows], self.labels[rows]
            fitted = clone(self._steps).fit(self.X[train], self.y[train])
            part._set_rows(_as_floats(fitted.transform(self.X[rows])))
            yield part

    def count(self, n_trainings: int) -> None:
        """Count completed binary trainings; raise OutOfTime if the time limit is reached."""
        self._done.append(n_trainings)
        self._show()
        if time_is_up():
            raise OutOfTime(sum(self._done), self._planned)

    def _show(self) -> None:
        """Set the progress messages to the number of completed trainings."""
        begin_stage(f"selection, {sum(self._done)} of {self._planned} trainings of pairs done")

    def splits(self, rows: NDArray) -> Splits:
        """Return the inner splits of the rows with the indices `rows`, as positions in `rows`."""
        if self._on_rest:
            return [(np.flatnonzero(rows < self.n_train), np.flatnonzero(rows >= self.n_train))]
        how, groups = self._how, self._groups
        if self._ordered:
            return time_splits(len(rows), how.folds, how.split)
        own = None if groups is None else groups[rows]
        return inner_splits(self.labels[rows], how.folds, how.split, how.repeats, self._seed, own)


def _as_floats(X: NDArray) -> NDArray:
    return (csr_array(X) if issparse(X) else np.asarray(X)).astype(np.float64, copy=False)


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
    of each row; the other parameters are described in `SelectRef`. Raises ValueError if `folds` and
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
