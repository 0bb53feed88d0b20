"""The pairwise solver against an interior point, on random problems of its whole class."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import LazyGram
from mmbench.machines.rmm import rmm_dual
from mmbench.machines.svm import svm_dual
from mmbench.solvers.clarabel_ import solve_qp
from mmbench.solvers.svm_dual import smo as descent
from mmbench.solvers.svm_dual.qp import PiecewiseQP
from mmbench.solvers.svm_dual.smo import newton_steps, solve_smo


def random_problem(n, rank, pieces, seed):
    """Return a bounded problem with random knots, slopes and a Gram matrix of the given rank."""
    rng = np.random.RandomState(seed)
    factor = rng.normal(size=(n, rank))
    gaps = np.round(rng.exponential(size=(n, pieces)), 2) + 0.01
    knots = np.cumsum(np.column_stack([np.zeros(n), gaps]), axis=1)
    knots -= knots[np.arange(n), rng.randint(pieces + 1, size=n)][:, None]
    return PiecewiseQP(factor @ factor.T, knots, np.sort(rng.normal(size=(n, pieces)), axis=1))


problems = st.builds(
    random_problem,
    n=st.integers(2, 25),
    rank=st.integers(1, 6),
    pieces=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)

PROBLEMS = [
    random_problem(*sizes, seed)
    for seed, sizes in enumerate(product((2, 3, 10, 25), (1, 6), (1, 2, 3)))
]


def optimum(problem):
    """Return the optimal value by Clarabel: u is the sum of its shares of the pieces."""
    n, m = problem.slopes.shape
    low, high = problem.knots[:, :-1], problem.knots[:, 1:]
    nearest = np.clip(0, low, high)
    eye, endless = sparse.eye_array(n), np.full(n, np.inf)
    sums = sparse.hstack([eye] + [-eye] * m)
    total = sparse.coo_array(np.repeat([1.0, 0.0], [n, n * m])[None, :])
    empty = sparse.coo_array((n * m, n * m))
    found = solve_qp(
        P=sparse.csc_array(sparse.block_diag([problem.gram, empty])),
        q=np.concatenate([np.zeros(n), problem.slopes.T.ravel()]),
        A=sparse.csc_array(sparse.vstack([sums, total])),
        b=np.zeros(n + 1),
        lower=np.concatenate([-endless, (low - nearest).T.ravel()]),
        upper=np.concatenate([endless, (high - nearest).T.ravel()]),
        tol=1e-10,
    )
    return objective(problem, problem.feasible(found.x[:n]))


def objective(problem, u):
    return 0.5 * u @ problem.gram @ u + problem.cost(u)


@given(problems)
@settings(max_examples=100, deadline=None)
@examples(problem=PROBLEMS)
def test_reaches_the_optimum_of_an_interior_point(problem):
    found = solve_smo(problem, tol=1e-9)
    assert found.status is Status.OPTIMAL
    assert problem.violation(found.u) < 1e-12
    best = optimum(problem)
    assert abs(found.value - best) <= 1e-6 * max(1, abs(best))


@given(problems)
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS[:8])
def test_slopes_on_both_sides_hold_minus_f(problem):
    """The optimality condition, from its definition: -f(x_i) is a subgradient of phi_i at u_i."""
    found = solve_smo(problem, tol=1e-9)
    f = found.decision + found.bias
    h = 1e-6  # less than any piece
    for i, (u, low, high) in enumerate(
        zip(found.u, problem.knots[:, 0], problem.knots[:, -1], strict=True)
    ):
        unit = np.eye(len(f))[i]
        if u + h <= high:
            assert -f[i] <= (problem.cost(found.u + h * unit) - problem.cost(found.u)) / h + 1e-5
        if u - h >= low:
            assert -f[i] >= (problem.cost(found.u) - problem.cost(found.u - h * unit)) / h - 1e-5


@given(problems, st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS, seed=range(7))
def test_any_start_gives_the_same_optimum(problem, seed):
    start = 3 * np.random.RandomState(seed).normal(size=len(problem.gram))
    cold, warm = solve_smo(problem, tol=1e-9), solve_smo(problem, start, tol=1e-9)
    assert warm.value == pytest.approx(cold.value, rel=1e-6, abs=1e-6)


@given(problems, st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS, seed=range(7))
def test_a_feasible_vector_stays_what_it_is(problem, seed):
    u = problem.feasible(3 * np.random.RandomState(seed).normal(size=len(problem.gram)))
    assert problem.violation(u) < 1e-12
    np.testing.assert_allclose(problem.feasible(u), u, rtol=0, atol=1e-14)
    assert np.all((problem.knots[:, 0] <= u) & (u <= problem.knots[:, -1]))  # to the last bit


@given(problems, st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS, seed=range(7))
def test_newton_steps_never_climb(problem, seed):
    start = problem.feasible(np.random.RandomState(seed).normal(size=len(problem.gram)))
    moved, decision = start.copy(), problem.gram @ start
    stored = replace(problem, gram=LazyGram.stored(problem.gram))
    assert newton_steps(stored, moved, decision, 1e9) <= 1e9
    assert problem.violation(moved) < 1e-9
    assert objective(problem, moved) <= objective(problem, start) + 1e-9
    np.testing.assert_allclose(decision, problem.gram @ moved, atol=1e-9 * problem.gram.max())


def test_a_series_of_newton_steps_ends_at_the_minimum_of_its_face():
    """Rows that meet a knot stay there; among the others, all gradients are then equal."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(60, 100)), np.repeat([1.0, -1.0], 30)
    problem = svm_dual(X @ X.T, y, 0.02)
    u = 0.01 * y
    decision = problem.gram @ u
    newton_steps(replace(problem, gram=LazyGram.stored(problem.gram)), u, decision, 1e9)
    inside = (u != problem.knots[:, 0]) & (u != problem.knots[:, 1])
    assert 10 < inside.sum() < 50
    gradient = (problem.gram @ u + problem.slopes[:, 0])[inside]
    assert np.ptp(gradient) < 1e-8


