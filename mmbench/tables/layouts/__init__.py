"""Table layouts by name, from ``layouts.yaml`` and from plug-ins.

A plug-in's module defines `layout`, and may define `PUBLISHED`, the name of the published table,
and `SIZED` and `ANY_METRIC`: it can show several training sizes, and other metrics than accuracy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.errors import UserError, check_known
from mmbench.tables.catalogue import catalogue, entry_as

if TYPE_CHECKING:
    from mmbench.tables.compose import Layout

#: Default layout.
GENERIC = "generic"
LAYOUTS = catalogue("layouts")


def find_layout(name: str) -> Layout:
    """Return a layout by its name.

    Raises UserError if no layout has this name. The error message suggests the nearest name.
    """
    from mmbench.tables.compose import Layout

    check_known(name, LAYOUTS, "unknown layout")
    return entry_as(Layout, LAYOUTS[name], "layout")


def check_able(name: str, ability: str, shown: str) -> None:
    """Raise UserError if the layout `name` does not have the given ability.

    There are two abilities, which are fields of `Layout`. A layout with the ability "sized" can
    show several training sizes. A layout with the ability "any_metric" can show other metrics than
    the accuracy.

    The error message names the layouts with the ability. In the message, the text `shown` describes
    the content that the layout `name` cannot show.
    """
    able = [other for other in LAYOUTS if getattr(find_layout(other), ability)]
    if name not in able:
        raise UserError(f"layout {name} cannot show {shown}; {' and '.join(able)} can")
