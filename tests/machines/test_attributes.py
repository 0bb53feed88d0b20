"""Fitted attributes and parameters that scikit-learn's SVC has, for all machines."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_wine, make_blobs
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mmbench.machines import MACHINES, SVM, machine_class


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X)[::3, :4], np.array(["a", "b", "c"])[y[::3]]


@pytest.mark.parametrize("name", MACHINES)
def test_coefficients_of_a_linear_machine_give_its_weights(name, wine):
    X, y = wine
    machine = machine_class(name)(kernel="linear").fit(X, y)
    assert machine.n_iter_.tolist() == [fit.iterations for fit in machine.fits_]
    assert hasattr(machine, "dual_coef_") == (name in ("svm", "rmm", "mamc"))
    if not hasattr(machine, "dual_coef_"):
        assert not hasattr(machine, "support_") and not hasattr(machine, "n_support_")
        return
    w = machine.dual_coef_ @ X[machine.support_]
    np.testing.assert_allclose(w, machine.coef_, rtol=1e-6, atol=1e-6 * np.abs(w).max())
    counts = [int((y[machine.support_] == label).sum()) for label in machine.classes_]
    assert machine.n_support_.tolist() == counts


def test_linear_machines_far_from_the_origin_have_the_same_coefficients(wine):
    X, y = wine
    near, far = (SVM(kernel="linear").fit(rows, y) for rows in (X, X + 1e5))
    np.testing.assert_array_equal(near.support_, far.support_)
    np.testing.assert_allclose(near.dual_coef_, far.dual_coef_, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_support_vectors_are_those_of_svc(kernel, wine):
    X, y = wine
    weights = np.where(np.arange(len(y)) % 5, 1.0, 0.0)  # rows without weight shift the indices
    ours = SVM(kernel=kernel, tol=1e-8).fit(X, y, weights)
    theirs = SVC(kernel=kernel, tol=1e-8).fit(X, y, weights)
    counted = np.flatnonzero(weights)  # libsvm counts these rows alone
    np.testing.assert_array_equal(ours.support_, np.sort(counted[theirs.support_]))
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)


def test_a_refit_leaves_no_attributes_behind(wine):
    X, y = wine
    machine = machine_class("lssvm")(kernel="rbf").fit(X, y)
    assert hasattr(machine, "support_vectors_") and not hasattr(machine, "coef_")
    machine.set_params(kernel="linear").fit(X, y)
    assert hasattr(machine, "coef_") and not hasattr(machine, "support_vectors_")


def test_coefficients_are_a_copy_that_cannot_be_changed(wine):
    machine = SVM().fit(*wine)
    with pytest.raises(ValueError, match="read-only"):
        machine.dual_coef_[0, 0] = 1.0


@pytest.mark.parametrize("name", MACHINES)
def test_pairwise_decisions_are_the_decision_function_on_request(name, wine):
    X, y = wine
    machine = machine_class(name)(kernel="linear", decision_function_shape="ovo").fit(X, y)
    decisions = machine.decision_function(X)
    np.testing.assert_array_equal(decisions, machine.pairwise_decision_function(X))
    np.testing.assert_array_equal(
        machine.set_params(decision_function_shape="ovr").predict(X),
        machine.set_params(decision_function_shape="ovo").predict(X),
    )


def test_ties_are_broken_as_by_svc():
    """Classes that overlap, so that some points of the plane have one vote for each class."""
    X, y = make_blobs(random_state=0, n_samples=60, n_features=2, cluster_std=4.0)
    points = np.random.default_rng(0).uniform(X.min(0), X.max(0), size=(2000, 2))
    ours = SVM(gamma=0.3, break_ties=True, tol=1e-10).fit(X, y)
    theirs = SVC(gamma=0.3, break_ties=True, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(points), theirs.decision_function(points), atol=1e-7
    )
    np.testing.assert_array_equal(ours.predict(points), theirs.predict(points))
    without = ours.set_params(break_ties=False).predict(points)
    assert (without != theirs.predict(points)).any()
    two = SVM(break_ties=True).fit(X[y < 2], y[y < 2])
    np.testing.assert_array_equal(two.predict(points), (two.decision_function(points) >= 0))


def test_sample_weights_are_routed(wine):
    X, y = wine
    weights = np.where(y == "a", 1.0, 100.0)
    with sklearn.config_context(enable_metadata_routing=True):
        machine = SVM().set_fit_request(sample_weight=True)
        machine.set_score_request(sample_weight=False)
        routed = cross_val_score(machine, X, y, params={"sample_weight": weights}, cv=3)
        plain = cross_val_score(SVM(), X, y, cv=3)
    assert not np.array_equal(routed, plain)


def test_feature_names_pass_through_a_pipeline(wine):
    X, y = wine
    pipe = make_pipeline(StandardScaler(), SVM()).set_output(transform="pandas").fit(X, y)
    assert list(pipe[-1].feature_names_in_) == list(pipe[0].get_feature_names_out())
