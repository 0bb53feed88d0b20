"""The arrays of a job, and what is said of its data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from mmbench.config.plan import plan
from mmbench.config.read import config_of, load_config, load_configs
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import split_at
from mmbench.errors import UserError
from mmbench.jobs.job import SelectRef
from mmbench.jobs.prepare import prepare
from mmbench.running.worker import execute


@pytest.mark.parametrize(
    ("test", "told"), [("predefined", True), ({"kfold": 10}, False), ({"holdout": 0.3}, False)]
)
def test_how_splits_differ_is_told_where_they_are_used(test, told, mirror: Path, tmp_path: Path):
    config = {
        "name": "splits",
        "datasets": ["ida_heart"],
        "kernel": "linear",
        "protocol": {"test": test, "repeats": 1},
        "machines": {"svm": {"params": {"C": 1.0}}},
    }
    path = tmp_path / "splits.yaml"
    path.write_text(yaml.safe_dump(config))
    store, place = tmp_path / "store", str(mirror)
    job = plan(load_config(path), store, place)[0]
    text = " ".join(prepare(job, store, place).deviations)
    assert ("splits 1 to 10 of 100 are the official ones" in text) is told


def test_machines_share_the_split_and_the_fitted_preprocessing(monkeypatch, tmp_path: Path):
    config = {
        "name": "shared",
        "datasets": ["iris"],
        "preprocess": "standard",
        "protocol": {"test": {"kfold": 3}},
        "machines": {"svm": {}, "rmm": {}, "klda": {}},
    }
    jobs = plan(load_configs([config])[0], tmp_path)
    made = []

    def counted(*args, **options):
        made.append(options)
        return split_at(*args, **options)

    monkeypatch.setattr("mmbench.jobs.prepare.split_at", counted)
    found = [prepare(job, tmp_path, None) for job in jobs]
    assert (len(found), len(made)) == (9, 3)
    for data in found:
        np.testing.assert_allclose(data.X_train.mean(axis=0), 0, atol=1e-12)
        assert len(data.X_test) == 50
    found[0].X_train[:] = 0  # arrays are not shared
    assert prepare(jobs[0], tmp_path, None).X_train.any()


def test_rows_of_a_pair_are_those_of_the_two_largest_classes(job, context):
    data = prepare(job, context.data, None)
    counts = sorted(np.unique(data.y_train, return_counts=True)[1])
    assert counts[0] < counts[1]
    assert data.split["n_train_pair"] == counts[1] + counts[2]


def test_test_rows_of_some_classes_are_numbered_in_the_whole_data_set(job, context):
    whole = load_dataset("wine", store=context.data)
    ref = replace(job.dataset, classes=("class_1", "class_2"))
    data = prepare(replace(job, dataset=ref), context.data, None)
    assert set(whole.y) - set(data.y_test) == {"class_0"}
    assert np.array_equal(whole.y[data.test_index], data.y_test)


def test_parameters_cannot_be_validated_on_the_rest_if_all_rows_train(job, context):
    some, every = (
        replace(job, select=SelectRef(folds=None), split=replace(job.split, max_train=size))
        for size in (100, 178)
    )
    data = prepare(some, context.data, None)
    assert (len(data.y_train), len(data.y_pool)) == (100, 125)
    with pytest.raises(UserError, match="max_train leaves no row to validate on"):
        prepare(every, context.data, None)


def test_warnings_about_a_file_are_in_the_record(context, tmp_path: Path):
    lines = [f"{k},{k * k % 7},{'ab'[k % 2]}" for k in range(40)]
    (tmp_path / "own.csv").write_text("\n".join(["row,x,kind", *lines]) + "\n")
    content = {
        "name": "own",
        "datasets": [{"path": "own.csv", "target": "kind"}],
        "kernel": "linear",
        "protocol": {"test": {"holdout": 0.3}},
        "machines": {"svm": {}},
    }
    job, *_ = plan(config_of(content, tmp_path / "own.yaml"), context.data)
    record, _ = execute(job, context)
    assert any("'row'" in warning for warning in record["warnings"])
