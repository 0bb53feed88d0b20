"""Metrics are scikit-learn's, and a choice by one of them is that of a plain grid search."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as theirs
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler, label_binarize, minmax_scale

from mmbench.errors import UserError
from mmbench.machines import SVM, make_machine
from mmbench.machines.base.voting import summed_decisions, votes
from mmbench.selection import SelectRef, select
from mmbench.selection.folds import inner_splits
from mmbench.selection.metrics import METRICS, SELECTABLE, check_selectable


def data(n_classes):
    load = load_wine if n_classes == 3 else load_breast_cancer
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::2, :4], np.array(["a", "b", "c"])[y[::2]]
    return X + np.random.default_rng(0).normal(size=X.shape), y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_are_those_of_scikit_learn(n_classes):
    X, y = data(n_classes)
    model = LogisticRegression().fit(X[::2], y[::2])
    truth, X = y[1::2], X[1::2]
    P, predicted, classes = model.predict_proba(X), model.predict(X), model.classes_
    several = n_classes > 2
    rank = {"y_score": P if several else P[:, 1], "multi_class": "ovr"}
    own = label_binarize(truth, classes=classes)
    expected = {
        "accuracy": theirs.accuracy_score(truth, predicted),
        "balanced_accuracy": theirs.balanced_accuracy_score(truth, predicted),
        "f1_macro": theirs.f1_score(truth, predicted, average="macro"),
        "mcc": theirs.matthews_corrcoef(truth, predicted),
        "auc": theirs.roc_auc_score(truth, **rank),
        "average_precision": theirs.average_precision_score(own, P if several else P[:, 1]),
        "log_loss": theirs.log_loss(truth, P),
        "brier": theirs.brier_score_loss(truth, P)
        if several
        else np.mean((own[:, 0] - P[:, 1]) ** 2),
    }
    assert expected.keys() == METRICS.keys()
    for name, metric in METRICS.items():
        given = predicted if metric.source == "predictions" else P
        assert metric.compute(truth, given, classes) == pytest.approx(expected[name]), name


@pytest.mark.parametrize("n_classes", [2, 3])
def test_class_scores_of_a_machine_are_its_decision_function(n_classes):
    X, y = data(n_classes)
    machine = SVM().fit(X[::2], y[::2])
    decisions = machine.pairwise_decision_function(X)
    counts, confidence = votes(decisions, n_classes), summed_decisions(decisions, n_classes)
    given = machine.decision_function(X)
    scores = given if n_classes > 2 else np.column_stack([-given, given])
    by_votes = METRICS["auc"].of_votes(y, counts, confidence, machine.classes_)
    assert by_votes == METRICS["auc"].compute(y, scores, machine.classes_)
    right = METRICS["accuracy"].of_votes(y, counts, confidence, machine.classes_)
    assert right == machine.score(X, y)


def test_ranks_in_a_search_use_all_digits_of_the_decisions():
    """A wide kernel and the closed form give decisions that differ in late digits only."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = minmax_scale(X[:200]), y[:200]
    grid = {"gamma": [1.0, 2.0, 3.0]}
    found = select(make_machine("mamc"), X, y, grid, SelectRef(folds=3, metric="auc"))
    splits = inner_splits(y, 3, None, 1, 0)
    plain = GridSearchCV(make_machine("mamc"), grid, cv=splits, scoring="roc_auc").fit(X, y)
    scores = [row["score"] for row in found.scores]
    np.testing.assert_allclose(scores, plain.cv_results_["mean_test_score"], atol=1e-9)


def test_a_metric_without_a_value_is_not_a_number():
    both, one = np.array(["a", "b"]), np.array(["b", "b"])
    values = np.array([[0.4, 0.6], [0.1, 0.9]])
    assert np.isnan(METRICS["auc"].compute(one, values, both))
    assert np.isnan(METRICS["log_loss"].compute(np.array(["a", "c"]), values, both))


def test_log_loss_does_not_depend_on_how_labels_are_sorted():
    """The classes 0 to 10 of a file are strings, of which "10" comes before "2"."""
    numbers = np.arange(11)
    rows = np.random.default_rng(0).dirichlet(np.ones(11), size=11)
    expected = -np.log(rows.diagonal()).mean()
    for classes in (numbers, numbers.astype(str)):
        assert METRICS["log_loss"].compute(classes, rows, classes) == pytest.approx(expected)


SCORERS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced_accuracy",
    "f1_macro": "f1_macro",
    "mcc": "matthews_corrcoef",
    "auc": "roc_auc",
    "average_precision": "average_precision",
}


