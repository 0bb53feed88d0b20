"""Published numbers, read from the files ``published/*.csv`` of the package.

Each file contains the numbers of one published table, with one number per row. The columns
`dataset` and `machine` contain the names of data sets and machines in mmbench. The columns
`printed_dataset` and `printed_method` contain the names that the paper prints. The column `std`
contains the number that the paper prints after +/- or in parentheses. The column `std_is` states
whether `std` is probably the standard deviation over splits (``sd``) or the standard error of the
mean (``se``). The column `n_splits` contains the number of test parts over which the paper
averages; the key ``published_splits`` of a configuration replaces this number. If `usable` is "no",
the published number is not compared with measured values, and the column `reason` states the
reason.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mmbench.errors import UserError, did_you_mean

#: Value of the column `std_is` for a standard error.
STANDARD_ERROR = "se"

#: Type of the numbers in each numeric column.
KIND = {"value": float, "std": float, "degree": int, "n_train": int, "n_test": int, "n_splits": int}


def published_tables() -> list[str]:
    """Return the names of the published tables."""
    folder = files("mmbench.results").joinpath("published")
    return sorted(f.name.removesuffix(".csv") for f in folder.iterdir() if f.name.endswith(".csv"))


@cache
def published_rows(table: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of a published table as dicts. Missing numbers are None.

    Raises UserError if there is no table with this name.
    """
    if table not in published_tables():
        raise UserError(f"no published table {table!r}{did_you_mean(table, published_tables())}")
    path = files("mmbench.results").joinpath("published", f"{table}.csv")
    with path.open(encoding="utf-8") as text:
        return tuple(map(_read, csv.DictReader(text)))


def _read(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {name: kind(row[name]) if row[name] else None for name, kind in KIND.items()}
    return {**row, **numbers, "usable": row["usable"] == "yes"}


@cache
def published_machines() -> tuple[str, ...]:
    """Return the names of all machines that occur in published tables."""
    names = {row["machine"] for table in published_tables() for row in published_rows(table)}
    return tuple(sorted(names - {""}))


def table_of_experiment(experiment: str) -> str | None:
    """Return the name of the published table that an experiment reproduces, or None.

    The name of the experiment begins with the name of the published table. The rest of the name of
    the experiment denotes a quick (smoke) version or a part of the full experiment. If the name of
    the experiment begins with the names of several published tables, the longest of these names is
    returned.

    Examples
    --------
    >>> table_of_experiment("rmm_table1_usps")
    'rmm_table1'
    >>> table_of_experiment("my_data") is None
    True
    """
    tables = (t for t in published_tables() if re.match(rf"{t}(?:[_-]|$)", experiment))
    return max(tables, key=len, default=None)
