"""M4: the SVM and the MPM as its limits, its invariances and traps, cone solvers as oracles."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.minimax_family import (
    LINEAR,
    affine,
    cone_program_value,
    covariances,
    gaussians,
    kernel_forms,
    minmax,
    problem,
    spread,
    twins,
)
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import M4, MPM
from mmbench.machines.minimax.coordinates import LinearCoordinates
from mmbench.machines.minimax.margin_problem import MarginProblem
from mmbench.machines.minimax.mean import least_penalty, solve_mean
from mmbench.machines.minimax.spread_program import fixed_program

RBF = Kernel("rbf", 0.5)
POLY = Kernel("poly", degree=2)


def unit(v):
    return v / np.linalg.norm(v)


def m4(kernel=LINEAR, **parameters):
    return M4(
        kernel=kernel.name, **({"ridge": 1e-3 if kernel is not LINEAR else 1e-8} | parameters)
    )


def margin_value(model, X, y, ridge, C):
    """Return the objective "margin" at w and b, and the spreads, from the data themselves."""
    sx, sy = (np.sqrt(model.w @ S @ model.w) for S in covariances(X, y, ridge))
    b = model.intercept - (sx - sy) / (sx + sy)
    return sx + sy + C * np.maximum(0, 1 - y * (X @ model.w + b)).sum(), sx, sy


def separable(seed=0, d=3):
    return gaussians(seed=seed, n_x=15, n_y=12, d=d, shift=7.0)


# -- certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.5, 10.0, 1000.0])
def test_certificate_follows_from_w_and_b(factor):
    X, y = gaussians()
    model = m4(C_factor=factor).train(problem(X, y))
    fit = model.fit
    value, sx, sy = margin_value(model, X, y, 1e-8, fit.extra["C"])
    assert fit.objective == pytest.approx(value)
    assert fit.extra["rho"] == pytest.approx(2 / (sx + sy))
    assert fit.status is Status.OPTIMAL
    assert fit.bound <= value <= fit.bound * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["auto", "clarabel"])
def test_kernel_certificate_follows_from_the_coefficients(solver):
    X, y = gaussians()
    data = problem(X, y, RBF)
    model = m4(RBF, solver=solver).train(data)
    sx, sy = (spread(model.coef, form) for form in kernel_forms(data.gram, y, 1e-3))
    f = data.gram @ model.coef + model.intercept - (sx - sy) / (sx + sy)
    slack = np.maximum(0, 1 - y * f).sum()
    assert model.fit.objective == pytest.approx(sx + sy + model.fit.extra["C"] * slack, rel=1e-6)


def test_objective_is_concave_and_rising_in_C():
    X, y = gaussians()
    prices = np.linspace(0.01, 1.0, 12)
    values = [m4(C=C).train(problem(X, y)).fit.objective for C in prices]
    assert np.all(np.diff(values) > 0)
    assert np.all(np.diff(values, 2) < 1e-6)


def test_mean_certificate_is_the_paper_s_objective():
    X, y = gaussians(shift=0.8)
    model = m4(normalization="mean", C_factor=2.0).train(problem(X, y))
    fit, (Sx, Sy) = model.fit, covariances(X, y, 1e-8)
    rho, C = fit.extra["rho"], fit.extra["C"]
    need = rho * np.where(y > 0, np.sqrt(model.w @ Sx @ model.w), np.sqrt(model.w @ Sy @ model.w))
    slack = np.maximum(0, need - y * (X @ model.w + model.intercept)).sum()
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    assert model.w @ delta == pytest.approx(1)
    assert fit.objective == pytest.approx(C * slack - rho, abs=1e-7)
    assert fit.bound <= fit.objective <= fit.bound + 1e-5


SLOW = pytest.mark.slow

# -- routes ------------------------------------------------------------------------------------

SETS = ("ionosphere", "sonar", "pima", "heart", "vote", "breast_wisconsin", "twonorm")
QUICK = [(name, "linear") for name in SETS] + [("sonar", "rbf")]
CASES = [
    pytest.param(*case, marks=[] if solver != "reference" and case[:2] in QUICK else SLOW)
    for case in product(SETS, ("linear", "rbf"), ("clarabel", "ecos", "reference"))
    for name, kernel, solver in [case]
    if solver != "reference" or kernel == "linear" or name in ("heart", "sonar")
]


@pytest.mark.parametrize(("name", "kernel", "solver"), CASES)
def test_all_routes_reach_one_objective(real_data, name, kernel, solver):
    if solver == "ecos":
        pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    data = real_data(name)
    X, y = minmax(data.X), np.where(data.y == np.unique(data.y)[1], 1.0, -1.0)
    width = Kernel(kernel, 1.0) if kernel == "rbf" else LINEAR
    for factor in (1.5, 10.0) if kernel == "rbf" else (1.5, 10.0, 100.0):
        fast, other = (
            m4(width, C_factor=factor, solver=s).train(problem(X, y, width)).fit
            for s in ("auto", solver)
        )
        assert fast.status in (Status.OPTIMAL, Status.TRIVIAL)  # Pima's classes differ in size
        assert other.objective == pytest.approx(fast.objective, rel=1e-6)
        assert other.bound == pytest.approx(fast.objective, rel=1e-5)


@pytest.mark.parametrize("kernel", [LINEAR, RBF, POLY], ids=lambda k: k.name)
@pytest.mark.parametrize("factor", [1.2, 5.0, 1e4])
def test_every_route_reaches_the_objective_of_a_cone_program(kernel, factor):
    X, y = gaussians(d=4)
    values = [
        m4(kernel, C_factor=factor, solver=solver).train(problem(X, y, kernel)).fit.objective
        for solver in ("gram", "clarabel", "auto")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert values[2] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.parametrize("kernel", [LINEAR, RBF], ids=lambda k: k.name)
def test_a_path_finds_what_single_trainings_find(kernel):
    X, y = gaussians()
    points = [
        {"C_factor": factor, "ridge": ridge}
        for factor in (30.0, 1.5, 5.0)
        for ridge in (1e-3, 1e-2)
    ]
    machine = m4(kernel)
    path = machine.train_path(problem(X, y, kernel), points)
    for point, model in zip(points, path, strict=True):
        alone = machine.with_params(point).train(problem(X, y, kernel))
        assert model.fit.objective == pytest.approx(alone.fit.objective, rel=1e-6)


@pytest.mark.parametrize("solver", ["reference", "ecos"])
def test_hard_margin_routes_agree(real_data, solver):
    if solver == "ecos":
        pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    data = real_data("sonar")
    X, y = minmax(data.X), np.where(data.y == data.y[0], 1.0, -1.0)
    fast, other = (m4(margin="hard", solver=s).train(problem(X, y)).fit for s in ("auto", solver))
    assert fast.status is Status.OPTIMAL
    assert other.objective == pytest.approx(fast.objective, rel=1e-6)
    assert fast.max_violation < 1e-9
    assert fast.extra["rho"] <= fast.extra["kappa"]


def no_margin_slack(rows, y, delta):
    """Return the least sum of slacks at rho = 0, with ``w'delta = 1``: a linear program."""
    n, k = rows.shape
    found = linprog(
        np.r_[np.zeros(k + 1), np.ones(n)],
        A_ub=-np.column_stack([y[:, None] * rows, y, np.eye(n)]),
        b_ub=np.zeros(n),
        A_eq=np.r_[delta, np.zeros(n + 1)][None],
        b_eq=[1.0],
        bounds=[(None, None)] * (k + 1) + [(0, None)] * n,
    )
    return found.fun


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_mean_without_margin_is_tried(solver):
    """Where slack is dear the best rho is zero; the spreads play no part there."""
    X, y = gaussians(shift=0.5, n_x=30, n_y=20)
    fit = m4(normalization="mean", C_factor=20.0, solver=solver).train(problem(X, y)).fit
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    at_zero = fit.extra["C"] * no_margin_slack(X, y, delta)
    assert fit.status is Status.OPTIMAL
    assert fit.objective <= at_zero * (1 + 1e-6)
    assert fit.bound <= at_zero


