"""Readers of compressed files, and parsers of text files (delimited, DNA sequences, LIBSVM)."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.errors import UserError, converted

if TYPE_CHECKING:
    import pandas as pd


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
#: Default maximum size of a decompressed file, in bytes.
MOST_BYTES = 2**30
#: Pattern of a number in a data file. Python's `float` would also accept texts such as 1_000 and
#: digits of other scripts.
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
#: Pattern of a number in an svmlight file.
SVMLIGHT_NUMBER = re.compile(rf"{NUMBER.pattern}|[+-]?(nan|inf(inity)?)", re.I)
#: Pattern of an integer without leading zeros and without an exponent. A matching integer may have
#: a sign, and zeros after a decimal point.
WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,14})(\.0*)?")


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


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, without surrounding blanks."""
    text = read_bytes(path).decode("utf-8", errors="replace")
    return [line for line in map(str.strip, text.splitlines()) if line]


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


def consecutive(sizes: Sequence[int]) -> Rows | None:
    """Return the official split, in which the training rows precede the test rows.

    `sizes` are the numbers of training and test rows. If `sizes` contains a single number, the data
    have no official split, and the result is None.
    """
    if len(sizes) < 2:
        return None
    train, test = sizes
    return np.arange(train), np.arange(train, train + test)


def in_parts(parts: Sequence[tuple[NDArray, NDArray]], decimals: int | None = None) -> Parsed:
    """Return the features and labels of one file, or of a training file and a test file."""
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    X = X if decimals is None else np.round(X.astype(np.float64), decimals)
    return Parsed(X, y.astype(np.int64), consecutive([len(values) for values, _ in parts]))


def delimited(paths: Sequence[Path], *, fields: int, label: int = -1, **options: Any) -> Parsed:
    """Parse lines whose fields are separated by commas or blanks.

    A field ``?`` denotes a missing value.

    Parameters
    ----------
    paths : sequence of Path
        One file, or a training file and a test file. Two files define the official split.
    fields : int
        Number of fields of a row. Lines with another number of fields are skipped before the first
        row, and raise ValueError after the first row.
    label : int
        Index of the class column, counted from 0. Negative indices count from the end.
    options : Any
        Options of `in_columns`. The name of a column is its index, counted from 0.
    """
    import pandas as pd

    parts = [pd.DataFrame(_delimited_rows(path, fields)) for path in paths]
    return in_columns([part.mask(part == "?") for part in parts], label % fields, **options)


def _delimited_rows(path: Path, fields: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for number, line in enumerate(read_lines(path), 1):
        row = [cell.strip() for cell in line.split(",")] if "," in line else line.split()
        if len(row) == fields:
            rows.append(row)
        elif rows:
            raise ValueError(f"{path.name}: line {number} has {len(row)} fields, not {fields}")
    if not rows:
        raise ValueError(f"{path.name}: no row of {fields} fields")
    return rows


def in_columns(
    parts: list[pd.DataFrame],
    label: Hashable,
    *,
    skip: Sequence[Hashable] = (),
    missing: str | float = "refuse",
    codes: Mapping[Hashable, Mapping[str, float]] | None = None,
    one_hot: Mapping[Hashable, Sequence[str]] | None = None,
    relabel: Mapping[str, str | int] | None = None,
    n_train: int | None = None,
) -> Parsed:
    """Convert one table, or a training table and a test table, to features and labels.

    Parameters
    ----------
    parts : list of DataFrame
        Tables; missing values are None or NaN.
    label : name of a column
        The class column.
    skip : sequence of names
        Columns to exclude (row names, other targets).
    missing : {"refuse", "drop"} or float
        Treatment of missing values: refuse the file, drop rows with missing values, or replace the
        missing values by this number.
    codes : mapping
        Numbers that replace ordered categories, as {column: {category: number}}. The key ``all``
        applies to all columns that are not keys.
    one_hot : mapping
        Unordered categories, as {column: categories}. Each category becomes a column of 0 and 1.
    relabel : mapping
        New class labels, as {label in the file: new label}. The key ``"*"`` applies to all labels
        that are not keys.
    n_train : int, optional
        Number of training rows in the official split. The training rows are the first rows of the
        table.
    """
    import pandas as pd

    parts = [part.dropna() for part in parts] if missing == "drop" else parts
    frame = pd.concat(parts)
    columns: list[pd.Series] = []
    for name in frame.columns.drop([label, *skip]):
        column = frame[name]
        if one_hot and name in one_hot:
            columns += [column == value for value in one_hot[name]]
            continue
        if table := codes and codes.get(name, codes.get("all")):
            if unknown := set(column.dropna()) - set(table):
                raise ValueError(f"column {name!r} has the unknown value {min(unknown)!r}")
            column = column.map(table)
        with converted(f"column {name!r}", ValueError, to=ValueError):
            columns.append(column.astype("float64"))
    X = np.column_stack(columns).astype(np.float64)
    if not isinstance(missing, str):
        X = np.where(np.isnan(X), float(missing), X)
    if np.isnan(X).any():
        raise ValueError("contains missing values")
    labels = {str(old): str(new) for old, new in (relabel or {}).items()}
    y = to_labels(labels.get(str(cell), labels.get("*", str(cell))) for cell in frame[label])
    sizes = [len(part) for part in parts] if n_train is None else [n_train, len(y) - n_train]
    return Parsed(X, y, consecutive(sizes))


#: DNA bases that each letter of a sequence denotes.
BASES = {"A": "A", "C": "C", "G": "G", "T": "T", "D": "AGT", "N": "ACGT", "R": "AG", "S": "CG"}
#: Weights of the bases A, C, G and T for each letter of a DNA sequence. The bases that a letter
#: denotes have equal weights with sum 1.
CODES = {
    letter: [(base in bases) / len(bases) for base in "ACGT"] for letter, bases in BASES.items()
}
SEQUENCE = re.compile(rf"[{''.join(CODES)}]{{60}}")


def splice(paths: Sequence[Path]) -> Parsed:
    """Parse lines ``class,name,sequence``; a letter of DNA becomes four features, see `CODES`."""
    rows = [[cell.strip() for cell in line.split(",")] for line in read_lines(paths[0])]
    for number, row in enumerate(rows, 1):
        if len(row) != 3 or not SEQUENCE.fullmatch(row[2]):
            raise ValueError(f"{paths[0].name}: line {number} is not class, name, sequence")
    X = np.array([[CODES[letter] for letter in row[2]] for row in rows])
    return Parsed(X.reshape(len(rows), -1), np.array([row[0] for row in rows]))


def libsvm(paths: Sequence[Path], *, features: int, decimals: int, label_shift: int = 0) -> Parsed:
    """Parse a LIBSVM file, or a training and a test file, and add `label_shift` to all labels."""
    parts = [read_svmlight(read_bytes(p), n_features=features, zero_based=False) for p in paths]
    return in_parts([(X.toarray(), y + label_shift) for X, y, _ in parts], decimals)


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
        if not SVMLIGHT_NUMBER.fullmatch(value):
            return f", column {index}: {value!r} is not a number"
        if int(index) <= last:
            return f": column {index} follows column {last}; the numbers of columns must increase"
        last = int(index)
    return ""
