"""`mmbench.geometry`: every quantity against its definition in the feature space."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

import mmbench
from mmbench import FSVM, LDA, M4, MAMC, MEMPM, MMRM, MPM, RMM, SVM, SigmaSVM
from mmbench.errors import UserError
from mmbench.inspect.geometry import enclosing_ball
from mmbench.kernels import Kernel
from mmbench.machines import MACHINES as MACHINES_BY_NAME
from mmbench.machines import make_machine


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def pair(wine):
    """Two classes that overlap in two features."""
    X, y = wine
    return X[y > 0][::2, :2], y[y > 0][::2]


def separable(seed=0, n=20):
    """Two clouds in the plane with different spreads and a gap."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ [[1.0, 0.3], [0.0, 0.4]] + [3.0, 2.0]
    y = rng.normal(size=(n + 5, 2)) @ [[0.3, 0.0], [0.5, 1.0]] - [2.5, 1.0]
    return np.vstack([x, y]), np.repeat([1, 0], [n, n + 5])


def degree_two(X):
    """The feature map of ``(1 + u'v)^2`` for two features."""
    a, b = X.T
    r = np.sqrt(2)
    return np.column_stack([np.ones(len(X)), r * a, r * b, a * a, b * b, r * a * b])


def direct(w, b, X, y, D):
    """The quantities in an explicit feature space, row by row."""
    t = np.where(y == y.max(), 1, -1)
    norm = np.sqrt(sum(v * v for v in w))
    f = [float(w @ z + b) for z in X]
    d = [ti * fi / norm for ti, fi in zip(t, f, strict=True)]
    s = np.array([float(w @ z) for z in X])
    x, v = X[t > 0], X[t < 0]
    Sx, Sy = np.cov(x.T, bias=True), np.cov(v.T, bias=True)
    sx, sy = np.sqrt(w @ Sx @ w), np.sqrt(w @ Sy @ w)
    centres = w @ (x.mean(axis=0) - v.mean(axis=0))
    between = min(s[t > 0]) - max(s[t < 0])
    kx, ky = (w @ x.mean(axis=0) + b) / sx, -(w @ v.mean(axis=0) + b) / sy
    alpha, beta = (max(k, 0) ** 2 / (1 + max(k, 0) ** 2) for k in (kx, ky))
    kappa = max(centres, 0) / (sx + sy)
    inverse = np.linalg.inv(np.eye(len(w)) + D / len(X) * X.T @ X)
    E = w @ w / 2 + D / 2 * np.mean(s**2)
    n = len(X)
    return {
        "norm": norm,
        "margin": min(d),
        "average_margin": sum(d) / n,
        "margin_variance": sum((p - q) ** 2 for p in d for q in d) / n**2,
        "spread": np.sqrt(w @ np.cov(X.T, bias=True) @ w) / norm,
        "B": max(abs(v) for v in f),
        "relative_margin": min(t * f) / max(abs(v) for v in f),
        "d_w_v": np.sqrt(w @ (Sx + Sy) @ w),
        "d_w_s": sx + sy,
        "d_w_n": np.sqrt(w @ w / 2),
        "d_w_d": max(p - q for p in s[t > 0] for q in s[t < 0]) + D / 2 * w @ w,
        "d_w_m": w @ x.mean(axis=0) - min(s[t > 0]) + max(s[t < 0]) - w @ v.mean(axis=0),
        "d_b_c": centres,
        "d_b_m": between,
        "rho": between / (centres - between),
        "rho_m4": between / (sx + sy),
        "kappa": kappa,
        "alpha": kappa**2 / (1 + kappa**2),
        "alpha_positive": alpha,
        "alpha_negative": beta,
        "worst_case": np.mean(t > 0) * alpha + np.mean(t < 0) * beta,
        "Rbar": max(np.linalg.norm(z - X.mean(axis=0)) for z in X),
        "U_F": 2 * np.sqrt(w @ w) / n * np.sqrt(sum(z @ z for z in X)),
        "U_G": 2 * np.sqrt(2 * E) / n * np.sqrt(sum(z @ inverse @ z for z in X)),
    }


