"""``mmbench table`` and ``mmbench figure``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmbench.cli.options import Output

Results = Annotated[
    Path,
    typer.Argument(metavar="RESULTS", help="Folder of results, or of one experiment in it."),
]


def table(
    results: Results,
    fmt: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="markdown, csv or latex.")
    ] = "markdown",
    layout: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Layout [default: the experiment's own]."),
    ] = None,
    output: Output = None,
    mix: Annotated[
        bool, typer.Option("--mix", help="Allow records of different settings in one table.")
    ] = False,
) -> None:
    """Print the table of stored records, each measured value beside the published one."""
    from mmbench.commands.tables import table as build

    text = build(results, fmt=fmt, layout=layout, output=output, mix=mix)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))


def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a figure, as mmrm_fig2.")],
    results: Results,
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="Image to write; its suffix says the format.")
    ],
) -> None:
    """Draw a figure of stored records beside the published one."""
    from mmbench.commands.tables import figure as draw

    typer.echo(draw(name, results, output))
