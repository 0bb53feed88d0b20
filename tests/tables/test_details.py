"""What stands below every table: selected parameters, and certificates against what was asked."""

from __future__ import annotations

import json
import math

import pytest
from helpers.drawn import cells_of, rows_of, table

from mmbench.commands.outputs import report
from mmbench.results import load

GRID = (("C", (1.0, 10.0, 100.0)),)


def values(experiment) -> dict[str, float]:
    return {row.metric: row.measured for row in rows_of(experiment.folder)}


@pytest.fixture
def certified(results):
    """Three splits of a machine: one gap is above the 1e-6 that was asked, one has no bound."""
    experiment = results.experiment("own")
    for repeat, gap in enumerate((1e-9, 3e-7, 2e-6, None)):
        fits = {"statuses": {"optimal": 1}, "worst_violation": 1e-8, "gap_tolerance": 1e-6}
        pair = {"pair": [0, 1], "status": "optimal", "gap": gap, "extra": {}}
        experiment.add(experiment.job("pima", "svm", repeat=repeat), fits=fits, per_pair=[pair])
    return experiment


def test_gaps_stand_beside_what_was_asked(certified) -> None:
    text = table(certified.folder)
    row = cells_of(text, "SVM")
    assert row == ["SVM", "4 optimal", "1.0e-06", "1.2e-06", "inf", "2 of 4", "1.0e-08"]
    found = values(certified)
    assert (found["gap_tolerance"], found["gaps_above_tolerance"]) == (1e-6, 2)
    assert found["median_gap"] == pytest.approx(1.15e-6)
    assert math.isinf(found["worst_gap"])


def test_a_classifier_without_certificates_has_no_gap(results) -> None:
    experiment = results.experiment("own")
    fits = {"statuses": {"uncertified": 1}, "worst_gap": None, "worst_violation": None}
    pair = {"pair": [0, 1], "status": "uncertified", "gap": None, "extra": {}}
    experiment.add(experiment.job("pima", "svm"), fits=fits, per_pair=[pair])
    assert cells_of(table(experiment.folder), "SVM")[2:] == ["–"] * 5
    assert {"median_gap", "worst_gap"}.isdisjoint(values(experiment))


def test_of_older_records_it_is_not_known_what_was_asked(usps) -> None:
    assert "gap_tolerance" not in values(usps)
    assert cells_of(table(usps.folder), "SVM", nth=-1)[2:6] == ["–", "–", "2.0e-10", "–"]


def test_fits_that_are_not_optimal_are_counted_the_gravest_first(results) -> None:
    experiment = results.experiment("own")
    for repeat, statuses in enumerate(({"optimal": 3}, {"unbounded": 1, "trivial": 2})):
        job = experiment.job("pima", "svm", repeat=repeat)
        experiment.add(job, fits={"statuses": statuses, "n_support_mean": 1.0})
    row = cells_of(table(experiment.folder), "SVM")
    assert row[1] == "1 unbounded, 2 trivial, 3 optimal"


def test_fits_at_the_coefficient_limit_are_counted(results) -> None:
    experiment = results.experiment("own")
    pairs = [
        {"pair": [0, k], "status": "optimal", "extra": {"at_coefficient_limit": limited}}
        for k, limited in enumerate((True, True, False), 1)
    ]
    fits = {"statuses": {"optimal": 3}}
    experiment.add(experiment.job("pima", "mmrm"), fits=fits, per_pair=pairs)
    assert cells_of(table(experiment.folder), "MMRM")[1] == "3 optimal (2 at the coefficient limit)"


def test_fits_are_counted_by_their_route(results, tmp_path) -> None:
    experiment = results.experiment("own")
    for repeat, routes in enumerate((("SMO", "SMO"), ("interior point", "SMO"))):
        pairs = [{"pair": [0, k], "status": "optimal", "route": r} for k, r in enumerate(routes, 1)]
        fits = {"statuses": {"optimal": 2}, "routes": {r: routes.count(r) for r in routes}}
        job = experiment.job("pima", "svm", repeat=repeat)
        experiment.add(job, fits=fits, per_pair=[{"extra": {}, **pair} for pair in pairs])
    assert cells_of(table(experiment.folder), "SVM")[2] == "SMO 3, interior point 1"
    assert json.loads(load(experiment.folder).routes[1]) == {"interior point": 1, "SMO": 1}
    report([experiment.folder], tmp_path / "site")
    (page,) = (tmp_path / "site").rglob("cells/*.html")
    assert "<td>SMO 1, interior point 1</td>" in page.read_text("utf-8")


def test_records_without_routes_have_no_column_of_them(certified) -> None:
    assert "route" not in table(certified.folder)


def test_selected_parameters_say_where_the_grid_ends(results) -> None:
    experiment = results.experiment("own")
    for repeat, C in enumerate((10.0, 100.0, 100.0)):
        job = experiment.job("pima", "svm", repeat=repeat, grid=GRID)
        experiment.add(job, selection={"params": {"C": C, "gamma": 3.0}})
    text = table(experiment.folder)
    assert cells_of(text, "pima", nth=-1)[2] == "C 100 (max 2/3)"
    assert values(experiment)["selected_C"] == 100
    assert "at the upper end of its grid in 2 of 3 choices" in table(experiment.folder, "csv")


def test_choices_of_pairs_are_taken_together(results) -> None:
    experiment = results.experiment("own")
    job = experiment.job("pima", "svm", grid=GRID)
    experiment.add(job, selection={"params": [{"C": 1.0}, {"C": 1.0}, {"C": 10.0}]})
    assert cells_of(table(experiment.folder), "pima", nth=-1)[2] == "C 1 (min 2/3)"


@pytest.mark.parametrize(
    ("grid", "text"), [((1.0, 10.0), "C 10"), ((0.1, 1.0, 10.0), "C 10 (max)")]
)
def test_a_grid_of_two_values_has_no_inside(results, grid, text) -> None:
    experiment = results.experiment("own")
    job = experiment.job("pima", "svm", grid=(("C", grid),))
    experiment.add(job, selection={"params": {"C": 10.0}})
    assert cells_of(table(experiment.folder), "pima", nth=-1)[2] == text


def test_words_and_inherited_parameters_are_not_shown(results) -> None:
    experiment = results.experiment("own")
    job = experiment.job("pima", "svm", grid=(("gamma", ("scale", "auto")),))
    experiment.add(job, selection={"params": {"gamma": "scale", "C": 3.0}})
    assert "Selected parameters" not in table(experiment.folder)
