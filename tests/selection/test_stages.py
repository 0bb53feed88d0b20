"""Grids searched part by part: each stage is a plain search at the choices of those before it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import MinMaxScaler

from mmbench.machines import alias_of, machine_class, make_machine
from mmbench.selection import SelectRef, select
from mmbench.selection.grid import best_point, staged

FOUR_FOLDS, PAIRWISE = SelectRef(folds=4), SelectRef(folds=3, scope="pair")

GRID = {"Cm": [0.2, 0.7, 1.0, 1.5, 5.0], "gamma": [0.1, 1.0, 10.0]}
LINE = alias_of("mamc_bs").stages


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return MinMaxScaler().fit_transform(X[:200]), y[:200]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:200] / 16, y[:200]


def test_line_search_is_one_search_after_the_other(cancer):
    found = select(make_machine("mamc_bs"), *cancer, GRID, FOUR_FOLDS, seed=2, stages=LINE)
    first = select(make_machine("mamc_b"), *cancer, {"gamma": GRID["gamma"]}, FOUR_FOLDS, seed=2)
    at_gamma = make_machine("mamc_b", **first.params[0])
    second = select(at_gamma, *cancer, {"Cm": GRID["Cm"]}, FOUR_FOLDS, seed=2)
    assert found.params == [{**first.params[0], **second.params[0]}]
    assert found.best_score == second.best_score
    assert found.n_points == first.n_points + second.n_points == 8
    assert all(row["gamma"] == first.params[0]["gamma"] for row in found.scores if "Cm" in row)


def test_full_grid_is_never_worse_than_the_line(cancer):
    line, full = (
        select(make_machine(name), *cancer, GRID, FOUR_FOLDS, stages=alias_of(name).stages)
        for name in ("mamc_bs", "mamc_bsg")
    )
    assert full.n_points == 15
    assert full.best_score >= line.best_score


def test_pairs_go_through_the_stages_with_their_own_choices(digits):
    X, y = digits
    found = select(make_machine("mamc_bs"), X, y, GRID, PAIRWISE, stages=LINE)
    assert all(set(params) == {"gamma", "Cm"} for params in found.params)
    at_gamma = [{"gamma": params["gamma"]} for params in found.params]
    second = select(
        make_machine("mamc_b"), X, y, {"Cm": GRID["Cm"]}, PAIRWISE, pair_params=at_gamma
    )
    assert found.params == second.params


def test_stages_without_an_axis_in_the_grid_are_passed_over(cancer):
    found = select(
        make_machine("mamc_bs"), *cancer, {"Cm": GRID["Cm"]}, SelectRef(folds=3), stages=LINE
    )
    assert set(found.params[0]) == {"Cm"}
    assert staged({"Cm": [1]}, LINE) == [{"Cm": [1]}]


def test_an_empty_axis_of_a_later_stage_is_refused_at_once(cancer):
    with pytest.raises(ValueError, match="'Cm'"):
        select(make_machine("mamc_bs"), *cancer, {"gamma": [1.0], "Cm": []}, stages=LINE)


def test_equally_good_factors_leave_one_alone():
    points = [{"Cm": value} for value in (0.05, 0.9, 1.0, 1.2, 20.0)]
    scores = np.array([1.0, 1.0, 0.5, 1.0, 1.0])
    assert points[best_point(points, scores, {"Cm": "near_one"})] == {"Cm": 0.9}


@pytest.mark.parametrize("name", ["lssvm", "emamc", "mamc_b"])
def test_machines_that_need_all_digits_get_float64(name, cancer, monkeypatch):
    cls, seen = machine_class(name), set()
    plain = cls.train_folds

    def watched(self, problems, points):
        problems = list(problems)
        seen.update(problem.gram.dtype for problem in problems)
        return plain(self, problems, points)

    monkeypatch.setattr(cls, "train_folds", watched)
    select(make_machine(name), *cancer, {"gamma": [0.1, 1.0]}, SelectRef(folds=2))
    assert seen == {np.dtype(np.float64)}
