"""The life of a worker process: serve tasks, never outlive the process that started it.

Started by `mmbench.running.local` as a plain subprocess. Messages to it are (function, arguments);
from it come (kind, value) with the kinds below.
"""

import importlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

#: A task begins; what it tells of itself; how it ended.
STARTED, NOTE, RESULT, ERROR = "started", "note", "result", "error"

_connection: Connection | None = None


def tell(note: Any) -> None:
    """Tell the process that started this one how far the task is; elsewhere do nothing."""
    if _connection is not None:
        _connection.send((NOTE, note))


def serve(descriptor: int, modules: Sequence[str]) -> None:
    """Run the tasks that arrive, until the other end closes.

    Parameters
    ----------
    descriptor : int
        Of one end of a socket pair.
    modules : sequence of str
        Imported before the first task arrives.
    """
    global _connection
    _ask_kernel_to_end_orphans()
    threading.Thread(target=_die_with_parent, args=(descriptor,), daemon=True).start()
    for module in modules:
        importlib.import_module(module)
    connection = _connection = Connection(descriptor)
    while True:
        try:
            function, args = connection.recv()
            connection.send((STARTED, None))
        except (EOFError, OSError):
            return
        _reply(connection, *_call(function, args))


def _call(function: Callable[..., Any], args: tuple) -> tuple[str, Any]:
    try:
        return RESULT, function(*args)
    except Exception as error:
        return ERROR, error


def _reply(connection: Connection, kind: str, value: Any) -> None:
    try:
        connection.send((kind, value))
    except BrokenPipeError:
        return
    except Exception as error:  # what cannot be pickled is told in words
        connection.send((ERROR, RuntimeError(f"the result cannot be sent: {error}")))


def _ask_kernel_to_end_orphans() -> None:
    """On Linux the kernel ends an orphan even while compiled code keeps all its threads waiting."""
    if sys.platform == "linux":
        import ctypes

        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _die_with_parent(descriptor: int) -> None:
    """End this process when its parent is gone, even by a signal that nobody can catch."""
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-up and error alone
    poll.poll()
    os._exit(1)
