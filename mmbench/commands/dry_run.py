"""``mmbench run --dry-run``: jobs, trainings, memory and expected time of an experiment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import ceil, comb
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.commands.experiments import PlannedExperiment, plan_experiments
from mmbench.commands.listing import aligned
from mmbench.commands.options import Options, options_of, unbundled
from mmbench.config.grids import n_points
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.fetch import NotAvailable
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Key, grouped, key_of
from mmbench.jobs.store import RecordStore
from mmbench.machines import alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.memory import stored_numbers
from mmbench.resources import REFERENCE
from mmbench.results.cells import METRIC
from mmbench.results.differences import POWER, Difference
from mmbench.results.folder import CSV, read_reference, read_results
from mmbench.results.frames import Results
from mmbench.results.pairwise import difference_of
from mmbench.results.splits import SECONDS
from mmbench.results.statistics import LEVEL
from mmbench.running.forecast import Sizes, estimate_bytes
from mmbench.running.progress import duration, readable, seconds_of
from mmbench.running.runner import made_by_other_sources

if TYPE_CHECKING:
    from mmbench.commands.options import Experiment

HEADER = ("data set", "kernel", "machine", "jobs", "stored", "grid points", "fits", "memory")


def dry_run(
    experiments: Experiment | Iterable[Experiment], results: str | Path | None = None, **more: Any
) -> str:
    """Return a description of the jobs that `run` would run with the same arguments.

    Data files of the user are read. A data set with a card (a file that states its sizes) is not
    read. Nothing is downloaded, and no file is written.
    """
    given = options_of(results, more)
    planned = plan_experiments(unbundled(experiments, given), given)
    return "\n\n".join(_describe(one, given) for one in planned)


def _describe(experiment: PlannedExperiment, options: Options) -> str:
    """Return a table with one row per data set, kernel and machine, and lines with totals."""
    slots, groups = options.slots, grouped((key_of(job)[:4], job) for job in experiment.jobs)
    stored, here = _stored(experiment, options.rerun)
    reference = reference_seconds(REFERENCE / experiment.config.name)
    rows: list[tuple] = [HEADER]
    largest, unknown = 0, dict[str, str]()
    for jobs in groups.values():
        job = jobs[-1]  # the last job has the largest training size
        points = n_points(dict(job.grid), alias_of(job.machine).stages) if job.grid else 0
        try:
            sizes = sizes_of(job, store=options.store, mirror=options.mirror)
        except NotAvailable as error:
            unknown[job.dataset.name] = str(error)
            continue
        memory = estimate_bytes(job, sizes, slots)
        largest = max(largest, memory)
        counts = (len(jobs), sum(job.key in stored for job in jobs), points or "-")
        foreign = issubclass(machine_class(job.machine), ForeignClassifier)
        n_trainings = points * (job.select.folds or 1) * job.select.repeats + 1
        fits = len(jobs) * n_trainings * (1 if foreign else comb(len(sizes.class_counts), 2) or 1)
        kernel = "-" if foreign else f"{job.kernel} {job.degree or ''}".rstrip()
        rows.append((job.dataset.name, kernel, job.column, *counts, fits, readable(memory)))
    if not rows[1:]:
        raise UserError(next(iter(unknown.values())))
    lines = [f"{experiment.config.name}: {len(experiment.jobs)} jobs, {len(stored)} of them stored"]
    lines += [f"  {text}" for text in aligned(rows, n_words=3)]
    lines += experiment.left_out
    lines += [f"not planned: {reason}" for reason in experiment.unplanned.values()]
    lines += [f"size unknown: {reason}" for reason in unknown.values()]
    if experiment.config.published_only:
        lines.append("only published values: " + ", ".join(experiment.config.published_only))
    lines.append(f"largest job: about {readable(largest)} of memory")
    rest = [job for job in experiment.jobs if job.key not in stored]
    return "\n".join([*lines, _time_text(rest, here, reference, slots), *_power(experiment)])


def _power(experiment: PlannedExperiment) -> list[str]:
    """Return one line per data set, with the smallest differences in accuracy between the first
    machine and other machines that the test of tables detects.

    The list is empty if there are neither earlier records nor a reference table.
    """
    jobs, planned = experiment.jobs, Counter(map(key_of, experiment.jobs))
    folders = {"earlier records": experiment.folder}
    folders["the reference table"] = REFERENCE / experiment.config.name
    # the variances of the differences are estimated from the first folder that contains results
    for source, folder in folders.items():
        try:
            (results,) = read_results([folder])
        except UserError:
            continue
        columns = list(dict.fromkeys(job.column for job in jobs))
        first, lines = next(iter(columns), ""), []
        for dataset, places in grouped((place.dataset, place) for place in results.places).items():
            keys = [place._replace(machine=first) for place in places]
            k = max(planned.get(key, 0) for key in keys)
            found = [d for key in keys for d in _expected(results, key, k, columns)] if k else []
            if sizes := [own.detectable() for own in found if own.tested]:
                ends = dict.fromkeys(f"{size:.2g}" for size in (min(sizes), max(sizes)))
                lines.append(f"  {dataset}: {' to '.join(ends)} % ({_unit(found[0])})")
            elif found:
                lines.append(f"  {dataset}: no test ({found[0].how})")
        if lines:
            head = f"detectable difference in accuracy from {experiment.plan.label(first)}"
            return [f"{head} (level {LEVEL:g}, power {POWER:g}; variances of {source}):", *lines]
    return []


def _expected(
    results: Results, first: Key, k: int, machines: Iterable[str]
) -> Iterator[Difference]:
    """Yield the differences between a machine and the others that `k` splits would have.

    If no predictions are stored, the variance over rows is replaced by an upper limit: the variance
    if the errors of the machines were independent.
    """
    for machine in machines:
        own = difference_of(results, first._replace(machine=machine), first)
        if machine == first.machine or own is None:
            continue
        if math.isnan(own.V_rows):
            keys = (first._replace(machine=name) for name in (machine, first.machine))
            errors = [1 - (results.value(key, METRIC) or 0.0) / 100 for key in keys]
            apart = errors[0] * (1 - errors[1]) + errors[1] * (1 - errors[0])
            rows = own.n_test + (own.n_train if own.rule != "official" else 0)
            own = replace(own, V_rows=1e4 * apart / rows, A=min(own.A, own.S2))
        if own.S2 or own.V_rows:
            yield replace(own, k=k)


def _unit(own: Difference) -> str:
    return f"{own.n_test:.0f} test rows" if own.rule == "official" else f"{own.k} splits"


def _time_text(
    jobs: list[Job], here: Mapping[Key, float], reference: Mapping[Key, float], slots: int
) -> str:
    """Return a text that states the expected time of `jobs`.

    The dicts `here` (from earlier records) and `reference` (from the reference table) contain the
    mean seconds per job in each cell of the tables.
    """
    if not jobs:
        return "time: none"
    keys, known = [key_of(job) for job in jobs], {**reference, **here}
    seconds = [known[key] for key in keys if key in known]
    if not seconds:
        return "time: unknown, no earlier run"
    by = ["earlier records"] if any(key in here for key in keys) else []
    if any(key in reference and key not in here for key in keys):
        by.append("the reference run, on its computer")
    more = f"; {len(keys) - len(seconds)} jobs of unknown time" * (len(seconds) < len(keys))
    workers = f"{slots} process" + "es" * (slots > 1)
    return f"time: about {duration(sum(seconds) / slots)} with {workers} (by {'; '.join(by)}){more}"


def _stored(experiment: PlannedExperiment, rerun: str | None) -> tuple[set[str], dict[Key, float]]:
    """Return the keys of finished jobs, and the mean seconds per job in each cell of the tables.

    The keys do not include finished jobs that run again because of the option `rerun`.
    """
    try:
        store = RecordStore(experiment.folder)
    except UserError:  # the results folder does not exist yet
        return set(), {}
    done = {record.key: record for record in store.records()[0] if record.done}
    seconds = grouped((key_of(r.job), seconds_of(r.wall_seconds)) for r in done.values())
    keys = {job.key for job in experiment.jobs if job.key in done}
    if rerun:
        keys -= made_by_other_sources(experiment.jobs, {key: vars(done[key]) for key in keys})
    return keys, {key: fmean(values) for key, values in seconds.items()}


def reference_seconds(folder: Path) -> dict[Key, float]:
    """Return the mean seconds per job in each cell of the reference table."""
    if not (folder / CSV).is_file():
        return {}
    frame = read_reference(folder, frames=()).cells
    timed = frame[frame.metric.isin(SECONDS)].dropna(subset="measured")
    found = grouped(zip(timed.key, timed.measured, strict=True))
    return {key: sum(seconds) for key, seconds in found.items()}


# -- the size of a job -------------------------------------------------------------------------


def sizes_of(job: Job, **places: Any) -> Sizes:
    """Return the numbers of rows and columns of the data of a job.

    They are taken from the card, if there is one; without a stated number of training rows, all
    rows except test rows count. Other data are read by `load_dataset` with the arguments `places`.
    """
    counts, n_features, n_stored = _class_counts(job.dataset, **places)
    split, card, total = job.split, job.dataset.card, sum(counts)
    argument = split.args[0] if split.args else 0.0
    share = 1 / argument if split.rule in ("kfold", "time_series") else argument
    # a card may state the numbers of training and test rows for the official or the predefined
    # splits
    part = getattr(card and card.expect, split.rule, None)
    # if the configuration selects some of the classes, the numbers of rows in the card are
    # multiplied by the fraction of rows in these classes
    kept = total / card.expect.shape[0] if card and job.dataset.classes else 1.0
    n_test = ceil(kept * part.test) if part and part.test is not None else round(total * share)
    n_train = ceil(kept * part.train) if part and part.train is not None else total - n_test
    most = split.size or split.max_train or total
    if isinstance(most, tuple):
        counts = [min(count, most[1]) for count in counts]
    else:
        counts = [-(-count * min(n_train, most) // total) for count in counts]
    steps = dict(job.dataset.preprocess)
    n_columns = steps.get("pca") or 2 * (steps.get("pair_pca") or 0) or n_features
    rest = max(0, total - n_test - sum(counts)) if job.validates_on_rest else 0
    return Sizes(tuple(counts), n_test, int(n_columns), n_features, rest, n_stored)


@cache
def _class_counts(ref: DatasetRef, **places: Any) -> tuple[list[int], int, int | None]:
    """Return the rows per class, the number of columns, and the memory per row in units of 8 bytes.

    The memory is None for dense rows and for data with a card, since only the card is read.
    """
    if ref.card is None:
        data = load_dataset(ref, **places, allow_network=False)
        counts = np.unique(data.y, return_counts=True)[1].tolist()
        return counts, data.X.shape[1], stored_numbers(data.X)
    expect = ref.card.expect
    named = {str(label): count for label, count in expect.classes.items()}
    missing = expect.n_classes - len(named)
    rest = ceil((expect.shape[0] - sum(named.values())) / missing) if missing else 0
    if ref.classes:
        return [named.get(label, rest) for label in ref.classes], expect.shape[1], None
    return [*named.values(), *[rest] * missing], expect.shape[1], None
