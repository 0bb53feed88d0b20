"""Selection by the test part: the leak is measured, and said in every table."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from helpers.drawn import table
from sklearn.datasets import load_wine

from mmbench.config.plan import plan
from mmbench.config.read import load_config
from mmbench.errors import UserError
from mmbench.jobs.prepare import prepare
from mmbench.running.worker import Context, execute

CONFIG = {
    "name": "leaky",
    "datasets": ["wine"],
    "kernel": "linear",
    "protocol": {"test": {"kfold": 3}, "seed": 0},
    "select": {"validation": "test"},
    "machines": {"fsvm": {"grid": {"C": [0.001, 0.1, 10.0]}}},
}


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "leaky.yaml"
    path.write_text(yaml.safe_dump(CONFIG))
    return plan(load_config(path), tmp_path / "store")


def test_the_pool_of_a_leaky_job_ends_in_the_test_rows_and_scaling_does_not_see_them(
    jobs, tmp_path
):
    data = prepare(jobs[0], tmp_path / "store", None)
    np.testing.assert_array_equal(data.X_pool[len(data.y_train) :], data.X_test)
    np.testing.assert_array_equal(data.y_pool, np.append(data.y_train, data.y_test))


@pytest.mark.parametrize("select", [{"folds": 3}, {"validation": "test"}])
def test_scales_and_components_are_fitted_on_the_training_rows_alone(select, tmp_path):
    path, steps = tmp_path / "own.yaml", ["minmax", {"pca": 3}]
    path.write_text(yaml.safe_dump({**CONFIG, "select": select, "preprocess": steps}))
    data = prepare(plan(load_config(path), tmp_path / "store")[0], tmp_path / "store", None)
    X = load_wine().data
    train = np.setdiff1d(np.arange(len(X)), data.test_index)
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    assert (X[data.test_index] < low).any() or (X[data.test_index] > high).any()
    scaled = (X - low) / (high - low)
    origin = scaled[train].mean(axis=0)
    axes = np.linalg.svd(scaled[train] - origin)[2][:3].T
    np.testing.assert_allclose(data.X_train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(
        np.abs(data.X_test), np.abs((scaled[data.test_index] - origin) @ axes), atol=1e-9
    )


def test_the_choice_is_the_best_of_the_grid_on_the_test_rows(jobs, tmp_path):
    record, _ = execute(jobs[0], Context(tmp_path / "store"))
    scores = {row["C"]: 100 * row["score"] for row in record["selection"]["scores"]}
    assert record["metrics"]["accuracy_pct"] == pytest.approx(max(scores.values()))


def test_a_table_of_leaky_records_says_so(jobs, tmp_path):
    from mmbench.jobs.store import RecordStore

    store = RecordStore.create(tmp_path / "results" / "leaky", yaml.safe_dump(CONFIG))
    for job in jobs:
        store.write(*execute(job, Context(tmp_path / "store")))
    assert "LEAK: parameters were selected by the accuracy on the test part" in table(store.folder)


def test_it_is_of_all_classes(tmp_path):
    path = tmp_path / "leaky.yaml"
    select = {"validation": "test", "scope": "pair"}
    path.write_text(yaml.safe_dump({**CONFIG, "select": select}))
    with pytest.raises(UserError, match="needs scope: global"):
        load_config(path)
