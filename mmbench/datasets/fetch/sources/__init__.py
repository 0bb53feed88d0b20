"""Where data come from when neither the store nor the mirror has them: one file a kind."""

from collections.abc import Callable
from pathlib import Path

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources import keel_, openml_, sklearn_, url
from mmbench.datasets.fetch.sources.base import SourceError, one_line
from mmbench.datasets.generators import generate

__all__ = ["SourceError", "obtain"]


def _drawn(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    return generate(str(source.loader), **source.options)


#: Kind of source -> how its data are obtained.
KINDS: dict[str, Callable[[Card, Source, Path, bool], Parsed]] = {
    "url": url.obtain,
    "openml": openml_.obtain,
    "sklearn": sklearn_.obtain,
    "keel": keel_.obtain,
    "generator": _drawn,
}


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download (into `folder`) and parse what a source holds.

    Raises
    ------
    SourceError
        If the source does not deliver a file that its parser can read.
    """
    try:
        return KINDS[source.kind](card, source, folder, progress)
    except ValueError as error:
        name = source.urls[0] if source.urls else source.label
        raise SourceError(f"{name}: {one_line(error)}") from error
