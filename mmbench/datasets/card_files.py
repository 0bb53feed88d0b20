"""Find and read data set cards in mmbench, in plug-ins and in users' folders.

This module imports neither `mmbench.datasets.card` nor pydantic, which takes long.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

from mmbench.errors import UserError, check_known, converted
from mmbench.plugins import with_plugins

#: YAML loader of libyaml, which reads all cards in a seventh of the time of the loader in pure
#: Python. The loader in pure Python is used if PyYAML does not include libyaml.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Name of the environment variable that lists the folders of the user's cards.
FOLDERS = "MMBENCH_CARDS"


def card_names() -> list[str]:
    """Return the sorted names of all data set cards."""
    return sorted(_card_files(os.environ.get(FOLDERS, "")))


@cache
def _card_files(folders: str) -> dict[str, Traversable]:
    """Return a dict that maps the name of each card to the YAML file of the card.

    `folders` is the value of the environment variable MMBENCH_CARDS.
    """
    found: dict[str, Traversable] = {}
    sources: list[Traversable] = [files("mmbench.datasets") / "cards"]
    for path in with_plugins("cards", {}).values():
        with converted(f"the cards of {path} cannot be found", ImportError):
            sources.append(files(path))
    for folder in (*sources, *map(Path, filter(None, folders.split(os.pathsep)))):
        if not folder.is_dir():
            raise UserError(f"{FOLDERS}: {folder}: no such folder")
        for file in folder.iterdir():
            name = file.name.removesuffix(".yaml")
            if name != file.name and found.setdefault(name, file) is not file:
                raise UserError(f"{file}: a card {name!r} exists already, {found[name]}")
    return found


def read_card(name: str) -> tuple[Traversable, dict[str, Any]]:
    """Return the YAML file of a card, and the content of the file.

    Raises UserError if no card has this name, or if the file does not contain a mapping.
    """
    known = _card_files(os.environ.get(FOLDERS, ""))
    check_known(name, known, "unknown data set")
    faults = yaml.YAMLError, ValueError, TypeError, OSError
    with converted(f"{known[name]}: not a valid card", *faults):
        return known[name], dict(yaml.load(known[name].read_text("utf-8"), LOADER))
