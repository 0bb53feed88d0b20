"""MEMPM: the MPM inside it, brute force in the plane, cone solvers as oracles."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from helpers.minimax_family import covariances, gaussians, minmax, problem
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from mmbench.errors import Status
from mmbench.machines import MEMPM, MPM
from mmbench.machines.minimax.coordinates import LinearCoordinates
from mmbench.machines.minimax.mempm import MAX_CHORD_RATIO, _BetaSearch, error, least_error
from mmbench.machines.minimax.spread import accuracy


@pytest.mark.parametrize("seed", range(4))
def test_it_guarantees_no_less_than_the_mpm(seed):
    X, y = gaussians(seed=seed, n_x=60 - 10 * seed)
    mempm, mpm = (M(ridge=1e-6).train(problem(X, y)) for M in (MEMPM, MPM))
    assert 1 - mempm.fit.objective >= mpm.fit.extra["alpha"] * (1 - 1e-6)


def test_equal_accuracies_give_the_mpm():
    X, y = gaussians()
    alpha = MPM().train(problem(X, y)).fit.extra["alpha"]
    search = _BetaSearch(LinearCoordinates(problem(X, y)).diagonal(1e-8), "auto")
    angle = np.arcsin(np.sqrt(alpha))  # of kap(alpha)
    assert accuracy(search.evaluate(angle).kappa_x) == pytest.approx(alpha, rel=1e-6)


def test_constraints_hold_with_equality():
    X, y = gaussians(n_x=60)
    model = MEMPM(ridge=0).train(problem(X, y))
    sx, sy = (np.sqrt(model.w @ S @ model.w) for S in covariances(X, y))
    alpha, beta = model.fit.extra["alpha"], model.fit.extra["beta"]
    kap = [np.sqrt(u / (1 - u)) for u in (alpha, beta)]
    mean_x, mean_y = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)
    assert model.w @ (mean_x - mean_y) == pytest.approx(1)
    assert kap[0] * sx + kap[1] * sy == pytest.approx(1, abs=1e-6)
    assert model.w @ mean_x + model.intercept == pytest.approx(kap[0] * sx, abs=1e-6)
    assert -(model.w @ mean_y + model.intercept) == pytest.approx(kap[1] * sy, abs=1e-6)


@pytest.mark.parametrize(
    ("solver", "radius"),
    [("auto", 0.0), ("reference", 0.0), *(("auto", radius) for radius in (0.1, 0.3, 1.0, 3.0))],
)
@pytest.mark.parametrize(
    "sample",
    [{"seed": seed, "n_x": 50, "n_y": 20} for seed in range(2)]
    + [{"seed": 11, "n_x": 12, "n_y": 60, "shift": 0.4}],  # with a second local optimum
    ids=str,
)
def test_no_direction_and_threshold_in_the_plane_is_better(sample, solver, radius):
    X, y = gaussians(d=2, **sample)
    Sx, Sy = covariances(X, y)
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    theta = (y > 0).mean()
    angles = np.linspace(0, np.pi, 2001)
    W = np.column_stack([np.cos(angles), np.sin(angles)])
    W = W[np.abs(W @ delta) > 1e-9]
    W /= (W @ delta)[:, None]
    sx, sy = (np.sqrt(np.einsum("ij,jk,ik->i", W, S, W)) for S in (Sx, Sy))
    share = np.linspace(0, 1, 401)[:, None]  # of the distance of the means, given to class x
    kappas = (np.maximum(k - radius, 0) for k in (share / sx, (1 - share) / sy))
    values = sum(p * accuracy_of(k) for p, k in zip((theta, 1 - theta), kappas, strict=True))
    fit = MEMPM(ridge=0, solver=solver, robust_mean=radius).train(problem(X, y)).fit
    assert fit.status is Status.OPTIMAL
    assert fit.bound <= 1 - values.max()
    assert 1 - values.max() - 1e-3 <= fit.objective <= 1 - values.max() + 1e-6


def accuracy_of(kappa):
    return kappa**2 / (1 + kappa**2)


@pytest.mark.parametrize("solver", ["reference", "clarabel", "ecos"])
def test_other_routes_agree(real_data, solver):
    if solver == "ecos":
        pytest.importorskip("ecos", reason="needs the extra mmbench[solvers]")
    data = real_data("sonar")
    X, y = minmax(data.X)[::3, :20], np.where(data.y[::3] == data.y[0], 1.0, -1.0)
    fast, other = (MEMPM(solver=s).train(problem(X, y)).fit for s in ("auto", solver))
    assert other.objective == pytest.approx(fast.objective, rel=1e-6)
    assert fast.bound <= fast.objective <= fast.bound + 1e-6


@given(
    theta=st.floats(1e-3, 1 - 1e-3),
    least=st.tuples(*[st.floats(-2, 10)] * 2),
    ratio=st.tuples(*[st.floats(0, np.log10(MAX_CHORD_RATIO))] * 2),
)
@settings(deadline=None)
@examples(
    theta=(1e-3, 0.5, 1 - 1e-3, 0.2),
    least=((-2.0, 10.0), (3.0, 0.1), (0.0, 0.0)),
    ratio=((0.0, 0.0), (0.0, 3.0), (1.0, 0.5), (0.1, 2.0), (3.0, 3.0)),
)
def test_no_point_of_a_chord_has_less_than_its_least_error(theta, least, ratio):
    ends = 10.0 ** np.column_stack([least, np.add(least, ratio)])
    x, y = ends[0, ::-1], ends[1]
    near = np.geomspace(1e-9, 0.5, 500)
    share = np.concatenate([[0.0], near, 1.0 - near, [1.0]])
    on_chord = [
        error(theta, *kappas)
        for kappas in zip(x[0] + share * (x[1] - x[0]), y[0] + share * (y[1] - y[0]), strict=True)
    ]
    found = least_error(theta, tuple(x), tuple(y))
    assert found <= min(on_chord) * (1 + 1e-9)
    assert found >= min(on_chord) * (1 - 1e-2)


def test_an_error_of_nearly_nothing_is_certified():
    """More features than rows: some direction hardly varies within the classes."""
    random = np.random.RandomState(3)
    X, y = random.normal(size=(40, 2000)), random.randint(2, size=40)
    X[:, :20] += y[:, None]
    (fit,) = MEMPM(kernel="linear").fit(X, y).fits_
    assert fit.status is Status.OPTIMAL
    assert fit.gap <= 1e-6


@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_accuracies_of_nearly_one_are_certified(gamma):
    """Separated classes of a narrow kernel: kap is 1000 and more."""
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for fit in MEMPM(kernel="rbf", gamma=gamma).fit(X, y).fits_:
        assert fit.status is Status.OPTIMAL
        assert fit.gap <= 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_without_a_ridge_two_rows_of_a_class_give_one_optimum(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 4)), np.arange(40) < 2
    values = [
        MEMPM(ridge=0).fit(rows, labels).fits_[0].objective
        for rows, labels in ((X, y), (X, ~y), (X + 100 * rng.normal(size=4), y))
    ]
    assert values == pytest.approx([values[0]] * 3, rel=2e-6)
