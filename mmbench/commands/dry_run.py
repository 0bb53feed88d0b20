"""``--dry-run``: the jobs of an experiment in a few lines, with counts and a memory estimate."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

from mmbench.commands.columns import aligned
from mmbench.commands.run import Experiment, Options, default_slots, plan_experiments
from mmbench.errors import UserError
from mmbench.jobs.job import Job

HEADER = ("data set", "kernel", "machine", "jobs", "stored", "grid points", "fits", "memory")
UNKNOWN = "?"


def describe_experiments(names: Iterable[str], options: Options) -> str:
    """Return what `launch` would run. Reads no data of cards and writes nothing.

    Raises
    ------
    UserError
        If a configuration or an option is wrong.
    """
    experiments = plan_experiments(names, options)
    slots = options.slots or default_slots()
    return "\n\n".join(describe(experiment, slots) for experiment in experiments)


def describe(experiment: Experiment, slots: int = 1) -> str:
    """Return one line a data set, kernel and machine, and the sums."""
    from mmbench.running.progress import readable

    stored = stored_keys(experiment)
    groups: dict[tuple, list[Job]] = {}
    for job in experiment.jobs:
        groups.setdefault((job.dataset.name, job.kernel, job.degree, job.column), []).append(job)
    # of several training sizes the last is the largest
    sizes = [memory_bytes(jobs[-1], slots) for jobs in groups.values()]
    rows = [
        _row(jobs, stored, UNKNOWN if size is None else readable(size))
        for jobs, size in zip(groups.values(), sizes, strict=True)
    ]
    known = [size for size in sizes if size is not None]
    lines = [f"{experiment.config.name}: {len(experiment.jobs)} jobs, {len(stored)} of them stored"]
    lines += [f"  {line}" for line in aligned([HEADER, *rows], n_words=3)]
    if experiment.config.published_only:
        lines.append("only published values: " + ", ".join(experiment.config.published_only))
    if known:
        lines.append(f"largest job: about {readable(max(known))} of memory")
    return "\n".join(lines)


def stored_keys(experiment: Experiment) -> set[str]:
    """Return the keys of the jobs that have their result already."""
    from mmbench.jobs.store import RecordStore

    try:
        store = RecordStore(experiment.folder)
    except UserError:  # no run has made the folder yet
        return set()
    return {job.key for job in experiment.jobs if store.has(job)}


def _row(jobs: list[Job], stored: set[str], memory: str) -> tuple[str, ...]:
    job = jobs[0]
    degree = "" if job.degree is None else f" {job.degree}"
    done = sum(job.key in stored for job in jobs)
    points = str(n_points(job)) if job.grid else "-"
    fits = n_fits(job)
    total = UNKNOWN if fits is None else str(fits * len(jobs))
    return (
        job.dataset.name,
        job.kernel + degree,
        job.column,
        str(len(jobs)),
        str(done),
        points,
        total,
        memory,
    )


def n_points(job: Job) -> int:
    """Return the number of grid points that selection tries: stages are searched one by one."""
    from mmbench.machines import alias_of
    from mmbench.selection.grid import staged

    parts = staged(dict(job.grid), alias_of(job.machine).stages)
    return sum(prod(map(len, part.values())) for part in parts)


def n_fits(job: Job) -> int | None:
    """Return the number of binary trainings of a job, None where only the data can tell."""
    counts = class_counts(job)
    if counts is None:
        return None
    pairs = len(counts) * (len(counts) - 1) // 2
    inner = n_points(job) * (job.select.folds or 1) * job.select.repeats if job.grid else 0
    return pairs * (inner + 1)


def memory_bytes(job: Job, slots: int) -> int | None:
    """Return an estimate of the memory of a job that has all threads, None where unknown."""
    from mmbench.datasets import load_card
    from mmbench.running.memory import estimate_bytes, planned_sizes

    counts = class_counts(job)
    if counts is None:
        return None
    expect = load_card(job.dataset.name).expect
    part = {"official": expect.official, "predefined": expect.predefined}.get(job.split.rule)
    test, train = (part.test, part.train) if part else (None, None)
    if job.dataset.classes:  # of a split that the card states, their share
        share = sum(counts) / expect.shape[0]
        test, train = (None if n is None else ceil(share * n) for n in (test, train))
    sizes = planned_sizes(job, counts, expect.shape[1], test, train)
    return estimate_bytes(job, sizes, slots)


def class_counts(job: Job) -> list[int] | None:
    """Return the rows of each class as the card knows them, None for a user's file."""
    from mmbench.datasets import load_card

    if job.dataset.path is not None:
        return None
    expect = load_card(job.dataset.name).expect
    named = {str(label): count for label, count in expect.classes.items()}
    missing = expect.n_classes - len(named)
    rest = ceil((expect.shape[0] - sum(named.values())) / missing) if missing else 0
    if job.dataset.classes:
        return [named.get(label, rest) for label in job.dataset.classes]
    return [*named.values(), *[rest] * missing]
