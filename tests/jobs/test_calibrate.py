"""Probabilities of machines: by scikit-learn's calibration, and beside the decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV

from mmbench.errors import Status
from mmbench.jobs.prepare import prepare
from mmbench.jobs.record import is_done
from mmbench.jobs.train import job_seeds
from mmbench.machines import SVM
from mmbench.running.worker import execute
from mmbench.selection.folds import inner_splits


def test_probabilities_are_those_of_scikit_learn_and_change_no_decision(job, context):
    plain, arrays = execute(job, context)
    record, calibrated = execute(replace(job, calibrate="sigmoid"), context)
    assert is_done(record), record["reason"]
    assert record["metrics"] == plain["metrics"]
    for name in arrays:
        np.testing.assert_array_equal(calibrated[name], arrays[name])
    assert set(record["cpu_seconds"]) - set(plain["cpu_seconds"]) == {"calibration"}
    data = prepare(job, context.data, None)
    labels = np.unique(data.y_train, return_inverse=True)[1]
    folds = inner_splits(labels, job.select.folds, None, 1, job_seeds(job)["selection"])
    machine = SVM(**{**dict(job.params), **record["selection"]["params"]})
    theirs = CalibratedClassifierCV(machine, cv=folds, ensemble=False)
    expected = theirs.fit(data.X_train, data.y_train).predict_proba(data.X_test)
    np.testing.assert_allclose(calibrated["probabilities"], expected, atol=1e-9)
    np.testing.assert_array_equal(calibrated["classes"], theirs.classes_)


def test_an_estimator_without_probabilities_gets_some(job, context):
    other = replace(job, machine="sklearn.svm:LinearSVC", grid=(), calibrate="isotonic")
    record, arrays = execute(other, context)
    assert is_done(record), record["reason"]
    np.testing.assert_allclose(arrays["probabilities"].sum(axis=1), 1)


def test_trainings_without_a_solution_are_told_of(job, context):
    rough = replace(job, machine="mmrm", params=(("C", 1e-3),), grid=(), calibrate="sigmoid")
    record, _ = execute(rough, context)
    assert record["status"] == Status.UNBOUNDED
    assert "are not optimal" in record["warnings"][-1]


def test_classes_that_are_too_small_are_refused(job, context):
    few = replace(job, grid=(), select=replace(job.select, folds=999), calibrate="sigmoid")
    record, _ = execute(few, context)
    assert record["wrong_input"]
    assert "fewer than 999 folds of 'calibrate'" in record["reason"]


@pytest.mark.parametrize("folds", [3, None])
def test_folds_are_those_of_the_selection_or_five(job, folds):
    select = replace(job.select, folds=folds, split=None if folds else 0.2)
    assert replace(job, select=select, calibrate="sigmoid").calibration_folds == (folds or 5)
    assert replace(job, select=select).calibration_folds is None


def test_a_class_of_one_group_leaves_probabilities_out_and_keeps_the_predictions(
    job, context, monkeypatch
):
    data = prepare(job, context.data, None)
    labels = np.unique(data.y_train, return_inverse=True)[1]
    groups = np.where(labels == 0, 0, 1 + np.arange(len(labels)) % 4)
    grouped = replace(data, groups_pool=groups)
    monkeypatch.setattr("mmbench.jobs.prepare.prepare", lambda *_: grouped)
    plain, _ = execute(replace(job, grid=()), context)
    record, arrays = execute(replace(job, grid=(), calibrate="sigmoid"), context)
    assert is_done(record), record["reason"]
    assert record["metrics"] == plain["metrics"]
    assert "probabilities" not in arrays
    assert "no probabilities, as the training part of a fold has no row" in record["warnings"][-1]


def test_scores_of_another_package_stay_and_uncalibrated_probabilities_go(job, context):
    forest = replace(job, machine="sklearn.naive_bayes:GaussianNB", params=(), grid=())
    _, plain = execute(forest, context)
    _, calibrated = execute(replace(forest, calibrate="isotonic"), context)
    assert "scores" not in plain
    np.testing.assert_array_equal(calibrated["scores"], plain["probabilities"])
    assert (calibrated["probabilities"] != plain["probabilities"]).any()


def test_without_calibration_there_are_no_probabilities(job, context, monkeypatch):
    lacking = (None, ["calibration: no probabilities"])
    monkeypatch.setattr("mmbench.jobs.evaluate.calibrated_probabilities", lambda *_: lacking)
    other = replace(job, machine="sklearn.naive_bayes:GaussianNB", params=(), grid=())
    record, arrays = execute(replace(other, calibrate="isotonic"), context)
    assert "probabilities" not in arrays and "scores" in arrays
    assert "calibration: no probabilities" in record["warnings"]


def test_a_calibration_beyond_the_time_limit_leaves_no_result(job, context, monkeypatch):
    monkeypatch.setattr("mmbench.jobs.evaluate.time_is_up", lambda: True)
    record, arrays = execute(replace(job, grid=(), calibrate="sigmoid"), context)
    assert record["status"] == Status.TIME_LIMIT and not arrays
    assert record["reached"]["stage"] == "calibration"
    assert record["reached"]["planned"] == 3 + 1  # the folds, and all rows
