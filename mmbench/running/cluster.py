"""Run jobs on a Dask cluster, and train the pairs of classes of a large job on several workers.

Each thread of a Dask worker runs one job at a time in a child process (`mmbench.running.local`), so
a crash or a hanging solver fails one job only. Runs may share a cluster. If a pair has at least
`LEAST_PAIR_ROWS` rows, the child process sends the rows of other pairs to Dask workers, and trains
late pairs itself if it is idle; therefore two jobs cannot block each other.
"""

import gc
import hashlib
import logging
import os
import pickle
import platform
import queue
import shutil
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_limits

import mmbench
from mmbench.errors import UserError, extra
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.plugins import folders_searched
from mmbench.running.environment import library_versions
from mmbench.running.local import LocalExecutor, WorkerDied, check_platform
from mmbench.running.parcel import MissingData, Parcel, pack, unpack

#: Minimum interval between two updates of the list of workers, in seconds.
POLL_SECONDS = 1.0
#: Maximum waiting time for an answer of the Dask scheduler, in seconds.
ANSWER_SECONDS = 5


@dataclass
class _Task:
    """A task that is sent to a Dask cluster."""

    function: Callable[..., Any]
    args: tuple
    limits: Limits
    #: Future that `DaskExecutor.submit` has returned to its caller.
    future: Future
    #: Future of the Dask task.
    remote: Any = None
    #: One entry per submission of the task: the Dask future of the data files that were sent with
    #: the task, or None if no data files were sent.
    sent: list[Any] = field(default_factory=list)


