"""Two runs of one experiment: what left its band, what changed beyond noise, times as ratios."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from mmbench.commands.outputs import report
from mmbench.resources import REFERENCE


def changes(page) -> list[dict[str, str]]:
    """Return the rows of the table of changes, by heading; headings are those of the page."""
    text = page.path.read_text(encoding="utf-8").partition('id="all-changes"')[2]
    text = text.partition("</table>")[0]
    heads, *rows = (
        [unescape(re.sub("<.*?>", "", cell)) for cell in re.findall("<t[hd].*?</t[hd]>", row, re.S)]
        for row in re.findall("<tr>.*?</tr>", text, re.S)
    )
    return [dict(zip(heads, row, strict=True)) for row in rows]


@pytest.fixture
def run(results, tmp_path):
    """Return a function that makes a run of one machine: errors of its splits, CPU seconds."""

    def make(
        parent: str, errors: list[int], seconds: float = 1.0, digest: str = "d", name: str = "own"
    ) -> Path:
        results.folder = tmp_path / parent
        experiment = results.experiment(
            name, datasets=["iris"], machines=["svm"], splits=len(errors)
        )
        for repeat, count in enumerate(errors):
            experiment.add(
                experiment.job("iris", "svm", repeat=repeat, rule="holdout"),
                count,
                100,
                split={"digest": f"{digest}{repeat}", "n_train": 900, "n_test": 100},
                cpu_seconds={"selection": seconds, "training": seconds, "test": seconds},
            )
        return experiment.folder

    return make


def test_the_same_records_are_the_same(run, pages, tmp_path) -> None:
    folder = run("a", [10, 12, 14])
    shutil.copytree(folder, tmp_path / "b" / "own")
    (change,) = changes(pages(folder, tmp_path / "b")["comparisons/own-and-own-2.html"])
    assert (change["change"], change["B − A"], change["time B / A"]) == ("equal", "0.00", "1.00")
    assert {"band", "status"}.isdisjoint(change)


@pytest.mark.parametrize(
    ("errors", "digest", "compared", "change"),
    [
        ([5, 17, 30, 6, 16], "d", "corrected resampled t-test", "better"),
        ([2, 23, 35, 12, 20], "d", "corrected resampled t-test", "not significant"),
        ([5, 17, 30, 6, 16], "e", "standard errors of both means", "not significant"),
    ],
)
def test_a_gain_is_held_against_chance(run, pages, errors, digest, compared, change) -> None:
    found = pages(run("a", [10, 22, 34, 12, 20]), run("b", errors, seconds=2.0, digest=digest))
    (row,) = changes(found["comparisons/own-and-own-2.html"])
    assert (row["compared"], row["change"], row["time B / A"]) == (compared, change, "2.00")


def test_a_gain_on_a_few_splits_is_not_tested(run, pages) -> None:
    (row,) = changes(pages(run("a", [9, 9]), run("b", [5, 5]))["comparisons/own-and-own-2.html"])
    assert (row["compared"], row["change"]) == ("fewer than 5 splits", "not tested")
    assert row["B − A"] == "+4.00"


def test_a_single_run_is_compared_row_by_row(results, pages, tmp_path) -> None:
    folders = []
    for name, hits in (("a", 40), ("b", 60)):
        results.folder = tmp_path / name
        experiment = results.experiment("own")
        truth, rows = np.ones(100, dtype=int), np.arange(100)
        arrays = {"y_test": truth, "predicted": 1 * (rows < hits), "test_index": rows}
        arrays["decisions"] = np.ones((100, 1))
        experiment.add(experiment.job("iris", "svm"), 100 - hits, 100, arrays=arrays)
        folders.append(experiment.folder)
    (change,) = changes(pages(*folders)["comparisons/own-and-own-2.html"])
    assert (change["compared"], change["change"]) == ("rows of the official test part", "better")


def test_a_value_that_is_no_longer_met_left_its_band(results, tmp_path) -> None:
    folders = []
    for name, errors in (("a", 98), ("b", 300)):
        results.folder = tmp_path / name
        experiment = results.experiment("usps_rbf", layout="mmrm_table2")
        split = {"digest": "d", "origin": "official", "n_train": 7291, "n_test": 2007}
        experiment.add(experiment.job("usps", "svm"), errors, 2007, split=split)
        folders.append(experiment.folder)
    report(folders, tmp_path / "site")
    overview = (tmp_path / "site" / "index.html").read_text()
    assert "1 left their band" in overview
    page = (tmp_path / "site" / "comparisons" / "usps_rbf-and-usps_rbf-2.html").read_text()
    assert "left its band" in page and "+202" in page


def test_a_run_is_held_against_its_reference_table(usps, pages) -> None:
    found = pages(REFERENCE / "usps_rbf", usps.folder)
    text = found["comparisons/usps_rbf-and-usps_rbf-2.html"].text
    assert "standard errors of both means" in text


def test_other_experiments_are_not_compared(run, usps, pages) -> None:
    assert not [path for path in pages(usps.folder, run("a", [1, 2, 3])) if "comparisons" in path]


def test_means_and_difference_are_of_the_same_splits(run, pages) -> None:
    """Common splits agree, and the mean of further splits differs."""
    found = pages(run("a", [10, 22]), run("b", [10, 22, 70, 72], name="other"))
    (change,) = changes(found["comparisons/own-and-other.html"])
    assert (change["B − A"], change["change"]) == ("0.00", "equal")
