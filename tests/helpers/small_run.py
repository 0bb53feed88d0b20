"""A small experiment on data inside scikit-learn; as a script, runs it in a process of its own."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mmbench.datasets.load import dataset_hash
from mmbench.jobs.job import DatasetRef, Job, SelectRef, SplitRef
from mmbench.jobs.store import RecordStore
from mmbench.running.local import LocalExecutor
from mmbench.running.runner import run

NO_DATA = Path("no-such-store")  # data inside scikit-learn need none


def make_jobs(n_splits: int, dataset: str = "wine") -> list[Job]:
    """Return an SVM with a grid and one that inherits from it, on every split."""
    jobs = []
    for repeat in range(n_splits):
        parent = Job(
            experiment="small",
            dataset=DatasetRef(dataset, preprocess=(("standard", None),)),
            dataset_hash=dataset_hash(dataset, store=NO_DATA),
            split=SplitRef("holdout", (0.3,), repeat),
            machine="svm",
            kernel="rbf",
            grid=(("C", (1, 10)), ("gamma", (0.01, 0.1))),
            select=SelectRef(folds=3),
        )
        child = replace(
            parent, grid=(), params=(("solver", "reference"),), use="svm", parent=parent.key
        )
        jobs += [parent, child]
    return jobs


if __name__ == "__main__":
    folder, slots, n_splits, dataset = sys.argv[1:]
    store = RecordStore.create(Path(folder), "name: small\n")
    summary = run(make_jobs(int(n_splits), dataset), store, LocalExecutor(int(slots)), data=NO_DATA)
    sys.exit(summary.exit_code)