def assert_direct(row, w, b, X, y, D):
    for name, value in direct(w, b, X, y, D).items():
        assert row[name] == pytest.approx(value, rel=1e-7, abs=1e-12), name


MACHINES = (SVM(C=3.0), RMM(B_fraction=0.3), SigmaSVM(), MAMC(), MPM(ridge=1e-3), MMRM(), LDA())


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@pytest.mark.parametrize("D", [0.0, 2.5])
def test_linear_quantities_are_their_definitions(pair, machine, D):
    X, y = pair
    machine = type(machine)(**{**machine.get_params(), "kernel": "linear"}).fit(X, y)
    row = mmbench.geometry(machine, X, y, D=D).iloc[0]
    assert_direct(row, machine.coef_[0], machine.intercept_[0], X, y, D)
    assert (row["negative"], row["positive"]) == (1, 2)
    assert row["n_negative"] + row["n_positive"] == len(y)


@pytest.mark.parametrize("machine", [SVM(C=3.0), MAMC(), MMRM(C_factor=5.0), FSVM()])
def test_kernel_quantities_are_their_definitions_in_the_feature_space(pair, machine):
    X, y = pair
    machine = type(machine)(**{**machine.get_params(), "kernel": "poly", "degree": 2}).fit(X, y)
    row = mmbench.geometry(machine, X, y, D=1.5).iloc[0]
    w = machine.dual_coef_[0] @ degree_two(machine.support_vectors_)
    assert_direct(row, w, machine.intercept_[0], degree_two(X), y, 1.5)


def test_rbf_norm_and_radii_are_sums_of_kernel_values(pair):
    X, y = pair
    gamma = 0.4
    machine = SVM(C=3.0, gamma=gamma).fit(X, y)
    row = mmbench.geometry(machine, X, y).iloc[0]

    def k(u, v):
        return np.exp(-gamma * sum((p - q) ** 2 for p, q in zip(u, v, strict=True)))

    a, Z = machine.dual_coef_[0], machine.support_vectors_
    square = sum(
        p * q * k(u, v) for p, u in zip(a, Z, strict=True) for q, v in zip(a, Z, strict=True)
    )
    f = np.array([sum(p * k(u, x) for p, u in zip(a, Z, strict=True)) for x in X])
    f += machine.intercept_[0]
    K = np.array([[k(u, v) for v in X] for u in X])
    distances = [K[i, i] - 2 * K[i].mean() + K.mean() for i in range(len(X))]
    assert row["norm"] == pytest.approx(np.sqrt(square))
    assert row["margin"] == pytest.approx(min(f * (2 * (y == 2) - 1)) / np.sqrt(square))
    assert row["Rbar"] == pytest.approx(np.sqrt(max(distances)))
    assert row["radius_margin"] == pytest.approx(row["R"] ** 2 * square)


# -- classifiers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf", "gamma": 0.1},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
    ],
)
def test_pairs_of_an_svc_are_those_of_its_decision_function(wine, params):
    X, y = wine
    labels = np.array(["c", "a", "b"])[y]
    svc = SVC(C=2.0, decision_function_shape="ovo", **params).fit(X, labels)
    frame = mmbench.geometry(svc, X, labels)
    assert frame[["negative", "positive"]].values.tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    f = svc.decision_function(X)  # positive values mean the first class
    for k, row in frame.iterrows():
        own = np.isin(labels, [row["negative"], row["positive"]])
        t = np.where(labels[own] == row["positive"], -1, 1)
        assert row["B"] == pytest.approx(np.abs(f[own, k]).max())
        assert row["margin"] * row["norm"] == pytest.approx((t * f[own, k]).min())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", MACHINES_BY_NAME)
