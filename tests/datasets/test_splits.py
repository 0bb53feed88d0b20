"""Test splits: complete, stratified, reproducible alone, and refused when they cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.datasets.dataset import Dataset, DatasetRef
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import Split, split_at, split_rules, split_slots
from mmbench.errors import UserError

MINE = DatasetRef("my", "my.csv", "y")


def make_splits(rule, data: Dataset, repeats: int | None = None, seed: int = 0) -> list[Split]:
    return [
        split_at(rule, data, repeat=repeat, fold=fold, seed=seed)
        for repeat, fold in split_slots(rule, data, repeats)
    ]


def count_splits(rule, name: str | DatasetRef, repeats: int | None = None) -> int:
    return len(split_slots(rule, DatasetRef(name) if isinstance(name, str) else name, repeats))


def data_of(y: list | np.ndarray, name: str = "small") -> Dataset:
    y = np.asarray(y)
    return Dataset(name, np.arange(len(y), dtype=float)[:, None], y, np.unique(y), None, None, "0")


labels = st.lists(st.integers(5, 30), min_size=2, max_size=4).flatmap(
    lambda counts: st.permutations([k for k, n in enumerate(counts) for _ in range(n)])
)
LABELS = [[0] * 5 + [1] * 30, [k % 4 for k in range(47)], [1, 2, 0, 1, 1] * 6, [0, 1] * 5]


@given(labels, st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
@examples(y=LABELS, folds=(2, 3, 5), seed=(0, 2**32 - 1))
def test_folds_part_the_rows_and_share_each_class_evenly(y, folds, seed):
    data = data_of(y)
    splits = make_splits({"kfold": folds}, data, seed=seed)
    assert np.array_equal(np.sort(np.concatenate([s.test for s in splits])), np.arange(len(y)))
    sizes = [len(s.test) for s in splits]
    assert max(sizes) - min(sizes) <= 1
    for label in data.classes:
        counts = [np.sum(data.y[s.test] == label) for s in splits]
        assert max(counts) - min(counts) <= 1
    for split in splits:
        assert np.array_equal(np.sort(np.r_[split.train, split.test]), np.arange(len(y)))


@given(labels, st.floats(0.1, 0.8), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
@examples(y=LABELS, share=(0.1, 0.37, 0.8), seed=(0, 2**32 - 1))
def test_a_holdout_takes_its_share_of_every_class(y, share, seed):
    data = data_of(y)
    split = split_at({"holdout": share}, data, seed=seed)
    assert len(split.test) == round(share * len(y))
    assert np.array_equal(np.sort(np.r_[split.train, split.test]), np.arange(len(y)))
    for label in data.classes:
        exact = np.sum(data.y == label) * len(split.test) / len(y)
        assert abs(np.sum(data.y[split.test] == label) - exact) < 1


@pytest.mark.parametrize("rule", [{"kfold": 4}, {"holdout": 0.25}], ids=str)
def test_repeats_and_seeds_give_different_rows_and_more_repeats_keep_the_first(rule):
    data = data_of([0, 1] * 40)
    few, many = make_splits(rule, data, 2, seed=1), make_splits(rule, data, 5, seed=1)
    assert [s.digest for s in many[: len(few)]] == [s.digest for s in few]
    assert len({s.digest for s in many}) == len(many)
    assert make_splits(rule, data, 1, seed=2)[0].digest != many[0].digest


def test_rows_of_a_seed_never_change():
    """A frozen stream: records of years ago must still name the same rows."""
    data = data_of(["a"] * 6 + ["b"] * 4)
    assert split_at({"holdout": 0.3}, data, seed=0).test.tolist() == [3, 5, 6]
    assert split_at({"kfold": 2}, data, repeat=1, fold=0, seed=7).test.tolist() == [2, 3, 4, 7, 8]


def test_a_class_with_fewer_rows_than_folds_is_refused():
    with pytest.raises(UserError, match=r"fewer than 4 folds; --set protocol\.test\.kfold=3"):
        make_splits({"kfold": 4}, data_of(["a"] * 9 + ["b"] * 3))
    with pytest.raises(UserError, match=r"'small': class b has 1 rows, .*; leave it out \(key"):
        make_splits({"kfold": 4}, data_of(["a"] * 9 + ["b"]))


def test_an_empty_test_split_is_refused():
    with pytest.raises(UserError, match=r"'small': holdout 0\.01 of 12 rows leaves no test row"):
        make_splits({"holdout": 0.01}, data_of(["a"] * 9 + ["b"] * 3))


def test_a_class_without_training_row_is_refused():
    with pytest.raises(UserError, match="leaves no training row of class b"):
        make_splits({"holdout": 0.95}, data_of(["a"] * 20 + ["b"]))


def test_counts_are_known_before_data_are_read():
    assert count_splits("official", "usps") == 1
    assert count_splits("official", "usps", 5) == 5
    assert count_splits("predefined", "ida_banana") == 100
    assert count_splits("predefined", "ida_image") == 20
    assert count_splits("predefined", "ida_banana", 3) == 3
    assert count_splits("predefined", "lfw_pairs") == 10
    assert count_splits({"kfold": 10}, "iris", 5) == 50
    assert count_splits({"holdout": 0.1}, MINE, 50) == 50
    assert split_slots({"kfold": 2}, DatasetRef("iris"), 2) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_only_rules_that_a_data_set_has_are_offered():
    always = ["kfold", "holdout", "leave_one_out", "time_series"]
    assert split_rules(DatasetRef("usps")) == ["official", *always]
    assert split_rules(DatasetRef("ida_banana")) == ["predefined", *always]
    assert split_rules(MINE) == always
    with pytest.raises(UserError, match="'iris' has no official split"):
        count_splits("official", "iris")
    with pytest.raises(UserError, match="'my' has no predefined splits"):
        count_splits("predefined", MINE)


def test_the_official_split_is_the_same_in_every_repeat(mirror: Path, tmp_path: Path):
    data = load_dataset("optdigits", store=tmp_path, mirror=mirror)
    first, second = make_splits("official", data, 2, seed=3)
    assert first.digest == second.digest
    assert (len(first.train), len(first.test), first.origin) == (3823, 1797, "official")


def test_missing_predefined_splits_are_drawn_and_said_to_be(mirror: Path, tmp_path: Path):
    data = load_dataset("ida_heart", store=tmp_path, mirror=mirror)
    splits = make_splits("predefined", data, seed=4)
    assert [s.origin for s in splits] == ["official"] * 10 + ["drawn"] * 90
    assert all((len(s.train), len(s.test)) == (170, 100) for s in splits)
    assert len({s.digest for s in splits}) == 100
    assert all(len(np.union1d(s.train, s.test)) == 270 for s in splits)
    other = make_splits("predefined", data, seed=5)
    assert [s.digest for s in other[:10]] == [s.digest for s in splits[:10]]
    assert other[10].digest != splits[10].digest
    assert len(make_splits("predefined", data, repeats=120)) == 120


def test_more_splits_than_a_fixed_list_has_are_refused(mirror: Path, tmp_path: Path):
    data = load_dataset("fsvm_sonar", store=tmp_path, mirror=mirror)
    with pytest.raises(UserError, match=r"has 10 predefined splits, not 11; set protocol\.repeats"):
        make_splits("predefined", data, repeats=11)
    with pytest.raises(UserError, match="has 10 predefined splits"):
        split_at("predefined", data, repeat=10)


def test_a_jobs_own_form_of_a_rule_is_understood():
    data = data_of([0, 1] * 20)
    assert split_at("kfold", data, args=(5.0,)).digest == split_at({"kfold": 5}, data).digest


@given(
    st.lists(st.integers(3, 60), min_size=2, max_size=6),
    st.lists(st.floats(0.3, 1), min_size=2, max_size=4),
    st.integers(0, 5),
)
@examples(
    counts=([3, 60], [7, 7, 8], [3, 3, 3, 3, 3, 3]),
    shares=([0.3, 1.0], [0.31, 0.5, 0.77, 0.99]),
    repeat=range(6),
)
def test_nested_subsets_lie_in_one_another_with_classes_in_proportion(counts, shares, repeat):
    data = data_of([label for label, n in enumerate(counts) for _ in range(n)])
    whole = split_at({"holdout": 0.2}, data, repeat=repeat).train
    sizes = sorted(int(share * len(whole)) for share in shares)
    before = set()
    for size in sizes:
        try:
            split = split_at({"holdout": 0.2}, data, repeat=repeat, max_train=("nested", size))
        except UserError as error:
            assert "without training row" in str(error)
            continue
        assert len(split.train) == size
        assert before <= set(split.train) <= set(whole)
        before = set(split.train)
        exact = np.bincount(data.y[whole]) * size / len(whole)
        off = np.bincount(data.y[split.train], minlength=len(counts)) - exact
        # each class is rounded to a half, and the sum of that falls on all
        assert np.abs(off).max() <= 0.5 + len(counts) / 2


def test_a_training_size_beyond_the_rows_is_refused():
    data = data_of([0, 1] * 20)
    with pytest.raises(UserError, match="max_train 33 exceeds the 32 training rows"):
        split_at({"holdout": 0.2}, data, max_train=("nested", 33))


def test_max_train_keeps_a_stratified_part_of_the_same_training_rows():
    data = data_of([0] * 60 + [1] * 30 + [2] * 10)
    full, part = (split_at({"holdout": 0.2}, data, seed=2, max_train=m) for m in (None, 40))
    assert np.array_equal(full.test, part.test)
    assert set(part.train) <= set(full.train)
    assert np.bincount(data.y[part.train]).tolist() == [24, 12, 4]
    assert full.digest != part.digest
    with pytest.raises(UserError, match="max_train 2 leaves a class without training row"):
        split_at({"holdout": 0.2}, data, max_train=2)


def test_repeats_of_the_official_split_train_on_different_subsets():
    rows = np.arange(100)
    data = replace(data_of([0, 1] * 50), split=(rows[:80], rows[80:]))
    splits = [split_at("official", data, repeat=k, max_train=20) for k in range(4)]
    assert len({split.digest for split in splits}) == 4
    assert all(np.array_equal(split.test, rows[80:]) for split in splits)
