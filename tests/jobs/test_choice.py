"""Selected parameters of several splits, put together."""

from __future__ import annotations

import pytest

from mmbench.jobs.choice import merged, middle


def test_a_machine_passes_on_what_it_inherited():
    assert merged([{"C": 1}], [{"B": 2}]) == [{"C": 1, "B": 2}]
    assert merged([{"C": 1}, {"C": 2}], [{"B": 3}]) == [{"C": 1, "B": 3}, {"C": 2, "B": 3}]
    assert merged([{"C": 1}], [{"B": 2}, {"B": 3}]) == [{"C": 1, "B": 2}, {"C": 1, "B": 3}]


@pytest.mark.parametrize(
    ("choices", "median"),
    [
        # each parameter has its own median
        ([{"C": 100, "g": 0.5}, {"C": 0.1, "g": 2}, {"C": 10, "g": 1.0}], {"C": 10, "g": 1.0}),
        # of two middle values, the lower one, which is on the grid
        ([{"C": 1}, {"C": 1000}, {"C": 10}, {"C": 100}], {"C": 10}),
        # of words the most frequent, and of these the first
        ([{"w": word} for word in ("balanced", None, "balanced", None, True)], {"w": "balanced"}),
        ([{"w": flag} for flag in (False, True, True)], {"w": True}),
    ],
)
def test_the_choice_of_several_splits_is_their_median(choices, median):
    assert middle([[choice] for choice in choices]) == [median]


def test_choices_of_other_pairs_have_no_median():
    with pytest.raises(ValueError, match="1 to 3 pairs of classes"):
        middle([[{"C": 1}] * 3, [{"C": 2}]])


def test_choices_a_pair_have_their_medians_a_pair():
    choices = [[{"C": 1}, {"C": 5}], [{"C": 2}, {"C": 7}], [{"C": 3}, {"C": 6}]]
    assert middle(choices) == [{"C": 2}, {"C": 6}]