def test_every_machine_has_the_decisions_of_its_hyperplanes(wine, name, kernel):
    X, y = wine
    machine = make_machine(name)
    if kernel not in machine.kernels:
        pytest.skip(f"{name} has no kernel {kernel}")
    machine.set_params(kernel=kernel)
    if "ridge" in machine.get_params() and kernel != "linear":
        machine.set_params(ridge=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        f = machine.fit(X[::3], y[::3]).pairwise_decision_function(X)
    frame = mmbench.geometry(machine, X, y)
    for k, row in frame.iterrows():
        own = np.isin(y, [row["negative"], row["positive"]])
        t = np.where(y[own] == row["positive"], 1, -1)
        assert row["B"] == pytest.approx(np.abs(f[own, k]).max(), rel=1e-6)
        assert row["margin"] * row["norm"] == pytest.approx((t * f[own, k]).min(), rel=1e-6)


def test_our_svm_and_libsvm_have_the_same_geometry(wine):
    X, y = wine
    ours = mmbench.geometry(SVM(C=1.0, gamma=0.1, tol=1e-9).fit(X, y), X, y)
    theirs = mmbench.geometry(SVC(C=1.0, gamma=0.1, tol=1e-9).fit(X, y), X, y)
    np.testing.assert_allclose(ours.to_numpy(float), theirs.to_numpy(float), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "given",
    ["precomputed", lambda X, Z: np.exp(-0.1 * ((X[:, None] - Z[None]) ** 2).sum(axis=2))],
    ids=["precomputed", "callable"],
)
@pytest.mark.parametrize("cls", [SVM, SVC])
def test_a_given_kernel_has_the_geometry_of_the_kernel_by_name(wine, given, cls):
    X, y = wine
    K = Kernel("rbf", 0.1)(X, X)
    expected = mmbench.geometry(cls(gamma=0.1).fit(X, y), X, y)
    rows = K if given == "precomputed" else X
    found = mmbench.geometry(cls(kernel=given).fit(rows, y), rows, y)
    np.testing.assert_allclose(found.to_numpy(float), expected.to_numpy(float), rtol=1e-4)


@pytest.mark.parametrize("given", ["precomputed", lambda X, Z: X @ Z.T], ids=["matrix", "callable"])
@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.1)], ids=["SVC", "NuSVC"])
def test_rows_of_weight_zero_make_the_support_of_a_given_kernel_unknown(wine, model, given):
    X, y = wine
    rows = X @ X.T if given == "precomputed" else X
    model = clone(model).set_params(kernel=given)
    weights = np.where(np.arange(len(y)) % 7 == 3, 0.0, 1.0)
    with pytest.raises(UserError, match="without rows of weight 0"):
        mmbench.geometry(model.fit(rows, y, sample_weight=weights), rows, y)
    assert len(mmbench.geometry(model.fit(rows, y, sample_weight=1 + weights), rows, y)) == 3


def test_weights_and_coefficients_are_hyperplanes_too(pair):
    X, y = pair
    machine = SVM(kernel="linear").fit(X, y)
    expected = mmbench.geometry(machine, X, y)
    w, b = machine.coef_[0], machine.intercept_[0]
    assert mmbench.geometry((w, b), X, y).equals(expected)
    a = np.linalg.lstsq(X.T, w, rcond=None)[0]
    for kernel, rows in ((lambda X, Z: X @ Z.T, X), ("precomputed", X @ X.T)):
        found = mmbench.geometry((a, b), rows, y, kernel=kernel)
        np.testing.assert_allclose(found.to_numpy(float), expected.to_numpy(float), rtol=1e-8)


@pytest.mark.parametrize("machine", [SVM(gamma=0.1), SVC(gamma=0.1), SVM(kernel="linear")])
def test_sparse_rows_and_other_rows_than_in_training_are_accepted(wine, machine):
    X, y = wine
    dense = mmbench.geometry(machine.fit(X, y), X[::3], y[::3])
    sparse = mmbench.geometry(machine.fit(csr_array(X), y), csr_array(X[::3]), y[::3])
    np.testing.assert_allclose(sparse.to_numpy(float), dense.to_numpy(float), rtol=1e-3)


