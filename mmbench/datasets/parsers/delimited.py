"""Rows of values separated by commas or blanks, in the layouts of the UCI repository."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, read_lines, to_labels

MISSING = "?"


def delimited(
    paths: Sequence[Path],
    *,
    fields: int,
    label: int = -1,
    skip: Sequence[int] = (),
    missing: str | float = "refuse",
    codes: Mapping[int | str, Mapping[str, float]] | None = None,
    one_hot: Mapping[int, Sequence[str]] | None = None,
    relabel: Mapping[str, str | int] | None = None,
    n_train: int | None = None,
) -> Parsed:
    """Parse one file, or a training and a test file.

    Parameters
    ----------
    paths : sequence of Path
        Two files make the official split.
    fields : int
        Number of fields of a row. Leading lines with another number are comments; later ones are
        damage.
    label : int
        Column of the class; negative counts from the end.
    skip : sequence of int
        Columns that are neither class nor attribute (names, other targets).
    missing : {"refuse", "drop"} or float
        What to do with ``?``: refuse the file, drop the row, or code it as a number.
    codes : mapping
        Column (or ``all``) -> value -> number, for ordered categories.
    one_hot : mapping
        Column -> values, for unordered categories.
    relabel : mapping
        Class in the file -> class; ``"*"`` stands for all others.
    n_train : int, optional
        The first so many rows of a single file are the official training set.
    """
    parts = [_rows(path, fields, missing == "drop") for path in paths]
    rows = [row for part in parts for row in part]
    label %= fields
    features = [j for j in range(fields) if j != label and j not in skip]
    columns = [
        block
        for j in features
        for block in _encode([row[j] for row in rows], j, missing, codes or {}, one_hot or {})
    ]
    sizes = [len(part) for part in parts]
    if n_train is not None:
        sizes = [n_train, len(rows) - n_train]
    labels = to_labels(_relabel(row[label], relabel or {}) for row in rows)
    return Parsed(np.column_stack(columns), labels, official=consecutive(sizes))


def _rows(path: Path, fields: int, drop_missing: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    for number, line in enumerate(read_lines(path), 1):
        row = [cell.strip() for cell in line.split(",")] if "," in line else line.split()
        if len(row) == fields:
            rows.append(row)
        elif rows:
            raise ValueError(f"{path.name}: line {number} has {len(row)} fields, not {fields}")
    if not rows:
        raise ValueError(f"{path.name}: no row of {fields} fields")
    return [row for row in rows if MISSING not in row] if drop_missing else rows


def _encode(
    cells: list[str],
    column: int,
    missing: str | float,
    codes: Mapping[int | str, Mapping[str, float]],
    one_hot: Mapping[int, Sequence[str]],
) -> list[np.ndarray]:
    if column in one_hot:
        return [np.array([float(cell == value) for cell in cells]) for value in one_hot[column]]
    table = codes.get(column, codes.get("all"))
    if table is None:
        table = {MISSING: float(missing)} if not isinstance(missing, str) else {}
        return [np.array([table[c] if c in table else _number(c, column) for c in cells])]
    unknown = sorted(set(cells) - set(table))
    if unknown:
        raise ValueError(f"column {column + 1} has the unknown value {unknown[0]!r}")
    return [np.array([float(table[cell]) for cell in cells])]


def _number(cell: str, column: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"column {column + 1} has {cell!r} where a number should be") from None


def _relabel(label: str, table: Mapping[str, str | int]) -> str:
    return str(table.get(label, table.get("*", label)))
