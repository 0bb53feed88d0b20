"""Run jobs on a Dask cluster, and distribute the pairs of classes of a large job over the cluster.

A Dask worker runs each job in a child process (`mmbench.running.local`), one per thread. Therefore
time and memory limits are the same as on one computer, a solver that crashes or hangs fails one job
but not the Dask worker, and heartbeats are never late. Several runs may share a cluster, since a
run ends only the child processes of its own tasks.

The process of a large job trains one pair of classes at a time and sends the other pairs with their
rows to the cluster. If the result of a pair does not arrive, because all workers are busy or a
worker was lost, the job's process trains this pair itself as soon as it is idle. Therefore two jobs
that wait for workers cannot block each other. Results do not depend on the worker that trains a
pair.
"""

import gc
import hashlib
import logging
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
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_limits

import mmbench
from mmbench.errors import UserError, extra
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.running.environment import library_versions
from mmbench.running.local import LocalExecutor, WorkerDied, check_platform
from mmbench.running.parcel import MissingData, Parcel, pack, unpack

#: Minimum interval between two updates of the list of workers, in seconds.
POLL_SECONDS = 1.0
#: Timeout for an answer of the scheduler, in seconds.
ANSWER_SECONDS = 5
#: Maximum plausible length in bytes of a scheduler's first message, which is stated by the first 8
#: bytes of the message.
MOST_GREETING_BYTES = 2**24


@dataclass
class _Task:
    """A task on a cluster; `remote` is Dask's future, and `supplied` is true if data were sent."""

    function: Callable[..., Any]
    args: tuple
    limits: Limits
    future: Future
    remote: Any = None
    supplied: bool = False


class DaskExecutor:
    """An executor on a Dask cluster; its number of workers may change during a run.

    `address` is the address of a scheduler; "local" starts a scheduler and `slots` workers on this
    computer. If `batch` is given, `address` is the name of a batch system, and `batch` contains
    arguments of dask-jobqueue. A scheduler then starts on this computer, and workers start in at
    most `slots` jobs of the batch system. `say` is called with a message if versions of code or
    libraries differ between a worker and this process. Raises UserError if a package is not
    installed, if no scheduler answers, or if the batch system refuses a job.
    """

    remote = True
    task_threads = 1

    #: Number of threads per job of a batch system, and of all jobs that may be submitted.
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
        if batch is not None:
            self.cluster, cores = _queue_cluster(address, slots, batch)
            self.capacity = cores, cores * slots
            say(f"{address}: submitted the first of at most {slots} jobs of {cores} core(s) each")
        elif address == "local":
            self.cluster = _local_cluster(slots)
        else:
            _check_greeting(address)
        words = ""
        try:
            self.client = distributed.Client(self.cluster or address, timeout=ANSWER_SECONDS)
            self._own_address = self.client.scheduler_info()["address"]
        except Exception as error:
            # the type of the exception depends on the fault: wrong address, certificate or protocol
            words = " ".join(str(error).split()) or type(error).__name__
        if words:
            # The finalizer of a client that failed to start waits for a lock. Without this call,
            # the garbage collector may run the finalizer while the next client starts: a deadlock.
            gc.collect()
            raise UserError(f"scheduler {address}: no answer ({words})")
        self._tasks: dict[Future, _Task] = {}
        self._ended: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._parcels: dict[str, Any] = {}
        self._threads: dict[str, int] = {}
        self._looked = -POLL_SECONDS
        self.batch = uuid4().hex  # identifier of the batch of tasks that the next `cancel` ends

    @property
    def scheduler(self) -> tuple[str, str] | None:
        """Address of the scheduler and identifier of the batch, for jobs that train pairs on it."""
        return self._own_address, self.batch

    @property
    def slots(self) -> int:
        """Number of threads of all workers that exist or that the batch system may start.

        The number is updated every `POLL_SECONDS`, since workers may start and stop at any time.
        `say` is called with the differences in versions of new workers.
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
        """Maximum number of worker threads on one computer, identified by its host address."""
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
        # pickled here, so that Dask does not search the arguments for Dask tasks
        payload = pickle.dumps((task.function, task.args, task.limits, self._modules))
        with self._reached():
            task.remote = self.client.submit(run_here, payload, parcel, self.batch, pure=False)
            task.remote.add_done_callback(lambda _: self._ended.put(task))

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Wait until a task ends, or for `timeout` seconds; return the tasks that ended.

        Raises UserError if the connection to the scheduler is lost.
        """
        ended: list[Future] = []
        end = time.monotonic() + (ANSWER_SECONDS if timeout is None else timeout)
        while not ended or not self._ended.empty():
            try:
                task = self._ended.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            with self._reached():
                if task.future in self._tasks and self._has_ended(task):
                    del self._tasks[task.future]
                    ended.append(task.future)
        with self._reached():
            return ended

    def _has_ended(self, task: _Task) -> bool:
        """Set the result or exception of a task, or send the task again if its data were missing.

        Returns whether the task has ended.
        """
        from distributed import KilledWorker

        if task.remote.status == "finished":
            task.future.set_result(task.remote.result())
            return True
        if task.remote.status == "cancelled":
            raise ConnectionError
        if task.remote.status != "error":  # the worker was lost; Dask runs the task again
            task.remote.add_done_callback(lambda _: self._ended.put(task))
            return False
        error = task.remote.exception()
        if isinstance(error, MissingData) and not task.supplied:
            task.supplied, (job, context) = True, task.args
            if job.dataset_hash not in self._parcels:
                parcel = pack(job, context.data, context.mirror)
                [self._parcels[job.dataset_hash]] = self.client.scatter([parcel])
            self._send(task, self._parcels[job.dataset_hash])
            return False
        if isinstance(error, KilledWorker):
            error = WorkerDied("every worker that ran it was lost, one after the other")
        task.future.set_exception(error)
        return True

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise UserError if the scheduler is lost while the block runs or when the block ends."""
        try:
            yield
            lost = self.client.status != "running"
        except (OSError, RuntimeError):
            lost = True
        if lost:
            raise UserError(
                f"no connection to the scheduler {self._address}; finished jobs are stored, "
                "and the same command runs the remaining jobs"
            )

    def cancel(self) -> None:
        """Cancel all running tasks of this run, and end their processes on the workers."""
        tasks, self._tasks = self._tasks, {}
        if self.client.status == "running":
            with suppress(OSError, RuntimeError):  # without a scheduler, workers end their tasks
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
    """Turn off the loggers of Dask and of its libraries; each logger has its own level."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _check_greeting(address: str) -> None:
    """Read the first message of the server at a TCP address; raise UserError if it is not a
    scheduler.

    A scheduler sends its first message without a request. If another server sends a part of a
    message, Dask waits for the rest without a time limit.
    """
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        if place.scheme != "tcp" or place.port is None:
            return
        with (
            socket.create_connection((place.hostname, place.port), ANSWER_SECONDS) as connection,
            connection.makefile("rb") as stream,
        ):
            size = int.from_bytes(stream.read(8), "little")
            greeting = stream.read(size) if size <= MOST_GREETING_BYTES else b""
    except (OSError, ValueError) as error:
        late = isinstance(error, TimeoutError)
        why = f"within {ANSWER_SECONDS} s" if late else f"({error})"
        raise UserError(f"scheduler {address}: no answer {why}") from None
    if not greeting:
        raise UserError(f"scheduler {address}: the server is not a Dask scheduler")


