"""The job is the name of its record: keys are stable, and tell apart what differs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from mmbench.jobs.job import DatasetRef, Job, SelectRef, SplitRef

JOB = Job(
    experiment="trial",
    dataset=DatasetRef("mnist", preprocess=(("divide", 255), ("pca", 80))),
    dataset_hash="0" * 64,
    split=SplitRef("holdout", (0.1,), repeat=3, seed=7),
    machine="rmm",
    kernel="poly",
    params=(("B", None), ("degree", 2)),
    grid=(("B_fraction", (0.5, 1.0)), ("C", (1, 10))),
    use="svm",
    parent="abc",
    select=SelectRef(folds=None, split=0.2, repeats=5, prefer=(("C", "large"),)),
)

numbers = st.integers(-(2**31), 2**31) | st.floats(allow_nan=False, allow_infinity=False)
pairs = st.lists(st.tuples(st.text(min_size=1), numbers), max_size=3).map(tuple)
axes = st.lists(
    st.tuples(st.text(min_size=1), st.lists(numbers, min_size=1, max_size=4).map(tuple)), max_size=3
).map(tuple)
jobs = st.builds(
    lambda params, grid, repeat, text: replace(
        JOB, params=params, grid=grid, split=replace(JOB.split, repeat=repeat), machine=text
    ),
    pairs,
    axes,
    st.integers(0, 1000),
    st.text(),
)

JOBS = [
    JOB,
    replace(JOB, params=(), machine=""),
    replace(JOB, params=(("C", 1),)),
    replace(JOB, params=(("C", 1.5),)),
    replace(JOB, params=(("C", -0.0), ('\x00é𝄞"', 2**31))),
    replace(JOB, grid=(("C", (1e-320, 1.7e308, 0.1 + 0.2)),), machine="\n"),
    replace(JOB, split=replace(JOB.split, repeat=1000)),
]


@given(jobs)
@examples(job=JOBS)
def test_job_survives_json(job: Job):
    again = Job.from_dict(json.loads(json.dumps(job.to_dict())))
    assert again == job
    assert again.key == job.key


@given(jobs, jobs)
@examples(one=JOBS, other=JOBS[1:])
def test_different_jobs_have_different_keys(one: Job, other: Job):
    assert (one == other) == (one.key == other.key)


def test_key_is_the_same_in_another_process():
    code = (
        "import json, sys; from mmbench.jobs.job import Job;"
        "print(Job.from_dict(json.load(sys.stdin)).key)"
    )
    text = json.dumps(JOB.to_dict())
    other = subprocess.run(
        [sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == JOB.key


def test_key_ignores_what_cannot_alter_the_result():
    elsewhere = replace(JOB.dataset, path="/elsewhere/mnist.csv")
    for same in (
        replace(JOB, experiment="another"),
        replace(JOB, dataset=elsewhere),
        replace(JOB, params=(("B", None), ("degree", 2.0))),
    ):
        assert same.key == JOB.key


@pytest.mark.parametrize(
    "change",
    [
        {"dataset_hash": "1" * 64},
        {"dataset": DatasetRef("mnist")},
        {"dataset": replace(JOB.dataset, classes=("3", "8"))},
        {"machine": "svm"},
        {"kernel": "rbf"},
        {"ties": "random"},
        {"parent": "xyz"},
        {"machine_version": 2},
        {"select": SelectRef()},
        {"split": replace(JOB.split, seed=8)},
        {"split": replace(JOB.split, max_train=100)},
        {"grid": JOB.grid[:1]},
    ],
)
def test_key_changes_with_what_may_alter_the_result(change: dict):
    assert replace(JOB, **change).key != JOB.key


def test_training_sizes_share_no_key():
    one, other = (
        replace(JOB, split=replace(JOB.split, max_train=("nested", n))) for n in (100, 200)
    )
    assert one.key != other.key
    assert (one.split.size, JOB.split.size) == (100, None)


def test_cell_digest_is_shared_by_splits_only():
    other_split = replace(JOB, split=replace(JOB.split, repeat=4), parent="of that split")
    other_grid = replace(JOB, grid=JOB.grid[:1])
    assert other_split.cell_digest == JOB.cell_digest != other_grid.cell_digest


def test_incomplete_or_unknown_fields_are_refused():
    for spoil in (lambda d: d.pop("ties"), lambda d: d.update(colour="red")):
        values = JOB.to_dict()
        spoil(values)
        with pytest.raises((KeyError, TypeError)):
            Job.from_dict(values)