class DaskExecutor:
    """An executor on a Dask cluster; the number of Dask workers may change during a run.

    `address` is a scheduler's address, "local" (a scheduler and `slots` workers start on this
    computer), or a batch system (a scheduler starts here, and workers in at most `slots` batch
    jobs, which dask-jobqueue submits with the arguments `batch`). `say` is called with a message if
    a worker and the main process have different versions of the code or the libraries. Raises
    UserError if a package is not installed, no scheduler answers, or the batch system refuses a
    job.
    """

    remote = True
    task_threads = 1

    #: Number of threads per batch job, and total number of threads of all permitted batch jobs. The
    #: default values are for executors without a batch system.
    capacity = (1, 0)

    def __init__(
        self,
        address: str,
        slots: int,
        modules: Sequence[str],
        say: Callable,
        batch: Mapping[str, Any] | None = None,
    ):
        with extra("dask", "--scheduler"):
            import distributed
        _silence()
        self._modules, self._say, self._address = tuple(modules), say, address
        self.cluster: Any = None
        self._security: Any = None
        if batch is not None:
            self.cluster, cores = _queue_cluster(address, slots, batch)
            self.capacity = cores, cores * slots
            say(f"{address}: submitted the first of at most {slots} jobs, cores per job: {cores}")
        elif address == "local":
            self._security = _certificates(say)
            say(f"scheduler local: workers start, which may take half a minute: {slots}")
            self.cluster = _local_cluster(slots, self._security)
        else:
            _check_greeting(address)
        words = ""
        try:
            self.client = distributed.Client(self.cluster or address, timeout=ANSWER_SECONDS)
            self._own_address = self.client.scheduler_info()["address"]
        except Exception as error:
            # a wrong address, a wrong certificate and a wrong protocol raise different exceptions
            words = " ".join(str(error).split()) or type(error).__name__
        if words:
            # `gc.collect` deletes the client that failed to start. If the failed client were
            # deleted later, while the next client starts, both clients might wait for the same
            # lock for ever.
            gc.collect()
            raise UserError(f"scheduler {address}: no answer ({words})")
        self._tasks: dict[Future, _Task] = {}
        self._ended: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._parcels: dict[str, Any] = {}
        self._threads: dict[str, int] = {}
        self._looked = -POLL_SECONDS
        self.batch = uuid4().hex  # identifier that all tasks share until `cancel` is called

    @property
    def scheduler(self) -> tuple[str, str, Any] | None:
        """Address of the Dask scheduler, identifier of the tasks of this run, and certificates."""
        return self._own_address, self.batch, self._security

    @property
    def slots(self) -> int:
        """Number of threads of all workers, but at least the threads of all permitted batch jobs.

        The list of workers is updated if the last update is `POLL_SECONDS` old; new workers with
        other versions are reported by `say`.
        """
        if time.monotonic() - self._looked >= POLL_SECONDS and self.client.status == "running":
            with self._reached():
                found = self.client.nthreads()
                new = [worker for worker in found if worker not in self._threads]
                theirs = self.client.run(facts, workers=new, on_error="return") if new else {}
            self._threads, self._looked = found, time.monotonic()
            for line in sorted({line for other in theirs.values() for line in differences(other)}):
                self._say(line)
        return max(sum(self._threads.values()), self.capacity[1])

    @property
    def computer_slots(self) -> int:
        """Maximum number of worker threads on one computer.

        Workers with the same host address run on the same computer.
        """
        hosts = Counter[str]()
        for worker, threads in self._threads.items():
            hosts[worker.rpartition(":")[0]] += threads
        return max([*hosts.values(), self.capacity[0]])

    def submit(self, function: Callable, *args: Any, limits: Limits = NO_LIMITS) -> Future:
        """Send a task to the cluster; the scheduler chooses the worker."""
        task = _Task(function, args, limits, Future())
        self._tasks[task.future] = task
        self._send(task)
        return task.future

    def _send(self, task: _Task, parcel: Any = None) -> None:
        # the arguments are pickled, so that Dask does not search them for Dask tasks
        payload = pickle.dumps((task.function, task.args, task.limits, self._modules))
        with self._reached():
            task.remote = self.client.submit(run_here, payload, parcel, self.batch, pure=False)
            task.remote.add_done_callback(lambda _: self._ended.put(task))
        task.sent.append(parcel)

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Wait until a task ends, at most `timeout` seconds; return the futures of ended tasks.

        The default of `timeout` is `ANSWER_SECONDS`. Raises UserError if the connection to the Dask
        scheduler is lost.
        """
        ended: list[Future] = []
        end = time.monotonic() + (ANSWER_SECONDS if timeout is None else timeout)
        try:
            with self._reached(), suppress(queue.Empty):
                while not ended or not self._ended.empty():
                    task = self._ended.get(timeout=max(0.0, end - time.monotonic()))
                    if task.future in self._tasks and self._has_ended(task):
                        del self._tasks[task.future]
                        ended.append(task.future)
        except UserError:
            if not ended:
                raise
            self._ended.put(task)  # the next call of `wait` raises the error
        return ended

    def _has_ended(self, task: _Task) -> bool:
        """Return whether a task has ended; if so, store its result or exception in its future.

        A task is sent again, with its data files, if the worker did not find the data files, or if
        the scheduler cancelled the task because all workers with the data files were lost.
        """
        import dask
        from distributed import KilledWorker

        if task.remote.status == "finished":
            task.future.set_result(task.remote.result())
            return True
        cancelled = task.remote.status == "cancelled"
        if cancelled and not (task.sent[-1] and self.client.status == "running"):
            raise ConnectionError
        # a task with any other status has lost its worker, and Dask runs the task again
        if task.remote.status not in ("error", "cancelled"):
            task.remote.add_done_callback(lambda _: self._ended.put(task))
            return False
        error = None if cancelled else task.remote.exception()
        lacking = cancelled or (isinstance(error, MissingData) and task.sent[-1] is None)
        most = dask.config.get("distributed.scheduler.allowed-failures")
        if lacking and sum(parcel is not None for parcel in task.sent) <= most:
            if (error := self._supply(task)) is None:
                return False
        elif cancelled or isinstance(error, KilledWorker):
            error = WorkerDied("every worker that ran it was lost, one after the other")
        task.future.set_exception(error)
        return True

    def _supply(self, task: _Task) -> WorkerDied | None:
        """Send a task with the data files of its job; return an error if a file cannot be read.

        If no worker is left to receive the data files, the task is sent without data files, and the
        next worker asks for the data files.
        """
        job, context = task.args
        parcel = self._parcels.get(job.dataset_hash)
        if parcel is None or parcel in task.sent or parcel.status != "finished":
            try:
                content = pack(job, context.data, context.mirror)
            except (OSError, UserError) as problem:
                return WorkerDied(f"its data cannot be sent to a worker: {problem}")
            self._parcels.pop(job.dataset_hash, None)
            with suppress(TimeoutError):
                [self._parcels[job.dataset_hash]] = self.client.scatter([content], hash=False)
        self._send(task, self._parcels.get(job.dataset_hash))
        return None

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise UserError if the connection to the scheduler is lost during a ``with`` block."""
        try:
            yield
            lost = self.client.status != "running"
        except (OSError, RuntimeError):
            lost = True
        if lost:
            left = "finished jobs are stored, and the same command runs the remaining jobs"
            raise UserError(f"no connection to the scheduler {self._address}; {left}")

    def cancel(self) -> None:
        """Cancel all running tasks of this run, and end their processes on the workers."""
        tasks, self._tasks = self._tasks, {}
        if self.client.status == "running":
            with suppress(OSError, RuntimeError):  # workers that lose the scheduler end their tasks
                self.client.cancel([task.remote for task in tasks.values()], force=True)
                self.client.run(stop_here, self.batch, on_error="ignore")
        self.batch = uuid4().hex

    def close(self) -> None:
        """Disconnect from the cluster; shut down a local cluster."""
        with suppress(OSError, RuntimeError):  # the connection may be lost already
            self.client.close(timeout=ANSWER_SECONDS)
        if self.cluster is not None:
            self.cluster.close()


