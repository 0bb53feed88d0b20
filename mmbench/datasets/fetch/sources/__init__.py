"""Where data come from when neither the store nor the mirror has them: one file a kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.errors import UserError

#: Kind of source -> module with ``obtain(card, source, folder, progress) -> Parsed``.
KINDS = {
    "url": "url",
    "openml": "openml_",
    "sklearn": "sklearn_",
    "generator": "generator",
}
TIMEOUT = "MMBENCH_TIMEOUT"
DEFAULT_TIMEOUT = 60.0


class SourceError(Exception):
    """A source did not deliver; the message is one line and names no data set."""


def timeout() -> float:
    """Return the seconds that a server may stay silent: MMBENCH_TIMEOUT, or 60."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UserError(f"{TIMEOUT}={text}: must be a number of seconds above 0")
    return seconds


def one_line(error: BaseException, limit: int = 200) -> str:
    """Return an exception's message as one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 3] + "..."


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download (into `folder`) and parse what a source holds.

    Raises
    ------
    SourceError
        If the source does not deliver a file that its parser can read.
    """
    module = import_module(f"mmbench.datasets.fetch.sources.{KINDS[source.kind]}")
    function: Callable[[Card, Source, Path, bool], Parsed] = module.obtain
    try:
        return function(card, source, folder, progress)
    except ValueError as error:
        name = source.urls[0] if source.urls else source.label
        raise SourceError(f"{name}: {one_line(error)}") from error
