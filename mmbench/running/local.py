"""Worker processes on this computer, with limits on their time, memory and output.

A task is a picklable function with picklable arguments, and its result comes back as a `Future`.
Nothing else is shared with a worker, so that a cluster fits the same interface, `Executor`. A
worker is a plain subprocess that runs `serve`: messages to it are (function, arguments), messages
from it (kind, value) with the kinds below. It leads a process group of its own, with which the
processes that a job has started end.

The reason for a pool of our own: Loky 3.7 ends every task if one worker dies. Pebble 5.2 ends only
the task of that worker, but a busy worker outlives its killed parent, and Ctrl-C reaches a worker
that is still importing. A LocalCluster of dask.distributed takes 4 s to start and 27 ms per task
(this pool: 0.4 s and 0.6 ms), and 7 s to give up a task that ends its worker.
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
from typing import Any, Protocol

from mmbench.errors import Status, UserError
from mmbench.jobs.limits import NO_LIMITS, Limits


class WorkerDied(Exception):
    """The process that ran a task ended before the task did."""


class LimitReached(WorkerDied):
    """The process that ran a task was ended at a limit of the task.

    Parameters
    ----------
    status : {Status.TIME_LIMIT, Status.MEMORY_LIMIT}
    reached : dict
        "stage" that the task told last, "seconds", and "bytes" if they were limited.
    """

    def __init__(self, status: Status, reached: dict[str, Any]):
        super().__init__(status, reached)
        self.status, self.reached = status, reached


class Executor(Protocol):
    """The interface of a place where jobs run."""

    #: Largest number of threads of one task; it takes as many slots.
    task_threads: int
    #: Whether tasks may run on a computer that sees other files than this one.
    remote: bool

    @property
    def scheduler(self) -> tuple[str, str] | None:
        """Address of the Dask scheduler and the batch of tasks, for tasks with their own tasks."""

    @property
    def slots(self) -> int:
        """Number of tasks that may run at the same time; may grow and shrink during a run."""

    @property
    def computer_slots(self) -> int:
        """Largest number of slots that share the memory of one computer."""

    def submit(
        self, function: Callable[..., Any], *args: Any, limits: Limits = NO_LIMITS
    ) -> Future:
        """Start a task. At most `slots` of them run at any time."""

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none if `timeout` seconds pass first.

        A task whose worker died or went beyond its limits ends with the exception `WorkerDied`.
        """

    def cancel(self) -> None:
        """Stop every running task at once; the next one may be submitted."""

    def close(self) -> None:
        """Release the workers for good."""


#: A task begins; what it tells of itself; how it ended.
STARTED, NOTE, RESULT, ERROR = "started", "note", "result", "error"

_connection: Connection | None = None


def tell(note: Any) -> None:
    """Tell the process that started this one how far the task is; elsewhere do nothing."""
    if _connection is not None:
        _connection.send((NOTE, note))


def serve(descriptor: int, modules: Sequence[str]) -> None:
    """Run the tasks that arrive at one end of a socket pair, until the other end closes.

    `modules` are imported before the first task arrives.
    """
    global _connection
    if sys.platform == "linux":
        # ends an orphan even if compiled code keeps all its threads waiting
        import ctypes

        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
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
        except Exception as error:  # not picklable
            connection.send((ERROR, RuntimeError(f"the result cannot be sent: {error}")))


def _die_with_parent(descriptor: int) -> None:
    """End this process when its parent is gone, even by a signal that nobody can catch."""
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-up and error alone
    poll.poll()
    os._exit(1)


#: Calls of POSIX by which worker processes are started, watched and ended.
POSIX = (
    (signal, "pthread_sigmask"),
    (select, "poll"),
    (os, "killpg"),
    (os, "set_blocking"),
)
#: One thread for each library: parallelism is over pairs of classes and over processes.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
#: Seconds between two looks at tasks that have limits.
POLL_SECONDS = 0.05
#: Seconds that a task has to end by itself once its time is up; a share of that time, if more.
GRACE_SECONDS, GRACE_SHARE = 5.0, 0.05
#: Share of one core that may go into reading the memory of a task.
MEMORY_LOOK_SHARE = 0.05
#: Bytes that are shown of what a worker prints during one task.
OUTPUT_BYTES = 2**20


