"""R-SVM+, R-SVMμ+ and MR-SVM: their limits, their invariances, and the programs as printed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers.examples import examples
from helpers.minimax_family import LINEAR, gaussians, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, minimize, minimize_scalar

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MRSVM, RSVMMuPlus, RSVMPlus
from mmbench.machines.radius.generation import FIRST_FEATURES, solve_all_pairs, solve_generating
from mmbench.machines.radius.pairs import CHUNK, PairProblem, far_pairs
from mmbench.machines.svm import train_svm
from mmbench.solvers.cones import ConeProgram, solve_socp

RBF = Kernel("rbf", 0.5)
PAIRWISE = (RSVMPlus, RSVMMuPlus)
ALL = (RSVMPlus, RSVMMuPlus, MRSVM)
by_name = pytest.mark.parametrize("machine", ALL, ids=lambda cls: cls.__name__)
pairwise = pytest.mark.parametrize("machine", PAIRWISE, ids=lambda cls: cls.__name__)


def train(machine, X, y, kernel=LINEAR, **parameters):
    return machine(kernel=kernel.name, **parameters).train(problem(X, y, kernel))


def hinge(model, X, y):
    return np.maximum(0, 1 - y * (X @ model.w + model.intercept)).sum()


def half_squares(X):
    i, j = np.triu_indices(len(X), 1)
    return 0.5 * (X[i] - X[j]) ** 2


def centred(X, y, C, lam, simplex):
    return PairProblem(X - X.mean(axis=0), y, C * np.ones(len(y)), lam, simplex)


# -- against the programs as they are printed ---------------------------------------------------


def published_rsvm_plus(X, y, C, lam):
    """Return the optimum of (9), a quadratic constraint a pair, as a cone program.

    ``||v||^2 <= 2 s`` is the cone ``(s + 1/2, s - 1/2, v)``.
    """
    n, d = X.shape
    columns = d + 1 + n + 2  # w, b, xi, r and half the square of w's length

    def cone(lengths, at):
        half = np.zeros((2, columns))
        half[:, at] = 1.0
        below = np.hstack([np.diag(lengths), np.zeros((d, columns - d))])
        return np.vstack([half, below]), np.r_[0.5, -0.5, np.zeros(d)]

    parts = [cone(np.ones(d), columns - 1)]
    parts += [cone(np.abs(X[i] - X[j]), columns - 2) for i, j in combinations(range(n), 2)]
    margins = np.hstack([y[:, None] * X, y[:, None], np.eye(n), np.zeros((n, 2))])
    slack = np.hstack([np.zeros((n, d + 1)), np.eye(n), np.zeros((n, 2))])
    G = np.vstack([margins, slack, *(rows for rows, _ in parts)])
    h = np.concatenate([-np.ones(n), np.zeros(n), *(sides for _, sides in parts)])
    cost = np.concatenate([np.zeros(d + 1), np.full(n, C), [lam, 1.0]])
    no_rows = sparse.csc_array((0, columns))
    cones = (d + 2,) * len(parts)
    program = ConeProgram(cost, no_rows, np.zeros(0), sparse.csc_array(-G), h, 2 * n, cones)
    return solve_socp(program, tol=1e-10).value


@pytest.mark.parametrize(("C", "lam"), [(0.3, 2.0), (5.0, 0.1), (5.0, 30.0)])
def test_rsvm_plus_reaches_the_optimum_of_the_published_program(C, lam):
    X, y = gaussians(n_x=9, n_y=7)
    expected = published_rsvm_plus(X, y, C, lam)
    for solver in ("interior", "clarabel", "reference"):
        fit = train(RSVMPlus, X, y, C=C, lam=lam, solver=solver).fit
        assert fit.objective == pytest.approx(expected, rel=2e-6)


def test_rsvm_mu_plus_without_a_radius_has_the_square_of_the_l1_norm():
    """Its optimum by linear programs: the slack at each ||w||_1, and a search for that number."""
    X, y = gaussians(n_x=15, n_y=15)
    (n, d), C = X.shape, 2.0

    def slack(length):
        margins = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], -np.eye(n)])
        norm = np.r_[np.ones(2 * d), np.zeros(n + 1)]
        cost = np.r_[np.zeros(2 * d + 1), np.ones(n)]
        bounds = [(0, None)] * (2 * d) + [(None, None)] + [(0, None)] * n
        rows, sides = np.vstack([margins, norm]), np.r_[-np.ones(n), length]
        return linprog(cost, rows, sides, bounds=bounds).fun

    best = minimize_scalar(
        lambda length: 0.5 * length**2 + C * slack(length), bounds=(0, 20), method="bounded"
    ).fun
    model = train(RSVMMuPlus, X, y, C=C, lam=0.0)
    assert model.fit.objective == pytest.approx(best, rel=1e-6)
    norm = np.abs(model.w).sum()
    assert 0.5 * norm**2 + C * hinge(model, X, y) == pytest.approx(best, rel=1e-6)


def test_the_squared_radius_of_mrsvm_is_in_units_of_the_features():
    X, y = gaussians(n_x=12, n_y=12, d=2)
    fits = [MRSVM().fit(scale * X, y).fits_[0] for scale in (1.0, 10.0)]
    assert fits[1].extra["radius"] == pytest.approx(100 * fits[0].extra["radius"], rel=1e-3)


def test_mrsvm_reaches_the_optimum_of_the_published_program():
    """Two features: the SVM with squared slack at each mu, and a search for mu."""
    X, y = gaussians(n_x=12, n_y=12, d=2)
    squares, C = (np.ptp(X, axis=0) / 2) ** 2, 3.0

    def value(share):
        mu = np.array([share, 1 - share])

        def objective(v):
            miss = np.maximum(0, 1 - y * (X @ v[:2] + v[2]))
            slope = -2 * C / (mu @ squares) * (y * miss) @ np.column_stack([X, np.ones(len(y))])
            slope[:2] += v[:2] / mu
            return 0.5 * v[:2] ** 2 @ (1 / mu) + C * miss @ miss / (mu @ squares), slope

        return minimize(objective, np.zeros(3), jac=True, method="BFGS", tol=1e-10).fun

    best = minimize_scalar(value, bounds=(1e-6, 1 - 1e-6), method="bounded").fun
    fit = train(MRSVM, X, y, C=C).fit
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(best, rel=1e-6)
    assert fit.bound == pytest.approx(best, rel=1e-6)


# -- generation against listing -----------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    C=st.floats(-2, 2).map(lambda power: 10.0**power),
    lam=st.floats(-2, 2).map(lambda power: 10.0**power),
    simplex=st.booleans(),
)
@examples(seed=range(10), C=(1e-2, 0.5, 1e2), lam=(1e-2, 1.0, 3.0, 1e2), simplex=(False, True))
def test_generated_pairs_reach_the_optimum_of_all_pairs(seed, C, lam, simplex):
    X, y = gaussians(seed % 1000, n_x=12, n_y=10, d=4)
    given_problem = centred(X / X.std(), y, C, lam, simplex)
    listed = solve_all_pairs(given_problem, 1e-7)
    for cone in (False, True):
        point = solve_generating(given_problem, 1e-7, cone=cone)
        assert point.status is Status.OPTIMAL
        assert point.value == pytest.approx(listed.value, rel=1e-6)
        assert point.bound <= listed.value * (1 + 1e-6)


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("lam", [0.0, 0.1, 1000.0])
def test_few_rows_of_many_features_reach_the_optimum_of_all_pairs(C, lam):
    X, y = gaussians(n_x=9, n_y=7, d=120)
    rows = X / (X.std() * np.sqrt(X.shape[1]))
    given_problem = centred(rows, y, C * (1.0 + np.arange(16) % 3), lam, simplex=False)
    found = solve_generating(given_problem, 1e-7)
    assert found.status is Status.OPTIMAL
    assert len(y) + len(found.listed.pairs) < X.shape[1]  # is solved in rows and pairs
    assert found.value == pytest.approx(solve_all_pairs(given_problem, 1e-7).value, rel=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e5])
@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_few_rows_of_features_in_different_units_are_solved(C, lam):
    """A system in rows alone loses the digits of features in small units."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 60)) * 10.0 ** rng.integers(-4, 5, size=60)
    machine = RSVMPlus(C=C, lam=lam).fit(X, np.arange(12) % 2)
    assert machine.fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("lam", [0.1, 100.0])
