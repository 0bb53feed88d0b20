"""Ranks over data sets and paired tests: scipy and worked examples of the literature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import cells_of, table
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, ttest_rel, wilcoxon

from mmbench.tables.frame import COLUMNS
from mmbench.tables.statistics import (
    Ranks,
    correlated_posterior,
    critical_difference,
    holm,
    paired_p,
    rank_biserial,
    rank_machines,
    signed_rank_posterior,
    wilcoxon_p,
)

#: Demsar 2006, table 6: AUC of C4.5 and three variants on 14 data sets. The third value of the line
#: before last is printed 0.975 as the fourth, but ranked before it.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.976, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")


def rows(table):
    return pd.DataFrame(table, columns=NAMES[: table.shape[1]])


def test_demsar_s_example():
    ranks = rank_machines(rows(DEMSAR), decimals=3)
    assert [round(ranks.means[name], 3) for name in NAMES] == [3.143, 2.000, 2.893, 1.964]
    assert ranks.critical_difference == pytest.approx(1.25, abs=0.01)
    assert ranks.statistic == pytest.approx(friedmanchisquare(*DEMSAR.T).statistic)
    assert ranks.p < 0.05


def test_critical_values_are_those_of_nemenyi_s_table():
    """q at 0.05 for 2, 5 and 10 classifiers: 1.960, 2.728, 3.164."""
    for k, q in ((2, 1.960), (5, 2.728), (10, 3.164)):
        assert critical_difference(k, 6) == pytest.approx(q * np.sqrt(k * (k + 1) / 36), rel=1e-3)


def test_machines_that_never_differ_are_one_group():
    ranks = rank_machines(rows(np.full((5, 4), 0.5)))
    assert ranks.p == 1.0
    assert set(ranks.means.values()) == {2.5}
    assert [set(group) for group in ranks.cliques()] == [set(NAMES)]


def test_groups_are_the_largest_that_fit_in_the_critical_difference():
    ranks = Ranks({"d": 4.0, "a": 1.0, "b": 1.9, "c": 2.8}, 9, 0.0, 0.0, 1.0)
    assert ranks.cliques() == [("a", "b"), ("b", "c")]
    assert Ranks({"a": 1.0, "b": 3.0, "c": 5.0}, 9, 0.0, 0.0, 1.0).cliques() == []
    assert Ranks({"a": 1.0, "b": 1.5, "c": 1.9}, 9, 0.0, 0.0, 1.0).cliques() == [("a", "b", "c")]


def test_every_group_of_many_machines_has_a_name(tmp_path):
    """Forty machines in the same order on sixty data sets, of which about nine are a group."""
    place = {"kernel": "rbf", "metric": "accuracy_pct", "n": 1, "status": "optimal"}
    results = [
        {**place, "dataset": f"set {j}", "machine": f"machine {k}", "measured": 90 - k}
        for j in range(60)
        for k in range(40)
    ]
    pd.DataFrame(results, columns=[*COLUMNS]).to_csv(tmp_path / "table.csv", index=False)
    text = table(tmp_path, layout="comparison")
    assert cells_of(text, "MACHINE 0")[1:] == ["1.00", "A"]
    assert cells_of(text, "MACHINE 1 ")[2] == "A B"
    groups = cells_of(text, "MACHINE 39")[2].split()
    assert len(groups) == 1 and len(groups[0]) == 2  # after Z


@pytest.mark.parametrize("shape", [(1, 4), (5, 2)])
def test_too_little_to_rank_is_refused(shape):
    with pytest.raises(ValueError, match="three machines and two data sets"):
        rank_machines(rows(np.zeros(shape)))


@given(st.lists(st.floats(-5, 5).map(lambda v: round(v, 2)), min_size=2, max_size=30))
def test_paired_test_is_scipy_s(differences):
    if np.std(differences) > 1e-9:
        expected = ttest_rel(differences, np.zeros(len(differences))).pvalue
        assert paired_p(differences) == pytest.approx(expected, abs=1e-9)


def test_constant_differences_are_certain():
    assert paired_p([0.0, 0.0, 0.0]) == 1.0
    assert paired_p([0.5, 0.5]) == 0.0
    assert np.isnan(paired_p([0.5]))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_rejects_what_the_sequential_method_rejects(p):
    corrected = holm(p)
    order, rejected = np.argsort(p, kind="stable"), np.zeros(len(p), dtype=bool)
    for step, k in enumerate(order):
        if p[k] * (len(p) - step) >= 0.05:
            break
        rejected[k] = True
    assert np.array_equal(corrected < 0.05, rejected)
    assert np.all(corrected >= p)


def test_holm_leaves_out_what_was_not_tested():
    corrected = holm([0.02, np.nan, 0.01])
    assert corrected[[0, 2]] == pytest.approx([0.02, 0.02])
    assert np.isnan(corrected[1])


#: Differences of mean accuracies on ten data sets; no two have the mean of the region's end.
GAPS = np.array([0.5, -0.2, 1.4, 2.2, 0.9, -1.3, 3.1, 0.1, 1.8, 0.7])


def test_bayesian_tests_are_those_of_baycomp():
    """Values of baycomp 1.0.3: ten folds, region 0.6, 200,000 draws."""
    expected = {
        correlated_posterior: (0.0141710071, 0.2839598945, 0.7018690985),
        signed_rank_posterior: (0.0013, 0.1817, 0.8171),
    }
    found = correlated_posterior(GAPS, 0.6, test_to_train=1 / 9)
    assert found == pytest.approx(expected[correlated_posterior], abs=1e-9)
    found = signed_rank_posterior(GAPS, 0.6)
    assert found == pytest.approx(expected[signed_rank_posterior], abs=0.01)


@pytest.mark.parametrize("posterior", [correlated_posterior, signed_rank_posterior])
def test_posteriors_add_up_turn_round_and_need_two_differences(posterior):
    more = (1 / 9,) if posterior is correlated_posterior else ()
    found, turned = posterior(GAPS, 0.5, *more), posterior(-GAPS, 0.5, *more)
    assert sum(found) == pytest.approx(1.0)
    assert found == pytest.approx(turned[::-1], abs=0.01)
    assert posterior([1.0], 0.5, *more) is None
    assert posterior([5.0] * 12, 0.5, *more).better == pytest.approx(1.0, abs=1e-3)
    assert posterior([0.0] * 12, 0.5, *more) == (0.0, 1.0, 0.0)


def test_signed_rank_effects_have_their_sign_and_size():
    assert wilcoxon_p(GAPS) == pytest.approx(wilcoxon(GAPS).pvalue)
    assert rank_biserial(GAPS) == -rank_biserial(-GAPS) > 0.5
    assert rank_biserial(np.abs(GAPS)) == 1.0
    assert wilcoxon_p([0.0, 0.0]) == 1.0
    assert np.isnan(wilcoxon_p([1.0]))


def test_concordance_is_whole_where_all_data_sets_agree():
    same = rank_machines(rows(np.tile([0.1, 0.2, 0.3, 0.4], (6, 1))))
    assert same.concordance == pytest.approx(1.0)
