"""Parsed arrays as one ``.npz`` in the store, for sources whose bytes cannot be known beforehand.

The file carries its own content hash, so that damage shows even where the card knows none.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.npz import read_npz


def write_packed(path: Path, data: Parsed) -> None:
    """Write parsed arrays with their content hash."""
    arrays = {"X": data.X, "y": data.y, "content": np.array(data.content_hash())}
    if data.official:
        arrays["official_train"], arrays["official_test"] = data.official
    for k, (train, test) in enumerate(data.predefined):
        arrays[f"train_{k:04d}"], arrays[f"test_{k:04d}"] = train, test
    np.savez_compressed(path, allow_pickle=False, **arrays)


def packed_hash(path: Path) -> str:
    """Return the content hash that a packed file states, without reading the arrays."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return str(arrays["content"])
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"{path.name}: not a packed data set ({error})") from error


def read_packed(path: Path) -> Parsed:
    """Read parsed arrays back.

    Raises
    ------
    ValueError
        If the file is damaged.
    """
    arrays = read_npz(path)
    if not {"X", "y", "content"} <= set(arrays):
        raise ValueError(f"{path.name}: not a packed data set")
    official = None
    if "official_train" in arrays:
        official = (arrays["official_train"], arrays["official_test"])
    numbers = sorted(name[6:] for name in arrays if name.startswith("train_"))
    splits = tuple((arrays[f"train_{k}"], arrays[f"test_{k}"]) for k in numbers)
    data = Parsed(arrays["X"], arrays["y"], official, splits)
    if data.content_hash() != str(arrays["content"]):
        raise ValueError(f"{path.name}: damaged (its content hash does not agree)")
    return data
