"""``mmbench run``."""

from typing import Annotated

import typer

from mmbench.cli.options import (
    DEFAULT_RESULTS,
    DEFAULT_STORE,
    Jobs,
    Mirror,
    Results,
    Store,
    complete_config,
)


def run(
    configs: Annotated[
        list[str],
        typer.Argument(
            metavar="CONFIG",
            help="YAML files, or names from 'mmbench list configs'.",
            show_default=False,
            autocompletion=complete_config,
        ),
    ],
    results: Results = DEFAULT_RESULTS,
    jobs: Jobs = None,
    mirror: Mirror = None,
    store: Store = DEFAULT_STORE,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=NAME", help="Run a part: dataset=NAME or machine=NAME; repeatable."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the job list, run nothing.")
    ] = False,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke", help="The smallest honest version: real data, few splits and grid points."
        ),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A value in place of the file's, as machines.svm.grid.C=[1,10]; repeatable.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a fit is not optimal, too.")
    ] = False,
    time_limit: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Longest time of a job: 90s, 30min, 1h; also 'limits:'."),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most memory of a job: 500MB, 8GB; also 'limits:'."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Dask cluster: the address of its scheduler, or 'local' to try it.",
        ),
    ] = None,
) -> None:
    """Run experiments; jobs that have a record are not run again."""
    from mmbench.commands.launch import launch
    from mmbench.commands.options import Options
    from mmbench.config.files import find_config
    from mmbench.jobs.limits import parse_limits

    for name in configs:
        find_config(name)  # a wrong name is answered before libraries and workers are loaded
    options = Options(
        results=results,
        store=store,
        mirror=mirror,
        slots=jobs,
        only=tuple(only or ()),
        smoke=smoke,
        limits=parse_limits(time_limit, memory_limit),
        strict=strict,
        scheduler=scheduler,
        overrides=tuple(set_ or ()),
    )
    if dry_run:
        from mmbench.commands.dry_run import describe_experiments

        typer.echo(describe_experiments(configs, options))
        return
    raise typer.Exit(launch(configs, options, say=lambda line: typer.echo(line, err=True)))
