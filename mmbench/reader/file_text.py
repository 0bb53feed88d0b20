"""Read files as bytes, arrays or svmlight rows, and text as numbers or class labels."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError, converted
from mmbench.reader.keys import MOST_BYTES


@contextmanager
def _uncompress(path: Path) -> Iterator[IO[bytes]]:
    """Open a ``.Z`` file, and decompress the content with the program ``gzip``."""
    if shutil.which("gzip") is None:
        raise UserError(f"{path}: decompression of .Z files needs the program gzip")
    with (
        path.open("rb") as packed,
        Popen(["gzip", "-dc"], stdin=packed, stdout=PIPE, stderr=PIPE) as process,
    ):
        assert process.stdout and process.stderr
        yield process.stdout
        if process.stdout.read(1):  # the caller stopped reading at its size limit
            process.kill()
        elif process.wait():
            raise ValueError(process.stderr.read().decode(errors="replace").strip())


#: Functions that open a compressed file. The keys are the first bytes of the file.
UNPACKERS: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x1f\x9d": _uncompress,
}
#: Pattern of a number in a data file. Python's `float` would also accept texts such as 1_000 and
#: digits of other scripts.
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
#: Pattern of a number in an svmlight file.
SVMLIGHT_NUMBER = re.compile(rf"{NUMBER.pattern}|[+-]?(nan|inf(inity)?)", re.I)
#: Pattern of an integer without leading zeros and without an exponent. A matching integer may have
#: a sign, and zeros after a decimal point.
WHOLE = re.compile(r"([+-]?(?:0|[1-9][0-9]{0,14}))(?:\.0*)?")


class TooLarge(ValueError):
    """A file exceeds the size limit; ``needed`` is a larger limit to try, in bytes."""

    def __init__(self, message: str, needed: int):
        super().__init__(message)
        self.needed = needed


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, decompressed if its first bytes denote a compressed file."""
    if (size := path.stat().st_size) > most:
        raise TooLarge(f"{path.name}: {size} bytes", size)
    with path.open("rb") as file:
        start = file.read(6)
    opened = next((o for magic, o in UNPACKERS.items() if start.startswith(magic)), None)
    if opened is None:
        return path.read_bytes()
    faults = OSError, EOFError, ValueError, LookupError, lzma.LZMAError, zlib.error
    problem = f"{path.name}: damaged or cut short"
    with converted(problem, *faults, to=ValueError), opened(path) as file:
        # a single `read` would reserve `most` bytes of memory
        content = b"".join(islice(iter(lambda: file.read(2**20), b""), most // 2**20 + 1))
    if len(content) > most:
        raise TooLarge(f"{path.name}: unpacks to more than {most} bytes", 4 * most)
    return content


def read_npz(path: Path, names: Sequence[str] = ()) -> dict[str, NDArray]:
    """Return the arrays `names` (by default all) of an ``.npz`` file; refuse Python objects."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in names or arrays.files}
    except MemoryError:
        raise
    except Exception as error:  # a damaged file may raise any exception
        fault = f"not a readable .npz file ({(str(error) or type(error).__name__).splitlines()[0]})"
        if "Object arrays" in str(error):
            fault = "contains Python objects; save numbers, and labels by y.astype(str)"
        raise ValueError(f"{path.name}: {fault}") from error
    if other := [name for name, array in found.items() if not isinstance(array, np.ndarray)]:
        raise ValueError(f"{path.name}: {other[0]!r} is not a NumPy array")
    return found


def to_labels(values: Iterable[str]) -> NDArray:
    """Return class labels as integers if all labels are integers, otherwise as text.

    Labels such as 010, 1e3 and 1_0 are text, so that 010 and 10 are distinct classes.

    Examples
    --------
    >>> to_labels(["2", "4.0"]).tolist(), to_labels(["g", "b"]).tolist()
    ([2, 4], ['g', 'b'])
    >>> to_labels(["010", "10"]).tolist()
    ['010', '10']
    """
    labels = [str(value).strip() for value in values]
    if all(map(WHOLE.fullmatch, set(labels))):
        return np.array([int(label.partition(".")[0]) for label in labels], dtype=np.int64)
    return np.array(labels)


def is_number(value: object) -> bool:
    """Return whether a value is a number, or text that has the form of a finite number."""
    return isinstance(value, int | float) or bool(NUMBER.fullmatch(str(value)))


def read_svmlight(content: bytes, **options: Any) -> tuple[Any, NDArray, NDArray]:
    """Return the sparse features, the labels and the query numbers (qid) in svmlight data.

    If the data have no query numbers, the array of query numbers is empty. As in libsvm, blanks may
    follow a colon. `options` are keyword arguments of scikit-learn's `load_svmlight_file`.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        if re.search(rb"^[^#\n]*_", content, re.M):
            raise ValueError("a number contains '_'")  # scikit-learn would read 1_0 as 10
        X, y, queries = load_svmlight_file(io.BytesIO(content), query_id=True, **options)
    except (ValueError, OverflowError) as error:
        joined = re.sub(rb"(?<=[0-9]:)[ \t]+", b"", content)
        if joined != content:
            return read_svmlight(joined, **options)
        _check_svmlight(content)
        raise ValueError(f"not in svmlight's format: {error}") from error
    if len(queries) not in (0, len(y)):
        _check_svmlight(content)
    return X, y, queries


def _check_svmlight(content: bytes) -> None:
    """Raise ValueError about the first row that is not in svmlight's format."""
    texts = (line.partition(b"#")[0].decode(errors="replace") for line in content.split(b"\n"))
    with_query = None
    for row, fields in enumerate(filter(None, map(str.split, texts)), 1):
        has_query = any(re.fullmatch("qid:[+-]?[0-9]+", field) for field in fields[1:2])
        with_query = has_query if row == 1 else with_query
        fault = _svmlight_fault(fields[0], fields[1 + has_query :])
        if not fault and has_query != with_query:
            fault = f" has {'a' if has_query else 'no'} qid, unlike data row 1"
        if fault:
            raise ValueError(f"not in svmlight's format: data row {row}{fault}")


def _svmlight_fault(label: str, fields: Iterable[str]) -> str:
    """Return the first fault of a row in svmlight's format, or an empty text."""
    if not SVMLIGHT_NUMBER.fullmatch(label):
        return f": the label {label!r} is not a number"
    last = -1
    for field in fields:
        index, colon, value = field.partition(":")
        if not (colon and re.fullmatch("[0-9]{1,18}", index)):
            return f": {field!r} is not a column number, a colon and a number"
        if int(index) >= 2**31:
            return f": the column number {index} is not below 2^31"
        if not SVMLIGHT_NUMBER.fullmatch(value):
            return f", column {index}: {value!r} is not a number"
        if int(index) <= last:
            return f": column {index} follows column {last}; the numbers of columns must increase"
        last = int(index)
    return ""
