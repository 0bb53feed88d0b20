"""The published numbers, as package data in ``published/*.csv``.

There is one file per table, with one row per number. `dataset` and `machine` are the names in
mmbench, `printed_dataset` and `printed_method` are the names in the paper. `std` is the number that
the paper prints after +/- or in parentheses. `std_is` is its more likely meaning: ``sd`` for a
standard deviation over splits, or ``se`` for a standard error of the mean. If `usable` is "no", the
number is not compared with results, for the stated `reason`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mmbench.errors import UserError, did_you_mean

#: Value of the column `std_is` if `std` is a standard error.
STANDARD_ERROR = "se"

NUMBERS = ("value", "std")
COUNTS = ("degree", "n_train", "n_test", "n_splits")


def published_tables() -> list[str]:
    """Return the names of the published tables."""
    folder = files("mmbench.tables").joinpath("published")
    return sorted(f.name.removesuffix(".csv") for f in folder.iterdir() if f.name.endswith(".csv"))


@cache
def published_rows(table: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of a published table; missing numbers are None.

    Raises UserError if the table is unknown.
    """
    if table not in published_tables():
        raise UserError(
            f"unknown published table {table!r}{did_you_mean(table, published_tables())}"
        )
    path = files("mmbench.tables").joinpath("published", f"{table}.csv")
    with path.open(encoding="utf-8") as text:
        return tuple(map(_read, csv.DictReader(text)))


def _read(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {name: float(row[name]) if row[name] else None for name in NUMBERS}
    counts = {name: int(row[name]) if row[name] else None for name in COUNTS}
    return {**row, **numbers, **counts, "usable": row["usable"] == "yes"}


@cache
def published_machines() -> tuple[str, ...]:
    """Return the names of all machines in the published tables."""
    names = {row["machine"] for table in published_tables() for row in published_rows(table)}
    return tuple(sorted(names - {""}))


def table_of_experiment(experiment: str) -> str | None:
    """Return the published table whose name is the experiment's name, or a prefix of the name.

    The name of a smoke version, or of a part of an experiment, ends in a suffix.

    Examples
    --------
    >>> table_of_experiment("rmm_table1_usps")
    'rmm_table1'
    >>> table_of_experiment("my_data") is None
    True
    """
    tables = (t for t in published_tables() if re.match(rf"{t}(?:[_-]|$)", experiment))
    return max(tables, key=len, default=None)
