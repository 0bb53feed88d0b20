"""What cannot be fitted to the data is one line before the first job, in a dry run too."""

from __future__ import annotations

import time
from typing import Any

import pytest
from helpers.cases import cases
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


#: Changes of the experiment, and the words of the refusal; no words if the experiment is valid. In
#: place of machines, a change may be what is stated of the classifier `mine`.
CASES = cases(__file__, "trial.yaml")


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_fitted_is_refused(case, tmp_path):
    changes, words = CASES[case]
    changes = changes if "preprocess" in changes or "machines" in changes else of(**changes)
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
