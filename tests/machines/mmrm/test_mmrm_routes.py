"""Every route of the MMRM against the whole program in HiGHS, and statuses that are true."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MMRM
from mmbench.machines.base import problem
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.mmrm import interior, mmrm

#: name: data set, classes, every how many rows, parameters, route of solver="auto"
REAL = {
    "usps 3/5": ("usps", 3, 5, 2, {"gamma": 2.0**-7, "C": 10.0}, "interior"),
    "usps 3/5 few": ("usps", 3, 5, 4, {"gamma": 2.0**-7, "C": 10.0}, "whole"),
    "usps 4/9 narrow": ("usps", 4, 9, 1, {"gamma": 2.0**-6, "C": 10.0}, "interior"),
    "usps 4/9 linear": ("usps", 4, 9, 8, {"kernel": "linear"}, "highs"),
    "ionosphere": ("ionosphere", "b", "g", 1, {"gamma": 0.1, "C": 1.0}, "interior"),
    "ionosphere small C": ("ionosphere", "b", "g", 1, {"gamma": 0.5, "C": 0.01}, "interior"),
    "ionosphere linear": ("ionosphere", "b", "g", 1, {"kernel": "linear"}, "features"),
    "pima": ("pima", 0, 1, 2, {"gamma": 10.0, "C": 1.0}, "whole"),
}


def scaled_pair(real_data, name, negative, positive, step):
    data = real_data(name)
    rows = np.flatnonzero((data.y == negative) | (data.y == positive))
    if data.split is not None:
        rows = np.intersect1d(rows, data.split[0])
    X = data.X[rows[::step]].astype(float)
    if name != "usps":
        X = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9)
    return X, np.where(data.y[rows[::step]] == positive, 1.0, -1.0)


def overlapping(n=60, d=3, shift=0.7, seed=0, share=0.5):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    return rng.normal(size=(n, d)) + shift * y[:, None], y


def fit_of(X, y, **parameters):
    return MMRM(**parameters).fit(X, y).fits_[0]


def assert_same_optimum(fit, reference):
    assert fit.status is reference.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(reference.objective, rel=1e-6)
    assert fit.bound <= fit.objective * (1 + 1e-9)
    assert fit.max_violation < 1e-7


@pytest.mark.parametrize("case", REAL)
def test_every_route_reaches_the_optimum_of_the_whole_program_on_real_pairs(real_data, case):
    *place, parameters, route = REAL[case]
    X, y = scaled_pair(real_data, *place)
    reference = fit_of(X, y, solver="reference", **parameters)
    fit = fit_of(X, y, **parameters)
    assert_same_optimum(fit, reference)
    assert (fit.route, reference.route) == (route, "highs")
    assert_same_optimum(fit_of(X, y, solver="interior", **parameters), reference)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(6, 40),
    gamma=st.floats(0.05, 5),
    factor=st.floats(1.0, 100),
    solver=st.sampled_from(["auto", "interior"]),
)
@settings(max_examples=40, deadline=None)
@examples(
    seed=range(12),
    n=(6, 17, 40),
    gamma=(0.05, 0.6, 5.0, 1.7),
    factor=(1.0, 100.0, 4.0, 20.0, 1.3),
    solver=("auto", "interior"),
)
def test_small_programs_equal_the_whole_program(seed, n, gamma, factor, solver):
    X, y = overlapping(n=n, seed=seed)
    parameters = {"gamma": gamma, "C_factor": factor}
    fit = fit_of(X, y, solver=solver, **parameters)
    reference = fit_of(X, y, solver="reference", **parameters)
    assert fit.bound <= fit.objective + 1e-9
    if Status.OPTIMAL is fit.status is reference.status:
        assert fit.objective == pytest.approx(reference.objective, rel=2e-6)
    assert fit.objective >= 2 - 1e-6  # lam = 1/n_class is feasible and sums to 2


@pytest.mark.parametrize("solver", ["auto", "interior"])
def test_a_float32_gram_is_solved_as_it_is_stored(solver):
    X, y = overlapping()
    kernel = Kernel("rbf", gamma=0.5)
    gram = kernel(X, X, np.float32)
    fit = MMRM(C=1.0, solver=solver).train(BinaryProblem(X, y, kernel, gram)).fit
    exact = BinaryProblem(X, y, kernel, gram.astype(np.float64))
    reference = MMRM(C=1.0, solver="reference").train(exact).fit
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(reference.objective, rel=1e-9)


def test_a_program_below_the_threshold_of_C_is_unbounded_or_solved_whichever_is_true():
    X, y = overlapping()
    seen = set()
    for C in np.geomspace(1e-3, 1 / 30, 12):
        fit, reference = (
            fit_of(X, y, C=C, gamma=0.05, solver=solver) for solver in ("auto", "reference")
        )
        assert fit.status == reference.status
        assert fit.objective == pytest.approx(reference.objective, rel=1e-6)
        seen.add(fit.status)
    assert seen == {Status.UNBOUNDED, Status.OPTIMAL}


@pytest.mark.parametrize("n, shift, route", [(60, 0.7, "whole"), (1100, 1.5, "interior")])
def test_an_unbounded_program_comes_back_with_the_majority_and_no_bound(n, shift, route):
    X, y = overlapping(n=n, share=0.7, shift=shift)
    with pytest.warns(ConvergenceWarning, match="ended unbounded"):
        machine = MMRM(C=1e-4, gamma=0.05).fit(X, y)
    fit = machine.fits_[0]
    assert (fit.status, fit.route) == (Status.UNBOUNDED, route)
    assert fit.n_support == 0
    assert machine.intercept_[0] == 1.0
    assert fit.bound == -np.inf
    assert np.isfinite(fit.objective)


def test_a_nearly_singular_kernel_is_solved_to_the_last_digits(real_data):
    # coefficients of 1e5; on all rows HiGHS's simplex ends 2e-4 too high and calls it optimal
    X, y = scaled_pair(real_data, "pima", 0, 1, 2)
    fit = fit_of(X, y, gamma=1.0, C=0.05, solver="interior")
    assert fit.status is Status.OPTIMAL
    assert abs(fit.gap) < 1e-8
    reference = fit_of(X, y, gamma=1.0, C=0.05, solver="reference")
    assert reference.objective >= fit.objective - 1e-6


@pytest.mark.parametrize("gamma", [2.0**-5, 0.5])
def test_parts_too_large_for_an_lu_factorization_are_solved(real_data, monkeypatch, gamma):
    monkeypatch.setattr(interior, "MAX_WHOLE_ORDER", 0)
    X, y = scaled_pair(real_data, "heart", 0, 1, 1)
    fit = fit_of(X, y, gamma=gamma, C_factor=30.0, solver="interior")
    assert (fit.status, fit.route) == (Status.OPTIMAL, "interior")


@pytest.mark.parametrize("solver", ["auto", "interior", "reference"])
def test_margins_that_are_missed_by_rounding_cost_no_slack(solver):
    """The optimum has no slack; 1e8 times a slack of 1e-9 would show in the objective."""
    X, y = overlapping(shift=2.5)
    small, large = (fit_of(X, y, gamma=0.1, C=C, solver=solver) for C in (100.0, 1e8))
    assert small.status is large.status is Status.OPTIMAL
    assert large.objective == pytest.approx(small.objective, rel=1e-7)


@pytest.mark.parametrize("factor", [1.1, 30.0])
def test_the_whole_program_of_inseparable_data_has_the_optimum_of_the_rounds(real_data, factor):
    X, y = scaled_pair(real_data, "pima", 0, 1, 2)
    fast, slow = (
        fit_of(X, y, gamma=0.5, C_factor=factor, solver=solver) for solver in ("auto", "interior")
    )
    assert (fast.route, slow.route) == ("whole", "interior")
    assert fast.status is slow.status is Status.OPTIMAL
    assert fast.objective == pytest.approx(slow.objective, rel=1e-6)
    limited = [fit.extra["at_coefficient_limit"] for fit in (fast, slow)]
    assert limited == [factor > 2] * 2


@pytest.mark.parametrize("solver", ["auto", "interior", "reference"])
def test_repeated_samples_carry_each_others_cost_and_change_nothing(solver):
    X, y = overlapping(n=40)
    repeats = np.r_[np.arange(40), np.arange(15), np.arange(5)]
    weights = np.bincount(repeats).astype(float)
    repeated = fit_of(X[repeats], y[repeats], gamma=0.5, C=0.5, solver=solver)
    weighted = MMRM(gamma=0.5, C=0.5).fit(X, y, sample_weight=weights).fits_[0]
    assert repeated.status is weighted.status is Status.OPTIMAL
    assert repeated.objective == pytest.approx(weighted.objective, rel=1e-8)


@given(seed=st.integers(0, 10**6), C=st.floats(0.05, 50))
@settings(max_examples=25, deadline=None)
@examples(seed=range(8), C=(0.05, 0.4, 3.0, 50.0))
def test_the_linear_program_has_no_duality_gap(seed, C):
    fit = fit_of(*overlapping(seed=seed), kernel="linear", C=C, solver="reference")
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.objective == pytest.approx(fit.bound, rel=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("solver", ["auto", "interior"])
def test_the_kernel_matrix_is_not_stored_where_memory_is_short(kernel, solver, monkeypatch):
    X, y = overlapping(n=80)
    parameters = {"kernel": kernel, "gamma": 0.5, "solver": solver}
    stored = fit_of(X, y, **parameters).objective
    for module in (mmrm, problem):
        monkeypatch.setattr(module, "STORED_ROWS", 10)
    monkeypatch.setattr(mmrm, "available_bytes", lambda: 1000)
    monkeypatch.setattr(BinaryProblem, "gram", property(lambda self: pytest.fail("stored")))
    fit = fit_of(X, y, **parameters)
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(stored, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("share", [0.05, 0.02])
def test_a_rare_class_that_overlaps_the_other_is_solved_as_a_whole(kernel, share):
    random = np.random.default_rng(0)
    y = (random.random(600) < share).astype(int)
    X = random.normal(size=(600, 2)) + 0.8 * y[:, None]
    fit = fit_of(X, y, kernel=kernel)
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.route == "whole"
    assert fit.gap <= 1e-6


@pytest.mark.parametrize("n", [60, 260])
@pytest.mark.parametrize("gamma", ["scale", 0.5])
def test_every_sample_in_both_classes_is_no_obstacle(n, gamma):
    """The class means are equal: the cost of u is a rounding error."""
    X, y = overlapping(n=n)
    fit = fit_of(np.vstack([X, X]), np.concatenate([y, -y]), gamma=gamma)
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.objective == pytest.approx(20.0)  # C_factor 10: all slacks are 1
    assert 0 <= fit.gap <= 1e-6


@pytest.mark.parametrize(
    "kernel, solver",
    [("rbf", "auto"), ("rbf", "reference"), ("linear", "auto"), ("linear", "reference")],
)
@pytest.mark.parametrize("kind", ["constant column", "one row", "all equal", "huge", "tiny"])
def test_odd_data_end_in_a_certificate_that_holds(kind, kernel, solver):
    X, y = overlapping(n=40)
    if kind == "constant column":
        X[:, 1] = 3.0
    elif kind == "one row":
        y = np.where(np.arange(40) == 0, 1.0, -1.0)
    elif kind == "all equal":
        X[:] = 1.0
    else:
        X *= 1e150 if kind == "huge" else 1e-150
    fit = fit_of(X, y, kernel=kernel, solver=solver)
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.bound <= fit.objective * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C, weight", [(1e-300, 1.0), (1e300, 1.0), (1e6, 1e-290)])
def test_penalties_beyond_double_precision_are_refused_in_one_line(kernel, C, weight):
    X, y = overlapping()
    with pytest.raises(ValueError, match="MMRM: penalties on slack"):
        MMRM(kernel=kernel, C=C).fit(X, y, sample_weight=np.full(60, weight))
