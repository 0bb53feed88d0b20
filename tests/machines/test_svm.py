"""The SVM: its certificate, libsvm as oracle on real pairs, and the invariances of methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import RMM, SVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.svm import svm_dual, train_svm
from mmbench.solvers.clarabel_ import solve_qp

KERNELS = (Kernel("linear"), Kernel("poly", degree=3), Kernel("rbf", gamma=0.1))
LINEAR = Kernel("linear")


def decision(problem, model):
    return problem.gram @ model.coef + model.intercept


# -- the certificate ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_fast_and_reference_reach_the_same_optimum(pair, kernel, C):
    """The dual value is compared: libsvm rounds kernel values to float32, which enters it squared.

    Its primal value suffers in the first order, and is compared where kernel values are below 1.
    """
    problem = pair(kernel)
    fast = train_svm(problem, C, tol=1e-9).fit
    reference = train_svm(problem, C, "reference", tol=1e-9).fit
    assert fast.status is Status.OPTIMAL
    assert fast.objective == pytest.approx(fast.bound, rel=1e-6)
    assert fast.bound <= fast.objective * (1 + 1e-14)
    assert reference.bound == pytest.approx(fast.objective, rel=1e-6)
    assert reference.objective >= fast.bound
    if kernel.name == "rbf":
        assert reference.objective == pytest.approx(fast.objective, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_an_interior_point_reaches_the_same_optimum(pair, kernel):
    problem, C = pair(kernel), 10.0
    ends = svm_dual(problem.gram, problem.y, C).knots
    total = sparse.csc_array(np.ones((1, len(problem.y))))
    gram = sparse.csc_array(problem.gram)
    found = solve_qp(gram, -problem.y, total, np.zeros(1), ends[:, 0], ends[:, 1], tol=1e-10)
    best = problem.y @ found.x - found.x @ problem.gram @ found.x / 2
    assert train_svm(problem, C, tol=1e-9).fit.objective == pytest.approx(best, rel=1e-6)


def test_certificate_follows_from_the_returned_solution(pair):
    problem, C = pair(Kernel("rbf", gamma=0.3)), 5.0
    model = train_svm(problem, C)
    u, y, f = model.coef, problem.y, decision(problem, model)
    norm = u @ problem.gram @ u
    assert model.fit.objective == pytest.approx(norm / 2 + C * np.maximum(0, 1 - y * f).sum())
    assert model.fit.bound == pytest.approx(u @ y - norm / 2)
    assert model.fit.n_support == np.count_nonzero(u)
    assert model.fit.max_violation < 1e-9


def test_solution_satisfies_the_optimality_conditions(pair):
    problem, C, tol = pair(Kernel("rbf", gamma=0.3)), 5.0, 1e-7
    model = train_svm(problem, C, tol=tol)
    alpha, margin = problem.y * model.coef, problem.y * decision(problem, model)
    assert alpha.min() >= 0
    assert alpha.max() <= C
    assert abs(model.coef.sum()) < 1e-10
    assert np.all(margin[alpha == 0] >= 1 - tol)
    assert np.all(margin[alpha == C] <= 1 + tol)
    np.testing.assert_allclose(margin[(alpha > 0) & (alpha < C)], 1, atol=tol)


def test_separable_rows_reach_the_relative_gap():
    """The objective is 0.004: a gap relative to 1 would let a hundredth of it pass."""
    X, y = load_wine(return_X_y=True)
    fits = SVM(C=1000.0, kernel="poly").fit(StandardScaler().fit_transform(X), y).fits_
    assert max(fit.gap for fit in fits) <= 1e-3


# -- known solutions ---------------------------------------------------------------------------


def test_two_points():
    """w joins them, |w| = 2 / distance, and f is -1 and 1 at them, if C allows it."""
    X, y = np.array([[1.0, 1.0], [4.0, 5.0]]), np.array([-1.0, 1.0])
    model = train_svm(BinaryProblem(X, y, LINEAR), 10.0)
    np.testing.assert_allclose(X.T @ model.coef, [0.24, 0.32])
    np.testing.assert_allclose(X @ X.T @ model.coef + model.intercept, [-1, 1])
    assert model.fit.objective == pytest.approx(0.5 * (2 / 5) ** 2)
    small = train_svm(BinaryProblem(X, y, LINEAR), 0.01)
    np.testing.assert_allclose(X.T @ small.coef, 0.01 * (X[1] - X[0]))


def test_contradicting_duplicates_cost_one_slack_each():
    """Twice the same row with both labels: w = 0 and the optimum is 2 C."""
    model = train_svm(BinaryProblem(np.ones((2, 3)), np.array([1.0, -1.0]), LINEAR), 7.0)
    assert model.fit.objective == pytest.approx(14)
    assert model.fit.gap == pytest.approx(0, abs=1e-9)


def test_constant_features_predict_the_majority():
    X, y = np.ones((9, 2)), np.array([0] * 6 + [1] * 3)
    machine = SVM().fit(X, y)
    assert np.all(machine.predict(X) == 0)
    assert machine.fits_[0].status is Status.OPTIMAL


def test_scale_of_a_feature_matters():
    X = np.array([[0.0, 0.0], [1.0, 0.2], [0.1, 1.0], [1.2, 1.1]])
    problem = BinaryProblem(X, np.array([-1.0, 1, -1, 1]), LINEAR)
    scaled = replace(problem, X=X * [5.0, 1.0])
    one, other = train_svm(problem, 1.0), train_svm(scaled, 1.0)
    assert np.abs(decision(problem, one) - decision(scaled, other)).max() > 0.1


# -- paths -------------------------------------------------------------------------------------


def test_a_C_that_no_alpha_reaches_costs_no_step():
    X = np.random.RandomState(0).normal(size=(60, 4))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = BinaryProblem(X, y, Kernel("rbf", gamma=0.5))
    small, large = SVM(tol=1e-6).train_path(problem, [{"C": 1e4}, {"C": 2e4}])
    assert np.abs(small.coef).max() < 1e4
    assert large.fit.iterations == 0
    np.testing.assert_array_equal(large.coef, small.coef)
    alone = train_svm(problem, 2e4, tol=1e-6)
    assert alone.fit.iterations > 0
    assert large.fit.bound == pytest.approx(alone.fit.bound, rel=1e-6)
    np.testing.assert_allclose(decision(problem, large), decision(problem, alone), atol=1e-4)


def test_a_warm_start_from_a_larger_C_is_cut_to_its_box(tiny):
    large = train_svm(tiny, 100.0)
    small = train_svm(tiny, 0.5, start=large.coef)
    assert np.abs(small.coef).max() <= 0.5
    alone = train_svm(tiny, 0.5)
    assert small.fit.objective == pytest.approx(alone.fit.objective, rel=1e-5)


# -- the whole classifier ----------------------------------------------------------------------


def test_usps_errors_are_those_of_libsvm(real_data):
    """One-vs-one at C = 10: the count that libsvm gives on these files."""
    data = real_data("usps")
    train, test = data.split
    machine = SVM(C=10, gamma=2.0**-6).fit(data.X[train], data.y[train])
    assert np.sum(machine.predict(data.X[test]) != data.y[test]) == 95
    assert {fit.status for fit in machine.fits_} == {Status.OPTIMAL}
    assert max(fit.gap for fit in machine.fits_) < 1e-3


def test_threads_do_not_change_a_bit(real_data):
    data = real_data("usps")
    X, y = data.X[:200], data.y[:200]
    machine = SVM(C=10, gamma=0.01)
    one, two = clone(machine).fit(X, y), clone(machine).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "rbf", "gamma": 0.1}, {"kernel": "poly", "degree": 3}],
    ids=lambda kernel: kernel["kernel"],
)
@pytest.mark.parametrize("features", [5, 80])
@pytest.mark.parametrize(
    "machine",
    [SVM(C=1e-3), SVM(C=1e3), RMM(C=1, B_fraction=0.3), RMM(C=0.1, B=1.0), RMM(C=10, B=1e6)],
    ids=["SVM, small C", "SVM", "fraction", "B", "B inactive"],
)
def test_pairs_that_are_solved_together_are_the_machines_of_the_pairs(kernel, features, machine):
    """Also for classes of one row, equal rows, and pairs that need more than pairwise steps."""
    random = np.random.RandomState(0)
    y = np.append(random.choice(8, 120, p=[0.3, 0.2, 0.2, 0.1, 0.05, 0.05, 0.05, 0.05]), [8, 9])
    X = random.standard_normal((122, features)) / features**0.5 + random.randn(10, features)[y]
    X[:2], X[-1] = X[2], X[-2]
    kernel = {**kernel, "tol": 1e-8}  # rounding errors decide the order of the steps
    machine = clone(machine).set_params(**kernel)
    together = clone(machine).fit(X, y)
    for k, fit in enumerate(together.fits_):
        own = np.isin(y, fit.pair)
        alone = clone(machine).fit(X[own], y[own])
        expected = replace(alone.fits_[0], seconds=fit.seconds)
        np.testing.assert_allclose(together.intercept_[k], alone.intercept_[0], atol=1e-9)
        assert fit.objective == pytest.approx(expected.objective, 1e-7)
        for name in ("bound", "max_violation", "n_support"):
            assert getattr(fit, name) == pytest.approx(getattr(expected, name), 1e-9, 1e-9)
        assert (fit.status, fit.route, fit.pair) == (expected.status, expected.route, expected.pair)
        # records with other types are damaged
        assert [*map(type, vars(fit).values())] == [*map(type, vars(expected).values())]
        for name in {*expected.extra} - {"reason"}:
            assert fit.extra[name] == pytest.approx(expected.extra[name], 1e-9)
    separate = clone(machine).set_params(n_jobs=2, cache_size=200).fit(X, y)
    assert together.score(X, y) == separate.score(X, y)
    # the parameters of the pairs count, not those of the machine
    given = clone(machine).set_params(C=3.0).fit_pairs(X, y, [{"C": machine.C}] * 45)
    np.testing.assert_array_equal(given.intercept_, together.intercept_)


@pytest.mark.parametrize("machine", [SVM(C=10), RMM(C=10, B_fraction=0.3)], ids=["SVM", "RMM"])
def test_many_pairs_of_few_rows_are_solved_to_rounding_errors(machine):
    random = np.random.RandomState(0)
    y = np.repeat(np.arange(10), 8)
    machine.fit(random.randn(10, 5)[y] + random.randn(80, 5), y)
    assert max(fit.gap for fit in machine.fits_) < 1e-10
    assert machine.n_iter_.mean() < 60


def test_dual_is_the_paper_s(tiny):
    """Cost of u: minus alpha between 0 and y C, as (2) says with its sign changed."""
    dual = svm_dual(tiny.gram, tiny.y, 3.0)
    alpha = np.random.RandomState(0).uniform(0, 3, size=30)
    assert dual.cost(tiny.y * alpha) == pytest.approx(-alpha.sum())
