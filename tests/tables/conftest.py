"""Results folders made by hand: real record files, invented numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.jobs.job import DatasetRef, Job, SplitRef
from mmbench.jobs.planned import Key, Plan, PlannedCell, grouped, key_of
from mmbench.jobs.record import new_record
from mmbench.jobs.seal import sealed
from mmbench.jobs.store import PLAN, RecordStore


@dataclass
class Results:
    """Writes experiments into a results folder."""

    folder: Path

    def experiment(
        self,
        name: str,
        datasets: Sequence[str] = (),
        machines: Iterable[str] = (),
        published_only: Sequence[str] = (),
        kernel: str | list[str] = "rbf",
        degree: int | list[int] = 3,
        splits: int = 1,
        **plan: Any,
    ) -> Experiment:
        """Make a folder with cells for data sets x kernels x machines; jobs may add others."""
        store = RecordStore.create(self.folder / name, f"name: {name}\n")
        cells = [
            Key(dataset, k, d, machine)
            for dataset in datasets
            for k in np.atleast_1d(kernel).tolist()
            for machine in [*machines, *published_only]
            for d in (np.atleast_1d(degree).tolist() if k == "poly" else [None])
        ]
        experiment = Experiment(name, store, cells, published_only, splits, plan)
        experiment.plan()
        return experiment


@dataclass
class Experiment:
    name: str
    store: RecordStore
    cells: list[Key]
    published_only: Sequence[str]
    splits: int
    settings: dict[str, Any]
    jobs: list[Job] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.store.folder

    def plan(self, *jobs: Job) -> None:
        """Store the plan with some more jobs; every data set has as many splits as any machine."""
        self.jobs += jobs
        groups = grouped((key_of(job), job) for job in self.jobs)
        counts = {key.dataset: self.splits for key in [*self.cells, *groups]}
        for key, found in groups.items():
            counts[key.dataset] = max(counts[key.dataset], len(found))
        cells = [
            PlannedCell(
                key,
                counts[key.dataset],
                tuple(job.key for job in groups.get(key, ())),
                key.machine in self.published_only,
            )
            for key in dict.fromkeys([*self.cells, *groups])
        ]
        plan = Plan(self.name, cells=tuple(cells), **self.settings)
        (self.folder / PLAN).write_bytes(plan.dump())

    def job(
        self, dataset: str, machine: str, *, repeat: int = 0, rule: str = "official", **job: Any
    ) -> Job:
        split = SplitRef(rule, (0.1,) if rule == "holdout" else (), repeat)
        defaults = {"kernel": "rbf"} | job
        return Job(self.name, DatasetRef(dataset), f"hash of {dataset}", split, machine, **defaults)

    def add(self, job: Job, errors: int = 10, n_test: int = 100, **content: Any) -> str:
        """Plan a job and store its record; `content` overrides parts of it."""
        self.plan(job)
        return self.add_unplanned(job, errors, n_test, **content)

    def add_unplanned(
        self, job: Job, errors: int = 10, n_test: int = 100, arrays: Any = None, **content: Any
    ) -> str:
        """Store the record of a job that the plan does not have."""
        self.store.write(done_record(job, errors, n_test) | content, arrays)
        return job.key

    def add_many(self, datasets: Sequence[str], machines: Sequence[str], n_splits: int) -> None:
        """Plan and store records of all splits, with files that are not synced one by one."""
        rng = np.random.default_rng(0)
        jobs = [
            self.job(dataset, machine, repeat=repeat, rule="holdout")
            for dataset in datasets
            for machine in machines
            for repeat in range(n_splits)
        ]
        self.plan(*jobs)
        for job, errors in zip(jobs, rng.integers(5, 30, len(jobs)).tolist(), strict=True):
            record = done_record(job, errors, 100)
            text = sealed({**record, "arrays": None}, indent=1)
            self.store.path_of(job.key).write_bytes(text)

    def fail(self, job: Job, status: Status = Status.FAILED, reason: str = "broke") -> None:
        self.plan(job)
        self.store.write(new_record(job, status, reason))


def done_record(job: Job, errors: int, n_test: int) -> dict[str, Any]:
    return new_record(
        job,
        Status.OPTIMAL,
        metrics={
            "accuracy_pct": 100 * (1 - errors / n_test),
            "errors_count": errors,
            "errors_expected": errors - 0.5,
            "errors_random": errors,
            "n_ties": 3,
            "n_test": n_test,
        },
        cpu_seconds={"selection": 10.0, "training": 1.5, "test": 0.25},
        split={"digest": "d", "origin": "official", "n_train": 200, "n_test": n_test},
        fits={
            "n": 1,
            "statuses": {"optimal": 1},
            "worst_violation": 1e-9,
            "worst_gap": 2e-10,
            "n_support_mean": 30.0,
            "iterations": 12,
        },
        per_pair=[{"pair": [0, 1], "status": "optimal", "extra": {}}],
        environment={
            "mmbench": "0.1.0",
            "python": "3.11",
            "cpu": "a processor",
            "threads": {"pairs": 1},
        },
    )


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """An empty results folder that experiments can be added to."""
    return Results(tmp_path / "results")


@pytest.fixture(scope="module")
def lasting_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A results folder that the tests of a module read and do not change."""
    return Results(tmp_path_factory.mktemp("lasting") / "results")


