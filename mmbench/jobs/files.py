"""Files that are there completely or not at all, whatever kills the process that writes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

#: Ending of files that are being written; after a crash they are rubbish.
TEMPORARY = ".tmp"


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that no reader and no crash ever meets a part of it.

    Parameters
    ----------
    path : Path
    write : callable
        Gets the open temporary file.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path) -> None:
    """Delete what a killed process left half written. Only the holder of a lock may."""
    for path in folder.glob("*" + TEMPORARY):
        path.unlink(missing_ok=True)
