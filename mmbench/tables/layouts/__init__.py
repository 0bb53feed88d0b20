"""Registry of table layouts by name.

An entry of `LAYOUTS` is a module, or ``module:attribute`` for a `Layout` as data. The module of a
layout defines the function `layout`, which returns the table of a `Sheet`, usually composed of
shared blocks (`mmbench.tables.blocks`). Optional attributes of the module are `PUBLISHED`, the name
of the published table to compare with, `SIZED`, true if several training sizes can be shown, and
`ANY_METRIC`, true if metrics other than the accuracy can be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins

if TYPE_CHECKING:
    from mmbench.tables.compose import Layout

#: Default layout.
GENERIC = "generic"

LAYOUTS = {
    "generic": "mmbench.tables.layouts.generic:generic",
    "lfw": "mmbench.tables.layouts.papers:lfw",
    "comparison": "mmbench.tables.layouts.comparison",
    "machines": "mmbench.tables.layouts.generic:machines",
    "fsvm_table1": "mmbench.tables.layouts.papers:fsvm_table1",
    "fsvm_table2": "mmbench.tables.layouts.papers:fsvm_table2",
    "fsvm_table3": "mmbench.tables.layouts.papers:fsvm_table3",
    "fsvm_table5": "mmbench.tables.layouts.papers:fsvm_table5",
    "fsvm_rounds": "mmbench.tables.layouts.papers:fsvm_rounds",
    "mamc_table2": "mmbench.tables.layouts.papers:mamc_table2",
    "mamc_table3": "mmbench.tables.layouts.papers:mamc_table3",
    "m4_table1": "mmbench.tables.layouts.papers:m4_table1",
    "m4_table2": "mmbench.tables.layouts.papers:m4_table2",
    "mmrm_table1": "mmbench.tables.layouts.papers:mmrm_table1",
    "mmrm_table2": "mmbench.tables.layouts.papers:mmrm_table2",
    "rmm_fig2": "mmbench.tables.layouts.rmm:rmm_fig2",
    "rmm_table1": "mmbench.tables.layouts.rmm:rmm_table1",
    "rmm_journal_table4": "mmbench.tables.layouts.papers:rmm_journal_table4",
    "solvers": "mmbench.tables.layouts.solvers:solvers",
}
# Layouts of installed plug-ins are added.
LAYOUTS = with_plugins("layouts", LAYOUTS)


def find_layout(name: str) -> Layout:
    """Return a layout by its name.

    Raises UserError if the name is unknown; the message suggests the nearest name.
    """
    from mmbench.tables.compose import Layout

    if name not in LAYOUTS:
        raise UserError(f"unknown layout {name!r}{did_you_mean(name, LAYOUTS)}")
    path, _, attribute = LAYOUTS[name].partition(":")
    module = import_module(path)
    return getattr(module, attribute) if attribute else Layout.of_module(module)


def check_sized(name: str) -> None:
    """Raise UserError if a layout cannot show several training sizes; name the layouts that can."""
    sized = [other for other in LAYOUTS if find_layout(other).sized]
    if name not in sized:
        raise UserError(f"{name} cannot show several training sizes; {' and '.join(sized)} can")


def check_any_metric(name: str, metrics: Sequence[str]) -> None:
    """Raise UserError if a layout can show only the accuracy; name the layouts for any metric."""
    if not find_layout(name).any_metric:
        able = " and ".join(other for other in LAYOUTS if find_layout(other).any_metric)
        raise UserError(f"layout {name} cannot show {metrics[0]}; {able} can")
