"""Standard errors and the band."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbench.tables.statistics import counting_sd, in_band, total_se


@given(st.integers(2, 2000), st.data())
def test_counting_deviation_is_that_of_zero_one_losses(n: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    rate = errors / n
    assert counting_sd(errors, n) == pytest.approx(math.sqrt(n * rate * (1 - rate)))


def test_random_partitions_add_our_noise_and_the_papers() -> None:
    assert total_se(3.0, 9, 16, same_test_rows=False) == pytest.approx(math.hypot(1.0, 0.75))


def test_equal_numbers_of_partitions_widen_the_band_by_root_two() -> None:
    se = 5.0 / math.sqrt(50)
    assert total_se(5.0, 50, 50, same_test_rows=False) == pytest.approx(math.sqrt(2) * se)


def test_the_same_test_rows_are_not_drawn_twice() -> None:
    assert total_se(9.7, 1, 1, same_test_rows=True) == 9.7


def test_without_the_papers_number_of_partitions_our_noise_alone_counts() -> None:
    assert total_se(6.0, 4, None, same_test_rows=False) == 3.0


def test_the_edge_of_the_band_is_inside() -> None:
    assert in_band(87.1, 87.3, se=0.1)
    assert not in_band(87.1, 87.31, se=0.1)
