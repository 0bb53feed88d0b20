"""The sparse text format of LIBSVM: ``label index:value index:value ...``, indices from 1."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, read_bytes


def libsvm(paths: Sequence[Path], *, features: int, decimals: int, label_shift: int = 0) -> Parsed:
    """Parse one file, or a training and a test file; ``label_shift`` is added to each label."""
    parts = [_read(path, features) for path in paths]
    X = np.round(np.concatenate([X for X, _ in parts]), decimals)
    y = np.concatenate([y for _, y in parts]).astype(np.int64) + label_shift
    return Parsed(X, y, official=consecutive([len(part) for part, _ in parts]))


def _read(path: Path, features: int) -> tuple[NDArray, NDArray]:
    from sklearn.datasets import load_svmlight_file

    file = io.BytesIO(read_bytes(path))  # unpacked, whatever the file's name ends in
    try:
        X, y = load_svmlight_file(file, n_features=features, zero_based=False)
    except ValueError as error:
        raise ValueError(f"{path.name}: not in LIBSVM's format ({error})") from error
    return X.toarray(), y
