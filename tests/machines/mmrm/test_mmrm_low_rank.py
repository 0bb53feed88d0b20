"""Kernels of low numerical rank: their factor, their Newton equations, and programs solved so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MMRM
from mmbench.machines.mmrm import mmrm
from mmbench.machines.mmrm.interior import LowRank, LpInteriorPoint, of_low_rank, whole
from mmbench.machines.mmrm.program import Guess, KernelProgram, low_rank_factor
from mmbench.machines.mmrm.whole import solve_whole


def gaussian_classes(n, share, distance, n_features=2):
    random = np.random.default_rng(0)
    y = np.where(random.random(n) < share, 1.0, -1.0)
    X = random.normal(size=(n, n_features))
    X[y > 0] += distance / np.sqrt(n_features)
    return X, y


def factor_of(gram, most):
    return low_rank_factor(np.diagonal(gram).copy(), lambda a, b: gram[np.ix_(a, b)], most)


@given(seed=st.integers(0, 10**6), gamma=st.floats(1e-6, 0.01), n_features=st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_a_factor_gives_the_matrix_to_rounding(seed, gamma, n_features):
    X = np.random.default_rng(seed).normal(size=(60, n_features))
    gram = Kernel("rbf", gamma=gamma)(X, X)
    factor = factor_of(gram, 45)
    assert factor is not None
    np.testing.assert_allclose(factor @ factor.T, gram, rtol=0, atol=2e-13)


def test_no_factor_where_the_rank_is_not_low_or_the_matrix_is_indefinite():
    X, _ = gaussian_classes(80, 0.5, 1.0)
    full = Kernel("rbf", gamma=20.0)(X, X)
    assert factor_of(full, 40) is None
    low = Kernel("poly", degree=2)(X, X)
    assert factor_of(low, 40).shape == (80, 6)
    indefinite = low + 0.1 * np.outer(X[:, 0] > 0, X[:, 0] < 0)
    assert factor_of((indefinite + indefinite.T) / 2, 40) is None
    assert factor_of(-low, 40) is None


@pytest.mark.parametrize("spread", [0, 6])
def test_newton_equations_of_low_rank_have_the_solution_of_the_whole_ones(spread):
    random = np.random.default_rng(spread)
    left, right = random.normal(size=(50, 7)), random.normal(size=(40, 7))
    y = np.where(random.random(50) < 0.3, 1.0, -1.0)
    diagonal, weight = (10.0 ** random.uniform(-spread, spread, n) for n in (50, 40))
    wanted = random.normal(size=50), random.normal(size=40), 0.7
    fast = of_low_rank(LowRank(left, right), y, diagonal, weight)(*wanted)
    slow = whole(left @ right.T, y, diagonal, weight)(*wanted)
    for ours, theirs in zip(fast, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8 * np.abs(theirs).max())


@pytest.mark.parametrize("factor", [1.1, 30.0])
def test_a_program_of_low_rank_has_the_optimum_of_the_reference_solver(factor, monkeypatch):
    X, y = gaussian_classes(200, 0.3, 1.0)
    parameters = {"gamma": 2.0**-10, "C_factor": factor, "coefficient_limit": 1e4}
    reference = MMRM(solver="reference", **parameters).fit(X, y).fits_[0]
    monkeypatch.setattr(LpInteriorPoint, "__init__", only_of_low_rank(LpInteriorPoint.__init__))
    fit = MMRM(**parameters).fit(X, y).fits_[0]
    assert (fit.status, fit.route) == (reference.status, "whole")
    assert fit.objective == pytest.approx(reference.objective, rel=1e-6)
    assert 0 <= fit.gap <= 1e-6


@pytest.mark.parametrize("share, distance", [(0.3, 4.0), (0.03, 0.8)])
def test_coefficients_that_do_not_cancel_give_way_to_those_of_the_guess(share, distance):
    X, y = gaussian_classes(400, share, distance)
    kernel = Kernel("rbf", gamma=0.06)
    program = KernelProgram(kernel(X, X), y, np.full(400, 10 / np.sum(y > 0)))
    guess = Guess(np.ones(400), np.zeros(400))
    assert solve_whole(program, guess, 1e-6).status is Status.OPTIMAL


def test_a_rare_class_among_thousands_of_rows_is_solved_without_their_matrix(monkeypatch):
    X, y = gaussian_classes(4050, 0.03, 0.8)
    monkeypatch.setattr(mmrm, "RestrictedProgram", lambda *_: pytest.fail("by parts"))
    monkeypatch.setattr(LpInteriorPoint, "__init__", only_of_low_rank(LpInteriorPoint.__init__))
    fit = MMRM(gamma=2.0**-7).fit(X, y).fits_[0]
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.route == "whole"
    assert fit.gap <= 1e-6


def only_of_low_rank(method):
    def checked(self, A, *args):
        assert isinstance(A, LowRank)
        method(self, A, *args)

    return checked
