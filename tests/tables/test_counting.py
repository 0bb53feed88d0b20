"""The MAMC paper's counting rules, fed with its own means and deviations."""

from __future__ import annotations

from statistics import fmean

import pytest
from helpers.drawn import cells_of, load_published, table

from mmbench.resources import REFERENCE
from mmbench.tables.published import published_rows
from mmbench.tables.statistics import Counts, Sample, best_and_worst, welch_p, win_tie_loss

MAMC_MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")


@pytest.fixture(scope="module")
def lines():
    """The thirteen lines of table 2."""
    found = {}
    for row in published_rows("mamc_table2"):
        if row["dataset"] != "average" and row["metric"] == "accuracy_pct":
            sample = Sample(row["value"], row["std"], row["n_splits"])
            found.setdefault(row["dataset"], {})[row["machine"]] = sample
    assert len(found) == 13
    return list(found.values())


def test_published_averages_follow_from_the_published_means(lines):
    table = load_published("mamc_table2")
    printed = table[table["dataset"] == "average"].set_index("machine")["value"]
    for machine in MAMC_MACHINES:
        assert round(fmean(line[machine].mean for line in lines), 2) == printed[machine]


@pytest.mark.parametrize(
    ("machine", "printed"),
    [
        ("mamc_bsg", "1/11/1"),
        ("mamc_b", "1/12/0"),
        ("mamc", "13/0/0"),
        ("emamc", "1/4/8"),
        ("svm", "2/3/8"),
    ],
)
def test_published_wins_and_losses_follow_from_means_and_deviations(machine, printed, lines):
    counts = win_tie_loss((line["mamc_bs"], line[machine]) for line in lines)
    assert str(counts) == printed


def test_best_and_worst_follow_but_for_the_two_counts_that_the_paper_has_wrong(lines):
    counts = best_and_worst([{m: line[m].mean for m in MAMC_MACHINES} for line in lines])
    printed = {
        "mamc_bs": (1, 0),
        "mamc_bsg": (2, 0),
        "mamc_b": (2, 1),
        "mamc": (0, 11),
        "emamc": (6, 0),
        "svm": (4, 0),
    }
    assert counts == printed | {"mamc_bsg": (1, 0), "mamc": (0, 12)}


def test_rows_under_the_lines():
    text = table(REFERENCE / "mamc_table2", layout="mamc_table2")
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    heads = [line[0] if line else "" for line in lines]
    rows = {head: lines[heads.index(head) + 1] for head in ("Average", "best/worst", "W/T/L")}
    assert rows["Average"] == [
        "",
        "published",
        *["84.12", "84.18", "83.60", "65.43", "85.34", "85.26"],
    ]
    assert rows["best/worst"][2:] == ["1/0", "1/0", "2/1", "0/12", "6/0", "4/0"]
    assert rows["W/T/L"][2:] == ["–", "1/11/1", "1/12/0", "13/0/0", "1/4/8", "2/3/8"]


def test_a_machine_that_misses_a_data_set_has_no_average(results):
    experiment = results.experiment("mamc_table2", layout="mamc_table2")
    for dataset, machine in (("ida_heart", "mamc_bs"), ("ida_heart", "svm"), ("ida_banana", "svm")):
        experiment.add(experiment.job(dataset, machine))
    assert cells_of(table(experiment.folder), "Average")[2:] == ["–", "90.00"]


def test_samples_without_spread_are_equal_or_different():
    same, higher = Sample(90.0, 0.0, 5), Sample(91.0, 0.0, 5)
    assert win_tie_loss([(same, same), (higher, same), (same, higher)]) == Counts(1, 1, 1)
    assert 0 < welch_p(Sample(90.0, 0.0, 5), Sample(91.0, 1.0, 5)) < 1


def test_lengths_of_time_are_compared_as_they_are():
    times = [{"a": -0.0012, "b": -0.0013}]
    assert best_and_worst(times, decimals=None) == {"a": (1, 0), "b": (0, 1)}
    assert best_and_worst(times) == {"a": (1, 1), "b": (1, 1)}
