"""The IDX format of MNIST: training images, training labels, test images, test labels."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, read_bytes

UINT8 = 8


def idx(paths: Sequence[Path]) -> Parsed:
    """Parse four IDX files; images stay uint8, one row an image."""
    train, train_labels, test, test_labels = (_read(path) for path in paths)
    X = np.concatenate([train.reshape(len(train), -1), test.reshape(len(test), -1)])
    y = np.concatenate([train_labels, test_labels]).astype(np.int64)
    if len(X) != len(y):
        raise ValueError(f"{len(X)} images but {len(y)} labels")
    return Parsed(X, y, official=consecutive([len(train), len(test)]))


def _read(path: Path) -> NDArray[np.uint8]:
    """Read one array: two zero bytes, type, number of dimensions, sizes, values."""
    data = read_bytes(path)
    if len(data) < 4 or data[:3] != bytes([0, 0, UINT8]):
        raise ValueError(f"{path.name}: not an IDX file of bytes")
    n_dims = data[3]
    header = 4 + 4 * n_dims
    sizes = tuple(int(size) for size in np.frombuffer(data[4:header], dtype=">i4"))
    if len(data) - header != np.prod(sizes):
        raise ValueError(f"{path.name}: cut short")
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(sizes)
