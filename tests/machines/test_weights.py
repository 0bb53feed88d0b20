"""Weights of rows and classes: a row of weight 2 is a row twice."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from mmbench.machines import LDM, MMRM, MRSVM, RMM, SVM, RSVMMuPlus, RSVMPlus, SigmaSVM
from mmbench.selection import SelectRef, select
from mmbench.selection.folds import inner_splits


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(150, 2))
    return X[:, :2] + 0.3 * noise, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def repeats(iris):
    """How often each row of two overlapping classes is there; some are not."""
    X, y = iris[0][50:], iris[1][50:]
    return X, y, np.random.default_rng(1).integers(0, 4, len(y))


#: One of every kind of problem and route.
MACHINES = [
    SVM(tol=1e-7),
    SVM(tol=1e-7, solver="reference"),
    RMM(tol=1e-7),
    RMM(tol=1e-7, form="penalty", D=2.0),
    RMM(tol=1e-7, form="relaxed", D=2.0, nu=5.0),
    RMM(tol=1e-7, B=0.8, solver="reference"),
    RMM(tol=1e-7, form="relaxed", D=2.0, nu=5.0, solver="reference"),
    LDM(tol=1e-7, lambda_1=0.5, lambda_2=0.5),
    SigmaSVM(tol=1e-7, D=0.7),
    SigmaSVM(tol=1e-7, solver="reference"),
    MMRM(),
    MMRM(gamma=10.0, C_factor=2.0, solver="interior"),
    MMRM(gamma=100.0, C=10.0, bias="ratio"),
    MMRM(class_weight="balanced", solver="reference"),
    RSVMPlus(),
    RSVMPlus(solver="clarabel"),
    RSVMMuPlus(),
    MRSVM(),
]


@pytest.mark.parametrize(
    ("machine", "kernel"),
    [
        *product(MACHINES, ("rbf", "linear")),
        (SVM(tol=1e-7, kernel_scaling="trace", degree=2), "poly"),
        (SigmaSVM(tol=1e-7, D=1.0, degree=1), "poly"),
    ],
    ids=str,
)
def test_a_row_of_weight_2_is_a_row_twice(repeats, machine, kernel):
    X, y, weights = repeats
    rows = np.repeat(np.arange(len(y)), weights)
    machine = clone(machine).set_params(kernel=kernel)
    (one,) = machine.fit(X, y, sample_weight=weights).fits_
    decisions = machine.decision_function(X)
    (other,) = machine.fit(X[rows], y[rows]).fits_
    assert one.status == other.status == "optimal"
    assert one.objective == pytest.approx(other.objective, rel=1e-6)
    assert one.bound == pytest.approx(other.bound, rel=1e-6)
    np.testing.assert_allclose(decisions, machine.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("machine", [m for m in MACHINES if not isinstance(m, MMRM)], ids=str)
def test_a_class_weight_is_the_weight_of_the_rows_of_its_class(repeats, machine, kernel):
    """Row weights also change the MMRM's default C, which class weights leave as it is."""
    X, y, weights = repeats
    own = np.where(y == "virginica", 1.5, 1.0) * weights
    machine = clone(machine).set_params(kernel=kernel, class_weight={"virginica": 1.5})
    (by_class,) = machine.fit(X, y, sample_weight=weights).fits_
    decisions = machine.decision_function(X)
    machine.set_params(class_weight=None, gamma=machine.kernels_[0].gamma)
    (plain,) = machine.fit(X, y, sample_weight=weights).fits_
    (by_row,) = machine.fit(X, y, sample_weight=own).fits_
    assert by_class.objective == pytest.approx(by_row.objective, rel=1e-6)
    assert by_class.objective > 1.01 * plain.objective
    np.testing.assert_allclose(decisions, machine.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    ("machine", "solver"),
    [
        (SVM(), "smo"),
        (RMM(B_fraction=0.3), "smo"),
        (SigmaSVM(D=0.9), "smo"),
        (MMRM(C_factor=20.0), "reference"),
    ],
    ids=str,
)
def test_many_weighted_rows_of_few_features_are_solved_in_the_features(machine, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = X[:, 0] + rng.normal(size=900) > 0
    weights = 10.0 ** rng.uniform(-3, 1, 900)
    machine = clone(machine).set_params(kernel="linear")
    (found,) = machine.fit(X, y, sample_weight=weights).fits_
    assert found.status == "optimal"
    assert found.gap < 1e-8  # pairwise steps end far above
    (other,) = machine.set_params(solver=solver).fit(X, y, sample_weight=weights).fits_
    assert found.objective == pytest.approx(other.objective, rel=1e-3)
    assert found.objective >= other.bound * (1 - 1e-9)


@pytest.mark.parametrize(
    "class_weight", [{"setosa": 3.0, "virginica": 0.2}, {"versicolor": 5.0}, None]
)
def test_weights_of_classes_are_those_of_scikit_learn(iris, class_weight):
    X, y = iris
    settings = {"C": 2.0, "gamma": 0.5, "class_weight": class_weight}
    ours = SVM(**settings, tol=1e-7).fit(X, y)
    theirs = SVC(**settings, tol=1e-7, decision_function_shape="ovo").fit(X, y)
    # of a pair, theirs speaks for the first class
    np.testing.assert_allclose(
        -ours.pairwise_decision_function(X), theirs.decision_function(X), atol=1e-4
    )


def test_balanced_weights_are_those_of_scikit_learn_for_two_classes(iris):
    X, y = iris[0][30:100], iris[1][30:100]
    ours = SVM(gamma=0.5, class_weight="balanced", tol=1e-7).fit(X, y)
    theirs = SVC(gamma=0.5, class_weight="balanced", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


def test_weights_of_rows_and_classes_multiply(iris):
    X, y = iris
    double = SVM(gamma=0.5, class_weight={"setosa": 2.0}, tol=1e-7).fit(
        X, y, sample_weight=np.full(150, 0.5)
    )
    once = SVM(gamma=0.5, tol=1e-7).fit(X, y, sample_weight=np.where(y == "setosa", 1.0, 0.5))
    np.testing.assert_allclose(double.decision_function(X), once.decision_function(X), atol=1e-6)


def test_a_search_with_balanced_classes_is_a_plain_one(iris):
    X, y = iris[0][20:100], iris[1][20:100]
    found = select(
        SVM(class_weight="balanced", gamma=0.5), X, y, {"C": [0.1, 1.0]}, SelectRef(folds=4)
    )
    labels = np.unique(y, return_inverse=True)[1]
    cv = inner_splits(labels, 4, None, 1, 0)
    machines = [SVM(C=C, class_weight="balanced", gamma=0.5) for C in (0.1, 1.0)]
    expected = [cross_val_score(machine, X, y, cv=cv).mean() for machine in machines]
    assert [row["score"] for row in found.scores] == pytest.approx(expected, abs=1e-9)


def test_what_cannot_be_weighted_is_said(iris):
    X, y = iris
    with pytest.raises(ValueError, match="class_weight must map to numbers > 0"):
        SVM(class_weight={"setosa": -1}).fit(X, y)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        SVM().fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="greater than one"):
        SVM().fit(X, y, sample_weight=y == "setosa")


def test_a_grid_search_has_the_weights_of_labels(iris):
    """Equal weights of both classes multiply C."""
    X, y = (values[50:] for values in iris)
    weights = dict.fromkeys(np.unique(y), 4.0)
    weighted = select(SVM(class_weight=weights), X, y, {"C": [0.01, 0.1]}, SelectRef(folds=3))
    plain = select(SVM(), X, y, {"C": [0.04, 0.4]}, SelectRef(folds=3))
    one = select(SVM(class_weight={y[0]: 50.0}), X, y, {"C": [0.01, 0.1]}, SelectRef(folds=3))
    found = [[point["score"] for point in own.scores] for own in (weighted, plain, one)]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("labels", [["a", "b"], ["1", "2"], [1, 2]])
def test_a_weight_of_a_label_that_does_not_occur_is_refused_as_scikit_learn_does(labels):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.repeat(labels, 2)
    with pytest.raises(ValueError, match=rf"{labels[1]}.*not in class_weight.*\['?c'?\], which"):
        SVM(class_weight={labels[0]: 2.0, "c": 3.0}).fit(X, y)
    SVM(class_weight={labels[0]: 2.0}).fit(X, y)
    SVM(class_weight={labels[0]: 2.0, labels[1]: 1.0, "c": 3.0}).fit(X, y)


def test_scikit_learn_s_checks_of_weights_are_among_its_checks():
    """Which `test_estimators` runs."""
    names = {check.func.__name__ for _, check in estimator_checks_generator(SVM())}
    assert "check_sample_weight_equivalence_on_dense_data" in names
    assert "check_class_weight_classifiers" in names


def test_probabilities_come_by_scikit_learn_s_calibration(iris):
    X, y = iris
    machine = CalibratedClassifierCV(SVM(C=2.0), ensemble=False).fit(X[::2], y[::2])
    probabilities = machine.predict_proba(X[1::2])
    assert probabilities.shape == (len(X[1::2]), 3)
    assert machine.score(X[1::2], y[1::2]) > 0.6
