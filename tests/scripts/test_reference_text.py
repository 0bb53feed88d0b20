"""Figures in the text on the reference tables follow from the tables."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from mmbench.config.cells import replan
from mmbench.tables import read_results
from mmbench.tables.blocks.tests import ranks_of
from mmbench.tables.build import sheet_of
from mmbench.tables.statistics import counting_sd, difference_se

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
TEXT = " ".join((REFERENCE / "README.md").read_text().split())


def cell(experiment: str, machine: str, metric: str = "errors_count", **where) -> pd.Series:
    table = pd.read_csv(REFERENCE / experiment / "table.csv")
    rows = table[(table.machine == machine) & (table.metric == metric)]
    for name, value in where.items():
        rows = rows[rows[name] == value]
    (_, row), *others = rows.iterrows()
    assert not others
    return row


def test_mamc_is_not_significantly_behind_mamc_b() -> None:
    (found,) = read_results([REFERENCE / "mamc_table2"], replan)
    ranks = ranks_of(sheet_of(found), ("rbf", None))
    ahead = ranks.means["mamc"] - ranks.means["mamc_b"]
    assert ahead < ranks.critical_difference
    assert f"{ahead:.2f} mean ranks ahead where {ranks.critical_difference:.2f} is asked" in TEXT
    others = {m: r for m, r in ranks.means.items() if m not in ("mamc", "mamc_b")}
    assert all(ranks.means["mamc"] - r > ranks.critical_difference for r in others.values())


def test_what_a_warm_start_saves_is_over_all_sizes() -> None:
    text = (REFERENCE / "rmm_fig2" / "table.md").read_text()
    rows = [line.split("|") for line in text.split("Times the SVM")[0].splitlines()]
    numbers = [
        [float(c) for c in row[3:9]] for row in rows if len(row) > 9 and row[1].strip().isdigit()
    ]
    sums = [sum(column) for column in zip(*numbers, strict=True)]
    saved = [
        round(100 * (1 - warm / cold)) for warm, cold in zip(sums[::2], sums[1::2], strict=True)
    ]
    assert "{} % at B₁, {} % at B₂ and nothing ({} %) at B₃".format(*saved) in TEXT


def rounds_table(part: int) -> dict[str, list[float]]:
    """Return a part of the table of rounds: by data set, after 0, 1, 2, 5, 15 and its own rounds,
    and at the optimum."""
    text = (REFERENCE / "fsvm_rounds" / "table.md").read_text().split("\n\n**")[part]
    lines = [line.split("|")[1:9] for line in text.splitlines() if line.startswith("| ida_")]
    return {name.split()[0]: [float(c.split("(")[0]) for c in cells] for name, *cells in lines}


def test_rounds_of_the_alternation_help_on_breast_cancer() -> None:
    above = rounds_table(1)
    five, fifteen = above["ida_breast_cancer"][3:5]
    assert f"from {five:.0f} % after five rounds to {fifteen:.0f} % after 15" in TEXT
    own = {name: cells[5] for name, cells in above.items()}
    least, most = min(own, key=own.get), max(own, key=own.get)
    assert (least, most) == ("ida_image", "ida_splice")
    assert f"objective {own[least]:.0f} % (Image) to {own[most]:.0f} % (Splice) above" in TEXT


def test_rounds_matter_little_for_accuracy() -> None:
    largest = max(max(cells) - min(cells) for cells in rounds_table(2).values())
    assert f"differ by {math.ceil(10 * largest) / 10:g} points or less" in TEXT


def test_errors_of_1000_mnist_are_means() -> None:
    svm, rmm = (cell("rmm_table1_mnist1000", m, kernel="rbf").measured for m in ("svm", "rmm"))
    assert f"({svm:.0f} here against 670 for the SVM, {rmm:.0f} against 613 for the RMM)" in TEXT


def test_the_mark_of_the_rmm_with_rbf_on_optical_digits_is_that_of_the_mean() -> None:
    row = cell("rmm_table1_opt", "rmm", kernel="rbf")
    counting = counting_sd(row.measured, 1797)
    se = difference_se(row.sd, int(row.n), 1, counting, same_test_rows=True)
    assert bool(row.in_band) == (abs(row.published - row.measured) <= 2 * se) == False  # noqa: E712


@pytest.mark.parametrize("path", sorted(REFERENCE.glob("*/table.md")), ids=lambda p: p.parent.name)
def test_no_table_names_the_wrong_standard_error(path: Path) -> None:
    assert not re.search(r"standard errors of the measured", path.read_text())
