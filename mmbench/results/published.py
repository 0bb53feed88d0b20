"""Published numbers: the files ``published/*.csv`` of the package, and tables of users.

docs/sixth_paper.md has the columns. In the files of the package, ``usable`` is "no" if the value is
not compared, and ``std_is`` is what ``std`` probably is.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import IO, TYPE_CHECKING, Any

from mmbench.errors import UserError, check_known, converted, did_you_mean, listed, visible
from mmbench.jobs.planned import PublishedRow

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

#: Value of the column `std_is` for a standard error.
STANDARD_ERROR = "se"
#: Columns of a printed table that must be present, and the values of other columns if absent.
REQUIRED = ("dataset", "machine", "value")
OPTIONAL = {"metric": "accuracy_pct", "kernel": "", "degree": "", "std": "", "std_is": ""}
COUNTS = ("n_train", "n_test", "n_splits")
#: Columns of a user's table that are text, and may be absent.
TEXTS = ("paper", "table", "printed_dataset", "printed_method", "usable", "reason", "notes")
#: Beginnings of metrics that count best and worst values, or wins, ties and losses.
CLAIMS = ("best_count", "worst_count", "wins_against_", "ties_against_", "losses_against_")
#: Names in the column `dataset` for averages over the data sets.
AVERAGES = ("average", "mean", "avg")
#: For printed metrics that are errors: the metric of mmbench, its best value, and the divisor.
PRINTED_ERRORS = {
    "error_pct": ("accuracy_pct", 100, 1),
    "balanced_error_pct": ("balanced_accuracy", 1, 100),
}

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
    check_known(table, published_tables(), "no published table")
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


# -- tables of users -------------------------------------------------------------------------------


def printed_frame(source: str | Path | IO[str] | pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a printed table as a frame of text, with all columns of `REQUIRED`, `OPTIONAL` and
    `COUNTS`; the counts are numbers.

    Values and deviations stay text, so that their printed decimals are kept. Raises UserError if a
    required column is missing, or if a value is not a number; the message names `where` and row.
    """
    import numpy as np
    import pandas as pd

    frame = source
    if not isinstance(frame, pd.DataFrame):
        with converted(f"{where}: cannot be read as CSV", OSError, ValueError):
            frame = pd.read_csv(frame, dtype=str, keep_default_na=False)
        if not isinstance(frame.index, pd.RangeIndex):
            raise UserError(f"{where}: row 1 has more fields than the header (a decimal comma?)")
    frame = frame.rename(columns=lambda name: str(name).strip())
    missing = [column for column in REQUIRED if column not in frame]
    if missing:
        near = "".join(did_you_mean(column, map(str, frame)) for column in missing[:1])
        raise UserError(f"{where}: no column {listed(missing)}{near}")
    frame = frame.assign(**{c: default for c, default in OPTIONAL.items() if c not in frame})
    frame = frame.assign(**{c: "" for c in COUNTS if c not in frame})
    frame = frame.astype(object).where(frame.notna(), "")
    frame = frame.map(lambda cell: visible(str(cell).strip()))
    frame["metric"] = frame.metric.replace("", OPTIONAL["metric"])
    frame["degree"] = frame.degree.str.removesuffix(".0")
    for column in ("value", "std", *COUNTS):
        number = pd.to_numeric(frame[column].replace("", None), errors="coerce").astype(float)
        least = {"value": -math.inf, "std": 0.0}.get(column, 1.0)
        wrong = frame[column].ne("") & ~(number.abs().lt(math.inf) & number.ge(least))
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            wanted = "a number" if column == "value" else f"a number of at least {least:.0f}"
            raise UserError(
                f"{where}: row {k + 1}: {column} {frame[column].iloc[k]!r} is not {wanted}"
            )
        if column in COUNTS:
            frame[column] = number
        elif column == "value" and 0 < number[frame.metric == OPTIONAL["metric"]].max() <= 1:
            raise UserError(f"{where}: all accuracies are at most 1; give per cent: 97 for 0.97")
    if frame.empty:
        raise UserError(f"{where}: has no rows")
    return frame


def own_rows(source: str | Path | IO[str] | pd.DataFrame, where: str) -> tuple[PublishedRow, ...]:
    """Return the rows of a user's table as dicts without empty cells.

    Raises UserError if the table has a fault; the message names `where`, the row and the column.
    """
    frame, known = printed_frame(source, where), (*REQUIRED, *OPTIONAL, *COUNTS, *TEXTS)
    for column in frame:
        check_known(column, known, f"{where}: unknown column")
    columns = PublishedRow.__annotations__
    rows, seen = list[PublishedRow](), dict[tuple[str, ...], int]()
    for k, row in enumerate(frame.astype(object).where(frame.notna(), "").to_dict("records"), 1):
        if not row["dataset"]:
            raise UserError(f"{where}: row {k}: dataset is empty")
        if row["std_is"] not in ("", "sd", STANDARD_ERROR):
            raise UserError(f"{where}: row {k}: std_is {row['std_is']!r} is neither 'sd' nor 'se'")
        if row.pop("usable", "") == "no" and not row.get("reason"):
            raise UserError(f"{where}: row {k}: usable is 'no', but the column reason is empty")
        if row["degree"] and not row["degree"].isdecimal():
            raise UserError(f"{where}: row {k}: degree {row['degree']!r} is not a whole number")
        stated = {n: v for n, v in row.items() if n in columns and v != ""}
        rows.append({n: KIND.get(n, str)(v) for n, v in stated.items()})  # type: ignore[arg-type]
        cell = tuple(row[n] for n in ("dataset", "machine", "metric", "kernel", "degree"))
        if (first := seen.setdefault(cell, k)) != k:
            name = ", ".join(filter(None, cell))
            raise UserError(f"{where}: row {k}: {name} is also in row {first}")
    return tuple(rows)


def is_result(row: Mapping[str, Any]) -> bool:
    """Return whether a printed row is a result of a machine on a data set, and not an average, a
    count of wins or a fact about a data set, which only `mmbench audit` reads.
    """
    claim = row["dataset"] in AVERAGES or row["metric"].startswith(CLAIMS)
    return bool(row.get("machine")) and not claim


def comparable(
    rows: Iterable[Mapping[str, Any]], published_as: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return published rows with all columns, and with the names and units of mmbench.

    Published names of data sets are replaced by their names in mmbench, and errors by accuracies.
    The argument `published_as` maps names in mmbench to published names. Several data sets may have
    the same published name. A data set with an empty published name is left out, for example if
    only some of its classes are used.
    """
    texts = dict.fromkeys(("kernel", "std_is", "reason"), "")
    absent = {**dict.fromkeys(KIND), **texts}
    full: list[dict[str, Any]] = [
        {**absent, "printed_dataset": row["dataset"], "usable": not row.get("reason"), **row}
        for row in rows
    ]
    names = {row["dataset"]: row["dataset"] for row in full} | {**published_as}
    found = []
    for row in full:
        if row["metric"] in PRINTED_ERRORS and row["value"] is not None:
            metric, best, divisor = PRINTED_ERRORS[row["metric"]]
            row |= {"metric": metric, "value": best - row["value"] / divisor}
            row["std"] = row["std"] and row["std"] / divisor
        found += [row | {"dataset": name} for name in names if names[name] == row["dataset"]]
    return found