def test_generation_and_listing_agree_on_real_data(real_data, simplex, lam):
    data = real_data("ida_heart")
    y = np.where(data.y[:90] == data.classes[1], 1.0, -1.0)
    given_problem = centred(data.X[:90], y, 1.0, lam, simplex)
    listed = solve_all_pairs(given_problem, 1e-7)
    found = solve_generating(given_problem, 1e-8)
    assert found.value == pytest.approx(listed.value, rel=1e-6)
    assert len(found.listed.pairs) < 0.1 * len(listed.theta)


def test_features_are_generated_if_a_kernel_makes_many():
    X, y = gaussians(n_x=60, n_y=50, d=4)
    found = solve_generating(centred(RBF(X, X), y, 10.0, 10.0, simplex=True), 1e-6)
    assert found.gap < 1e-6
    assert FIRST_FEATURES <= len(found.listed.features) < 110


@pairwise
def test_a_path_ends_where_each_point_alone_does(machine):
    X, y = gaussians()
    points = [{"C": C, "lam": lam} for C in (0.1, 1.0, 10.0) for lam in (0.0, 0.1, 10.0)]
    path = machine().train_path(problem(X, y), points)
    for point, model in zip(points, path, strict=True):
        alone = train(machine, X, y, **point)
        assert model.fit.objective == pytest.approx(alone.fit.objective, rel=2e-6)
        assert model.fit.status in (Status.OPTIMAL, Status.TRIVIAL)


