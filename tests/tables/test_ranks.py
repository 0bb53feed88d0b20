"""The layout "comparison": ranks over data sets and paired tests, against scipy and literature."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import cells_of, figure, table
from scipy.stats import friedmanchisquare, t, wilcoxon

from mmbench.jobs.job import SplitRef
from mmbench.resources import REFERENCE
from mmbench.results.columns import names

#: Demsar 2006, table 6: AUC of C4.5 and three variants on 14 data sets. The third value of the line
#: before last is printed 0.975 as the fourth, but ranked before it.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.976, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip


@pytest.fixture
def compared(tmp_path):
    """Return a function: accuracies (data sets x machines) -> table of the machines A, B, ..."""

    def make(accuracies) -> str:
        common = {"kernel": "rbf", "metric": "accuracy_pct", "n": 1, "status": "optimal"}
        rows = [
            {**common, "dataset": f"set {j}", "machine": f"m{k}", "measured": value}
            for j, line in enumerate(accuracies)
            for k, value in enumerate(line)
        ]
        pd.DataFrame(rows, columns=[*names("cells")]).to_csv(tmp_path / "table.csv", index=False)
        return table(tmp_path, layout="comparison")

    return make


def machines(k: int) -> list[str]:
    return [f"M{j} " for j in range(k)]


def test_demsar_s_example(compared):
    text = compared(100 * DEMSAR)
    assert [cells_of(text, name)[1] for name in machines(4)] == ["3.14", "2.00", "2.89", "1.96"]
    friedman = friedmanchisquare(*DEMSAR.T)
    assert f"chi-square {friedman.statistic:.2f}, p = {friedman.pvalue:.2g}" in text
    assert "critical difference at 0.05: 1.25" in text


@pytest.mark.parametrize(("k", "q"), [(5, 2.728), (10, 3.164)])
def test_critical_values_are_those_of_nemenyi_s_table(compared, k, q):
    text = compared(80.0 + np.random.default_rng(0).random((6, k)))
    (found,) = re.findall(r"critical difference at 0.05: ([\d.]+)\.", text)
    assert float(found) == pytest.approx(q * np.sqrt(k * (k + 1) / 36), abs=0.006)


def test_machines_that_never_differ_are_one_group(compared):
    text = compared(np.full((5, 4), 50.0))
    assert "chi-square 0.00, p = 1, " in text
    assert [cells_of(text, name)[1:] for name in machines(4)] == [["2.50", "A"]] * 4


def test_machines_in_the_same_order_everywhere_are_no_group(compared):
    text = compared(np.tile([70.0, 80.0, 90.0], (20, 1)))
    assert [cells_of(text, name)[1:] for name in machines(3)] == [
        ["3.00", ""],
        ["2.00", ""],
        ["1.00", ""],
    ]
    assert "Kendall's W 1.00" in text


def test_every_group_of_many_machines_has_a_name(compared):
    """Forty machines in the same order on sixty data sets, of which about nine are a group."""
    text = compared(np.tile(90.0 - np.arange(40), (60, 1)))
    assert cells_of(text, "M0 ")[1:] == ["1.00", "A"]
    assert cells_of(text, "M1 ")[2] == "A B"
    groups = cells_of(text, "M39 ")[2].split()
    assert len(groups) == 1 and len(groups[0]) == 2  # after Z


def adjusted(p_values) -> list[float]:
    """Holm's method, one hypothesis after the other."""
    order, largest, out = np.argsort(p_values), 0.0, [0.0] * len(p_values)
    for step, k in enumerate(order):
        largest = max(largest, (len(p_values) - step) * p_values[k])
        out[k] = min(1.0, largest)
    return out


#: Differences of mean accuracies on ten data sets; no two have the mean of the region's end.
GAPS = np.array([0.5, -0.2, 1.4, 2.2, 0.9, -1.3, 3.1, 0.1, 1.8, 0.7])


