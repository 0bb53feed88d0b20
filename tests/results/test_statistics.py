"""Standard errors and the band."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

from mmbench.results import statistics
from mmbench.results.statistics import (
    counting_sd,
    difference_se,
    rank_machines,
    rank_stability,
    z_value,
)


@given(st.integers(2, 2000), st.floats(0, 1))
@examples(n=(2, 3, 100, 2000), share=(0.0, 0.01, 0.5, 1.0))
def test_counting_deviation_is_that_of_zero_one_losses(n: int, share: float) -> None:
    errors = round(share * n)
    rate = errors / n
    assert counting_sd(errors, n) == pytest.approx(math.sqrt(n * rate * (1 - rate)))


@pytest.mark.parametrize(
    ("sd", "n", "n_published", "counting", "same", "se"),
    [
        (3.0, 9, 16, 0.7, False, math.hypot(1.0, 0.75)),  # partitions, ours and the paper's
        (6.0, 4, None, 0.7, False, 3.0),  # the paper does not say how many it had
        (None, 1, 1, 9.7, False, 9.7 * math.sqrt(2)),  # a single random partition
        (None, 1, 1, 9.7, True, 9.7),  # the same test rows are not drawn twice
        (0.0, 5, 1, 10.0, True, 10.0),  # seeds that do not matter
        (4.0, 16, 1, 0.0, True, math.hypot(1, 4)),  # seeds of ours and of the paper
    ],
)
def test_errors_of_a_difference(sd, n, n_published, counting, same, se) -> None:
    assert difference_se(sd, n, n_published, counting, same) == pytest.approx(se)


def test_binary_rounding_of_decimals_moves_nothing_over_the_edge() -> None:
    assert z_value(87.1, 87.3, 0.1) == 2.0
    assert z_value(87.1, 87.31, 0.1) > 2.01


def test_stability_of_ranks_lies_between_certain_and_random_orders():
    values = pd.DataFrame(
        {"a": [80.0, 70, 60, 90], "b": [79.9, 69, 59, 89], "c": [80.1, 68, 58, 88]}
    )
    exact = rank_stability(values, np.zeros((4, 3, 3)))
    assert exact.mean_rank.to_dict() == rank_machines(values).means
    assert list(exact.index) == ["a", "b", "c"]
    # how often a draw of four contains the first data set: three times or more, twice or more
    assert exact.p_first["c"] == pytest.approx(13 / 256, abs=0.015)
    assert exact.p_turn["b"] == pytest.approx(67 / 256, abs=0.03)
    noisy = rank_stability(values, np.tile(1e6 * np.eye(3), (4, 1, 1)))
    assert noisy.p_first.to_numpy() == pytest.approx(np.full(3, 1 / 3), abs=0.04)
    assert noisy.p_turn[:-1].to_numpy() == pytest.approx(np.full(2, 1 / 2), abs=0.04)
    assert (noisy.place_low.max(), noisy.place_high.min()) == (1, 3)
    equal = rank_stability(values.assign(b=values.a, c=values.a), np.zeros((4, 3, 3)))
    assert equal.p_first.to_list() == pytest.approx([1 / 3] * 3)
    assert set(equal.place_low) == {2.0}


def test_the_signs_of_eigenvectors_do_not_move_the_stability_of_ranks(monkeypatch):
    """Processors find the eigenvectors of a covariance matrix with other signs."""
    values = pd.DataFrame(np.random.default_rng(0).normal(size=(5, 4)), columns=list("abcd"))
    V = np.tile([[2.0, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]], (5, 1, 1))
    before, eigh = rank_stability(values, V), np.linalg.eigh

    def flipped(matrices):
        variances, vectors = eigh(matrices)
        return variances, vectors * [-1.0, 1, -1, 1]

    monkeypatch.setattr(np.linalg, "eigh", flipped)
    pd.testing.assert_frame_equal(rank_stability(values, V), before)


def test_a_draw_of_one_data_set_has_its_order(monkeypatch):
    monkeypatch.setattr(statistics, "RANK_DRAWS", 1)
    values = pd.DataFrame({"a": [80.0], "b": [90.0], "c": [70.0]})
    found = rank_stability(values, np.zeros((1, 3, 3)))
    assert found.index.to_list() == ["b", "a", "c"]
    assert found.place_low.to_list() == found.place_high.to_list() == [1, 2, 3]
    assert found.p_first.to_list() == [1, 0, 0] and found.p_turn[:-1].to_list() == [0, 0]