@pytest.mark.parametrize("name", SELECTABLE)
@pytest.mark.parametrize("scope", ["global", "pair"])
def test_a_choice_by_a_metric_is_that_of_a_plain_grid_search(name, scope):
    X, y = data(2)
    y = (y == "b").astype(int)  # scikit-learn's scorers take 1 for the positive class
    grid = {"C": [0.1, 1.0, 100.0], "gamma": [0.02, 0.5]}
    how, space = SelectRef(folds=3, metric=name, scope=scope), SVM.search_space.extended(tol=None)
    found = select(SVM(), X, y, grid, how, seed=1, space=space)
    splits = inner_splits(y, 3, None, 1, 1)
    plain = GridSearchCV(SVM(), grid, cv=splits, scoring=SCORERS[name]).fit(X, y)
    scores = [row["score"] for row in found.scores]
    np.testing.assert_allclose(scores, plain.cv_results_["mean_test_score"], atol=1e-4)
    assert found.best_score == pytest.approx(plain.best_score_, abs=1e-4)


def test_a_search_has_the_tolerance_of_the_search_space_unless_one_is_given(monkeypatch):
    X, y = data(2)
    monkeypatch.setattr(SVM, "search_space", SVM.search_space.extended(tol=1.0))

    def scores(machine, tol=1.0):
        space = SVM.search_space.extended(tol=tol)
        found = select(
            machine, X, y, {"C": [1.0, 100.0]}, SelectRef(folds=3, metric="auc"), space=space
        )
        return [row["score"] for row in found.scores]

    loose, fine = scores(SVM(), tol=1.0), scores(SVM(), tol=1e-8)
    assert loose != fine
    assert scores(SVM()) == loose
    assert scores(SVM(tol=1e-8)) == scores(SVM(tol=1e-8), tol=None) == fine


@pytest.mark.parametrize("machine", ["svm", "fsvm", "sklearn.linear_model:LogisticRegression"])
def test_a_choice_of_many_classes_ranks_as_the_metric_does(machine):
    X, y = data(3)
    y = np.searchsorted(np.unique(y), y)
    made = make_machine(machine, **({"kernel": "linear"} if ":" not in machine else {}))

    def auc(model, X, y):
        model = getattr(model, "estimator", model)
        ranked = getattr(model, "predict_proba", model.decision_function)
        return METRICS["auc"].compute(y, ranked(X), model.classes_)

    grid = {"C": [0.1, 10.0]}
    found = select(
        made,
        X,
        y,
        grid,
        SelectRef(folds=3, metric="auc"),
        space=made.search_space.extended(tol=None),
    )
    expected = []
    for C in grid["C"]:
        machine = made.set_params(C=C)
        parts = inner_splits(y, 3, None, 1, 0)
        expected.append(np.mean([auc(machine.fit(X[a], y[a]), X[b], y[b]) for a, b in parts]))
    np.testing.assert_allclose([row["score"] for row in found.scores], expected, atol=1e-4)


def test_a_metric_of_probabilities_or_of_nothing_is_refused():
    with pytest.raises(UserError, match="needs probabilities"):
        check_selectable("brier")
    with pytest.raises(UserError, match="did you mean 'auc'"):
        check_selectable("acu")


def test_a_classifier_without_scores_is_refused_by_name():
    X, y = data(2)
    machine = make_machine("sklearn.svm:SVC", decision_function_shape="ovo")
    with pytest.raises(ValueError, match="AUC needs class scores, which SVC lacks"):
        select(machine, X, y, {"C": [1, 2]}, SelectRef(folds=3, metric="auc"))


def test_rows_held_out_of_one_class_have_no_area():
    X, y = data(2)
    y, n_train = np.append(y[:-20], ["a"] * 20), len(y) - 20
    with pytest.raises(ValueError, match="auc is undefined"):
        select(SVM(), X, y, {"C": [1, 2]}, SelectRef(folds=None, metric="auc"), n_train=n_train)


def test_constant_decisions_rank_no_better_than_chance():
    truth, classes = np.array([0, 1, 1, 0]), np.arange(2)
    for value in (0.0, 1.0, -1.0):
        scores = np.full((4, 2), value)
        assert METRICS["auc"].compute(truth, scores, classes) == 0.5
        assert METRICS["average_precision"].compute(truth, scores, classes) == 0.5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_a_class_that_training_lacked_has_the_whole_brier_loss(n_classes):
    """Its probability is 0, as is that of a true class which a sure classifier excludes."""
    brier, sure = METRICS["brier"].compute, np.eye(n_classes)[:1]
    assert brier(np.array([9]), sure, np.arange(n_classes)) == 2.0
    assert brier(np.array([1]), sure, np.arange(n_classes)) == (1.0 if n_classes == 2 else 2.0)


def test_the_brier_loss_is_the_same_if_training_lacks_a_class():
    truth = np.array(["a", "b", "c"])
    two = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    three = np.column_stack([two, np.zeros(3)])
    brier = METRICS["brier"].compute
    classes = np.array(["a", "b", "c"])
    assert brier(truth, two, classes[:2]) == brier(truth, three, classes) == pytest.approx(2 / 3)
