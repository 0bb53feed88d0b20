"""What is computed of one image alone, in 8 bits: nothing here is fitted, so nothing can leak.

- ``pixels``: the grey values.
- ``hog``: histograms of oriented gradients (Dalal and Triggs 2005): 9 orientations, cells of 8 x 8
  pixels, blocks of 2 x 2 cells normalised by L2-Hys, in units of 1/255.
- ``lbp``: local binary patterns (Ojala et al. 2002; of faces: Ahonen et al. 2006): 8 neighbours at
  distance 1, the 59 uniform patterns counted in cells of 10 x 10 pixels.

Both by scikit-image. Eight bits, as SIFT descriptors have, keep a data set small, and equal on
every platform but for the rounding of a tie.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import did_you_mean

#: Side of a cell of local binary patterns: a count of its pixels fits into 8 bits.
LBP_CELL = 10

#: Uniform patterns of 8 neighbours, and one more for all others.
LBP_PATTERNS = 59


def describe(images: NDArray, descriptor: str) -> NDArray:
    """Return the descriptor of each image.

    Parameters
    ----------
    images : ndarray of uint8 of shape (n_images, height, width)
    descriptor : {"pixels", "hog", "lbp"}

    Returns
    -------
    ndarray of uint8 of shape (n_images, n_values)

    Raises
    ------
    ValueError
        If there is no such descriptor; the message holds the nearest name.
    """
    if descriptor not in DESCRIPTORS:
        nearest = did_you_mean(descriptor, DESCRIPTORS)
        raise ValueError(f"unknown descriptor {descriptor!r}{nearest}")
    return np.array([DESCRIPTORS[descriptor](image) for image in images])


def _hog(image: NDArray) -> NDArray:
    from skimage.feature import hog

    values = hog(image, orientations=9, pixels_per_cell=(8, 8), cells_per_block=(2, 2))
    return np.rint(255 * values).astype(np.uint8)


def _lbp(image: NDArray) -> NDArray:
    """Return the counts of one cell after the other; pixels beside the cells are cut evenly."""
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
