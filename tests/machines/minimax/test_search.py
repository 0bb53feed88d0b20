"""MPM and M4 as a search trains them, against their certified trainings."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from helpers.minimax_family import gaussians, minmax, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import StoredGram
from mmbench.machines import M4, MPM
from mmbench.machines.base.problem import PartProblem
from mmbench.machines.base.threshold import best_bias
from mmbench.machines.minimax import base
from mmbench.machines.minimax import base as search
from mmbench.machines.minimax.base import train_for_search
from mmbench.machines.minimax.coordinates import pivoted_cholesky
from mmbench.machines.minimax.spread import FactorMetric, SpreadFactor
from mmbench.selection.search import select

RBF = Kernel("rbf", 0.5)
TOL = 1e-3
GRID = {"C_factor": (0.9, 1.2, 3.0, 30.0, 1000.0), "ridge": (1e-4, 1e-2)}


def decisions(model, problem):
    return problem.gram @ model.coef + model.intercept


def points(grid):
    return [{"C_factor": c, "ridge": r} for r in grid["ridge"] for c in grid["C_factor"]]


# -- the parts ---------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([1e-8, 1e-4, 1e-2]))
@settings(deadline=None, max_examples=25)
def test_a_factor_leaves_no_more_than_it_is_told(seed, left):
    X = np.random.RandomState(seed).normal(size=(30, 2))
    gram = RBF(X, X)
    factor, pivots = pivoted_cholesky(gram.copy(), left)
    rest = gram - factor @ factor.T
    assert np.abs(rest).max() <= left * (1 + 1e-6)
    assert np.allclose(rest[pivots], 0.0, atol=1e-10)
    assert len(pivots) < 30 or left < 1e-4


@pytest.mark.parametrize("ridge", [0.1, 1e-7])  # factors of float32 and of float64 values
@pytest.mark.parametrize("theta", [0.2, 0.5])
def test_a_metric_is_that_of_both_covariances(theta, ridge):
    X, y = gaussians()
    rows = X - X.mean(axis=0)
    metric = FactorMetric(SpreadFactor.of(rows, y).first(3, (ridge, ridge)), 0.2)
    x, z = (np.cov(rows[side].T, ddof=0) + ridge * np.eye(3) for side in (y > 0, y < 0))
    for start in (None, rows[1]):
        w, decision, missing = metric.solve(rows[0], theta, 1e-6, start)
        assert np.allclose(w, np.linalg.solve(x / theta + z / (1 - theta), rows[0]), rtol=1e-6)
        assert np.allclose(decision, rows @ w)
        assert missing <= 1e-6 * np.sqrt(rows[0] @ w) * (1 + 1e-6)
    kernel = rows @ np.linalg.solve(x / 0.2 + z / 0.8, rows.T)
    assert np.allclose(metric.kernel(), kernel, rtol=1e-4, atol=1e-5)


# -- against trainings that are certified ------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 25, 1.5), (20, 60, 0.5), (30, 30, 4.0)])
def test_a_searched_objective_is_near_the_optimum(shape):
    n_x, n_y, shift = shape
    X, y = gaussians(n_x=n_x, n_y=n_y, shift=shift)
    data = problem(X, y, RBF)
    path = M4(kernel="rbf", tol=TOL).train_path(data, points(GRID))
    for point, model in zip(points(GRID), path, strict=True):
        exact = M4(kernel="rbf", **point).train(data).fit
        fit = model.fit
        assert exact.bound * (1 - 1e-4) <= fit.objective <= exact.objective * (1 + 2 * TOL)
        assert fit.bound <= exact.objective * (1 + 1e-4)
        assert fit.extra["C"] == pytest.approx(exact.extra["C"], rel=TOL)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_to_the_tolerance_of_a_training_ends_where_that_does(seed):
    rng = np.random.RandomState(seed)  # of a rare class, whose theta moves far with C
    X = np.vstack([rng.normal(size=(200, 3)) * [1, 2, 0.1], 0.3 * rng.normal(size=(20, 3)) + 0.5])
    data = problem(minmax(X), np.repeat([-1.0, 1.0], [200, 20]), Kernel("rbf", 2.0))
    grid = points({"C_factor": (1.5, 5.0, 100.0), "ridge": (1e-4, 1e-2)})
    for point, model in zip(grid, M4(kernel="rbf").train_path(data, grid), strict=True):
        exact = M4(kernel="rbf", **point).train(data)
        assert exact.fit.objective <= exact.fit.bound * (1 + 1e-6)
        assert model.fit.objective <= exact.fit.bound * (1 + 2e-6)
        assert value_of(model, data, point, exact.fit.extra["C"]) <= exact.fit.bound * (1 + 2e-6)


def value_of(model, data, point, C):
    """Return the objective of a model's w, at its best b."""
    f, y = data.gram @ model.coef, data.y
    own = point["ridge"] * np.trace(data.gram) / len(y) * (model.coef @ f)
    spreads = sum(np.sqrt(f[side].var() + own) for side in (y > 0, y < 0))
    return spreads + C * np.maximum(0, 1 - y * (f + best_bias(f, y))).sum()


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("cls", [M4, MPM])
def test_kernel_values_beyond_single_precision_are_searched_and_trained(cls, scale):
    X, y = gaussians()
    data, point = problem(scale * X, y, Kernel("poly", degree=3)), {"ridge": 1e-3}
    search, gram = cls(kernel="poly", tol=1e-6), cls(kernel="poly", solver="gram", **point)
    exact = cls(kernel="poly", **point).train(data).fit
    for fit in (search.train_path(data, [point])[0].fit, gram.train(data).fit):
        assert fit.objective == pytest.approx(exact.objective, rel=2e-6)


