"""Files that are written completely or not at all, and a lock for the folder that holds them."""

import errno
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mmbench.errors import UserError

#: Ending of files that are being written; what a crash leaves of them is deleted.
TEMPORARY = ".tmp"
#: What a file system without locks answers, such as those of some clusters.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


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


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file, which the kernel releases when its holder dies in any way.

    Parameters
    ----------
    path : Path
        Created when it is not there, and left behind.

    Raises
    ------
    UserError
        If another process holds it; the message names that process.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0, fallback_to_soft=False, on_acquired=_write_holder)
    try:
        lock.acquire()
    except Timeout:
        holder = path.read_text().strip() or "another process"
        raise UserError(f"{path.parent}: in use by {holder}; wait for it or end it") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        text = f"{path.parent}: cannot be locked ({error.strerror}); start no second run in it"
        warnings.warn(text, stacklevel=3)
    try:
        yield
    finally:
        lock.release()


def _write_holder(descriptor: int) -> None:
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