def hard_problem():
    """Return a linear SVM with 300 rows, 5 features and a large C."""
    rng = np.random.RandomState(3)
    X = rng.normal(size=(300, 5)) * [1, 10, 30, 0.1, 1]
    y = np.sign(X @ [1, 0.1, 0.01, 3, 0] + rng.normal(size=300))
    return svm_dual(X @ X.T, y, 1e4)


def test_newton_steps_settle_what_pairs_do_not(monkeypatch):
    problem = hard_problem()
    with_newton = solve_smo(problem, max_iter=500_000)
    monkeypatch.setattr(descent, "newton_steps", lambda problem, u, decision, budget: budget)
    without = solve_smo(problem, max_iter=500_000)
    assert with_newton.status is Status.OPTIMAL
    assert without.status is Status.ITERATION_LIMIT
    assert with_newton.value < without.value


def large_problem(B=2.0):
    """Return an RMM of 900 rows, most of which are at a knot at the optimum."""
    X = np.random.RandomState(1).normal(size=(900, 5))
    y = np.sign(X[:, 0] + 0.5 * X[:, 1])
    return rmm_dual(Kernel("rbf", 0.05)(X, X), y, 10.0, B)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_decisions_are_those_of_u_and_optimal_to_the_tolerance(tol):
    problem = large_problem()
    found = solve_smo(problem, tol=tol)
    assert found.status is Status.OPTIMAL
    np.testing.assert_allclose(found.decision, problem.gram @ found.u, atol=1e-8)
    f, u, knots = problem.gram @ found.u, found.u[:, None], problem.knots
    rise = np.where((knots[:, :-1] <= u) & (u < knots[:, 1:]), -problem.slopes, -np.inf).max(1)
    fall = np.where((knots[:, :-1] < u) & (u <= knots[:, 1:]), -problem.slopes, np.inf).min(1)
    assert (rise - f).max() - (fall - f).min() <= tol * (1 + 1e-6)


def test_a_known_product_with_the_start_changes_nothing():
    problem, other = large_problem(), large_problem(B=3.0)
    start = solve_smo(other, tol=1e-3)
    one = solve_smo(problem, start.u, 1e-6)
    two = solve_smo(problem, start, 1e-6)
    assert two.value == pytest.approx(one.value, rel=1e-8)
    same = solve_smo(other, start, 1e-3)
    assert same.iterations == 0
    np.testing.assert_array_equal(same.decision, start.decision)


def test_runs_are_equal_to_the_last_bit():
    problem = hard_problem()
    one, other = solve_smo(problem), solve_smo(problem)
    np.testing.assert_array_equal(one.u, other.u)
    assert one.iterations == other.iterations


def test_float32_kernel_values_are_enough():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(200, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=200))
    X[150:] = X[:50] + 1e-5 * rng.normal(size=(50, 3))  # curvature below rounding
    gram = Kernel("rbf", 0.3)(X, X)
    double = solve_smo(svm_dual(gram, y, 10.0), tol=1e-6)
    single = solve_smo(svm_dual(gram.astype(np.float32), y, 10.0), tol=1e-6)
    assert single.status is Status.OPTIMAL
    np.testing.assert_allclose(single.decision, double.decision, atol=1e-3)


def test_the_limit_of_steps_is_kept_and_told():
    found = solve_smo(hard_problem(), max_iter=50)
    assert (found.status, found.iterations) == (Status.ITERATION_LIMIT, 50)


