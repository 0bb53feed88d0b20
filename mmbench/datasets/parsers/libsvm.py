"""The sparse text format of LIBSVM: ``label index:value index:value ...``, indices from 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, read_lines


def libsvm(paths: Sequence[Path], *, features: int, decimals: int, label_shift: int = 0) -> Parsed:
    """Parse one file, or a training and a test file; ``label_shift`` is added to each label."""
    parts = [_read(path, features) for path in paths]
    X = np.round(np.concatenate([X for X, _ in parts]), decimals)
    y = np.concatenate([y for _, y in parts]) + label_shift
    return Parsed(X, y, official=consecutive([len(part) for part, _ in parts]))


def _read(path: Path, features: int) -> tuple[NDArray, NDArray]:
    lines = read_lines(path)
    X, y = np.zeros((len(lines), features)), np.zeros(len(lines), dtype=np.int64)
    for i, line in enumerate(lines):
        try:
            label, *pairs = line.split()
            y[i] = int(float(label))
            for pair in pairs:
                column, value = pair.split(":")
                X[i, int(column) - 1] = float(value)
        except (ValueError, IndexError):
            raise ValueError(f"{path.name}: line {i + 1} is not in LIBSVM's format") from None
    return X, y
