"""``mmbench easy``."""

from pathlib import Path
from typing import Annotated

import typer

from mmbench.cli.options import DEFAULT_RESULTS, DEFAULT_STORE, Jobs, Results


def easy(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV, ARFF, Parquet, svmlight or npz; packed, too."),
    ],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the classes, by name or number."),
    ] = None,
    results: Results = DEFAULT_RESULTS,
    jobs: Jobs = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Another value, as 'datasets[0].drop=[id]' or kernel=linear; repeatable.",
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the experiment, a start for one's own.")
    ] = False,
) -> None:
    """Compare all machines, logistic regression and a random forest on a table of data.

    Five folds, each trained on 1000 rows at most; --show prints what else is done.
    """
    from mmbench.commands.easy import easy as run
    from mmbench.commands.options import Options

    options = Options(results, DEFAULT_STORE, slots=jobs, overrides=tuple(set_ or ()))
    code, text = run(path, target, options, show, lambda line: typer.echo(line, err=True))
    if text:
        typer.echo(text, nl=not text.endswith("\n"))
    raise typer.Exit(code)
