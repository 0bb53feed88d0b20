"""What a parser yields (`Parsed`) and what a user of this layer gets (`Dataset`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mmbench.datasets.card import Card

#: Rows to train on and rows to test on.
Rows = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Rows hashed at a time, so that images stored as bytes never exist whole as float64.
HASH_ROWS = 4096


@dataclass(frozen=True)
class Parsed:
    """Arrays as a file, a generator or scikit-learn yields them."""

    #: float64, or uint8 for images. Shape (n_samples, n_features).
    X: NDArray
    #: Labels: integers or text. Shape (n_samples,).
    y: NDArray
    #: Rows that train and rows that test, in the one split that everybody uses.
    official: Rows | None = None
    #: The list of such splits that comes with the data.
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
        How what was loaded differs from the full data set: footnotes for tables.
    split_deviations : tuple of str
        How `predefined` differs from the splits that it stands for: footnotes where it is used.
    warnings : tuple of str
        What a user should know about a file of their own, each one line.
    card : Card or None
        None for user data.
    rows : ndarray of shape (n_samples,) or None
        Where the rows stand in the whole data set, if classes were left out.
    n_categorical : int
        So many of the last columns hold numbers of categories.
    groups : ndarray of shape (n_samples,) or None
        What belongs together in all splits.
    time : ndarray of shape (n_samples,) or None
        What orders the rows.
    folds : str or None
        The file that `predefined` was read from.
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
