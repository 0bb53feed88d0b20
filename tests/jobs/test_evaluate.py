"""Errors under the rules for ties."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.jobs.evaluate import certificates, count_errors, doubts, evaluate
from mmbench.machines import SVM
from mmbench.machines.base.problem import Fit

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


def test_labels_of_random_ties_are_those_that_are_counted():
    truth = np.array(["b"] * 30)
    found, predicted = count_errors(DECISIONS[[0] * 30], CLASSES, truth, "random", 0)
    assert set(predicted) == {"a", "b", "c"}
    assert found["errors_count"] == (predicted != truth).sum()


def test_two_classes_of_four_with_equal_votes_are_a_tie():
    decisions = np.array([[-1, -1, 1, -1, -1, -1]])  # pairs 01 02 03 12 13 23
    found, _ = count_errors(decisions, np.arange(4), np.array([0]), "lowest", 0)
    assert (found["n_ties"], found["errors_expected"]) == (1, 0.5)


def test_a_class_that_was_not_trained_is_an_error_under_every_rule():
    found, _ = metrics(["a", "c", "z"])
    known, _ = metrics(["a", "c", "a"])
    for rule in ("lowest", "random", "expected"):
        assert found[f"errors_{rule}"] == known[f"errors_{rule}"] + 1


def fit(status, pair, objective=1.0, bound=1.0):
    return Fit(status, objective, bound, 2e-9, 10, 0.1, 5, pair=pair)


def test_doubts_name_how_many_pairs_ended_worse_than_optimal_and_the_first():
    fits = [
        fit(Status.OPTIMAL, ("a", "b")),
        fit(Status.INACCURATE, ("a", "c"), bound=0.9),
        fit(Status.FAILED, ("b", "c"), bound=-np.inf),
        fit(Status.INACCURATE, ("b", "d"), bound=0.5),
    ]
    assert doubts(fits) == (
        "failed: 1 of 4 pairs, b/c (gap inf, violation 2e-09); "
        "inaccurate: 2 of 4 pairs, first a/c (gap 0.1, violation 2e-09)"
    )
    assert doubts(fits[:1]) == ""


def test_a_trivial_solution_is_named_among_the_doubts():
    assert doubts([fit(Status.TRIVIAL, ("a", "b"))]).startswith("trivial: 1 of 1 pairs, a/b")


def test_certificates_state_the_worst_gap_and_violation_of_all_pairs():
    fits = [
        Fit(Status.OPTIMAL, 1.0, bound, violation, 10, 0.1, 5)
        for bound, violation in ((0.9, 2e-9), (1.0, 1e-3), (1.0, 0.0))
    ]
    found = certificates(fits, 1e-3)["fits"]
    assert found["worst_gap"] == pytest.approx(0.1)
    assert found["worst_violation"] == 1e-3


def test_decision_values_that_are_not_numbers_are_an_error_not_an_accuracy(monkeypatch):
    machine = SVM(kernel="linear").fit([[0.0], [1.0], [2.0]], CLASSES)
    machine.coef_[1] = np.nan
    data = SimpleNamespace(X_test=np.ones((2, 1)), y_test=CLASSES[:2], test_index=np.arange(2))
    with pytest.raises(ValueError, match="of the pair a/c are not numbers"):
        evaluate(machine, data, "lowest", 0)
