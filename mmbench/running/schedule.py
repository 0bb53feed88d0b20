"""Which jobs may start now, and with how much of the computer.

A job is ready when the job whose parameters it uses has its record. Of ready jobs the longest goes
first, together with what waits for it; where nothing is known of the time of such jobs, one of them
goes before. Ready jobs share the free slots in threads: many ready jobs run side by side on one
thread each, a lone one has all of them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mmbench.jobs.job import Job
from mmbench.jobs.record import Content, is_done


@dataclass(frozen=True)
class Start:
    """A job to be started.

    Attributes
    ----------
    job : Job
    threads : int
    alone : bool
        Nothing else runs beside it: all memory is its own.
    """

    job: Job
    threads: int
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
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        records: Mapping[str, Content],
        slots: int,
        expected: Callable[[Job], float | None] = lambda job: None,
    ):
        self.slots, self._expected = slots, expected
        self._ready: deque[Job] = deque()
        self._alone: deque[Job] = deque()
        self._blocked: dict[str, list[Job]] = defaultdict(list)
        self._hopeless: deque[tuple[Job, str]] = deque()
        self._running: dict[str, int] = {}
        jobs = list(jobs)
        coming = {job.key for job in jobs}
        for job in jobs:
            if job.parent is None:
                self._ready.append(job)
            elif job.parent in records:
                self._follow([job], records[job.parent])
            elif job.parent in coming:
                self._blocked[job.parent].append(job)
            else:
                self._give_up(job, "is not among the jobs")

    @property
    def unfinished(self) -> bool:
        """Whether any job waits or runs."""
        return any((self._ready, self._alone, self._blocked, self._hopeless, self._running))

    def starts(self) -> Iterator[Start]:
        """Yield the jobs that start now; they count as running from here on."""
        while self._ready and (free := self.slots - sum(self._running.values())) > 0:
            threads = -(-free // len(self._ready))
            longest = max(self._ready, key=self._seconds)  # the first of equal ones
            self._ready.remove(longest)
            yield self._start(longest, threads)
        if self._alone and not self._running:
            yield self._start(self._alone.popleft(), self.slots)

    def hopeless(self) -> Iterator[tuple[Job, str]]:
        """Yield jobs that can never run, and why; they wait no longer."""
        while self._hopeless:
            yield self._hopeless.popleft()

    def finish(self, record: Content) -> None:
        """Take in the record of a job: the jobs that use it are next, or never."""
        self._running.pop(record["key"], None)
        children = self._blocked.pop(record["key"], [])
        # Before others as long: their data set is in the memory of a worker now.
        ready, self._ready = self._ready, deque()
        self._follow(children, record)
        self._ready.extend(ready)

    def again_alone(self, job: Job) -> None:
        """Put a running job back, to be run when nothing else does."""
        del self._running[job.key]
        self._alone.append(job)

    def _follow(self, children: Iterable[Job], record: Content) -> None:
        """Make ready the jobs that use the parameters of a record, or give them up."""
        for job in children:
            if is_done(record):
                self._ready.append(job)
            else:
                self._give_up(job, f"has no result: {record['reason']}")

    def _seconds(self, job: Job) -> float:
        """Return the expected seconds of a job and of the longest that waits for it."""
        own = self._expected(job)
        after = max(map(self._seconds, self._blocked.get(job.key, ())), default=0.0)
        return float("inf") if own is None else own + after

    def _start(self, job: Job, threads: int) -> Start:
        alone = not self._running and threads == self.slots
        self._running[job.key] = threads
        return Start(job, threads, alone)

    def _give_up(self, job: Job, cause: str) -> None:
        self._hopeless.append((job, f"takes its parameters from {job.use}, which {cause}"))
