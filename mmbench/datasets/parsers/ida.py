"""The benchmark sets of Raetsch, Onoda and Mueller (2001).

A pool of rows and a list of splits. The full collection is ``benchmarks.mat``, one structure a data
set with fields x, t, train, test; rows are counted from 1 there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.datasets.parsers.delimited import delimited
from mmbench.datasets.parsers.npz import read_npz

#: The standardised values are rounded here, far below any meaning and far above the last bit, so
#: that the content hash does not depend on the order in which a platform adds numbers.
DECIMALS = 8


def ida(paths: Sequence[Path]) -> Parsed:
    """Parse an ``.npz`` with x, t and, where they could be had, train and test."""
    arrays = read_npz(paths[0])
    splits: tuple[Rows, ...] = ()
    if "train" in arrays:
        splits = _splits(arrays["train"], arrays["test"], first=0)
    return Parsed(arrays["x"].astype(np.float64), arrays["t"].astype(np.int64), None, splits)


def ida_mat(paths: Sequence[Path], *, key: str) -> Parsed:
    """Parse one structure of ``benchmarks.mat``."""
    from scipy.io import loadmat

    try:
        entry = loadmat(paths[0], variable_names=[key])[key][0, 0]
        X, t = np.asarray(entry["x"], dtype=np.float64), np.asarray(entry["t"]).ravel()
        splits = _splits(entry["train"], entry["test"], first=1)
    except (ValueError, KeyError, IndexError, TypeError, OSError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{paths[0].name}: no structure {key!r} ({reason})") from error
    return Parsed(X, t.astype(np.int64), None, splits)


def ida_standardised(paths: Sequence[Path], **options: Any) -> Parsed:
    """Parse a UCI file and standardise it as the collection does: mean 0, sample deviation 1."""
    raw = delimited(paths, **options)
    X = (raw.X - raw.X.mean(axis=0)) / raw.X.std(axis=0, ddof=1)
    return Parsed(np.round(X, DECIMALS), raw.y)


def _splits(train: NDArray, test: NDArray, first: int) -> tuple[Rows, ...]:
    return tuple(
        (a.astype(np.intp) - first, b.astype(np.intp) - first)
        for a, b in zip(train, test, strict=True)
    )
