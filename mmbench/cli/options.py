"""What several commands share: options, and printing in columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mmbench.commands.columns import aligned

Mirror = Annotated[
    str | None,
    typer.Option(
        metavar="DIR_OR_URL",
        envvar="MMBENCH_MIRROR",
        help="Folder or URL that holds data files, for machines without internet.",
    ),
]
Store = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", envvar="MMBENCH_DATA", help="Local store of fetched data files."
    ),
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write to FILE.")]

DEFAULT_STORE = Path("datasets")
DEFAULT_RESULTS = Path("results")


def echo_columns(rows: Sequence[Sequence[object]]) -> None:
    """Print rows with aligned columns."""
    for line in aligned(rows):
        typer.echo(line)
