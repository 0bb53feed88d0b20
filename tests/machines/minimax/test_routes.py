"""MPM and M4: every route reaches one objective, in single trainings and in searches."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from helpers.minimax_family import gaussians, minmax, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import LDA, M4, MEMPM, MPM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.base.threshold import best_bias
from mmbench.machines.minimax.gram import _Iteration
from mmbench.selection import SelectRef, select

RBF = Kernel("rbf", 0.5)
FULL_RANK, LOW_RANK = Kernel("rbf", 5.0), Kernel("poly", degree=1)
GRID = [{"C_factor": c, "ridge": r} for r in (1e-4, 1e-2) for c in (0.9, 1.2, 3.0, 30.0, 1000.0)]


def classes(n_x, n_y, shift=1.0, seed=0):
    random = np.random.RandomState(seed)
    X = random.normal(size=(n_x + n_y, 4)) * [1, 2, 0.5, 1]
    y = np.repeat([1.0, -1.0], [n_x, n_y])
    X[y > 0, 0] += shift
    order = random.permutation(len(y))
    return X[order], y[order]


def in_coordinates(machine, data):
    """Return the model in diagonal coordinates, which every problem with row weights has."""
    weights = np.ones(len(data.y))
    weighted = BinaryProblem(data.X, data.y, data.kernel, data.given_gram, weights=weights)
    return machine.with_params({"solver": "auto"}).train(weighted)


def decisions(model, data):
    return data.gram @ model.coef + model.intercept


# -- which route is taken ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "kernel", "route"),
    [
        (M4(), FULL_RANK, "gram"),
        (M4(), LOW_RANK, "interior point"),
        (M4(), Kernel("linear"), "interior point"),
        (M4(solver="clarabel"), RBF, "cone program"),
        (M4(solver="reference"), Kernel("linear"), "rho search"),
        (M4(scatter="sum"), FULL_RANK, "interior point"),
        (M4(nu=0.7), LOW_RANK, "cone program"),
        (M4(A=1.0), FULL_RANK, "cone program"),
        (M4(theta=0.4), FULL_RANK, "interior point"),
        (M4(margin="hard"), FULL_RANK, "cone program"),
        (M4(margin="hard", solver="reference"), FULL_RANK, "rho search"),
        (M4(normalization="mean", C_factor=50.0), RBF, "branch and bound"),
        (M4(nu=1.0), RBF, "closed form"),
        (MPM(), FULL_RANK, "gram"),
        (MPM(), LOW_RANK, "secant"),
        (MPM(), Kernel("linear"), "secant"),
        (MPM(solver="reference"), FULL_RANK, "cone program"),
        (MEMPM(), RBF, "branch and bound"),
        (LDA(), RBF, "closed form"),
        (LDA(solver="reference"), RBF, "cone program"),
    ],
    ids=str,
)
def test_a_fit_names_its_route(machine, kernel, route):
    X, y = gaussians()
    machine = machine.set_params(kernel=kernel.name, ridge=1e-2)
    fit = machine.train(problem(X, y, kernel)).fit
    assert fit.route == route
    assert fit.status is Status.OPTIMAL


@pytest.mark.parametrize("rows", [60, 240, 1200])
@pytest.mark.parametrize("cls", [M4, MPM])
def test_the_rank_of_the_kernel_matrix_decides_and_not_the_number_of_rows(cls, rows):
    X, y = classes(rows // 2, rows // 2)
    machine = cls(kernel="rbf", ridge=1e-2)
    routes = [machine.train(problem(X, y, k)).fit.route for k in (FULL_RANK, LOW_RANK)]
    assert routes == ["gram", "interior point" if cls is M4 else "secant"]


@pytest.mark.parametrize("n", [1000, 1200])
def test_moons_of_any_number_are_trained(n):
    X, y = make_moons(n, noise=0.3, random_state=0)
    fit = M4(kernel="rbf", C=1.0).fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL


def test_wide_blobs_are_certified():
    X, y = make_blobs(1200, centers=2, cluster_std=3, random_state=0)
    assert M4(kernel="rbf").fit(X, y).fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize("name", ["ida_banana", "ida_titanic"])
def test_many_rows_in_few_features_are_certified(real_data, name):
    data = real_data(name)
    fit = M4(kernel="rbf", C=1.0).fit(data.X[:1100], data.y[:1100]).fits_[0]
    assert fit.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", [0, 2])
def test_a_gram_route_that_does_not_close_its_gap_leaves_the_problem_to_coordinates(seed):
    X, y = make_moons(80, noise=0.3, random_state=seed)
    easy, hard = (
        M4(kernel="rbf", C=C, gamma=gamma, solver="gram").fit(X, y).fits_[0]
        for C, gamma in ((1.0, 1.0), (100.0, 0.01))
    )
    assert easy.status is hard.status is Status.OPTIMAL
    assert easy.route == "gram" != hard.route


@pytest.mark.parametrize(
    ("gamma", "factor", "route", "most"),
    [(0.001, 300.0, "cone program", 30), (0.01, 300.0, "gram", 12)],
)
def test_a_gram_route_converges_or_ends_after_few_iterations(
    gamma, factor, route, most, real_data, monkeypatch
):
    data = real_data("pima")
    X, y = scale(data.X)[:300], data.y[:300]
    steps, step = [], _Iteration.step
    monkeypatch.setattr(_Iteration, "step", lambda state: (step(state), steps.append(state)))
    (fit,) = M4(kernel="rbf", gamma=gamma, C_factor=factor).fit(X, y).fits_
    assert fit.status is Status.OPTIMAL and fit.route == route
    assert len(steps) <= most  # there were 200


@pytest.mark.parametrize(
    ("cls", "status"),
    [
        (LDA, Status.TRIVIAL),
        (MPM, Status.INFEASIBLE),
        (MEMPM, Status.INFEASIBLE),
        (M4, Status.TRIVIAL),
    ],
)
@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_a_kernel_matrix_of_zeros_has_a_clear_outcome(cls, status, solver):
    machine = cls(kernel="precomputed", ridge=1e-3, solver=solver)
    machine.fit(np.zeros((20, 20)), np.arange(20) % 4 == 0)
    assert machine.fits_[0].status is status
    np.testing.assert_array_equal(machine.predict(np.zeros((3, 20))), False)


# -- the Gram route against coordinates --------------------------------------------------------


@given(
    n_x=st.integers(5, 60),
    n_y=st.integers(5, 60),
    shift=st.floats(0.2, 4),
    ridge=st.sampled_from([1e-4, 1e-2]),
    seed=st.integers(0, 99),
)
@settings(max_examples=25, deadline=None)
@examples(n_x=(5, 60, 23), n_y=(5, 41), shift=(0.2, 1.0, 4.0), ridge=(1e-4, 1e-2), seed=range(8))
def test_the_mpm_over_the_kernel_matrix_is_the_one_in_coordinates(n_x, n_y, shift, ridge, seed):
    data = problem(*classes(n_x, n_y, shift, seed), Kernel("rbf", 0.3))
    machine = MPM(kernel="rbf", ridge=ridge, solver="gram")
    ours, theirs = machine.train(data), in_coordinates(machine, data)
    assert ours.fit.status is Status.OPTIMAL
    assert ours.fit.objective == pytest.approx(theirs.fit.objective, rel=1e-8)
    assert decisions(ours, data) == pytest.approx(decisions(theirs, data), abs=1e-3)


@given(
    n_x=st.integers(5, 60),
    n_y=st.integers(5, 60),
    shift=st.floats(0.2, 4),
    ridge=st.sampled_from([1e-4, 1e-2]),
    factor=st.sampled_from([0.5, 1.2, 2.0, 10.0, 100.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
@examples(
    n_x=(5, 60, 23),
    n_y=(5, 41),
    shift=(0.2, 1.0, 4.0),
    ridge=(1e-4, 1e-2),
    factor=(0.5, 1.2, 2.0, 10.0, 100.0),
    seed=range(8),
)
def test_the_m4_over_the_kernel_matrix_is_the_one_in_coordinates(
    n_x, n_y, shift, ridge, factor, seed
):
    data = problem(*classes(n_x, n_y, shift, seed), Kernel("rbf", 0.3))
    machine = M4(kernel="rbf", ridge=ridge, C_factor=factor, solver="gram")
    ours, theirs = machine.train(data), in_coordinates(machine, data)
    assert ours.fit.objective == pytest.approx(theirs.fit.objective, rel=2e-6)
    assert ours.fit.bound <= theirs.fit.objective * (1 + 1e-9)
    assert ours.fit.extra["C"] == pytest.approx(theirs.fit.extra["C"], rel=1e-8)
    assert ours.fit.status == theirs.fit.status


@pytest.mark.parametrize(("ridge", "n_positive"), [(1e-8, 100), (1e-6, 20), (1e-3, 100)])
def test_classes_of_unequal_size_and_spread_on_real_data(real_data, ridge, n_positive):
    """Ridges that need a factor in double precision, and larger ones."""
    digits = real_data("usps")
    rows = np.concatenate(
        [np.flatnonzero(digits.y == digit)[:most] for digit, most in ((0, 100), (1, n_positive))]
    )
    y = np.where(digits.y[rows] == 1, 1.0, -1.0)
    data = problem(digits.X[rows], y, Kernel("rbf", gamma=2.0**-7))
    for cls, tol in ((M4, 2e-6), (MPM, 1e-8)):
        machine = cls(kernel="rbf", ridge=ridge, solver="gram")
        ours, theirs = machine.train(data).fit, in_coordinates(machine, data).fit
        assert ours.route == "gram"
        assert ours.status == theirs.status == Status.OPTIMAL
        assert ours.objective == pytest.approx(theirs.objective, rel=tol)
        assert ours.bound <= theirs.objective * (1 + 1e-8)


@pytest.mark.parametrize("machine", [M4, MPM])
def test_rows_that_occur_twice_and_equal_means_are_answered(machine):
    X, y = classes(30, 30)
    machine = machine(kernel="rbf", ridge=1e-4, solver="gram")
    twice = machine.fit(np.vstack([X, X]), np.append(y, y))
    assert twice.fits_[0].status == Status.OPTIMAL
    same = machine.fit(np.vstack([X, X]), np.append(y, -y))
    trivial = Status.TRIVIAL if isinstance(same, M4) else Status.INFEASIBLE
    assert same.fits_[0].status == trivial


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("cls", [M4, MPM])
def test_kernel_values_beyond_single_precision_are_trained(cls, scale):
    X, y = gaussians()
    data = problem(scale * X, y, Kernel("poly", degree=3))
    machine = cls(kernel="poly", solver="gram", ridge=1e-3)
    exact = in_coordinates(machine, data).fit
    assert machine.train(data).fit.objective == pytest.approx(exact.objective, rel=2e-6)


@pytest.mark.parametrize("positive", [700, 680])
def test_rows_of_one_class_alone_in_the_first_working_set_do_not_end_at_zero(positive):
    """With so narrow a kernel all margins of one class are a little smaller than the other's."""
    X = np.random.RandomState(0).normal(size=(1400, 3)) * [1.0, 1e4, 1e-3]
    y = np.where(np.arange(1400) < positive, 1.0, -1.0)
    data = problem(X, y, Kernel("rbf", 1e4))
    fit = M4(kernel="rbf", ridge=1e-2, C_factor=1000.0, solver="gram").train(data).fit
    assert fit.status is Status.OPTIMAL
    assert fit.iterations < 50


