"""The program of the MMRM: every route against the whole program, and answers that are honest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines import MMRM
from mmbench.machines.base import problem
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.mmrm import generation as mmrm_generation
from mmbench.machines.mmrm import interior, mmrm
from mmbench.machines.mmrm import interior as newton
from mmbench.machines.mmrm.certificate import best, certify, reused
from mmbench.machines.mmrm.generation import solve_generation
from mmbench.machines.mmrm.interior import InteriorPoint, Iterate, Reduced, Whole, Workspace
from mmbench.machines.mmrm.mmrm import solve_kernel
from mmbench.machines.mmrm.program import Guess, KernelProgram, LinearProgram, without_repeats
from mmbench.machines.mmrm.rounds import Rounds
from mmbench.machines.mmrm.vertex import Partition, solve_reference, solve_vertex
from mmbench.machines.mmrm.whole import Shifted, singular, solve_whole
from mmbench.solvers.highs_ import LpModel
from mmbench.solvers.svm_dual.smo import solve_smo

ROUTES = ("auto", "interior", "generation")

#: name: data set, classes, gamma, C
REAL = {
    "usps 3/5": ("usps", 3, 5, 2.0**-7, 10.0),
    "usps 4/9 narrow": ("usps", 4, 9, 2.0**-6, 10.0),
    "ionosphere": ("ionosphere", "b", "g", 0.1, 1.0),
    "ionosphere small C": ("ionosphere", "b", "g", 0.5, 0.01),
    "pima": ("pima", 0, 1, 10.0, 1.0),
}


def svm_guess(gram, y, C):
    from mmbench.machines.svm import svm_dual

    found = solve_smo(svm_dual(gram, y, C), tol=1e-2)
    return Guess(np.abs(found.u), y * (found.decision + found.bias))


def scaled_pair(real_data, name, negative, positive):
    data = real_data(name)
    rows = np.flatnonzero((data.y == negative) | (data.y == positive))
    if data.split is not None:
        rows = np.intersect1d(rows, data.split[0])
    rows = rows[:: {"ionosphere": 1, "pima": 2, "usps": 4}[name]]  # the whole program is slow
    X = data.X[rows].astype(float)
    if name != "usps":
        X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9)
    return X, np.where(data.y[rows] == positive, 1.0, -1.0)


def overlapping(n=60, d=3, shift=0.7, seed=0, share=0.5):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def small_program(gamma=0.5, C=1.0, dtype=np.float64, **options):
    X, y = overlapping(**options)
    return KernelProgram(Kernel("rbf", gamma=gamma)(X, X, dtype), y, np.full(len(y), C))


def no_guess(program):
    return Guess(np.zeros(program.n_columns), np.ones(len(program.y)))


@pytest.mark.parametrize("case", REAL)
def test_fast_routes_reach_the_whole_programs_optimum_on_real_pairs(real_data, case):
    """In one test, as the whole program takes as long as all routes."""
    name, negative, positive, gamma, C = REAL[case]
    X, y = scaled_pair(real_data, name, negative, positive)
    gram = Kernel("rbf", gamma=gamma)(X, X)
    program = KernelProgram(gram, y, without_repeats(X, y, np.full(len(y), C)))
    guess, whole = svm_guess(gram, y, C), solve_reference(program)
    assert whole.status is Status.OPTIMAL
    for route in ROUTES:
        answer = solve_kernel(program, guess, solver=route)
        assert answer.status is Status.OPTIMAL, route
        assert answer.value == pytest.approx(whole.value, rel=1e-6), route
        assert answer.violation < 1e-7, route


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("C", [0.04, 1.0, 100.0])
def test_fast_routes_need_no_good_guess(route, C):
    program = small_program(C=C)
    answer = solve_kernel(program, no_guess(program), solver=route)
    assert answer.status is Status.OPTIMAL
    assert answer.value == pytest.approx(solve_reference(program).value, rel=1e-6)


@pytest.mark.parametrize("route", ROUTES)
def test_a_float32_gram_is_solved_as_it_is_stored(route):
    program = small_program(dtype=np.float32)
    exact = KernelProgram(program.gram.astype(np.float64), program.y, program.cost)
    answer = solve_kernel(program, no_guess(program), solver=route)
    assert answer.status is Status.OPTIMAL
    assert answer.value == pytest.approx(solve_reference(exact).value, rel=1e-9)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 40),
    gamma=st.floats(0.05, 5),
    factor=st.floats(1.0, 100),
)
@settings(max_examples=40, deadline=None)
def test_generation_equals_the_whole_program_and_its_bound_is_below(seed, n, gamma, factor):
    X, y = overlapping(n=n, seed=seed)
    program = KernelProgram(
        Kernel("rbf", gamma=gamma)(X, X), y, np.full(n, factor / min(np.sum(y > 0), np.sum(y < 0)))
    )
    first = np.arange(min(n, 6))
    fast, whole = solve_generation(program, first, first), solve_reference(program)
    assert fast.bound <= fast.value + 1e-9
    if Status.OPTIMAL is fast.status is whole.status:
        assert fast.value == pytest.approx(whole.value, rel=2e-6)
    assert fast.value >= 2 - 1e-6  # lam = 1/n_class is feasible and sums to 2


def test_a_program_below_the_threshold_of_C_is_unbounded_or_solved_whichever_is_true():
    seen = set()
    for C in np.geomspace(1e-3, 1 / 30, 12):
        program = small_program(C=C, gamma=0.05)
        whole = solve_reference(program)
        answer = solve_kernel(program, no_guess(program))
        assert answer.status == whole.status
        assert answer.value == pytest.approx(whole.value, rel=1e-6)
        seen.add(whole.status)
    assert seen == {Status.UNBOUNDED, Status.OPTIMAL}


@pytest.mark.parametrize(("finest", "status"), [(5e-3, "failed"), (1e-10, "optimal")])
def test_a_gap_that_the_tolerance_of_simplex_leaves_is_closed(monkeypatch, finest, status):
    """Without the exact vertex, which may be one that simplex stopped at too early."""
    monkeypatch.setattr(mmrm_generation, "polished", lambda program, answer, *_: answer)
    monkeypatch.setattr(mmrm_generation, "LpModel", partial(LpModel, tol=5e-3))
    monkeypatch.setattr(mmrm_generation, "SMALLEST_HIGHS_TOLERANCE", finest)
    program = small_program(C=1.0)
    assert solve_generation(program, program.rows, program.columns).status == status


def test_an_unbounded_program_comes_back_with_the_majority_and_no_bound():
    program = small_program(C=1e-4, gamma=0.05, share=0.7)
    answer = solve_kernel(program, no_guess(program))
    assert answer.status is Status.UNBOUNDED
    assert not answer.u.any()
    assert answer.b == 1.0
    assert answer.bound == -np.inf
    assert np.isfinite(answer.value)


def test_a_nearly_singular_kernel_is_solved_to_the_last_digits(real_data):
    # coefficients of 1e5; on all rows HiGHS's simplex ends 2e-4 too high and calls it optimal
    X, y = scaled_pair(real_data, "pima", 0, 1)
    gram = Kernel("rbf", gamma=1.0)(X, X)
    program = KernelProgram(gram, y, np.full(len(y), 0.05))
    answer = Rounds(program, svm_guess(gram, y, 1.0), 1e-6).solve()
    assert answer.status is Status.OPTIMAL
    assert abs(answer.gap) < 1e-8
    assert solve_reference(program).value >= answer.value - 1e-6


@pytest.mark.parametrize("factor", [1.1, 30.0])
def test_the_whole_route_solves_inseparable_data_as_the_growing_parts_do(real_data, factor):
    X, y = scaled_pair(real_data, "pima", 0, 1)
    gram = Kernel("rbf", gamma=0.5)(X, X)
    program = KernelProgram(gram, y, np.full(len(y), factor / np.sum(y > 0)))
    assert not singular(program, program.rows)
    guess = svm_guess(gram, y, factor)
    fast, slow = solve_whole(program, guess, 1e-6), Rounds(program, guess, 1e-6).solve()
    assert fast.status is slow.status is Status.OPTIMAL
    assert fast.value == pytest.approx(slow.value, rel=1e-6)
    assert fast.limited(program, 1e-6) == slow.limited(program, 1e-6) == (factor > 2)


@given(seed=st.integers(0, 10**6), gamma=st.floats(0.01, 5))
@settings(max_examples=25, deadline=None)
def test_shifted_columns_are_the_same_program_with_another_b(seed, gamma):
    program = small_program(n=30, gamma=gamma, seed=seed)
    shifted, rng = Shifted(program), np.random.RandomState(seed)
    u, b = rng.uniform(size=30), rng.normal()
    plain, plain_b = shifted.original(u, b)
    np.testing.assert_allclose(
        shifted.forward(u) + shifted.y * b,
        program.forward(plain) + program.y * plain_b,
        atol=1e-9 * u.sum() / shifted.scale,
    )
    assert shifted.c @ u == pytest.approx(program.c @ plain, rel=1e-6)
    lam = rng.uniform(size=30)
    lam[program.y > 0] *= lam[program.y < 0].sum() / lam[program.y > 0].sum()
    ratio = program.scale / shifted.scale
    np.testing.assert_allclose(shifted.adjoint(lam), program.adjoint(lam) * ratio, atol=1e-9)


def test_repeated_samples_carry_each_others_cost_and_change_nothing():
    X, y = overlapping(n=40)
    X, y = np.vstack([X, X[:15], X[:5]]), np.concatenate([y, y[:15], y[:5]])
    gram, cost = Kernel("rbf", gamma=0.5)(X, X), np.full(60, 0.5)
    merged = without_repeats(X, y, cost)
    assert merged.sum() == pytest.approx(cost.sum())
    assert np.count_nonzero(merged) == 40
    whole = solve_reference(KernelProgram(gram, y, cost))
    for route in ROUTES:
        program = KernelProgram(gram, y, merged)
        answer = solve_kernel(program, no_guess(program), solver=route)
        assert answer.status is Status.OPTIMAL
        assert answer.value == pytest.approx(whole.value, rel=1e-8)
        slack = np.maximum(1 - answer.margins, 0)  # of all rows, at the price of each
        assert program.c @ answer.u + cost @ slack == pytest.approx(answer.value)


def test_a_false_answer_is_not_certified():
    program = small_program()
    true = solve_reference(program)
    assert certify(program, true.u * 1.1, true.b, true.lam, 1e-6).status is not Status.OPTIMAL
    longer = certify(program, true.u, true.b, true.lam * 1.01, 1e-6)
    assert longer.violation > 1e-6
    assert longer.status is not Status.OPTIMAL
    assert longer.bound <= true.value
    assert certify(program, true.u * np.nan, true.b, true.lam, 1e-6).status is Status.FAILED


def test_the_best_of_several_answers_has_the_best_of_both_sides():
    program = small_program()
    true = solve_reference(program)
    primal = certify(program, true.u, true.b, true.lam * 0, 1e-6)
    dual = certify(program, true.u * 0, true.b, true.lam, 1e-6)
    joined = best(program, [primal, dual], 1e-6)
    assert joined.status is Status.OPTIMAL
    assert joined.gap == pytest.approx(0, abs=1e-9)


def test_a_solution_without_slack_serves_all_larger_costs_and_no_other():
    X, y = overlapping(shift=2.5)
    gram = Kernel("rbf", gamma=0.1)(X, X)
    answer = solve_reference(KernelProgram(gram, y, np.full(60, 10.0)))
    assert answer.margins.min() > 1 - 1e-9
    more = KernelProgram(gram, y, np.full(60, 1000.0))
    again = reused(more, answer, 1e-6)
    assert again.value == pytest.approx(solve_reference(more).value, rel=1e-8)
    assert reused(KernelProgram(gram, y, np.full(60, answer.lam.max() / 2)), answer, 1e-6) is None
    assert reused(KernelProgram(gram[:50, :50], y[:50], np.ones(50)), answer, 1e-6) is None


def test_the_vertex_of_an_optimal_partition_is_the_optimum():
    program = small_program()
    whole = solve_reference(program)
    tight = np.flatnonzero((whole.lam > 1e-9) & (whole.lam < program.cost - 1e-9))
    part = Partition(np.flatnonzero(whole.u), tight, np.flatnonzero(whole.lam >= program.cost))
    vertex = solve_vertex(program, part)
    assert vertex.signs_hold(program)
    np.testing.assert_allclose(vertex.u, whole.u, atol=1e-8 * whole.u.max())
    np.testing.assert_allclose(vertex.lam, whole.lam, atol=1e-8)
    assert solve_vertex(program, Partition(part.positive, tight[:-1], part.at_cost)) is None


def test_a_part_that_leaves_rows_out_is_a_relaxation():
    program = small_program(n=80, shift=1.2, C=10.0)
    whole = solve_reference(program)
    rounds = Rounds(program, no_guess(program), 1e-6)
    rounds.rows = np.flatnonzero(whole.margins < 1 + 1e-9)[::2]
    rounds.columns = program.rows
    iterate = rounds._cold_start()
    assert iterate.run(1e-7)
    assert iterate.objective <= whole.value + 1e-6
    assert iterate.objective >= 2 - 1e-6  # bounded by the class means of the rest


@pytest.mark.parametrize("spread", [1, 3])
def test_both_newton_systems_solve_the_same_equations(spread):
    rng = np.random.RandomState(0)
    A, y = rng.normal(size=(12, 9)), np.where(np.arange(12) % 2, 1.0, -1.0)
    diagonal, weight = 10 ** rng.uniform(-spread, spread, 12), 10 ** rng.uniform(-1, spread, 9)
    r, r_u, r_b = rng.normal(size=12), rng.normal(size=9), 0.3
    for system in (
        Reduced(Workspace(A), y, diagonal, weight, threshold=100.0),
        Reduced(Workspace(A), y, diagonal, weight, threshold=0.01),
        Whole(A, y, diagonal, weight),
    ):
        u, lam, b = system(r, r_u, r_b)
        np.testing.assert_allclose(diagonal * lam + A @ u + b * y, r, atol=1e-7)
        np.testing.assert_allclose(lam @ A - u / weight, r_u, atol=1e-7)
        assert y @ lam == pytest.approx(r_b, abs=1e-9)


@pytest.mark.parametrize("ill_conditioned", [False, True])
def test_the_interior_point_solves_a_small_program_with_both_systems(ill_conditioned):
    program = small_program(n=30)
    whole = solve_reference(program)
    A, n = program.block(program.rows, program.columns), 30
    start = Iterate(np.ones(n), 0.0, np.ones(n), np.ones(n), np.full(n, 0.05), np.full(n, 0.05))
    iterate = InteriorPoint(A, program.y, program.c, program.cost, start, program.limit)
    iterate.ill_conditioned = ill_conditioned
    assert iterate.run(1e-8)
    assert iterate.objective == pytest.approx(whole.value, rel=1e-7)
    assert iterate.ill_conditioned == ill_conditioned


def test_a_part_too_large_for_the_whole_system_takes_more_steps_of_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(interior, "MAX_WHOLE_ORDER", 0)
    monkeypatch.setattr(interior, "MAX_CG_STEPS", 1)
    program = small_program(n=30)
    A, n = program.block(program.rows, program.columns), 30
    start = Iterate(np.ones(n), 0.0, np.ones(n), np.ones(n), np.full(n, 0.05), np.full(n, 0.05))
    iterate = InteriorPoint(A, program.y, program.c, program.cost, start, program.limit)
    iterate.threshold = 1.0
    assert iterate.run(1e-8)
    assert iterate.objective == pytest.approx(solve_reference(program).value, rel=1e-7)


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-9])
def test_the_multipliers_of_an_iterate_prove_what_it_found(tol):
    """What they violate costs the bound a million times as much: the limit multiplies it."""
    program = small_program(n=30)
    A, n = program.block(program.rows, program.columns), 30
    start = Iterate(np.ones(n), 0.0, np.ones(n), np.ones(n), np.full(n, 0.05), np.full(n, 0.05))
    iterate = InteriorPoint(A, program.y, program.c, program.cost, start, program.limit)
    assert iterate.run(tol)
    iterate.restore_dual()
    lam = iterate.point.lam[:-1]
    reduced = program.c - program.adjoint(lam) + iterate.multiplier
    assert program.limit * max(0.0, -reduced.min()) <= 1e-8 * (1 + abs(iterate.objective))
    assert abs(program.y @ lam) < 1e-14


def test_margins_that_are_missed_by_rounding_cost_no_slack():
    X, y = overlapping(shift=2.5)
    program = KernelProgram(Kernel("rbf", gamma=0.1)(X, X), y, np.full(60, 1e4))
    true = solve_reference(program)
    near = certify(program, true.u * (1 - 1e-9), true.b * (1 - 1e-9), true.lam, 1e-6)
    assert near.value == pytest.approx(true.value, rel=1e-8)
    far = certify(program, true.u * 0.9, true.b * 0.9, true.lam, 1e-6)
    assert far.value > 1.1 * true.value


def test_a_vertex_whose_rows_are_violated_is_none():
    """Its signs alone do not tell: u and lam are right at many a wrong partition."""
    program = small_program(n=40, shift=1.2, C=10.0)
    whole = solve_reference(program)
    whole_part = (program, program.rows, program.columns, 1e-7)
    inside = (whole.lam > 1e-9) & (whole.lam < program.cost - 1e-9)
    support, at_cost = np.flatnonzero(whole.u), np.flatnonzero(whole.lam >= program.cost)
    tight, others = np.flatnonzero(inside), np.flatnonzero(whole.lam <= 1e-9)
    right = solve_vertex(program, Partition(support, tight, at_cost))
    assert right.is_optimum(*whole_part)
    swapped = [
        solve_vertex(program, Partition(support, np.append(np.delete(tight, k), other), at_cost))
        for k in range(len(tight))
        for other in others
    ]
    signed = [one for one in swapped if one is not None and one.signs_hold(program)]
    assert signed
    for vertex in signed:
        found = certify(program, vertex.u, vertex.b, vertex.lam, 1e-6)
        assert vertex.is_optimum(*whole_part) == (found.status is Status.OPTIMAL)


def test_a_step_that_leaves_a_residual_of_the_rows_is_refined(monkeypatch):
    monkeypatch.setattr(newton, "CG_TOLERANCE", 1e-4)
    monkeypatch.setattr(InteriorPoint, "_adapt", lambda self, steps: None)
    program = small_program(n=30)
    A, n = program.block(program.rows, program.columns), 30
    start = Iterate(np.ones(n), 0.0, np.ones(n), np.ones(n), np.full(n, 0.05), np.full(n, 0.05))
    iterate = InteriorPoint(A, program.y, program.c, program.cost, start, program.limit)
    iterate.threshold = 0.01
    assert iterate._iterate(iterate._residuals(), 1e-9)
    assert not iterate.ill_conditioned


def test_a_part_starts_from_the_iterate_that_is_kept_of_the_part_before(real_data):
    X, y = scaled_pair(real_data, "usps", 3, 5)
    gram = Kernel("rbf", gamma=2.0**-7)(X, X)
    program = KernelProgram(gram, y, without_repeats(X, y, np.full(len(y), 10.0)))
    rounds = Rounds(program, svm_guess(gram, y, 10.0), 1e-6)
    iterate = rounds._cold_start()
    assert iterate.run(1e-3)
    rounds._keep(iterate)
    warm, cold = rounds._warm_start(), rounds._cold_start()
    assert warm.run(1e-7)
    assert cold.run(1e-7)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.iterations < cold.iterations


@given(seed=st.integers(0, 10**6), C=st.floats(0.05, 50))
@settings(max_examples=25, deadline=None)
def test_the_linear_program_has_no_duality_gap(seed, C):
    X, y = overlapping(seed=seed)
    answer = solve_reference(LinearProgram(X, y, np.full(60, C)))
    assert answer.status is Status.OPTIMAL
    assert answer.value == pytest.approx(answer.lam.sum(), rel=1e-7)


@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=0.5), Kernel("poly", degree=2)])
def test_a_matrix_that_is_never_whole_makes_the_same_program(kernel):
    X, y = overlapping(n=80)
    cost = np.full(80, 0.5)
    stored = KernelProgram(kernel(X, X), y, cost)
    program = KernelProgram(KernelMatrix(kernel, X), y, cost)
    rows, columns = np.array([3, 1, 70]), np.array([1, 40])
    np.testing.assert_allclose(program.block(rows, columns), stored.block(rows, columns))
    np.testing.assert_allclose(program.c, stored.c, atol=1e-13)
    for route in ROUTES:
        answer = solve_kernel(program, no_guess(program), solver=route)
        assert answer.status is Status.OPTIMAL
        assert answer.value == pytest.approx(solve_reference(stored).value, rel=1e-6)


def test_the_kernel_matrix_is_not_stored_where_memory_is_short(monkeypatch):
    X, y = overlapping(n=80)
    stored = MMRM(gamma=0.5).fit(X, y).fits_[0].objective
    for module in (mmrm, problem):
        monkeypatch.setattr(module, "STORED_ROWS", 10)
    monkeypatch.setattr(mmrm, "available_bytes", lambda: 1000)
    monkeypatch.setattr(BinaryProblem, "gram", property(lambda self: pytest.fail("stored")))
    fit = MMRM(gamma=0.5).fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(stored, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("share", [0.05, 0.02])
def test_a_rare_class_that_overlaps_the_other_is_solved_as_a_whole(kernel, share):
    random = np.random.default_rng(0)
    y = (random.random(600) < share).astype(int)
    X = random.normal(size=(600, 2)) + 0.8 * y[:, None]
    fit = MMRM(kernel=kernel).fit(X, y).fits_[0]
    assert fit.status in ("optimal", "trivial")
    assert fit.extra["route"] == "whole"
    assert fit.gap <= 1e-6


def test_inseparable_data_of_few_rows_go_by_simplex_unless_their_kernel_is_singular():
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(120, 10)), np.where(np.arange(120) % 2, 1, -1)
    for gamma, route in ((0.1, "generation"), (1e-5, "whole")):
        fit = MMRM(C_factor=2, gamma=gamma).fit(X, y).fits_[0]
        assert (fit.status, fit.extra["route"]) == ("optimal", route)
