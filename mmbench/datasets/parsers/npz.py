"""Arrays in one ``.npz`` file: a training and a test part, or a data set as the store packs it."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive

UNREADABLE = (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError, NotImplementedError)


def read_npz(path: Path) -> dict[str, NDArray]:
    """Return the arrays of a file; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except UNREADABLE as error:
        if "allow_pickle" in str(error):
            hint = "save numbers, and text by y.astype(str)"
            raise ValueError(f"{path.name}: holds arrays of Python objects; {hint}") from error
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


def write_packed(path: Path, data: Parsed) -> None:
    """Write a data set with its content hash, by which damage shows even where the card has none.

    For sources whose bytes cannot be known beforehand.
    """
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
    except UNREADABLE as error:
        raise ValueError(f"{path.name}: not a packed data set ({error})") from error


def packed(paths: Sequence[Path]) -> Parsed:
    """Parse what `write_packed` wrote, and compare it with its content hash."""
    arrays = read_npz(paths[0])
    if not {"X", "y", "content"} <= set(arrays):
        raise ValueError(f"{paths[0].name}: not a packed data set")
    official = None
    if "official_train" in arrays:
        official = (arrays["official_train"], arrays["official_test"])
    numbers = sorted(name[6:] for name in arrays if name.startswith("train_"))
    splits = tuple((arrays[f"train_{k}"], arrays[f"test_{k}"]) for k in numbers)
    data = Parsed(arrays["X"], arrays["y"], official, splits)
    if data.content_hash() != str(arrays["content"]):
        raise ValueError(f"{paths[0].name}: damaged (its content hash does not agree)")
    return data
