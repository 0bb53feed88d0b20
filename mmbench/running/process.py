"""The life of a worker process: serve tasks, never outlive the process that started it.

Imports nothing that loads BLAS before the number of threads is set.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection, wait
from typing import Any

#: One thread for each library: parallelism is over pairs of classes and over processes.
PINNED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def serve(connection: Connection, modules: tuple[str, ...] = ()) -> None:
    """Run the tasks that arrive, until the other end closes.

    Parameters
    ----------
    connection : Connection
        Brings (function, arguments) and takes (True, result) or (False, exception).
    modules : tuple of str
        Imported before the first task arrives.
    """
    _ask_kernel_to_end_orphans()
    threading.Thread(target=_die_with_parent, daemon=True).start()
    os.environ.update(dict.fromkeys(PINNED, "1"))
    for module in modules:
        importlib.import_module(module)
    while True:
        try:
            function, args = connection.recv()
        except (EOFError, OSError):
            return
        _reply(connection, *_call(function, args))


def _call(function: Any, args: tuple) -> tuple[bool, Any]:
    try:
        return True, function(*args)
    except Exception as error:
        return False, error


def _reply(connection: Connection, ok: bool, value: Any) -> None:
    try:
        connection.send((ok, value))
    except BrokenPipeError:
        return
    except Exception as error:  # what cannot be pickled is told in words
        connection.send((False, RuntimeError(f"the result cannot be sent: {error}")))


def _ask_kernel_to_end_orphans() -> None:
    """On Linux the kernel ends an orphan even while compiled code keeps all its threads waiting."""
    if sys.platform == "linux":
        import ctypes

        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _die_with_parent() -> None:
    """End this process when its parent is gone, even by a signal that nobody can catch."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