def test_signed_rank_tests_are_those_of_scipy_corrected_by_holm(compared):
    gaps = np.column_stack([GAPS, -GAPS, np.abs(GAPS), np.zeros(10), GAPS - 0.9])
    text = compared(80.0 + np.column_stack([np.zeros(10), gaps]))
    rows = [cells_of(text, name, nth=1) for name in machines(6)[1:]]
    p = [1.0 if not d.any() else wilcoxon(d, zero_method="zsplit").pvalue for d in gaps.T.round(9)]
    assert [row[3] for row in rows] == [f"{value:.2g}" for value in adjusted(p)]
    effects = [row[4] for row in rows]
    assert effects[2:4] == ["+1.00", "+0.00"]
    assert effects[1] == effects[0].replace("+", "−")
    assert float(effects[0]) > 0.5


def test_differences_that_are_equal_on_paper_are_tied(compared):
    """In floating point, 90.1 - 90 is smaller than 60.4 - 60.3; as numbers, both are 0.1."""
    first = np.array([90.0, 80.1, 70.3, 60.3, 50.0, 40.0, 30.0])
    second = np.array([90.1, 80.2, 70.2, 60.4, 51.0, 42.0, 33.0])
    gaps = np.round(second - first, 9)
    assert len(np.unique(second - first)) > len(np.unique(gaps))
    p = wilcoxon(gaps, zero_method="zsplit").pvalue
    text = compared(np.column_stack([first, second, first + 3.0]))
    row = cells_of(text, machines(3)[1], nth=1)
    assert row[3] == f"{adjusted([p, 2 / 2**7])[0]:.2g}"


def test_the_bayesian_signed_rank_test_is_that_of_baycomp(compared):
    """Value of baycomp 1.0.3 for the region 0.6 and 200,000 draws; 1 is the layout's region."""
    text = compared(80.0 + np.column_stack([np.zeros(10), GAPS, -GAPS]) / 0.6)
    there, back = (
        [float(p) for p in cells_of(text, name, nth=1)[5].split(" / ")] for name in machines(3)[1:]
    )
    assert there == pytest.approx([0.0013, 0.1817, 0.8171], abs=0.015)
    assert back == pytest.approx(there[::-1], abs=0.011)


@pytest.fixture
def on_splits(results):
    """Return a function: errors of some machines on splits of 5400 and 600 rows -> table."""

    def make(**errors) -> str:
        experiment = results.experiment("own")
        for machine, counts in errors.items():
            for repeat, count in enumerate(counts):
                job = experiment.job("iris", machine, repeat=repeat, rule="holdout")
                split = {"digest": str(repeat), "n_train": 5400, "n_test": 600}
                experiment.add(job, int(count), 600, split=split)
        return table(experiment.folder, layout="comparison")

    return make


def test_tests_over_splits_are_those_of_scipy_and_baycomp(on_splits):
    """Value of baycomp 1.0.3 for the region 0.6 and ten folds: differences are GAPS / 0.6."""
    errors = 60 - np.rint(10 * GAPS)
    text = on_splits(svm=[60] * 10, rmm=errors, m4=errors - 10)
    gaps = np.array([GAPS, GAPS + 1.0]) / 0.6
    sd = gaps.std(axis=1, ddof=1)
    score = gaps.mean(axis=1) / (sd * np.sqrt(1 / 10 + 600 / 5400))
    expected = zip(gaps.mean(axis=1), adjusted(2 * t.sf(score, 9)), strict=True)
    cells = cells_of(text, "iris")[1:]
    for cell, (mean, p) in zip(cells, expected, strict=True):
        assert cell.startswith(f"+{mean:.2f} ({p:.2g})")
    assert cells_of(text, "iris", nth=1)[1] == "0.01 / 0.28 / 0.70"


def test_the_mark_of_a_difference_has_the_sign_of_its_mean(on_splits):
    """The first split has another sign than the mean."""
    text = on_splits(svm=[60] * 10, rmm=[61, *[6, 9] * 4, 9], m4=[59, *[114, 111] * 4, 111])
    better, worse = cells_of(text, "iris")[1:]
    assert better.startswith("+") and better.endswith(") +")
    assert worse.startswith("−") and worse.endswith(") −")


