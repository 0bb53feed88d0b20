"""The MAMC paper's counting rules, fed with its own means and deviations."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import cells_of, load_published, table

from mmbench.resources import REFERENCE
from mmbench.tables.statistics import Counts, best_and_worst, welch_p, win_tie_loss

MAMC_MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")


@pytest.fixture(scope="module")
def printed_values():
    """Mean, deviation and number of splits in the thirteen rows of table 2, by machine."""
    table = load_published("mamc_table2")
    table = table[(table.dataset != "average") & (table.metric == "accuracy_pct")]
    found = {m: rows[["value", "std", "n_splits"]].T for m, rows in table.groupby("machine")}
    assert {rows.shape for rows in found.values()} == {(3, 13)}
    return {machine: rows.to_numpy(float) for machine, rows in found.items()}


def test_published_averages_follow_from_the_published_means(printed_values):
    table = load_published("mamc_table2")
    printed = table[table["dataset"] == "average"].set_index("machine")["value"]
    for machine in MAMC_MACHINES:
        assert round(fmean(printed_values[machine][0]), 2) == printed[machine]


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
def test_published_wins_and_losses_follow_from_means_and_deviations(
    machine, printed, printed_values
):
    assert str(win_tie_loss(printed_values["mamc_bs"], printed_values[machine])) == printed


def test_best_and_worst_follow_but_for_the_two_counts_that_the_paper_has_wrong(printed_values):
    counts = best_and_worst(pd.DataFrame({m: printed_values[m][0] for m in MAMC_MACHINES}))
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
    means = np.array([[90.0, 91.0, 90.0], [90.0, 90.0, 91.0]])
    first, second = ([mean, [0.0] * 3, [5] * 3] for mean in means)
    assert win_tie_loss(first, second) == Counts(1, 1, 1)
    assert 0 < welch_p((90.0, 0.0, 5), (91.0, 1.0, 5)) < 1


def test_lengths_of_time_are_compared_as_they_are():
    times = pd.DataFrame({"a": [-0.0012], "b": [-0.0013]})
    assert best_and_worst(times, decimals=None) == {"a": (1, 0), "b": (0, 1)}
    assert best_and_worst(times) == {"a": (1, 1), "b": (1, 1)}


def test_rows_without_a_result_of_some_machine_are_not_counted():
    means = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, np.nan]})
    assert best_and_worst(means) == {"a": (0, 1), "b": (1, 0)}
    assert best_and_worst(means[1:]) == {}
