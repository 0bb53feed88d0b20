"""Parsers of text files: delimited, ARFF, DNA sequences, LIBSVM."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, Rows
from mmbench.errors import converted
from mmbench.reader.advice import column_name
from mmbench.reader.file_text import read_bytes, read_svmlight, to_labels
from mmbench.reader.text_tables import read_arff

if TYPE_CHECKING:
    import pandas as pd


def read_lines(path: Path) -> list[str]:
    """Return the non-empty lines of a text file, without surrounding blanks."""
    text = read_bytes(path).decode("utf-8", errors="replace")
    return [line for line in map(str.strip, text.splitlines()) if line]


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


def arff(
    paths: Sequence[Path],
    *,
    target: str | None = None,
    decimals: int | None = None,
    dtype: str = "float64",
    **options: Any,
) -> Parsed:
    """Parse an ARFF file of OpenML with one class column.

    Parameters
    ----------
    target : str, optional
        Column of class labels, by default the last column.
    decimals : int, optional
        Number of decimals to which features are rounded. Rounding is meant for a file that was
        encoded again with more digits than the original text.
    dtype : str
        Type of the features, such as ``uint8`` for images.
    options : Any
        Options of `in_columns`.
    """
    frame = read_arff(read_bytes(paths[0]).decode()).frame
    label = column_name(-1 if target is None else target, list(frame.columns), "target column")
    data = in_columns([frame], label, **options)
    return replace(data, X=(data.X if decimals is None else data.X.round(decimals)).astype(dtype))
