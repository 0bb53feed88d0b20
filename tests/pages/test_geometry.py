"""The page of the hyperplanes follows from their stored quantities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from results.pages import geometry
from results.pages.geometry import HYPERPLANES, PAGE, QUANTITIES, page


@pytest.fixture(scope="module")
def frame():
    return pd.read_csv(HYPERPLANES)


def test_the_page_follows_from_the_stored_quantities():
    assert page() == PAGE.read_text("utf-8")


def test_all_machines_have_all_splits(frame):
    counts = frame.groupby(geometry.CELL).size()
    assert (counts == 5).all()
    assert len(counts) == 6 * (17 + 13)


def test_correlations_are_spearman_s_of_the_machines_with_a_value(frame):
    scores = geometry.scored(frame)
    found = geometry.correlations(scores)
    for (kernel, name), values in found.iterrows():
        part = scores[(scores.dataset == name) & (scores.kernel == kernel)]
        for quantity in QUANTITIES:
            splits = [own[[quantity.name, "accuracy"]].dropna() for _, own in part.groupby("fold")]
            expected = np.nanmean([spearmanr(own.to_numpy()).statistic for own in splits])
            assert values[quantity.name] == pytest.approx(expected, nan_ok=True)
    assert scores[[quantity.name for quantity in QUANTITIES]].isna().any(axis=None)


def test_theorem_1_and_the_worst_cases_hold_on_the_training_rows(frame):
    assert (frame.Rbar * (1 + 1e-5) >= frame.R).all()  # six digits are stored
    assert (frame.Rbar <= 2 * frame.R).all()
    classes = geometry.bounds(frame)
    assert (classes.train >= classes.bound - 1e-5).all()
    assert not (classes.test >= classes.bound).all()
