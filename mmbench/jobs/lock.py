"""The lock of a results folder."""

from __future__ import annotations

import errno
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmbench.errors import UserError
from mmbench.jobs.disk import read_regular

#: Error numbers by which a file system reports that it supports no locks, as on some clusters.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock a file during a ``with`` block; if the process dies, the system releases the lock.

    Parameters
    ----------
    path : Path
        Path of the lock file; created if it does not exist, and not deleted afterwards.

    Raises
    ------
    UserError
        If another process holds the lock; the message names the process.
    """
    from filelock import FileLock, Timeout

    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UserError(f"{path}: is a link, or no regular file; remove it")
    lock = FileLock(path, timeout=0, fallback_to_soft=False, on_acquired=_write_holder)
    try:
        lock.acquire()
    except Timeout:
        text = read_regular(path)[:200].decode("ascii", errors="ignore").strip()
        holder = text if text and text.isprintable() else "another process"
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
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