def _silence() -> None:
    """Turn off all loggers of Dask, tornado and asyncio one by one, since some loggers do not
    inherit the level of their parent.
    """
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _check_greeting(address: str) -> None:
    """Raise UserError if the server at a TCP address does not answer like a Dask scheduler.

    This function waits at most `ANSWER_SECONDS` for the first message of the scheduler, since Dask
    would wait for ever for a server that sends only the beginning of a message.
    """
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        if place.scheme != "tcp" or place.port is None:
            return
        with (
            socket.create_connection((place.hostname, place.port), ANSWER_SECONDS) as connection,
            connection.makefile("rb") as stream,
        ):
            size = int.from_bytes(stream.read(8), "little")
            # The first 8 bytes contain the length of the message. A Dask scheduler sends at
            # most 2**24 bytes.
            greeting = stream.read(size) if size <= 2**24 else b""
    except (OSError, ValueError) as error:
        why = f"within {ANSWER_SECONDS} s" if isinstance(error, TimeoutError) else f"({error})"
        raise UserError(f"scheduler {address}: no answer {why}") from None
    if not greeting:
        raise UserError(f"scheduler {address}: the server is not a Dask scheduler")


def _certificates(say: Callable) -> Any:
    """Return certificates that are made for one run, without which nobody can connect to the
    scheduler, or None if the package cryptography is missing.
    """
    from distributed import Security

    try:
        return Security.temporary()
    except ImportError:
        risk = "other users of this computer can run code as you through the scheduler"
        way = "to prevent this, pip install cryptography"
        say(f"scheduler local: {risk}; {way}")
        return None


