"""The pictures of a report: what is drawn, and that the drawing script takes it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from helpers.drawn import table
from helpers.planned import config_names
from plotly.graph_objects import Figure

from mmbench.commands.outputs import export
from mmbench.resources import REFERENCE
from mmbench.tables.figures import FIGURES, figures_of
from mmbench.tables.layouts import LAYOUTS


def test_every_picture_is_one_that_plotly_knows(both, pages) -> None:
    found = {}
    for path, page in {**both, **pages(REFERENCE / "fsvm_table2")}.items():
        for name, spec in page.pictures().items():
            Figure(spec)  # raises at an attribute that does not exist
            found.setdefault(name, []).append(path)
    assert set(found) == {
        "against-published",
        "machine-differences",
        "time-and-accuracy",
        "splits-picture",
    }


def test_a_point_out_of_its_band_is_hollow_and_named(results, pages) -> None:
    experiment = results.experiment("usps_rbf", layout="mmrm_table2")
    for machine, errors in (("svm", 98), ("rmm", 300)):
        split = {"digest": "d", "origin": "official", "n_train": 7291, "n_test": 2007}
        experiment.add(experiment.job("usps", machine), errors, 2007, split=split)
    page = pages(experiment.folder)["usps_rbf/index.html"]
    traces = {trace["name"]: trace for trace in page.pictures()["against-published"]["data"]}
    assert (traces["SVM"]["x"], traces["SVM"]["text"]) == ([0], [""])
    (met,), (missed,) = (traces[name]["marker"]["symbol"] for name in ("SVM", "RMM"))
    assert missed.endswith("-open") and not met.endswith("-open")
    assert traces["RMM"]["text"] == [" RMM "] and traces["RMM"]["x"] == [300 - 96]
    band = 2 * np.sqrt(98 * (1 - 98 / 2007))
    assert traces["SVM"]["error_x"]["array"] == pytest.approx([band])


def test_names_in_a_picture_are_text(both) -> None:
    (trace,) = both["evil/index.html"].pictures()["machine-differences"]["data"]
    assert all(not name.replace("<br>", "").count("<") for name in trace["y"])


def test_labels_of_rows_are_short_and_do_not_overlap(results, pages) -> None:
    """A line of a label is 17 pixels high."""
    experiment = results.experiment("own", datasets=["breast_wisconsin", "iris"])
    for dataset, kernel in product(("breast_wisconsin", "iris"), ("linear", "rbf")):
        for machine, errors in (("m4", 10), ("svm", 12)):
            experiment.add(experiment.job(dataset, machine, kernel=kernel), errors)
    spec = pages(experiment.folder)["own/index.html"].pictures()["machine-differences"]
    labels = spec["data"][0]["y"]
    assert labels[:2] == ["breast_wisconsin<br>(linear)", "breast_wisconsin<br>(rbf)"]
    assert spec["layout"]["height"] - 150 >= 4 * 2 * 17


def test_differences_are_held_against_the_first_machine_with_their_errors(results, pages) -> None:
    experiment = results.experiment("own", datasets=["iris"])
    for machine, errors in {"svm": (10, 10, 10), "rmm": (8, 9, 13)}.items():
        for repeat, count in enumerate(errors):
            job = experiment.job("iris", machine, repeat=repeat, rule="holdout")
            experiment.add(job, count)
    pictures = pages(experiment.folder)["own/index.html"].pictures()
    (trace,) = pictures["machine-differences"]["data"]
    assert trace["name"] == "RMM" and trace["x"] == pytest.approx([0], abs=1e-9)
    two_errors = 2 * np.std([2, 1, -3], ddof=1) / np.sqrt(3)
    assert trace["error_x"]["array"] == pytest.approx([two_errors])


def test_the_band_of_a_cell_is_around_the_mean_of_its_splits(results, pages) -> None:
    experiment = results.experiment("mmrm_table1", layout="mmrm_table1")
    for repeat, errors in enumerate((16, 17, 18)):
        job = experiment.job("pima", "svm", repeat=repeat, rule="holdout", kernel="linear")
        experiment.add(job, errors, 77)
    page = pages(experiment.folder)["mmrm_table1/cells/pima-linear-svm.html"]
    (band,) = [s for s in page.pictures()["splits-picture"]["layout"]["shapes"] if "fillcolor" in s]
    assert (band["y0"] + band["y1"]) / 2 == pytest.approx(100 * (1 - 17 / 77))
    sd = 100 / 77  # of 3 splits here and 50 in the paper
    assert (band["y1"] - band["y0"]) / 2 == pytest.approx(2 * sd * np.sqrt(1 / 3 + 1 / 50))


def test_splits_with_a_failed_fit_are_not_drawn(results, pages, tmp_path) -> None:
    """Neither from records nor from a reference table."""
    experiment = results.experiment("own", splits=3)
    for repeat, errors in enumerate((10, 12, 70)):
        fits = {"statuses": {"failed": 1} if errors == 70 else {"optimal": 1}}
        job = experiment.job("iris", "svm", repeat=repeat, rule="holdout")
        experiment.add(job, errors, fits=fits | {"n_support_mean": 0, "iterations": 0})
    reference = tmp_path / "reference" / "own"
    reference.mkdir(parents=True)
    table(experiment.folder, output=reference / "table.csv")
    export([experiment.folder], output=reference / "splits.csv.gz")
    for folder in (experiment.folder, reference):
        page = pages(folder)["own/cells/iris-rbf-svm.html"]
        (trace,) = page.pictures()["splits-picture"]["data"]
        assert trace["y"] == [90, 88]


def test_differences_are_those_of_common_splits(results, pages) -> None:
    experiment = results.experiment("own", datasets=["iris", "wine"])
    errors = {"svm": (10, 12, 40), "rmm": (9, 11), "m4": (30, 32, 50)}
    for dataset in ("iris", "wine"):
        for machine, counts in errors.items():
            for repeat, count in enumerate(counts):
                job = experiment.job(dataset, machine, repeat=repeat, rule="holdout")
                experiment.add(job, count)
    page = pages(experiment.folder)["own/index.html"]
    pictures = page.pictures()
    assert pictures["machine-differences"]["data"][0]["x"] == pytest.approx([1, 1])
    assert pictures["time-and-accuracy"]["data"][0]["y"] == pytest.approx([1, 1])
    ranks = page.text.split("Comparison of the machines over data sets and splits")[1]
    assert "Missing splits of RMM on iris, wine (rbf): 2 of 3 splits done" in ranks
    assert "Bayesian test on a data set: probabilities" in ranks


def test_times_hold_the_search_whose_parameters_are_taken_over(results, pages) -> None:
    """10 CPU seconds of search, 1.75 of the rest; the MMRM takes over what the RMM has."""
    experiment = results.experiment("chain", layout="machines", uses={"rmm": "svm", "mmrm": "rmm"})
    for machine, errors in (("svm", 10), ("rmm", 9), ("mmrm", 8)):
        experiment.add(experiment.job("iris", machine), errors)
    page = pages(experiment.folder)["chain/index.html"]
    picture = page.pictures()["time-and-accuracy"]
    assert [trace["x"] for trace in picture["data"]] == [[11.75], [21.75], [31.75]]
    assert (
        "The time of RMM, MMRM includes the search of SVM, whose parameters are reused" in page.text
    )
    assert "selection reused from SVM" in picture["data"][1]["hovertext"][0]
    lines = table(experiment.folder).splitlines()
    seconds = [line.split("|")[3].strip() for line in lines if line.startswith("| ")]
    assert sorted(seconds[2:5]) == ["11.8", "21.8", "31.8"]
    by_stage = table(experiment.folder, layout="generic")
    assert "the search of SVM, whose time is in its column, also serves RMM, MMRM" in by_stage


@pytest.mark.parametrize(("layout", "metrics"), [("comparison", ["log_loss"]), ("fsvm_rounds", [])])
def test_machines_that_a_table_leaves_out_are_drawn(results, pages, layout, metrics) -> None:
    """A machine without probabilities, and one that is not in the paper's table."""
    experiment = results.experiment("own", layout=layout, metrics=metrics)
    for machine, errors in {"svm": 10, "fsvm": 12, "fsvm_opt": 14}.items():
        y = np.repeat([0, 1], 50)
        arrays = {"y_test": y, "predicted": y, "decisions": y[:, None] - 0.5}
        if machine != "fsvm":
            arrays["probabilities"] = np.full((100, 2), 0.5)
        fit = {"pair": [0, 1], "status": "optimal", "objective": 1.0, "bound": 1.0, "extra": {}}
        experiment.add(experiment.job("iris", machine), errors, arrays=arrays, per_pair=[fit])
    traces = pages(experiment.folder)["own/index.html"].pictures()["machine-differences"]["data"]
    assert len(traces) == 2
    assert len({trace["marker"]["color"] for trace in traces}) == 2


