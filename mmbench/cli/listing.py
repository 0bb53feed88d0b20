"""``mmbench list`` and ``mmbench cite``."""

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
