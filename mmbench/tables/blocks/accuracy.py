"""Results of machines side by side, measured and published."""

from collections.abc import Sequence
from functools import partial

from mmbench.jobs.store import Key
from mmbench.tables.cells import PUBLISHED_ONLY
from mmbench.tables.model import Grid
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet, Write
from mmbench.tables.text import join, measured_text, published_text

METRIC = "accuracy_pct"

one_decimal: Write = partial(measured_text, decimals=1)
published_one_decimal: Write = partial(published_text, decimals=1)


def paired(
    sheet: Sheet,
    places: Sequence[Key],
    measured: Write = one_decimal,
    published: Write = published_one_decimal,
    caption: str = "",
) -> Grid:
    """Return two lines a place, accuracies measured here and those of the paper.

    Parameters
    ----------
    sheet : Sheet
    places : sequence of Key
    measured, published : callable
        How the two are written.
    caption : str
        Of a block of one kernel: the lines do not name it.
    """
    rows: list[list[str]] = []
    for place in places:
        found = sheet.line(place, METRIC)
        head = sheet.head(place, kernel=not caption)
        rows.append([head, "measured", *(_measured(sheet, row, measured) for row in found)])
        rows.append(["", "published", *(_published(sheet, row, published) for row in found)])
    return Grid(sheet.columns("data", ""), rows, caption)


def _measured(sheet: Sheet, row: Row | None, write: Write) -> str:
    ran = row is not None and row.status != PUBLISHED_ONLY
    return sheet.marked(write(row), row) if ran else write(row)


def _published(sheet: Sheet, row: Row | None, write: Write) -> str:
    """Return the paper's value; what is to be said of it alone is cited beside it."""
    alone = row is not None and row.status == PUBLISHED_ONLY
    return join(write(row), sheet.cite(row) if alone else "")


def beside(sheet: Sheet, row: Row | None, decimals: int | None = None) -> str:
    """Return a cell with both values, ``measured / published``, its mark and footnotes."""
    return sheet.marked(f"{measured_text(row, decimals)} / {published_text(row)}", row)