def _local_cluster(slots: int) -> Any:
    """Start a scheduler and workers on this computer; Ctrl-C is handled by this process only."""
    check_platform()
    from multiprocessing import resource_tracker

    import dask
    from distributed import LocalCluster

    # by default, a worker that is lost twice within 15 s is not started again
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})

    resource_tracker.ensure_running()  # a later start would unblock SIGINT, which is blocked below
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return LocalCluster(
            n_workers=slots,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _queue_cluster(name: str, jobs: int, arguments: Mapping[str, Any]) -> tuple[Any, int]:
    """Submit the first job of a cluster that grows to `jobs` jobs.

    Returns the cluster and its number of cores per job. Arguments that are not given are read from
    Dask's configuration.
    """
    with extra("dask", f"cluster {name}"):
        import dask_jobqueue
    import dask

    make = getattr(dask_jobqueue, f"{name.upper()}Cluster")
    command = make.job_cls.submit_command
    if shutil.which(command) is None:
        raise UserError(f"cluster {name}: this computer has no command {command}")
    try:
        cluster = make(**{"processes": 1, **arguments})
        cluster.sync(_submit, cluster)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"cluster {name}: {error}") from None
    cluster.adapt(maximum_jobs=jobs)
    return cluster, arguments.get("cores") or dask.config.get(f"jobqueue.{name}.cores")


async def _submit(cluster: Any) -> None:
    """Submit the first job of a cluster; raise errors, which `scale` would only log."""
    cluster.scale(jobs=1)
    await cluster._correct_state()


@cache
def facts() -> dict[str, str]:
    """Return the versions on which results depend: hash of the code, Python and libraries."""
    root = Path(mmbench.__file__).parent
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    ours = {"the code of mmbench": code.hexdigest()[:12], "Python": platform.python_version()}
    return {**ours, **library_versions()}


def differences(theirs: dict[str, str] | Exception) -> list[str]:
    """Return a message if versions differ between a worker and this process, else no message."""
    if isinstance(theirs, Exception):
        return [f"a worker cannot run mmbench: {type(theirs).__name__}: {theirs}"]
    ours = facts()
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    parts = [f"{name} {theirs.get(name)}, but {ours.get(name)} in this process" for name in names]
    return ["workers differ: " + ", ".join(parts)] if parts else []


# -- inside a Dask worker -------------------------------------------------------------------------

#: Executors of this Dask worker, each with the batch of its last task.
executors: dict[LocalExecutor, str] = {}
idle_executors: list[LocalExecutor] = []
_stopped: set[str] = set()
_lock = Lock()


