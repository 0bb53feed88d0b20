"""How long a run will still take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mmbench.jobs.job import Job


class TimeLeft:
    """Estimates the time to the end from the jobs that have ended.

    Jobs of one experiment differ by orders of magnitude: a job is expected to take as long as those
    of its data set and machine did; while there are none, as those of its machine; else as any.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs to run.
    slots : int
        How many run at the same time.
    """

    def __init__(self, jobs: Iterable[Job], slots: int):
        self._slots = slots
        self._open = Counter((job.dataset.name, job.machine) for job in jobs)
        self._count: Counter[tuple] = Counter()
        self._seconds: Counter[tuple] = Counter()
        self._started: dict[str, tuple[tuple[str, str], float]] = {}

    def learn(self, record: Mapping[str, Any]) -> None:
        """Take note of how long a job took."""
        seconds = sum(record["wall_seconds"].values())
        for kind in _kinds(record["job"]["dataset"]["name"], record["job"]["machine"]):
            self._count[kind] += 1
            self._seconds[kind] += seconds

    def start(self, job: Job) -> None:
        """Take note that a job starts now."""
        self._started[job.key] = (job.dataset.name, job.machine), time.monotonic()

    def end(self, job: Job) -> None:
        """Take note that a job ended, in whatever way."""
        self._started.pop(job.key, None)
        self._open[job.dataset.name, job.machine] -= 1

    def seconds(self) -> float | None:
        """Return the estimate; None while no job has ended."""
        if not self._count:
            return None
        rest = sum(count * self._expected(*kind) for kind, count in self._open.items())
        now = time.monotonic()
        spent = sum(min(now - at, self._expected(*kind)) for kind, at in self._started.values())
        return (rest - spent) / self._slots

    def _expected(self, dataset: str, machine: str) -> float:
        kind = next(kind for kind in _kinds(dataset, machine) if self._count[kind])
        return self._seconds[kind] / self._count[kind]


def _kinds(dataset: str, machine: str) -> tuple[tuple, ...]:
    """Return what a job has in common with others, from much to nothing."""
    return (dataset, machine), (machine,), ()
