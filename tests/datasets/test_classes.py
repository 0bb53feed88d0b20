"""A data set restricted to some classes: rows, splits and the remark that others are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmbench.datasets.dataset import Dataset, keep_classes
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import split_at
from mmbench.errors import UserError


@pytest.fixture
def data() -> Dataset:
    y = np.array(["a", "b", "c"] * 10)
    rows = np.arange(30)
    split = (rows[5:], rows[:5])
    X = rows[:, None].astype(float)
    return Dataset("letters", X, y, np.unique(y), split, [split, (rows[:20], rows[20:])], "0")


def test_rows_keep_their_order_and_their_place(data):
    part = keep_classes(data, ("a", "c"))
    assert part.classes.tolist() == ["a", "c"]
    assert part.y.tolist() == ["a", "c"] * 10
    assert np.array_equal(part.X[:, 0], part.rows)
    assert part.content_hash == data.content_hash
    assert part.deviations == ("classes a, c of 3",)


def test_rows_keep_their_group_and_their_time(data):
    grouped = replace(data, groups=np.arange(30) // 4, time=np.arange(30)[::-1])
    part = keep_classes(grouped, ("a", "c"))
    assert np.array_equal(part.groups, part.rows // 4)
    assert np.array_equal(part.time, 29 - part.rows)


@pytest.mark.parametrize("rule", ["official", {"kfold": 5}, {"holdout": 0.3}])
def test_every_rule_cuts_the_rows_of_these_classes(data, rule):
    part = keep_classes(data, ("b", "c"))
    split = split_at(rule, part)
    rows = [part.rows[cut] for cut in (split.train, split.test)]
    assert sorted(np.concatenate(rows)) == [k for k in range(30) if k % 3]
    if rule == "official":
        assert rows[1].tolist() == [1, 2, 4]


def test_listed_splits_lose_the_other_rows(data):
    part = keep_classes(data, ("b", "c"))
    for (train, test), whole in zip(part.predefined, data.predefined, strict=True):
        for rows, before in ((train, whole[0]), (test, whole[1])):
            assert part.rows[rows].tolist() == [k for k in before if k % 3]


def test_no_classes_are_all_classes(data):
    assert keep_classes(data, ()) is data


def test_an_unknown_class_is_answered_with_the_valid_ones(data):
    with pytest.raises(UserError, match="'letters': unknown class 'd'; the classes are a, b, c"):
        keep_classes(data, ("a", "d"))


def test_numbers_are_compared_as_text():
    data = load_dataset("digits", store=Path("no-such-store"))
    part = keep_classes(data, ("3", "8"))
    assert part.classes.tolist() == [3, 8]
    assert len(part.y) == np.isin(data.y, [3, 8]).sum()
