"""Labeled Faces in the Wild, as `fetch_lfw_people` crops it: 62 x 47 grey values."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.datasets.parsers.descriptors import describe
from mmbench.datasets.parsers.npz import read_npz


def lfw_people(paths: Sequence[Path], *, descriptor: str = "pixels", min_images: int = 1) -> Parsed:
    """Parse the images and the name of each person; one row an image, uint8.

    Parameters
    ----------
    paths : sequence of path
        The images.
    descriptor : {"pixels", "hog", "lbp"}, default="pixels"
    min_images : int, default=1
        People with fewer images are left out.
    """
    arrays = read_npz(paths[0])
    kept = np.bincount(arrays["target"])[arrays["target"]] >= min_images
    names = arrays["names"][arrays["target"][kept]]
    return Parsed(describe(arrays["X"][kept], descriptor), names)


def lfw_pairs(paths: Sequence[Path], *, descriptor: str = "pixels") -> Parsed:
    """Parse the 6000 pairs of view 2; one row a pair, its two images side by side, uint8.

    Each of the ten folds is tested once.

    Parameters
    ----------
    paths : sequence of path
        The images and the pairs.
    descriptor : {"pixels", "hog", "lbp"}, default="pixels"
    """
    pairs = read_npz(paths[1])
    used, position = np.unique(pairs["index"], return_inverse=True)
    values = describe(read_npz(paths[0])["X"][used], descriptor)
    X = side_by_side(values[position.reshape(pairs["index"].shape)])
    return Parsed(X, pairs["target"].astype(np.int64), None, fold_splits(pairs["fold"]))


def side_by_side(pairs: NDArray) -> NDArray:
    """Return pairs of shape (n_pairs, 2, ...) as rows: the first of each, then the second."""
    return pairs.reshape(len(pairs), -1)


def fold_splits(fold: np.ndarray) -> tuple[Rows, ...]:
    """Return the splits that test on one fold and train on the others."""
    return tuple(
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)
    )