@pairwise
def test_a_path_with_a_rare_class_takes_no_more_iterations_than_its_points_alone(machine):
    random = np.random.default_rng(0)
    y = np.where(np.arange(300) < 8, 1.0, -1.0)
    X = np.exp(0.5 * (random.normal(size=(300, 1)) + 0.2 * random.normal(size=(300, 8))))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:8] += 1.5 * random.normal(size=8) + 2.0
    points = [{"C": C, "lam": lam} for C in (0.1, 1.0, 10.0, 100.0) for lam in (0.1, 10.0)]
    path = machine(tol=1e-3).train_path(problem(X, y), points)
    alone = [train(machine, X, y, tol=1e-3, **point) for point in points]
    for model, single in zip(path, alone, strict=True):
        assert model.fit.status is single.fit.status
        assert model.fit.extra["rounds"] <= 5
    assert sum(m.fit.iterations for m in path) <= 1.1 * sum(m.fit.iterations for m in alone)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_path_of_rsvm_plus_with_few_listed_rows_is_certified(weighted):
    """The objective is recomputed from all rows and pairs; the bound holds for any multipliers."""
    X, y = gaussians(n_x=130, n_y=120)
    X /= X.std(axis=0)
    weights = 1.0 + np.arange(250) % 3 if weighted else None
    s = np.ones(250) if weights is None else weights
    gram, i, j = RBF(X, X), *np.triu_indices(250, 1)
    points = [{"lam": lam} for lam in (0.0, 0.1, 10.0, 1000.0)]
    path = RSVMPlus(C=2.0, kernel="rbf").train_path(
        replace(problem(X, y, RBF), weights=weights), points
    )
    for point, model in zip(points, path, strict=True):
        w, fit = model.coef, model.fit
        r = ((gram[i] - gram[j]) ** 2 @ (w**2 / s)).max() / 2
        slack = s @ np.maximum(0, 1 - y * (gram @ w + model.intercept))
        value = 0.5 * np.sum(w**2 / s) + point["lam"] * r + 2.0 * slack
        assert fit.objective == pytest.approx(value, rel=1e-9)
        assert fit.gap <= 1e-6
        assert fit.extra["pairs"] <= 150


