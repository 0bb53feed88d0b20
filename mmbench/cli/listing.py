"""``mmbench list``, ``mmbench cite``, ``mmbench config`` and ``mmbench check``."""

from typing import Annotated

import typer

from mmbench.cli.options import complete_config, echo_columns

app = typer.Typer(help="List what there is.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def machines() -> None:
    """List the machines that run."""
    from mmbench.commands.listing import machine_rows

    echo_columns(machine_rows())


@app.command()
def datasets() -> None:
    """List the data sets with a card."""
    from mmbench.commands.listing import dataset_rows

    echo_columns(dataset_rows())


@app.command()
def layouts() -> None:
    """List the table layouts."""
    from mmbench.commands.listing import layout_rows

    echo_columns(layout_rows())


@app.command()
def figures() -> None:
    """List the figures."""
    from mmbench.commands.listing import figure_rows

    echo_columns(figure_rows())


@app.command()
def configs() -> None:
    """List the experiments: those in configs/ here, and those that come with mmbench."""
    from mmbench.commands.listing import config_rows

    echo_columns(config_rows())


def cite(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE|CONFIG",
            help="A machine, or an experiment.",
            autocompletion=complete_config,
        ),
    ],
) -> None:
    """Print what to cite for a machine or an experiment, as BibTeX."""
    from mmbench.commands.cite import citation

    typer.echo(citation(name))


config_app = typer.Typer(help="Look at experiments.", no_args_is_help=True, rich_markup_mode=None)
check_app = typer.Typer(
    help="Check what other packages add.", no_args_is_help=True, rich_markup_mode=None
)


@config_app.callback()
@check_app.callback()
def _group() -> None:
    """Keep the word of a command that is the only one of its group."""


@config_app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="A YAML file, or a name.", autocompletion=complete_config
        ),
    ],
) -> None:
    """Print the file of an experiment: a start for one's own."""
    from mmbench.commands.listing import config_text

    typer.echo(config_text(name), nl=False)


@check_app.command()
def machine(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A machine, or mypackage.module:Class.")
    ],
) -> None:
    """Put a machine to scikit-learn's checks and to those of its certificates."""
    from mmbench.commands.check import check_machine

    raise typer.Exit(check_machine(name, typer.echo))
