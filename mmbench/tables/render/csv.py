"""The long tidy table as CSV: one row a cell and metric."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet

#: Columns, in order; the training size stands after the degree where there are several.
COLUMNS = (
    "experiment",
    "dataset",
    "kernel",
    "degree",
    "machine",
    "metric",
    "measured",
    "sd",
    "se",
    "n",
    "published",
    "published_spread",
    "half_width",
    "z",
    "in_band",
    "status",
    "note",
)
SIZE = "size"


def to_csv(sheets: Sequence[Sheet]) -> str:
    """Return the long tables of some experiments as one CSV.

    Deviations of the data, which drawn tables cite at the data set's name, are added to the notes.
    """
    columns = list(COLUMNS)
    if any(key.size is not None for sheet in sheets for key in sheet.keys):
        columns.insert(columns.index("degree") + 1, SIZE)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for sheet in sheets:
        writer.writerows(_fields(sheet, row) for row in sheet.rows)
    return text.getvalue()


def _fields(sheet: Sheet, row: Row) -> dict[str, Any]:
    name = row.key.dataset
    deviations = (f"{name}: {text}" for text in sheet.facts.deviations.get(name, ()))
    notes = [row.note, row.objection, *deviations]
    fields = {**vars(row), **row.key._asdict(), "note": "; ".join(filter(None, notes))}
    return {"experiment": sheet.facts.experiment} | {n: _text(v) for n, v in fields.items()}


def _text(value: Any) -> Any:
    """Ten digits are enough for any comparison, and few enough to be read."""
    return f"{value:.10g}" if isinstance(value, float) else value
