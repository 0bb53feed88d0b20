"""Reading drawn tables."""

from __future__ import annotations


def cells_of(text: str, start: str, nth: int = 0) -> list[str]:
    """Return the cells of the nth line of a Markdown table that starts with some text."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in lines[nth].strip("|").split("|")]
