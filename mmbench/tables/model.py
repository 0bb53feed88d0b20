"""What layouts produce and renderers draw: headers, rows of text, notes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmbench.tables.rows import Row

#: Marks of a comparison, explained in the legend of every table that has one.
IN_BAND = "✓"
OUT_OF_BAND = "✗"
NOTHING = "–"


class Shown(str):
    """Text of a cell that remembers the row that it shows, for formats that can say more of it."""

    row: Row

    def __new__(cls, text: str, row: Row) -> Shown:
        """Return the text with its row."""
        shown = super().__new__(cls, text)
        shown.row = row
        return shown


@dataclass(frozen=True)
class Column:
    """A column: its head, its side, and the group that spans it where a format can show one."""

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
