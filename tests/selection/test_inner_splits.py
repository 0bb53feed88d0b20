"""Inner splits keep groups together and do not look ahead, as the splits of the test part do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from mmbench.config.plan import plan
from mmbench.config.read import config_of
from mmbench.jobs.prepare import prepare
from mmbench.machines import SVM, make_machine
from mmbench.running.worker import Context, execute
from mmbench.selection import SelectRef, select
from mmbench.selection.folds import inner_splits, time_splits

Y = np.arange(60) % 2
GROUPS = np.arange(60) // 4


@pytest.mark.parametrize(("folds", "split"), [(5, None), (None, 0.2)])
def test_groups_stay_together(folds, split):
    found = inner_splits(Y, folds, split, 2, 0, GROUPS)
    assert len(found) == 2 * (folds or 1)
    for train, held in found:
        assert not set(GROUPS[train]) & set(GROUPS[held])


@pytest.mark.parametrize(("folds", "split"), [(5, None), (None, 0.2)])
def test_repeats_divide_groups_in_different_ways(folds, split):
    found = inner_splits(Y, folds, split, 2, 0, GROUPS)
    half = len(found) // 2
    first, second = ({tuple(held) for _, held in part} for part in (found[:half], found[half:]))
    assert first != second


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_a_random_split_holds_its_share_out(groups):
    """12 of 60 rows; without groups, as many of each class."""
    found = inner_splits(Y, None, 0.2, 3, 0, groups)
    for train, held in found:
        assert len(held) == 12
        np.testing.assert_array_equal(np.sort(np.append(train, held)), np.arange(60))
        assert groups is not None or Y[held].sum() == 6
    assert len({tuple(np.sort(held)) for _, held in found}) == 3


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_folds_hold_each_row_out_once_in_each_repeat(groups):
    held = [held for _, held in inner_splits(Y, 5, None, 2, 0, groups)]
    for repeat in (held[:5], held[5:]):
        np.testing.assert_array_equal(np.sort(np.concatenate(repeat)), np.arange(60))


def test_too_few_groups_are_named():
    with pytest.raises(ValueError, match="15 groups to train on, fewer than 16 folds"):
        inner_splits(Y, 16, None, 1, 0, GROUPS)


@pytest.mark.parametrize(("folds", "split"), [(5, None), (None, 0.2)])
def test_what_is_held_out_lies_after_what_trains(folds, split):
    found = time_splits(60, folds, split)
    assert len(found) == (folds or 1)
    for train, held in found:
        assert train.max() < held.min()


@pytest.mark.parametrize("estimator", ["svm", "fsvm", "sklearn.linear_model:LogisticRegression"])
def test_classes_that_begin_later_take_no_part_in_the_folds_before(estimator):
    """Each of five classes begins when the class before it ends; the last fold trains on four."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == k)[:12] for k in range(5)])
    X, y, machine = X[rows] / 16, y[rows], make_machine(estimator)
    found = select(machine, X, y, {"tol": [1e-3]}, SelectRef(folds=9), ordered=True)
    scores = []
    for train, held in time_splits(60, 9, None):
        one = len(np.unique(y[train])) == 1
        predicted = y[:1] if one else machine.fit(X[train], y[train]).predict(X[held])
        scores.append(np.mean(predicted == y[held]))
    assert found.best_score == pytest.approx(np.mean(scores))


def test_a_held_out_part_of_almost_all_rows_leaves_a_row_to_train_on():
    [(train, held)] = time_splits(10, None, 0.99)
    assert (len(train), len(held)) == (1, 9)


@pytest.mark.parametrize("scope", ["global", "pair"])
def test_groups_that_are_copies_are_not_recognised(scope):
    """Every row four times, with labels at random: a nearest-neighbour machine knows copies."""
    X, _ = load_breast_cancer(return_X_y=True)
    X = (X[:40] - X[:40].mean(axis=0)) / X[:40].std(axis=0)
    y = np.random.default_rng(0).permutation(np.arange(40) % 2)
    X, y, groups = np.repeat(X, 4, axis=0), np.repeat(y, 4), np.repeat(np.arange(40), 4)
    grid = {"C": [1.0, 1000.0]}
    machine = SVM(gamma=5.0)
    leaking = select(machine, X, y, grid, SelectRef(folds=5, scope=scope))
    honest = select(machine, X, y, grid, SelectRef(folds=5, scope=scope), groups=groups)
    assert leaking.best_score > 0.9
    assert honest.best_score < 0.7


@pytest.mark.parametrize(
    ("entry", "test"),
    [
        ({"groups": "patient", "drop": ["day"]}, "kfold"),
        ({"time": "day", "drop": ["patient"]}, "time_series"),
    ],
)
def test_a_job_selects_on_splits_of_the_kind_it_is_tested_on(entry, test, tmp_path):
    """The feature `number` names the patient of a row."""
    rng = np.random.default_rng(0)
    lines = ["patient,number,age,day,kind"]
    for k in range(120):
        lines.append(f"p{10 + k // 4},{k // 4},{rng.normal():.3f},{k},{'abc'[k // 2 % 3]}")
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    content = {
        "name": "own",
        "datasets": [{"path": "visits.csv", "target": "kind", **entry}],
        "kernel": "linear",
        "protocol": {"test": {test: 2}},
        "select": {"folds": 4},
        "machines": {"svm": {"grid": {"C": [0.1, 10]}}},
    }
    store = Path("no-such-store")
    job = plan(config_of(content, tmp_path / "own.yaml"), store)[-1]
    data, (record, _) = prepare(job, store, None), execute(job, Context(store))
    expected = select(
        SVM(kernel="linear"),
        data.X_pool,
        data.y_pool,
        {"C": [0.1, 10]},
        SelectRef(folds=4),
        groups=data.X_pool[:, 0] if "groups" in entry else None,
        ordered="time" in entry,
        seed=record["seeds"]["selection"],
    )
    assert record["selection"]["scores"] == expected.scores


def test_groups_of_a_data_frame_are_those_of_its_rows():
    random = np.random.default_rng(0)
    X, order = random.normal(size=(60, 2)), random.permutation(60)
    series = pd.Series(GROUPS)[order]  # its index is `order`
    more = {"grid": {"C": [0.1, 10.0]}, "how": SelectRef(folds=3)}
    expected = select(SVM(), X[order], Y[order], groups=GROUPS[order], **more).scores
    for given in (series, series.tolist()):
        assert select(SVM(), X[order], Y[order], groups=given, **more).scores == expected
