"""Standard errors and tests of differences between two machines on one data set."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from results.row_counts import FILE, LARGE, SMALL, cell, counted
from scipy.stats import binomtest, norm, ttest_1samp

from mmbench.results.differences import (
    Difference,
    How,
    difference,
    mean_covariance,
    worse_than_best,
)

#: Machine, best machine, mean difference, standard error, and parts of it: rows, splits, training.
ANCHORS = {
    "ida_heart": [("mamc", "svm", -23.17, 7.33, ()), ("mamc_b", "svm", -0.98, 1.11, ())],
    "ida_titanic": [("mamc", "mamc_b", -9.76, 0.88, ()), ("svm", "mamc_b", -0.11, 0.35, ())],
    "ida_image": [("mamc_bs", "svm", -3.60, 1.04, ())],
    "ida_german": [("fsvm_opt", "svm", 0.02, 0.33, ())],
    "ida_banana": [
        ("mamc", "svm", -29.13, 2.92, (0.62, 0.94, 2.69)),
        ("mamc_b", "svm", -0.71, 0.24, (0.09, 0.08, 0.21)),
    ],
    "ida_waveform": [("fsvm_opt", "svm", -0.77, 0.29, ()), ("fsvm_semi", "svm", -0.74, 0.17, ())],
}


def stored(experiment: str, a: str, b: str, dataset: str, counts=None) -> Difference:
    """The difference of two machines from stored splits and from counts of wrong predictions."""
    first, second = cell(experiment, dataset, a), cell(experiment, dataset, b)
    d_j = first.accuracy_pct - second.accuracy_pct
    if counts is None:
        return difference(d_j, first.n_train, first.n_test, rule="new_draws")
    wrong = [counts[f"{dataset} {name}"].astype(int) for name in (b, a)]
    machines, tests = {**SMALL, **LARGE}[experiment, dataset], counts[f"{dataset} tests"]
    given = {"q": counts[f"{dataset} q"][machines.index(a), machines.index(b)]}
    rows = wrong[0] - wrong[1]
    return difference(d_j, first.n_train, first.n_test, rows, tests, rule="predefined", **given)


def check_anchors(where: tuple[str, str], counts) -> None:
    for a, best, d, se, parts in ANCHORS[where[1]]:
        found = stored(where[0], a, best, where[1], counts)
        f = found.n_train / (found.n_train + found.n_test)
        variances = (found.V_rows, found.S2 / found.k, f * found.A)
        assert found.d == pytest.approx(d, abs=0.0051)
        assert found.se == pytest.approx(se, abs=0.0051)
        assert np.sqrt(variances[: len(parts)]) == pytest.approx(parts, abs=0.0051)


@pytest.mark.parametrize("where", SMALL)
def test_standard_errors_of_reference_tables(where):
    check_anchors(where, np.load(FILE))


@pytest.mark.slow
@pytest.mark.parametrize("where", {**SMALL, **LARGE})
def test_standard_errors_of_machines_trained_again(where, mirror, tmp_path):
    places = {"store": tmp_path, "mirror": mirror}
    check_anchors(where, counted(*where, {**SMALL, **LARGE}[where], places))


@pytest.mark.parametrize(("toy", "d", "p"), [("toy_3", -0.148, 0.0033), ("toy_4", -0.742, 0.0026)])
def test_new_draws_have_the_paired_t_test(toy, d, p):
    found = stored("m4_table1", "svm", "mpm", toy)
    own = cell("m4_table1", toy, "svm").accuracy_pct - cell("m4_table1", toy, "mpm").accuracy_pct
    assert (found.d, found.df) == (pytest.approx(d, abs=5e-4), 99)
    assert found.p == pytest.approx(ttest_1samp(own, 0).pvalue) == pytest.approx(p, abs=5e-5)


def drawn(k=8, n_train=60, n_test=40, seed=0, shift=0.1):
    """Splits of a pool of 100 rows, and rows that one of two machines predicts more often."""
    random = np.random.default_rng(seed)
    chance, rows, tested, d_j = random.normal(size=100), np.zeros(100), np.zeros(100), []
    for _ in range(k):
        test = random.permutation(100)[:n_test]
        h = np.clip(np.round(chance[test] * 0.8 + 0.5 * random.normal(size=n_test) + shift), -1, 1)
        rows[test] += h
        tested[test] += 1
        d_j.append(100 * h.mean())
    return np.array(d_j), n_train, n_test, rows, tested


def test_one_split_of_an_official_test_part_is_nearly_mcnemars_test():
    for wins, losses in [(3, 12), (40, 30), (8, 90)]:
        rows = np.repeat([1, -1, 0], [wins, losses, 2007 - wins - losses])
        found = difference(100 * rows.mean(), 7291, 2007, rows, np.ones(2007), rule="official")
        z = (wins - losses) / math.sqrt(wins + losses + 2)
        assert found.p == pytest.approx(2 * norm.sf(abs(z)), rel=0.06)
        assert found.p == pytest.approx(binomtest(wins, wins + losses).pvalue, abs=0.05)
        assert (found.wins, found.losses, found.df) == (wins, losses, math.inf)


def test_equal_predictions_have_a_standard_error_and_no_difference():
    found = difference(np.zeros(9), 60, 40, np.zeros(90), np.full(90, 4), rule="holdout")
    assert (found.p, found.q) == (1.0, 0.0)
    assert found.se == pytest.approx(100 * math.sqrt(2) / 90)
    assert found.posterior(1.0).equivalent == pytest.approx(0.475, abs=0.001)
    assert difference(np.zeros(9), 9, 1, rule="holdout").p == 1.0


@pytest.mark.parametrize("sizes", [(60, 40), (90, 40), (30, 40)])
def test_exchanging_the_machines_changes_the_sign(sizes):
    d_j, _, _, rows, tested = drawn()
    found = difference(d_j, *sizes, rows, tested, rule="holdout")
    turned = difference(-d_j, *sizes, -rows, tested, rule="holdout")
    parts = {"d": -found.d, "wins": found.losses, "losses": found.wins}
    assert turned == replace(found, **parts)
    assert turned.p == found.p


def test_without_q_the_standard_error_is_not_smaller():
    d_j, n_train, n_test, rows, tested = drawn()
    lowest = difference(d_j, n_train, n_test, rows, tested, rule="holdout")
    for q in np.linspace(lowest.q, 100, 9):
        found = difference(d_j, n_train, n_test, rows, tested, rule="holdout", q=q)
        assert found.A <= lowest.A and found.se <= lowest.se


@pytest.mark.parametrize(
    ("k", "n_train", "n_test", "rule", "with_rows", "how"),
    [
        (8, 60, 40, "holdout", True, How.ROWS_AND_SPLITS),
        (8, 90, 10, "kfold", False, How.RESAMPLED),
        (8, 60, 40, "holdout", False, How.NO_ROWS),
        (4, 60, 40, "predefined", True, How.FEW_SPLITS),
        (8, 60, 40, "time_series", True, How.TIME_SERIES),
        (2, 60, 40, "official", False, How.NO_ROWS),
        (3, 60, 40, "official", True, How.ROWS),
        (5, 60, 40, "new_draws", False, How.SPLITS),
    ],
)
def test_kinds_of_standard_errors(k, n_train, n_test, rule, with_rows, how):
    d_j, _, _, rows, tested = drawn(k)
    counts = (rows, tested) if with_rows else ()
    found = difference(d_j, n_train, n_test, *counts, rule=rule)
    values = (found.se, found.df, found.p, found.detectable())
    assert found.how == how
    assert [math.isnan(value) for value in values] == [not found.tested] * 4
    assert (found.posterior(1.0) is not None) == found.tested
    if how == How.RESAMPLED:
        assert found.se == pytest.approx(math.sqrt(d_j.var(ddof=1) * (1 / k + n_test / n_train)))
        assert found.df == pytest.approx(k - 1)


def test_rows_of_other_splits_are_refused():
    d_j, n_train, n_test, rows, tested = drawn()
    with pytest.raises(ValueError, match="the splits of the rows differ"):
        difference(d_j[1:], n_train, n_test, rows, tested, rule="holdout")


def test_the_covariance_of_means_has_the_same_formula():
    d_j, _, n_test, rows, tested = drawn()
    own = difference(d_j, 60, n_test, rows, tested, rule="holdout")
    V = mean_covariance(np.column_stack([d_j, -d_j]), np.column_stack([rows, -rows]), tested)
    V_rows = own.V_rows - 2 * (100 / np.count_nonzero(tested)) ** 2
    expected = V_rows + d_j.var(ddof=1) / len(d_j)
    assert pytest.approx(expected * np.array([[1, -1], [-1, 1]])) == V
    splits = mean_covariance(np.column_stack([d_j, -d_j]))
    assert splits[0, 0] == pytest.approx(d_j.var(ddof=1) / len(d_j))


def test_machines_that_are_worse_than_the_best():
    steady = difference([-1.0, -1.2, -0.8, -1.0, -1.0], 60, 40, rule="new_draws")
    near = replace(steady, d=-steady.critical(3) + 1e-9)
    assert worse_than_best({"a": steady, "b": near}) == ["a"]
    assert worse_than_best({"b": near}) == ["b"]
    assert worse_than_best({"a": replace(steady, k=4), "b": replace(near, d=3.0)}) == []
    assert replace(steady, k=20).se == pytest.approx(steady.se / 2)
