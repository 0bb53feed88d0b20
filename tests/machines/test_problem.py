"""One rule says what is optimal, and nobody is silent about the rest."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.machines import SVM
from mmbench.machines.base.problem import Fit, judged

FIT = Fit(Status.OPTIMAL, 1e-3, 1e-3, 0.0, 5, 0.0, 3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Status.OPTIMAL),
        ({"bound": 0.99e-3}, Status.INACCURATE),  # one per cent, however small the objective is
        ({"bound": 1.0001e-3}, Status.INACCURATE),  # a bound above the objective proves nothing
        ({"bound": 1.01e-3}, Status.FAILED),  # rounding does not explain this one
        ({"bound": 1.01e-3, "max_violation": 1e-3}, Status.INACCURATE),  # its point is not feasible
        ({"bound": 1.0000000001e-3}, Status.OPTIMAL),
        ({"bound": math.inf}, Status.FAILED),
        ({"bound": 0.0, "objective": -math.inf}, Status.FAILED),
        ({"bound": -math.inf}, Status.INACCURATE),
        ({"objective": math.nan}, Status.FAILED),
        ({"max_violation": 1e-3}, Status.INACCURATE),
        ({"status": Status.INACCURATE}, Status.OPTIMAL),
        ({"status": Status.ITERATION_LIMIT}, Status.OPTIMAL),
        ({"status": Status.ITERATION_LIMIT, "bound": 0.0}, Status.ITERATION_LIMIT),
        ({"status": Status.FAILED}, Status.FAILED),
        ({"status": Status.TRIVIAL}, Status.TRIVIAL),
        ({"objective": 0.0, "bound": 0.0}, Status.OPTIMAL),
    ],
)
def test_the_status_follows_from_gap_and_violation(change, expected):
    fit = judged(replace(FIT, **change), 1e-6, 1e-6)
    assert fit.status is expected
    assert not fit.bound > fit.objective


class Stopped(SVM):
    def train(self, problem, warm=None):
        model = super().train(problem, warm)
        return replace(model, fit=replace(model.fit, status=Status.ITERATION_LIMIT, bound=0.0))


def test_a_fit_that_did_not_reach_its_tolerance_warns():
    X, y = np.array([[0.0], [1.0]]), ["no", "yes"]
    text = "Stopped on classes no/yes ended iteration_limit: relative gap 1.0e.00"
    with pytest.warns(ConvergenceWarning, match=text):
        Stopped().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVM().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="; 275 more pairs of classes are not") as warned:
        Stopped().fit(np.arange(48.0)[:, None], np.arange(48) % 24)
    assert len(warned) == 1


def test_a_text_column_of_a_data_frame_is_named():
    X = pd.DataFrame({"a": [0.0, 1.0], "b": pd.Categorical(["u", "v"])})
    with pytest.raises(ValueError, match=r"^column 'b': could not convert string to float: 'u'; "):
        SVM().fit(X, [0, 1])


def test_one_class_is_refused_as_by_scikit_learn():
    with pytest.raises(ValueError, match="number of classes has to be greater than one; got 1"):
        SVM().fit(np.eye(3), [1, 1, 1])


def test_labels_of_two_kinds_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="y mixes labels of kinds int and str; use one kind"):
        SVM().fit(np.eye(3), np.array([1, "one", 2], dtype=object))
