"""Searches over axes whose points cannot share kernel values, warm starts or numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mmbench import FSVM, KLDA, LSSVM, M4, MAMC, MMRM, RMM, SVM
from mmbench.selection import SelectRef, select, views


def overlapping(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + y[:, None], y


def scores_of(machine, X, y, grid, n_train=None, **how):
    found = select(machine, X, y, grid, SelectRef(**how), n_train=n_train)
    return [point["score"] for point in found.scores]


def alone(machine, X, y, points, **options):
    """Scores of the points, each in a search of its own."""
    return [scores_of(machine, X, y, {k: [v] for k, v in p.items()}, **options)[0] for p in points]


def test_class_weights_in_a_grid_of_the_rmm_have_their_own_svm():
    X, y = overlapping(200)
    keep = (y == 0) | (np.arange(200) % 10 == 1)
    X, y = X[keep], y[keep]
    machine, metric = RMM(kernel="linear", B_fraction=1.0), "balanced_accuracy"
    values = [None, "balanced"]
    found = scores_of(machine, X, y, {"class_weight": values}, metric=metric)
    points = [{"class_weight": value} for value in values]
    np.testing.assert_allclose(found, alone(machine, X, y, points, metric=metric), atol=1e-9)
    assert len(set(found)) > 1


@pytest.mark.parametrize("code", [99_999.0, 999_999.0, 1e12])
@pytest.mark.parametrize("make", [SVM, RMM])
def test_a_search_on_columns_with_huge_codes_has_the_scores_of_single_fits(make, code):
    X, y = overlapping(400)
    X[::33, 1] = code
    machine, grid = make(kernel="rbf", tol=1e-5), {"gamma": [0.01, 0.1, 1.0]}
    found = scores_of(machine, X, y, grid, folds=None, n_train=200)
    fits = [machine.with_params({"gamma": gamma}).fit(X[:200], y[:200]) for gamma in grid["gamma"]]
    np.testing.assert_allclose(found, [fit.score(X[200:], y[200:]) for fit in fits], atol=0.006)
    assert min(scores_of(machine, X, y, grid)) > 0.7


def test_kernels_in_float64_are_stored_per_pair_if_that_of_all_rows_is_too_large(monkeypatch):
    X, y = load_iris(return_X_y=True)
    X[0, 0] = 1e6
    grid, stored, problem = {"gamma": [0.1]}, [], views.KernelView.problem

    def noted(view, *rows):
        stored.append(view._gram is not None)
        return problem(view, *rows)

    monkeypatch.setattr(views.KernelView, "problem", noted)
    with monkeypatch.context() as patch:
        patch.setattr(views, "PAIR_BYTES", 0)
        together = scores_of(SVM(), X, y, grid)
    monkeypatch.setattr(views, "SHARED_BYTES", 5 * len(y) ** 2)  # float32 would fit
    assert scores_of(SVM(), X, y, grid) == together and all(stored)


@pytest.mark.parametrize("kernels", [["poly", "rbf"], ["rbf", "poly"], ["linear", "rbf", "poly"]])
@pytest.mark.parametrize("machine", [LSSVM(C=10), KLDA(), MAMC(), SVM()], ids=repr)
def test_kernels_in_a_grid_do_not_share_their_base_matrix(machine, kernels):
    X, y = overlapping()
    machine = machine.with_params({"gamma": 0.5, "degree": 2})
    found = scores_of(machine, X, y, {"kernel": kernels})
    expected = alone(machine, X, y, [{"kernel": kernel} for kernel in kernels])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_tie_between_a_word_and_a_number_is_resolved():
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    found = select(SVM(), X, y, {"gamma": ["scale", 0.1]})
    assert found.scores[0]["score"] == found.scores[1]["score"]
    assert found.params[0]["gamma"] == 0.1


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (M4(), "C"),
        (MMRM(kernel="linear"), "C"),
        (RMM(form="penalty"), "D"),
        (FSVM(), "n_components"),
    ],
    ids=repr,
)
def test_a_tie_between_none_and_a_number_is_resolved(machine, name):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    found = select(machine, X, y, {name: [None, 2]})
    assert found.scores[0]["score"] == found.scores[1]["score"]
    assert found.params[0][name] == 2
