"""Conversion of tables to Markdown and LaTeX, and of the frame ``cells`` to CSV.

In LaTeX, each block is a float with the label ``tab:NAME``, ``tab:NAME-2``, ...; wide blocks are
shrunk to the text, long blocks and notes can continue on the next page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

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


#: Maximum number of rows in a float of LaTeX. A longer table block can continue on the next page.
MAX_ROWS = 40
#: LaTeX code for special characters. All special characters are replaced at once, so that the
#: inserted LaTeX code is not escaped again.
ESCAPES = str.maketrans(
    {
        **{character: rf"\{character}" for character in "{}&%$#_"},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
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
        "Σ": r"$\Sigma$",
        "μ": r"$\mu$",
        "ν": r"$\nu$",
        "ρ": r"$\rho$",
        **{digit: rf"\textsubscript{{{k}}}" for k, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    }
)


def to_latex(table: Table, caption: str = "") -> str:
    """Return a table as LaTeX text. `caption` replaces the caption of the first block.

    A long table block is a ``longtable``, and any other block is a float that contains its notes.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "-", table.experiment)
    tags = ("<%", "%>", "<<", ">>", "<#", "#>")  # braces would clash with LaTeX code
    filters = (escape, groups, row, plain, citations)
    made = environment("mmbench.tables", filters, tags, keep_trailing_newline=True)
    template = made.get_template("table.tex")
    return template.render(table=table, name=name, max_rows=MAX_ROWS, given=caption)


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
