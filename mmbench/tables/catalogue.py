"""Entries of YAML files, and modules of plug-ins, that define layouts and figures by name.

A YAML entry has the fields of `Layout` or `Figure`, in which functions are named as
``module:function``. The module of a plug-in contains the function `layout` or `draw`, and may
contain fields of `Layout` or `Figure` as constants with names in upper case. The first line of the
module's docstring is the description of the layout or figure.
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

#: Type of a catalogue entry: fields from a YAML file, or the name of a plug-in's module.
Entry = Mapping[str, Any] | str


def catalogue(kind: str) -> Mapping[str, Entry]:
    """Return the entries of "layouts" or "figures" by name, without importing their functions."""
    file = files(f"mmbench.tables.{kind}") / f"{kind}.yaml"
    return with_plugins(kind, yaml.load(file.read_text("utf-8"), LOADER))


def entry_as(made: type[Made], entry: Entry, function: str) -> Made:
    """Return an entry as an object of the class `made`, which is `Layout` or `Figure`.

    `function` is "layout" for layouts and "draw" for figures. It is the name of the function in the
    module of a plug-in, and the name of the field of `made` that names this function.
    """
    if isinstance(entry, str):
        module = import_module(entry)
        known = {f.name: getattr(module, f.name.upper(), None) for f in fields(made)}  # type: ignore[arg-type]
        known |= {"about": str(module.__doc__).partition("\n")[0], function: f"{entry}:{function}"}
        entry = {name: value for name, value in known.items() if value is not None}
    return made(**entry)
