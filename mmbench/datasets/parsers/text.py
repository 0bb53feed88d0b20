"""What the text parsers share: reading lines of any compression, and labels."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from unlzw3 import unlzw

from mmbench.datasets.dataset import Rows

#: First bytes of a compressed file -> how it is unpacked. ``.Z`` is what Unix's compress wrote.
UNPACKERS = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x1f\x9d": unlzw,
}

#: Below this, whole numbers survive as float64.
EXACT = 2**53


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked; the format is seen from its first bytes."""
    raw = path.read_bytes()
    try:
        for magic, decompress in UNPACKERS.items():
            if raw.startswith(magic):
                return decompress(raw)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{path.name}: damaged or cut short ({error})") from error
    return raw


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, stripped, without empty ones."""
    text = read_bytes(path).decode("utf-8", errors="replace")
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        raise ValueError(f"{path.name}: an HTML page, not data")
    return [line for line in map(str.strip, text.splitlines()) if line]


def to_labels(values: Iterable[str]) -> NDArray:
    """Return labels as integers where all are integers, else as text.

    Examples
    --------
    >>> to_labels(["2", "4.0"]).tolist(), to_labels(["g", "b"]).tolist()
    ([2, 4], ['g', 'b'])
    """
    labels = [str(value).strip() for value in values]
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return np.array(labels)
    if all(number.is_integer() and abs(number) < EXACT for number in numbers):
        return np.array(numbers, dtype=np.int64)
    return np.array(labels)


def is_number(value: str | float) -> bool:
    """Return whether a value, or the text of one, is a number."""
    try:
        float(value)
    except ValueError:
        return False
    return True


def consecutive(sizes: Sequence[int]) -> Rows | None:
    """Return the official split of data in which the training rows come before the test rows."""
    if len(sizes) < 2:
        return None
    train, test = sizes
    return np.arange(train), np.arange(train, train + test)
