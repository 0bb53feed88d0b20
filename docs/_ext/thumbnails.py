"""Alternative texts of the thumbnails in the gallery, which sphinx-gallery leaves empty.

A thumbnail shows the first picture of its example. Both have the same text: the titles in the
picture, from which sphinx-gallery makes the text of the picture.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

THUMBNAIL = re.compile(r"(sphx_glr_(\w+)_thumb\.\w+\n +:alt:)$", re.M)
PICTURE = re.compile(r"image-sg:: .*\n +:alt: (.+)$", re.M)


def describe(app: Sphinx, page: str, content: list[str]) -> None:
    """Write the texts into a page with thumbnails."""

    def described(thumbnail: re.Match[str]) -> str:
        example = Path(app.srcdir, "gallery", f"{thumbnail[2]}.rst").read_text(encoding="utf-8")
        picture = PICTURE.search(example)  # None if the examples are not run
        return f"{thumbnail[1]} {picture[1]}" if picture else thumbnail[0]

    content[0] = THUMBNAIL.sub(described, content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("source-read", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
