"""Drawing tables and figures of one folder, and reading them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmbench.commands import outputs as tables


def table(folder: Path, fmt: str | None = None, **options: Any) -> str:
    """Return the table of one results folder."""
    return tables.table([folder], fmt, **options)


def figure(name: str, folder: Path, output: Path) -> str:
    """Draw a figure of one results folder."""
    return tables.figure(name, [folder], output)


def cells_of(text: str, start: str, nth: int = 0) -> list[str]:
    """Return the cells of the nth line of a Markdown table that starts with some text."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in lines[nth].strip("|").split("|")]
