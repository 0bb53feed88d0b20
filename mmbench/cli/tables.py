"""``mmbench table``, ``figure``, ``report``, ``export`` and ``clean``."""

from pathlib import Path
from typing import Annotated

import typer

from mmbench.cli.options import Output

FOLDERS = "Folders of results, or of experiments in them"
Records = Annotated[list[Path], typer.Argument(metavar="RESULTS", help=f"{FOLDERS}.")]
#: What reads reference tables too, which hold no records.
Results = Annotated[
    list[Path],
    typer.Argument(metavar="RESULTS", help=f"{FOLDERS}; reference/NAME comes with mmbench."),
]

Mix = Annotated[
    bool, typer.Option("--mix", help="Allow records of different settings in one table.")
]


def _say(line: str) -> None:
    typer.echo(line, err=True)


def table(
    results: Results,
    fmt: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="markdown, csv or latex [default: by the suffix of --output].",
        ),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Layout [default: the experiment's own]."),
    ] = None,
    output: Output = None,
    mix: Mix = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show auc, mcc, confusion_matrix, ... of the stored predictions; repeatable.",
        ),
    ] = None,
    include_failed: Annotated[
        bool,
        typer.Option(
            "--include-failed", help="Let splits with a failed fit go into means and tests."
        ),
    ] = False,
) -> None:
    """Print the tables of stored records, each measured value beside the published one."""
    from mmbench.commands.tables import table as build

    text = build(results, fmt, layout, output, mix, _say, tuple(metric or ()), include_failed)
    if output is None:
        typer.echo(text, nl=not text.endswith("\n"))


def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a figure, as mmrm_fig2.")],
    results: Results,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Image to write; its suffix says the format [default: NAME.png beside the "
            "records, or here for a reference table].",
        ),
    ] = None,
) -> None:
    """Draw a figure of stored records beside the published one."""
    from mmbench.commands.tables import figure as draw

    typer.echo(draw(name, results, output, _say))


def report(
    results: Results,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the report, new or of an earlier one.")
    ] = Path("report"),
    mix: Mix = False,
) -> None:
    """Write a site of stored records that opens from a file; two runs are compared."""
    from mmbench.commands.tables import report as write

    typer.echo(f"written to {write(results, output, mix, _say)}")


def export(
    results: Records,
    fmt: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="csv or parquet [default: by the suffix of --output].",
        ),
    ] = None,
    output: Output = None,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="A row for each test row, not for each split.")
    ] = False,
) -> None:
    """Write stored records as a plain table: a row for each split.

    There repeat and fold count from 0, in the progress of a run from 1.
    """
    from mmbench.commands.export import export as write

    typer.echo(write(results, fmt, output, predictions, _say), nl=output is not None)


def clean(
    results: Records,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them, do not only list them.")] = False,
) -> None:
    """List, and with --yes remove, records that no current setting of an experiment uses."""
    from mmbench.commands.tables import clean as remove

    for line in remove(results, yes):
        typer.echo(line)
