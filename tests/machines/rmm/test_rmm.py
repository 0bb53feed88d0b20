"""The RMM: its bounds, the SVM as its limit, Clarabel on the paper's dual as oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import RMM, alias_of, make_machine, rmm
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.rmm import rmm_dual
from mmbench.machines.svm import train_svm

KERNELS = (Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=1.0))
LINEAR = Kernel("linear")


def decision(problem, model):
    return problem.gram @ model.coef + model.intercept


def test_the_reference_takes_its_bound_from_an_optimal_svm():
    """On 60 rows of raw breast cancer data, libsvm ends far from the optimum of the SVM."""
    X, y = (part[:60] for part in load_breast_cancer(return_X_y=True))
    fast, same = (RMM(C=1000, kernel="linear", solver=s).fit(X, y) for s in ("auto", "reference"))
    assert same.fits_[0].route == "Clarabel"
    assert same.fits_[0].extra["theta"] == pytest.approx(fast.fits_[0].extra["theta"], rel=1e-4)
    assert same.fits_[0].objective == pytest.approx(fast.fits_[0].objective, rel=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("fraction", [0.5, 0.05])
def test_fast_and_reference_reach_the_same_objective(pair, kernel, fraction):
    problem = pair(kernel)
    fast = RMM(C=5.0, B_fraction=fraction, tol=1e-9).train(problem).fit
    same = RMM(C=5.0, B=fast.extra["B"], solver="reference").train(problem).fit
    assert fast.status is Status.OPTIMAL
    assert same.status is Status.OPTIMAL
    assert fast.extra["theta"] > fast.extra["B"]  # or the SVM was compared with itself
    assert fast.objective == pytest.approx(same.objective, rel=1e-6)
    assert fast.bound == pytest.approx(fast.objective, rel=1e-6)
    assert same.bound == pytest.approx(same.objective, rel=1e-6)


def test_certificate_follows_from_the_returned_solution(pair):
    problem, C = pair(Kernel("rbf", gamma=1.0)), 5.0
    model = RMM(C=C, B_fraction=0.3).train(problem)
    f, B = decision(problem, model), model.fit.extra["B"]
    value = model.coef @ problem.gram @ model.coef / 2
    assert model.fit.objective == pytest.approx(value + C * np.maximum(0, 1 - problem.y * f).sum())
    assert np.abs(f).max() <= B * (1 + 1e-12)
    assert model.fit.max_violation < 1e-9
    assert abs(model.state.last.u.sum()) < 1e-9
    assert model.fit.bound <= model.fit.objective


def test_bound_is_the_paper_s_dual(tiny):
    """(8) at alpha, lambda and lambda* that are split from u by hand."""
    C, B = 3.0, 1.2
    model = RMM(C=C, B=B).train(tiny)
    u, y = model.state.last.u, tiny.y
    alpha = np.clip(y * u, 0, C)
    rest = u - y * alpha
    value = alpha.sum() - B * np.abs(rest).sum() - u @ tiny.gram @ u / 2
    assert model.fit.bound == pytest.approx(value)


def test_bounded_rows_carry_their_own_multipliers(pair):
    """0 < alpha < C rests on the margin, lambda on B, lambda* on -B."""
    problem, C, B = pair(Kernel("rbf", gamma=1.0)), 5.0, 1.3
    model = RMM(C=C, B=B, tol=1e-8).train(problem)
    u, f = problem.y * model.state.last.u, problem.y * decision(problem, model)
    np.testing.assert_allclose(f[(u > 0) & (u < C)], 1, atol=1e-6)
    np.testing.assert_allclose(f[u < 0], B, atol=1e-6)
    np.testing.assert_allclose(f[u > C], -B, atol=1e-6)


# -- the quadratically constrained form (5) ------------------------------------------------------


@pytest.fixture(scope="module")
def overlapping():
    """Forty rows with two features of two classes that overlap."""
    rng = np.random.default_rng(3)
    y = np.repeat([1.0, -1.0], [15, 25])
    return rng.normal(size=(40, 2)) * [3.0, 1.0] + y[:, None], y


@pytest.mark.parametrize(("C", "B"), [(0.3, 1.2), (2.0, 2.0)])
def test_the_machine_solves_the_qcqp_5_as_printed(overlapping, C, B):
    X, y = overlapping
    n = len(y)

    def split(v):
        return v[:2], v[2], v[3:]

    def decisions(v):
        w, b, _ = split(v)
        return X @ w + b

    Z = np.column_stack([X, np.ones(n), np.zeros((n, n))])  # gradients of the decisions
    margins = {
        "type": "ineq",
        "fun": lambda v: y * decisions(v) - 1 + split(v)[2],
        "jac": lambda v: y[:, None] * Z + np.hstack([np.zeros((n, 3)), np.eye(n)]),
    }
    spread = {
        "type": "ineq",
        "fun": lambda v: B**2 / 2 - decisions(v) ** 2 / 2,
        "jac": lambda v: -decisions(v)[:, None] * Z,
    }
    found = minimize(
        lambda v: v[:2] @ v[:2] / 2 + C * v[3:].sum(),
        np.concatenate([np.zeros(3), np.ones(n)]),
        jac=lambda v: np.concatenate([v[:2], [0], np.full(n, C)]),
        bounds=[(None, None)] * 3 + [(0, None)] * n,
        constraints=[margins, spread],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    machine = RMM(C=C, B=B, kernel="linear", tol=1e-9).fit(X, y)
    assert machine.fits_[0].extra["theta"] > B  # or the SVM would be the solution
    assert machine.fits_[0].objective == pytest.approx(found.fun, rel=1e-6)
    np.testing.assert_allclose(machine.coef_[0], found.x[:2], atol=1e-4)
    assert machine.intercept_[0] == pytest.approx(found.x[2], abs=1e-4)


@pytest.mark.parametrize(("C", "B"), [(0.3, 1.2), (2.0, 2.0)])
def test_the_solution_satisfies_the_kkt_conditions_of_5_and_closes_the_gap_to_6(overlapping, C, B):
    """The multiplier of ``f^2 / 2 <= B^2 / 2`` is that of ``|f| <= B``, divided by B.

    The paper prints a minus before b in the stationarity of w; the derivative has a plus. Its (6)
    lacks ``-(alpha'y)^2 / (2 lambda'1)``, which comes from the optimal b.
    """
    X, y = overlapping
    machine = RMM(C=C, B=B, kernel="poly", degree=1, tol=1e-10).fit(X, y)
    Z = np.column_stack([np.ones(len(y)), X])  # 1 + u'v
    u = np.zeros(len(y))
    u[machine.support_] = machine.dual_coef_[0]
    alpha = np.clip(y * u, 0.0, C)
    lam = np.abs(u - y * alpha) / B
    w, b, f = Z.T @ u, machine.intercept_[0], machine.decision_function(X)
    left = (np.eye(3) + (Z.T * lam) @ Z) @ w + b * Z.T @ lam
    np.testing.assert_allclose(left, Z.T @ (alpha * y), atol=1e-6)
    assert b == pytest.approx((alpha @ y - lam @ (Z @ w)) / lam.sum(), abs=1e-6)
    assert lam.sum() > 0
    assert np.abs(lam * (f**2 / 2 - B**2 / 2)).max() < 1e-6
    assert np.abs(alpha * (1 - np.maximum(0, 1 - y * f) - y * f)).max() < 1e-6
    assert np.abs((C - alpha) * np.maximum(0, 1 - y * f)).max() < 1e-6
    centre = Z.T @ lam / lam.sum()
    shape = (Z.T * lam) @ Z - lam.sum() * np.outer(centre, centre)
    v = (Z - centre).T @ (alpha * y)
    printed = alpha.sum() - v @ np.linalg.solve(np.eye(3) + shape, v) / 2 - B**2 / 2 * lam.sum()
    objective = machine.fits_[0].objective
    assert printed - (alpha @ y) ** 2 / (2 * lam.sum()) == pytest.approx(objective, rel=1e-6)
    assert printed > objective * (1 + 1e-3)  # as printed it is no lower bound


# -- the SVM is its limit ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_B_that_never_binds_gives_the_svm(pair, kernel):
    problem = pair(kernel)
    svm = train_svm(problem, 2.0)
    theta = np.abs(decision(problem, svm)).max()
    for machine in (RMM(C=2.0, B=theta * 1.01), RMM(C=2.0, B_fraction=1.0)):
        model = machine.train(problem)
        np.testing.assert_array_equal(model.coef, svm.coef)
        assert model.intercept == svm.intercept
        assert model.fit.objective == svm.fit.objective
        assert model.fit.extra["theta"] == pytest.approx(theta)


def test_B_fraction_is_a_share_of_the_way_from_1_to_theta(tiny):
    theta = np.abs(decision(tiny, train_svm(tiny, 10.0, tol=1e-7))).max()
    assert theta > 1.2
    for fraction in (0.1, 0.5, 1.0):
        model = RMM(C=10.0, B_fraction=fraction).train(tiny)
        assert model.fit.extra["B"] == pytest.approx(1 + fraction * (theta - 1))
        assert np.abs(decision(tiny, model)).max() <= model.fit.extra["B"] * (1 + 1e-12)


def test_solving_for_a_B_near_theta_finds_the_svm_too(tiny):
    """The limit holds for the solver as well, not only by the shortcut for B >= theta."""
    svm = train_svm(tiny, 2.0, tol=1e-9)
    found = RMM(C=2.0, B=float(np.abs(svm.state.f).max()) * (1 - 1e-10), tol=1e-9).train(tiny)
    assert found.fit.extra["B"] < found.fit.extra["theta"]
    assert found.fit.objective == pytest.approx(svm.fit.objective, rel=1e-8)
    np.testing.assert_allclose(decision(tiny, found), decision(tiny, svm), atol=1e-6)


def test_optimal_value_falls_as_B_grows(pair):
    problem = pair(Kernel("rbf", gamma=1.0))
    sizes = (0, 0.8, 1.0, 1.2, 1.5, 2.0, 4.0)
    values = [RMM(C=2.0, B=B).train(problem).fit.objective for B in sizes]
    assert np.all(np.diff(values) <= 1e-4 * np.array(values[:-1]))


# -- edges -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("B", [0, 5e-324, 1e-16, 1e-11])
@pytest.mark.parametrize("seed", [2, 38])
def test_B_next_to_zero_allows_only_a_constant(B, kernel, seed):
    """Rounding errors may exceed B: SMO took 10^7 steps, and the feature space overflowed."""
    X = np.random.RandomState(seed).randint(3, size=(11, 2)).astype(float)
    y = np.where(np.arange(11) % 2 == 0, 1.0, -1.0)  # six rows of the positive class
    problem = BinaryProblem(X, y, kernel)
    model = RMM(C=53.0, B=B, tol=1e-9).train(problem)
    np.testing.assert_array_equal(decision(problem, model), B)
    assert model.fit.objective == pytest.approx(53 * (11 - B), rel=1e-14)
    assert 0 <= model.fit.gap <= 2e-10 and model.fit.status is Status.OPTIMAL
    assert model.fit.iterations < 1000  # those of the SVM


@pytest.mark.parametrize("B", [0.5, 1.0, 1.1])
def test_one_row_a_class(B):
    """f is B at one end and -B at the other, or 1 and -1 where B allows it."""
    problem = BinaryProblem(np.array([[0.0], [2.0]]), np.array([-1.0, 1.0]), LINEAR)
    model = RMM(C=10.0, B=B).train(problem)
    end = min(B, 1.0)
    np.testing.assert_allclose(decision(problem, model), [-end, end], atol=1e-5)


def test_constant_features_end_at_the_majority_within_B():
    X, y = np.ones((9, 2)), np.array([0] * 6 + [1] * 3)
    machine = RMM(B=0.5).fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), -0.5, atol=1e-5)
    assert machine.fits_[0].status is Status.OPTIMAL


# -- paths -------------------------------------------------------------------------------------

POINTS = [{"C": C, "B_fraction": b} for b in (0.1, 1.0, 0.5) for C in (10.0, 1.0)]


def test_a_path_trains_the_svm_once_for_each_C(tiny, monkeypatch):
    trained = []

    def spy(problem, C, *args):
        trained.append(C)
        return train_svm(problem, C, *args)

    monkeypatch.setattr(rmm, "train_svm", spy)
    RMM().train_path(tiny, POINTS)
    assert trained == [1.0, 10.0]


def test_a_C_that_no_alpha_reaches_costs_no_step():
    """If all alphas are below C, the RMM at C is the RMM at any larger C.

    Its gap grows in proportion to C, and so must be within the tolerance at the larger one.
    """
    X = np.random.RandomState(0).normal(size=(60, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = BinaryProblem(X + 0.3 * y[:, None], y, Kernel("rbf", 0.5))
    machine, tol = RMM(), 1e-6
    points = [{"C": C, "B_fraction": b, "tol": tol} for C in (1e3, 2e3) for b in (1.0, 0.5, 0.1)]
    path = machine.train_path(problem, points)
    for small, large, point in zip(path[:3], path[3:], points[3:], strict=True):
        assert np.abs(small.coef).max() < 1e3
        assert (
            large.fit.iterations == 0 or 2 * small.fit.gap > RMM.gap_tolerance_factor * 0.01 * tol
        )
        alone = RMM(**point).train(problem)
        assert alone.fit.iterations > 0
        assert large.fit.status is Status.OPTIMAL
        assert large.fit.gap <= 1e-3  # what 60 slacks of tol at this C may add
        assert large.fit.bound == pytest.approx(alone.fit.bound, rel=1e-6)
        np.testing.assert_allclose(decision(problem, large), decision(problem, alone), atol=1e-4)


def test_points_of_a_path_that_differ_in_tol_do_not_share_the_svm(tiny):
    loose, exact = RMM(C=10.0).train_path(tiny, [{"tol": 0.3}, {"tol": 1e-9}])
    alone = RMM(C=10.0, tol=1e-9).train(tiny)
    assert exact.fit.extra == pytest.approx(alone.fit.extra, rel=1e-6)
    assert loose.fit.extra["theta"] != pytest.approx(alone.fit.extra["theta"], rel=1e-4)


def test_a_solution_that_is_known_is_found_without_iterations(tiny):
    """The last solution of the path has another B; the solution with the same B is better."""
    machine = RMM(C=10.0, B=1.5, tol=1e-6)
    solved = machine.train(tiny)
    between = machine.with_params({"B": 1.1}).train(tiny, solved)
    again = machine.train(tiny, between)
    assert between.fit.iterations > again.fit.iterations == 0
    assert again.fit.objective == solved.fit.objective


@pytest.mark.parametrize("form", ["bound", "relaxed"])
def test_a_clock_changes_no_answer(tiny, form):
    """Whatever the training starts from, and whatever was trained before."""
    plain = RMM(C=10.0, form=form, tol=1e-8).train(tiny)
    for timing in ("warm", "cold"):
        machine = RMM(C=10.0, form=form, timing=timing, tol=1e-8)
        alone, *_, again = machine.train_path(tiny, [{}, {"C": 20.0}, {}])
        for model in (alone, again):
            assert model.fit.objective == pytest.approx(plain.fit.objective, rel=1e-6)
            assert model.fit.extra["B"] == pytest.approx(plain.fit.extra["B"], rel=1e-6)
            assert model.fit.iterations == alone.fit.iterations
            for part in ("gram", "svm", "rmm"):
                assert model.fit.extra[f"{part}_cpu_seconds"] >= 0


def test_names_of_the_figure_are_the_rmm_with_a_clock():
    machine = make_machine("rmm_b3_cold", C=10.0)
    assert (machine.B_fraction, machine.timing, machine.C) == (0.1, "cold", 10.0)
    assert alias_of("rmm_b3_cold").version == 1  # 0 did not time the Gram matrix


def test_auto_grid_is_a_grid_of_fractions():
    name, values = RMM.search_space.auto_grids["B"]
    assert name == "B_fraction"
    assert values[0] == 1.0
    assert all(RMM.parameters[name].problem(value) is None for value in values)


# -- the whole classifier ----------------------------------------------------------------------


def test_many_classes_stay_within_the_bound_of_each_pair(real_data):
    data = real_data("usps")
    X, y = data.X[:500], data.y[:500]
    machine = RMM(C=10, gamma=2.0**-7, B_fraction=0.25).fit(X, y)
    decisions = machine.pairwise_decision_function(X)
    for k, fit in enumerate(machine.fits_):
        rows = np.isin(y, fit.pair)
        assert np.abs(decisions[rows, k]).max() <= fit.extra["B"] + 1e-9
        assert fit.gap < 1e-3


@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_the_gap_is_small_where_many_rows_share_in_it(real_data, C):
    data = real_data("usps")
    rows = np.flatnonzero((data.y == 3) | (data.y == 5))[:500]
    fit = RMM(C=C, gamma=2.0**-6, B_fraction=0.02).fit(data.X[rows], data.y[rows]).fits_[0]
    assert str(fit.status) == "optimal"
    assert 0 <= fit.gap <= 100 * RMM().tol


def test_costs_of_the_dual(tiny):
    """Cost of u beyond y C is B a unit, and below zero B a unit the other way."""
    dual = rmm_dual(tiny.gram, tiny.y, 2.0, 1.5)
    positive = int(np.argmax(tiny.y > 0))
    unit = np.eye(30)[positive]
    assert dual.cost(2.0 * unit) == pytest.approx(-2)
    assert dual.cost(3.0 * unit) == pytest.approx(-2 + 1.5)
    assert dual.cost(-1.0 * unit) == pytest.approx(1.5)


@pytest.mark.parametrize("seed", range(3))
def test_a_nearly_hard_margin_leaves_no_gap(seed):
    """A tolerance that allows no step is no reason not to try the tighter ones."""
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(20, 50)), np.where(rng.uniform(size=20) > 0.5, 1, -1)
    assert RMM(C=1, kernel="poly", degree=2).fit(X, y).fits_[0].status is Status.OPTIMAL


def test_a_bound_that_rounding_violates_is_made_slightly_smaller():
    """Scaling w and b into the bound costs slack, up to half of the objective if C is large."""
    y = np.arange(150) % 2
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(150, 30))
        fit = RMM(kernel="poly", C=1e7, B=1.05).fit(X, y).fits_[0]
        assert fit.status is Status.OPTIMAL
