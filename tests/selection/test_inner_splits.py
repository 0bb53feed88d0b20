"""Inner splits keep groups together and do not look ahead, as the splits of the test part do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from mmbench.machines import SVM
from mmbench.selection import select
from mmbench.selection.folds import inner_splits, time_splits

Y = np.arange(60) % 2
GROUPS = np.arange(60) // 4


@pytest.mark.parametrize(("folds", "split"), [(5, None), (None, 0.2)])
def test_groups_stay_together(folds, split):
    found = inner_splits(Y, folds, split, 2, 0, GROUPS)
    assert len(found) == 2 * (folds or 1)
    for train, held in found:
        assert not set(GROUPS[train]) & set(GROUPS[held])


def test_too_few_groups_are_named():
    with pytest.raises(ValueError, match="15 groups to train on, fewer than 16 folds"):
        inner_splits(Y, 16, None, 1, 0, GROUPS)


@pytest.mark.parametrize(("folds", "split"), [(5, None), (None, 0.2)])
def test_what_is_held_out_lies_after_what_trains(folds, split):
    found = time_splits(60, folds, split)
    assert len(found) == (folds or 1)
    for train, held in found:
        assert train.max() < held.min()


@pytest.mark.parametrize("scope", ["global", "pair"])
def test_groups_that_are_copies_are_not_recognised(scope):
    """Every row four times, with labels at random: a nearest-neighbour machine knows copies."""
    X, _ = load_breast_cancer(return_X_y=True)
    X = (X[:40] - X[:40].mean(axis=0)) / X[:40].std(axis=0)
    y = np.random.default_rng(0).permutation(np.arange(40) % 2)
    X, y, groups = np.repeat(X, 4, axis=0), np.repeat(y, 4), np.repeat(np.arange(40), 4)
    grid = {"C": [1.0, 1000.0]}
    machine = SVM(gamma=5.0)
    leaking = select(machine, X, y, grid, folds=5, scope=scope)
    honest = select(machine, X, y, grid, folds=5, scope=scope, groups=groups)
    assert leaking.best_score > 0.9
    assert honest.best_score < 0.7
