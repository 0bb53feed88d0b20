"""Conversion of tables to Markdown and LaTeX, and of the frame ``cells`` to CSV.

In LaTeX, each block is a float with the label ``tab:NAME``, ``tab:NAME-2``, ... Wide blocks are
shrunk to the text. Blocks that would be too wide or too long are cut into floats with the labels
``tab:NAME.2``, ...
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from mmbench.errors import visible
from mmbench.results.cells import IN_BAND, OUT_OF_BAND
from mmbench.results.columns import names
from mmbench.results.folder import cells_frame
from mmbench.results.frames import Results
from mmbench.tables.text import (
    NOTHING,
    Column,
    Grid,
    Shown,
    Table,
    citations,
    groupwise,
    parts,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment


def to_csv(results: Sequence[Results]) -> str:
    """Return the frames ``cells`` of several experiments as one CSV text."""
    import pandas as pd

    table = pd.concat([cells_frame(one) for one in results], ignore_index=True)
    return csv_text(table[[name for name in names("cells") if name in table]])


def csv_text(frame: pd.DataFrame, **options: Any) -> str:
    """Return a data frame as CSV text.

    Spreadsheet programs would evaluate texts that look like formulas. As OWASP recommends, an
    apostrophe is added before a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a
    carriage return. Numbers are not changed. Control characters are escaped.
    """
    import pandas as pd

    texts = {
        str(name): pd.Series(list(map(_csv_cell, values)), values.index, object)
        for name, values in frame.select_dtypes(exclude="number").items()
    }
    return frame.assign(**texts).to_csv(index=False, lineterminator="\n", **options)


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if FORMULA.match(value):
        try:
            float(value)
        except ValueError:
            value = f"'{value}"
    return visible(value)


def to_markdown(
    table: Table, shown: Callable[[Grid | str, str], str] = lambda part, text: text
) -> str:
    """Return a table as text in GitHub-flavoured Markdown.

    The function `shown` is called with each block or note and its Markdown text, and returns the
    text that is written.
    """
    blocks = [f"## {_escape(table.heading)}"]
    for grid in table.grids:
        caption = plain(grid.caption)
        text = f"**{_escape(caption)}**\n\n" if caption else ""
        blocks.append(shown(grid, text + markdown_grid(grid)))
    remarks = [*table.notes, *(f"[{k}] {text}" for k, text in enumerate(table.footnotes, 1))]
    blocks.append("\n".join(f"- {shown(remark, _escape(remark))}" for remark in remarks))
    return "\n\n".join(block for block in blocks if block) + "\n"


def markdown_grid(grid: Grid) -> str:
    """Return the columns and rows of a block as a table in Markdown."""
    lines = [[column.name for column in grid.columns], *grid.rows]
    columns = zip(*(map(_markdown_cell, line) for line in lines), strict=True)
    padded = [_column(cells, c.align) for cells, c in zip(columns, grid.columns, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*padded, strict=True))


def _markdown_cell(cell: Shown) -> str:
    bold, rest = parts(cell)
    return (f"**{_escape(bold)}**" if bold else "") + _escape(rest)


def _column(cells: Sequence[str], align: str) -> list[str]:
    """Pad the texts of a column to equal width, and add a row of dashes below the heading."""
    # In Markdown, a column has at least three dashes below its heading. A colon after the dashes
    # aligns the column to the right.
    width = max(3, *map(len, cells))
    rule = "-" * (width - 1) + (":" if align == "right" else "-")
    pad = str.rjust if align == "right" else str.ljust
    return [pad(cell, width) for cell in (cells[0], rule, *cells[1:])]


#: Pattern for the beginning of a text that spreadsheet programs evaluate as a formula.
FORMULA = re.compile(r"[=+\-@\t\r]")
#: Pattern for characters with a special meaning in Markdown. The pattern does not match in ``a_b``,
#: ``<0.1`` and ``[1]``, which Markdown prints unchanged.
MARKDOWN = re.compile(
    r"[\\`*|$]|<(?=[A-Za-z/!?])|\](?=\()|^\[(?=[^\]]*\]:)|&(?=#?\w+;)|~(?=~)|(?<=~)~"
    r"|(?<![^\W_])_|_(?![^\W_])|^(?:>|#+(?=\s)|[+-](?=\s))"
)


def _escape(text: str) -> str:
    """Return a text as a single line, with the special characters of Markdown escaped."""
    return MARKDOWN.sub(r"\\\g<0>", re.sub(r"[\n\t]", " ", visible(text)))


#: Greek letters that LaTeX has, and their names in LaTeX.
LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
LETTER_NAMES = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
#: Pattern for characters that pdflatex does not print without further packages.
UNPRINTABLE = re.compile("[^\x00-\u017f–—‘’“”…€]")
#: LaTeX code for special characters. All special characters are replaced at once, so that the
#: inserted LaTeX code is not escaped again.
ESCAPES = str.maketrans(
    {
        **{character: rf"\{character}" for character in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"$\sim$",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        # LaTeX would read an opening bracket at the start of a row as an argument of the preceding
        # ``\\``.
        "[": "{[}",
        "]": "{]}",
        **dict.fromkeys("\n\t", " "),
        IN_BAND: r"$\checkmark$",
        OUT_OF_BAND: r"$\times$",
        NOTHING: "--",
        "±": r"$\pm$",
        "−": r"$-$",
        "⁻": r"$^-$",
        **{
            letter: rf"$\{name}$"
            for letter, name in zip(LETTERS, LETTER_NAMES.split(), strict=True)
        },
        **{digit: rf"\textsubscript{{{k}}}" for k, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    }
)


#: Width and height of the text of an article, in points.
TEXT_WIDTH, TEXT_HEIGHT = 345, 550
#: Height of a caption and of the headings of columns, in points.
HEAD_HEIGHT = 85
#: Estimated width of a character and height of a line in tables and in notes, in points.
CHARACTER, LINE = 4.8, 12
NOTE_CHARACTER, NOTE_LINE = 4.3, 9.5
#: Space between two columns of a table, in points.
COLUMN_SPACE = 12
#: Largest width of a float before it is shrunk to the text, in points: half the size of the text.
WIDEST = 2 * TEXT_WIDTH
#: Number of floats after which all floats are printed. LaTeX keeps at least 18 floats waiting.
WAITING = 12


class Float(NamedTuple):
    """A block of a table in LaTeX, or a part of a block."""

    grid: Grid
    caption: str
    label: str
    #: Sentences below the last part of a block.
    remarks: list[str]
    #: Whether these sentences fit into the float.
    inside: bool


def to_latex(tables: Iterable[Table], caption: str = "") -> str:
    """Return tables as LaTeX text. `caption` replaces the caption of the first block of a table."""
    tags = ("<%", "%>", "<<", ">>", "<#", "#>")  # braces would clash with LaTeX code
    filters = (escape, groups, row)
    made = environment("mmbench.tables", filters, tags, keep_trailing_newline=True)
    # the layouts of one experiment are several tables with its name
    grids: Counter[str] = Counter()
    floats: list[Float] = []
    for table in tables:
        floats += _floats(table, caption, grids[table.experiment])
        grids[table.experiment] += len(table.grids)
    text = made.get_template("table.tex").render(floats=floats, waiting=WAITING)
    if unknown := sorted(set(UNPRINTABLE.findall(text))):
        text = f"% pdflatex lacks {''.join(unknown)}; compile with xelatex or lualatex\n{text}"
    return text


def _floats(table: Table, given: str, before: int) -> Iterator[Float]:
    """Yield the floats of a table, whose blocks are numbered from `before` + 1."""
    name = "tab:" + re.sub(r"[^A-Za-z0-9]+", "-", table.experiment)
    for number, grid in enumerate(table.grids):
        words = plain(grid.caption)
        # The title states the quantity of the other blocks.
        own = words if grid.kind else ". ".join(filter(None, [table.title, words]))
        caption = given if given and not number else own
        label = f"{name}-{before + number + 1}" if before + number else name
        # The legend and the protocol follow the first block, and footnotes each block that cites
        # them.
        remarks = [] if number else list(table.notes)
        remarks += [f"[{one}] {table.footnotes[one - 1]}" for one in citations(grid)]
        lines = sum(math.ceil(len(text) * NOTE_CHARACTER / TEXT_WIDTH) for text in remarks)
        parts = [part for panel in panels(grid) for part in pages(panel)]
        for k, part in enumerate(parts, 1):
            height = HEAD_HEIGHT + len(part.rows) * _line(part) + lines * NOTE_LINE
            yield Float(
                part,
                caption if k == 1 else f"{caption} (continued)",
                label if k == 1 else f"{label}.{k}",
                remarks if k == len(parts) else [],
                height < TEXT_HEIGHT,
            )


def _widths(grid: Grid) -> list[float]:
    """Return the estimated widths of the columns in points."""
    lines = [[column.name for column in grid.columns], *grid.rows]
    columns = zip(*(map(len, map(plain, line)) for line in lines), strict=True)
    return [CHARACTER * max(lengths) + COLUMN_SPACE for lengths in columns]


def _line(grid: Grid) -> float:
    """Return the estimated height of a row in points, after the block is shrunk to the text."""
    return LINE * min(1.0, TEXT_WIDTH / sum(_widths(grid)))


def panels(grid: Grid) -> list[Grid]:
    """Cut a block that is too wide into blocks with some of its columns.

    Each part begins with the columns of text, if they fill at most half of the width.
    """
    widths = _widths(grid)
    if sum(widths) <= WIDEST:
        return [grid]
    labels = len(list(takewhile(lambda column: column.align == "left", grid.columns)))
    while labels > 1 and sum(widths[:labels]) > WIDEST / 2:
        labels -= 1

    def cuts(free: float) -> list[int]:
        found = [labels]
        for k in range(labels, len(widths)):
            if k > found[-1] and sum(widths[found[-1] : k + 1]) > free:
                found.append(k)
        return found

    free = WIDEST - sum(widths[:labels])
    count = len(cuts(free))
    while len(cuts(0.95 * free)) == count and max(widths[labels:]) < 0.95 * free:  # equal widths
        free *= 0.95

    def cut(cells: Sequence[Any], start: int, stop: int) -> list[Any]:
        return [*cells[:labels], *cells[start:stop]]

    return [
        replace(
            grid,
            columns=tuple(cut(grid.columns, *ends)),
            rows=[cut(cells, *ends) for cells in grid.rows],
        )
        for ends in pairwise([*cuts(free), len(widths)])
    ]


def pages(grid: Grid) -> list[Grid]:
    """Cut a block that is longer than a page into blocks of almost equal length."""
    rows = [list(cells) for cells in grid.rows]
    count = math.ceil(len(rows) / ((TEXT_HEIGHT - HEAD_HEIGHT) // _line(grid))) or 1
    starts = [len(rows) * k // count for k in range(count + 1)]
    for start in starts[1:-1]:  # an empty first cell means the text above
        named = (cells[0] for cells in reversed(rows[: start + 1]) if plain(cells[0]))
        rows[start][0] = next(named, "")
    return [replace(grid, rows=rows[start:stop]) for start, stop in pairwise(starts)]


#: Tags that enclose blocks, variables and comments in a template.
Tags = tuple[str, str, str, str, str, str]
TAGS: Tags = ("{%", "%}", "{{", "}}", "{#", "#}")


@cache
def environment(
    package: str, filters: tuple[Callable, ...], tags: Tags = TAGS, **options: Any
) -> Environment:
    """Return the jinja2 environment that renders the templates of a package, with the given
    filters.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    options |= {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    made = Environment(*tags, loader=PackageLoader(package), **options)
    made.filters |= {function.__name__: function for function in filters}
    return made


def escape(text: str) -> str:
    r"""Return a text with the special characters of LaTeX escaped.

    Examples
    --------
    >>> print(escape("50% of a_b"))
    50\% of a\_b
    """
    return visible(text).translate(ESCAPES)


def groups(columns: tuple[Column, ...]) -> list[str]:
    """Return two lines of LaTeX: the headings of the column groups, and the horizontal rules below
    these headings.
    """
    if not any(column.group for column in columns):
        return []
    cells, rules, start = [], [], 1
    for group, width in groupwise(columns):
        if group:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        else:
            cells.extend([""] * width)
        start += width
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def row(cells: Iterable[Shown]) -> str:
    """Return the texts of table cells as one row of a LaTeX table."""
    texts = (
        (rf"\textbf{{{escape(bold)}}}" if bold else "") + escape(rest)
        for bold, rest in map(parts, cells)
    )
    return " & ".join(texts) + r" \\"