def test_points_open_the_pages_of_their_cells(both) -> None:
    page = both["usps_rbf/index.html"]
    for spec in page.pictures().values():
        for trace in spec["data"]:
            assert all((page.path.parent / target).is_file() for target in trace["customdata"])


def test_a_figure_of_the_paper_is_drawn_as_a_vector(margin_ratios, pages) -> None:
    page = pages(margin_ratios().folder)["mmrm_fig2/index.html"]
    assert "figures/mmrm_fig2.svg" in page.all("src")
    assert "published: accuracy = 0.20354" in page.text


def test_a_figure_that_cannot_be_drawn_says_why(margin_ratios, pages) -> None:
    pair = {"pair": [0, 1], "status": "optimal", "extra": {}}
    page = pages(margin_ratios(pairs=[pair] * 45).folder)["mmrm_fig2/index.html"]
    assert "mmrm_fig2 is not drawn" in page.text


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_belongs_to_a_report(name) -> None:
    shown = {figure for own in config_names() for figure in figures_of(_as_run(own))}
    others = {"critical_difference", "published"}  # every report has pictures of both
    assert name in {*shown, *LAYOUTS, *others}


def _as_run(name):
    """Return what stands for an experiment with records of that name."""
    from mmbench.jobs.planned import Plan
    from mmbench.results.frames import Results

    return Results(None, Plan(name), None, {})


def test_labels_beside_points_are_escaped(results, pages) -> None:
    labels = {f"m{k}": f"L<sub>{k}</sub>" for k in range(9)}  # more machines than markers
    experiment = results.experiment("labels", datasets=["iris"], labels=labels)
    for k, name in enumerate(labels):
        experiment.add(experiment.job("iris", "svm", variant=name), 10 + k)
    spec = pages(experiment.folder)["labels/index.html"].pictures()["time-and-accuracy"]
    texts = [text for trace in spec["data"] for text in trace["text"]]
    assert texts[0] == " L&lt;sub&gt;0&lt;/sub&gt; "