def test_penalties_of_a_ridge_share_a_kernel(monkeypatch):
    made = []

    def kernel(self, plain=FactorMetric.kernel):
        made.append(self.theta)
        return plain(self)

    monkeypatch.setattr(FactorMetric, "kernel", kernel)
    y = np.repeat([1.0, -1.0], 150)
    X = np.random.RandomState(0).normal(size=(300, 10)) + 0.5 * y[:, None]
    grid = points({"C_factor": (1.5, 2.0, 3.0, 5.0, 10.0, 30.0), "ridge": (1e-4, 1e-2)})
    M4(kernel="rbf", tol=1e-6).train_path(problem(X, y, Kernel("rbf", 0.2)), grid)
    assert len(made) <= 4  # of 12 points


def test_a_searched_model_is_the_one_of_its_objective():
    X, y = gaussians()
    data = problem(X, y, RBF)
    point = {"C_factor": 3.0, "ridge": 1e-3}
    model = M4(kernel="rbf", tol=TOL).train_path(data, [point])[0]
    f, extra = decisions(model, data), model.fit.extra
    own = point["ridge"] * np.trace(data.gram) / len(y) * (model.coef @ data.gram @ model.coef)
    sx, sy = (np.sqrt(f[side].var() + own) for side in (y > 0, y < 0))
    slack = np.maximum(0, 1 - y * (f - (sx - sy) / (sx + sy))).sum()
    assert sx + sy + extra["C"] * slack == pytest.approx(model.fit.objective, rel=TOL)
    assert extra["rho"] == pytest.approx(2 / (sx + sy), rel=TOL)


@pytest.mark.parametrize("ridge", [1e-8, 1e-4, 1e-2])
def test_a_searched_mpm_decides_like_the_certified_one(ridge):
    X, y = gaussians(n_x=80, n_y=40)
    data = problem(X, y, RBF)
    searched = MPM(kernel="rbf", tol=TOL).train_path(data, [{"ridge": ridge}])[0]
    exact = MPM(kernel="rbf", ridge=ridge).train(data)
    assert searched.fit.status is Status.OPTIMAL
    assert searched.fit.extra["kappa"] == pytest.approx(exact.fit.extra["kappa"], rel=TOL)
    f, g = (decisions(model, data) for model in (searched, exact))
    assert np.abs(f - g).max() <= 0.02 * np.abs(g).max()


def test_equal_means_are_left_to_the_certified_training():
    X = np.repeat(np.random.RandomState(0).normal(size=(10, 2)), 2, axis=0)
    data = problem(X, np.tile([1.0, -1.0], 10), RBF)
    machine = MPM(kernel="rbf", ridge=1e-3, tol=TOL)
    assert train_for_search([machine], data) is None
    assert machine.train_path(data, [{}])[0].fit.status is Status.INFEASIBLE


