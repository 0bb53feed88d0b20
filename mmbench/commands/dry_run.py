"""``--dry-run``: the jobs of an experiment in a few lines, with counts, memory and time."""

from collections.abc import Iterable
from typing import NamedTuple

from mmbench.commands.columns import aligned
from mmbench.commands.experiments import Experiment, plan_experiments
from mmbench.commands.options import Options, default_slots
from mmbench.commands.times import Times
from mmbench.commands.workload import n_fits, n_points, sizes_of
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.store import RecordStore
from mmbench.running.memory import estimate_bytes
from mmbench.running.progress import duration, readable

HEADER = (
    "data set",
    "kernel",
    "machine",
    "jobs",
    "stored",
    "grid points",
    "fits",
    "memory",
    "time",
)
UNKNOWN = "?"


def describe_experiments(names: Iterable[str], options: Options) -> str:
    """Return what `launch` would run. Reads a user's own files alone and writes nothing.

    Raises
    ------
    UserError
        If a configuration, an option or a user's file is wrong.
    """
    experiments = plan_experiments(names, options)
    slots = options.slots or default_slots()
    return "\n\n".join(describe(experiment, slots) for experiment in experiments)


class Line(NamedTuple):
    """The jobs of one data set, kernel and machine."""

    jobs: list[Job]
    n_stored: int
    memory: int
    seconds: float | None

    @property
    def time(self) -> str:
        """The time of the jobs that are not stored, as text."""
        if len(self.jobs) == self.n_stored:
            return "-"
        return UNKNOWN if self.seconds is None else duration(self.seconds)

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        job = self.jobs[0]
        return (
            job.dataset.name,
            job.kernel + ("" if job.degree is None else f" {job.degree}"),
            job.column,
            str(len(self.jobs)),
            str(self.n_stored),
            str(n_points(job)) if job.grid else "-",
            str(n_fits(job) * len(self.jobs)),
            readable(self.memory),
            self.time,
        )


def describe(experiment: Experiment, slots: int = 1) -> str:
    """Return one line a data set, kernel and machine, and the sums."""
    groups: dict[tuple, list[Job]] = {}
    for job in experiment.jobs:
        groups.setdefault((job.dataset.name, job.kernel, job.degree, job.column), []).append(job)
    stored = stored_keys(experiment)
    times = Times(experiment.config.name, experiment.folder)
    found = [_line(jobs, stored, times, slots) for jobs in groups.values()]
    lines = [f"{experiment.config.name}: {len(experiment.jobs)} jobs, {len(stored)} of them stored"]
    lines += [f"  {text}" for text in aligned([HEADER, *(line.cells for line in found)], n_words=3)]
    if experiment.config.published_only:
        lines.append("only published values: " + ", ".join(experiment.config.published_only))
    lines.append(f"largest job: about {readable(max(line.memory for line in found))} of memory")
    return "\n".join([*lines, _time_text(found, times, slots)])


def _line(jobs: list[Job], stored: set[str], times: Times, slots: int) -> Line:
    rest = [job for job in jobs if job.key not in stored]
    seconds = [times.seconds(job) for job in rest]
    total = None if None in seconds else sum(filter(None, seconds))
    # of several training sizes the last is the largest
    memory = estimate_bytes(jobs[-1], sizes_of(jobs[-1]), slots)
    return Line(jobs, len(jobs) - len(rest), memory, total)


def _time_text(lines: list[Line], times: Times, slots: int) -> str:
    """Say how long the run will take, and how that is known."""
    known = [line.seconds for line in lines if line.seconds is not None]
    unknown = len(lines) - len(known)
    if not times.sources:
        return (
            "time: unknown; after a run with --smoke it is estimated" if unknown else "time: none"
        )
    text = f"time: about {duration(sum(known) / slots)} with {slots} processes"
    rest = f", and {unknown} lines of unknown time" if unknown else ""
    return f"{text} (by {'; '.join(times.sources)}){rest}"


def stored_keys(experiment: Experiment) -> set[str]:
    """Return the keys of the jobs that have their result already."""
    try:
        store = RecordStore(experiment.folder)
    except UserError:  # no run has made the folder yet
        return set()
    return {job.key for job in experiment.jobs if store.has(job)}
