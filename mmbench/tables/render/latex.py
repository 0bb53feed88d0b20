r"""LaTeX that fits an article's page: a float for each block, wide ones shrunk, long ones broken.

Every block has a caption and a label, ``tab:NAME``, ``tab:NAME-2`` and so on. Notes follow it as
text, which pages can break: the legend after the first block, footnotes after those that cite them.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from mmbench.tables.model import IN_BAND, NOTHING, OUT_OF_BAND, Column, Grid, Table

PACKAGES = r"% needs \usepackage{amssymb,booktabs,graphicx,longtable}"

#: A block of more rows would be higher than a page.
MAX_ROWS = 40
#: Shrinks what is wider than the text, and leaves the rest as it is.
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"

#: One pass over single characters, so that no replacement is itself replaced.
ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        # A row that began with a bracket would be read as the argument of the \\ before it.
        "[": "{[}",
        "]": "{]}",
        "\n": " ",
        IN_BAND: r"$\checkmark$",
        OUT_OF_BAND: r"$\times$",
        NOTHING: "--",
        "±": r"$\pm$",
        "−": r"$-$",
        "Σ": r"$\Sigma$",
        "μ": r"$\mu$",
        "ν": r"$\nu$",
        "ρ": r"$\rho$",
        **{digit: rf"\textsubscript{{{k}}}" for k, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    }
)


def to_latex(table: Table) -> str:
    """Return a table as LaTeX, one float or long table for each of its blocks."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", table.title.partition(":")[0])
    lines = [PACKAGES]
    for k, grid in enumerate(table.grids):
        label = f"tab:{name}" + (f"-{k + 1}" if k else "")
        caption = ". ".join(filter(None, [table.title, grid.caption]))
        head = [rf"\caption{{{escape(caption)}}}", rf"\label{{{label}}}"]
        notes = [*(table.notes if k == 0 else []), *_cited(grid, table.footnotes)]
        lines += _longtable(grid, head) if len(grid.rows) > MAX_ROWS else _float(grid, head)
        lines += _notes(label, notes)
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it stands.

    Examples
    --------
    >>> print(escape("50% of a_b"))
    50\% of a\_b
    """
    return text.translate(ESCAPES)


def _cited(grid: Grid, footnotes: Sequence[str]) -> list[str]:
    """Return the footnotes that a block cites."""
    cells = "".join(cell for row in grid.rows for cell in row) + grid.caption
    return [f"[{k}] {text}" for k, text in enumerate(footnotes, 1) if f"[{k}]" in cells]


def _float(grid: Grid, head: list[str]) -> list[str]:
    return [
        r"\begin{table}[tbp]",
        r"\centering",
        *head,
        FIT,
        rf"\begin{{tabular}}{{{_sides(grid)}}}",
        *_head(grid),
        *map(_row, grid.rows),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]


def _longtable(grid: Grid, head: list[str]) -> list[str]:
    size = r"\scriptsize" if len(grid.columns) > 6 else r"\small"
    return [
        rf"\begingroup{size}",
        rf"\begin{{longtable}}{{{_sides(grid)}}}",
        *head,
        r"\\",
        *_head(grid),
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *map(_row, grid.rows),
        r"\end{longtable}",
        r"\endgroup",
    ]


def _notes(label: str, notes: list[str]) -> list[str]:
    if not notes:
        return []
    texts = (rf"{escape(note)}\par" for note in notes)
    return [rf"{{\footnotesize\sloppy\noindent Notes to Table~\ref{{{label}}}.\par", *texts, "}"]


def _sides(grid: Grid) -> str:
    return "".join(column.align[0] for column in grid.columns)


def _head(grid: Grid) -> list[str]:
    names = _row([column.name for column in grid.columns])
    return [r"\toprule", *_groups(grid.columns), names, r"\midrule"]


def _groups(columns: tuple[Column, ...]) -> list[str]:
    """Return the line of heads that span several columns, and the rules below them."""
    if not any(column.group for column in columns):
        return []
    cells, rules, start = [], [], 1
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        if group:
            cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
        else:
            cells.extend([""] * width)
        start += width
    return [" & ".join(cells) + r" \\", " ".join(rules)]


def _row(cells: list[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"
