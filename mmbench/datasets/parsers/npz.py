"""Training and test arrays in one ``.npz`` file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive


def read_npz(path: Path) -> dict[str, NDArray]:
    """Return the arrays of a file; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{path.name}: not a readable .npz file ({error})") from error


def train_test_npz(paths: Sequence[Path], *, decimals: int) -> Parsed:
    """Parse ``X_train, y_train, X_test, y_test``.

    Values were written as decimals; rounding the float32 of the file in float64 gives exactly what
    parsing the original text gives.
    """
    arrays = read_npz(paths[0])
    parts = [arrays["X_train"], arrays["X_test"]]
    X = np.round(np.concatenate(parts).astype(np.float64), decimals)
    y = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64)
    return Parsed(X, y, official=consecutive([len(part) for part in parts]))