def check_platform() -> None:
    """Raise UserError if this system lacks what worker processes need."""
    missing = [f"{module.__name__}.{name}" for module, name in POSIX if not hasattr(module, name)]
    if missing:
        raise UserError(
            f"worker processes need {missing[0]}, which Python does not have on "
            f"{platform.system()}; run mmbench on Linux or macOS, or on Windows inside WSL"
        )


class LocalExecutor:
    """Worker processes on this computer, one per slot; each imports `modules` when it starts.

    A process is started when its slot is first needed, serves task after task, and is replaced
    when it dies; a death ends only the task that the process was running. Workers are killed by
    `cancel` or at a limit, and end by themselves when this process dies in any way. Raises
    UserError on systems without the calls of POSIX.
    """

    remote = False
    scheduler: tuple[str, str] | None = None

    def __init__(self, slots: int, modules: Sequence[str] = ()):
        check_platform()
        self.slots = self.task_threads = self.computer_slots = slots
        self._workers = [_Worker(tuple(modules)) for _ in range(slots)]

    def start(self) -> None:
        """Start the first process now, so that it imports while this one has other things to do."""
        self._workers[0].spawn()

    def submit(
        self, function: Callable[..., Any], *args: Any, limits: Limits = NO_LIMITS
    ) -> Future:
        """Start a task in a free slot; raises RuntimeError if every slot is busy.

        Raises UserError if no process can be started.
        """
        for worker in self._workers:
            if worker.future is None:
                return worker.start(function, args, limits)
        raise RuntimeError(f"all {self.slots} slots are busy")

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none if `timeout` seconds pass first."""
        busy = [worker for worker in self._workers if worker.future is not None]
        end = time.monotonic() + timeout if timeout is not None else float("inf")
        look = POLL_SECONDS if any(worker.limits != NO_LIMITS for worker in busy) else float("inf")
        while busy:
            seconds = min(look, end - time.monotonic())
            places = [place for worker in busy for place in worker.places]
            ready = set(wait(places, None if seconds == float("inf") else max(0.0, seconds)))
            ended = [future for worker in busy if (future := worker.look(ready)) is not None]
            if ended or time.monotonic() >= end:
                return ended
        return []

    def cancel(self) -> None:
        """Kill the workers that run a task; idle workers wait for the next one."""
        for worker in self._workers:
            if worker.future is not None:
                worker.kill()

    def close(self) -> None:
        """Kill the workers."""
        for worker in self._workers:
            worker.kill()

    def kill(self) -> None:
        """Kill the processes, from any thread; their tasks end with `WorkerDied`."""
        for worker in self._workers:
            worker.cancelled = True
            worker.kill_process()


def _search_path() -> list[str]:
    """Return the folders from which a worker imports: those of this process, the current one last.

    A ``random.py`` there must not replace the standard library's. A folder in PYTHONPATH, or the
    folder that holds mmbench, keeps its place.
    """
    here = os.getcwd()
    given = [os.path.abspath(e) for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e]
    first = here in (*given, str(Path(__file__).parents[2]))
    places = [entry for entry in sys.path if entry and (first or entry != here)]
    return places if here in places else [*places, here]


class _Worker:
    """One process and the task that it runs."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules = modules
        self.future: Future | None = None
        self.limits = NO_LIMITS
        self.process: subprocess.Popen | None = None
        self.cancelled = False

    def start(self, function: Callable[..., Any], args: tuple, limits: Limits) -> Future:
        self.task, self.limits, self.sent_again = (function, args), limits, False
        self.cancelled, self.next_look = False, 0.0
        self._send()
        self.future = Future()
        self.future.set_running_or_notify_cancel()
        return self.future

    def _send(self) -> None:
        if self.process is None:
            self.spawn()
        self.since, self.note, self.printed, self.begun = time.monotonic(), None, 0, False
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is seen when it is read
            self.connection.send(self.task)

    def spawn(self) -> None:
        # A new interpreter rather than a fork: a forked child would inherit the locked mutexes
        # and the thread pools of BLAS, OpenMP and Numba.
        command = "from mmbench.running.local import serve; serve(*{!r})"
        changes = {"PYTHONPATH": os.pathsep.join(_search_path()), "PYTHONUNBUFFERED": "1"}
        # The worker inherits the block, from its first instruction on: this process decides what
        # becomes of a task at Ctrl-C.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            ours, theirs = socket.socketpair()
            output, printed = os.pipe()
            with theirs, os.fdopen(printed, "wb") as shown:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", command.format((theirs.fileno(), self.modules))],
                    env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1"), **changes},
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=shown,
                    stderr=shown,
                    process_group=0,
                )
        except OSError as error:
            raise UserError(
                f"no worker process can be started ({error.strerror}); ask for fewer by --jobs, or "
                "raise the limits of open files and processes (ulimit -n, ulimit -u)"
            ) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self.connection, self.output = Connection(ours.detach()), output
        self.places: list[Any] = [self.connection, self.output]
        os.set_blocking(self.output, False)
        self.tail, self.begun = b"", False

    def look(self, ready: set) -> Future | None:
        """Take what the process sent; return the future of its task where that has ended."""
        if self.output in ready:
            self._show()
        if self.connection in ready:
            return self._receive()
        return self._check_limits() if self.limits != NO_LIMITS else None

    def _receive(self) -> Future | None:
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError):
            return self._died()
        if kind == STARTED:
            self.begun, self.since = True, time.monotonic()
        elif kind == NOTE:
            self.note = value
        return self._end(value, kind) if kind in (RESULT, ERROR) else None

    def _end(self, value: Any, kind: str = ERROR) -> Future:
        future, self.future = self.future, None
        assert future is not None
        if kind == RESULT:
            future.set_result(value)
        else:
            future.set_exception(value)
        return future

    def _check_limits(self) -> Future | None:
        """End a process that is beyond a limit of its task and did not stop by itself."""
        limits = self.limits
        reached: dict[str, Any] = {"stage": self.note, "seconds": time.monotonic() - self.since}
        now = time.monotonic()
        if limits.memory is not None and now >= self.next_look:
            from mmbench.machines.base.search_space import private_bytes

            assert self.process is not None
            reached["bytes"] = private_bytes(self.process.pid)
            end = time.monotonic()
            self.next_look = end + (end - now) / MEMORY_LOOK_SHARE
            if reached["bytes"] > limits.memory:
                return self._stop(LimitReached(Status.MEMORY_LIMIT, reached))
        if limits.time is None or not self.begun:
            return None
        grace = max(GRACE_SECONDS, GRACE_SHARE * limits.time)
        if reached["seconds"] > limits.time + grace:
            return self._stop(LimitReached(Status.TIME_LIMIT, reached))
        return None

    def _stop(self, error: LimitReached) -> Future:
        future = self._end(error)
        self.kill()
        return future

    def _show(self) -> None:
        """Pass on what the process printed, up to a limit per task."""
        try:
            text = os.read(self.output, 2**16)
        except BlockingIOError:
            return
        if not text:  # it has closed its output
            self.places = [self.connection]
        self.tail = (self.tail + text)[-2000:]
        left, self.printed = OUTPUT_BYTES - self.printed, self.printed + len(text)
        sys.stderr.write(text[: max(0, left)].decode(errors="replace"))
        if left >= 0 and self.printed > OUTPUT_BYTES:
            sys.stderr.write(f"\na worker printed more than {OUTPUT_BYTES} bytes: rest dropped\n")

    def _died(self) -> Future | None:
        """End the task of a process that is gone; send it again if it had not begun.

        Raises UserError if the process could not even import what it needs.
        """
        assert self.process is not None
        code = self.process.wait(timeout=10)
        self._show()
        self.kill_process()
        self._release()
        if self.cancelled:
            return self._end(WorkerDied("the run of the task was cancelled"))
        if not self.begun and code >= 0:
            last = self.tail.decode(errors="replace").strip().rpartition("\n")[2]
            raise UserError(f"a worker process cannot start: {last or f'exit status {code}'}")
        if not self.begun and not self.sent_again:  # killed while it had nothing to do
            self.sent_again = True
            self._send()
            return None
        if code >= 0:
            return self._end(WorkerDied(f"the worker process ended with exit status {code}"))
        hint = ", perhaps because memory ran out" if -code == signal.SIGKILL else ""
        text = f"the worker process was ended by {signal.Signals(-code).name}{hint}"
        return self._end(WorkerDied(text))

    def kill(self) -> None:
        """Kill the process and forget its task."""
        self.future = None
        self.kill_process()
        self._release()

    def kill_process(self) -> None:
        """Kill the process with all that it has started, from any thread."""
        process = self.process
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):  # no process is left in the group
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()

    def _release(self) -> None:
        if self.process is not None:
            self.connection.close()
            os.close(self.output)
        self.process = None
