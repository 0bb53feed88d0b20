"""What cannot be fitted to the data is one line before the first job, in a dry run too."""

from __future__ import annotations

import time
from typing import Any

import pytest
from helpers.serial_executor import SerialExecutor
from sklearn.base import BaseEstimator, ClassifierMixin

from mmbench.commands import experiments
from mmbench.commands.dry_run import dry_run
from mmbench.commands.experiments import plan_experiments
from mmbench.commands.options import Options
from mmbench.errors import UserError

FOREST = {"estimator": "sklearn.ensemble.RandomForestClassifier"}
CONFIG: dict[str, Any] = {
    "name": "tried",
    "datasets": ["wine"],
    "protocol": {"test": {"kfold": 2}},
    "machines": {"svm": {}, "mine": {**FOREST, "params": {"n_estimators": 5}}},
}


class Slow(ClassifierMixin, BaseEstimator):
    """A classifier that needs more time than a trial fit may take."""

    def fit(self, X, y):
        time.sleep(60)


class Dying(ClassifierMixin, BaseEstimator):
    """A classifier that ends its process."""

    def fit(self, X, y):
        raise SystemExit(3)


def of(**entry: Any) -> dict[str, Any]:
    return {"machines": {"svm": {}, "mine": {**FOREST, **entry}}}


def step(path: str, **params: Any) -> dict[str, Any]:
    return {"preprocess": {path: params}}


#: Changes of the experiment, and the words of the refusal; no words if the experiment is valid.
CASES = {
    "valid": ({}, []),
    "type": (of(params={"n_estimators": "five"}), ["machines.mine", "n_estimators", "'five'"]),
    "type in a grid": (of(grid={"max_depth": [2, "five", 3]}), ["max_depth", "'five'"]),
    "the others run": (of(params={"n_estimators": "five"}), ["--only machine=svm"]),
    "an estimator as a parameter": (
        of(estimator="sklearn.ensemble.AdaBoostClassifier", params={"estimator": "a.B"}),
        ["machines.mine", "'estimator'"],
    ),
    "more neighbours than a few rows": (
        of(estimator="sklearn.neighbors.KNeighborsClassifier", params={"n_neighbors": 70}),
        [],
    ),
    "more neighbours than rows": (
        of(estimator="sklearn.neighbors.KNeighborsClassifier", params={"n_neighbors": 90}),
        ["machines.mine cannot be fitted", "n_neighbors"],
    ),
    "components": (step("sklearn.decomposition.PCA", n_components=13), []),
    "components of too few columns": (
        step("sklearn.decomposition.PCA", n_components=14),
        ["wine: preprocess: sklearn.decomposition.PCA", "n_components=14"],
    ),
    "texts": (
        step("sklearn.feature_extraction.text.CountVectorizer"),
        ["CountVectorizer cannot be fitted", "lower"],
    ),
    "labels as numbers": (
        step("sklearn.cross_decomposition.PLSRegression"),
        ["PLSRegression cannot be fitted"],
    ),
    "weights of labels": (of(params={"class_weight": {"class_0": 2, "class_1": 3}}), []),
    "weights of no label": (
        of(params={"class_weight": {"class_0": 2, 7: 3}}),
        ["machines.mine", "class_weight", "unknown class '7'", "class_0, class_1"],
    ),
    "weights of no label in a grid of svm": (
        {"machines": {"svm": {"grid": {"class_weight": [{"a": 2}, "balanced"]}}}},
        ["machines.svm", "class_weight", "unknown class 'a'"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_fitted_is_refused(case, tmp_path):
    changes, words = CASES[case]
    options = Options(tmp_path / "results", store=tmp_path)
    try:
        plan_experiments([{**CONFIG, **changes}], options, executor=SerialExecutor())
        said = ""
    except UserError as error:
        said = str(error)
    assert bool(words) == bool(said)
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize("estimator", [Dying, Slow])
def test_a_fit_that_dies_or_does_not_end_is_left_to_its_jobs(estimator, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "TRIAL_SECONDS", 0.1)
    lines = dry_run([{**CONFIG, **of(estimator=estimator)}], tmp_path, store=tmp_path)
    assert lines.startswith("tried: 4 jobs")
