"""Jobs on data inside scikit-learn, and a folder for their records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmbench.experiment.jobs import DatasetRef, Job, SplitRef
from mmbench.running.store import RecordStore


@pytest.fixture
def job() -> Job:
    return Job(
        experiment="small",
        dataset=DatasetRef("wine", preprocess=(("standard", None),)),
        dataset_hash="0" * 64,
        split=SplitRef("holdout", (0.3,)),
        machine="svm",
        kernel="rbf",
        params=(("C", 10), ("gamma", 0.1)),
    )


@pytest.fixture
def jobs(job) -> list[Job]:
    return [replace(job, split=replace(job.split, repeat=k)) for k in range(3)]


@pytest.fixture
def store(tmp_path) -> RecordStore:
    return RecordStore.create(tmp_path / "results" / "small", "name: small\n")
