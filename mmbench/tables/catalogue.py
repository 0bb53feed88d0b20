"""Find layouts and figures by name, in YAML files and in plug-ins.

An entry has the fields of `Layout` or `Figure`; functions have the form ``module:function``. A
plug-in's module has `layout` or `draw`, further fields as constants in upper case, and the
description as first line of its docstring.
"""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeVar

import yaml

from mmbench.datasets.card_files import LOADER
from mmbench.plugins import with_plugins

Made = TypeVar("Made")

#: Type of an entry of the catalogue: the fields in a YAML file, or the name of a plug-in's module.
Entry = Mapping[str, Any] | str


def catalogue(kind: str) -> Mapping[str, Entry]:
    """Return a dict from the names of all layouts (or figures) to their entries, without importing
    their functions.
    """
    file = files(f"mmbench.tables.{kind}") / f"{kind}.yaml"
    return with_plugins(kind, yaml.load(file.read_text("utf-8"), LOADER))


def entry_as(made: type[Made], entry: Entry, function: str) -> Made:
    """Return an entry of the catalogue as an object of the class `made` (`Layout` or `Figure`).

    The argument `function` is "layout" for `Layout` and "draw" for `Figure`. The module of a
    plug-in defines a function with this name, and the class `made` has a field with this name.
    """
    if isinstance(entry, str):
        module = import_module(entry)
        known = {f.name: getattr(module, f.name.upper(), None) for f in fields(made)}  # type: ignore[arg-type]
        known |= {"about": str(module.__doc__).partition("\n")[0], function: f"{entry}:{function}"}
        entry = {name: value for name, value in known.items() if value is not None}
    return made(**entry)