@pytest.mark.parametrize("solver", ["auto", "ecos"])
@pytest.mark.parametrize("kernel", [LINEAR, POLY], ids=["linear", "poly"])
def test_mean_without_margin_is_the_objective_of_the_decisions(kernel, solver):
    """No weight bounds a sum of features at rho = 0; its rounding errors separate no classes."""
    X, y = gaussians(shift=0.5, n_x=30, n_y=20, d=2)
    X = X if kernel is POLY else np.column_stack([X, 2 * X[:, 0], X.sum(axis=1)])
    machine = M4(kernel=kernel.name, degree=2, normalization="mean", C_factor=30, solver=solver)
    fit = machine.fit(X, y).fits_[0]
    decision = machine.decision_function(X)
    decision /= decision[y > 0].mean() - decision[y < 0].mean()
    assert fit.status is Status.OPTIMAL and fit.extra["rho"] == 0
    slack = np.maximum(0, -y * decision).sum()
    assert fit.extra["C"] * slack == pytest.approx(fit.objective, rel=1e-6)


def test_mean_ends_where_rho_is_nearly_zero(real_problem):
    """No multipliers that a solver finds close the gap to an optimum of nearly zero."""
    wide = real_problem("pima", 0, 1, Kernel("rbf", 2.0**-9))
    machine = m4(Kernel("rbf", 2.0**-9), gamma=2.0**-9, ridge=1e-2, tol=1e-3)
    fit = machine.with_params({"normalization": "mean", "C_factor": 10.0}).train(wide).fit
    assert fit.iterations < 3000  # of the solver, 30 to 60 each time; 300 times before
    assert fit.bound <= fit.objective
    assert abs(fit.objective) < 0.05 * fit.extra["kappa"]


