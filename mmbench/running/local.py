"""Worker processes on this computer, with limits on time, memory and output.

A worker runs `serve`, receives (function, arguments) and sends (kind, value). It leads a process
group, so that one signal ends the worker and all processes that it has started.

Loky 3.7 ends all tasks if one worker dies; a busy worker of Pebble 5.2 survives its killed parent;
a LocalCluster of dask.distributed starts ten times as slowly.
"""

import importlib
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from mmbench.errors import Status, UserError, visible
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.plugins import FOLDERS


class WorkerDied(Exception):
    """The worker process ended before its task ended."""


class LimitReached(WorkerDied):
    """The worker process was killed because its task exceeded a limit.

    Parameters
    ----------
    status : {Status.TIME_LIMIT, Status.MEMORY_LIMIT}
        The limit that was exceeded.
    reached : dict
        The progress of the task. The entry "seconds" is the time since the start of the task, and
        "stage" is the last stage that the task reported. The entry "bytes" is the memory that the
        process used, if it was measured.
    """

    def __init__(self, status: Status, reached: dict[str, Any]):
        super().__init__(status, reached)
        self.status, self.reached = status, reached


#: Kinds of messages from a worker: the start, a stage, the progress, the result or the error of a
#: task.
STARTED, NOTE, PROGRESS, RESULT, ERROR = "started", "note", "progress", "result", "error"

_connection: Connection | None = None
_sending = threading.Lock()


class Task(Future):
    """The future of a task, with the last progress message of its worker."""

    progress = ""


def tell(note: Any) -> None:
    """Report the stage of the running task to the parent process; outside a worker, do nothing."""
    _send((NOTE, note))


def show(progress: str) -> None:
    """Report the progress of the running task, from any thread; outside a worker, do nothing."""
    _send((PROGRESS, progress))


def _send(message: tuple[str, Any]) -> None:
    if _connection is not None:
        with _sending:
            _connection.send(message)


def serve(descriptor: int, modules: Sequence[str], folders: Sequence[str] = ()) -> None:
    """Run tasks that are received on a socket, until the parent process closes the connection.

    The modules in `modules` are imported before the first task is received. Modules that the user
    names are also searched in `folders`.
    """
    global _connection
    FOLDERS.extend(folders)
    if sys.platform == "linux":
        # Linux kills this process if its parent dies, even while compiled code holds the GIL; 1 is
        # PR_SET_PDEATHSIG
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
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
        try:
            reply = RESULT, function(*args)
        except Exception as error:
            reply = ERROR, error
        try:
            connection.send(reply)
        except BrokenPipeError:
            return
        except Exception as error:  # the result is not picklable
            connection.send((ERROR, RuntimeError(f"the result cannot be sent: {error}")))


def _die_with_parent(descriptor: int) -> None:
    """Wait until the parent process dies; then kill this process and all its child processes.

    On Linux, the signal that `serve` requests may kill this process before this function kills the
    child processes.
    """
    poll = select.poll()
    poll.register(descriptor, 0)  # with the mask 0, `poll` waits only for hang-up and error events
    poll.poll()
    os.killpg(0, signal.SIGKILL)  # a worker and its child processes are a process group


