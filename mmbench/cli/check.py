"""``mmbench check``."""

from typing import Annotated

import typer

app = typer.Typer(
    help="Check what other packages add.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _group() -> None:
    pass


@app.command()
def machine(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A machine, or mypackage.module:Class.")
    ],
) -> None:
    """Put a machine to scikit-learn's checks and to those of its certificates."""
    from mmbench.commands.check import check_machine

    raise typer.Exit(check_machine(name, typer.echo))