@pytest.mark.parametrize("machine", [M4, MPM])
def test_a_search_of_many_rows_makes_no_diagonal_coordinates(machine, monkeypatch):
    X, y = gaussians(n_x=1700, n_y=1500)
    data = problem(X, y, Kernel("rbf", 0.01))
    monkeypatch.setattr(base, "KernelCoordinates", None)  # cannot be made
    (model,) = machine(kernel="rbf", tol=TOL).train_path(data, [{"ridge": 1e-3}])
    exact = machine(kernel="rbf", ridge=1e-3).train(data).fit
    assert exact.bound <= model.fit.objective <= exact.objective * (1 + 2 * TOL)


@pytest.mark.parametrize(
    "machine",
    [
        M4(kernel="rbf", ridge=1e-3, tol=1e-8),
        M4(kernel="rbf", ridge=1e-3, tol=TOL, nu=0.5),
        M4(kernel="rbf", ridge=1e-3, tol=TOL, solver="reweighted"),
        MPM(kernel="rbf", ridge=1e-3, tol=TOL, scatter="sum"),
        MPM(kernel="linear", ridge=1e-3, tol=TOL),
    ],
    ids=["to 1e-8", "nu", "solver", "scatter", "linear"],
)
def test_what_a_factor_does_not_serve_is_trained_in_coordinates(machine, monkeypatch):
    X, y = gaussians()
    data = problem(X, y, Kernel(machine.kernel, 0.5))
    monkeypatch.setattr(search, "train_for_search", None)  # cannot be called
    (model,) = machine.train_path(data, [{}])
    assert model.fit.objective == machine.train(data).fit.objective


# -- the search itself -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [M4(kernel="rbf"), M4(kernel="linear"), MPM(kernel="rbf")],
    ids=["m4", "m4 linear", "mpm"],
)
def test_a_search_scores_like_refitting(machine, real_data):
    data = real_data("heart")
    X, y = minmax(data.X), data.y
    grid = {"ridge": (1e-3, 1e-2), "gamma": (0.5,)}
    if isinstance(machine, M4):
        grid["C_factor"] = (1.2, 1.5, 2.0, 10.0)
    rows_apart = 0 if isinstance(machine, M4) else 3
    assert gap_to_refitting(machine, X, y, grid, folds=3) <= rows_apart / len(y) + 1e-9


def gap_to_refitting(machine, X, y, grid, folds):
    """Return the largest distance of a search's scores to those of trainings from scratch."""
    found = select(machine, X, y, grid, folds=folds, seed=0, tol=machine.search_space.tol)
    cut = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
    gaps = []
    for row in found.scores:
        refit = machine.with_params({name: row[name] for name in grid})
        scores = [refit.fit(X[rows], y[rows]).score(X[held], y[held]) for rows, held in cut]
        gaps.append(abs(row["score"] - np.mean(scores)))
    return max(gaps)


def test_a_search_finds_w_where_zero_is_nearly_as_good(real_data):
    data = real_data("sonar")  # secant steps alone end at w = 0
    grid = {"ridge": (1e-2,), "gamma": (2.0**-5,), "C_factor": (1.2, 1.5)}
    assert gap_to_refitting(M4(kernel="rbf"), minmax(data.X), data.y, grid, folds=5) < 1e-9


# -- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("cls", [M4, MPM])
def test_a_search_holds_no_more_than_it_states(cls, fold):
    X, y = gaussians(n_x=300, n_y=300)
    kernel = Kernel("rbf", 5.0)
    data, n = problem(X, y, kernel), len(y)
    if fold:
        whole = StoredGram(kernel, kernel.base(X, X), overwrite=True)
        assert whole.values.shape == (n, n)
        data = PartProblem(X, y, kernel, whole, np.arange(n))
    grid = [{"ridge": 1e-4}, {"ridge": 1e-2}]
    machine = cls(kernel="rbf", tol=TOL)
    machine.train_path(data, grid)  # compiles
    tracemalloc.start()
    machine.train_path(data, grid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= (cls.memory_needs.gram_copies + 0.25) * 8 * n**2
