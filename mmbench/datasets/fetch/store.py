"""The local store: a folder of files whose content is known to be right.

It is laid out like a mirror. A file arrives under a temporary name on the same file system and is
renamed once its hash, or its parsed content, agreed with the card. Nothing here deletes a file.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmbench.datasets.card import Card, CardFile, Source
from mmbench.errors import UserError

#: Where temporary files live; a leftover of a killed process is harmless and easily seen.
SCRATCH = ".incoming"


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Store:
    """The folder that holds fetched data.

    Parameters
    ----------
    root : Path
        Created when the first file arrives.
    """

    def __init__(self, root: Path):
        self.root = Path(root)

    def path(self, file: CardFile) -> Path:
        """Return the place of a file that is known byte by byte."""
        return self.root / file.path

    def packed(self, card: Card, source: Source) -> Path:
        """Return the place of the parsed arrays of a source without known bytes."""
        return self.root / card.name / f"{source.label}.npz"

    def admit(self, temporary: Path, place: Path) -> None:
        """Move a verified file into its place in one step."""
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, place)
        except OSError as error:
            raise UserError(f"{place}: cannot store data: {error.strerror or error}") from error

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary folder on the store's file system, removed afterwards."""
        try:
            incoming = self.root / SCRATCH
            incoming.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=incoming))
        except OSError as error:
            message = f"{self.root}: cannot store data: {error.strerror or error}"
            raise UserError(message) from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
