"""The jobs of the committed experiments ask for what they asked for when they were first run."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from helpers.planned import full_plan

from mmbench.jobs.job import Job

#: By experiment, a hash of what the jobs of its first split and their parents ask for, computed by
#: the code of 29 November 2026. Data and versions of machines are left out.
TASKS = {
    "fsvm_release": "35b87f7c78473c4973f4",
    "fsvm_release_leak": "4a3dbfe6fee5e7d02e0d",
    "fsvm_rounds": "7c0e51224a4092f0e891",
    "fsvm_table2": "7994e59583ff309a7565",
    "fsvm_table2_uci": "b8bd352f6e8a3d15c52c",
    "fsvm_table4": "c5d5ed5073cfcb691950",
    "lfw": "db2ea4d0d4ca67393245",
    "lfw_people": "402879d08891bb8bb086",
    "m4_fig7": "003f98a7ce045b2acd5f",
    "m4_table1": "96fb369dd5de4a1699d2",
    "m4_table2": "8642b78b1bdea6e325e5",
    "m4_table2_holdout": "3956667afbfacd38a799",
    "mamc_table2": "da9f9e7e04004f283004",
    "mmrm_fig2": "cf99acd84da57280d3bf",
    "mmrm_table1": "7e0152670722987490ff",
    "mmrm_table2": "73a87444ac04a1ef7920",
    "quickstart": "33c019f915b464acb5d7",
    "rmm_fig2": "fada5cbdad8082db6125",
    "rmm_journal_table4": "ac74b97471d8d90ef60d",
    "rmm_table1_mnist": "76a1c74c13f7f9691c0f",
    "rmm_table1_mnist1000": "710609c72873bc7c0136",
    "rmm_table1_mnist23": "c8ab66eccd9d05471deb",
    "rmm_table1_opt": "5c72bd48653a0b59af3e",
    "rmm_table1_usps": "1b36c76686e559dca685",
    "usps_rbf": "2f48010bcd665cc9c574",
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