def _local_cluster(slots: int, security: Any = None) -> Any:
    """Start a Dask scheduler and Dask workers on this computer; the workers ignore Ctrl-C.

    Only processes with the certificates `security`, if given, can connect to the scheduler.

    Dask sets environment variables for the workers, such as OMP_NUM_THREADS, in this process; they
    are removed again.
    """
    check_platform()
    from multiprocessing import resource_tracker

    import dask
    from distributed import LocalCluster

    # by default, Dask does not restart a worker that is lost twice within 15 s
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})

    before = {**os.environ}
    # otherwise, the processes of Python's multiprocessing would import files in the current folder
    os.environ["PYTHONSAFEPATH"] = "1"
    # the resource tracker is started before SIGINT is blocked, since its start unblocks SIGINT
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
        options |= {"security": security} if security else {}
        return LocalCluster(n_workers=slots, silence_logs=logging.CRITICAL, **options)
    except RuntimeError as error:  # a worker imports the script that starts the run
        guard = "in a script, call mmbench below the line: if __name__ == '__main__':"
        raise UserError(f"scheduler local: no worker can be started ({error}); {guard}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name in os.environ.keys() - before:
            del os.environ[name]
        os.environ.update(before)


def _queue_cluster(name: str, jobs: int, arguments: Mapping[str, Any]) -> tuple[Any, int]:
    """Start a Dask cluster with one batch job; return the cluster and the cores per batch job.

    While tasks wait, Dask submits further batch jobs to the batch system, up to `jobs` in total.
    """
    with extra("dask", f"cluster {name}"):
        import dask_jobqueue
    import dask

    make = getattr(dask_jobqueue, f"{name.upper()}Cluster")
    if shutil.which(command := make.job_cls.submit_command) is None:
        raise UserError(f"cluster {name}: this computer has no command {command}")
    try:
        # arguments that are missing here are read from the configuration of Dask
        cluster = make(**{"processes": 1, **arguments})
        cluster.sync(_submit, cluster)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"cluster {name}: {error}") from None
    cluster.adapt(maximum_jobs=jobs)
    return cluster, arguments.get("cores") or dask.config.get(f"jobqueue.{name}.cores")


async def _submit(cluster: Any) -> None:
    """Submit the first batch job of a cluster, and raise errors that Dask would only log."""
    cluster.scale(jobs=1)
    await cluster._correct_state()


@cache
def facts() -> dict[str, str]:
    """Return a dict with a hash of mmbench's code, and the versions of Python and libraries."""
    root = Path(mmbench.__file__).parent
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    ours = {"the code of mmbench": code.hexdigest()[:12], "Python": platform.python_version()}
    return {**ours, **library_versions()}


def differences(theirs: dict[str, str] | Exception) -> list[str]:
    """Return a list of messages about versions that differ between a worker and the main process.

    The argument `theirs` is the result of the function `facts` on the worker, or the exception that
    `facts` raised on the worker.
    """
    if isinstance(theirs, Exception):
        return [f"a worker cannot run mmbench: {type(theirs).__name__}: {theirs}"]
    ours = facts()
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    parts = [f"{name} {theirs.get(name)}, but {ours.get(name)} in this process" for name in names]
    return ["workers differ: " + ", ".join(parts)] if parts else []


# -- inside a Dask worker -------------------------------------------------------------------------

#: Local executors in this Dask worker. Each executor is mapped to the identifier (`batch`) of the
#: task that it ran last.
executors: dict[LocalExecutor, str] = {}
idle_executors: list[LocalExecutor] = []
_stopped: set[str] = set()
_lock = Lock()


def run_here(payload: bytes, parcel: Parcel | None, batch: str) -> Any:
    """Run a task in a child process of this Dask worker; return the task's result.

    The argument `batch` is the identifier with which `stop_here` ends the task. If the task raises
    an error, this function raises the same error.
    """
    function, args, limits, modules = pickle.loads(payload)
    if parcel is not None:
        unpack(parcel, args[1].data)
    with _lock:
        executor = idle_executors.pop() if idle_executors else LocalExecutor(1, modules)
        executors[executor] = batch
    try:
        future = executor.submit(function, *args, limits=limits)
        while not executor.wait(POLL_SECONDS):
            # `stop_here` may have been called with the identifier `batch` before the task began
            if batch in _stopped:
                executor.kill()
    finally:
        with _lock:
            idle_executors.append(executor)
    return future.result()


def stop_here(batch: str) -> None:
    """End all tasks with the identifier `batch` on this Dask worker.

    If a task with this identifier begins after the call, the task is ended soon after its start.
    """
    with _lock:
        _stopped.add(batch)
        for executor, last in executors.items():
            if last == batch:
                executor.close() if executor in idle_executors else executor.kill()


#: Pairs of classes are sent to workers if the largest pair has at least LEAST_PAIR_ROWS rows. With
#: fewer rows, sending the rows of a pair takes longer than training on the rows.
LEAST_PAIR_ROWS = 500

#: A job's process trains a pair itself if a Dask worker takes longer than LEAST_PATIENCE seconds
#: and PATIENCE_FACTOR times the longest training of a pair in the process so far.
PATIENCE_FACTOR, LEAST_PATIENCE = 2.0, 1.0


