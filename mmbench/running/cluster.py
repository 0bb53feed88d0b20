"""Jobs on a Dask cluster, and the pairs of classes of one large job.

A Dask worker runs no job itself: it keeps a process of `mmbench.running.local` for each of its
threads and waits for it. So a job has the same limits as on one computer, a solver that crashes or
never returns costs one job and no Dask worker, and heartbeats are never late. Several runs may
share a cluster: each ends the processes of its own tasks only.

The process of a large job trains one pair at a time itself and sends a pair whose turn comes
meanwhile to the cluster, with its rows. A pair that does not come back, because every worker is
busy or was lost, is trained here when this process is idle. So jobs that wait for each other's
workers cannot block one another, and results do not depend on where a pair is trained.
"""

import gc
import hashlib
import logging
import pickle
import queue
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
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
from mmbench.running.environment import versions
from mmbench.running.local import LocalExecutor, WorkerDied, check_platform
from mmbench.running.parcel import MissingData, Parcel, pack, unpack

#: Seconds after which the number of workers is asked for again.
POLL_SECONDS = 1.0
#: Seconds that a scheduler has to answer.
ANSWER_SECONDS = 5
#: Largest number with which the greeting of a scheduler begins: the bytes that follow.
MOST_GREETING_BYTES = 2**24


@dataclass
class _Task:
    """A task that a cluster runs, until it has ended for good."""

    function: Callable[..., Any]
    args: tuple
    limits: Limits
    future: Future
    remote: Any = None
    supplied: bool = False


class DaskExecutor:
    """The workers of a Dask cluster, as many at any time as have joined it.

    The address is that of a scheduler; "local" starts a scheduler with workers on this computer,
    `slots` in number. `say` gets a line for each way in which workers differ from this process.
    Raises UserError if dask.distributed is not installed, or no scheduler answers.
    """

    remote = True
    task_threads = 1

    def __init__(
        self, address: str, slots: int, modules: Sequence[str], say: Callable[[str], object]
    ):
        with extra("dask", "--scheduler"):
            import distributed
        _silence()
        self._modules, self._say, self._address = tuple(modules), say, address
        if address == "local":
            self._cluster: Any = _local_cluster(slots)
        else:
            self._cluster = None
            _check_greeting(address)
        words = ""
        try:
            self._client = distributed.Client(self._cluster or address, timeout=ANSWER_SECONDS)
            self._own_address = self._client.scheduler_info()["address"]
        except Exception as error:  # of unknown kinds: addresses, certificates, foreign protocols
            words = " ".join(str(error).split()) or type(error).__name__
        if words:
            # The finalizer of a client that failed to start waits for a lock; it deadlocks if the
            # garbage collector runs it while the next client starts.
            gc.collect()
            raise UserError(f"scheduler {address}: no answer ({words})")
        self._tasks: dict[Future, _Task] = {}
        self._ended: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._parcels: dict[str, Any] = {}
        self._threads: dict[str, int] = {}
        self._looked = -POLL_SECONDS
        self._batch = uuid4().hex  # of tasks that one `cancel` ends

    @property
    def scheduler(self) -> tuple[str, str] | None:
        """Address of the scheduler and the batch of tasks, for tasks that have their own tasks."""
        return self._own_address, self._batch

    @property
    def slots(self) -> int:
        """Threads of all workers at this moment."""
        self._look()
        return sum(self._threads.values())

    @property
    def computer_slots(self) -> int:
        """Largest number of threads of workers on one computer, by their addresses."""
        hosts: dict[str, int] = {}
        for worker, threads in self._threads.items():
            host = worker.rpartition(":")[0]
            hosts[host] = hosts.get(host, 0) + threads
        return max(hosts.values(), default=1)

    def submit(
        self, function: Callable[..., Any], *args: Any, limits: Limits = NO_LIMITS
    ) -> Future:
        """Send a task to the cluster, which chooses a worker."""
        task = _Task(function, args, limits, Future())
        task.future.set_running_or_notify_cancel()
        self._tasks[task.future] = task
        self._send(task)
        return task.future

    def _send(self, task: _Task, parcel: Any = None) -> None:
        # pickled here, so that Dask does not search the arguments for tasks of its own
        payload = pickle.dumps((task.function, task.args, task.limits, self._modules))
        with self._reached():
            task.remote = self._client.submit(run_here, payload, parcel, self._batch, pure=False)
            self._watch(task)

    def _watch(self, task: _Task) -> None:
        task.remote.add_done_callback(lambda _: self._ended.put(task))

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none if `timeout` seconds pass first.

        Raises UserError if the scheduler is gone.
        """
        ended: list[Future] = []
        end = time.monotonic() + timeout if timeout is not None else None
        while not ended or not self._ended.empty():
            left = ANSWER_SECONDS if end is None else max(0.0, end - time.monotonic())
            try:
                task = self._ended.get(timeout=left)
            except queue.Empty:
                break
            with self._reached():
                if task.future in self._tasks and self._settle(task):
                    del self._tasks[task.future]
                    ended.append(task.future)
        with self._reached():
            return ended

    def _settle(self, task: _Task) -> bool:
        """Give a task its result or exception; send it again if its data were missing."""
        from distributed import KilledWorker

        if task.remote.status == "finished":
            task.future.set_result(task.remote.result())
            return True
        if task.remote.status == "cancelled":
            raise ConnectionError
        if task.remote.status != "error":  # lost with its worker since; it runs elsewhere now
            self._watch(task)
            return False
        error = task.remote.exception()
        if isinstance(error, MissingData) and not task.supplied:
            task.supplied = True
            self._send(task, self._parcel(*task.args))
            return False
        if isinstance(error, KilledWorker):
            error = WorkerDied("every worker that ran it was lost, one after the other")
        task.future.set_exception(error)
        return True

    def _parcel(self, job: Any, context: Any) -> Any:
        """Return the data of a job as an object that all workers can have."""
        if job.dataset_hash not in self._parcels:
            [sent] = self._client.scatter([pack(job, context.data, context.mirror)])
            self._parcels[job.dataset_hash] = sent
        return self._parcels[job.dataset_hash]

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Raise UserError if the scheduler is gone at the end of a block, or not reached in it."""
        try:
            yield
            lost = self._client.status != "running"
        except (OSError, RuntimeError):
            lost = True
        if lost:
            raise UserError(
                f"the scheduler {self._address} is gone; finished jobs are stored, and the same "
                "command goes on from there"
            )

    def _look(self) -> None:
        """Update the list of workers, and compare the versions of new workers with ours."""
        if time.monotonic() - self._looked < POLL_SECONDS or self._client.status != "running":
            return
        with self._reached():
            found = self._client.nthreads()
            new = [worker for worker in found if worker not in self._threads]
            theirs = self._client.run(facts, workers=new, on_error="return") if new else {}
        self._threads, self._looked = found, time.monotonic()
        for line in sorted({line for other in theirs.values() for line in differences(other)}):
            self._say(line)

    def cancel(self) -> None:
        """Stop every running task of this run at once, and end its processes at the workers."""
        tasks, self._tasks = self._tasks, {}
        if self._client.status == "running":
            with suppress(OSError, RuntimeError):  # gone meanwhile: workers end their tasks
                self._client.cancel([task.remote for task in tasks.values()], force=True)
                self._client.run(stop_here, self._batch, on_error="ignore")
        self._batch = uuid4().hex

    def close(self) -> None:
        """Leave the cluster; a cluster that was started here ends."""
        with suppress(OSError, RuntimeError):  # the scheduler is gone
            self._client.close(timeout=ANSWER_SECONDS)
        if self._cluster is not None:
            self._cluster.close()


