"""LaTeX with booktabs."""

from __future__ import annotations

from itertools import groupby

from mmbench.tables.model import IN_BAND, NOTHING, OUT_OF_BAND, Column, Grid, Table

PACKAGES = "% needs \\usepackage{amssymb,booktabs}"

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
    """Return a table as a LaTeX ``table`` environment."""
    remarks = [*table.notes, *(f"[{k}] {text}" for k, text in enumerate(table.footnotes, 1))]
    lines = [
        PACKAGES,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        *(line for grid in table.grids for line in _grid(grid)),
        r"\begin{minipage}{\linewidth}\footnotesize",
        *(rf"{escape(remark)}\par" for remark in remarks),
        r"\end{minipage}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it stands.

    Examples
    --------
    >>> print(escape("50% of a_b"))
    50\% of a\_b
    """
    return text.translate(ESCAPES)


def _grid(grid: Grid) -> list[str]:
    sides = "".join(column.align[0] for column in grid.columns)
    caption = [rf"\par\smallskip {escape(grid.caption)}\par\smallskip"] if grid.caption else []
    return [
        *caption,
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        *_groups(grid.columns),
        _row([column.name for column in grid.columns]),
        r"\midrule",
        *(_row(row) for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]


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
