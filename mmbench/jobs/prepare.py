"""Make the arrays of a job: load, split and preprocess a data set."""

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.datasets.dataset import DatasetRef, too_few_rows
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import Split, split_at
from mmbench.datasets.preprocess import make_preprocess, use_labels
from mmbench.errors import UserError
from mmbench.jobs.job import Job, SplitRef


@dataclass(frozen=True)
class LabelSteps:
    """Preprocessing steps that use labels, with the rows before these steps.

    Parameter selection and calibration fit the steps on the training part of each inner split, so
    that the steps do not see the labels of the rows that this part leaves out.
    """

    unfitted: Any
    #: Rows of `Prepared.X_pool` and of `Prepared.X_test` before the steps.
    X_pool: NDArray = field(repr=False)
    X_test: NDArray = field(repr=False)


@dataclass(frozen=True)
class Prepared:
    """The arrays of one split, preprocessed by steps fitted on the training rows."""

    X_train: NDArray = field(repr=False)
    y_train: NDArray = field(repr=False)
    X_test: NDArray = field(repr=False)
    y_test: NDArray = field(repr=False)
    #: Rows for model selection: the training rows, followed by rows used for validation only.
    X_pool: NDArray = field(repr=False)
    y_pool: NDArray = field(repr=False)
    #: Indices of the test rows in the full data set with all classes. Shape (n_test,).
    test_index: NDArray = field(repr=False)
    #: Sizes and hash of the split, as stored in the record.
    split: dict[str, Any]
    #: Number of training rows per class.
    class_counts: tuple[int, ...]
    #: Differences of the job's data from the full data set, such as a subset of the classes.
    deviations: tuple[str, ...]
    #: Warnings about possible faults in a user's data file.
    warnings: tuple[str, ...]
    #: Group labels of the rows of `X_pool`, or None; rows of one group belong to the same fold.
    #: Shape (n_pool,).
    groups_pool: NDArray | None = field(default=None, repr=False)
    #: The steps of the preprocessing if a step uses labels, otherwise None.
    label_steps: LabelSteps | None = None


def prepare(job: Job, store: Path, mirror: str | None) -> Prepared:
    """Return the arrays of a job.

    Data files are read from the local folder `store`, or from `mirror`, a folder or URL with
    copies. Raises UserError if the data cannot be loaded or have too few rows for the job's folds.
    """
    ref = job.dataset
    dataset = _cached(ref, store=store, mirror=mirror)
    if dataset.content_hash != job.dataset_hash:
        raise UserError(f"{ref.path or ref.name}: the data changed since the run was planned")
    split, steps = _fitted(ref, dataset.content_hash, job.split, store, mirror)
    check_rows(job, dataset.y[split.train], len(split.rest))
    rest = split.rest if job.validates_on_rest else split.rest[:0]
    seen = np.append(split.train, split.test if job.validates_on_test else rest)
    label_steps = None
    if use_labels(steps):
        label_steps = LabelSteps(clone(steps), dataset.X[seen], dataset.X[split.test])
    X_pool, y_pool, n_train = steps.transform(dataset.X[seen]), dataset.y[seen], len(split.train)
    class_counts = tuple(np.unique(y_pool[:n_train], return_counts=True)[1].tolist())
    given = job.split.rule == "predefined"
    return Prepared(
        X_train=X_pool[:n_train],
        y_train=y_pool[:n_train],
        X_pool=X_pool,
        y_pool=y_pool,
        X_test=steps.transform(dataset.X[split.test]),
        y_test=dataset.y[split.test],
        test_index=split.test if dataset.rows is None else dataset.rows[split.test],
        split={
            "digest": split.digest,
            "origin": split.origin,
            "n_train": n_train,
            "n_train_pair": sum(sorted(class_counts)[-2:]),
            "n_test": len(split.test),
            "n_features": dataset.X.shape[1],
        },
        class_counts=class_counts,
        deviations=dataset.deviations + (dataset.split_deviations if given else ()),
        warnings=dataset.warnings,
        groups_pool=None if dataset.groups is None else dataset.groups[seen],
        label_steps=label_steps,
    )


# A cache of one data set suffices, since jobs are ordered by data set. Two large data sets may
# exceed the memory.
_cached = lru_cache(maxsize=1)(load_dataset)


@lru_cache(maxsize=16)  # the jobs of all machines use the same splits
def _fitted(
    ref: DatasetRef, content_hash: str, split: SplitRef, store: Path, mirror: str | None
) -> tuple[Split, Any]:
    """Return a split, and the preprocessing steps fitted on its training rows.

    The argument `content_hash` is used only as a key of the cache: if a data file changes during a
    run, the new data have a new cache entry.
    """
    dataset, values = _cached(ref, store=store, mirror=mirror), asdict(split)
    found = split_at(spec=values.pop("rule"), **values, dataset=dataset)
    # the first three numbers of this sequence are the seeds of `mmbench.jobs.train.job_seeds`
    *_, seed = np.random.SeedSequence([split.seed, split.repeat, split.fold]).generate_state(4)
    steps = make_preprocess(ref.preprocess, dataset.n_categorical, int(seed))
    return found, steps.fit(dataset.X[found.train], dataset.y[found.train])


def check_rows(job: Job, y_train: NDArray, n_rest: int) -> None:
    """Raise UserError if the training rows have only one class, or if there are too few rows.

    `n_rest` is the number of rows that `max_train` excludes from training. If parameters are
    validated on the excluded rows, `n_rest` must be positive. A class needs at least one training
    row per fold.
    """
    where = f"data set {job.dataset.name!r}"
    labels, counts = np.unique(y_train, return_counts=True)
    if len(labels) < 2:
        raise UserError(f"{where}: the training part has only the class {labels[0]!s}")
    folds = job.select.folds if job.grid and job.split.rule != "time_series" else None
    for n, key in ((folds, "select"), (job.calibration_folds, "calibrate")):
        if n and (problem := too_few_rows(y_train, n)):
            fewer = "leave the class out (key classes of the data set)"
            way = f"--set select.folds={min(counts)}" if min(counts) > 1 else fewer
            way += f", or leave out {key!r}" * (key == "calibrate")
            raise UserError(f"{where}: in the training part, {problem} of {key!r}; {way}")
    if job.validates_on_rest and not n_rest:
        raise UserError(f"{where}: protocol.max_train leaves no row to validate on")
