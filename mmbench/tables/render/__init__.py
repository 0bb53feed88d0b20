"""Tables as text, one file a format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mmbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from mmbench.tables.model import Table

#: Formats that draw a layout. ``csv`` is the long table itself, see `mmbench.tables.render.csv`.
DRAWN = ("markdown", "latex")
FORMATS = (*DRAWN, "csv")


def check_format(fmt: str) -> None:
    """Refuse an unknown format.

    Raises
    ------
    UserError
    """
    if fmt not in FORMATS:
        raise UserError(f"unknown format {fmt!r}{did_you_mean(fmt, FORMATS)}")


def renderer(fmt: str) -> Callable[[Table], str]:
    """Return the function that draws a table in a format of `DRAWN`."""
    if fmt == "latex":
        from mmbench.tables.render.latex import to_latex

        return to_latex
    from mmbench.tables.render.markdown import to_markdown

    return to_markdown