@pytest.mark.parametrize("factor", [2.0, 1000.0])
def test_mean_is_certified_where_rho_is_a_small_share_of_kappa(factor):
    wide = Kernel("rbf", 0.05)
    machine = m4(wide, ridge=1e-2, normalization="mean", C_factor=factor)
    fit = machine.train(problem(*gaussians(shift=0.3), wide)).fit
    assert fit.status is Status.OPTIMAL
    assert fit.extra["rho"] < 0.01 * fit.extra["kappa"]


@pytest.mark.parametrize("factor", [20.0, 1000.0])
def test_mean_is_certified_with_a_small_ridge(factor):
    """kappa is 1715: without units in which it is 1 the gaps are 2e-6 and 3e-6."""
    X, y = load_wine(return_X_y=True)
    index = np.random.default_rng(0).permutation(np.flatnonzero(y < 2))[:80]
    X, y = StandardScaler().fit_transform(X[index]), np.where(y[index] == 1, 1.0, -1.0)
    data = problem(X, y, Kernel("rbf", 0.1))
    model = m4(data.kernel, ridge=1e-8, normalization="mean", C_factor=factor).train(data)
    fit, f = model.fit, data.gram @ model.coef + model.intercept
    spreads = [spread(model.coef, form) for form in kernel_forms(data.gram, y, 1e-8)]
    slack = np.maximum(0, fit.extra["rho"] * np.where(y > 0, *spreads) - y * f).sum()
    assert f[y > 0].mean() - f[y < 0].mean() == pytest.approx(1, rel=1e-9)
    assert fit.objective == pytest.approx(fit.extra["C"] * slack - fit.extra["rho"], rel=1e-6)
    assert fit.status is Status.OPTIMAL
    assert fit.gap < 1e-6


def test_mean_looks_as_far_as_there_may_be_a_better_rho():
    X, y = gaussians(seed=4, shift=0.5)
    fit = m4(normalization="mean", C_factor=1.2).train(problem(X, y)).fit
    data = LinearCoordinates(problem(X, y)).diagonal(1e-8)
    data = MarginProblem(data.rows, y, data.delta, data.var_x, data.var_y, fit.extra["C"])
    values = [-_fixed_value(data, rho) for rho in np.linspace(0, 1.5, 31)]
    assert fit.status is Status.OPTIMAL
    assert fit.bound <= fit.objective <= min(values) + 1e-6
    assert fit.objective == pytest.approx(min(values), rel=1e-2)
    assert fit.extra["rho"] > 3 * fit.extra["kappa"]


@pytest.mark.parametrize(("solver", "nu"), [("reference", 0.0), ("reference", 0.8), ("ecos", 0.8)])
def test_mean_routes_agree(solver, nu):
    if solver == "ecos":
        pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    X, y = gaussians(shift=0.8, n_x=25, n_y=20)
    fits = [
        m4(normalization="mean", C_factor=2.0, solver=s, nu=nu).train(problem(X, y)).fit
        for s in ("auto", solver)
    ]
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-6)


