"""Which jobs may start now, and with how much of the computer.

A job is ready when the jobs whose parameters it uses have their records. Of ready jobs the longest
goes first, together with what waits for it; where nothing is known of the time of such jobs, one of
them goes before. Ready jobs share the free slots in threads: many ready jobs run side by side on
one thread each, a lone one has all of them.
"""

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mmbench.jobs.job import Job
from mmbench.jobs.record import Content, is_done
from mmbench.running.progress import kinds_of


@dataclass(frozen=True)
class Start:
    """A job to be started."""

    job: Job
    threads: int
    #: Nothing else runs beside it: all memory is its own.
    alone: bool


class Schedule:
    """The state of a run.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs to run.
    records : mapping of str to dict
        Records of jobs that are not run again, by key.
    slots : int
        Number of processes.
    expected : callable
        Gets a job and returns its expected seconds, None where nothing is known.
    most_threads : int, optional
        Of one job; as many as slots when not given.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        records: Mapping[str, Content],
        slots: int,
        expected: Callable[[Job], float | None] = lambda job: None,
        most_threads: int | None = None,
    ):
        self.slots, self._expected, self._most_threads = slots, expected, most_threads
        self._ready: dict[Hashable, deque[tuple[int, Job]]] = defaultdict(deque)
        self._number = itertools.count()
        self._alone: deque[Job] = deque()
        self._blocked: dict[str, list[Job]] = defaultdict(list)
        self._waits: dict[str, set[str]] = {}
        self._impossible: deque[tuple[Job, str]] = deque()
        self._running: dict[str, int] = {}
        jobs = list(jobs)
        coming = {job.key for job in jobs}
        for job in jobs:
            if not job.parents:
                self._make_ready(job)
            elif any(key not in records and key not in coming for key in job.parents):
                self._give_up(job, "is not among the jobs")
            else:
                self._waits[job.key] = set(job.parents)
                for key in job.parents:
                    if key in records:
                        self._follow(job, records[key])
                    else:
                        self._blocked[key].append(job)

    @property
    def unfinished(self) -> bool:
        """Whether any job waits or runs."""
        return any((self._ready, self._alone, self._blocked, self._impossible, self._running))

    def starts(self) -> Iterator[Start]:
        """Yield the jobs that start now; they count as running from here on."""
        while self._ready and (free := self.slots - sum(self._running.values())) > 0:
            threads = -(-free // sum(map(len, self._ready.values())))
            yield self._start(self._longest(), min(threads, self._most_threads or threads))
        if self._alone and not self._running:
            yield self._start(self._alone.popleft(), self.slots)

    def _longest(self) -> Job:
        """Take the longest ready job, and of equal ones that which is ready for the longest time.

        Jobs of one kind are expected to take equally long, so the first of each stands for all.
        """
        first = {kind: jobs[0] for kind, jobs in self._ready.items()}
        kind = max(first, key=lambda kind: (self._seconds(first[kind][1]), -first[kind][0]))
        _, job = self._ready[kind].popleft()
        if not self._ready[kind]:
            del self._ready[kind]
        return job

    def impossible(self) -> Iterator[tuple[Job, str]]:
        """Yield jobs that can never run, and why; they wait no longer."""
        while self._impossible:
            yield self._impossible.popleft()

    def finish(self, record: Content) -> None:
        """Take in the record of a job: the jobs that use it are nearer their turn, or never run."""
        self._running.pop(record["key"], None)
        for job in self._blocked.pop(record["key"], []):
            self._follow(job, record)

    def again_alone(self, job: Job) -> None:
        """Put a running job back, to be run when nothing else does."""
        del self._running[job.key]
        self._alone.append(job)

    def _follow(self, job: Job, record: Content) -> None:
        """Make ready a job that waits for no other record than this, or give it up."""
        waits = self._waits.get(job.key)
        if waits is None:  # given up before
            return
        waits.discard(record["key"])
        if not is_done(record):
            self._give_up(job, f"has no result: {record['reason']}")
        elif not waits:
            self._make_ready(job, first=True)
        if not waits or not is_done(record):
            del self._waits[job.key]

    def _make_ready(self, job: Job, first: bool = False) -> None:
        """Let a job wait for a slot, behind jobs as long unless their data set was just read."""
        number, jobs = next(self._number), self._ready[kinds_of(job)[0]]
        if first:
            jobs.appendleft((-number, job))
        else:
            jobs.append((number, job))

    def _seconds(self, job: Job) -> float:
        """Return the expected seconds of a job and of the longest that waits for it."""
        own = self._expected(job)
        after = max(map(self._seconds, self._blocked.get(job.key, ())), default=0.0)
        return float("inf") if own is None else own + after

    def _start(self, job: Job, slots: int) -> Start:
        alone = not self._running and slots == self.slots
        self._running[job.key] = slots
        return Start(job, min(slots, self._most_threads or slots), alone)

    def _give_up(self, job: Job, cause: str) -> None:
        self._impossible.append((job, f"takes its parameters from {job.use}, which {cause}"))