def test_one_hyperplane_a_class_separates_a_pair_by_the_difference(wine):
    X, y = wine
    model = LogisticRegression().fit(X, y)
    frame = mmbench.geometry(model, X, y)
    scores = model.decision_function(X)
    own = y != 1
    f = (scores[:, 2] - scores[:, 0])[own]
    assert frame["B"][1] == pytest.approx(np.abs(f).max())
    two = LinearSVC().fit(X[own], y[own])
    row = mmbench.geometry(two, X[own], y[own]).iloc[0]
    assert_direct(row, two.coef_[0], two.intercept_[0], X[own], y[own], 1.0)


def test_input_without_hyperplanes_is_named(pair):
    X, y = pair
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(UserError, match="KNeighborsClassifier has no hyperplanes"):
        mmbench.geometry(KNeighborsClassifier().fit(X, y), X, y)
    with pytest.raises(UserError, match="SVM has no hyperplanes: it is not fitted"):
        mmbench.geometry(SVM(), X, y)
    with pytest.raises(UserError, match="1 normals and 1 biases for 3 pairs"):
        mmbench.geometry((X[0], 0.0), X[:30], np.arange(30) % 3)
    with pytest.raises(UserError, match="no rows of class 2"):
        mmbench.geometry(SVM().fit(X, y), X[y == 1], y[y == 1])


# -- the enclosing ball --------------------------------------------------------------------------

points = st.integers(0, 10**6).map(np.random.default_rng)


@given(rng=points, n=st.integers(1, 9))
@settings(max_examples=60)
@examples(rng=[*map(np.random.default_rng, range(12))], n=range(1, 10))
def test_the_ball_in_the_plane_is_that_of_two_or_three_points(rng, n):
    """The smallest ball through two or three points that contains all."""
    X = rng.normal(size=(n, 2)) * [1.0, 3.0]
    balls = [(X[0], 0.0)] if n == 1 else []
    for i in range(n):
        for j in range(i):
            balls.append(((X[i] + X[j]) / 2, np.linalg.norm(X[i] - X[j]) / 2))
            for k in range(j):
                A = 2 * (X[[j, k]] - X[i])
                if abs(np.linalg.det(A)) > 1e-9:
                    c = np.linalg.solve(A, (X[[j, k]] ** 2).sum(axis=1) - X[i] @ X[i])
                    balls.append((c, np.linalg.norm(X[i] - c)))
    enclosing = [r for c, r in balls if np.linalg.norm(X - c, axis=1).max() <= r * (1 + 1e-9)]
    ball = enclosing_ball(X @ X.T)
    assert ball.radius == pytest.approx(min(enclosing), rel=1e-7, abs=1e-12)
    assert ball.bound <= ball.radius
    assert ball.bound == pytest.approx(ball.radius, rel=1e-8, abs=1e-12)


@given(
    rng=points, n=st.integers(2, 40), d=st.integers(1, 6), gamma=st.sampled_from([0, 0.01, 1.0, 50])
)
@settings(max_examples=60)
@examples(
    rng=[*map(np.random.default_rng, range(12))],
    n=(2, 3, 9, 40),
    d=(1, 2, 6),
    gamma=(0, 0.01, 1.0, 50),
)
def test_theorem_1_of_the_fsvm_paper(rng, n, d, gamma):
    X = rng.standard_t(2, size=(n, d))
    ball = enclosing_ball(Kernel("rbf", gamma)(X, X) if gamma else X @ X.T)
    assert ball.radius <= ball.from_mean * (1 + 1e-12)
    assert ball.from_mean <= 2 * ball.radius * (1 + 1e-12)


def test_both_ends_of_theorem_1_are_attained():
    circle = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert enclosing_ball(circle @ circle.T) == pytest.approx((1, 1, 1))
    heap = np.vstack([np.zeros((999, 1)), [[2.0]]])  # the mean is nearly an end
    ball = enclosing_ball(heap @ heap.T)
    assert ball.radius == pytest.approx(1)
    assert ball.from_mean == pytest.approx(1.998)


