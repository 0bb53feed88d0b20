"""Data sets in memory: `DatasetRef` names one, `Parsed` is a parser's result, `Dataset` is checked.

Also the random streams of generators and splits, and data sets restricted to some classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.card import Card, load_card
from mmbench.errors import UserError


def random_stream(seed: int, repeat: int = 0, *purpose: int) -> np.random.RandomState:
    """Return the random stream of one repeat or draw, and of one purpose.

    `RandomState` is numpy's one frozen stream (NEP 19): a seed means the same rows in ten years.

    Examples
    --------
    >>> random_stream(0, 1).randint(1000), random_stream(0, 2).randint(1000)
    (566, 545)
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(repeat, *purpose))
    return np.random.RandomState(np.random.MT19937(sequence))


Scalar = str | float | int | None
#: Preprocessing as (name, argument): ``(("divide", 255), ("pca", 80))``.
Steps = tuple[tuple[str, Scalar], ...]
#: Marks a field that older records do not have. At its default it is no part of a job's key, so
#: that they still answer for their jobs.
ADDED = {"added": True}


@dataclass(frozen=True)
class DatasetRef:
    """Name of a data set, and the preparation of its rows."""

    #: Name of the card, or for a user's file the name shown in tables.
    name: str
    #: A user's file, absolute in a job. It is no part of the job's key, the content hash is.
    path: str | None = None
    #: Target column of a user's file, by name or number.
    target: str | int | None = None
    #: Steps (name, value), fitted on the training part.
    preprocess: Steps = ()
    #: Classes to keep; empty for all.
    classes: tuple[str, ...] = field(default=(), metadata=ADDED)
    #: Options of a user's file, from `mmbench.datasets.FileOptions.pairs`.
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata=ADDED)
    #: A file of given folds, for the rule ``predefined``. Not part of a job's key: its content is
    #: part of the content hash.
    folds: str | None = field(default=None, metadata=ADDED)

    @property
    def card(self) -> Card | None:
        """The card; None for a user's file. A UserError names the nearest card."""
        return load_card(self.name) if self.path is None else None


#: Numbers of the training rows and of the test rows.
Rows = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Rows hashed at a time, so that images stored as bytes never exist whole as float64.
HASH_ROWS = 4096


@dataclass(frozen=True)
class Parsed:
    """Arrays from a file, a generator or scikit-learn."""

    #: float64, or uint8 for images. Shape (n_samples, n_features).
    X: NDArray
    #: Labels: integers or text. Shape (n_samples,).
    y: NDArray
    #: The split that all publications use.
    official: Rows | None = None
    #: Splits that come with the data.
    predefined: tuple[Rows, ...] = ()

    def class_counts(self) -> dict[int | str, int]:
        """Return the number of rows of each label."""
        labels, counts = np.unique(self.y, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def content_hash(self) -> str:
        """Return the SHA-256 of values, labels and splits.

        Values count as little-endian float64 and labels as text, so the hash does not depend on
        the file format, on the dtype in memory or on the platform.
        """
        digest = hashlib.sha256(b"mmbench content 1\n")
        digest.update(f"{self.X.shape[0]} {self.X.shape[1]}\n".encode())
        for start in range(0, len(self.X), HASH_ROWS):
            block = np.ascontiguousarray(self.X[start : start + HASH_ROWS], dtype="<f8")
            digest.update((block + 0.0).tobytes())  # + 0.0 turns -0.0 into 0.0
        digest.update("\n".join(map(str, self.y.tolist())).encode())
        for train, test in ((self.official,) if self.official else ()) + self.predefined:
            digest.update(b"\nsplit\n" + _row_bytes(train) + b"\ntest\n" + _row_bytes(test))
        return digest.hexdigest()


def _row_bytes(rows: NDArray) -> bytes:
    return np.ascontiguousarray(rows, dtype="<i8").tobytes()


@dataclass(frozen=True)
class Dataset:
    """A data set that agreed with its card, or a user's file that passed all checks.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
        float64; uint8 for images (MNIST, LFW), which a preprocessing step turns into floats; a
        `csr_array` for a user's file that is too large without sparsity.
    y : ndarray of shape (n_samples,)
        Labels: integers or text.
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    split : (train rows, test rows) or None
        The official split.
    predefined : list of (train rows, test rows) or None
        The splits that come with the data.
    content_hash : str
        SHA-256 that names exactly these data; see `mmbench.datasets.dataset_hash`.
    deviations : tuple of str
        Differences from the full data set: footnotes for tables.
    split_deviations : tuple of str
        Differences of `predefined` from the official splits: footnotes for tables.
    warnings : tuple of str
        Suspicions about a user's file, one line each.
    card : Card or None
        None for user data.
    rows : ndarray of shape (n_samples,) or None
        Numbers of the rows in the whole data set, if classes were left out.
    n_categorical : int
        Number of columns, the last ones, that hold numbers of categories.
    groups : ndarray of shape (n_samples,) or None
        Group of each row; no split separates a group.
    time : ndarray of shape (n_samples,) or None
        Number by which the rows are ordered.
    folds : str or None
        File from which `predefined` was read.
    """

    name: str
    X: NDArray
    y: NDArray
    classes: NDArray
    split: Rows | None
    predefined: list[Rows] | None
    content_hash: str
    deviations: tuple[str, ...] = ()
    split_deviations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    card: Card | None = field(default=None, repr=False)
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    n_categorical: int = 0
    groups: NDArray | None = field(default=None, repr=False)
    time: NDArray | None = field(default=None, repr=False)
    folds: str | None = None


#: Upper bound on the classes named in a message.
MAX_NAMED = 30


def too_few_rows(y: NDArray, folds: int) -> str | None:
    """Return a sentence about a class with fewer rows than folds, or None.

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
    """Refuse an unknown class, given as text; the UserError names the known ones."""
    names = list(map(str, known))
    for label in wanted:
        if label not in names:
            shown = [*names[:MAX_NAMED], *["..."][: len(names) > MAX_NAMED]]
            raise UserError(f"unknown class {label!r}; the classes are {', '.join(shown)}")


def keep_classes(data: Dataset, classes: Sequence[str]) -> Dataset:
    """Return a data set restricted to some classes, given as text; all if none is given.

    Rows keep their order, and splits lose the other rows. The restriction is a deviation.
    """
    if not classes:
        return data
    try:
        check_classes(classes, data.classes.tolist())
    except UserError as error:
        raise UserError(f"data set {data.name!r}: {error}") from None
    labels = np.array([label for label in data.classes.tolist() if str(label) in classes])
    kept = np.isin(data.y, labels)
    place = np.cumsum(kept) - 1  # new number of a row

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
