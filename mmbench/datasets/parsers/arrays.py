"""Parsers of files that contain arrays, in the formats of NumPy, Matlab and IDX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.datasets.parsers.text_files import delimited, in_parts
from mmbench.errors import converted
from mmbench.reader.file_text import read_bytes, read_npz


def train_test_npz(paths: Sequence[Path], *, decimals: int) -> Parsed:
    """Parse an ``.npz`` file with the arrays ``X_train, y_train, X_test, y_test``.

    The float32 values of the file come from a text file whose numbers have `decimals` decimals.
    Rounding to `decimals` decimals in float64 reproduces the numbers of the text file exactly.
    """
    arrays = read_npz(paths[0])
    parts = [(arrays[f"X_{part}"], arrays[f"y_{part}"]) for part in ("train", "test")]
    return in_parts(parts, decimals)


def write_packed(path: Path, data: Parsed) -> None:
    """Write features, labels, splits and the content hash (as a checksum) to an ``.npz`` file."""
    arrays = {"X": data.X, "y": data.y, "content": np.array(data.content_hash())}
    if data.official:
        arrays["official_train"], arrays["official_test"] = data.official
    for k, (train, test) in enumerate(data.predefined):
        arrays[f"train_{k:04d}"], arrays[f"test_{k:04d}"] = train, test
    np.savez_compressed(path, allow_pickle=False, **arrays)


def packed_hash(path: Path) -> str:
    """Return the content hash stored by `write_packed`, without reading the other arrays."""
    return str(read_npz(path, ["content"])["content"])


def packed(paths: Sequence[Path]) -> Parsed:
    """Parse a file written by `write_packed`; raise ValueError if its content hash is wrong."""
    arrays = read_npz(paths[0])
    if not {"X", "y", "content"} <= set(arrays):
        raise ValueError(f"{paths[0].name}: not a packed data set")
    train = arrays.get("official_train")
    official = None if train is None else (train, arrays["official_test"])
    numbers = sorted(name[6:] for name in arrays if name.startswith("train_"))
    splits = tuple((arrays[f"train_{k}"], arrays[f"test_{k}"]) for k in numbers)
    data = Parsed(arrays["X"], arrays["y"], official, splits)
    if data.content_hash() != str(arrays["content"]):
        raise ValueError(f"{paths[0].name}: damaged (the content hash differs)")
    return data


def idx(paths: Sequence[Path]) -> Parsed:
    """Parse four IDX files (training images and labels, test images and labels) to uint8 rows."""
    train, train_labels, test, test_labels = (_read_idx(path) for path in paths)
    n_images, n_labels = len(train) + len(test), len(train_labels) + len(test_labels)
    if n_images != n_labels:
        raise ValueError(f"{n_images} images but {n_labels} labels")
    parts = [(train, train_labels), (test, test_labels)]
    return in_parts([(images.reshape(len(images), -1), labels) for images, labels in parts])


def _read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array in an IDX file.

    The file contains two zero bytes, the type, the number of dimensions, the size of each
    dimension, and the values.
    """
    data = read_bytes(path)
    if len(data) < 4 or not data.startswith(b"\0\0\x08"):  # 8 denotes uint8
        raise ValueError(f"{path.name}: not an IDX file of bytes")
    header = 4 + 4 * data[3]  # data[3] is the number of dimensions
    sizes = tuple(int(size) for size in np.frombuffer(data[4:header], dtype=">i4"))
    if len(data) - header != np.prod(sizes):
        raise ValueError(f"{path.name}: cut short")
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(sizes)


def fsvm(paths: Sequence[Path]) -> Parsed:
    """Parse a Matlab file of the public F-SVM code, with ``X``, ``Y`` and ten lists of test rows.

    Each list defines one split, in which the training rows are all rows that are not in the list.
    If a row occurs twice in a list, the row is tested twice, as in the public F-SVM code.
    """
    from scipy.io import loadmat

    with converted(f"{paths[0].name}: not a data file of F-SVM", Exception, to=ValueError):
        arrays = loadmat(paths[0], variable_names=["X", "Y", "kfold"])
        X = np.ascontiguousarray(arrays["X"].T, dtype=np.float64)
        y = arrays["Y"].ravel().astype(np.int64)
        tests = [rows.ravel().astype(np.intp) - 1 for rows in arrays["kfold"].ravel()]
    rows = np.arange(len(y))
    return Parsed(X, y, None, tuple((np.setdiff1d(rows, test), test) for test in tests))


#: Number of decimals to which standardised values are rounded. Without rounding, the content hash
#: would depend on the order of summation, which differs between platforms.
DECIMALS = 8


def ida(paths: Sequence[Path]) -> Parsed:
    """Parse an ``.npz`` file with features ``x``, labels ``t`` and, optionally, splits."""
    arrays = read_npz(paths[0])
    splits = _splits(arrays["train"], arrays["test"], first=0) if "train" in arrays else ()
    return Parsed(arrays["x"].astype(np.float64), arrays["t"].astype(np.int64), None, splits)


def ida_mat(paths: Sequence[Path], *, key: str) -> Parsed:
    """Parse the data set in the structure `key` of the Matlab file ``benchmarks.mat``."""
    from scipy.io import loadmat

    with converted(f"{paths[0].name}: no structure {key!r}", Exception, to=ValueError):
        entry = loadmat(paths[0], variable_names=[key])[key][0, 0]
        X, t = np.asarray(entry["x"], dtype=np.float64), np.asarray(entry["t"]).ravel()
        return Parsed(X, t.astype(np.int64), None, _splits(entry["train"], entry["test"], first=1))


def ida_standardised(paths: Sequence[Path], **options: Any) -> Parsed:
    """Parse a UCI file and standardise its columns, as in Raetsch's benchmark data sets."""
    raw = delimited(paths, **options)
    X = (raw.X - raw.X.mean(axis=0)) / raw.X.std(axis=0, ddof=1)
    return Parsed(np.round(X, DECIMALS), raw.y)


def _splits(train: NDArray, test: NDArray, first: int) -> tuple[Rows, ...]:
    pairs = zip(train, test, strict=True)
    return tuple((a.astype(np.intp) - first, b.astype(np.intp) - first) for a, b in pairs)
