"""Coordinate descent on sparse or wide rows finds the machine of the pairwise steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mmbench.kernels import Kernel
from mmbench.machines import RMM, SVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.selection import SelectRef, select

ROUTE = "coordinate descent"


def documents(n=400, d=600, share=0.4, empty=0):
    """Return rows of unit length with about 20 of d words, rare words most often, and labels."""
    rng = np.random.default_rng(0)
    words = 1 / (np.arange(d) + 5.0)
    cells = np.repeat(np.arange(n), 20), rng.choice(d, size=20 * n, p=words / words.sum())
    X = sparse.csr_array((np.ones(20 * n), cells), shape=(n, d))
    X = sparse.csr_array(X / np.sqrt(X.multiply(X).sum(axis=1))[:, None])
    scores = X @ rng.normal(size=d)
    scores = scores + 0.3 * scores.std() * rng.normal(size=n)
    if empty:
        X = sparse.vstack([X[empty:], sparse.csr_array((empty, d))], format="csr")
    return X, np.where(scores > np.quantile(scores, 1 - share), 1, -1)


def both(machine, X, y, **rows):
    """Return the fits of the default route and of pairwise steps."""
    default = machine.fit(X, y, **rows).fits_[0]
    steps = type(machine)(**{**machine.get_params(), "solver": "smo"})
    return default, steps.fit(X, y, **rows).fits_[0]


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.4, 0.05])
def test_objective_is_that_of_pairwise_steps(C, share):
    X, y = documents(share=share)
    found, expected = both(SVM(kernel="linear", C=C, tol=1e-7), X, y)
    assert found.route == ROUTE
    assert found.status == "optimal"
    assert found.max_violation < 1e-12
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("machine", "n", "route", "most"),
    [
        (SVM(kernel="linear", tol=1e-7), 400, "active set", 1000),
        (SVM(kernel="linear", tol=1e-7), 400, ROUTE, 70),
        (RMM(kernel="linear", B=1.5, tol=1e-7), 400, ROUTE, 70),
        (SVM(kernel="linear", C=0.01, tol=1e-7), 1000, ROUTE, 1000),
        (SVM(kernel="linear", C=1.0, tol=1e-7), 1000, ROUTE, 1000),
        (SVM(kernel="linear", C=2.0, tol=1e-7), 1000, "active set", 1000),
    ],
)
def test_dense_rows_of_many_features_or_with_a_small_penalty(monkeypatch, machine, n, route, most):
    monkeypatch.setattr("mmbench.machines.svm.STORED_ROWS", 300)
    monkeypatch.setattr("mmbench.machines.svm.MANY_FEATURES", most)
    X, y = documents(n, d=80)
    found, expected = both(machine, X.toarray(), y)
    assert (found.route, found.status) == (route, "optimal")
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("B", [1.5, 3.0])
def test_rmm_with_bounded_decisions(B):
    X, y = documents()
    machine = RMM(kernel="linear", C=10.0, B=B, tol=1e-7)
    found, expected = both(machine, X, y)
    assert (found.route, found.status) == (ROUTE, "optimal")
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    assert np.abs(machine.decision_function(X)).max() <= B + 1e-12


def test_weights_classes_and_rows_without_entries():
    X, y = documents(empty=7)
    machine = SVM(kernel="linear", class_weight="balanced", tol=1e-7)
    weights = np.random.default_rng(1).uniform(size=len(y))
    found, expected = both(machine, X, y, sample_weight=weights)
    assert (found.route, found.status) == (ROUTE, "optimal")
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)


def test_sparse_and_dense_rows_have_equal_steps():
    X, y = documents(n=3200, d=900)
    fits = [SVM(kernel="linear", C=0.1).fit(rows, y).fits_[0] for rows in (X, X.toarray())]
    assert [fit.route for fit in fits] == [ROUTE, ROUTE]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)


@pytest.mark.parametrize(("d", "route"), [(100, "active set"), (150, "SMO")])
def test_long_rows_are_left_to_other_routes(d, route):
    rng = np.random.default_rng(0)
    X = 10 * rng.normal(size=(400, d))
    y = np.sign(X @ rng.normal(size=d) + 100 * rng.normal(size=400))
    found, expected = both(SVM(kernel="linear", C=100.0, tol=1e-6), sparse.csr_array(X), y)
    assert found.status == "optimal"
    assert found.route == route
    assert found.objective == pytest.approx(expected.objective, rel=1e-5)


def test_a_training_from_its_own_solution_takes_few_passes():
    X, y = documents()
    problem = BinaryProblem(X, y.astype(float), Kernel("linear"))
    machine = SVM(kernel="linear", tol=1e-6)
    first = machine.train(problem)
    again = machine.train(problem, first)
    assert (first.fit.route, again.fit.route) == (ROUTE, ROUTE)
    assert again.fit.iterations < first.fit.iterations / 2
    assert again.fit.objective == pytest.approx(first.fit.objective, rel=1e-6)


def test_a_search_has_the_scores_of_pairwise_steps():
    X, y = documents()
    found, expected = (
        select(
            SVM(kernel="linear", solver=solver, tol=1e-6),
            X,
            y,
            {"C": [0.3, 1.0, 3.0]},
            SelectRef(folds=3),
        )
        for solver in ("auto", "smo")
    )
    assert found.scores == expected.scores
