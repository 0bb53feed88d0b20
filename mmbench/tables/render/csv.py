"""The long tidy table as CSV: one row a cell and metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mmbench.tables.model import Facts

if TYPE_CHECKING:
    import pandas as pd

#: Enough for any comparison, and short enough that a difference can be read.
SIGNIFICANT_DIGITS = 10


def to_csv(tables: Iterable[tuple[pd.DataFrame, Facts]]) -> str:
    """Return the long tables of some experiments as one CSV.

    Deviations of the data, which drawn tables cite at the data set's name, are added to the notes.
    """
    import pandas as pd

    frame = pd.concat([_with_deviations(*table) for table in tables], ignore_index=True)
    return frame.to_csv(index=False, float_format=f"%.{SIGNIFICANT_DIGITS}g", lineterminator="\n")


def _with_deviations(frame: pd.DataFrame, facts: Facts) -> pd.DataFrame:
    notes = [
        "; ".join(filter(None, [note, *facts.deviations.get(dataset, ())]))
        for dataset, note in zip(frame["dataset"], frame["note"], strict=True)
    ]
    return frame.assign(note=notes)
