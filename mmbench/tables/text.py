"""The words of tables: `Text`, blocks and whole tables, and numbers and kernels as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NamedTuple

from mmbench.jobs.planned import Key
from mmbench.results.cells import MISSING, PUBLISHED_ONLY, Row

__all__ = ["Column", "Grid", "Table", "Text"]

#: Text of a table cell without a value.
NOTHING = "–"
#: Kind of a block of results whose caption states the quantity.
MEASUREMENT = "measurement"
#: Kinds of blocks below the results of a table: CPU times, parameters, and certificates.
TIMES, SETTINGS, CERTIFICATES = "times", "settings", "certificates"
#: Sign after the mean of a machine that is worse than the best by more than chance.
WORSE_THAN_BEST = "⁻"
#: Sentence that explains bold values.
BEST_IS_BOLD = "Bold: the best mean of the row."


class Note(NamedTuple):
    """A footnote to a cell; the key names the machine and the data set that it is about."""

    text: str
    key: Key | None = None


@dataclass(frozen=True)
class Text:
    """The text of a table cell in parts.

    Attributes
    ----------
    value : str
        The measured value, which can be printed in bold.
    spread : str
        The uncertainty of the value.
    rest : str
        The text after the uncertainty, such as a slash and the published value.
    mark : str
        Mark of the comparison with the published value.
    notes : tuple of Note
        Footnotes.
    row : Row, optional
        Row of the frame ``cells`` that the text shows.
    bold : bool
        Whether the value is printed in bold.
    sign : str
        `WORSE_THAN_BEST` if the machine is worse than the best by more than chance.
    cited : tuple of int
        Numbers of the footnotes in the table.
    tail : str
        The text after the footnotes.
    """

    value: str
    spread: str = ""
    rest: str = ""
    mark: str = ""
    notes: tuple[Note, ...] = ()
    row: Row = None
    bold: bool = False
    sign: str = ""
    cited: tuple[int, ...] = ()
    tail: str = ""

    @property
    def parts(self) -> tuple[str, str]:
        """The bold part, which may be empty, and the part that is not bold."""
        more = join(self.mark, "".join(f"[{number}]" for number in self.cited))
        after = self.rest + (f" {more}" if more else "") + self.tail
        value = self.value + self.spread + self.sign
        return (value, after) if self.bold else ("", f"{value}{after}".strip())


#: Type of a table cell.
Shown = Text | str


def parts(cell: Shown) -> tuple[str, str]:
    """Return the bold part of a cell, which may be empty, and the rest."""
    return cell.parts if isinstance(cell, Text) else ("", cell)


def plain(cell: Shown) -> str:
    """Return a cell as text without bold type."""
    return "".join(parts(cell))


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, its alignment, and the heading of its column group."""

    name: str
    align: str = "right"
    group: str = ""


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
    """A block of a table: columns, rows of text, and a caption above the rows.

    `kind` is one of the constants above, or empty if the block shows the quantity in the title of
    the table.
    """

    columns: tuple[Column, ...]
    rows: list[list[Any]]
    caption: Shown = ""
    kind: str = ""

    def mapped(self, change: Callable[[Shown], Shown]) -> Grid:
        """Return the block with each cell of its rows changed by a function."""
        return replace(self, rows=[list(map(change, row)) for row in self.rows])


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
        Texts of the footnotes. A cell cites the first footnote by 1, and the second by 2.
    experiment : str
        Name of the experiment.
    """

    title: str
    grids: list[Grid]
    notes: list[str] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)
    experiment: str = ""

    @property
    def heading(self) -> str:
        """The title after the name of the experiment."""
        return f"{self.experiment}: {self.title}" if self.experiment else self.title


def cited(grids: Iterable[Grid]) -> tuple[list[Grid], dict[str, list[Key]]]:
    """Number the footnotes of some blocks in the order in which they are read.

    Returns the blocks, and the footnotes with the cells that they are about.
    """
    notes: dict[str, list[Key]] = {}

    def numbered(cell: Shown) -> Shown:
        if not isinstance(cell, Text) or not cell.notes:
            return cell
        for note in cell.notes:
            notes.setdefault(note.text, []).extend([note.key] if note.key else [])
        order = list(notes)
        return replace(cell, cited=tuple(order.index(note.text) + 1 for note in cell.notes))

    return [replace(g.mapped(numbered), caption=numbered(g.caption)) for g in grids], notes


def without_bold(table: Table) -> Table:
    """Return a table in which no value is bold, without the sentence on bold values."""

    def light(cell: Shown) -> Shown:
        return replace(cell, bold=False) if isinstance(cell, Text) else cell

    notes = [note for note in table.notes if note != BEST_IS_BOLD]
    return replace(table, grids=[grid.mapped(light) for grid in table.grids], notes=notes)


def citations(grid: Grid) -> list[int]:
    """Return the numbers of the footnotes that a block cites."""
    cells = (cell for row in [*grid.rows, [grid.caption]] for cell in row)
    return sorted({number for cell in cells if isinstance(cell, Text) for number in cell.cited})


def once(rows: list[list[Any]]) -> list[list[Any]]:
    """If a row has the same first text as the row above, replace this text by an empty text."""
    above = ["", *(row[0] for row in rows)]
    return [
        ["" if row[0] == head else row[0], *row[1:]] for row, head in zip(rows, above, strict=False)
    ]


def measured_text(row: Row, decimals: int | None = None, sd: bool = False) -> str:
    """Return the mean of the measured values with its uncertainty as text; see `measured`."""
    return "".join(measured(row, decimals, sd))


def measured(row: Row, decimals: int | None = None, sd: bool = False) -> tuple[str, str]:
    """Return the mean of the measured values and its uncertainty as texts.

    For several runs, the uncertainty is the standard error in parentheses. If `sd` is true, the
    uncertainty is ± and the standard deviation instead. If no run is planned, the mean is a dash.
    If runs are planned, but there is no mean, the mean is the status of the cell.
    """
    if row.status == PUBLISHED_ONLY:
        return NOTHING, ""
    if row.measured is None:
        return row.status.replace("_", " ") if row.status != MISSING else "not run", ""
    if decimals is None:
        decimals = 0 if row.measured.is_integer() and row.sd is None else 1
    mean = f"{row.measured:.{decimals}f}"
    if row.sd is None or (row.se is None and not sd):
        return mean, ""
    return mean, f" ± {row.sd:.{decimals}f}" if sd else f" ({row.se:.{decimals}f})"


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
