"""Weights in machines of means, scatters and squares: a row of weight 2 is a row twice."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mmbench.errors import FINISHED
from mmbench.machines import machine_class

#: Settings of a machine that train in ways of their own.
SETTINGS = {
    "mamc": [{}, {"bias": "optimized"}, {"bias": "optimized", "solver": "reference"}],
    "klda": [{}, {"solver": "reference"}, {"bias": "midpoint"}],
    "lda": [{}, {"ridge": 0.0}, {"scatter": "sum", "bias": "optimized", "solver": "reference"}],
    "mpm": [{}, {"scatter": "sum"}],
    "mempm": [{}],
    "m4": [
        *({"tol": 1e-9}, {"tol": 1e-9, "C": 0.3}, {"nu": 0.6}, {"variant": "lda", "tol": 1e-9}),
        *({"solver": "reference"}, {"solver": "clarabel"}, {"scatter": "sum"}),
        *({"normalization": "mean", "C_factor": 1.1, "nu": nu} for nu in (0.0, 0.6)),
    ],
    "fsvm": [{"variant": variant, "tol": 1e-8} for variant in ("semi", "pg", "eps", "opt")]
    + [{"variant": variant, "solver": "reference"} for variant in ("semi", "opt")]
    + [{"variant": "opt", "scatter": "within", "tol": 1e-8}],
    "lssvm": [{}, {"reading": "empirical"}, {"reading": "empirical", "solver": "reference"}],
}
#: Machines whose weights of classes are costs of errors alone.
COSTS = ("fsvm", "klda", "lda", "mempm", "mpm")
CASES = [(name, settings) for name in SETTINGS for settings in SETTINGS[name]]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).normal(size=(150, 2))
    X, y = X[50:, :2] + 0.3 * noise[50:], np.array(["", "versicolor", "virginica"])[y[50:]]
    return X, y, np.random.default_rng(1).integers(0, 4, len(y))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_row_of_weight_two_is_a_row_twice(name, settings, kernel, iris):
    X, y, weights = iris
    rows = np.repeat(np.arange(len(y)), weights)
    if name in ("lda", "m4", "mempm", "mpm") and kernel == "rbf":
        settings = {**settings, "ridge": 1e-3}
    machine = machine_class(name)(kernel=kernel, **settings)
    one = machine.fit(X, y, sample_weight=weights)
    (fit,), decisions = one.fits_, one.decision_function(X)
    (other,) = machine.fit(X[rows], y[rows]).fits_
    assert fit.status is other.status in FINISHED
    assert fit.objective == pytest.approx(other.objective, rel=1e-6)
    atol = 1e-4 if "solver" in settings or "normalization" in settings else 1e-6
    np.testing.assert_allclose(decisions, machine.decision_function(X), atol=atol)


@pytest.mark.parametrize(("name", "settings"), [case for case in CASES if case[0] not in COSTS])
def test_weights_of_classes_are_those_of_their_rows(name, settings, iris):
    X, y, weights = iris
    machine = machine_class(name)(class_weight={"virginica": 3.0}, **settings)
    by_class = machine.fit(X, y, sample_weight=weights).decision_function(X)
    own = np.where(y == "virginica", 3.0, 1.0) * weights
    machine.set_params(class_weight=None, gamma=machine.kernels_[0].gamma)
    by_row = machine.fit(X, y, sample_weight=own).decision_function(X)
    np.testing.assert_allclose(by_class, by_row, atol=1e-6)
