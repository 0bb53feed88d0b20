"""Parsers of Labeled Faces in the Wild (LFW), and descriptors of its images.

The descriptors ``pixels``, ``hog`` (Dalal and Triggs 2005; L2-Hys; v stands for v/255) and ``lbp``
(Ojala et al. 2002, Ahonen et al. 2006) are described in the cards. They are 8-bit integers, equal
on all platforms except for values halfway between two integers.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.errors import check_known, extra
from mmbench.reader.file_text import read_npz

#: Side length of a cell of local binary patterns, in pixels. A cell has 100 pixels, so that the
#: count of a pattern fits into 8 bits.
LBP_CELL = 10

#: Number of bins for local binary patterns, 58 for uniform patterns and 1 for all others.
LBP_PATTERNS = 59


def describe(images: NDArray, descriptor: str) -> NDArray:
    """Return the descriptors of images as 8-bit integers, shape (n_images, n_values)."""
    check_known(descriptor, DESCRIPTORS, "no descriptor", ValueError)
    return np.array([DESCRIPTORS[descriptor](image) for image in images])


def _hog(image: NDArray) -> NDArray:
    with extra("lfw", "the descriptor 'hog'"):
        from skimage.feature import hog

    values = hog(image, orientations=9, pixels_per_cell=(8, 8), cells_per_block=(2, 2))
    return np.rint(255 * values).astype(np.uint8)


def _lbp(image: NDArray) -> NDArray:
    """Return the counts of local binary patterns per cell; the grid of cells is centred."""
    with extra("lfw", "the descriptor 'lbp'"):
        from skimage.feature import local_binary_pattern

    codes = local_binary_pattern(image, 8, 1, method="nri_uniform").astype(np.intp)
    height, width = (side // LBP_CELL for side in image.shape)
    top, left = (side % LBP_CELL // 2 for side in image.shape)
    inside = codes[top : top + height * LBP_CELL, left : left + width * LBP_CELL]
    cells = inside.reshape(height, LBP_CELL, width, LBP_CELL).swapaxes(1, 2)
    counts = [np.bincount(cell.ravel(), minlength=LBP_PATTERNS) for row in cells for cell in row]
    return np.concatenate(counts).astype(np.uint8)


DESCRIPTORS: dict[str, Callable[[NDArray], NDArray]] = {
    "pixels": np.ravel,
    "hog": _hog,
    "lbp": _lbp,
}


def lfw_people(paths: Sequence[Path], *, descriptor: str = "pixels", min_images: int = 1) -> Parsed:
    """Parse the images of all people who have at least `min_images` images, one row per image."""
    arrays = read_npz(paths[0])
    kept = np.bincount(arrays["target"])[arrays["target"]] >= min_images
    return Parsed(describe(arrays["X"][kept], descriptor), arrays["names"][arrays["target"][kept]])


def lfw_pairs(paths: Sequence[Path], *, descriptor: str = "pixels") -> Parsed:
    """Parse the 6000 image pairs of LFW's final test; a row contains both descriptors of a pair.

    In the publication of LFW, these pairs are called "view 2". `paths` contains the path of the
    images and the path of the pairs. Each of the ten folds is the test set of one predefined split.
    """
    pairs = read_npz(paths[1])
    used, position = np.unique(pairs["index"], return_inverse=True)
    values = describe(read_npz(paths[0])["X"][used], descriptor)
    return in_pairs(values[position.ravel()], pairs["target"], pairs["fold"])


def in_pairs(values: NDArray, target: NDArray, fold: NDArray) -> Parsed:
    """Return one row per pair of consecutive descriptors. Each fold is the test set of a split."""
    numbers = range(int(fold.max()) + 1)
    splits = tuple((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in numbers)
    return Parsed(values.reshape(len(target), -1), target.astype(np.int64), None, splits)
