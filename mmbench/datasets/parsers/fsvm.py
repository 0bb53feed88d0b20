"""The data files of the public F-SVM code: arrays and ten fixed lists of test rows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.datasets.parsers.npz import read_npz

PADDING = -1


def fsvm(paths: Sequence[Path]) -> Parsed:
    """Parse ``X``, ``y`` and ``kfold``; training uses the rows that a test list does not name.

    The test lists hold some rows twice. They are kept as they are: a row counts as often as the
    authors' code counts it.
    """
    arrays = read_npz(paths[0])
    X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    return Parsed(X, y, None, tuple(_split(row, len(y)) for row in arrays["kfold"]))


def _split(row: np.ndarray, n_samples: int) -> Rows:
    test = row[row != PADDING].astype(np.intp)
    return np.setdiff1d(np.arange(n_samples), test), test