def test_constant_differences_are_certain(on_splits):
    text = on_splits(svm=[60] * 5, rmm=[60] * 5, m4=[48] * 5, mmrm=[60])
    assert cells_of(text, "iris")[1:3] == ["+0.00 (1)", "+2.00 (0) +"]
    known = ["0.00 / 1.00 / 0.00", "0.00 / 0.00 / 1.00"]
    assert cells_of(text, "iris", nth=1)[1:] == [*known, "–"]  # one common split


def test_differences_that_are_constant_but_for_rounding_are_certain(on_splits):
    svm = np.array([10, 23, 37, 41, 58])
    assert cells_of(on_splits(svm=svm, rmm=svm - 7), "iris")[1] == "+1.17 (0) +"


def test_splits_in_the_order_of_time_have_no_test(results):
    experiment = results.experiment("own")
    for machine, counts in {"svm": [20, 21, 22, 23, 24], "rmm": [18, 20, 18, 21, 19]}.items():
        for fold, count in enumerate(counts):
            split = {"digest": str(fold), "n_train": 100 * 2**fold, "n_test": 100}
            job = experiment.job("iris", machine)
            job = replace(job, split=SplitRef("time_series", (5.0,), fold=fold))
            experiment.add(job, count, split=split)
    text = table(experiment.folder, layout="comparison")
    assert cells_of(text, "iris")[1] == "+2.80"


@pytest.fixture
def partly_run(results):
    """Four splits of which the RMM has two: one error less than the SVM, on the easiest splits."""
    experiment = results.experiment("own", datasets=["iris", "wine"], machines=["svm", "rmm", "m4"])
    errors = {"svm": [10, 12, 40, 44], "rmm": [9, 11], "m4": [60, 62, 90, 94]}
    for dataset in ("iris", "wine"):
        for machine, counts in errors.items():
            for repeat, count in enumerate(counts):
                job = experiment.job(dataset, machine, repeat=repeat, rule="holdout")
                experiment.add(job, count + (dataset == "wine"))
    return experiment


def test_differences_are_those_of_common_splits_and_there_are_no_ranks(partly_run):
    text = table(partly_run.folder, layout="comparison")
    assert "| mean rank" not in text and "There are no ranks where splits are missing." in text
    assert cells_of(text, "RMM")[1:3] == ["2", "+1.00"]
    assert cells_of(text, "M4")[1:3] == ["2", "−50.00"]
    assert "- Missing splits of RMM on iris, wine (rbf): 2 of 4 splits done, 2 not run." in text


def test_a_machine_on_few_splits_is_not_the_best(partly_run):
    text = table(partly_run.folder, layout="generic")
    svm, rmm, m4 = cells_of(text, "iris")[2:]
    assert svm.startswith("**73.5") and rmm.startswith("90.0") and m4.startswith("23.5")
    assert "Not compared, as splits are missing: RMM on iris, wine (rbf)." in text


def test_a_machine_on_few_splits_is_below_the_others(partly_run):
    text = table(partly_run.folder, layout="machines").partition("iris")[2]
    names = [line.split(" ")[1] for line in text.splitlines() if line.startswith("| ")]
    assert [name for name in names if name in ("SVM", "RMM", "M4")][:3] == ["SVM", "M4", "RMM"]


def test_of_two_machines_the_one_without_a_split_is_named(results):
    experiment = results.experiment("own")
    for machine, counts in {"svm": [10, 12, 14], "rmm": [9, 11]}.items():
        for repeat, count in enumerate(counts):
            experiment.add(experiment.job("iris", machine, repeat=repeat, rule="holdout"), count)
    text = table(experiment.folder, layout="generic")
    assert "- Not compared, as splits are missing: RMM on iris (rbf)." in text
    assert "Bold:" not in text


def test_a_machine_that_lacks_a_split_of_one_size_is_named_with_the_size(results):
    experiment = results.experiment("own")
    for machine, size in product(("svm", "rmm"), (100, 200, 400)):
        for repeat in range(2 if (machine, size) == ("rmm", 200) else 3):
            job = experiment.job("iris", machine, repeat=repeat, rule="holdout")
            job = replace(job, split=replace(job.split, max_train=("nested", size)))
            experiment.add(job, 10 + repeat, fits={"statuses": {"inaccurate": 1}})
    text = table(experiment.folder, layout="generic")
    assert "Not compared, as splits are missing: RMM on iris (rbf, 200 rows)." in text
    of_two = "RMM on iris (rbf, 100, 400 rows)"
    assert f"SVM on iris (rbf); {of_two}: of 3 fits 3 inaccurate" in text


