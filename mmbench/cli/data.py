"""``mmbench data``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from mmbench.cli.options import DEFAULT_STORE, Mirror, Store, echo_columns

if TYPE_CHECKING:
    from mmbench.commands.data import Outcome

app = typer.Typer(
    help="Look at, fetch and verify data.", no_args_is_help=True, rich_markup_mode=None
)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Data sets [default: all].", show_default=False),
]


@app.command("list")
def list_(mirror: Mirror = None, store: Store = DEFAULT_STORE) -> None:
    """List the data sets with a card, and where their files are."""
    from mmbench.commands.data import summaries

    header = ("name", "rows", "columns", "classes", "splits", "where")
    rows = [
        (s.name, s.n_samples, s.n_features, s.n_classes, ", ".join(s.splits), s.where)
        for s in summaries(store, mirror)
    ]
    echo_columns([header, *rows])


@app.command()
def info(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set.")],
    mirror: Mirror = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Show the card of a data set, and which of its sources is here."""
    from mmbench.commands.data import info as card_text

    typer.echo(card_text(name, store, mirror))


@app.command()
def fetch(names: Names = None, mirror: Mirror = None, store: Store = DEFAULT_STORE) -> None:
    """Fetch data sets into the local store; a file arrives only if its hash matches."""
    from mmbench.commands.data import fetch as bring

    _report(bring(names or None, store, mirror, progress=sys.stderr.isatty()))


@app.command()
def verify(names: Names = None, mirror: Mirror = None, store: Store = DEFAULT_STORE) -> None:
    """Compare the files that are here with their cards."""
    from mmbench.commands.data import verify as compare

    _report(compare(names or None, store, mirror, progress=sys.stderr.isatty()))


def _report(outcomes: Iterable[Outcome]) -> None:
    """Print a line a data set as soon as it is known; exit 1 if one is not as it should be."""
    good = True
    for outcome in outcomes:
        typer.echo(f"{outcome.name}: {outcome.message}", err=not outcome.ok)
        good = good and outcome.ok
    if not good:
        raise typer.Exit(1)