#: POSIX functions that are needed to start, watch and end worker processes.
POSIX = ((signal, "pthread_sigmask"), (select, "poll"), (os, "killpg"), (os, "set_blocking"))
#: Environment variables that set the number of threads of a library. Workers run each library with
#: one thread, since mmbench runs jobs and pairs of classes in parallel.
THREAD_VARIABLES = [f"{n}_NUM_THREADS" for n in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")]
THREAD_VARIABLES += ["VECLIB_MAXIMUM_THREADS"]
#: Interval between two checks of the limits of running tasks, in seconds.
POLL_SECONDS = 0.05
#: Maximum interval between two checks that busy worker processes are alive, in seconds.
LOOK_SECONDS = 1.0
#: A task that does not end by itself is killed after the time limit plus a grace period. The grace
#: period is the maximum of GRACE_SECONDS and GRACE_SHARE times the time limit.
GRACE_SECONDS, GRACE_SHARE = 5.0, 0.05
#: Maximum fraction of the main process's time that is spent on measuring the memory of one task.
MEMORY_LOOK_SHARE = 0.05
#: Maximum number of bytes of a worker's output that are printed per task.
OUTPUT_BYTES = 2**20


def check_platform() -> None:
    """Raise UserError if this operating system lacks a function in `POSIX`."""
    missing = [f"{module.__name__}.{name}" for module, name in POSIX if not hasattr(module, name)]
    if missing:
        lack = f"need {missing[0]}, which Python does not have on {platform.system()}"
        systems = "run mmbench on Linux or macOS, or on Windows inside WSL"
        raise UserError(f"worker processes {lack}; {systems}")


class LocalExecutor:
    """An executor with one worker process per slot; each worker imports `modules` when it starts.

    The first worker starts at once, and imports modules while the main process continues; the
    others start when their slots are first used. A worker that dies is replaced, and only its task
    is lost. A task that exceeds a limit is ended with its worker. If the main process dies, all
    workers end. Raises UserError on operating systems that lack a function in `POSIX`.

    `slots` is the maximum number of simultaneous tasks with one thread each, `task_threads` the
    maximum number of threads of a task, and `computer_slots` the number of slots that share the
    memory of one computer. `remote` is false and `scheduler` None, unlike on a cluster.
    """

    remote = False
    scheduler: tuple[str, str, Any] | None = None

    def __init__(self, slots: int, modules: Sequence[str] = ()):
        check_platform()
        self.slots = self.task_threads = self.computer_slots = slots
        self.workers = [_Worker(tuple(modules)) for _ in range(slots)]
        self.workers[0].spawn()

    def submit(self, function: Callable, *args: Any, limits: Limits = NO_LIMITS) -> Future:
        """Start a task in a free slot.

        Raises RuntimeError if all slots are busy, and UserError if no process can be started.
        """
        for worker in self.workers:
            if worker.future is None:
                return worker.start(function, args, limits)
        raise RuntimeError(f"all {self.slots} slots are busy")

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Wait until a task ends, at most `timeout` seconds; return the futures of ended tasks.

        If the worker of a task died, or if the task exceeded a limit, the future of the task has
        the exception `WorkerDied`.
        """
        busy = [worker for worker in self.workers if worker.future is not None]
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        limited = any(worker.limits != NO_LIMITS for worker in busy)
        while busy:
            pause = min(POLL_SECONDS if limited else LOOK_SECONDS, end - time.monotonic())
            ready = set(wait([place for w in busy for place in w.places], max(0.0, pause)))
            ended = [future for worker in busy if (future := worker.look(ready)) is not None]
            if ended or time.monotonic() >= end:
                return ended
        return []

    def cancel(self) -> None:
        """Kill all workers that run a task; idle workers wait for further tasks."""
        for worker in self.workers:
            if worker.future is not None:
                worker.kill()

    def close(self) -> None:
        """Kill all workers."""
        for worker in self.workers:
            worker.kill()

    def kill(self) -> None:
        """Kill all worker processes; may be called from any thread.

        The futures of running tasks get the exception `WorkerDied`.
        """
        for worker in self.workers:
            worker.cancelled = True
            worker.kill_process()


def _search_path() -> tuple[list[str], list[str]]:
    """Return the folders in the PYTHONPATH of a worker, and the folders of the user's modules.

    The current folder is a folder of modules that the user may name (`mmbench.plugins.FOLDERS`),
    unless it is in PYTHONPATH already or contains the package mmbench.
    """
    # In ``sys.path``, the current folder would replace standard modules by files such as
    # ``random.py``; in PYTHONPATH, Python would run its ``sitecustomize.py``.
    here = os.getcwd()
    given = [os.path.abspath(e) for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e]
    first = here in (*given, str(Path(__file__).parents[2]))
    places = [entry for entry in sys.path if entry and (first or entry != here)]
    return places, [] if here in places else [here]


class _Worker:
    """A worker process and its running task."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules, self.limits, self.cancelled = modules, NO_LIMITS, False
        self.future: Task | None = None
        self.process: Any = None  # a subprocess.Popen if the process has been started

    def start(self, function: Callable[..., Any], args: tuple, limits: Limits) -> Future:
        self.task, self.limits, self.sent_again = (function, args), limits, False
        self.cancelled, self.next_look = False, 0.0
        self._send()
        self.future = Task()
        return self.future

    def _send(self) -> None:
        if self.process is None:
            self.spawn()
        self.since, self.note, self.printed, self.begun = time.monotonic(), None, 0, False
        with suppress(BrokenPipeError, ConnectionResetError):  # `_receive` detects dead processes
            self.connection.send(self.task)

    def spawn(self) -> None:
        # A new interpreter is started, since a forked process would inherit locked mutexes and the
        # thread pools of BLAS, OpenMP and Numba.
        places, folders = _search_path()
        head = "from mmbench.running.local import serve; serve"
        changes = {"PYTHONPATH": os.pathsep.join(places), "PYTHONUNBUFFERED": "1"}
        # The worker inherits the blocked SIGINT, so that only the main process handles Ctrl-C.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            ours, theirs = socket.socketpair()
            output, printed = os.pipe()
            call = theirs.fileno(), self.modules, folders
            with theirs, os.fdopen(printed, "wb") as shown:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", f"{head}{call!r}"],
                    env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), **changes},
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=shown,
                    stderr=shown,
                    process_group=0,
                )
        except OSError as error:
            problem = f"no worker process can be started ({error.strerror})"
            limits = "raise the limits of open files and processes (ulimit -n, ulimit -u)"
            raise UserError(f"{problem}; give a smaller --jobs, or {limits}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.connection, self.output = Connection(ours.detach()), output
        self.places: list[Any] = [self.connection, self.output]
        os.set_blocking(self.output, False)
        self.tail, self.begun = b"", False

    def look(self, ready: set) -> Future | None:
        """Read the messages and the output of the process; return the future of an ended task."""
        if self.output in ready:
            self._show()
        if self.connection in ready:
            return self._receive()
        # child processes of a dead worker may keep the worker's connection open
        dead = self.process.poll() is not None and not self.connection.poll()
        return self._died() if dead else self._check_limits()

    def _receive(self) -> Future | None:
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError):
            return self._died()
        if kind == STARTED:
            self.begun, self.since = True, time.monotonic()
        elif kind == NOTE:
            self.note = value
        elif kind == PROGRESS and self.future is not None:
            self.future.progress = value
        return self._end(value, kind) if kind in (RESULT, ERROR) else None

    def _end(self, value: Any, kind: str = ERROR) -> Future:
        future, self.future = self.future, None
        assert future is not None
        future.set_result(value) if kind == RESULT else future.set_exception(value)
        return future

    def _check_limits(self) -> Future | None:
        """Kill the process if its task exceeds a limit; return the future of the killed task."""
        limits, now, status = self.limits, time.monotonic(), None
        reached: dict[str, Any] = {"stage": self.note, "seconds": now - self.since}
        if limits.memory is not None and now >= self.next_look:
            from mmbench.memory import private_bytes

            reached["bytes"] = private_bytes(self.process.pid)
            end = time.monotonic()
            self.next_look = end + (end - now) / MEMORY_LOOK_SHARE
            if reached["bytes"] > limits.memory:
                status = Status.MEMORY_LIMIT
        most = float("inf") if limits.time is None else limits.time
        if self.begun and reached["seconds"] > most + max(GRACE_SECONDS, GRACE_SHARE * most):
            status = status or Status.TIME_LIMIT
        if status is None:
            return None
        self._release()
        return self._end(LimitReached(status, reached))

    def _show(self) -> None:
        """Print the output of the process, up to `OUTPUT_BYTES` per task."""
        try:
            text = os.read(self.output, 2**16)
        except BlockingIOError:
            return
        if not text:  # the process has closed its output
            self.places = [self.connection]
        self.tail = (self.tail + text)[-2000:]
        left, self.printed = OUTPUT_BYTES - self.printed, self.printed + len(text)
        shown = visible(text[: max(0, left)].decode(errors="replace"))
        if left >= 0 and self.printed > OUTPUT_BYTES:
            shown += f"\na worker printed more than {OUTPUT_BYTES} bytes: rest not shown\n"
        with suppress(OSError):  # the run continues if its output cannot be written
            sys.stderr.write(shown)

    def _died(self) -> Future | None:
        """End the task of a dead process, and return the future of the task.

        If the process was killed before it began the task, the task is sent to a new process once,
        and None is returned.
        """
        code = self.process.wait(timeout=10)
        self._show()
        self._release()
        if self.cancelled:
            return self._end(WorkerDied("the run of the task was cancelled"))
        if not self.begun and (code >= 0 or not self.sent_again):
            future, self.future = self.future, None  # the slot is free if an error is raised
            if code >= 0:
                # the process exited by itself, for example because an import failed
                last = self.tail.decode(errors="replace").strip().rpartition("\n")[2]
                raise UserError(f"a worker process cannot start: {last or f'exit status {code}'}")
            self.sent_again = True  # the process was killed before it began the task
            self._send()
            self.future = future
            return None
        how = f"ended with exit status {code}"
        if code < 0:
            hint = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
            how = f"was ended by {signal.Signals(-code).name}{hint}"
        return self._end(WorkerDied(f"the worker process {how}"))

    def kill(self) -> None:
        """Kill the process and drop its task."""
        self.future = None
        self._release()

    def kill_process(self) -> None:
        """Kill the process and the processes that it has started; may be called from any thread."""
        if (process := self.process) is not None:
            with suppress(ProcessLookupError, PermissionError):  # no process is left
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()

    def _release(self) -> None:
        """Kill the process and close its streams."""
        if self.process is not None:
            self.kill_process()
            self.connection.close()
            os.close(self.output)
        self.process = None
