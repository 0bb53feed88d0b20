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
    import numpy as np
    import pandas as pd

    kinds = {name: kind for name, (kind, *_) in columns(frame).items()}
    others = [name for name in table if name not in kinds]
    blank = {
        kind: pd.Series("" if dtype == "object" else None, table.index, dtype)  # type: ignore[call-overload]
        for kind, dtype in DTYPES.items()
    }
    made = dict[Any, Any]()
    for name, kind in kinds.items():
        made[name] = blank[kind]  # as most columns of an old table
        if name not in table:
            continue
        given, is_text = table[name], DTYPES[kind] == "object"
        values = given.to_numpy(object)
        missing = pd.isna(values)
        if not is_text:
            missing |= np.where(missing, None, values) == ""
        if missing.all():
            continue
        if is_text:
            made[name] = pd.Series(np.where(missing, "", values), table.index, object)
        else:
            if not pd.api.types.is_numeric_dtype(given):  # texts of a CSV file
                known = pd.Series(np.where(missing, None, values), table.index, object)
                if kind == "flag":
                    given = known.map({"True": True, "False": False, True: True, False: False})
                else:  # `pd.to_numeric` rounds some texts to a neighbouring number
                    given = known.astype(float)
            made[name] = given.astype(DTYPES[kind])  # type: ignore[call-overload]
    return pd.DataFrame(made | {name: table[name] for name in others}, table.index)