def _silence() -> None:
    """Turn off the logs of Dask, whose parts have levels of their own: records say what matters."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _check_greeting(address: str) -> None:
    """Raise UserError if a TCP port is not that of a scheduler, which speaks first."""
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        if place.scheme != "tcp" or place.port is None:
            return
        with socket.create_connection((place.hostname, place.port), ANSWER_SECONDS) as connection:
            greeting = connection.recv(8)
    except TimeoutError:
        raise UserError(f"scheduler {address}: no answer within {ANSWER_SECONDS} s") from None
    except (OSError, ValueError) as error:
        raise UserError(f"scheduler {address}: no answer ({error})") from None
    if not greeting or int.from_bytes(greeting, "little") > MOST_GREETING_BYTES:
        raise UserError(f"scheduler {address}: the server there is no Dask scheduler")


def _local_cluster(slots: int) -> Any:
    """Start a scheduler and workers on this computer, which leave Ctrl-C to this process."""
    check_platform()
    from multiprocessing import resource_tracker

    import dask
    from distributed import LocalCluster

    # else a worker that is lost twice within 15 s is never started again
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 day"})

    resource_tracker.ensure_running()  # its start would lift the block below
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


@cache
def facts() -> dict[str, str]:
    """Return the versions on which results depend: the code, Python and the libraries."""
    root = Path(mmbench.__file__).parent
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return {"the code of mmbench": code.hexdigest()[:12], **versions()}


def differences(theirs: dict[str, str] | Exception) -> list[str]:
    """Return a line about the versions in which a worker differs from this process, if any."""
    if isinstance(theirs, Exception):
        return [f"a worker cannot run mmbench: {type(theirs).__name__}: {theirs}"]
    ours = facts()
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    parts = [f"{name} {theirs.get(name)} where this process has {ours.get(name)}" for name in names]
    return ["workers differ: " + ", ".join(parts)] if parts else []


# -- inside a Dask worker -------------------------------------------------------------------------

#: The executors beside this Dask worker, each with the batch of its last task.
_executors: dict[LocalExecutor, str] = {}
_idle: list[LocalExecutor] = []
_stopped: set[str] = set()
_lock = Lock()


def run_here(payload: bytes, parcel: Parcel | None, batch: str) -> Any:
    """Run a task in a process beside this Dask worker, and return its result or raise its error."""
    function, args, limits, modules = pickle.loads(payload)
    if parcel is not None:
        unpack(parcel, args[1].data)
    with _lock:
        executor = _idle.pop() if _idle else LocalExecutor(1, modules)
        _executors[executor] = batch
    try:
        future = executor.submit(function, *args, limits=limits)
        while not executor.wait(POLL_SECONDS):
            if batch in _stopped:  # the process began after the others had been ended
                executor.kill()
    finally:
        with _lock:
            _idle.append(executor)
    return future.result()


def stop_here(batch: str) -> None:
    """End the processes of a batch beside this Dask worker, and its tasks that begin later."""
    with _lock:
        _stopped.add(batch)
        for executor, last in _executors.items():
            if last == batch:
                executor.close() if executor in _idle else executor.kill()


#: Pairs of fewer rows are trained faster than they are sent.
LEAST_PAIR_ROWS = 500

#: A pair is trained here as well after this multiple of the longest training, at least seconds.
PATIENCE_FACTOR, LEAST_PATIENCE = 2.0, 1.0

#: Priority of pairs over the tasks of whole jobs.
PRIORITY = 10


class PairBackend(ThreadingBackend):
    """Joblib's backend that trains here or on a Dask cluster; its threads do nothing but wait.

    `limits` are those of the job, for each pair on a worker; `batch` is that of its run.
    `cpu_seconds` adds up the trainings on workers, `n_sent` counts them.
    """

    def __init__(self, client: Any, limits: Limits, batch: str = "", **options: Any):
        super().__init__(**options)
        self._client, self._limits = client, limits
        self._here, self._sum, self._batch = Lock(), Lock(), batch
        self._longest = LEAST_PATIENCE / PATIENCE_FACTOR
        self.cpu_seconds, self.n_sent = 0.0, 0

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of trainings at a time, whatever the machine's `n_jobs`."""
        return sum(self._client.nthreads().values())

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Any:
        """Train somewhere; the name is joblib's."""
        return super().submit(partial(self._train, func), callback)

    def _train(self, func: Callable[[], Any]) -> Any:
        if self._here.acquire(blocking=False):
            return self._train_here(func)
        return self._train_there(func)

    def _train_here(self, func: Callable[[], Any]) -> Any:
        """Train in this process; the caller holds the lock."""
        start = time.monotonic()
        try:
            return func()
        finally:
            self._longest = max(self._longest, time.monotonic() - start)
            self._here.release()

    def _train_there(self, func: Any) -> Any:
        """Send a training to a worker; do it here if it takes long and this process is idle."""
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as NotYet

        payload = pickle.dumps((train_items, (func.items,), self._limits, ()))
        future = self._client.submit(
            run_here, payload, None, self._batch, pure=False, priority=PRIORITY
        )
        while True:
            try:
                result, cpu = future.result(timeout=PATIENCE_FACTOR * self._longest)
            except (NotYet, KilledWorker, CancelledError) as error:
                if self._here.acquire(blocking=not isinstance(error, NotYet)):
                    future.cancel()
                    return self._train_here(func)
            else:
                with self._sum:
                    self.cpu_seconds, self.n_sent = self.cpu_seconds + cpu, self.n_sent + 1
                return result


def train_items(items: Sequence[tuple[Callable[..., Any], tuple, dict]]) -> tuple[list, float]:
    """Return the results of some calls, and their CPU seconds."""
    start = time.process_time()
    with threadpool_limits(1):
        results = [function(*args, **kwargs) for function, args, kwargs in items]
    return results, time.process_time() - start


class Spread:
    """A block in which the pairs of classes that are trained use a whole cluster.

    It does nothing without a cluster, for one pair, or for so few rows that it does not pay.
    `cpu_seconds` are those of the trainings on workers, `at_a_time` the number of pairs that were
    trained at the same time.
    """

    cpu_seconds, at_a_time = 0.0, 1

    def __init__(
        self, scheduler: tuple[str, str] | None, class_counts: Sequence[int], limits: Limits
    ):
        pays = len(class_counts) > 2 and sum(sorted(class_counts)[-2:]) >= LEAST_PAIR_ROWS
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
