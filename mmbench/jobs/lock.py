"""One run at a time in a results folder."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmbench.errors import UserError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file.

    The kernel drops the lock when its holder dies, so a file left by a killed run is harmless.

    Parameters
    ----------
    path : Path
        Created when it is not there, and left behind: deleting it could take away a lock from a
        process that has just opened it.

    Raises
    ------
    UserError
        If another process holds it; the message says which.
    """
    import fcntl

    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise UserError(f"{path.parent}: in use by {holder}; wait for it or end it") from None
        except OSError as error:  # file systems of some clusters have no locks
            warnings.warn(
                f"{path.parent}: cannot be locked ({error.strerror}); start no second run in it",
                stacklevel=3,
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield
