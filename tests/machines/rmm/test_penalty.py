"""The journal's forms of the RMM: Clarabel on their duals as oracle, and the RMM of bound B."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import RMM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.svm import train_svm
from mmbench.memory import TrainingSize

KERNELS = (Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=1.0))
RBF = KERNELS[2]
FORMS = ("penalty", "relaxed")


def decision(problem, model):
    return problem.gram @ model.coef + model.intercept


def primal(problem, model, C, D, t, nu=None):
    """(13), or (14) with nu, at w, b and t."""
    f = decision(problem, model)
    value = model.coef @ problem.gram @ model.coef / 2
    value += C * np.maximum(0, 1 - problem.y * f).sum() + D * t
    excess = np.maximum(0, np.abs(f) - t).sum()
    return value + (0 if nu is None else D * nu / len(f) * excess)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("D", [0.3, 30.0])
def test_fast_and_reference_reach_the_same_objective(pair, kernel, form, D):
    problem = pair(kernel)
    fast, same = (
        RMM(C=5.0, form=form, D=D, nu=4.0, solver=solver, tol=1e-9).train(problem).fit
        for solver in ("auto", "reference")
    )
    assert fast.status is Status.OPTIMAL
    assert fast.bound <= fast.objective + 1e-9
    assert fast.gap < 1e-6
    assert fast.objective == pytest.approx(same.bound, rel=1e-6)
    assert fast.max_violation < 1e-8


@pytest.mark.parametrize(("form", "nu"), [("penalty", None), ("relaxed", 5.0)])
def test_objective_is_the_primal_at_its_best_t(pair, form, nu):
    problem, C, D = pair(RBF), 5.0, 3.0
    model = RMM(C=C, form=form, D=D, nu=nu or 10.0, tol=1e-8).train(problem)
    t = model.fit.extra["B"]
    assert t >= 1
    assert model.fit.objective == pytest.approx(primal(problem, model, C, D, t, nu))
    for other in (max(1.0, 0.98 * t), 1.02 * t):
        if nu is not None or other >= t:  # (13) has no smaller t for this w and b
            assert primal(problem, model, C, D, other, nu) >= model.fit.objective - 1e-9


def test_penalty_is_the_RMM_of_the_bound_that_it_finds(pair):
    """(13) at D and (7) at B = t: the same path, in another parameter."""
    problem, C = pair(RBF), 5.0
    for D in (0.5, 5.0, 20.0):
        penalty = RMM(C=C, form="penalty", D=D, tol=1e-8).train(problem)
        B = penalty.fit.extra["B"]
        bound = RMM(C=C, B=B, tol=1e-8).train(problem)
        assert penalty.fit.objective == pytest.approx(bound.fit.objective + D * B, rel=1e-6)
        np.testing.assert_allclose(decision(problem, penalty), decision(problem, bound), atol=1e-4)


def test_a_higher_penalty_lowers_the_bound(pair):
    problem = pair(RBF)
    for form in FORMS:
        path = RMM(C=5.0, form=form, tol=1e-7).train_path(
            problem, [{"D": D} for D in (100.0, 0.1, 1.0, 10.0)]
        )
        t = [model.fit.extra["B"] for model in path]
        assert t[1] >= t[2] >= t[3] >= t[0] >= 1


def test_a_vanishing_penalty_gives_the_svm(pair):
    problem = pair(RBF)
    svm = train_svm(problem, 5.0, tol=1e-9)
    for form in FORMS:
        model = RMM(C=5.0, form=form, D=1e-9, tol=1e-9).train(problem)
        assert model.fit.objective == pytest.approx(svm.fit.objective, rel=1e-6)


def test_a_large_nu_forbids_exceptions(pair):
    """(14) tends to (13); at nu = n no row can exceed t at a profit."""
    problem = pair(RBF)
    relaxed = RMM(C=5.0, form="relaxed", D=3.0, nu=2.0 * len(problem.y), tol=1e-8).train(problem)
    penalty = RMM(C=5.0, form="penalty", D=3.0, tol=1e-8).train(problem)
    assert relaxed.fit.objective == pytest.approx(penalty.fit.objective, rel=1e-6)


@pytest.mark.parametrize("nu", [2.0, 10.0])
def test_at_most_the_share_one_by_nu_exceeds_t(pair, nu):
    problem = pair(RBF)
    model = RMM(C=5.0, form="relaxed", D=20.0, nu=nu, tol=1e-8).train(problem)
    f, t = decision(problem, model), model.fit.extra["B"]
    assert (np.abs(f) > t * (1 + 1e-6)).mean() <= 1 / nu


def test_D_is_C_where_it_is_not_given(tiny):
    one = RMM(C=3.0, form="relaxed").train(tiny).fit.objective
    same = RMM(C=3.0, form="relaxed", D=3.0).train(tiny).fit.objective
    assert one == same


@pytest.mark.parametrize(("form", "seed"), [("penalty", 1), ("relaxed", 2)])
def test_a_high_penalty_on_slack_leaves_no_gap(form, seed):
    """Where each row is exact to tol and no more the gaps are 9e-3 and 7e-3."""
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    problem = BinaryProblem(rng.normal(size=(30, 3)) + 4.0 * y[:, None], y, KERNELS[0])
    machine = RMM(C=1000.0, form=form, D=0.1, nu=1.5)
    fit = machine.train(problem).fit
    assert fit.status is Status.OPTIMAL
    assert -1e-12 <= fit.gap <= 100 * machine.tol


@pytest.mark.parametrize("form", ["penalty", "relaxed"])
def test_a_search_that_rounding_ends_is_short(form):
    """``Ku`` computed afresh refutes every solution there: step after step, for a minute."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    machine = RMM(C=1e8, form=form, kernel="linear").fit(10 * X, y)
    assert machine.fits_[0].iterations < 5e5


@pytest.mark.parametrize("D", [0.3, 30.0, 1e4])
@pytest.mark.parametrize("params", [{}, {"class_weight": "balanced"}], ids=str)
def test_many_rows_of_few_features_take_no_kernel_matrix(D, params, monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 3))
    y = X[:, 0] + random.normal(size=900) > 0.5
    machine = RMM(kernel="linear", C=2.0, form="penalty", D=D, tol=1e-6, **params)
    slow = machine.set_params(solver="smo").fit(X, y).fits_[0]
    monkeypatch.setattr(BinaryProblem, "matrix", None)
    fast = machine.set_params(solver="auto").fit(X, y).fits_[0]
    assert fast.status is slow.status is Status.OPTIMAL
    assert fast.objective == pytest.approx(slow.objective, rel=1e-6)
    assert fast.extra["B"] == pytest.approx(slow.extra["B"], rel=1e-3)


def test_the_relaxed_form_states_the_cache_that_it_takes():
    size = TrainingSize(100_000, 5)
    relaxed, penalty = (
        RMM(kernel="linear", form=form, cache_size=1000).bytes_needed(size)
        for form in ("relaxed", "penalty")
    )
    assert relaxed > 1e9 > penalty
