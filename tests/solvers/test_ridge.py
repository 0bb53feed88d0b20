"""Ridge systems: the factorisations against dense linear algebra, and the features against K."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg.lapack import spotrf

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import KLDA, LSSVM
from mmbench.machines.base.problem import BinaryProblem, judged
from mmbench.machines.kernel_pca import gram_by_features
from mmbench.solvers import ridge
from mmbench.solvers.ridge import FeatureGram, ridge_inverse, solve_path, solve_printed

COSTS = (1e-2, 1.0, 1e3)


def symmetric(n: int, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return F and ``F F'``; some columns of F may be zero."""
    random = np.random.RandomState(seed)
    factor = random.normal(size=(n, rank)) * (random.uniform(size=rank) > 0.2)
    return factor, factor @ factor.T


@given(
    n=st.integers(2, 40),
    rank=st.integers(1, 50),
    squared=st.booleans(),
    by_features=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
@examples(
    n=(2, 3, 11, 40),
    rank=(1, 7, 50),
    squared=(False, True),
    by_features=(False, False, True, True),
    seed=range(16),
)
def test_a_path_solves_the_bordered_systems(n, rank, squared, by_features, seed):
    """Also with more features than rows, and with directions of no extent."""
    factor, gram = symmetric(n, rank, seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    given_gram = FeatureGram(factor) if by_features and squared else gram
    found = solve_path(given_gram, y, COSTS, squared)
    expected = solve_printed(gram, y, COSTS, squared)
    for k, C in enumerate(COSTS):
        residual = (gram @ gram if squared else gram) @ found.a[:, k] + found.a[:, k] / C
        scale = np.abs(gram).max() ** (1 + squared) * C
        np.testing.assert_allclose(residual + found.b[k], y, atol=1e-12 * max(1, scale))
        decisions = [gram @ each.coef[:, k] + each.b[k] for each in (found, expected)]
        np.testing.assert_allclose(*decisions, atol=1e-7)
    assert np.abs(found.a.sum(axis=0)).max() <= 1e-9 * max(1, np.abs(found.a).sum())


@pytest.mark.parametrize(("unit", "smallest"), [(1.0, 1e-3), (1e-200, 1e-3), (1.0, 1e-14)])
def test_a_factor_in_single_precision_serves_several_costs(unit, smallest, monkeypatch):
    """Also with values beyond float32, and with ridges below its rounding errors."""
    _, gram = symmetric(300, 200, 0)
    y, border = np.where(np.arange(300) % 3 == 0, 1.0, -1.0), np.linspace(0.5, 2, 300)
    gram, costs = gram * unit, [1 / (r * 200 * unit) for r in (4, 2, 1, smallest)]
    direct = solve_path(gram, y, costs, border=border)
    monkeypatch.setattr(ridge, "SINGLE_ROWS", 300)
    monkeypatch.setattr(ridge, "ROWS_PER_STEP", 20)
    factors = []
    monkeypatch.setattr(
        ridge.lapack, "spotrf", lambda *a, **k: factors.append(1) or spotrf(*a, **k)
    )
    shared = solve_path(gram, y, costs, border=border)
    assert 0 < len(factors) < len(costs)
    scale = np.abs(direct.a).max(axis=0)
    np.testing.assert_allclose(shared.a / scale, direct.a / scale, atol=1e-9)
    np.testing.assert_allclose(shared.b, direct.b, atol=1e-9)


def test_a_ridge_that_drowns_in_rounding_is_the_smallest_that_counts():
    """Where a Cholesky factorisation fails the matrix is taken as positive semidefinite."""
    gram = np.diag([1.0, 1.0, -1e-17])
    inverse = ridge_inverse(gram, 1e-18)
    np.testing.assert_allclose(inverse(np.ones((3, 1)))[:, 0], [1, 1, 1e18])


def test_the_matrix_is_left_as_it_is():
    factor, gram = symmetric(30, 5, 0)
    before = gram.copy(), factor.copy()
    for given_gram in (gram, FeatureGram(factor)):
        solve_path(given_gram, np.ones(30), COSTS, squared=True)
    np.testing.assert_array_equal(gram, before[0])
    np.testing.assert_array_equal(factor, before[1])


@pytest.mark.parametrize("reading", ["gram", "empirical", "klda"])
def test_machines_take_few_features_as_they_take_the_matrix(reading, monkeypatch):
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=60) > 0.2, 1.0, -1.0)
    problem = BinaryProblem(X, y, Kernel("linear"))

    def train():
        if reading == "klda":
            return KLDA().train_path(problem, [{"eta": 1e-6}, {"eta": 1e-1}])
        return LSSVM(reading=reading).train_path(problem, [{"C": 1.0}, {"C": 2000.0}])

    found = gram_by_features(problem)
    assert found.features.shape == (60, 4)
    few = train()
    for module in ("klda", "lssvm"):
        monkeypatch.setattr(f"mmbench.machines.{module}.gram_by_features", lambda one: one.gram)
    for one, other in zip(few, train(), strict=True):
        assert judged(one.fit, 1e-6, 1e-6).status is Status.OPTIMAL
        assert one.fit.objective == pytest.approx(other.fit.objective, rel=1e-9)
        decisions = [
            (X @ model.w if model.coef is None else problem.gram @ model.coef) + model.intercept
            for model in (one, other)
        ]
        np.testing.assert_allclose(*decisions, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [(Kernel("rbf"), (60, 4)), (Kernel("poly", degree=1), (60, 4)), (Kernel("linear"), (7, 4))],
)
def test_other_problems_have_no_few_features(kernel, shape):
    problem = BinaryProblem(np.ones(shape), np.ones(shape[0]), kernel)
    assert isinstance(gram_by_features(problem), np.ndarray)
