"""The application: its commands, and what an exit code means.

0: all is done. 1: some job failed, the others are stored. 2: the user's input was wrong, one line
says what. 130: interrupted. Commands import what they call when they are called, so that
``mmbench --help`` does not wait for scikit-learn.
"""

import errno
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mmbench import __version__
from mmbench.cli import EXIT_INTERRUPTED, INTERRUPTED
from mmbench.cli.data import app as data_app
from mmbench.cli.easy import easy
from mmbench.cli.listing import app as list_app
from mmbench.cli.listing import check_app, cite, config_app
from mmbench.cli.run import run
from mmbench.cli.tables import clean, export, figure, report, table
from mmbench.errors import UserError

EXIT_WRONG_INPUT = 2


class OneLineErrors(TyperGroup):
    """A group of commands in which a user's mistake ends in one line, never in a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the command line; without this, typer ends a Ctrl-C here without a word."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:
            raise _stop(INTERRUPTED, EXIT_INTERRUPTED) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a mistake of the user's or Ctrl-C becomes a line and an exit code."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            raise _stop(str(error), EXIT_WRONG_INPUT) from None
        except KeyboardInterrupt:
            raise _stop(INTERRUPTED, EXIT_INTERRUPTED) from None
        except OSError as error:
            if error.errno is None or error.errno == errno.EPIPE:  # typer ends in silence
                raise
            place = "" if error.filename is None else f"{error.filename}: "
            raise _stop(f"{place}{error.strerror}", EXIT_WRONG_INPUT) from None


def _stop(message: str, code: int) -> typer.Exit:
    """Print one line and return the exit to raise."""
    with suppress(OSError):  # there may be no place for errors either
        typer.echo("mmbench: " + " ".join(message.split()), err=True)
    return typer.Exit(code)


app = typer.Typer(
    name="mmbench",
    cls=OneLineErrors,
    help="Max-margin classifiers, and the experiments that reproduce their papers.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mmbench {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command()(run)
app.command()(easy)
app.command()(table)
app.command()(figure)
app.command()(report)
app.command()(export)
app.command()(clean)
app.command()(cite)
app.add_typer(data_app, name="data")
app.add_typer(check_app, name="check")
app.add_typer(config_app, name="config")
app.add_typer(list_app, name="list")
