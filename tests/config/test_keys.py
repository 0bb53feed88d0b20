"""The jobs of the committed experiments ask for what they asked for when they were first run."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from helpers.planned import full_plan

from mmbench.jobs.job import Job

#: By experiment, a hash of what the jobs of its first split and their parents ask for, computed by
#: the code before aliases replaced estimator classes. Data and versions of machines are left out.
TASKS = {
    "fsvm_release": "c2c8cf42b7589261bc25",
    "fsvm_release_leak": "7dadc62a08cc4876de43",
    "fsvm_rounds": "e2376d8eea0fd23d93e5",
    "fsvm_table2": "619dd3cbfb075f563966",
    "fsvm_table2_uci": "38171928ef804fb3cbf2",
    "fsvm_table4": "a2535a61be729f47d493",
    "lfw": "496426dd0d0437d5da89",
    "lfw_people": "60ea17952d6660395169",
    "m4_fig7": "f716e129d245c65594e6",
    "m4_table1": "b341e62f768e351b972a",
    "m4_table2": "f6da8690932561c0331e",
    "m4_table2_holdout": "bde251b742dcc57f293e",
    "mamc_table2": "3c9983da57eecc8eea8b",
    "mmrm_fig2": "62c4b0d7ad5bd5703192",
    "mmrm_table1": "765e5c56bacc4059acad",
    "mmrm_table2": "cfdeeec46d0da384fb3e",
    "quickstart": "85c5cfb2bbf2bca9a2f5",
    "rmm_fig2": "bbe94c157ad89d8a3c0f",
    "rmm_journal_table4": "765ff6ce3ddc4f6cab31",
    "rmm_table1_mnist": "46fe01c68e456a040c83",
    "rmm_table1_mnist1000": "8f392901cfd61361c2dd",
    "rmm_table1_mnist23": "012fed3167f74cb04286",
    "rmm_table1_opt": "8e0331d6b774f607df5f",
    "rmm_table1_usps": "7d06e42b5516a5671b16",
    "usps_rbf": "a6d22429caa39b7b5819",
}


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