@pytest.mark.parametrize("factor", [1.1, 1.5])
def test_a_small_penalty_does_not_end_at_the_zero_of_too_few_rows(factor):
    data = problem(*classes(600, 600), Kernel("rbf", 0.3))  # nearly all rows have multipliers
    fit = M4(kernel="rbf", ridge=1e-2, C_factor=factor, solver="gram").train(data).fit
    assert fit.status == Status.OPTIMAL
    assert fit.route == "gram"
    assert fit.iterations < 50


# -- searches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(40, 25, 1.5), (20, 60, 0.5), (30, 30, 4.0)])
@pytest.mark.parametrize("kernel", [RBF, FULL_RANK], ids=["low rank", "full rank"])
def test_a_path_ends_where_single_trainings_do(shape, kernel):
    n_x, n_y, shift = shape
    data = problem(*gaussians(n_x=n_x, n_y=n_y, shift=shift), kernel)
    for point, model in zip(GRID, M4(kernel="rbf").train_path(data, GRID), strict=True):
        machine = M4(kernel="rbf", **point)
        alone, exact = machine.train(data).fit, in_coordinates(machine, data).fit
        assert model.fit.status == alone.status == exact.status
        assert model.fit.objective == pytest.approx(exact.objective, rel=2e-6)
        assert alone.objective == pytest.approx(exact.objective, rel=2e-6)
        assert model.fit.extra["C"] == pytest.approx(exact.extra["C"], rel=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_path_of_a_rare_class_ends_where_single_trainings_do(seed):
    rng = np.random.RandomState(seed)  # theta moves far with C
    X = np.vstack([rng.normal(size=(200, 3)) * [1, 2, 0.1], 0.3 * rng.normal(size=(20, 3)) + 0.5])
    data = problem(minmax(X), np.repeat([-1.0, 1.0], [200, 20]), Kernel("rbf", 2.0))
    grid = [{"C_factor": c, "ridge": r} for c in (1.5, 5.0, 100.0) for r in (1e-4, 1e-2)]
    path = M4(kernel="rbf", solver="gram").train_path(data, grid)
    for point, model in zip(grid, path, strict=True):
        exact = in_coordinates(M4(kernel="rbf", **point), data)
        assert exact.fit.objective <= exact.fit.bound * (1 + 1e-6)
        assert model.fit.objective <= exact.fit.bound * (1 + 2e-6)
        assert value_of(model, data, point, exact.fit.extra["C"]) <= exact.fit.bound * (1 + 2e-6)


def value_of(model, data, point, C):
    """Return the objective of a model's w, at its best b."""
    f, y = data.gram @ model.coef, data.y
    own = point["ridge"] * np.trace(data.gram) / len(y) * (model.coef @ f)
    spreads = sum(np.sqrt(f[side].var() + own) for side in (y > 0, y < 0))
    return spreads + C * np.maximum(0, 1 - y * (f + best_bias(f, y))).sum()


def test_a_path_of_machines_on_different_routes_returns_each_model_in_its_place():
    data = problem(*gaussians(), FULL_RANK)
    points = [{"ridge": r, "scatter": s} for r in (1e-4, 1e-2) for s in ("sum", "mean")]
    for point, model in zip(points, MPM(kernel="rbf").train_path(data, points), strict=True):
        alone = MPM(kernel="rbf", **point).train(data).fit
        assert model.fit.objective == pytest.approx(alone.objective, rel=1e-6)
        assert (
            model.fit.route == alone.route == ("gram" if point["scatter"] == "mean" else "secant")
        )


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
    """Return the largest difference between scores of a search and of trainings from scratch."""
    found = select(machine, X, y, grid, SelectRef(folds=folds), seed=0)
    cut = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y))
    gaps = []
    for row in found.scores:
        refit = machine.with_params({name: row[name] for name in grid})
        scores = [refit.fit(X[rows], y[rows]).score(X[held], y[held]) for rows, held in cut]
        gaps.append(abs(row["score"] - np.mean(scores)))
    return max(gaps)


