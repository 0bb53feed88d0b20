"""Errors under the rules for ties."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench.jobs.evaluate import count_errors

CLASSES = np.array(["a", "b", "c"])
#: Pairs ab, ac, bc. Row 0: each class has one vote. Row 1: c beats all. Row 2: a beats all.
DECISIONS = np.array([[-1, 1, -1], [1, 1, 1], [-1, -1, 1]], dtype=np.float32)


def metrics(y_test, ties="lowest", seed=0):
    return count_errors(DECISIONS, CLASSES, np.array(y_test), ties, seed)


@pytest.mark.parametrize("truth, lowest", [("a", 0), ("b", 1), ("c", 1)])
def test_a_tie_of_three_counts_a_third_for_each_class(truth, lowest):
    found, predicted = metrics([truth, "c", "a"])
    assert found["n_ties"] == 1
    assert found["errors_lowest"] == lowest
    assert found["errors_expected"] == pytest.approx(2 / 3)
    assert list(predicted) == ["a", "c", "a"]


def test_random_ties_follow_their_seed_and_are_fair_on_average():
    counts = [metrics(["b", "c", "a"], "random", seed)[0]["errors_random"] for seed in range(300)]
    again = [metrics(["b", "c", "a"], "random", seed)[0]["errors_random"] for seed in range(300)]
    assert counts == again
    assert np.mean(counts) == pytest.approx(2 / 3, abs=0.1)


@pytest.mark.parametrize("ties", ["lowest", "random", "expected"])
def test_the_rule_of_the_job_decides_what_is_counted(ties):
    found, _ = metrics(["b", "c", "a"], ties)
    assert found["errors_count"] == found[f"errors_{ties}"]
    assert found["accuracy_pct"] == pytest.approx(100 * (1 - found["errors_count"] / 3))


def test_a_class_that_was_not_trained_is_an_error_under_every_rule():
    found, _ = metrics(["a", "c", "z"])
    known, _ = metrics(["a", "c", "a"])
    for rule in ("lowest", "random", "expected"):
        assert found[f"errors_{rule}"] == known[f"errors_{rule}"] + 1
