"""Two runs of one experiment: what left its band, what changed beyond noise, times as ratios."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from mmbench.commands.outputs import report
from mmbench.config.plan import replan
from mmbench.resources import REFERENCE
from mmbench.tables.report.comparison import MEANS, PAIRED, ROWS, changes, runs_to_compare
from mmbench.tables.report.view import View
from mmbench.tables.results import read_results


def views_of(*folders: Path) -> list[View]:
    return [View(read, str(k)) for k, read in enumerate(read_results(folders, replan))]


def rows(before: View, after: View) -> list:
    return list(changes(before, after).itertuples())


@pytest.fixture
def run(results):
    """Return a function that makes a run of one machine: errors of its splits, CPU seconds."""

    def make(name: str, errors: list[int], seconds: float = 1.0, digest: str = "d", **more) -> Path:
        experiment = results.experiment(name, datasets=["iris"], machines=["svm"], splits=3)
        for repeat, count in enumerate(errors):
            experiment.add(
                experiment.job("iris", "svm", repeat=repeat, rule="holdout"),
                count,
                100,
                split={"digest": f"{digest}{repeat}", "n_train": 50, "n_test": 100},
                cpu_seconds={"selection": seconds, "training": seconds, "test": seconds},
                **more,
            )
        return experiment.folder

    return make


def test_the_same_records_are_the_same(run, tmp_path) -> None:
    folder = run("a", [10, 12, 14])
    shutil.copytree(folder, tmp_path / "b" / "a")
    ((before, after),) = runs_to_compare(views_of(folder, tmp_path / "b"))
    (change,) = rows(before, after)
    assert (change.verdict, change.band, change.status, change.ratio) == ("equal", "", "", 1.0)


def test_a_gain_on_every_split_is_beyond_noise_and_times_are_ratios(run) -> None:
    (change,) = rows(*views_of(run("a", [10, 22, 34]), run("b", [5, 17, 30], seconds=2.0)))
    assert (change.how, change.verdict, change.ratio) == (PAIRED, "better", 2.0)
    assert change.gain == pytest.approx(14 / 3)


def test_a_gain_on_one_of_three_splits_is_noise(run) -> None:
    (change,) = rows(*views_of(run("a", [10, 22, 34]), run("b", [2, 23, 35])))
    assert change.verdict == "not significant"


def test_other_splits_are_compared_by_the_errors_of_both_means(run) -> None:
    first, other = run("a", [10, 22, 34]), run("b", [5, 17, 30], digest="e")
    (change,) = rows(*views_of(first, other))
    assert (change.how, change.verdict) == (MEANS, "not significant")


def test_a_single_run_is_compared_row_by_row(results) -> None:
    folders = []
    for name, hits in (("a", 40), ("b", 60)):
        experiment = results.experiment(name)
        truth = np.ones(100, dtype=int)
        arrays = {"y_test": truth, "predicted": np.where(np.arange(100) < hits, truth, 0)}
        experiment.add(experiment.job("iris", "svm"), 100 - hits, 100, arrays=arrays)
        folders.append(experiment.folder)
    (change,) = rows(*views_of(*folders))
    assert (change.how, change.verdict) == (ROWS, "better")
    assert change.p == pytest.approx(2 * 0.5**20)


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
