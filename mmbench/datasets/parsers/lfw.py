"""Labeled Faces in the Wild, as `fetch_lfw_people` crops it: 62 x 47 grey values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.datasets.parsers.npz import read_npz


def lfw_people(paths: Sequence[Path]) -> Parsed:
    """Parse the images and the name of each person; one row an image, uint8."""
    arrays = read_npz(paths[0])
    X = arrays["X"].reshape(len(arrays["X"]), -1)
    return Parsed(X, arrays["names"][arrays["target"]])


def lfw_pairs(paths: Sequence[Path]) -> Parsed:
    """Parse the 6000 pairs of view 2: one row a pair, ``|a - b|`` of its two images, uint8.

    Paths are the images and the pairs. Each of the ten folds is tested once.
    """
    images, pairs = read_npz(paths[0])["X"], read_npz(paths[1])
    a, b = (images[pairs["index"][:, k]].astype(np.int16) for k in (0, 1))
    X = np.abs(a - b).astype(np.uint8).reshape(len(a), -1)
    return Parsed(X, pairs["target"].astype(np.int64), None, fold_splits(pairs["fold"]))


def fold_splits(fold: np.ndarray) -> tuple[Rows, ...]:
    """Return the splits that test on one fold and train on the others."""
    return tuple(
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)
    )
