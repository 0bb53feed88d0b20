"""The arrays of a job, and what is said of its data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from mmbench.config.plan import plan
from mmbench.config.read import load_config, load_configs
from mmbench.datasets import split_at
from mmbench.jobs.data import prepare


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

    monkeypatch.setattr("mmbench.jobs.data.split_at", counted)
    found = [prepare(job, tmp_path, None) for job in jobs]
    assert (len(found), len(made)) == (9, 3)
    for data in found:
        np.testing.assert_allclose(data.X_train.mean(axis=0), 0, atol=1e-12)
        assert len(data.X_test) == 50
    found[0].X_train[:] = 0  # arrays are not shared
    assert prepare(jobs[0], tmp_path, None).X_train.any()
