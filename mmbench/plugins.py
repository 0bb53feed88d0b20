"""Machines, data set cards, table layouts and figures from other installed packages.

A package declares its additions as entry points in its ``pyproject.toml``::

    [project.entry-points."mmbench.machines"]
    kernel_ridge = "mypackage.machines:KernelRidge"    # a class

    [project.entry-points."mmbench.layouts"]
    mine = "mypackage.layouts.mine"    # a module with a function `layout`

    [project.entry-points."mmbench.figures"]
    dots = "mypackage.figures.dots"    # a module with a function `draw`

    [project.entry-points."mmbench.cards"]
    mypackage = "mypackage.cards"      # a package with files NAME.yaml

The module of an entry point is imported when the entry point is first used.
"""

import warnings
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any


def with_plugins(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the machines, cards, layouts or figures of mmbench and of installed packages.

    The argument `kind` is "machines", "cards", "layouts" or "figures". The argument `own` maps the
    names of mmbench's items of this kind to their values. For an item of another package, the value
    is a string ``module`` or ``module:attribute``. An item of another package is ignored with a
    warning if its name is already taken.
    """
    found = dict(own)
    for entry in entry_points(group=f"mmbench.{kind}"):
        if found.setdefault(entry.name, entry.value) != entry.value:
            package = entry.dist.name if entry.dist else "another package"
            text = f"{package}: {entry.name!r} is left out of the {kind}, as the name is taken"
            warnings.warn(text, stacklevel=2)
    return found
