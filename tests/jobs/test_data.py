"""The arrays of a job, and what is said of its data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mmbench.config.plan import plan
from mmbench.config.read import load_config
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