def test_equal_rows_everywhere_still_end():
    """A kernel matrix of ones has no curvature at all: every row gets the same decision."""
    y = np.array([1.0, 1.0, -1.0])
    found = solve_smo(svm_dual(np.ones((3, 3)), y, 2.0))
    assert found.status is Status.OPTIMAL
    assert np.ptp(found.decision) == 0
    assert found.bias == pytest.approx(1.0)  # the majority's hinge


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rows_that_all_rest_at_one_end_have_a_finite_multiplier(sign):
    knots = np.sort(np.array([[0.0, sign], [0.0, sign]]), axis=1)
    found = solve_smo(PiecewiseQP(np.eye(2), knots, np.array([[-1.0], [2.0]])))
    assert found.status is Status.OPTIMAL
    assert np.isfinite(found.bias)
    assert found.gap == 0


def test_a_matrix_with_infinite_values_is_refused():
    with pytest.raises(ValueError, match="not finite"):
        solve_smo(svm_dual(np.full((2, 2), np.inf), np.array([1.0, -1.0]), 1.0))


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_pima_with_a_linear_kernel_is_solved(real_data, C):
    """Eight unscaled features and a large C: the textbook case of endless pairwise steps."""
    data = real_data("pima")
    problem = svm_dual(data.X @ data.X.T, np.where(data.y == 1, 1.0, -1.0), C)
    assert solve_smo(problem, tol=1e-3).status is Status.OPTIMAL


# -- the certificate and the gap ---------------------------------------------------------------


@given(problems, st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS, seed=range(7))
def test_losses_are_the_conjugates_of_the_costs(problem, seed):
    """The largest of ``-f u - phi(u)`` over all knots, row by row."""
    f = 2 * np.random.RandomState(seed).normal(size=len(problem.gram))
    units = np.eye(len(f))
    gains = [
        [-f[i] * u[i] - problem.cost(unit * u) for i, unit in enumerate(units)]
        for u in problem.knots.T
    ]
    assert problem.loss(f) == pytest.approx(np.max(gains, axis=0).sum())


@given(problems, st.integers(0, 1000), st.floats(0.0, 3.0))
@settings(max_examples=100, deadline=None)
@examples(problem=PROBLEMS, seed=range(7), other=(0.0, 0.3, 1.0, 3.0))
def test_no_multiple_of_the_decisions_costs_less_than_the_best(problem, seed, other):
    random = np.random.RandomState(seed)
    f, norm = 2 * random.normal(size=len(problem.gram)), random.exponential()

    def value(s):
        return 0.5 * s**2 * norm + problem.loss(s * f)

    best = problem.best_scale(f, norm)
    assert value(best) <= value(other) + 1e-9
    assert value(best) <= value(best * (1 + 1e-6)) + 1e-9


def test_a_bound_on_the_decisions_bounds_the_multiple():
    dual = rmm_dual(np.eye(2), np.array([1.0, -1.0]), 5.0, 1.5)
    f = np.array([4.0, -1.0])
    assert dual.loss(f) == np.inf
    assert dual.largest_scale(f) == 1.5 / 4
    assert dual.best_scale(f, 1e-9) == 1.5 / 4


@given(problems)
@settings(max_examples=50, deadline=None)
@examples(problem=PROBLEMS)
def test_value_and_bound_enclose_the_optimum_at_any_point(problem):
    """Also far from the optimum, where a few steps end."""
    found = solve_smo(problem, tol=1e-9, max_iter=2)
    best = optimum(problem)
    slack = 1e-6 * max(1, abs(best))
    assert found.bound - slack <= best <= found.value + slack
    assert problem.rescaled(found).bound >= found.bound - slack


def test_a_start_that_is_not_finite_is_refused():
    problem = hard_problem()
    with pytest.raises(ValueError, match="initial dual variables are not finite"):
        solve_smo(problem, np.full(len(problem.gram), np.nan))


FIRST_FIT = """
import sys
from numba.core.dispatcher import Dispatcher
from mmbench.machines import SVM
X, y = [[0.0, 0.0], [1.0, 0.5], [2.0, 1.0], [3.0, 0.0]] * 10, [0, 0, 1, 1] * 10
for kernel in ("linear", "rbf"):
    SVM(kernel=kernel).fit(X, y)
    modules = [module for name, module in sys.modules.items() if name.startswith("mmbench.")]
    functions = {f for m in modules for f in vars(m).values() if isinstance(f, Dispatcher)}
    print(sum(len(f.signatures) for f in functions))
"""


def test_the_first_fit_compiles_few_functions_once():
    done = subprocess.run([sys.executable, "-c", FIRST_FIT], capture_output=True, text=True)
    linear, kernel = map(int, done.stdout.split())
    assert linear == 0
    assert 0 < kernel <= 5
