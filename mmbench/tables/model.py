"""Tables as text: grids of cells, and how numbers, kernels and marks are written in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mmbench.tables.records import MISSING, PUBLISHED_ONLY
from mmbench.tables.rows import Row

#: A cell without a value.
NOTHING = "–"


class Shown(str):
    """Text of a cell with its row, for formats that show details."""

    row: Row

    def __new__(cls, text: str, row: Row) -> Shown:
        """Return the text with its row."""
        shown = super().__new__(cls, text)
        shown.row = row
        return shown


@dataclass(frozen=True)
class Column:
    """A column: its head, alignment, and the group of columns that it belongs to."""

    name: str
    align: str = "right"
    group: str = ""


@dataclass(frozen=True)
class Grid:
    """Columns and rows of text."""

    columns: tuple[Column, ...]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """A table ready to be drawn.

    Attributes
    ----------
    title : str
    grids : list of Grid
        Drawn one below the other.
    notes : list of str
        The legend and other remarks on the whole table.
    footnotes : list of str
        The text of footnote k+1, which cells cite as ``[k+1]``.
    """

    title: str
    grids: list[Grid]
    notes: list[str] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)


KERNEL_LABELS = {"linear": "Linear kernel", "poly": "Polynomial kernel", "rbf": "RBF kernel"}


def measured_text(row: Row | None, decimals: int | None = None) -> str:
    """Return our value with its standard error, or the status of a cell without one."""
    if row is None or row.status == PUBLISHED_ONLY:
        return NOTHING
    if row.measured is None:
        return row.status.replace("_", " ") if row.status != MISSING else "not run"
    if decimals is None:
        decimals = 0 if row.measured.is_integer() and row.sd is None else 1
    spread = f" ({row.se:.{decimals}f})" if row.sd is not None else ""
    return f"{row.measured:.{decimals}f}{spread}"


def measured_with_sd(row: Row | None, decimals: int) -> str:
    """Return our mean ± standard deviation, or the status of a cell without one."""
    if row is None or row.measured is None or row.sd is None:
        return measured_text(row, decimals)
    return f"{row.measured:.{decimals}f} ± {row.sd:.{decimals}f}"


def published_text(row: Row | None, decimals: int | None = None) -> str:
    """Return the paper's value, with the spread that it prints in parentheses."""
    if row is None or row.published is None:
        return NOTHING
    form = "g" if decimals is None else f".{decimals}f"
    spread = "" if row.published_spread is None else f" ({row.published_spread:{form}})"
    return f"{row.published:{form}}{spread}"


def published_with_sd(row: Row | None, decimals: int) -> str:
    """Return the paper's mean ± the spread that it prints."""
    if row is None or row.published is None:
        return NOTHING
    spread = "" if row.published_spread is None else f" ± {row.published_spread:.{decimals}f}"
    return f"{row.published:.{decimals}f}{spread}"


def kernel_text(kernel: str, degree: int | None) -> str:
    """Return kernel and degree in short."""
    return kernel if degree is None else f"{kernel} {degree}"


def kernel_caption(kernel: str, degree: int | None) -> str:
    """Return kernel and degree as the head of a block."""
    label = KERNEL_LABELS[kernel]
    return label if degree is None else f"{label}, degree {degree}"


def join(*parts: str) -> str:
    """Put parts of a cell beside each other, leaving out empty ones."""
    return " ".join(part for part in parts if part)


def seconds_text(value: float | None) -> str:
    """Return CPU seconds with about three figures.

    Examples
    --------
    >>> seconds_text(0.1234), seconds_text(12.34), seconds_text(1234.5), seconds_text(0.0)
    ('0.12', '12.3', '1234', '0')
    >>> seconds_text(0.0012)
    '<0.01'
    """
    if value is None:
        return NOTHING
    if value == 0:
        return "0"
    if value < 0.01:
        return "<0.01"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"