@given(st.integers(0, 10**6), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
@examples(seed=range(8), share=(0.0, 0.3, 0.9, 0.995, 1.0))
def test_far_pairs_are_those_of_all_pairs(seed, share):
    points = np.random.RandomState(seed).standard_t(3, size=(2 * CHUNK + 30, 3))
    halves = half_squares(points).sum(axis=1)
    above = share * halves.max()
    pairs, values = far_pairs(points, above, most=5)
    assert len(pairs) <= 5
    for (i, j), value in zip(pairs, values, strict=True):
        assert value == pytest.approx(0.5 * np.sum((points[i] - points[j]) ** 2))
        assert i < j
    assert (values > above).all()
    if share < 0.99:
        assert values[0] == pytest.approx(halves.max())
        assert (np.diff(values) <= 0).all()


# -- certificates --------------------------------------------------------------------------------


def test_certificate_of_rsvm_plus_follows_from_w_and_b():
    X, y = gaussians()
    C, lam = 2.0, 0.7
    model = train(RSVMPlus, X, y, C=C, lam=lam)
    r = (half_squares(X) @ model.w**2).max()
    value = 0.5 * model.w @ model.w + lam * r + C * hinge(model, X, y)
    assert model.fit.extra["r"] == pytest.approx(r)
    assert model.fit.objective == pytest.approx(value)
    assert model.fit.bound <= model.fit.objective
    assert model.fit.gap < 1e-6
    assert model.fit.max_violation < 1e-6


def test_certificate_of_rsvm_mu_plus_follows_from_w_b_and_mu():
    X, y = gaussians()
    C, lam = 2.0, 0.7
    found = solve_generating(centred(X, y, C, lam, simplex=True), 1e-8)
    assert found.mu.sum() == pytest.approx(1.0)
    assert (found.mu >= 0).all()
    assert found.r == pytest.approx((half_squares(X) @ found.mu).max())
    rows = X - X.mean(axis=0)
    slack = np.maximum(0, 1 - y * (rows @ found.w + found.b)).sum()
    norm = found.w**2 @ (1 / found.mu)
    assert found.value == pytest.approx(0.5 * norm + lam * found.r + C * slack)
    model = train(RSVMMuPlus, X, y, C=C, lam=lam)  # and in the units of the data
    assert model.fit.objective == pytest.approx(found.value, rel=1e-6)
    assert model.fit.extra["r"] == pytest.approx(found.r, rel=1e-4)
    assert model.fit.max_violation < 1e-6


def test_some_pair_of_rows_holds_r_with_equality_and_has_a_multiplier():
    X, y = gaussians()
    found = solve_generating(centred(X, y, 2.0, 0.7, simplex=False), 1e-8)
    held = found.listed.pairs[found.theta > 1e-9]
    lengths = 0.5 * (X[held[:, 0]] - X[held[:, 1]]) ** 2 @ found.w**2
    np.testing.assert_allclose(lengths, found.r, rtol=1e-6)
    assert found.theta.sum() == pytest.approx(0.7)


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_rsvm_plus_without_a_radius_is_the_svm(C):
    X, y = gaussians()
    svm = train_svm(problem(X, y), C, tol=1e-9)
    model = train(RSVMPlus, X, y, C=C, lam=0.0)
    assert model.fit.objective == pytest.approx(svm.fit.objective, rel=1e-6)
    np.testing.assert_allclose(model.w, X.T @ svm.coef, rtol=1e-4)


def test_w_of_rsvm_plus_tends_to_zero_with_the_penalty_on_the_radius():
    X, y = gaussians()
    lengths = [np.linalg.norm(train(RSVMPlus, X, y, lam=lam).w) for lam in (1, 1e2, 1e4, 1e6)]
    assert (np.diff(lengths) < 0).all()
    assert lengths[-1] < 1e-3 * lengths[0]


def test_mu_of_rsvm_mu_plus_tends_to_the_smallest_radius_with_its_penalty():
    """The smallest radius is a linear program in mu."""
    X, y = gaussians()
    halves = half_squares(X)
    rows = np.hstack([halves, -np.ones((len(halves), 1))])
    equation = np.array([[1.0, 1.0, 1.0, 0.0]])
    least = linprog([0, 0, 0, 1], rows, np.zeros(len(rows)), equation, [1.0]).fun
    assert train(RSVMMuPlus, X, y, lam=1e5).fit.extra["r"] == pytest.approx(least, rel=1e-4)


# -- invariances (methods of this family weigh features: not under rotation) ----------------------


def objective(machine, X, y, **parameters):
    return train(machine, X, y, **parameters).fit.objective


@by_name
def test_translation_moves_b_alone(machine):
    X, y = gaussians()
    shift = np.array([3.0, -50.0, 200.0])
    here, there = train(machine, X, y, C=2.0), train(machine, X + shift, y, C=2.0)
    assert there.fit.objective == pytest.approx(here.fit.objective, rel=1e-6)
    np.testing.assert_allclose(there.w, here.w, rtol=1e-3, atol=1e-5)
    assert there.intercept == pytest.approx(here.intercept - shift @ here.w, abs=1e-2)


@by_name
def test_permuted_features_have_permuted_weights(machine):
    X, y = gaussians()
    order = [2, 0, 1]
    here, there = train(machine, X, y, C=2.0), train(machine, X[:, order], y, C=2.0)
    assert there.fit.objective == pytest.approx(here.fit.objective, rel=1e-6)
    np.testing.assert_allclose(there.w, here.w[order], rtol=1e-3, atol=1e-5)


@by_name
def test_rotation_and_scaling_of_features_matter(machine):
    X, y = gaussians()
    turn = np.linalg.qr(np.random.RandomState(1).normal(size=(3, 3)))[0]
    here = objective(machine, X, y)
    assert abs(objective(machine, X @ turn, y) - here) > 1e-3 * here
    assert abs(objective(machine, X * [1, 10, 0.1], y) - here) > 1e-3 * here


# -- kernels and degenerate data ------------------------------------------------------------------


@by_name
def test_a_kernel_takes_the_place_of_the_data(machine):
    X, y = gaussians(n_x=20, n_y=15)
    gram = RBF(X, X)
    kernel = train(machine, X, y, RBF, C=5.0)
    linear = train(machine, gram, y, C=5.0)
    assert kernel.fit.objective == pytest.approx(linear.fit.objective, rel=1e-6)
    np.testing.assert_allclose(
        gram @ kernel.coef + kernel.intercept, gram @ linear.w + linear.intercept, atol=1e-3
    )


@by_name
def test_duplicates_constant_features_and_equal_rows(machine):
    X, y = gaussians(n_x=10, n_y=8)
    X = np.hstack([np.vstack([X, X[:5]]), np.full((23, 1), 7.0)])
    y = np.append(y, -y[:5])
    model = train(machine, X, y)
    assert model.fit.status is Status.OPTIMAL
    assert model.fit.gap < 1e-6
    assert abs(model.w[-1]) < 1e-9
    equal = train(machine, np.ones((10, 2)), np.where(np.arange(10) < 3, 1.0, -1.0))
    assert equal.fit.status is Status.TRIVIAL
    assert not equal.w.any()
    assert equal.intercept == -1.0


@pairwise
def test_a_solver_that_gives_up_proves_no_trivial_optimum(machine, monkeypatch):
    from mmbench.machines.radius import listed

    def nothing(program, tol):
        found = solve_socp(program, tol=tol)
        return replace(found, x=np.full_like(found.x, np.nan))

    monkeypatch.setattr(listed, "solve_socp", nothing)
    model = train(machine, *gaussians(), solver="clarabel")
    assert not model.w.any()
    assert model.fit.status is Status.INACCURATE
    assert model.fit.bound < model.fit.objective


@pairwise
@pytest.mark.parametrize("n", [80, 300])
def test_w_is_zero_if_no_other_w_is_better(machine, n):
    """A computed w of 1e-10 to 1e-4 ranks rows like the difference of the class means."""
    rng = np.random.default_rng(3)
    y = (rng.uniform(size=n) < 0.2).astype(int)
    X = rng.normal(size=(n, 6)) + 0.3 * y[:, None]
    for C, lam in [(1e-6, 10.0), (1e-3, 1.0), (1.0, 0.1)]:
        fitted = machine(C=C, lam=lam).fit(X, y)
        (fit,) = fitted.fits_
        assert not fitted.coef_.any()
        assert fit.status is Status.TRIVIAL
        assert fit.n_support == 0
        radius = lam * fit.extra["r"]  # zero for R-SVM+
        assert fit.objective == pytest.approx(2 * C * y.sum() + radius, rel=1e-12)


@pairwise
def test_a_short_w_better_than_zero_is_kept(machine):
    X, y = gaussians()
    model = train(machine, X, y, RBF, C=1e-6)
    assert 0 < np.ptp(RBF(X, X) @ model.coef) < 1e-3
    assert model.fit.status is Status.OPTIMAL


def unscaled(scale):
    rng = np.random.RandomState(0)
    y = np.repeat([1.0, -1.0], 15)
    return scale * (rng.normal(size=(30, 3)) + 0.2 * y[:, None]), y


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_features_in_large_units_leave_rsvm_mu_plus_the_smallest_radius(scale):
    """The radius penalty dominates; the steps of the interior point must not become too short."""
    X, y = unscaled(scale)
    fit = train(RSVMMuPlus, X, y).fit
    assert fit.status is Status.OPTIMAL
    assert fit.gap < 1e-6
    rows = np.hstack([half_squares(X / scale), -np.ones((435, 1))])
    least = linprog([0, 0, 0, 1], rows, np.zeros(435), [[1.0, 1.0, 1.0, 0.0]], [1.0]).fun
    assert fit.extra["r"] / scale**2 == pytest.approx(least, rel=1e-4)


def test_a_fit_without_digits_ends_in_a_status():
    """The radius penalty exceeds all else by so much that no digits are left for w."""
    model = train(RSVMMuPlus, *unscaled(1e9))
    assert model.fit.status in (Status.OPTIMAL, Status.INACCURATE, Status.TRIVIAL)
    assert np.isfinite(model.w).all()
    assert np.isfinite(model.fit.objective)


@pairwise
def test_grids_are_the_paper_s(machine):
    grid = (0.1, 1.0, 10.0, 100.0, 1000.0)
    assert machine.search_space.auto_grids["C"] == ("C", grid)
    assert machine.search_space.auto_grids["lam"] == ("lam", grid)
