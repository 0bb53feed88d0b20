"""Markdown that is readable as it stands: columns aligned for a terminal."""

import re

from mmbench.tables.model import Grid, Table


def to_markdown(table: Table) -> str:
    """Return a table as GitHub-flavoured Markdown."""
    parts = [f"## {table.title}"]
    for grid in table.grids:
        if grid.caption:
            parts.append(f"**{_escape(grid.caption)}**")
        parts.append(_grid(grid))
    remarks = [*table.notes, *(f"[{k}] {text}" for k, text in enumerate(table.footnotes, 1))]
    parts.append("\n".join(f"- {_escape(remark)}" for remark in remarks))
    return "\n\n".join(part for part in parts if part) + "\n"


def _grid(grid: Grid) -> str:
    aligns = [column.align for column in grid.columns]
    head = [_escape(column.name) for column in grid.columns]
    body = [[_escape(cell) for cell in row] for row in grid.rows]
    # A rule needs three dashes, one of them a colon for numbers.
    widths = [max(3, *map(len, cells)) for cells in zip(head, *body, strict=True)]
    rule = [
        "-" * (w - 1) + ":" if a == "right" else "-" * w
        for w, a in zip(widths, aligns, strict=True)
    ]
    return "\n".join(_line(cells, widths, aligns) for cells in [head, rule, *body])


def _line(cells: list[str], widths: list[int], aligns: list[str]) -> str:
    padded = [
        cell.rjust(width) if align == "right" else cell.ljust(width)
        for cell, width, align in zip(cells, widths, aligns, strict=True)
    ]
    return f"| {' | '.join(padded)} |"


def _escape(text: str) -> str:
    """Keep a cell's own text from being read as markup; ``a_b`` and ``<0.1`` are safe."""
    text = text.replace("|", r"\|").replace("*", r"\*").replace("\n", " ")
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)
