"""Jobs on a Dask cluster: whatever deployment gives the address of a scheduler.

A Dask worker runs no job itself: it keeps a process of `mmbench.running.local` for each of its
threads and waits for it. So a job on a cluster has the limits that it has here, a solver that
crashes or never returns costs one job and no Dask worker, and heartbeats are never late. Dask
brings tasks to workers, and to others when a worker is lost.

The pairs of classes of one large job as tasks of a cluster: one job uses all of it.

The process of the job trains one pair at a time itself; a pair whose turn comes meanwhile goes to
the cluster, with its rows. A pair that does not come back, because every worker has a job of its
own or was lost, is trained here when this process has nothing else to do. So jobs that wait for
each other's workers cannot block one another, and results do not depend on where a pair is trained.
"""

import hashlib
import logging
import pickle
import queue
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_limits

import mmbench
from mmbench.errors import UserError, extra
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.running.environment import versions
from mmbench.running.local import LocalExecutor, WorkerDied
from mmbench.running.parcel import MissingData, Parcel, pack, unpack

#: Seconds after which the number of workers is asked for again.
POLL_SECONDS = 1.0
#: Seconds that a scheduler has to answer.
ANSWER_SECONDS = 30


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

    Parameters
    ----------
    address : str
        Of a scheduler; "local" starts one with workers on this computer.
    slots : int
        Workers that "local" starts.
    modules : sequence of str
        What a process imports when it starts.
    say : callable
        Gets a line for each way in which workers differ from this process.

    Raises
    ------
    UserError
        If dask.distributed is not installed, or no scheduler answers.
    """

    remote = True
    task_threads = 1

    def __init__(
        self, address: str, slots: int, modules: Sequence[str], say: Callable[[str], object]
    ):
        with extra("dask", "--scheduler"):
            import distributed
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is in records
        self._modules, self._say, self._address = tuple(modules), say, address
        self._cluster = _local_cluster(slots) if address == "local" else None
        try:
            self._client = distributed.Client(self._cluster or address, timeout=ANSWER_SECONDS)
        except (OSError, ValueError) as error:
            raise UserError(f"scheduler {address}: no answer ({error})") from None
        self.scheduler: str | None = self._client.scheduler_info()["address"]
        self._tasks: dict[Future, _Task] = {}
        self._ended: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._parcels: dict[str, Any] = {}
        self._threads: dict[str, int] = {}
        self._looked = -POLL_SECONDS
        self._batch = uuid4().hex  # of tasks that one `cancel` ends

    @property
    def slots(self) -> int:
        """Threads of all workers at this moment."""
        self._look()
        return sum(self._threads.values())

    @property
    def computer_slots(self) -> int:
        """Most threads of workers on one computer, as told by their addresses."""
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
        task.remote = self._client.submit(run_here, payload, parcel, self._batch, pure=False)
        self._watch(task)

    def _watch(self, task: _Task) -> None:
        task.remote.add_done_callback(lambda _: self._ended.put(task))

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none when `timeout` seconds pass first.

        Raises
        ------
        UserError
            If the scheduler is gone.
        """
        ended: list[Future] = []
        end = time.monotonic() + timeout if timeout is not None else None
        while not ended or not self._ended.empty():
            left = ANSWER_SECONDS if end is None else max(0.0, end - time.monotonic())
            try:
                task = self._ended.get(timeout=left)
            except queue.Empty:
                break
            if task.future in self._tasks and self._settle(task):
                del self._tasks[task.future]
                ended.append(task.future)
        if self._client.status != "running":
            self._gone()
        return ended

    def _settle(self, task: _Task) -> bool:
        """Give a task its result or exception; send it again where its data were missing."""
        from distributed import KilledWorker

        if task.remote.status == "finished":
            task.future.set_result(task.remote.result())
            return True
        if task.remote.status == "cancelled":
            self._gone()
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

    def _gone(self) -> None:
        raise UserError(
            f"the scheduler {self._address} is gone; finished jobs are stored, and the same "
            "command goes on from there"
        )

    def _look(self) -> None:
        """See which workers there are, and compare the versions of new ones with ours."""
        if time.monotonic() - self._looked < POLL_SECONDS or self._client.status != "running":
            return
        found = self._client.nthreads()
        new = [worker for worker in found if worker not in self._threads]
        self._threads, self._looked = found, time.monotonic()
        theirs = self._client.run(facts, workers=new, on_error="return") if new else {}
        lines = {line for other in theirs.values() for line in differences(other)}
        for line in sorted(lines):
            self._say(line)

    def cancel(self) -> None:
        """Stop every running task at once, and end the processes that the workers keep."""
        tasks, self._tasks = self._tasks, {}
        if self._client.status == "running":
            self._client.cancel([task.remote for task in tasks.values()], force=True)
            self._client.run(stop_here, self._batch, on_error="ignore")
        self._batch = uuid4().hex

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _local_cluster(slots: int) -> Any:
    """Start a scheduler and workers on this computer, which leave Ctrl-C to this process."""
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
    """Return what must be equal for results to be: the code, Python and the libraries."""
    root = Path(mmbench.__file__).parent
    code = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        code.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return {"the code of mmbench": code.hexdigest()[:12], **versions()}


