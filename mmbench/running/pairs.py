"""The pairs of classes of one large job as tasks of a cluster: one job uses all of it.

The process of the job trains one pair at a time itself; a pair whose turn comes meanwhile goes to
the cluster, with its rows. A pair that does not come back, because every worker has a job of its
own or was lost, is trained here when this process has nothing else to do. So jobs that wait for
each other's workers cannot block one another, and results do not depend on where a pair is trained.
"""

import logging
import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Lock
from typing import Any
from uuid import uuid4

from joblib import parallel_config
from joblib.parallel import ThreadingBackend
from threadpoolctl import threadpool_limits

from mmbench.jobs.limits import Limits
from mmbench.running.cluster import ANSWER_SECONDS, run_here

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
