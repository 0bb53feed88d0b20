"""Files that are written as a whole or not at all, and read only if they are regular and small."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from mmbench.errors import UserError, converted
from mmbench.jobs.seal import BadRecord

#: Suffix of temporary files; each run starts by deleting the temporary files of killed processes.
TEMPORARY = ".tmp"
#: Maximum sizes of a JSON file and of a file of arrays, in bytes; larger files are not read.
TEXT_BYTES, ARRAYS_BYTES = 2**28, 2**32
#: Flags of `os.open` that refuse links and prevent waiting; 0 on Windows, which lacks these flags.
NOFOLLOW, NONBLOCK = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)
#: Flags of `os.open` for reading; only Windows distinguishes binary files from text files.
READ = os.O_RDONLY | NOFOLLOW | NONBLOCK | getattr(os, "O_BINARY", 0)


#: Content of a file, or a function that writes the content to an open file.
Content = bytes | Callable[[IO[bytes]], object]


def write_atomically(path: Path, content: Content) -> None:
    """Write a file so that no reader sees an incomplete file, even after a crash.

    An old file or link at the path of the temporary file is removed first.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:  # mode x fails if the path exists, even as a link
            _write(file, content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:  # the temporary file exists only after an error
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _write(file: IO[bytes], content: Content) -> None:
    file.write(content) if isinstance(content, bytes) else content(file)


def write_output(path: Path, content: Content, problem: str = "cannot be written") -> None:
    """Write a file that the user names; raise UserError with `problem` if this fails.

    A link, a device or a pipe, such as /dev/stdout, is kept: its target is written. Any other file
    is replaced, see `write_atomically`.
    """
    if not path.name:
        raise UserError(f"{path}: {problem}: it is a folder")
    with converted(f"{path}: {problem}", OSError):
        if not path.is_symlink() and (path.is_file() or not path.exists()):
            write_atomically(path, content)
        else:
            with path.open("wb") as file:
                _write(file, content)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder that the user names, and that need not exist."""
    with converted(f"{folder}: cannot be written", OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_output(folder / name, content)


def read_regular(path: str | Path, most: int = TEXT_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    BadRecord
        If the path is a link, if it is not a regular file, or if the file has more than `most`
        bytes.
    """
    try:
        if not NOFOLLOW and os.path.islink(path):
            raise OSError(errno.ELOOP, "")
        descriptor = os.open(path, READ)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if status.st_size > most:
                raise OSError(errno.EFBIG, f"{status.st_size} bytes, more than {most}")
            # one call may return a part; to open a file object takes as long as to read a record
            return b"".join(iter(lambda: os.read(descriptor, status.st_size + 1), b""))
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:  # the path may be a folder in place of a file
        link = "a link, which is not followed"
        why = link if error.errno == errno.ELOOP else error.strerror
        raise BadRecord(f"cannot be read ({why})") from None


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, so that renames survive a power failure.

    On systems that cannot open folders, this function does nothing.
    """
    with suppress(PermissionError):  # Windows cannot open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
