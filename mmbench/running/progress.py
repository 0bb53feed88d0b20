"""The progress of a run: a bar on terminals and in notebooks, and one line per job elsewhere."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from statistics import fmean
from typing import Any, TextIO

from mmbench.errors import FINISHED, visible
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Key, key_of
from mmbench.jobs.record import Content, is_done

#: Time after which the display names the job that has run longest, in seconds.
LONG_SECONDS = 20.0


class Lines:
    """Progress display for log files and tests, with one line for each of `total` jobs."""

    def __init__(self, total: int, stream: TextIO):
        self._total, self._stream, self._count = total, stream, 0
        self._next: dict[str, float] = {}

    def finished(self, job: Job, record: Content, left: float | None) -> None:
        """Print the result of a job, and the estimated remaining seconds `left` of the run."""
        self._count += 1
        rest = "" if left is None or self._count == self._total else f", {duration(left)} left"
        self.say(f"[{self._count}/{self._total}] {describe(job)}: {outcome(record)}{rest}")

    def running(self, job: Job, seconds: float, left: float | None, inside: str = "") -> None:
        """Print a job that has run for a long time, and again if this time has doubled.

        `inside` is the last progress message of the job.
        """
        if seconds >= self._next.get(job.key, LONG_SECONDS):
            self._next = {job.key: 2 * seconds}
            told = f" ({inside})" if inside else ""
            self.say(f"{describe(job)}: still running after {duration(seconds)}{told}")

    def say(self, line: str) -> None:
        """Print a line; if it cannot be written, for example to a full disk, the run continues."""
        with suppress(OSError):
            print(visible(line), file=self._stream, flush=True)

    def close(self) -> None:
        """End the display."""


class Bar(Lines):
    """Progress bar on a terminal or in a notebook; failures are printed above the bar."""

    _FORMAT = "{desc}{n_fmt}/{total_fmt} jobs |{bar}| {elapsed}{postfix}"

    def __init__(self, total: int, stream: TextIO):
        from tqdm.auto import tqdm

        self._bar = tqdm(total=total, file=stream, bar_format=self._FORMAT, dynamic_ncols=True)

    def finished(self, job: Job, record: Content, left: float | None) -> None:
        """Advance the bar by one job; print a failed job above the bar."""
        if not is_done(record):
            self.say(f"{describe(job)}: {outcome(record)}")
        self._bar.update()
        self._bar.set_postfix_str("" if left is None else f"{duration(left)} left")

    def running(self, job: Job, seconds: float, left: float | None, inside: str = "") -> None:
        """Redraw the bar with the remaining time, and with a job that has run for a long time."""
        parts = [] if left is None else [f"{duration(left)} left"]
        if seconds >= LONG_SECONDS:
            told = f" ({inside})" if inside else ""
            parts.append(f"{describe(job)}: running for {duration(seconds)}{told}")
        self._bar.set_postfix_str("; ".join(parts))

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.write(visible(line), file=self._bar.fp)

    def close(self) -> None:
        """End the display; the bar stays visible."""
        self._bar.set_postfix_str("")
        self._bar.close()


def progress_for(total: int, stream: TextIO | None = None) -> Lines:
    """Return a progress bar for a terminal or a notebook, and `Lines` for any other stream."""
    notebook = stream is None and "ipykernel" in sys.modules
    stream = stream or sys.stderr
    if total and (notebook or stream.isatty()):
        return Bar(total, stream)
    lines = Lines(total, stream)
    if total:  # the first result may take a minute, since workers compile code first
        lines.say(f"{total} job{'s' if total > 1 else ''} to run")
    return lines


def describe(job: Job) -> str:
    """Return a short description of a job, such as ``iris, split 1.4, mmrm rbf``.

    The repeat and the fold, here 1 and 4, are left out for official splits, and the kernel for
    classifiers of other packages.
    """
    split = job.split
    numbers = "" if split.rule == "official" else f", split {split.repeat + 1}.{split.fold + 1}"
    size = "" if split.size is None else f", {split.size} rows"
    kernel = f" {job.kernel} {job.degree or ''}".rstrip() if job.has_kernel else ""
    return f"{job.dataset.name}{numbers}{size}, {job.column}{kernel}"


def outcome(record: Content) -> str:
    """Return a short description of the result of a job."""
    if not is_done(record):
        return f"{record['status']}: {record['reason']}"
    metrics, seconds = record["metrics"], seconds_of(record["wall_seconds"])
    status = "" if record["status"] in FINISHED else f" ({record['reason'] or record['status']})"
    return f"{metrics['accuracy_pct']:.2f} % correct{status}, {duration(seconds)}"


def seconds_of(stages: Mapping[str, float]) -> float:
    """Return the total time of a job in seconds, without the stage ``warm_up``."""
    return sum(stages.values()) - stages.get("warm_up", 0.0)


def duration(seconds: float) -> str:
    """Return a duration as text.

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
    """Return a number of bytes as text.

    Examples
    --------
    >>> readable(3 * 2**30)
    '3.0 GiB'
    """
    gib = n_bytes / 2**30
    return f"{gib:.1f} GiB" if gib >= 1 else f"{n_bytes / 2**20:.0f} MiB"


#: CPU time of each machine relative to the SVM on the same split: the largest ratio in `mmbench
#: easy` with 270 rows, 1000 rows of separable and 1000 of overlapping classes. Machines near 1 are
#: omitted.
COSTS = {"rmm": 0.15, "m4": 1.2} | dict.fromkeys(("lssvm", "klda"), 3.0)
COSTS |= dict.fromkeys(("logistic_regression", "mamc_b", "mpm"), 0.3)


class TimeLeft:
    """An estimate of the remaining time of a run, from the times of finished jobs.

    The expected time of a job is the mean of the finished jobs of its table cell, or follows from
    all finished jobs and the ratios of CPU times in `COSTS`.
    """

    def __init__(self, jobs: Iterable[Job]):
        self._open = Counter(map(key_of, jobs))
        self._times: dict[Key, list[float]] = defaultdict(list)

    def learn(self, record: Mapping[str, Any]) -> None:
        """Add the time of a finished job to the times of the jobs in the same table cell."""
        self._times[key_of(Job.from_dict(record["job"]))].append(seconds_of(record["wall_seconds"]))

    def end(self, job: Job) -> None:
        """Remove a job, with or without a result, from the remaining jobs."""
        self._open[key_of(job)] -= 1

    def expected(self, job: Job) -> float | None:
        """Return the mean time, in seconds, of the finished jobs in the same table cell as `job`.

        Returns None if no job of the table cell has finished.
        """
        times = self._times.get(key_of(job))
        return fmean(times) if times else None

    def seconds(self, slots: int) -> float | None:
        """Return the estimated remaining seconds of the run, if `slots` jobs run at the same time.

        Returns None if no job has finished.
        """
        if not self._times:
            return None
        cost = {key: COSTS.get(key.machine, 1.0) for key in {*self._open, *self._times}}
        total = sum(len(times) * cost[key] for key, times in self._times.items())
        unit = sum(map(sum, self._times.values())) / total
        left = sum(n * fmean(self._times.get(k) or [unit * cost[k]]) for k, n in self._open.items())
        return left / max(1, slots)
