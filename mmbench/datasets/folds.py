"""Splits that a file gives: a line a row of the data, a column a repetition.

Each cell says in which fold the row is tested, by a number or a word; an empty one that it always
trains. A first line of names is passed over.
"""

import csv
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Dataset, Rows
from mmbench.datasets.parsers.text import is_number
from mmbench.errors import UserError


def with_folds(data: Dataset, path: str) -> Dataset:
    """Return a data set whose predefined splits are those of a file.

    Raises
    ------
    UserError
        If the file does not fit the data.
    """
    table = _read(path)
    n_rows = len(data.y)
    if len(table) == n_rows + 1:
        table = table[1:]
    if len(table) != n_rows:
        raise UserError(f"{path}: {len(table)} lines of folds for {n_rows} rows of {data.name!r}")
    for k, line in enumerate(table):
        if fraction := next((cell for cell in line if "." in cell and is_number(cell)), None):
            raise UserError(f"{path}: row {k + 1} of the data: {fraction!r} is no fold")
    splits = [split for column in zip(*table, strict=True) for split in _splits(column)]
    if not splits:
        raise UserError(f"{path}: no row is tested")
    content = hash_with_folds(data.content_hash, path)
    return replace(data, predefined=splits, split_deviations=(), folds=path, content_hash=content)


def hash_with_folds(content_hash: str, path: str) -> str:
    """Return the hash of data together with their folds.

    Raises
    ------
    UserError
        If there is no such file.
    """
    try:
        folds = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return hashlib.sha256(f"{content_hash}\nfolds {folds}".encode()).hexdigest()


def _read(path: str) -> list[list[str]]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in line] or [""] for line in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a file of folds ({error})") from None
    for k, line in enumerate(lines):
        if len(line) != len(lines[0]):
            found = f"{len(line)} cells where line 1 has {len(lines[0])}"
            raise UserError(f"{path}: line {k + 1} has {found}")
    return lines


def _splits(column: tuple[str, ...]) -> list[Rows]:
    cells = np.array(column)
    names = sorted(set(column) - {""}, key=lambda name: (len(name), name))  # 2 before 10
    return [(np.flatnonzero(cells != name), np.flatnonzero(cells == name)) for name in names]
