"""Data classes for tables and their blocks, and functions that return numbers and kernels as text.

The numbers come from the long table of an experiment, which has one row per metric and combination
of data set, kernel, degree, machine and training size; see `mmbench.tables.frame`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from mmbench.tables.frame import MISSING, PUBLISHED_ONLY, Row

__all__ = ["Column", "Grid", "Table"]

#: Text of a table cell without a value.
NOTHING = "–"


#: Pattern for the text that follows the measured value in a table cell: a slash, a comparison mark,
#: a footnote mark, or nothing.
MEASURED_END = re.compile(r" / | ?[✓~✗[]|$")


class Shown(str):
    """Text of a table cell.

    The attribute `row` is the row of the long table that the text shows.
    """

    row: Row
    #: Whether the measured value in the text is printed in bold.
    bold = False

    def __new__(cls, text: str, row: Row) -> Shown:
        """Return `text` as a string with the attribute `row`, a row of the long table."""
        shown = super().__new__(cls, text)
        shown.row = row
        return shown


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its alignment, and the heading of its column group."""

    name: str
    align: str = "right"
    group: str = ""


def emphasized(cell: str) -> tuple[str, str]:
    """Split the text of a table cell into a bold part, which may be empty, and the rest."""
    end = MEASURED_END.search(cell) if getattr(cell, "bold", False) else None
    return (cell[: end.start()], cell[end.start() :]) if end else ("", cell)


def groupwise(columns: Iterable[Column]) -> list[tuple[str, int]]:
    """Return one pair (heading, number of columns) for each group of adjacent columns."""
    return [(group, len(list(same))) for group, same in groupby(c.group for c in columns)]


def words(*names: str) -> tuple[Column, ...]:
    """Return columns of text, aligned to the left, with the given headings."""
    return tuple(Column(name, "left") for name in names)


def numbers(*names: str, group: str = "") -> tuple[Column, ...]:
    """Return columns of numbers in the column group `group`, aligned to the right, with the given
    headings.
    """
    return tuple(Column(name, group=group) for name in names)


@dataclass(frozen=True)
class Grid:
    """A block of a table: columns, rows of text, and a caption above the rows."""

    columns: tuple[Column, ...]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """A table to be written as Markdown, LaTeX or HTML.

    Attributes
    ----------
    title : str
        Heading above the first block.
    grids : list of Grid
        Blocks of the table from top to bottom.
    notes : list of str
        Sentences below the table, including the legend.
    footnotes : list of str
        Texts of the footnotes. In a table cell, the mark ``[1]`` cites the first footnote, and
        ``[2]`` cites the second footnote.
    """

    title: str
    grids: list[Grid]
    notes: list[str] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)


def once(rows: list[list[str]]) -> list[list[str]]:
    """If a row has the same first text as the row above, replace this text by an empty text."""
    above = ["", *(row[0] for row in rows)]
    return [
        ["" if row[0] == head else row[0], *row[1:]] for row, head in zip(rows, above, strict=False)
    ]


def measured_text(row: Row, decimals: int | None = None, sd: bool = False) -> str:
    """Return the mean of the measured values as text.

    For several runs, the mean is followed by the standard error in parentheses. If `sd` is true,
    the mean is followed by ± and the standard deviation instead. If no run is planned, the text is
    a dash. If runs are planned, but there is no mean, the text is the status of the table cell.
    """
    if row.status == PUBLISHED_ONLY:
        return NOTHING
    if row.measured is None:
        return row.status.replace("_", " ") if row.status != MISSING else "not run"
    if decimals is None:
        decimals = 0 if row.measured.is_integer() and row.sd is None else 1
    mean = f"{row.measured:.{decimals}f}"
    if row.sd is None or (row.se is None and not sd):
        return mean
    return f"{mean} ± {row.sd:.{decimals}f}" if sd else f"{mean} ({row.se:.{decimals}f})"


def published_text(row: Row, decimals: int | None = None, sd: bool = False) -> str:
    """Return the published value as text, with the uncertainty that the paper prints.

    The uncertainty is printed in parentheses. If `sd` is true, the uncertainty is printed after ±
    instead.
    """
    if row.published is None:
        return NOTHING
    form = "g" if decimals is None else f".{decimals}f"
    value = f"{row.published:{form}}"
    if row.published_spread is None:
        return value
    spread = f"{row.published_spread:{form}}"
    return f"{value} ± {spread}" if sd else f"{value} ({spread})"


def kernel_text(kernel: str, degree: int | None) -> str:
    """Return a short name of the kernel with its degree, for example ``poly 2``."""
    return kernel if degree is None else f"{kernel} {degree}"


def join(*parts: str) -> str:
    """Return the texts that are not empty, joined by spaces."""
    return " ".join(part for part in parts if part)


def small_text(value: float | None) -> str:
    """Return a relative duality gap or a constraint violation as text, or a dash for None and NaN.

    Values below 1e-15, including negative values, are rounding errors and are shown as ``<1e-15``.

    Examples
    --------
    >>> small_text(2e-6), small_text(-3e-17), small_text(None), small_text(math.nan)
    ('2.0e-06', '<1e-15', '–', '–')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.1e}" if value >= 1e-15 else "<1e-15"


def seconds_text(value: float | None) -> str:
    """Return CPU seconds as text with about three significant digits.

    Examples
    --------
    >>> seconds_text(0.1234), seconds_text(12.34), seconds_text(1234.5), seconds_text(0.0)
    ('0.12', '12.3', '1234', '0')
    >>> seconds_text(0.0012)
    '<0.01'
    """
    if value is None or math.isnan(value):
        return NOTHING
    if value < 0.01:
        return "<0.01" if value else "0"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
