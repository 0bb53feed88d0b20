"""Trial fits of classifiers and transformers of other packages before an experiment is run."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench import machines
from mmbench.datasets.dataset import Dataset, check_classes
from mmbench.datasets.fetch import NotAvailable
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import split_at
from mmbench.datasets.preprocess import is_path, make_preprocess
from mmbench.errors import UserError, readable
from mmbench.jobs.job import Job
from mmbench.jobs.train import by_label, is_class_weight, job_seeds, make_machine
from mmbench.machines.base.foreign import ForeignClassifier

#: Number of rows of each class in the first trial fit. If it fails, since these rows are too few or
#: since the class cannot be fitted at all, all training rows of the split are used.
FEW_ROWS = 20
#: Maximum number of values of a parameter that are tried; of more values, only the ends are tried.
MAX_VALUES = 10


def needs_trial(job: Job) -> bool:
    """Return whether a job has steps, a classifier or class weights that only data can check."""
    foreign = issubclass(machines.machine_class(job.machine), ForeignClassifier)
    return foreign or any(is_path(name) for name, _ in job.dataset.preprocess) or bool(_named(job))


def faults(
    jobs: Sequence[Job], store: Path, mirror: str | None, allow_network: bool
) -> dict[str, str]:
    """Return the entries of ``machines`` whose jobs would fail, with the reasons.

    All jobs have the same data set and the same split. If the data are not available, no reasons
    are returned.
    """
    places: dict[str, Any] = {"store": store, "mirror": mirror, "allow_network": allow_network}
    try:
        data = load_dataset(jobs[0].dataset, **places)
    except NotAvailable:
        return {}
    split = asdict(jobs[0].split)
    train = split_at(spec=split.pop("rule"), **split, dataset=data).train
    y = data.y[train]
    few = np.concatenate([np.flatnonzero(y == label)[:FEW_ROWS] for label in np.unique(y)])
    with warnings.catch_warnings(action="ignore"):
        found = _faults(jobs, data, train[np.sort(few)])
        return _faults([job for job in jobs if job.column in found], data, train) if found else {}


def _faults(jobs: Sequence[Job], data: Dataset, rows: NDArray) -> dict[str, str]:
    """Return the entries of ``machines`` that cannot be fitted to some rows, with the reasons."""
    found: dict[str, str] = {}
    X, y = data.X[rows], data.y[rows]
    steps = make_preprocess(jobs[0].dataset.preprocess, data.n_categorical)
    for name, step in steps.steps:
        problem = f"preprocess: {name.partition('_')[2]} cannot be fitted"
        with _noted(found, problem, *(job.column for job in jobs)):
            X = step.fit(X, y).transform(X)
        if found:
            return found
    for job in jobs:
        with _noted(found, f"machines.{job.column}: class_weight", job.column):
            for weights in _named(job):
                check_classes(weights, data.classes.tolist(), data.name)
        if not issubclass(machines.machine_class(job.machine), ForeignClassifier):
            continue
        for point in _points(job):
            with _noted(found, f"machines.{job.column} cannot be fitted", job.column):
                machine = make_machine(job, 1, job_seeds(job)["machine"], y)
                machine.set_params(**by_label(point, y)).fit(X, y).predict(X)
    return found


@contextmanager
def _noted(found: dict[str, str], problem: str, *columns: str) -> Iterator[None]:
    """Context manager: add an error inside the block to `found` as the reason of all `columns`."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        found.update(dict.fromkeys(columns, readable(f"{problem}: {kind}{error}")))


def _points(job: Job) -> list[dict[str, Any]]:
    """Return grid points that contain every value, or the ends of long lists of values."""
    axes = {n: v if len(v) <= MAX_VALUES else (v[0], v[-1]) for n, v in job.grid}
    first = {name: values[0] for name, values in axes.items()}
    return [first, *({**first, n: value} for n, values in axes.items() for value in values[1:])]


def _named(job: Job) -> list[Mapping[str, Any]]:
    """Return the class weights by label in the parameters and in the grid of a job."""
    values = [*job.params, *((name, value) for name, axis in job.grid for value in axis)]
    return [v for name, v in values if is_class_weight(name) and isinstance(v, Mapping)]
