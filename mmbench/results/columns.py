"""The columns of the frames ``splits``, ``rows``, ``pairs`` and ``cells``, from ``columns.yaml``.

docs/columns.md shows them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: Type of a column in pandas, by its declared type.
DTYPES = {"text": "object", "json": "object", "number": "float64", "count": "Int64"}
DTYPES["flag"] = "boolean"
FRAMES = ("splits", "rows", "pairs", "cells")


@cache
def columns(frame: str) -> dict[str, tuple[str, str, str]]:
    """Return type, unit and meaning of the declared columns of a frame, by name and in order."""
    import yaml

    text = files("mmbench.results").joinpath("columns.yaml").read_text("utf-8")
    declared = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))[frame]
    return {name: tuple(entry) for name, entry in declared.items()}


def names(frame: str) -> list[str]:
    """Return the names of the columns of a frame, in order."""
    return list(columns(frame))


def json_names(frame: str) -> list[str]:
    """Return the names of the columns of a frame that are JSON in files."""
    return [name for name, (kind, *_) in columns(frame).items() if kind == "json"]


def typed(frame: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the declared columns of a frame in their types, and other columns last.

    Missing texts are empty. Raises ValueError if a value does not have the type of its column.
    """
    import pandas as pd

    kinds = {name: kind for name, (kind, *_) in columns(frame).items()}
    others = [name for name in table if name not in kinds]
    made = dict[Any, Any]()
    for name, kind in kinds.items():
        missing, empty = None, "" if kind in ("text", "json") else None
        if name in table:
            given = table[name]
            missing = given.isna() if empty == "" else given.isna() | (given == "")
        if missing is None or missing.all():  # as of most columns of an old table
            made[name] = pd.Series(empty, table.index, DTYPES[kind])  # type: ignore[call-overload]
        elif empty == "":
            known = given.astype(object)
            made[name] = known.where(~missing, "") if missing.any() else known
        else:
            if not pd.api.types.is_numeric_dtype(given):  # texts of a CSV file
                known = given.astype(object).where(~missing, None)
                truth = known.map({"True": True, "False": False, True: True, False: False})
                # `pd.to_numeric` rounds some texts to a neighbouring number
                given = truth if kind == "flag" else known.astype(float)
            made[name] = given.astype(DTYPES[kind])  # type: ignore[call-overload]
    return pd.DataFrame(made | {name: table[name] for name in others}, table.index)
