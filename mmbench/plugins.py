"""Machines, data set cards, layouts and figures that installed packages add.

A package declares them as entry points, in its ``pyproject.toml``::

    [project.entry-points."mmbench.machines"]
    kernel_ridge = "mypackage.machines:KernelRidge"    # a class

    [project.entry-points."mmbench.layouts"]
    mine = "mypackage.layouts.mine"    # a module, as those of mmbench.tables.layouts

    [project.entry-points."mmbench.figures"]
    dots = "mypackage.figures.dots"    # a module, as those of mmbench.tables.figures

    [project.entry-points."mmbench.cards"]
    mypackage = "mypackage.cards"      # a package that holds NAME.yaml

Each is imported when it is first used.
"""

import warnings
from collections.abc import Mapping
from importlib.metadata import entry_points


def with_plugins(kind: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return mmbench's own entries of a kind and those of installed packages, by name.

    The values are ``module`` or ``module:attribute``. An entry of another package with a name that
    is taken is left out, with a warning. `kind` is "machines", "cards", "layouts" or "figures".
    """
    found = dict(own)
    for entry in entry_points(group=f"mmbench.{kind}"):
        if found.setdefault(entry.name, entry.value) != entry.value:
            package = entry.dist.name if entry.dist else "another package"
            warnings.warn(
                f"{package}: {kind} {entry.name!r} is left out, the name is taken", stacklevel=2
            )
    return found
