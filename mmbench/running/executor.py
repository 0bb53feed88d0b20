"""Where jobs run: a small interface, and its local implementation by worker processes.

A task is a picklable function with picklable arguments, and its result comes back as a `Future`.
Nothing else is shared with a worker, so a cluster can stand behind the same three verbs.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

#: One thread for each library: parallelism is over pairs of classes and over processes.
PINNED = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class WorkerDied(Exception):
    """The process that ran a task ended before the task did."""


class Executor(Protocol):
    """What the runner needs to know of a place where jobs run.

    Attributes
    ----------
    slots : int
        Number of tasks that may run at the same time.
    """

    slots: int

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Start a task. At most `slots` of them run at any time."""

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none when `timeout` seconds pass first.

        A task whose worker died ends with the exception `WorkerDied`.
        """

    def cancel(self) -> None:
        """Stop every running task at once, and release the workers."""


class SerialExecutor:
    """Runs each task in this process, at the moment it is submitted: for tests and debuggers."""

    slots = 1

    def __init__(self) -> None:
        self._ended: list[Future] = []

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Run a task."""
        future: Future = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        self._ended.append(future)
        return future

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def cancel(self) -> None:
        """Forget results that nobody asked for."""
        self._ended = []


class LocalExecutor:
    """Worker processes on this computer, one a slot.

    A process is started when its slot is first needed, serves task after task, and is replaced
    when it dies; a death ends only the task that the process was running. Workers are killed by
    `cancel`, and end by themselves when this process dies in any way.

    Parameters
    ----------
    slots : int
        Number of processes.
    modules : tuple of str
        What a process imports when it starts.
    """

    def __init__(self, slots: int, modules: tuple[str, ...] = ()):
        self.slots = slots
        self._slots = [_Slot(modules) for _ in range(slots)]

    def start(self) -> None:
        """Start the first process now, so that it imports while this one has other things to do."""
        self._slots[0].spawn()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        """Start a task in a free slot.

        Raises
        ------
        RuntimeError
            If every slot is busy.
        """
        for slot in self._slots:
            if slot.future is None:
                return slot.start(function, args)
        raise RuntimeError(f"all {self.slots} slots are busy")

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none when `timeout` seconds pass first."""
        busy = [slot for slot in self._slots if slot.future is not None]
        ready = set(wait([slot.connection for slot in busy], timeout))
        return [slot.finish() for slot in busy if slot.connection in ready]

    def cancel(self) -> None:
        """Kill the workers."""
        for slot in self._slots:
            slot.kill()


class _Slot:
    """One worker process and the task that it runs."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules = modules
        self.future: Future | None = None
        self.process: Any = None
        self.connection: Any = None

    def start(self, function: Callable[..., Any], args: Iterable[Any]) -> Future:
        task = function, tuple(args)
        if self.process is None:
            self.spawn()
        try:
            self.connection.send(task)
        except BrokenPipeError:  # the worker was killed while it had nothing to do
            self.spawn()
            self.connection.send(task)
        self.future = Future()
        self.future.set_running_or_notify_cancel()
        return self.future

    def spawn(self) -> None:
        # "spawn" rather than "fork": a forked child would inherit the locked mutexes and the
        # thread pools of BLAS, OpenMP and Numba.
        self.kill()
        resource_tracker.ensure_running()  # its start would lift the block below
        context = multiprocessing.get_context("spawn")
        self.connection, remote = context.Pipe()
        self.process = context.Process(target=serve, args=(remote, self.modules), daemon=True)
        # Ctrl-C reaches the whole process group. The worker inherits the block, from its first
        # instruction on: what becomes of it is for this process to decide.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        remote.close()  # ours must be the only copy here, or the worker's death is no end of file

    def finish(self) -> Future:
        """Return the future of the task, now with its result or the reason why there is none."""
        future, self.future = self.future, None
        assert future is not None
        try:
            ok, value = self.connection.recv()
        except (EOFError, OSError):
            future.set_exception(WorkerDied(self._death()))
        else:
            future.set_result(value) if ok else future.set_exception(value)
        return future

    def _death(self) -> str:
        self.process.join(timeout=10)
        code = self.process.exitcode or 0
        self.kill()
        if code >= 0:
            return f"the worker process ended with exit status {code}"
        hint = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
        return f"the worker process was ended by {signal.Signals(-code).name}{hint}"

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
        self.process = self.connection = self.future = None


# -- inside a worker process ----------------------------------------------------------------------


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
