"""Data that are drawn, not read."""

from __future__ import annotations

from pathlib import Path

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.generators import generate


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Draw the card's data with the card's seed."""
    return generate(str(source.loader), **source.options)
