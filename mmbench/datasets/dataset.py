"""Classes for data: `DatasetRef` (reference), `Parsed` (arrays), `Dataset` (checked data)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.card import Card, load_card
from mmbench.errors import UserError, listed

if TYPE_CHECKING:
    from mmbench.reader.table_columns import TableColumns


def random_stream(seed: int, repeat: int = 0, *purpose: int) -> np.random.RandomState:
    """Return the random number generator for a seed and the repetition number `repeat`.

    Random number generators with different values of `purpose` are independent. NumPy guarantees
    that the random numbers of `RandomState` never change (NEP 19). Therefore a seed gives the same
    splits with every version of NumPy.

    Examples
    --------
    >>> random_stream(0, 1).randint(1000), random_stream(0, 2).randint(1000)
    (566, 545)
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(repeat, *purpose))
    return np.random.RandomState(np.random.MT19937(sequence))


Scalar = str | float | int | None
TASK, SUITE = "openml_task", "openml_suite"
#: Kinds of sources that are not files, each the word before the colon in `DatasetRef.path`.
SOURCES = ("openml", TASK, SUITE, "sklearn")
#: Preprocessing steps as pairs (name, argument), such as ``(("divide", 255), ("pca", 80))``. The
#: argument of an import path is a tuple of pairs (parameter, value).
Steps = tuple[tuple[str, Scalar | tuple[Any, ...]], ...]


@dataclass(frozen=True)
class DatasetRef:
    """Name of a data set, options for reading the data, and preprocessing steps."""

    #: Name of the data set's card. For a user's file, the name of the data set in result tables.
    name: str
    #: Path of a user's file, or a source such as "openml:31" (see `SOURCES`); None for a card. The
    #: key of a result depends on the content of the file, not on the path.
    path: str | None = None
    #: Target column of a user's file, by name or number.
    target: str | int | None = None
    #: Preprocessing steps (name, argument), fitted on the training rows.
    preprocess: Steps = ()
    #: Labels of the classes to which the data set is restricted; empty for all classes.
    classes: tuple[str, ...] = ()
    #: Options for reading a user's file, as (key, value) pairs; see `FileOptions.pairs`.
    options: tuple[tuple[str, Any], ...] = ()
    #: Path of a file that assigns rows to folds, for the split rule ``predefined``. The hash that
    #: identifies a stored result depends on the content of this file, not on the path.
    folds: str | None = None

    @property
    def card(self) -> Card | None:
        """Card of the data set, or None for a user's file. Raises UserError if the card does not
        exist.
        """
        return load_card(self.name) if self.path is None else None

    @property
    def file(self) -> str | None:
        """Path of a user's file, or None for other data."""
        kind = str(self.path).partition(":")[0]
        return None if kind in SOURCES else self.path

    @property
    def splits_source(self) -> str | None:
        """File of folds or OpenML task with splits that are known only after reading; else None."""
        return self.path if str(self.path).partition(":")[0] in (TASK, SUITE) else self.folds


#: Row numbers of a split: (training rows, test rows).
Rows = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Number of rows that are converted to float64 and hashed at a time: all uint8 images at once would
#: need eight times their memory.
HASH_ROWS = 4096