#: Sizes of USPS as the paper prints them; a record of other sizes is not compared.
USPS = {"n_train": 7291, "n_test": 2007}


@pytest.fixture
def usps(results: Results) -> Experiment:
    """USPS with SVM, RMM and MMRM, as the main experiment leaves it."""
    return make_usps(results)


@pytest.fixture(scope="module")
def lasting_usps(lasting_results: Results) -> Experiment:
    """The same, for tests that do not change it."""
    return make_usps(lasting_results)


def make_usps(results: Results) -> Experiment:
    experiment = results.experiment(
        "usps_rbf", datasets=["usps"], machines=["svm", "rmm", "mmrm"], layout="mmrm_table2"
    )
    for machine, errors in (("svm", 91), ("rmm", 90), ("mmrm", 92)):
        job = experiment.job("usps", machine)
        split = {"digest": "d", "origin": "official", **USPS}
        experiment.add(job, errors, USPS["n_test"], split=split, per_pair=ten_class_pairs())
    return experiment


def ten_class_pairs() -> list[dict[str, Any]]:
    return [
        {"pair": [i, j], "status": "optimal", "extra": {"margin_ratio": 1.0 + i + j / 10}}
        for i, j in combinations(range(10), 2)
    ]


@pytest.fixture
def margin_ratios(results: Results) -> Callable[..., Experiment]:
    """An experiment with one MMRM record of 10 classes, for the figure."""

    def make(name: str = "mmrm_fig2", pairs: list[dict[str, Any]] | None = None) -> Experiment:
        pairs = ten_class_pairs() if pairs is None else pairs
        experiment = results.experiment(name, datasets=["usps"], machines=["mmrm"])
        experiment.add(
            experiment.job("usps", "mmrm"),
            per_pair=pairs,
            arrays=pair_arrays(np.random.default_rng(0)),
        )
        return experiment

    return make


def pair_arrays(rng: np.random.Generator, n_rows: int = 500) -> dict[str, np.ndarray]:
    """Decisions of the 45 pairs that err on about 2 % of the rows."""
    truth = rng.integers(0, 10, n_rows)
    decisions = np.empty((n_rows, 45), dtype=np.float32)
    for k, (_, positive) in enumerate(combinations(range(10), 2)):
        sign = np.where(truth == positive, 1, -1) * np.where(rng.random(n_rows) < 0.02, -1, 1)
        decisions[:, k] = sign * rng.random(n_rows)
    return {"y_test": truth, "decisions": decisions}
