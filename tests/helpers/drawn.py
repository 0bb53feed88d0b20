"""Drawing tables and figures of one folder, and reading them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

import mmbench
from mmbench.results.published import KIND, published_rows


def table(folder: Path, fmt: str | None = None, **options: Any) -> str:
    """Return the table of one results folder."""
    return mmbench.table([folder], fmt, **options)


def rows_of(folder: Path, **options: Any) -> list[SimpleNamespace]:
    """Return the rows of the long table of one results folder; missing values are None."""
    frame = pd.read_csv(StringIO(table(folder, "csv", **options)), dtype={"in_band": "boolean"})
    frame = frame[frame.dataset.notna()]  # rows without a data set summarize all fits of a machine
    texts = dict.fromkeys(("note", "objection", "deviation"), "")
    frame = frame.astype(object).fillna(texts)
    return [SimpleNamespace(**r) for r in frame.where(frame.notna(), None).to_dict("records")]


def figure(name: str, folder: Path, output: Path) -> str:
    """Draw a figure of one results folder."""
    return mmbench.figure(name, [folder], output)


def load_published(table: str) -> pd.DataFrame:
    """A published table, one row per number; missing counts are NA."""
    frame = pd.DataFrame(published_rows(table))
    return frame.astype(
        {name: "Int64" if kind is int else "float64" for name, kind in KIND.items()}
    )


def cells_of(text: str, start: str, nth: int = 0) -> list[str]:
    """Return the cells of the nth line of a Markdown table that starts with some text."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in lines[nth].strip("|").split("|")]