@dataclass(frozen=True)
class Parsed:
    """Features, labels and splits that were read from files or generated."""

    #: Features, shape (n_samples, n_features); float64, or uint8 for images.
    X: NDArray
    #: Labels, shape (n_samples,); integers or text.
    y: NDArray
    #: Official split, which all publications on the data set use, or None.
    official: Rows | None = None
    #: Splits that are distributed with the data.
    predefined: tuple[Rows, ...] = ()

    def content_hash(self) -> str:
        """Return the SHA-256 of feature values, labels and splits.

        Values are hashed as little-endian float64 and labels as text, so that the hash is the same
        for all file formats, dtypes and platforms.
        """
        digest = hashlib.sha256(b"mmbench content 1\n")
        digest.update(f"{self.X.shape[0]} {self.X.shape[1]}\n".encode())
        for start in range(0, len(self.X), HASH_ROWS):
            block = np.ascontiguousarray(self.X[start : start + HASH_ROWS], dtype="<f8")
            digest.update((block + 0.0).tobytes())  # adding 0.0 turns -0.0 into 0.0
        digest.update("\n".join(map(str, self.y.tolist())).encode())
        for train, test in ((self.official,) if self.official else ()) + self.predefined:
            for word, rows in (("split", train), ("test", test)):
                digest.update(f"\n{word}\n".encode() + rows.astype("<i8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Dataset:
    """A data set that agrees with its card, or a user's data set that passed all checks.

    Parameters
    ----------
    name : str
    X : ndarray of shape (n_samples, n_features)
        Features: float64, or uint8 for images (MNIST, LFW). Preprocessing steps such as ``divide``
        convert uint8 to float64. If a user's file is too large for a dense array, `X` is a sparse
        `csr_array`.
    y : ndarray of shape (n_samples,)
        Class labels: integers or text.
    classes : ndarray of shape (n_classes,)
        Distinct class labels, sorted.
    split : (train rows, test rows) or None
        Official split.
    predefined : list of (train rows, test rows) or None
        Splits that are distributed with the data, or read from `splits_source`.
    content_hash : str
        SHA-256 that identifies the content of the data; see `mmbench.datasets.load.dataset_hash`.
    deviations : tuple of str
        Differences between these data and the full data set, shown as footnotes of tables.
    split_deviations : tuple of str
        Differences between `predefined` and the papers' splits, shown as footnotes of tables.
    warnings : tuple of str
        Possible faults of a user's file, one line each.
    card : Card or None
        Card of the data set, or None for a user's data.
    rows : ndarray of shape (n_samples,) or None
        Number of each row, counted from 0, in the user's file or in the full data set. None if the
        data set has a card and no row was removed.
    n_categorical : int
        Number of categorical columns. The categorical columns are the last columns of `X` and
        contain category codes.
    table : TableColumns or None
        Feature columns of a user's table, which convert new rows to rows of `X`.
    groups : ndarray of shape (n_samples,) or None
        Group of each row. In a split, the rows of a group are either all training rows or all test
        rows.
    time : ndarray of shape (n_samples,) or None
        Time of each row, as a number. The split rule ``time_series`` sorts the rows by time.
    splits_source : str or None
        Path of the file of folds, or OpenML task, from which the splits `predefined` were read.
    labelled : ndarray of bool or None
        Mask of the rows of a user's table with a label (and with a group, if groups are used). All
        other rows of the table are left out of the data set. None for a data set with a card.
    """

    name: str
    X: NDArray
    y: NDArray
    classes: NDArray
    split: Rows | None = None
    predefined: list[Rows] | None = None
    content_hash: str = ""
    deviations: tuple[str, ...] = ()
    split_deviations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    card: Card | None = field(default=None, repr=False)
    rows: NDArray[np.intp] | None = field(default=None, repr=False)
    n_categorical: int = 0
    table: TableColumns | None = field(default=None, repr=False)
    groups: NDArray | None = field(default=None, repr=False)
    time: NDArray | None = field(default=None, repr=False)
    splits_source: str | None = None
    labelled: NDArray[np.bool_] | None = field(default=None, repr=False)

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        """Feature columns of a user's table: categories by name, or None for a numeric column."""
        return self.table.columns if self.table else {}


def too_few_rows(y: NDArray, folds: int) -> str | None:
    """Return a message if a class has fewer than `folds` rows, otherwise None.

    Examples
    --------
    >>> too_few_rows(np.array(["cat", "cat", "dog"]), 2)
    'class dog has 1 rows, fewer than 2 folds'
    """
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() >= folds:
        return None
    return f"class {labels[counts.argmin()]} has {counts.min()} rows, fewer than {folds} folds"


def check_classes(wanted: Iterable[str], known: Iterable[Any], name: str) -> None:
    """Raise UserError if the data set `name` does not have all `wanted` classes."""
    names = list(map(str, known))
    if unknown := [label for label in wanted if label not in names]:
        classes = f"unknown class {unknown[0]!r}; the classes are {listed(names)}"
        raise UserError(f"data set {name!r}: {classes}")


def keep_classes(data: Dataset, classes: Sequence[str]) -> Dataset:
    """Return a data set restricted to `classes` (as text), or unchanged if `classes` is empty.

    The rows of all other classes are also removed from the splits. The names of the remaining
    classes are added to `deviations`, which tables show as footnotes.
    """
    if not classes:
        return data
    check_classes(classes, data.classes.tolist(), data.name)
    labels = np.array([label for label in data.classes.tolist() if str(label) in classes])
    kept = np.isin(data.y, labels)
    position = np.cumsum(kept) - 1  # row numbers in the restricted data set

    def cut(split: Rows) -> Rows:
        train, test = (position[part[kept[part]]] for part in split)
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
        rows=np.flatnonzero(kept) if data.rows is None else data.rows[kept],
        groups=None if data.groups is None else data.groups[kept],
        time=None if data.time is None else data.time[kept],
    )