def test_records_of_two_settings_on_one_split_count_once(results):
    experiment = results.experiment("own")
    for machine, repeat in product(("svm", "rmm"), range(3)):
        job = experiment.job("iris", machine, repeat=repeat, rule="holdout")
        experiment.add(job, 10 + repeat + (machine == "rmm"))
        if machine == "svm":
            experiment.add_unplanned(replace(job, grid=(("C", (3.0,)),)), 12)
    text = table(experiment.folder, layout="generic", mix=True)
    assert "Bold:" in text and "splits are missing" not in text
    assert "Missing splits" not in table(experiment.folder, layout="comparison", mix=True)


def test_figures_of_machines_show_common_splits(partly_run, tmp_path):
    numbers = figure("time_and_accuracy", partly_run.folder, tmp_path / "f.svg")
    assert "RMM +1.00 ± 0.00" in numbers


@pytest.fixture
def on_test_part(results):
    """Return a function: hits of three seeds of two machines on one test part -> table."""

    def make(hits: dict[str, list[int]], predictions: bool = True, **options) -> str:
        experiment = results.experiment("own", datasets=["iris"], machines=["svm", "rmm", "m4"])
        truth = np.ones(100, dtype=int)
        for machine, counts in hits.items():
            for seed, count in enumerate(counts):
                rows = np.arange(100)
                arrays = {"y_test": truth, "predicted": (rows < count).astype(int)}
                arrays |= {"test_index": rows, "decisions": np.ones((100, 1))}
                job = experiment.job("iris", machine, repeat=seed, rule="official")
                arrays = arrays if predictions else None
                experiment.add(job, 100 - count, 100, arrays=arrays)
        return table(experiment.folder, layout="comparison", **options)

    return make


def test_seeds_on_one_test_part_are_not_splits(on_test_part):
    """Constant gaps over seeds are no proof: the test rows are the sample."""
    text = on_test_part({"svm": [90] * 3, "rmm": [92] * 3})
    assert cells_of(text, "iris")[1] == "+2.00 (0.31)"  # two of two rows
    assert "standard error: rows of the official test part" in text
    assert "M4" in text  # without records


def test_many_rows_of_one_test_part_are_a_difference(on_test_part):
    text = on_test_part({"svm": [80], "rmm": [95]})
    assert cells_of(text, "iris")[1] == "+15.00 (9.4e-05) +"


def test_seeds_that_contradict_each_other_are_no_difference(on_test_part):
    text = on_test_part({"svm": [80, 95, 95], "rmm": [95, 80, 80]})
    assert cells_of(text, "iris")[1].startswith("−5.00 (0.")
    assert cells_of(text, "better/same/worse")[1] == "0/1/0"


def test_a_metric_without_mcnemars_test_has_no_note_on_it(on_test_part):
    text = on_test_part({"svm": [80], "rmm": [95]}, metrics=["balanced_accuracy"])
    assert "McNemar" not in text and "(no test is possible)" in text


def test_without_predictions_a_test_part_has_no_test(on_test_part):
    text = on_test_part({"svm": [80] * 3, "rmm": [95] * 3}, predictions=False)
    assert cells_of(text, "iris")[1] == "+15.00"
    assert "minus SVM (no test is possible)" in text


def test_seeds_of_a_reference_table_are_no_splits():
    text = table(REFERENCE / "rmm_table1_usps", layout="comparison")
    assert cells_of(text, "USPS (rbf)")[1:] == ["+0.43", "+0.58", "+0.69"]


def test_the_decimals_of_the_ranked_values_are_stated(compared):
    """Values that differ by less than the decimals have equal ranks."""
    text = compared([[90.001, 90.002, 80.0], [70.0, 70.004, 60.0]])
    assert [cells_of(text, name)[1] for name in machines(3)] == ["1.50", "1.50", "3.00"]
    assert "values are rounded to 2 decimals" in text