def run_here(payload: bytes, parcel: Parcel | None, batch: str) -> Any:
    """Run a task in a child process of this Dask worker; return its result or raise its error."""
    function, args, limits, modules = pickle.loads(payload)
    if parcel is not None:
        unpack(parcel, args[1].data)
    with _lock:
        executor = idle_executors.pop() if idle_executors else LocalExecutor(1, modules)
        executors[executor] = batch
    try:
        future = executor.submit(function, *args, limits=limits)
        while not executor.wait(POLL_SECONDS):
            # `stop_here` was called for the batch before this task began
            if batch in _stopped:
                executor.kill()
    finally:
        with _lock:
            idle_executors.append(executor)
    return future.result()


def stop_here(batch: str) -> None:
    """End the processes of a batch on this Dask worker, and tasks of the batch that begin later."""
    with _lock:
        _stopped.add(batch)
        for executor, last in executors.items():
            if last == batch:
                executor.close() if executor in idle_executors else executor.kill()


#: Pairs of classes are sent to workers if the largest pair has at least this number of rows.
#: Sending a smaller pair takes longer than its training.
LEAST_PAIR_ROWS = 500

#: Waiting time for the result of a pair before the job's process may train the pair itself:
#: PATIENCE_FACTOR times the longest training so far, but at least LEAST_PATIENCE seconds.
PATIENCE_FACTOR, LEAST_PATIENCE = 2.0, 1.0

#: Dask priority of pairs of classes; whole jobs have priority 0.
PRIORITY = 10


class PairBackend(ThreadingBackend):
    """A joblib backend that trains in this process or on a Dask cluster; its threads only wait.

    `limits` are the limits of the job, applied to each training on a worker. `batch` is the
    identifier of the run's batch. `cpu_seconds` is the total CPU time of the trainings on workers,
    and `n_sent` is the number of these trainings.
    """

    def __init__(self, client: Any, limits: Limits, batch: str = "", **options: Any):
        super().__init__(**options)
        self.client, self._limits = client, limits
        self.busy, self._sum, self.batch = Lock(), Lock(), batch
        self._longest = LEAST_PATIENCE / PATIENCE_FACTOR
        self.cpu_seconds, self.n_sent = 0.0, 0

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of simultaneous trainings; the machine's `n_jobs` is ignored."""
        return sum(self.client.nthreads().values())

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Any:
        """Start a training, in this process or on a worker; overrides a method of joblib."""
        return super().submit(partial(self._train, func), callback)

    def _train(self, func: Callable[[], Any]) -> Any:
        free = self.busy.acquire(blocking=False)
        return self.train_here(func) if free else self.train_there(func)

    def train_here(self, func: Callable[[], Any]) -> Any:
        """Train in this process; the caller has acquired the lock `busy`."""
        start = time.monotonic()
        try:
            return func()
        finally:
            self._longest = max(self._longest, time.monotonic() - start)
            self.busy.release()

    def train_there(self, func: Any) -> Any:
        """Train on a worker; if the result is late and this process is idle, train here."""
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as NotYet

        payload = pickle.dumps((train_items, (func.items,), self._limits, ()))
        future = self.client.submit(
            run_here, payload, None, self.batch, pure=False, priority=PRIORITY
        )
        while True:
            try:
                result, cpu = future.result(timeout=PATIENCE_FACTOR * self._longest)
            except (NotYet, KilledWorker, CancelledError) as error:
                if self.busy.acquire(blocking=not isinstance(error, NotYet)):
                    future.cancel()
                    return self.train_here(func)
            else:
                with self._sum:
                    self.cpu_seconds, self.n_sent = self.cpu_seconds + cpu, self.n_sent + 1
                return result


def train_items(items: Sequence[tuple[Callable[..., Any], tuple, dict]]) -> tuple[list, float]:
    """Return the results of function calls, and the total CPU seconds of the calls."""
    start = time.process_time()
    with threadpool_limits(1):
        results = [function(*args, **kwargs) for function, args, kwargs in items]
    return results, time.process_time() - start


class Spread:
    """A context manager in which pairs of classes are trained on all workers of a cluster.

    The context manager has no effect without a cluster, for a single pair, or if the largest pair
    has fewer than `LEAST_PAIR_ROWS` rows. `cpu_seconds` is the CPU time of the trainings on
    workers; `at_a_time` is the number of simultaneous trainings.
    """

    cpu_seconds, at_a_time = 0.0, 1

    def __init__(self, scheduler: tuple[str, str] | None, counts: Sequence[int], limits: Limits):
        pays = len(counts) > 2 and sum(sorted(counts)[-2:]) >= LEAST_PAIR_ROWS
        self._scheduler, self._limits = scheduler if pays else None, limits
        self._open = ExitStack()

    def __enter__(self) -> None:
        if self._scheduler is None:
            return
        from distributed import Client

        _silence()
        address, batch = self._scheduler
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
        self._backend = PairBackend(self._open.enter_context(client), self._limits, batch)
        self.at_a_time = self._backend.effective_n_jobs(1)
        if self.at_a_time > 1:
            self._open.enter_context(parallel_config(backend=self._backend))

    def __exit__(self, *error: object) -> None:
        if self._scheduler is not None:
            self.cpu_seconds = self._backend.cpu_seconds
        self._open.close()
