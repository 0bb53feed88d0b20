"""The F-SVM's alternation: rounds only descend, and the M-step is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from helpers.joint_rows import COSTS, gradient, optimum_of, transform_value
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.machines.fsvm.alternation import (
    above_floor,
    alternate,
    closed_form_root,
    gradient_steps,
)


@pytest.mark.parametrize("C", COSTS)
def test_rounds_descend_from_the_semi_whitening_to_no_less_than_the_optimum(two, C):
    _, rows = two
    best = optimum_of(rows, C)
    found = alternate(rows, rows.transformed(rows.s**-0.25), C, 1e-6, rounds=15, decrease=0.0)
    assert (np.diff(found.values) <= 0).all()
    assert found.bound <= best.value * (1 + 1e-6) <= found.values[-1] * (1 + 2e-6)
    assert found.values[0] > found.values[-1]
    assert found.extreme_eigenvalues()[0] > 0.999e-5


def test_the_regularised_objective_has_one_optimum_with_a_tight_bound(wine_rows):
    rows = wine_rows
    for eps in (1.0, 0.01):
        found = alternate(
            rows, rows.transformed(rows.s**-0.25), 1.0, 1e-7, rounds=500, decrease=1e-10, eps=eps
        )
        assert (np.diff(found.values) <= 0).all()
        assert 0 <= found.value - found.bound <= 1e-4 * found.value


def test_the_regularised_objective_is_its_minimum_over_M(wine_rows):
    """``sqrt(2) tr((S^{1/2} (WW' + eps I) S^{1/2})^{1/2}) + C sum xi``, of W and b alone."""
    rows, C, eps = wine_rows, 1.0, 0.1
    found = alternate(
        rows, rows.transformed(rows.s**-0.25), C, 1e-7, rounds=500, decrease=1e-10, eps=eps
    )
    root, ((own, y),) = np.sqrt(rows.s), rows.pairs
    inner = root[:, None] * (found.W @ found.W.T + eps * np.eye(len(root))) * root
    slack = np.maximum(0, 1 - y * (rows.Z[own] @ found.W[:, 0] + found.b[0])).sum()
    least = np.sqrt(2) * np.sqrt(np.linalg.eigvalsh(inner)).sum() + C * slack
    assert least * (1 - 1e-9) <= found.value <= least * (1 + 1e-4)


def test_eps_goes_from_the_semi_whitening_to_the_whitening(wine_rows):
    rows = wine_rows
    s = rows.s
    W = optimum_of(rows, 1.0).W
    far = closed_form_root(W, s, 1e8)
    far = far @ far.T
    np.testing.assert_allclose(far / far[0, 0], np.diag(np.sqrt(s[0] / s)), atol=1e-4)
    near = alternate(
        rows, rows.transformed(s**-0.25), 1.0, 1e-6, rounds=1000, decrease=1e-7, eps=1e-6
    )
    assert near.values[-1] == pytest.approx(optimum_of(rows, 1.0).value, rel=0.02)


@given(st.integers(0, 10_000), st.floats(1e-3, 10))
@settings(max_examples=25, deadline=None)
@examples(seed=range(8), eps=(1e-3, 0.1, 10.0))
def test_the_closed_M_step_has_gradient_zero(seed, eps):
    rng = np.random.default_rng(seed)
    s, W = rng.uniform(0.1, 3, 5), rng.normal(size=(5, 3))
    root = closed_form_root(W, s, eps)
    M = root @ root.T
    np.testing.assert_allclose(gradient(M, W, s, eps), 0, atol=1e-7 * max(1, s.max()))
    value = transform_value(M, W, s, eps)
    for _ in range(5):
        other = root @ (np.eye(5) + 0.1 * rng.normal(size=(5, 5)))
        assert transform_value(other @ other.T, W, s, eps) >= value * (1 - 1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
@examples(seed=range(8))
def test_the_objective_is_convex_and_its_gradient_right(seed):
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.1, 3, 4)
    ends = []
    for _ in range(2):
        root = rng.normal(size=(4, 4))
        ends.append((root @ root.T + 0.1 * np.eye(4), rng.normal(size=(4, 2))))
    values = [transform_value(M, W, s) for M, W in ends]
    middle = [(one + other) / 2 for one, other in zip(*ends, strict=True)]
    assert transform_value(*middle, s) <= (1 + 1e-12) * sum(values) / 2
    M, W = ends[0]
    turn = 1e-6 * (root + root.T)
    slope = transform_value(M + turn, W, s) - transform_value(M - turn, W, s)
    assert slope == pytest.approx(2 * np.sum(gradient(M, W, s) * turn), rel=1e-3, abs=1e-10)
    assert transform_value(gradient_steps(M, W, s), W, s) <= transform_value(M, W, s)


@pytest.mark.parametrize("seed", range(5))
def test_a_gradient_step_goes_against_the_gradient(seed):
    """As far as t0 = 0.1 or, where that does not lower the value, a half of it, a quarter, ..."""
    rng = np.random.default_rng(seed)
    s, W, root = rng.uniform(0.1, 3, 4), rng.normal(size=(4, 2)), rng.normal(size=(4, 4))
    M = root @ root.T + np.eye(4)
    slope = gradient(M, W, s)
    change = M - gradient_steps(M, W, s, max_steps=1)
    step = np.sum(change * slope) / np.sum(slope * slope)
    np.testing.assert_allclose(change, step * slope, atol=1e-12)
    assert np.log2(0.1 / step) == pytest.approx(round(np.log2(0.1 / step)), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_second_gradient_step_is_nine_tenths_of_the_first(seed, monkeypatch):
    """Or, if that does not lower the value, a half of it, a quarter, ..."""
    monkeypatch.setattr("mmbench.machines.fsvm.alternation.MIN_DECREASE", -1.0)
    rng = np.random.default_rng(seed)
    s, W, root = rng.uniform(0.1, 3, 4), rng.normal(size=(4, 2)), rng.normal(size=(4, 4))
    start = before = root @ root.T + np.eye(4)
    steps = []
    for n in (1, 2):
        slope, after = gradient(before, W, s), gradient_steps(start, W, s, max_steps=n)
        steps.append(np.sum((before - after) * slope) / np.sum(slope * slope))
        before = after
    halvings = np.log2(0.9 * steps[0] / steps[1])
    assert halvings == pytest.approx(round(halvings), abs=1e-9)
    assert halvings > -0.5


def test_the_floor_is_the_nearest_matrix_above_it():
    M = np.diag([1.0, -2.0])
    np.testing.assert_allclose(above_floor(M), np.diag([1.0, 1e-5]))
    np.testing.assert_array_equal(above_floor(np.eye(2)), np.eye(2))