def test_a_search_finds_w_where_zero_is_nearly_as_good(real_data):
    data = real_data("sonar")
    grid = {"ridge": (1e-2,), "gamma": (2.0**-5,), "C_factor": (1.2, 1.5)}
    assert gap_to_refitting(M4(kernel="rbf"), minmax(data.X), data.y, grid, folds=5) < 1e-9


# -- many rows of few features -------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [LDA(bias="optimized"), MPM(), MPM(ridge=0), MEMPM(), M4(), M4(margin="hard"), M4(nu=0.7)],
    ids=str,
)
def test_rows_that_are_repeated_eighty_times_give_the_same_machine(machine):
    """From 5000 rows on, the rows are not copied into coordinates."""
    X, y = gaussians(d=3, shift=6.0 if machine.get_params().get("margin") == "hard" else 1.5)
    few = clone(machine).fit(X, y)
    many = clone(machine).fit(np.tile(X, (80, 1)), np.tile(y, 80))
    assert many.fits_[0].status is few.fits_[0].status
    np.testing.assert_allclose(many.coef_, few.coef_, rtol=1e-4, atol=1e-6)


def test_rows_far_from_zero_give_the_same_m4():
    X, y = gaussians()
    near, far = M4().fit(X, y), M4().fit(X + 1e8, y)
    assert far.fits_[0].objective == pytest.approx(near.fits_[0].objective, rel=1e-6)
    np.testing.assert_allclose(far.decision_function(X + 1e8), near.decision_function(X), atol=1e-5)


# -- what a certificate proves -------------------------------------------------------------------


@pytest.mark.parametrize("C_factor", [2.0, 100.0])
@pytest.mark.parametrize("form", [{}, {"nu": 0.7}, {"normalization": "mean"}], ids=str)
def test_value_and_bound_of_a_loose_fit_enclose_the_optimum(form, C_factor):
    X, y = gaussians()
    exact, loose = (
        M4(**form, C_factor=C_factor, tol=tol).fit(X, y).fits_[0] for tol in (1e-7, 0.1)
    )
    assert exact.status is loose.status is Status.OPTIMAL
    assert loose.bound <= exact.objective * (1 + 1e-6)
    assert loose.objective >= exact.bound * (1 - 1e-6)
