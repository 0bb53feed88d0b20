"""Fixtures: jobs on data inside scikit-learn, and a folder for their records."""

from __future__ import annotations

import pytest

from helpers.small_run import NO_DATA, make_jobs
from mmbench.jobs.job import Job
from mmbench.jobs.store import RecordStore
from mmbench.running.worker import Context


@pytest.fixture
def jobs() -> list[Job]:
    return make_jobs(2)


@pytest.fixture
def job(jobs) -> Job:
    return jobs[0]


@pytest.fixture
def store(tmp_path) -> RecordStore:
    return RecordStore.create(tmp_path / "results" / "small", "name: small\n")


@pytest.fixture
def context() -> Context:
    return Context(NO_DATA)


@pytest.fixture
def other_store(tmp_path):
    return RecordStore.create(tmp_path / "other", "name: small\n")
