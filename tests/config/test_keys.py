"""The jobs of the committed experiments ask for what they asked for when they were first run."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from helpers.cases import cases
from helpers.planned import full_plan

from mmbench.jobs.job import Job

#: By experiment, a hash of what the jobs of its first split and their parents ask for, computed by
#: the code of 29 November 2026. Data and versions of machines are left out.
TASKS = cases(__file__, "tasks.yaml")


#: Fields that a task does not depend on: the hash of the data, the record taken over, the version
#: and the defaults of the machine.
SAME_FOR_ALL = {"dataset_hash": "0" * 64, "parent": None, "machine_version": 0, "defaults": ()}


def digest_of(jobs: list[Job]) -> str:
    tasks = {job.key: replace(job, **SAME_FOR_ALL).key for job in jobs}
    first = [job for job in jobs if job.split.repeat == job.split.fold == 0]
    lines = sorted(f"{tasks[job.key]} {tasks.get(job.parent)}" for job in first)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:20]


@pytest.mark.parametrize("name", TASKS)
def test_the_tasks_of_an_experiment_are_unchanged(name: str):
    assert digest_of(full_plan(name)) == TASKS[name]