class PairBackend(ThreadingBackend):
    """A joblib backend that trains pairs of classes in the job's process and on Dask workers.

    The job's process trains one pair at a time. Each thread of the backend waits for one pair.
    `limits` are the time and memory limits of the job, which apply to each training on a Dask
    worker, and the list `cpu_seconds` has the CPU time of each.
    """

    def __init__(self, client: Any, limits: Limits, batch: str = "", **options: Any):
        super().__init__(**options)
        self.client, self._limits = client, limits
        self.busy, self.batch, self._longest = Lock(), batch, LEAST_PATIENCE / PATIENCE_FACTOR
        self.cpu_seconds: list[float] = []

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of worker threads of the cluster; each thread runs one training."""
        return sum(self.client.nthreads().values())

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Any:
        """Call `train` in a thread of the backend."""
        return super().submit(partial(self.train, func), callback)

    def train_here(self, func: Callable[[], Any]) -> Any:
        """Train in the job's process, and release the lock `busy` that the caller has acquired."""
        start = time.monotonic()
        try:
            return func()
        finally:
            self._longest = max(self._longest, time.monotonic() - start)
            self.busy.release()

    def train(self, func: Any) -> Any:
        """Train in the job's process if this process is idle, otherwise on a Dask worker.

        If the Dask worker takes too long, the job's process trains as soon as it is idle.
        """
        from distributed import CancelledError, KilledWorker

        if self.busy.acquire(blocking=False):
            return self.train_here(func)
        # machines are pickled twice, since only the child process can import the user's modules
        payload = pickle.dumps((train_items, (pickle.dumps(func.items),), self._limits, ()))
        # a job has the lower priority 0, and starts after tasks that train one pair of classes
        future = self.client.submit(run_here, payload, None, self.batch, pure=False, priority=10)
        # `Future.result` with a timeout is not used, since it may raise an UnboundLocalError in
        # Dask
        ended = Event()
        future.add_done_callback(lambda _: ended.set())
        while True:
            if ended.wait(PATIENCE_FACTOR * self._longest):
                with suppress(KilledWorker, CancelledError):
                    result, cpu = future.result()
                    self.cpu_seconds.append(cpu)
                    return pickle.loads(result)
            if self.busy.acquire(blocking=ended.is_set()):
                future.cancel()
                return self.train_here(func)


def train_items(items: bytes) -> tuple[bytes, float]:
    """Return the results of function calls, and the total CPU time of the calls in seconds.

    `items` is a pickled list of tuples (function, args, kwargs), and the results are pickled.
    """
    start = time.process_time()
    with folders_searched():
        calls = pickle.loads(items)
    with threadpool_limits(1):
        results = [function(*args, **kwargs) for function, args, kwargs in calls]
    return pickle.dumps(results), time.process_time() - start


class Spread(ExitStack):
    """A context manager in which pairs of classes are trained on all workers of a Dask cluster.

    It has an effect only if there is a cluster and several pairs, of which the largest has at least
    `LEAST_PAIR_ROWS` rows; otherwise `backend` is None. `at_a_time` is the number of pairs that are
    trained at the same time.
    """

    backend: PairBackend | None = None
    at_a_time = 1

    def __init__(
        self, scheduler: tuple[str, str, Any] | None, counts: Sequence[int], limits: Limits
    ):
        super().__init__()
        pays = len(counts) > 2 and sum(sorted(counts)[-2:]) >= LEAST_PAIR_ROWS
        self._scheduler, self._limits = scheduler if pays else None, limits

    def __enter__(self) -> Self:
        if self._scheduler is not None:
            from distributed import Client

            _silence()
            address, batch, security = self._scheduler
            known = {"timeout": ANSWER_SECONDS, "set_as_default": False}
            client = Client(address, security=security, **known)
            self.backend = PairBackend(self.enter_context(client), self._limits, batch)
            self.at_a_time = self.backend.effective_n_jobs(1)
            if self.at_a_time > 1:
                self.enter_context(parallel_config(backend=self.backend))
        return self