@pytest.mark.parametrize("gamma", [0, 0.1, 10.0])
def test_the_ball_of_many_rows_is_certified(gamma):
    X = np.random.default_rng(0).normal(size=(900, 6))
    ball = enclosing_ball(Kernel("rbf", gamma)(X, X) if gamma else X @ X.T)
    assert ball.radius - ball.bound <= 1e-9 * ball.radius
    if not gamma:  # a step towards the farthest row, k times shorter in step k
        centre = X.mean(axis=0)
        for k in range(1, 5000):
            centre = centre + (X[np.argmax(((X - centre) ** 2).sum(axis=1))] - centre) / (k + 1)
        reached = np.linalg.norm(X - centre, axis=1).max()
        assert ball.radius <= reached <= ball.radius * 1.002


COMPLEXITIES, BOUNDS = ["U_F", "U_G", "U_H"], ["bound_F", "bound_G", "bound_H"]


@given(rng=points, scale=st.floats(0.01, 100))
@settings(max_examples=25)
@examples(rng=[*map(np.random.default_rng, range(12))], scale=(0.01, 1.0, 100.0))
def test_what_motions_and_scale_change(rng, scale):
    """Motions change the bounds alone (no bias in their classes); a scale changes lengths."""
    X, y = separable(int(rng.integers(1000)))
    w, b = rng.normal(size=2), float(rng.normal())
    frame = mmbench.geometry((w, b), X, y).drop(columns=[*COMPLEXITIES, *BOUNDS])
    angle, shift = rng.uniform(0, 6), rng.normal(size=2)
    Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = mmbench.geometry((Q @ w, b - shift @ Q @ w), X @ Q.T + shift, y)[frame.columns]
    np.testing.assert_allclose(moved.to_numpy(float), frame.to_numpy(float), rtol=1e-6, atol=1e-8)
    lengths = ["margin", "average_margin", "spread", "R", "Rbar"]
    same = ["relative_margin", "rho", "rho_m4", "kappa", "alpha", "worst_case", "radius_margin"]
    larger = mmbench.geometry((w / scale, b), scale * X, y)
    np.testing.assert_allclose(larger[lengths], scale * frame[lengths], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(larger[same], frame[same], rtol=1e-6, atol=1e-9)
    other = mmbench.geometry((scale * w, scale * b), X, y)  # the scale of (w, b)
    free = [*lengths, *same[:-1], "margin_variance", "alpha_positive", "alpha_negative"]
    np.testing.assert_allclose(other[free], frame[free], rtol=1e-7, atol=1e-9)


def test_radii_lose_no_digit_far_from_the_origin(pair):
    X, y = pair
    near, far = (mmbench.geometry(([1.0, 2.0], 0.0), X + shift, y) for shift in (0.0, 2.0**20))
    np.testing.assert_allclose(far[["R", "R_bound", "Rbar"]], near[["R", "R_bound", "Rbar"]])


# -- Rademacher bounds ---------------------------------------------------------------------------


@pytest.mark.parametrize("D", [0.1, 1.0, 20.0])
def test_U_H_is_the_printed_minimum_over_lambda(pair, D):
    X, y = pair[0][::4], pair[1][::4]
    U, w = X[:6] + 0.1, np.array([0.7, -0.2])
    E = w @ w / 2 + D / 2 * np.max((U @ w) ** 2)

    def printed(root):
        lam = root**2
        matrix = lam.sum() * np.eye(2) + D * (U.T * lam) @ U
        return np.trace(X @ np.linalg.inv(matrix) @ X.T) / len(X) + 2 / len(X) * E * lam.sum()

    least = min(minimize(printed, start * np.ones(6), tol=1e-12).fun for start in (0.3, 1.0, 3.0))
    row = mmbench.geometry((w, 0.1), X, y, D=D, U=U).iloc[0]
    assert row["U_H"] == pytest.approx(least, rel=1e-6)


def test_without_D_the_three_bounds_are_one(pair):
    X, y = pair
    row = mmbench.geometry(SVM().fit(X, y), X, y, D=0.0).iloc[0]
    assert row["U_G"] == pytest.approx(row["U_F"])
    assert row["U_H"] == pytest.approx(row["U_F"])


@pytest.mark.parametrize("delta", [0.01, 0.5])
def test_theorem_1_is_the_mean_slack_and_two_more_terms(pair, delta):
    X, y = pair
    w, b = np.array([1.5, 0.4]), 0.2
    row = mmbench.geometry((w, b), X, y, delta=delta).iloc[0]
    margins = np.where(y == max(y), 1, -1) * (X @ w + b)
    slack = np.mean([max(0.0, 1.0 - margin) for margin in margins])
    expected = (
        slack + 2 * row[COMPLEXITIES].astype(float) + 3 * np.sqrt(-np.log(delta / 2) / 2 / len(X))
    )
    np.testing.assert_allclose(row[BOUNDS].astype(float), expected)
    assert row["mean_slack"] == pytest.approx(slack)
    assert expected.min() >= np.mean(margins < 0)
    with pytest.raises(UserError, match="delta must be a probability"):
        mmbench.geometry((w, b), X, y, delta=2.0)


@pytest.mark.parametrize("D", [0.3, 3.0])
def test_the_bounds_exceed_the_complexities(pair, D):
    """Mean over random signs of the largest ``2/n |sum sigma_i w'x_i|`` in each class."""
    X, y = pair
    w, rng = np.array([1.0, 0.4]), np.random.default_rng(0)
    row = mmbench.geometry((w, 0.0), X, y, D=D).iloc[0]
    angles = np.linspace(0, np.pi, 500)
    V = np.column_stack([np.cos(angles), np.sin(angles)])  # all directions of the plane
    sums = np.abs(V @ X.T @ rng.choice([-1.0, 1.0], size=(len(X), 400)))
    for name, spread in (
        ("U_F", 0 * angles),
        ("U_G", np.mean((V @ X.T) ** 2, axis=1)),
        ("U_H", np.max((V @ X.T) ** 2, axis=1)),
    ):
        index = {"U_F": 0.0, "U_G": np.mean((X @ w) ** 2), "U_H": np.max((X @ w) ** 2)}[name]
        E = w @ w / 2 + D / 2 * index
        lengths = np.sqrt(E / (0.5 + D / 2 * spread))
        complexity = 2 / len(X) * (lengths[:, None] * sums).max(axis=0).mean()
        assert complexity <= row[name]
        assert complexity >= 0.5 * row[name]  # the bound is not empty


# -- the machines as optima ------------------------------------------------------------------------


def least_quotient(X, y, within, between):
    """Least quotient over all directions of the plane with a positive denominator."""
    angles = np.linspace(0, 2 * np.pi, 40_000, endpoint=False)
    s = X @ [np.cos(angles), np.sin(angles)]
    x, v = s[y == 1], s[y == 0]
    values = {
        "d_w_v": np.hypot(x.std(axis=0), v.std(axis=0)),
        "d_w_s": x.std(axis=0) + v.std(axis=0),
        "d_w_n": np.full(len(angles), np.sqrt(0.5)),
        "d_w_m": (x.mean(axis=0) - x.min(axis=0)) + (v.max(axis=0) - v.mean(axis=0)),
        "d_b_c": x.mean(axis=0) - v.mean(axis=0),
        "d_b_m": x.min(axis=0) - v.max(axis=0),
    }
    positive = values[between] > 0
    return (values[within][positive] / values[between][positive]).min()


FRAMEWORK = {
    "LDA": (LDA(ridge=0.0), "d_w_v", "d_b_c"),
    "MPM": (MPM(kernel="linear", ridge=0.0), "d_w_s", "d_b_c"),
    "SVM": (SVM(kernel="linear", C=1e6), "d_w_n", "d_b_m"),
    "M4": (M4(kernel="linear", ridge=0.0, margin="hard"), "d_w_s", "d_b_m"),
    "MMRM": (MMRM(kernel="linear", C=1e3), "d_w_m", "d_b_m"),
}


@pytest.mark.parametrize("name", FRAMEWORK)
@pytest.mark.parametrize("seed", range(3))
def test_each_machine_minimises_its_ratio_of_dispersions(name, seed):
    """Section 2 and 3 of the MMRM paper: (1) with the dispersions of each machine."""
    X, y = separable(seed)
    machine, within, between = FRAMEWORK[name]
    frame = mmbench.geometry(machine.fit(X, y), X, y)
    reached = float((frame[within] / frame[between]).iloc[0])
    least = least_quotient(X, y, within, between)
    assert reached <= least * (1 + 1e-6)
    assert reached >= least * (1 - 1e-4)  # the spacing of the directions


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_rmm_minimises_14_if_the_classes_are_mirror_images(symmetric):
    """With ``d_b_m = 2``, (14) and the RMM's penalty on ``max |f|`` agree if b = 0 is optimal.

    The ratio of (14) and (7) itself has no minimum at w != 0: its second term falls with the scale
    of w. Classes of different ranges have a diameter below ``2 max |f|``.
    """
    X, y = separable(1)
    if symmetric:
        X = np.vstack([X[y == 1], -X[y == 1]])
        y = np.repeat([1, 0], len(X) // 2)
    D = 0.8  # (14) is D times ||w||^2 / 2 + (2 / D) max |f|
    rmm = RMM(kernel="linear", C=1e4, form="penalty", D=2 / D, tol=1e-9).fit(X, y)
    row = mmbench.geometry(rmm, X, y, D=D).iloc[0]
    assert row["d_b_m"] == pytest.approx(2, rel=1e-5)
    value = row["d_w_d"]
    x, v = X[y == 1], X[y == 0]
    found = minimize(
        lambda w: (x @ w).max() - (v @ w).min() + D / 2 * w @ w,
        rmm.coef_[0],
        constraints={"type": "ineq", "fun": lambda w: (x @ w).min() - (v @ w).max() - 2},
        method="COBYLA",
        options={"maxiter": 20000, "tol": 1e-10, "rhobeg": 0.05},
    ).fun
    if symmetric:
        assert value == pytest.approx(found, rel=1e-5)
    else:
        assert value > found * (1 + 1e-3)


def test_quantities_are_those_that_the_machines_report(wine):
    X, y = wine
    mpm = MPM(kernel="linear", ridge=0.0).fit(X, y)
    frame = mmbench.geometry(mpm, X, y)
    for name in ("alpha", "alpha_positive", "alpha_negative"):
        np.testing.assert_allclose(
            frame[name], [fit.extra["alpha"] for fit in mpm.fits_], rtol=1e-5
        )
    np.testing.assert_allclose(frame["kappa"], [fit.extra["kappa"] for fit in mpm.fits_], rtol=1e-6)
    mempm = MEMPM(kernel="linear", ridge=0.0).fit(X, y)
    frame = mmbench.geometry(mempm, X, y)
    np.testing.assert_allclose(
        1 - frame["worst_case"], [f.objective for f in mempm.fits_], rtol=1e-4
    )
    assert (frame["worst_case"] >= mmbench.geometry(mpm, X, y)["worst_case"] - 1e-9).all()
    mmrm = MMRM(gamma=0.05).fit(X, y)
    np.testing.assert_allclose(mmbench.geometry(mmrm, X, y)["rho"], mmrm.margin_ratios_, rtol=1e-6)
    m4 = M4(kernel="linear", ridge=0.0, margin="hard").fit(X, y)
    frame = mmbench.geometry(m4, X, y)
    np.testing.assert_allclose(
        frame["rho_m4"], 2 / np.array([f.objective for f in m4.fits_]), rtol=1e-4
    )
    assert (frame["rho_m4"] <= frame["kappa"]).all()
    mamc = MAMC(gamma=0.1).fit(X, y)
    svm = SVM(gamma=0.1, C=1e3).fit(X, y)
    first, second = (mmbench.geometry(machine, X, y) for machine in (mamc, svm))
    assert (first["average_margin"] != second["average_margin"]).all()
    assert (second["margin"] >= first["margin"]).all()


def test_without_a_normal_there_are_no_margins():
    X, y = load_iris(return_X_y=True)
    X, y = X[:80], y[:80]
    majority = MMRM(C_factor=1.0, gamma=0.1).fit(X, y)
    assert not len(majority.support_)  # or it is no example
    for machine in (majority, (np.zeros(4), -1.0)):
        row = mmbench.geometry(machine, X, y).iloc[0]
        assert row["norm"] == row["kappa"] == row["alpha_positive"] == 0
        assert row["alpha_negative"] == 1
        assert np.isnan([row["rho"], row["margin"]]).all()
        assert row["R"] > 0


@pytest.mark.parametrize("machine", [SVM(gamma=0.5), MPM(gamma=0.5), MAMC(gamma=0.5), MMRM()])
def test_the_worst_case_accuracy_is_a_bound_on_the_rows_of_its_moments(wine, machine):
    """The rows are a distribution with these means and covariances."""
    X, y = wine
    for row in mmbench.geometry(machine.fit(X, y), X, y).to_dict("records"):
        k = [fit.pair for fit in machine.fits_].index((row["negative"], row["positive"]))
        f = machine.pairwise_decision_function(X)[:, k]
        assert np.mean(f[y == row["positive"]] >= 0) >= row["alpha_positive"] - 1e-12
        assert np.mean(f[y == row["negative"]] <= 0) >= row["alpha_negative"] - 1e-12


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "change, words",
    [
        ({"X": [0.0, 1.0]}, "2D"),
        ({"X": [[0.0, np.nan], [1.0, 1.0]]}, "NaN"),
        ({"X": [["a", "b"], ["c", "d"]]}, "float"),
        ({"X": [[0.0], [1.0]]}, "w has the shape"),
        ({"X": [[0.0, 1e200], [1.0, 1.0]]}, "scale w and X"),
        ({"y": [0]}, "inconsistent"),
        ({"w": [1e200, 0.0]}, "scale w and X"),
        ({"w": [1e-200, 0.0]}, "scale w and X"),
        ({"w": [np.nan, 0.0]}, "scale w and X"),
        ({"D": -1.0}, "D must be"),
        ({"U": [[1.0]]}, "U has the shape"),
        ({"U": np.empty((0, 2))}, "U has no rows"),
        ({"U": [[np.nan, 0.0]]}, "U: .* NaN"),
        ({"U": [["a", "b"]]}, "U: could not convert"),
    ],
)
def test_data_without_a_geometry_are_one_line(change, words):
    values = {"X": [[0.0, 2.0], [1.0, 1.0]], "y": [0, 1], "w": [1.0, 0.0], **change}
    X, y, w = (values.pop(name) for name in ("X", "y", "w"))
    with pytest.raises(UserError, match=words) as caught:
        mmbench.geometry((w, 0.5), X, y, **values)
    assert "\n" not in str(caught.value)


def test_row_numbers_beyond_a_kernel_matrix_are_refused(pair):
    X, y = pair
    given = {"machine": (y - y.mean(), 0.0), "X": X @ X.T, "y": y, "kernel": "precomputed"}
    wrong = [([len(X)], "U: .* out of bounds"), ([0.5], "U: only integers"), ([], "U has no rows")]
    for numbers, words in wrong:
        with pytest.raises(UserError, match=words):
            mmbench.geometry(**given, U=numbers)
    assert mmbench.geometry(**given, U=range(len(X))).equals(mmbench.geometry(**given))


def test_models_without_a_hyperplane_in_a_feature_space_are_refused(wine):
    X, y = wine
    with pytest.raises(UserError, match="not positive semidefinite"):
        mmbench.geometry(SVC(kernel="sigmoid", gamma=2.0).fit(X, y), X, y)
    with pytest.raises(UserError, match="SVR has no hyperplanes"):
        mmbench.geometry(SVR().fit(X, y), X, y)
