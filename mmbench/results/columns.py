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

    made = dict[Any, Any]()
    for name, (kind, *_) in columns(frame).items():
        given = table[name].to_numpy(object) if name in table else np.full(len(table), None)
        dtype: Any = DTYPES[kind]
        blank: Any = "" if dtype == "object" else None
        values = pd.Series(np.where(pd.isna(given), blank, given), table.index, object)
        if kind == "flag":  # also the texts of a CSV file
            values = values.map({"True": True, "False": False, True: True, False: False})
        elif dtype != "object":  # `pd.to_numeric` rounds some texts to a neighbouring number
            values = values.mask(values == "", None).astype(float)
        made[name] = values.astype(dtype)
    return pd.DataFrame(made | {name: table[name] for name in table if name not in made})
