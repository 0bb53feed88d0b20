"""Inside the routes of the MMRM: certificates, vertices, restricted programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines.mmrm.certificate import best, certify
from mmbench.machines.mmrm.interior import Iterate, LpInteriorPoint
from mmbench.machines.mmrm.mmrm import solve_kernel
from mmbench.machines.mmrm.program import Guess, KernelProgram
from mmbench.machines.mmrm.rounds import RestrictedProgram
from mmbench.machines.mmrm.vertex import Partition, solve_reference, solve_vertex
from mmbench.machines.mmrm.whole import Shifted

ROUTES = ("auto", "interior")


def overlapping(n=60, d=3, shift=0.7, seed=0, share=0.5):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def small_program(gamma=0.5, C=1.0, dtype=np.float64, **options):
    X, y = overlapping(**options)
    return KernelProgram(Kernel("rbf", gamma=gamma)(X, X, dtype), y, np.full(len(y), C))


def no_guess(program):
    return Guess(np.zeros(program.n_columns), np.ones(len(program.y)))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("C", [0.04, 1.0, 100.0])
def test_fast_routes_need_no_good_guess(route, C):
    program = small_program(C=C)
    answer = solve_kernel(program, no_guess(program), route, 1e-6)
    assert answer.status is Status.OPTIMAL
    assert answer.value == pytest.approx(solve_reference(program).value, rel=1e-6)


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


def test_margins_that_are_missed_by_rounding_cost_no_slack():
    X, y = overlapping(shift=2.5)
    program = KernelProgram(Kernel("rbf", gamma=0.1)(X, X), y, np.full(60, 1e4))
    true = solve_reference(program)
    near = certify(program, true.u * (1 - 1e-9), true.b * (1 - 1e-9), true.lam, 1e-6)
    assert near.value == pytest.approx(true.value, rel=1e-8)
    far = certify(program, true.u * 0.9, true.b * 0.9, true.lam, 1e-6)
    assert far.value > 1.1 * true.value


def test_a_part_that_leaves_rows_out_is_a_relaxation():
    program = small_program(n=80, shift=1.2, C=10.0)
    whole = solve_reference(program)
    rounds = RestrictedProgram(program, no_guess(program), 1e-6)
    rounds.rows = np.flatnonzero(whole.margins < 1 + 1e-9)[::2]
    rounds.columns = program.rows
    iterate = rounds._start()
    assert iterate.run(1e-7)
    assert iterate.objective <= whole.value + 1e-6
    assert iterate.objective >= 2 - 1e-6  # bounded by the class means of the rest


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7, 1e-9])
def test_the_multipliers_of_an_iterate_prove_what_it_found(tol):
    """What they violate costs the bound a million times as much: the limit multiplies it."""
    program = small_program(n=30)
    A, n = program.block(program.rows, program.columns), 30
    start = Iterate(np.ones(n), 0.0, np.ones(n), np.ones(n), np.full(n, 0.05), np.full(n, 0.05))
    iterate = LpInteriorPoint(A, program.y, program.c, program.cost, start, program.limit)
    assert iterate.run(tol)
    iterate.restore_dual()
    lam = iterate.point.lam[:-1]
    reduced = program.c - program.adjoint(lam) + iterate.multiplier
    assert program.limit * max(0.0, -reduced.min()) <= 1e-8 * (1 + abs(iterate.objective))
    assert abs(program.y @ lam) < 1e-14
