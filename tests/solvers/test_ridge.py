"""Shifted systems: every reduction against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import kernel_pca as spectrum
from mmbench.machines.klda import train_klda
from mmbench.machines.lssvm import train_lssvm
from mmbench.machines.problem import BinaryProblem
from mmbench.solvers import band, shifted
from mmbench.solvers.band import Band
from mmbench.solvers.shifted import Factored, Tridiagonal, shifted_systems

SHIFTS = (1e-2, 3.0, -0.5j)


def symmetric(n: int, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return F and ``F F'``; some columns of F may be zero."""
    random = np.random.RandomState(seed)
    factor = random.normal(size=(n, rank)) * (random.uniform(size=rank) > 0.2)
    return factor, factor @ factor.T


def check(systems, matrix, seed):
    random = np.random.RandomState(seed)
    n = len(matrix)
    columns = random.normal(size=(n, 3))
    inside = systems.enter(columns)
    np.testing.assert_allclose(inside.T @ inside, columns.T @ columns, atol=1e-10 * n)
    np.testing.assert_allclose(systems.leave(inside), columns, atol=1e-10 * n)
    for shift in SHIFTS:
        x = systems.solve(shift, inside)
        solution = systems.leave(x.real) + 1j * systems.leave(x.imag)
        expected = np.linalg.solve(matrix + shift * np.eye(n), columns)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(solution, expected, atol=1e-8 * scale)


@given(
    n=st.integers(2, 60),
    width=st.integers(1, 9),
    block=st.integers(1, 70),
    rank=st.integers(1, 60),
    seed=st.integers(0, 99),
)
@settings(max_examples=80, deadline=None)
def test_a_band_solves_as_dense_algebra_does(n, width, block, rank, seed):
    """Whatever the number of groups, whatever is left over, with directions of no extent."""
    _, matrix = symmetric(n, rank, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(band, "BLOCK", block)
        reduced = Band(matrix, width)
    check(reduced, matrix, seed)


@given(n=st.integers(2, 40), rank=st.integers(2, 40), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_factor_solves_as_dense_algebra_does(n, rank, seed):
    factor, matrix = symmetric(n, min(n, rank), seed)
    check(Factored(factor), matrix, seed)
    check(Tridiagonal(matrix), matrix, seed)


def test_the_band_holds_all_of_the_matrix():
    """The eigenvalues are those of the matrix; what was cleared is not read again."""
    _, matrix = symmetric(50, 50, 0)
    reduced = Band(matrix, 7)
    lower = np.zeros_like(matrix)
    for d, diagonal in enumerate(reduced._lower):
        lower += np.diag(diagonal[: 50 - d], -d)
    whole = lower + np.tril(lower, -1).T
    np.testing.assert_allclose(
        np.linalg.eigvalsh(whole), np.linalg.eigvalsh(matrix), atol=1e-11 * np.abs(matrix).max()
    )


def test_the_matrix_is_left_as_it_is():
    factor, matrix = symmetric(30, 30, 0)
    before = matrix.copy(), factor.copy()
    for made in (Band(matrix, 4), Tridiagonal(matrix), Factored(factor)):
        made.enter(np.ones((30, 1)))
    np.testing.assert_array_equal(matrix, before[0])
    np.testing.assert_array_equal(factor, before[1])


def test_size_and_factor_choose_the_reduction(monkeypatch):
    factor, matrix = symmetric(30, 3, 0)
    assert isinstance(shifted_systems(matrix), Tridiagonal)
    assert isinstance(shifted_systems(matrix, factor), Factored)
    monkeypatch.setattr(shifted, "LARGE", 30)
    assert isinstance(shifted_systems(matrix), Band)


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("poly", degree=1, divisor=2.5)])
@pytest.mark.parametrize("reading", ["gram", "empirical", "klda"])
def test_machines_take_few_features_as_they_take_the_matrix(kernel, reading, monkeypatch):
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=60) > 0.2, 1.0, -1.0)
    problem = BinaryProblem(X, y, kernel)

    def train():
        if reading == "klda":
            return train_klda(problem, [1e-4, 1e-1])
        return train_lssvm(problem, [1.0, 100.0], reading)

    assert spectrum.few_features(problem).shape == (60, 4 + (kernel.name == "poly"))
    few = train()
    for module in ("klda", "lssvm"):
        monkeypatch.setattr(f"mmbench.machines.{module}.few_features", lambda problem: None)
    for one, other in zip(few, train(), strict=True):
        assert one.fit.status is Status.OPTIMAL
        assert one.fit.objective == pytest.approx(other.fit.objective, rel=1e-9)
        decisions = [problem.gram @ model.coef + model.intercept for model in (one, other)]
        np.testing.assert_allclose(*decisions, atol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "shape"),
    [
        (Kernel("rbf"), (60, 4)),
        (Kernel("poly", degree=2), (60, 4)),
        (Kernel("linear"), (60, 1)),
        (Kernel("linear"), (7, 4)),
    ],
)
def test_other_problems_have_no_few_features(kernel, shape):
    problem = BinaryProblem(np.ones(shape), np.ones(shape[0]), kernel)
    assert spectrum.few_features(problem) is None