# -- weighted margins and the Ivanov form -------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        *({"theta": theta} for theta in (0.2, 0.8, "prior")),
        {"theta": 0.3, "solver": "reference"},
        {"theta": 0.3, "class_weight": {1.0: 3.0, -1.0: 0.5}},
        *({"A": A} for A in (0.01, 1.0, 2.0, 5.0)),
        {"A": 1.5, "theta": 0.4, "class_weight": {1.0: 3.0, -1.0: 0.5}},
        {"A": 1.5, "solver": "reference"},
    ],
    ids=str,
)
def test_weighted_margins_and_the_ivanov_form_are_cone_programs(form):
    X, y = gaussians(shift=0.8)
    fit = M4(**form).fit(X, y).fits_[0]
    theta = form.get("theta", 0.5)
    share = (y > 0).mean() if theta == "prior" else theta
    roots = [np.linalg.cholesky(S).T for S in covariances(X, y, 1e-8)]
    spreads = list(zip(roots, (2 * share, 2 * (1 - share)), strict=True))
    weights = np.where(y > 0, 3.0, 0.5) if "class_weight" in form else 1.0
    penalty = {name: fit.extra[name] for name in ("C", "A") if name in fit.extra}
    value = cone_program_value(X, y, spreads, weights=weights, **penalty)
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(value, rel=1e-6)
    assert fit.bound <= value * (1 + 1e-8)
    assert fit.extra["rho"] >= fit.extra.get("A", 0.0) * (1 - 1e-12)


def test_weights_of_margins_are_the_ratio_of_the_margins():
    X, y = separable()
    machine = M4(margin="hard", theta=0.8, tol=1e-9).fit(X, y)
    f, w = machine.decision_function(X), machine.coef_[0]
    sx, sy = (np.sqrt(w @ S @ w) for S in covariances(X, y, 1e-8))
    assert (f[y > 0].min() / sx) / (-f[y < 0].max() / sy) == pytest.approx(4, rel=1e-6)


def test_the_ivanov_form_and_the_penalty_have_the_same_solutions():
    X, y = gaussians(shift=0.8)
    soft = M4(C_factor=3.0, tol=1e-9).fit(X, y)
    ivanov = M4(A=soft.fits_[0].extra["rho"], tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ivanov.coef_, soft.coef_, rtol=1e-5)
    assert ivanov.intercept_ == pytest.approx(soft.intercept_, abs=1e-5)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_ivanov_form_without_slack_is_the_hard_margin(share):
    X, y = separable()
    hard = M4(margin="hard").fit(X, y)
    ivanov = M4(A=share * (1 - 1e-9) * hard.fits_[0].extra["rho"]).fit(X, y)
    assert ivanov.fits_[0].objective == 0 == ivanov.fits_[0].gap
    np.testing.assert_array_equal(ivanov.coef_, hard.coef_)


def test_the_weighted_margins_of_the_paper_are_unbounded():
    """In (34), b is free: only the margins' ratio of the parameter theta bounds them."""
    X, y = gaussians()
    w, theta = MPM().fit(X, y).coef_[0], (y > 0).mean()
    sx, sy = (np.sqrt(w @ S @ w) for S in covariances(X, y))
    means = [w @ X[side].mean(axis=0) for side in (y > 0, y < 0)]
    sign = np.sign(theta / sx - (1 - theta) / sy)
    b = sign * 10.0 ** np.arange(2, 7)
    values = theta * (means[0] + b) / sx - (1 - theta) * (means[1] + b) / sy
    assert values[0] < 0.2 * values[1] < 0.1 * values[-1]


@pytest.mark.parametrize(("seed", "C"), [(0, 0.1), (1, 0.1), (5, 0.3)])
def test_the_precise_form_is_an_m4_with_weights(seed, C):
    """(23)-(26): a stationary point, its multipliers, and the M4 that they determine."""
    X, y = gaussians(seed=seed, n_x=14, n_y=10, d=2, shift=1.0)
    S, n, sides = covariances(X, y), len(y), (y > 0, y < 0)
    delta = X[sides[0]].mean(axis=0) - X[sides[1]].mean(axis=0)

    def margins(v):
        spreads = [np.sqrt(v[:2] @ own @ v[:2]) for own in S]
        return y * (X @ v[:2] + v[2]) / np.where(y > 0, *spreads) - v[3] + v[4:]

    w = np.linalg.solve(sum(S), delta)
    start = np.concatenate([w / (w @ delta), [-0.5 * w @ X.mean(axis=0), 0.5], np.zeros(n)])
    start[4:] = np.maximum(0, -margins(start))
    found = minimize(
        lambda v: C * v[4:].sum() - v[3],
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": margins},
            {"type": "eq", "fun": lambda v: v[:2] @ delta - 1},
        ],
        bounds=[(None, None)] * 4 + [(0, None)] * n,
        options={"maxiter": 2000, "ftol": 1e-15},
    ).x
    w, rho, xi = found[:2], found[3], found[4:]
    spreads = [np.sqrt(w @ own @ w) for own in S]
    of_row = np.where(y > 0, *spreads)
    slopes = np.where((y > 0)[:, None], *(own @ w / s for own, s in zip(S, spreads, strict=True)))
    # per unit of a multiplier: the derivatives of the Lagrangian in w, b and rho
    change = np.column_stack([y[:, None] * X - (rho - xi)[:, None] * slopes, y, of_row])
    a, free = np.where(xi > 1e-7, C / of_row, 0.0), (xi <= 1e-7) & (margins(found) < 1e-6)
    a[free] = np.linalg.lstsq(change[free].T, np.array([0, 0, 0, 1]) - change.T @ a)[0]
    np.testing.assert_allclose(a @ change, [0, 0, 0, 1], atol=1e-7)
    of_class = [float((a * (rho - xi))[side].sum()) for side in sides]
    machine = M4(
        theta=of_class[0] / sum(of_class),
        C=2 * C / sum(of_class),
        class_weight={1.0: 1 / spreads[0], -1.0: 1 / spreads[1]},
        ridge=0,
        tol=1e-9,
    ).fit(X, y)
    np.testing.assert_allclose(unit(machine.coef_[0]), unit(w), atol=1e-6)