def differences(theirs: dict[str, str] | Exception) -> list[str]:
    """Return a line in which a worker differs from this process; none where it does not."""
    if isinstance(theirs, Exception):
        return [f"a worker cannot run mmbench: {type(theirs).__name__}: {theirs}"]
    ours = facts()
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    parts = [f"{name} {theirs.get(name)} where this process has {ours.get(name)}" for name in names]
    return ["workers differ: " + ", ".join(parts)] if parts else []


# -- inside a Dask worker -------------------------------------------------------------------------

_executors: list[LocalExecutor] = []
_idle: list[LocalExecutor] = []
_stopped: set[str] = set()
_lock = Lock()


def run_here(payload: bytes, parcel: Parcel | None, batch: str) -> Any:
    """Run a task in a process beside this Dask worker, and return or raise what it does."""
    function, args, limits, modules = pickle.loads(payload)
    if parcel is not None:
        unpack(parcel, args[1].data)
    with _lock:
        executor = _idle.pop() if _idle else LocalExecutor(1, modules)
        if executor not in _executors:
            _executors.append(executor)
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
    """End the processes beside this Dask worker, and the tasks of a batch that begin later."""
    with _lock:
        _stopped.add(batch)
        for executor in _executors:
            executor.kill()


#: Pairs of fewer rows are trained faster than they are sent.
LEAST_PAIR_ROWS = 500

#: A pair is trained here as well after this many times the longest training so far, and seconds.
PATIENCE_FACTOR, LEAST_PATIENCE = 2.0, 1.0

#: Of pairs, before the tasks of whole jobs.
PRIORITY = 10


class PairBackend(ThreadingBackend):
    """Runs what joblib hands it here or on a Dask cluster; its threads do nothing but wait.

    Parameters
    ----------
    client : distributed.Client
    limits : Limits
        Of a pair on a worker: those of the job.

    Attributes
    ----------
    cpu_seconds : float
        Of the trainings on workers.
    n_sent : int
        How many came back from there.
    """

    def __init__(self, client: Any, limits: Limits, **options: Any):
        super().__init__(**options)
        self._client, self._limits = client, limits
        self._here, self._sum, self._batch = Lock(), Lock(), uuid4().hex
        self._longest = LEAST_PATIENCE / PATIENCE_FACTOR
        self.cpu_seconds, self.n_sent = 0.0, 0

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return how many trainings run at a time, whatever the machine's `n_jobs`."""
        return sum(self._client.nthreads().values())

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Any:
        """Train somewhere; the name is joblib's."""
        return super().submit(partial(self._train, func), callback)

    def _train(self, func: Callable[[], Any]) -> Any:
        if self._here.acquire(blocking=False):
            return self._train_here(func)
        return self._train_there(func)

    def _train_here(self, func: Callable[[], Any]) -> Any:
        """Train in this process, whose turn has been taken."""
        start = time.monotonic()
        try:
            return func()
        finally:
            self._longest = max(self._longest, time.monotonic() - start)
            self._here.release()

    def _train_there(self, func: Any) -> Any:
        """Send a training away, and wait for it or for the turn to do it here."""
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

    Nothing is done where there is no cluster, one pair, or so few rows that it does not pay.

    Parameters
    ----------
    scheduler : str or None
        Its address; None on one computer.
    class_counts : sequence of int
        Training rows of each class.
    limits : Limits
        Of the job.

    Attributes
    ----------
    cpu_seconds : float
        Of the trainings on workers.
    at_a_time : int
        Pairs that were trained at the same time.
    """

    cpu_seconds, at_a_time = 0.0, 1

    def __init__(self, scheduler: str | None, class_counts: Sequence[int], limits: Limits):
        pays = len(class_counts) > 2 and sum(sorted(class_counts)[-2:]) >= LEAST_PAIR_ROWS
        self._scheduler, self._limits = scheduler if pays else None, limits
        self._open = ExitStack()

    def __enter__(self) -> None:
        if self._scheduler is None:
            return
        from distributed import Client

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        client = Client(self._scheduler, timeout=ANSWER_SECONDS, set_as_default=False)
        self._backend = PairBackend(self._open.enter_context(client), self._limits)
        self.at_a_time = self._backend.effective_n_jobs(1)
        if self.at_a_time > 1:
            self._open.enter_context(parallel_config(backend=self._backend))

    def __exit__(self, *error: object) -> None:
        if self._scheduler is not None:
            self.cpu_seconds = self._backend.cpu_seconds
        self._open.close()
