"""``mmbench config``."""

from typing import Annotated

import typer

from mmbench.cli.options import complete_config

app = typer.Typer(help="Look at experiments.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:
    pass


@app.command()
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
