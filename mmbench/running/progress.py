"""What a person sees of a run: a bar with the time left, or without a terminal a line a job.

Everything goes to the standard error stream.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TextIO

from mmbench.errors import FINISHED
from mmbench.jobs.job import Job
from mmbench.jobs.record import Content, is_done


class Progress(Protocol):
    """Gets to know what happens in a run."""

    def finished(self, job: Job, record: Content, left: float | None) -> None:
        """Take note of a record; `left` is the estimated number of seconds to the end."""

    def tick(self, left: float | None) -> None:
        """Take note that time passes."""

    def say(self, line: str) -> None:
        """Show a line."""

    def close(self) -> None:
        """The run is over."""


class Lines:
    """A line a job: for log files, and for tests.

    Parameters
    ----------
    total : int
        Number of jobs to run.
    stream : file
    """

    def __init__(self, total: int, stream: TextIO):
        self._total, self._stream, self._count = total, stream, 0

    def finished(self, job: Job, record: Content, left: float | None) -> None:
        """Print the outcome of a job."""
        self._count += 1
        rest = "" if left is None or self._count == self._total else f", {duration(left)} left"
        self.say(f"[{self._count}/{self._total}] {describe(job)}: {outcome(record)}{rest}")

    def tick(self, left: float | None) -> None:
        """Print nothing: a log file needs no clock."""

    def say(self, line: str) -> None:
        """Print a line."""
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Print nothing."""


class Bar:
    """A bar on a terminal; failures are printed above it.

    Parameters
    ----------
    total : int
        Number of jobs to run.
    stream : file
    """

    _FORMAT = "{desc}{n_fmt}/{total_fmt} jobs |{bar}| {elapsed}{postfix}"

    def __init__(self, total: int, stream: TextIO):
        from tqdm import tqdm

        self._bar = tqdm(total=total, file=stream, bar_format=self._FORMAT, dynamic_ncols=True)

    def finished(self, job: Job, record: Content, left: float | None) -> None:
        """Move the bar."""
        if not is_done(record):
            self.say(f"{describe(job)}: {outcome(record)}")
        self._bar.update()
        self.tick(left)

    def tick(self, left: float | None) -> None:
        """Draw the bar anew."""
        self._bar.set_postfix_str("" if left is None else f"{duration(left)} left")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.write(line, file=self._bar.fp)

    def close(self) -> None:
        """Leave the bar where it is."""
        self._bar.set_postfix_str("")
        self._bar.close()


def progress_for(total: int, stream: TextIO | None = None) -> Progress:
    """Return a bar where the stream is a terminal, else lines."""
    stream = stream or sys.stderr
    if stream.isatty() and total:
        return Bar(total, stream)
    lines = Lines(total, stream)
    if total:  # the first line of a job may take a minute, as workers compile
        lines.say(f"{total} job{'s' if total > 1 else ''} to run")
    return lines


def describe(job: Job) -> str:
    """Return a job in a few words: ``usps mmrm rbf``, with its split if there are several.

    A classifier of another package has no kernel.
    """
    degree = "" if job.degree is None else str(job.degree)
    split = job.split
    numbers = "" if split.rule == "official" else f" {split.repeat + 1}.{split.fold + 1}"
    size = "" if split.size is None else f" {split.size} rows"
    kernel = "" if ":" in job.machine else f" {job.kernel}{degree}"
    return f"{job.dataset.name}{numbers} {job.column}{kernel}{size}"


def outcome(record: Content) -> str:
    """Return the result of a job in a few words."""
    if not is_done(record):
        return f"{record['status']}: {record['reason']}"
    metrics, seconds = record["metrics"], sum(record["wall_seconds"].values())
    status = "" if record["status"] in FINISHED else f" ({record['reason'] or record['status']})"
    return f"{metrics['accuracy_pct']:.2f} % correct{status}, {duration(seconds)}"


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> duration(0.42), duration(75), duration(7500)
    ('0.4 s', '1 min 15 s', '2 h 05 min')
    """
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def readable(n_bytes: float) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> readable(3 * 2**30)
    '3.0 GiB'
    """
    gib = n_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{n_bytes / 2**20:.0f} MiB"


class TimeLeft:
    """Estimates the time to the end from the jobs that have ended.

    Jobs of one experiment differ by orders of magnitude: a job is expected to take as long as those
    of its data set, size, kernel and machine did; while there are none, as those of its data set
    and machine; else as those of its machine, or as any.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs to run.
    """

    def __init__(self, jobs: Iterable[Job]):
        self._open = Counter(map(kinds_of, jobs))
        self._count: Counter[tuple] = Counter()
        self._seconds: Counter[tuple] = Counter()
        self._started: dict[str, tuple[Job, float]] = {}

    def learn(self, record: Mapping[str, Any]) -> None:
        """Take note of how long a job took."""
        seconds = sum(record["wall_seconds"].values())
        for kind in kinds_of(Job.from_dict(record["job"])):
            self._count[kind] += 1
            self._seconds[kind] += seconds

    def start(self, job: Job) -> None:
        """Take note that a job starts now."""
        self._started[job.key] = job, time.monotonic()

    def end(self, job: Job) -> None:
        """Take note that a job ended, in whatever way."""
        self._started.pop(job.key, None)
        self._open[kinds_of(job)] -= 1

    def expected(self, job: Job) -> float | None:
        """Return the seconds that jobs of the very kind took on average; None without any."""
        kind = kinds_of(job)[0]
        return self._seconds[kind] / self._count[kind] if self._count[kind] else None

    def seconds(self, slots: int) -> float | None:
        """Return the estimate for so many jobs at a time; None while no job has ended."""
        if not self._count:
            return None
        rest = sum(count * self._mean(kinds) for kinds, count in self._open.items())
        now = time.monotonic()
        spent = sum(min(now - at, self._mean(kinds_of(job))) for job, at in self._started.values())
        return (rest - spent) / max(1, slots)

    def _mean(self, kinds: Sequence[tuple]) -> float:
        kind = next(kind for kind in kinds if self._count[kind])
        return self._seconds[kind] / self._count[kind]


def kinds_of(job: Job) -> tuple[tuple, ...]:
    """Return what a job has in common with others, from much to nothing."""
    name, column = job.dataset.name, job.column
    alike = name, job.split.max_train, job.kernel, job.degree, column
    return alike, (name, column), (column,), ()
