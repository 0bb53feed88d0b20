"""Program (28) of many rows in the space of its features: the whole program of HiGHS as oracle."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale

from mmbench import MMRM
from mmbench.errors import Status
from mmbench.machines.mmrm.linear import critical_factor, solve_in_features, solve_linear
from mmbench.machines.mmrm.program import LinearProgram


def program(kind, C):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(900) < (30 if kind == "tiny class" else 400), 1.0, -1.0)
    X = rng.normal(size=(900, 4)) + (3.0 if kind == "apart" else 0.3) * y[:, None]
    if kind == "repeated":
        X = np.round(X)
    if kind == "constant column":
        X[:, 1] = 3.0
    if kind == "dependent columns":
        X[:, 1] = X[:, 2] - X[:, 0]
    least = 1 / min((y > 0).sum(), (y < 0).sum())
    return LinearProgram(X, y, np.full(len(y), C * least))


@pytest.mark.parametrize(
    "kind", ["apart", "mixed", "repeated", "tiny class", "constant column", "dependent columns"]
)
@pytest.mark.parametrize("C", [1.1, 10.0, 1e6])
def test_an_interior_point_and_its_vertex_are_the_optimum(kind, C):
    given = program(kind, C)
    whole = solve_linear(given, solver="reference")
    found = solve_linear(given)
    assert found.status is whole.status is Status.OPTIMAL
    assert found.value == pytest.approx(whole.value, rel=1e-6)
    assert (found.route == "features") or kind == "repeated"


def test_the_interior_point_is_asked_for_by_name_with_few_rows_too():
    given = program("mixed", 10.0)
    few = LinearProgram(given.Z[330:480], given.y[330:480], given.cost[330:480])
    found = solve_linear(few, solver="interior")
    assert (found.status, found.route) == (Status.OPTIMAL, "features")
    assert found.value == pytest.approx(solve_linear(few).value, rel=1e-6)


@pytest.mark.parametrize("n", [150, 300])
@pytest.mark.parametrize("make", [np.asarray, csr_array])
@pytest.mark.parametrize("value", [0.1, -0.2345, 128418.47, 2e-8])
def test_a_constant_column_whose_mean_is_rounded_changes_nothing(value, make, n):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, 1, -1)
    X = rng.normal(size=(n, 5)) + 0.5 * y[:, None]
    plain = MMRM(kernel="linear").fit(X, y)
    machine = MMRM(kernel="linear").fit(make(np.column_stack([X, np.full(n, value)])), y)
    assert machine.fits_[0].status is Status.OPTIMAL
    assert machine.fits_[0].objective == pytest.approx(plain.fits_[0].objective, rel=1e-6)
    np.testing.assert_allclose(machine.coef_[0, :5], plain.coef_[0], rtol=1e-3, atol=1e-6)
    assert machine.coef_[0, 5] == 0


def test_scaled_digits_with_constant_pixels_are_told_apart():
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (0, 3, 8))
    machine = MMRM(kernel="linear").fit(scale(X)[rows], y[rows])
    assert machine.score(scale(X)[rows], y[rows]) > 0.99


def test_the_smallest_bounded_penalty_needs_memory_in_proportion_to_the_rows():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) % 2, 1.0, -1.0)
    given = LinearProgram(rng.normal(size=(3000, 3)) + 0.1 * y[:, None], y, np.full(3000, 1e-5))
    tracemalloc.start()
    factor = critical_factor(given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert factor > 1
    assert peak < 2e7, "a dense identity matrix has 7.2e7 bytes"


def test_costs_without_room_are_left_to_the_simplex():
    given = program("mixed", 1.0)
    assert solve_in_features(given, 1e-6) is None
    assert solve_linear(given).status is Status.OPTIMAL


@pytest.mark.parametrize("n", [120, 900])
@pytest.mark.parametrize("difference", [1e-4, 1e-6, 1e-7])
@pytest.mark.parametrize("factor", [1.05, 10.0])
def test_what_tells_nearly_equal_columns_apart_is_used(n, difference, factor):
    """The machine is affine invariant: as good as the columns is one of them, and the rest."""
    random = np.random.default_rng(1)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X, rest = random.normal(size=(n, 5)) + 0.3 * y[:, None], random.normal(size=n)
    cost = np.full(n, factor * 2 / n)
    apart = solve_linear(LinearProgram(np.column_stack([X, rest]), y, cost))
    near = np.column_stack([X, X[:, 0] + difference * rest])
    found = solve_linear(LinearProgram(near, y, cost))
    assert found.status is apart.status is Status.OPTIMAL
    assert found.value == pytest.approx(apart.value, rel=1e-6)


@pytest.mark.parametrize("difference", [1e-9, 1e-12])
def test_columns_that_differ_by_rounding_are_one(difference):
    random = np.random.default_rng(1)
    y = np.where(np.arange(120) % 2, 1.0, -1.0)
    X = random.normal(size=(120, 5)) + 0.3 * y[:, None]
    cost = np.full(120, 1 / 30)
    near = np.column_stack([X, X[:, 0] + difference * random.normal(size=120)])
    once, twice = [solve_linear(LinearProgram(rows, y, cost)) for rows in (X, near)]
    assert twice.status is Status.OPTIMAL
    assert twice.value == pytest.approx(once.value, rel=1e-6)