# -- the SVM and the MPM as limits -------------------------------------------------------------


def whitened_twins():
    """Return separable classes that both have the identity for covariance."""
    X, y = twins(n=20, shift=0.0)
    x = X[y > 0] - X[y > 0].mean(axis=0)
    x = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T, bias=True))).T
    return np.vstack([x + 4.0, -x]), y


def test_hard_margin_on_white_classes_is_the_hard_svm():
    X, y = whitened_twins()
    svm = SVC(C=1e8, kernel="linear", tol=1e-8).fit(X, y)
    model = m4(margin="hard", ridge=0).train(problem(X, y))
    w = svm.coef_[0]
    np.testing.assert_allclose(unit(model.w), unit(w), atol=1e-5)
    assert model.intercept / np.linalg.norm(model.w) == pytest.approx(
        svm.intercept_[0] / np.linalg.norm(w), abs=1e-5
    )
    assert model.fit.extra["rho"] == pytest.approx(1 / np.linalg.norm(w), rel=1e-6)


@pytest.mark.parametrize("factor", [2.0, 20.0])
def test_soft_margin_on_classes_of_one_shape_is_an_svm_on_white_data(factor):
    """2 ||v|| + C sum xi has the gradient of 1/2 ||v||^2 + (C ||v|| / 2) sum xi."""
    X, y = twins(shift=1.0)
    model = m4(C_factor=factor, ridge=0, tol=1e-9).train(problem(X, y))
    L = np.linalg.cholesky(covariances(X, y)[0])
    v = L.T @ model.w
    white = X @ np.linalg.inv(L).T
    price = model.fit.extra["C"] * np.linalg.norm(v) / 2
    svm = SVC(C=price, kernel="linear", tol=1e-8).fit(white, y)
    np.testing.assert_allclose(v, svm.coef_[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("normalization", ["margin", "mean"])
@pytest.mark.parametrize("kernel", [LINEAR, RBF], ids=lambda k: k.name)
def test_full_reduction_is_the_mpm(normalization, kernel):
    X, y = gaussians()
    machine = m4(kernel, nu=1.0, normalization=normalization)
    model, mpm = (
        machine_.train(problem(X, y, kernel))
        for machine_ in (machine, MPM(kernel=kernel.name, ridge=machine.ridge))
    )
    assert model.fit.extra["rho"] == pytest.approx(mpm.fit.extra["kappa"])
    assert model.fit.extra["kept"] == 0
    w, v = (m.w if kernel is LINEAR else m.coef for m in (model, mpm))
    scale = np.linalg.norm(w) / np.linalg.norm(v)
    np.testing.assert_allclose(w, scale * v, atol=1e-8 * np.abs(w).max())
    assert model.intercept == pytest.approx(scale * mpm.intercept)


@pytest.mark.parametrize(
    ("normalization", "below"), [("margin", Status.TRIVIAL), ("mean", Status.UNBOUNDED)]
)
@pytest.mark.parametrize("share", [0.99, 1.01])
def test_full_reduction_begins_where_the_slack_of_all_rows_costs_the_margin(
    normalization, below, share
):
    """With "mean" at C = kappa / N, as in section III of the paper."""
    X, y = gaussians()
    kappa = MPM(ridge=1e-8).train(problem(X, y)).fit.extra["kappa"]
    least = (kappa if normalization == "mean" else 1 / kappa) / len(y)
    machine = m4(nu=1.0, normalization=normalization, C=share * least).fit(X, y)
    fit = machine.fits_[0]
    if share < 1:
        assert fit.status is below
        np.testing.assert_array_equal(machine.predict(X), 1.0)  # the larger class
    else:
        assert fit.status is Status.OPTIMAL
        assert fit.extra["rho"] == pytest.approx(kappa)


@pytest.mark.parametrize("normalization", ["margin", "mean"])
def test_no_reduction_below_the_smallest_distance(normalization):
    X, y = gaussians(shift=0.8)
    full, reduced = (
        m4(nu=nu, normalization=normalization, C_factor=2.0).train(problem(X, y)).fit
        for nu in (0.0, 1e-9)
    )
    assert reduced.extra["kept"] == len(y)
    assert reduced.objective == pytest.approx(full.objective)


def test_reduction_keeps_the_points_that_the_paper_keeps():
    X, y = gaussians()
    kept = 0
    for side, S in zip((y > 0, y < 0), covariances(X, y, 1e-8), strict=True):
        centred = X[side] - X[side].mean(axis=0)
        squares = np.einsum("ij,ij->i", centred, np.linalg.solve(S, centred.T).T)
        kept += int((squares / (1 + squares) >= 0.75).sum())
    fit = m4(nu=0.75).train(problem(X, y)).fit
    assert fit.extra["kept"] == kept
    assert 0 < kept < len(y)
    assert fit.status is Status.OPTIMAL


@pytest.mark.parametrize("margin", ["hard", "soft"])
def test_lda_variant_is_an_svm_in_the_common_metric(margin):
    X, y = separable()
    model = m4(margin=margin, variant="lda", ridge=0, C=1e4).train(problem(X, y))
    L = np.linalg.cholesky(sum(covariances(X, y)))
    svm = SVC(C=1e8, kernel="linear", tol=1e-8).fit(X @ np.linalg.inv(L).T, y)
    np.testing.assert_allclose(unit(L.T @ model.w), unit(svm.coef_[0]), atol=1e-5)
    assert model.fit.extra["rho"] == pytest.approx(1 / np.linalg.norm(svm.coef_), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_hard_margin_is_below_the_mpm_s_kappa(seed):
    X, y = separable(seed)
    fit = m4(margin="hard").train(problem(X, y)).fit
    kappa = MPM().train(problem(X, y)).fit.extra["kappa"]
    assert fit.status is Status.OPTIMAL
    assert fit.extra["rho"] <= kappa
    assert fit.extra["kappa"] == pytest.approx(kappa)


def test_hard_margin_is_the_limit_of_the_soft_ones():
    X, y = separable()
    hard = m4(margin="hard").train(problem(X, y)).fit
    values = {
        name: m4(C_factor=1e6, normalization=name).train(problem(X, y)).fit.extra["rho"]
        for name in ("margin", "mean")
    }
    assert values == pytest.approx(dict.fromkeys(values, hard.extra["rho"]), rel=1e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("form", [{}, {"normalization": "mean"}, {"margin": "hard"}], ids=str)
def test_a_reduction_that_leaves_one_class_keeps_its_points_without_slack(sign, form):
    X, y = gaussians(n_x=60, n_y=20)
    X[0] -= 20.0  # the only point far from its mean
    y = sign * y
    model = m4(nu=0.97, C_factor=20.0, ridge=0, **form).train(problem(X, y))
    fit, (Sx, Sy) = model.fit, covariances(X, y)
    assert fit.status is Status.OPTIMAL
    assert fit.extra["kept"] == 1
    sx, sy = (np.sqrt(model.w @ S @ model.w) for S in (Sx, Sy))
    needed = fit.extra["rho"] * (sx if sign > 0 else sy)
    assert sign * (X[0] @ model.w + model.intercept) >= needed * (1 - 1e-9)


# -- invariances -------------------------------------------------------------------------------

FORMS = [
    {"C_factor": 3.0},
    {"C_factor": 3.0, "nu": 0.7},
    {"C_factor": 2.0, "normalization": "mean"},
    {"C_factor": 3.0, "variant": "lda"},
]


def test_no_affine_map_changes_the_hard_margin():
    X, y = separable(d=4)
    models = [m4(margin="hard", ridge=0).fit(Z, y) for Z in (X, affine(X))]
    assert models[0].fits_[0].extra["rho"] == pytest.approx(models[1].fits_[0].extra["rho"])
    f, g = (m.decision_function(Z) for m, Z in zip(models, (X, affine(X)), strict=True))
    np.testing.assert_allclose(f, g, atol=1e-5 * np.abs(f).max())


def test_each_row_twice_at_half_the_price_is_the_same():
    X, y = gaussians()
    once = m4(C=0.2).train(problem(X, y))
    twice = m4(C=0.1).train(problem(np.vstack([X, X]), np.r_[y, y]))
    assert twice.fit.objective == pytest.approx(once.fit.objective, rel=1e-6)
    np.testing.assert_allclose(twice.w, once.w, rtol=1e-3, atol=1e-4)
    assert twice.fit.extra["kappa"] == pytest.approx(once.fit.extra["kappa"])


# -- traps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_mean_is_bounded_from_the_least_penalty_on(factor):
    X, y = gaussians(shift=0.8)
    data = LinearCoordinates(problem(X, y)).diagonal(1e-8)
    data = MarginProblem(data.rows, y, data.delta, data.var_x, data.var_y, C=1.0)
    price = least_penalty(data)
    assert price == pytest.approx(MPM(ridge=1e-8).train(problem(X, y)).fit.extra["kappa"] / 25)
    machine = m4(normalization="mean", C=factor * price)
    fit = machine.train(problem(X, y)).fit
    far = MarginProblem(data.rows, y, data.delta, data.var_x, data.var_y, factor * price)
    criterion = [_fixed_value(far, rho) for rho in (20.0, 200.0)]
    if factor < 1:
        assert fit.status is Status.UNBOUNDED
        assert criterion[1] > criterion[0]
        np.testing.assert_array_equal(machine.fit(X, y).predict(X), 1.0)  # the larger class
    else:
        assert fit.status is Status.OPTIMAL
        assert criterion[1] < criterion[0] < -fit.objective
        assert solve_mean(far).rho == pytest.approx(fit.extra["rho"])


def _fixed_value(data, rho):
    from mmbench.machines.minimax.spread_program import solve_program

    program = fixed_program(data, rho)
    return rho - data.C * program.value(solve_program(program, "clarabel", 1e-6).x)


@pytest.mark.parametrize("C", [1e-300, 1e-200])
def test_the_smallest_C_gives_the_larger_class(C):
    X, y = gaussians()
    fit = m4(C=C).train(problem(X, y)).fit
    assert fit.status is Status.TRIVIAL
    assert fit.objective == pytest.approx(50 * C, rel=1e-9, abs=0)


def test_small_price_gives_the_larger_class_and_says_so():
    X, y = gaussians()
    machine = m4(C_factor=0.5).fit(X, y)
    fit = machine.fits_[0]
    assert fit.status is Status.TRIVIAL
    assert fit.objective == pytest.approx(fit.extra["C"] * 2 * 25)
    assert fit.bound == pytest.approx(fit.objective)
    np.testing.assert_array_equal(machine.predict(X), 1.0)


def test_equal_classes_have_nothing_to_gain_below_a_factor_of_one():
    X, y = gaussians(n_x=30, n_y=30)
    below, above = (m4(C_factor=f).train(problem(X, y)).fit.status for f in (0.999, 1.001))
    assert below is Status.TRIVIAL
    assert above is Status.OPTIMAL


def test_kernel_almost_without_ridge_is_degenerate():
    X, y = gaussians()
    fits = [
        m4(RBF, ridge=ridge, margin="hard").train(problem(X, y, RBF)).fit
        for ridge in (1e-2, 1e-4, 1e-6)
    ]
    # the last digits of Clarabel's solution depend on the processor and the number of threads
    assert all(fit.gap < 1e-5 for fit in fits)
    assert {fit.status for fit in fits} <= {Status.OPTIMAL, Status.INACCURATE}
    rho = [fit.extra["rho"] for fit in fits]
    assert rho[0] < rho[1] / 3 < rho[2] / 9


def test_hard_margin_is_infeasible_by_proof_alone(monkeypatch):
    X, y = separable()
    unsolved = SimpleNamespace(x=np.zeros(6), violation=0.0, bound=-np.inf)
    monkeypatch.setattr(
        "mmbench.machines.minimax.soft.solve_lp", lambda *_args, **_options: unsolved
    )
    fit = m4(margin="hard").train(problem(X, y)).fit
    assert fit.status is Status.FAILED
    assert "not known to be separable" in fit.extra["reason"]


@pytest.mark.parametrize("seed", range(5))
def test_hard_margin_of_many_coordinates_is_found(seed):
    X, y = gaussians(seed=seed, n_x=60, n_y=60, d=110, shift=0.2)
    assert m4(margin="hard").train(problem(X, y)).fit.status is Status.OPTIMAL


def test_hard_margin_on_overlapping_classes_says_so_and_still_decides():
    X, y = gaussians(shift=0.5)
    hard, soft = M4(margin="hard").fit(X, y), M4().fit(X, y)
    assert hard.fits_[0].status is Status.INFEASIBLE
    assert "not separable" in hard.fits_[0].extra["reason"]
    np.testing.assert_array_equal(hard.predict(X), soft.predict(X))


def test_equal_means():
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0]])
    y = [0, 0, 0, 0, 1, 1]
    status = {
        name: M4(ridge=1e-3, **parameters).fit(X, y).fits_[0].status
        for name, parameters in {
            "margin": {"C": 1.0},
            "mean": {"normalization": "mean"},
            "hard": {"margin": "hard"},
        }.items()
    }
    assert status == {
        "margin": Status.TRIVIAL,
        "mean": Status.INFEASIBLE,
        "hard": Status.INFEASIBLE,
    }


@pytest.mark.parametrize("form", [*FORMS, {"margin": "hard"}], ids=str)
def test_one_row_against_many(form):
    X, y = gaussians(n_y=1)
    fit, other = (m4(solver=s, **form).train(problem(X, y)).fit for s in ("auto", "clarabel"))
    assert fit.status is other.status in (Status.OPTIMAL, Status.TRIVIAL, Status.UNBOUNDED)
    if fit.status is not Status.UNBOUNDED:
        assert fit.bound <= fit.objective + 1e-6 * abs(fit.objective)
        assert fit.objective == pytest.approx(other.objective, rel=1e-5)


@pytest.mark.parametrize("form", [*FORMS, {"margin": "hard"}], ids=str)
def test_singular_covariances_without_ridge(form):
    X, y = gaussians(shift=0.8)
    padded = np.column_stack([X, np.full(len(X), 7.0), X[:, 0] - X[:, 1]])
    f, g = (m4(ridge=0, tol=1e-8, **form).fit(Z, y).decision_function(Z) for Z in (X, padded))
    np.testing.assert_allclose(f, g, atol=1e-3 * np.abs(f).max())


@pytest.mark.parametrize("machine", [M4(ridge=0), MPM(ridge=0)], ids=repr)
def test_a_direction_without_variance_separates_for_nothing(machine):
    X, y = gaussians(shift=0.0)
    flagged = np.column_stack([X, y])
    machine.fit(flagged, y)
    assert machine.fits_[0].status is Status.UNBOUNDED
    assert machine.score(flagged, y) == 1


def test_more_features_than_rows():
    X, y = gaussians(n_x=8, n_y=7, d=30)
    model = m4(ridge=0.1).train(problem(X, y))
    value, *_ = margin_value(model, X, y, 0.1, model.fit.extra["C"])
    assert model.fit.objective == pytest.approx(value)
    assert model.fit.bound == pytest.approx(value, rel=1e-6)


def test_with_nu_1_the_m4_is_the_mpm_without_a_ridge_too():
    """One class has fewer rows than features, and does not vary along a direction."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(18, 7)), np.repeat([0, 1], [12, 6])
    X[:, 0] += y
    machine = M4(nu=1.0, ridge=0).fit(X, y)
    assert machine.fits_[0].extra["kept"] == 0
    Z = rng.normal(size=(500, 7))
    assert np.array_equal(machine.predict(Z), MPM(ridge=0).fit(X, y).predict(Z))


@pytest.mark.parametrize("seed", [15, 45, 71])
def test_the_reference_of_a_hard_margin_needs_no_solution_without_a_margin(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 30))
    X, y = rng.normal(size=(n, 3)), np.arange(n) % 2
    repeated = rng.integers(0, n, size=n // 3)  # Clarabel fails at rho = 0 for these rows
    X, y = np.vstack([X, X[repeated]]), np.append(y, y[repeated])
    auto, reference = (
        M4(kernel="rbf", gamma=1, margin="hard", ridge=0.1, solver=solver).fit(X, y).fits_[0]
        for solver in ("auto", "reference")
    )
    assert reference.status is Status.OPTIMAL
    assert reference.objective == pytest.approx(auto.objective, rel=1e-6)
