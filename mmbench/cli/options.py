"""What several commands share: options, and printing in columns."""

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
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where records are stored.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, metavar="N", help="Parallel processes [default: physical cores]."
    ),
]
Output = Annotated[Path | None, typer.Option(metavar="FILE", help="Write to FILE.")]

DEFAULT_STORE = Path("datasets")
DEFAULT_RESULTS = Path("results")


def complete_config(incomplete: str) -> list[str]:
    """Return the experiments and YAML files that a word may become in a shell."""
    from mmbench.config.files import config_files

    files = (str(path) for path in Path().glob(f"{incomplete}*") if path.suffix in ("", ".yaml"))
    return [name for name in (*config_files(), *files) if name.startswith(incomplete)]


def echo_columns(rows: Sequence[Sequence[object]]) -> None:
    """Print rows with aligned columns."""
    for line in aligned(rows):
        typer.echo(line)
