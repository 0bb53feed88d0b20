"""Classes of a data set: enough rows of each, and sets of which only some classes are wanted."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset, Rows
from mmbench.errors import UserError

#: So many classes are named where one is unknown.
MAX_NAMED = 30


def too_few_rows(y: NDArray, folds: int) -> str | None:
    """Return which class has fewer rows than folds, or None.

    Examples
    --------
    >>> too_few_rows(np.array(["cat", "cat", "dog"]), 2)
    'class dog has 1 rows, fewer than 2 folds'
    """
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() >= folds:
        return None
    rarest = counts.argmin()
    return f"class {labels[rarest]} has {counts[rarest]} rows, fewer than {folds} folds"


def check_classes(wanted: Iterable[str], known: Iterable[Any]) -> None:
    """Refuse a class that there is not.

    Parameters
    ----------
    wanted : iterable of str
        Labels as text.
    known : iterable of int or str
        All labels.

    Raises
    ------
    UserError
        Names the valid classes.
    """
    names = list(map(str, known))
    for label in wanted:
        if label not in names:
            shown = [*names[:MAX_NAMED], *["..."][: len(names) > MAX_NAMED]]
            raise UserError(f"unknown class {label!r}; the classes are {', '.join(shown)}")


def keep_classes(data: Dataset, classes: Sequence[str]) -> Dataset:
    """Return a data set with the rows of some classes alone, in their order.

    Its splits are those of the whole set without the other rows. That rows are missing is one of
    its deviations.

    Parameters
    ----------
    data : Dataset
    classes : sequence of str
        Labels as text; none for all.

    Raises
    ------
    UserError
        If there is no such class.
    """
    if not classes:
        return data
    try:
        check_classes(classes, data.classes.tolist())
    except UserError as error:
        raise UserError(f"data set {data.name!r}: {error}") from None
    labels = np.array([label for label in data.classes.tolist() if str(label) in classes])
    kept = np.isin(data.y, labels)
    place = np.cumsum(kept) - 1  # of a row that is kept, among those

    def cut(split: Rows) -> Rows:
        train, test = (place[part[kept[part]]] for part in split)
        return train, test

    names = ", ".join(map(str, labels.tolist()))
    return replace(
        data,
        X=data.X[kept],
        y=data.y[kept],
        classes=labels,
        split=data.split and cut(data.split),
        predefined=data.predefined and [cut(split) for split in data.predefined],
        deviations=(*data.deviations, f"classes {names} of {len(data.classes)}"),
        rows=np.flatnonzero(kept),
        groups=None if data.groups is None else data.groups[kept],
        time=None if data.time is None else data.time[kept],
    )
