"""Table layouts by name.

The layouts of mmbench are the entries of ``layouts.yaml``. The layout of a plug-in is a module with
the function `layout`, which returns the table of a `Sheet`. Most layouts combine the blocks of
`mmbench.tables.blocks`. Optional constants of the module are

- `PUBLISHED`, the name of the published table to compare with,
- `SIZED`, true if several training sizes can be shown,
- `ANY_METRIC`, true if metrics other than the accuracy can be shown.
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

    Raises UserError if the name is unknown; the message suggests the nearest name.
    """
    from mmbench.tables.compose import Layout

    if name not in LAYOUTS:
        raise UserError(f"unknown layout {name!r}{did_you_mean(name, LAYOUTS)}")
    return entry_as(Layout, LAYOUTS[name], "layout")


def check_able(name: str, ability: str, shown: str) -> None:
    """Raise UserError if a layout cannot show `shown`; name the layouts that can.

    `ability` is the field of a layout that states this, "sized" or "any_metric".
    """
    able = [other for other in LAYOUTS if getattr(find_layout(other), ability)]
    if name not in able:
        raise UserError(f"layout {name} cannot show {shown}; {' and '.join(able)} can")
