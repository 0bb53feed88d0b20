"""How each paper arranges a table, one file a layout.

A layout registers itself by one line in `LAYOUTS`. Its module holds `layout`, a function that makes
a table of a `Sheet`, mostly of shared blocks (`mmbench.tables.blocks`), and optionally `PUBLISHED`,
the published table it shows, `SIZED`, set where it has a place for several training sizes, and
`ANY_METRIC`, set where it shows other metrics than the accuracy.
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins

#: The layout of experiments that name none.
GENERIC = "generic"

LAYOUTS = {
    "generic": "mmbench.tables.layouts.generic",
    "lfw": "mmbench.tables.layouts.lfw",
    "comparison": "mmbench.tables.layouts.comparison",
    "machines": "mmbench.tables.layouts.machines",
    "fsvm_table2": "mmbench.tables.layouts.fsvm_table2",
    "fsvm_rounds": "mmbench.tables.layouts.fsvm_rounds",
    "mamc_table2": "mmbench.tables.layouts.mamc_table2",
    "mamc_table3": "mmbench.tables.layouts.mamc_table3",
    "m4_table1": "mmbench.tables.layouts.m4_table1",
    "m4_table2": "mmbench.tables.layouts.m4_table2",
    "mmrm_table1": "mmbench.tables.layouts.mmrm_table1",
    "mmrm_table2": "mmbench.tables.layouts.mmrm_table2",
    "rmm_fig2": "mmbench.tables.layouts.rmm_fig2",
    "rmm_table1": "mmbench.tables.layouts.rmm_table1",
    "rmm_journal_table4": "mmbench.tables.layouts.rmm_journal_table4",
}
# and what installed packages add
LAYOUTS = with_plugins("layouts", LAYOUTS)


def list_layouts() -> dict[str, str]:
    """Return what each layout shows, by name."""
    return {name: str(layout_module(name).__doc__).partition("\n")[0] for name in LAYOUTS}


def layout_module(name: str) -> ModuleType:
    """Return the module of a layout.

    Raises
    ------
    UserError
        If there is no such layout; the message holds the nearest name.
    """
    if name not in LAYOUTS:
        raise UserError(f"unknown layout {name!r}{did_you_mean(name, LAYOUTS)}")
    return import_module(LAYOUTS[name])


def check_sized(name: str) -> None:
    """Refuse a layout that has no place for several training sizes.

    Raises
    ------
    UserError
        Names those that have.
    """
    sized = [other for other in LAYOUTS if getattr(layout_module(other), "SIZED", False)]
    if name not in sized:
        raise UserError(f"{name} cannot show several training sizes; {' and '.join(sized)} can")


def shows_any_metric(name: str) -> bool:
    """Return whether a layout shows other metrics than the accuracy."""
    return getattr(layout_module(name), "ANY_METRIC", False)


def check_any_metric(name: str, metrics: Sequence[str]) -> None:
    """Refuse a layout that shows what its paper shows and nothing else.

    Raises
    ------
    UserError
        Names those that show others.
    """
    if not shows_any_metric(name):
        able = " and ".join(filter(shows_any_metric, LAYOUTS))
        raise UserError(f"layout {name} cannot show {metrics[0]}; {able} can")
