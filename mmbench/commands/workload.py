"""What a job works on, before it runs: rows, grid points, trainings."""

from dataclasses import replace
from functools import cache
from math import ceil, prod
from pathlib import Path

import numpy as np

from mmbench.datasets import DatasetRef, load_dataset
from mmbench.jobs.job import Job
from mmbench.machines import alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.running.memory import Sizes, planned_sizes, stored_numbers
from mmbench.selection.grid import staged


def n_points(job: Job) -> int:
    """Return the number of grid points that selection tries: stages are searched one by one."""
    parts = staged(dict(job.grid), alias_of(job.machine).stages)
    return sum(prod(map(len, part.values())) for part in parts) if job.grid else 0


def n_searched(job: Job) -> int:
    """Return the number of trainings of a pair of classes that selection makes."""
    return n_points(job) * (job.select.folds or 1) * job.select.repeats


def n_fits(job: Job) -> int:
    """Return the number of trainings of a job, one a pair of classes."""
    n_classes = len(class_counts(job.dataset)[0])
    foreign = issubclass(machine_class(job.machine), ForeignClassifier)
    n_pairs = 1 if foreign else n_classes * (n_classes - 1) // 2
    return n_pairs * (n_searched(job) + 1)


def sizes_of(job: Job) -> Sizes:
    """Return the rows and columns of a job."""
    counts, n_features, n_stored = class_counts(job.dataset)
    card = job.dataset.card
    test = train = None
    if card is not None:
        expect = card.expect
        part = {"official": expect.official, "predefined": expect.predefined}.get(job.split.rule)
        test, train = (part.test, part.train) if part else (None, None)
        if job.dataset.classes:  # of a split that the card states, their share
            share = sum(counts) / expect.shape[0]
            test, train = (None if n is None else ceil(share * n) for n in (test, train))
    return replace(planned_sizes(job, counts, n_features, test, train), n_stored=n_stored)


@cache
def class_counts(ref: DatasetRef) -> tuple[list[int], int, int | None]:
    """Return the rows of each class, the number of columns, and what a sparse row takes.

    A card knows, a file is read.

    Raises
    ------
    UserError
        If a user's file is bad.
    """
    if ref.card is None:
        data = load_dataset(ref, store=Path())
        counts = np.unique(data.y, return_counts=True)[1].tolist()
        return counts, data.X.shape[1], stored_numbers(data.X)
    expect = ref.card.expect
    named = {str(label): count for label, count in expect.classes.items()}
    missing = expect.n_classes - len(named)
    rest = ceil((expect.shape[0] - sum(named.values())) / missing) if missing else 0
    if ref.classes:
        return [named.get(label, rest) for label in ref.classes], expect.shape[1], None
    return [*named.values(), *[rest] * missing], expect.shape[1], None
