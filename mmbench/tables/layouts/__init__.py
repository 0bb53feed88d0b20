"""How tables are arranged: a registry of layouts by name.

An entry of `LAYOUTS` is a module, or ``module:attribute`` for a `Layout` as data. The module of a
layout holds `layout`, a function that makes a table of a `Sheet`, mostly of shared blocks
(`mmbench.tables.blocks`), and optionally `PUBLISHED`, the published table it shows, `SIZED`, true
if it has a place for several training sizes, and `ANY_METRIC`, true if it shows other metrics than
the accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins

if TYPE_CHECKING:
    from mmbench.tables.compose import Layout

#: The layout of experiments that name none.
GENERIC = "generic"

LAYOUTS = {
    "generic": "mmbench.tables.layouts.generic",
    "lfw": "mmbench.tables.layouts.papers:lfw",
    "comparison": "mmbench.tables.layouts.comparison",
    "machines": "mmbench.tables.layouts.machines",
    "fsvm_table2": "mmbench.tables.layouts.papers:fsvm_table2",
    "fsvm_rounds": "mmbench.tables.layouts.papers:fsvm_rounds",
    "mamc_table2": "mmbench.tables.layouts.papers:mamc_table2",
    "mamc_table3": "mmbench.tables.layouts.papers:mamc_table3",
    "m4_table1": "mmbench.tables.layouts.papers:m4_table1",
    "m4_table2": "mmbench.tables.layouts.papers:m4_table2",
    "mmrm_table1": "mmbench.tables.layouts.papers:mmrm_table1",
    "mmrm_table2": "mmbench.tables.layouts.papers:mmrm_table2",
    "rmm_fig2": "mmbench.tables.layouts.rmm_fig2",
    "rmm_table1": "mmbench.tables.layouts.rmm_table1",
    "rmm_journal_table4": "mmbench.tables.layouts.papers:rmm_journal_table4",
}
# and layouts of installed packages
LAYOUTS = with_plugins("layouts", LAYOUTS)


def list_layouts() -> dict[str, str]:
    """Return the description of each layout, by name."""
    return {name: find_layout(name).about for name in LAYOUTS}


def find_layout(name: str) -> Layout:
    """Return a layout by its name.

    Raises UserError if there is no such layout; the message holds the nearest name.
    """
    from mmbench.tables.compose import Layout

    if name not in LAYOUTS:
        raise UserError(f"unknown layout {name!r}{did_you_mean(name, LAYOUTS)}")
    path, _, attribute = LAYOUTS[name].partition(":")
    module = import_module(path)
    return getattr(module, attribute) if attribute else Layout.of_module(module)


def check_sized(name: str) -> None:
    """Refuse a layout that has no place for several training sizes, naming those that have."""
    sized = [other for other in LAYOUTS if find_layout(other).sized]
    if name not in sized:
        raise UserError(f"{name} cannot show several training sizes; {' and '.join(sized)} can")


def check_any_metric(name: str, metrics: Sequence[str]) -> None:
    """Refuse a layout that shows the accuracy alone, naming those that show other metrics."""
    if not find_layout(name).any_metric:
        able = " and ".join(other for other in LAYOUTS if find_layout(other).any_metric)
        raise UserError(f"layout {name} cannot show {metrics[0]}; {able} can")
