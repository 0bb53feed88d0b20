"""Table layouts by name.

The layouts of mmbench are entries of ``layouts.yaml``. Most layouts combine blocks of
`mmbench.tables.blocks`. A plug-in defines a layout by a module with the function `layout`, which
returns the table of a `Sheet`. The plug-in's module may contain three constants:

- `PUBLISHED`, the name of the published table for the comparison;
- `SIZED`, true if the layout can show several training sizes;
- `ANY_METRIC`, true if the layout can show other metrics than the accuracy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.errors import UserError, did_you_mean
from mmbench.tables.catalogue import catalogue, entry_as

if TYPE_CHECKING:
    from mmbench.tables.compose import Layout

#: Default layout.
GENERIC = "generic"
LAYOUTS = catalogue("layouts")


def find_layout(name: str) -> Layout:
    """Return a layout by its name.

    Raises UserError if no layout has this name. The message suggests the nearest name.
    """
    from mmbench.tables.compose import Layout

    if name not in LAYOUTS:
        raise UserError(f"unknown layout {name!r}{did_you_mean(name, LAYOUTS)}")
    return entry_as(Layout, LAYOUTS[name], "layout")


def check_able(name: str, ability: str, shown: str) -> None:
    """Raise UserError if a layout lacks an ability, with a message that names layouts with the
    ability.

    `ability` is the name of the field "sized" or "any_metric" of `Layout`. `shown` is the part of
    the message that describes the unsupported content.
    """
    able = [other for other in LAYOUTS if getattr(find_layout(other), ability)]
    if name not in able:
        raise UserError(f"layout {name} cannot show {shown}; {' and '.join(able)} can")
