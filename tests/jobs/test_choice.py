"""Selected parameters of several splits, put together."""

from __future__ import annotations

import pytest

from mmbench.jobs.choice import merged, middle


def test_a_machine_passes_on_what_it_inherited():
    assert merged([{"C": 1}], [{"B": 2}]) == [{"C": 1, "B": 2}]
    assert merged([{"C": 1}, {"C": 2}], [{"B": 3}]) == [{"C": 1, "B": 3}, {"C": 2, "B": 3}]
    assert merged([{"C": 1}], [{"B": 2}, {"B": 3}]) == [{"C": 1, "B": 2}, {"C": 1, "B": 3}]


def test_each_parameter_has_its_own_median():
    choices = [[{"C": 100, "gamma": 0.5}], [{"C": 0.1, "gamma": 2}], [{"C": 10, "gamma": 1.0}]]
    assert middle(choices) == [{"C": 10, "gamma": 1.0}]
    assert middle(choices[:1]) == choices[0]


def test_an_even_number_has_the_lower_of_two_middle_values_which_is_on_the_grid():
    assert middle([[{"C": C}] for C in (1, 1000, 10, 100)]) == [{"C": 10}]


def test_of_words_the_most_frequent_is_taken_and_of_these_the_first():
    words = ["balanced", None, "balanced", None, True]
    assert middle([[{"class_weight": word}] for word in words]) == [{"class_weight": "balanced"}]
    assert middle([[{"scaled": flag}] for flag in (False, True, True)]) == [{"scaled": True}]


def test_choices_of_other_pairs_have_no_median():
    with pytest.raises(ValueError, match="1 to 3 pairs of classes"):
        middle([[{"C": 1}] * 3, [{"C": 2}]])


def test_choices_a_pair_have_their_medians_a_pair():
    choices = [[{"C": 1}, {"C": 5}], [{"C": 2}, {"C": 7}], [{"C": 3}, {"C": 6}]]
    assert middle(choices) == [{"C": 2}, {"C": 6}]
