"""Kernels that are matrices or functions: every machine takes them as it takes a kernel's name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, lil_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from mmbench.machines import FSVM, LSSVM, MACHINES, RMM, SVM, machine_class, make_machine
from mmbench.selection import select

GAMMA = 0.3


def values(X, Z):
    return rbf_kernel(X, Z, gamma=GAMMA)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SVM(kernel="precomputed"), LSSVM(kernel="precomputed")])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_conventions_with_a_function():
    """Not one test a check: the function's address would stand in their names, which workers that
    share the tests compare."""
    check_estimator(SVM(kernel=values))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X + np.random.default_rng(0).normal(scale=0.3, size=X.shape), y


@pytest.mark.parametrize("name", MACHINES)
def test_matrix_function_and_name_of_a_kernel_give_the_same_decisions(name, iris):
    X, y = iris
    own, new = X[::2], X[1::2]
    gram = values(own, own)
    gram.flags.writeable = False  # it is the user's
    settings = {"ridge": 1e-3} if "ridge" in machine_class(name).parameters else {}
    machine = machine_class(name)(gamma=GAMMA, **settings)
    named = clone(machine).set_params(kernel="rbf").fit(own, y[::2])
    expected = named.pairwise_decision_function(new)
    given = clone(machine).set_params(kernel="precomputed").fit(gram, y[::2])
    called = clone(machine).set_params(kernel=values).fit(own, y[::2])
    for other, rows in ((given, values(new, own)), (called, new)):
        np.testing.assert_allclose(
            other.pairwise_decision_function(rows), expected, atol=2e-5 * np.abs(expected).max()
        )
        for fit, as_named in zip(other.fits_, named.fits_, strict=True):
            assert fit.status is as_named.status
            assert fit.objective == pytest.approx(as_named.objective, rel=1e-5)
            assert fit.bound == pytest.approx(as_named.bound, rel=1e-5)


@pytest.mark.parametrize("machine", [SVM(), FSVM(kernel="rbf")])
def test_cross_validation_slices_rows_and_columns(machine, iris):
    X, y = iris
    machine.set_params(gamma=GAMMA)
    given = clone(machine).set_params(kernel="precomputed")
    expected = cross_val_score(machine, X, y, cv=3)
    np.testing.assert_array_equal(cross_val_score(given, values(X, X), y, cv=3), expected)
    search = GridSearchCV(given, {"C": [0.1, 10]}, cv=2).fit(values(X, X), y)
    named = GridSearchCV(machine, {"C": [0.1, 10]}, cv=2).fit(X, y)
    assert search.best_score_ == named.best_score_


def test_rows_of_weight_zero_leave_a_matrix_with_their_columns(iris):
    X, y = iris
    weights = np.arange(len(y)) % 3
    named = SVM(gamma=GAMMA).fit(X, y, sample_weight=weights)
    given = SVM(kernel="precomputed").fit(values(X, X), y, sample_weight=weights)
    np.testing.assert_array_equal(given.support_, named.support_)
    np.testing.assert_allclose(
        given.decision_function(values(X, X)), named.decision_function(X), atol=1e-6
    )


def test_shapes_are_those_that_svc_asks_for(iris):
    X, y = iris
    gram = values(X, X)
    with pytest.raises(ValueError, match=r"must be a square matrix\. Input is a 150x149"):
        SVM(kernel="precomputed").fit(gram[:, :-1], y)
    machine, theirs = SVM(kernel="precomputed").fit(gram, y), SVC(kernel="precomputed").fit(gram, y)
    for rows in (gram[:, :-1], gram[:2, :2]):
        with pytest.raises(ValueError) as expected:
            theirs.predict(rows)
        with pytest.raises(ValueError) as found:
            machine.predict(rows)
        assert str(found.value) == str(expected.value).replace("SVC", "SVM")
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        SVM(kernel="precomputed").fit(csr_array(gram), y)


def test_a_function_may_return_sparse_values(iris):
    X, y = iris
    dense = SVM(kernel=lambda X, Z: X @ Z.T).fit(X, y)
    for kind in (csr_array, lil_array):
        machine = SVM(kernel=lambda X, Z: X @ Z.T).fit(kind(X), y)
        np.testing.assert_allclose(
            machine.decision_function(kind(X)), dense.decision_function(X), atol=1e-6
        )


def test_functions_that_return_something_else_are_refused(iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"returned shape \(150,\), not \(150, 150\)"):
        SVM(kernel=lambda X, Z: X[:, 0]).fit(X, y)
    with pytest.raises(ValueError, match="values that are not finite"):
        SVM(kernel=lambda X, Z: np.full((len(X), len(Z)), np.nan)).fit(X, y)


@pytest.mark.parametrize("factor", [1e-305, 1e300])
@pytest.mark.parametrize("machine", ["m4", "mmrm", "klda", "svm"])
def test_a_matrix_near_the_end_of_the_range_of_numbers_is_refused(machine, factor, iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"has values up to .*; scale the matrix"):
        make_machine(machine, kernel="precomputed").fit(factor * (X @ X.T), y)


def test_a_solution_that_is_not_finite_on_an_indefinite_matrix_names_the_matrix():
    X, y = (part[:200] for part in load_breast_cancer(return_X_y=True))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gram = X @ X.T / 30 - 0.5 * np.eye(200)
    text = "matrix is not positive semidefinite"
    with pytest.warns(UserWarning, match=text), pytest.raises(ValueError, match=text):
        RMM(kernel="precomputed").fit(gram, y)


def test_a_matrix_that_is_not_symmetric_is_refused(iris):
    X, y = iris
    gram = values(X, X)
    gram[3, 7] += 1
    with pytest.raises(ValueError, match=r"not symmetric: K\[3, 7\] = 1.*, K\[7, 3\] = 0"):
        SVM(kernel="precomputed").fit(gram, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_matrix_that_is_not_positive_semidefinite_warns_of_what_follows(iris):
    X, y = iris
    gram = sigmoid_kernel(X, gamma=0.1, coef0=-1)
    with pytest.warns(UserWarning, match="has no bound in `fits_`; add at least") as given:
        SVM(kernel="precomputed").fit(gram, y)
    assert given[0].filename == __file__
    shift = -np.linalg.eigvalsh(gram)[0] * 1.001
    assert SVM(kernel="precomputed").fit(gram + shift * np.eye(150), y).fits_[0].gap < 1e-3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(set(MACHINES) - {"mmrm"}))
def test_no_fit_claims_a_bound_of_a_problem_that_is_not_convex(name):
    """Two of the three pairs have rows whose matrix is indefinite."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    gram = values(X, X) - 0.5 * np.diag(y == 2)
    fits = machine_class(name)(kernel="precomputed").fit(gram, y).fits_
    alone = [fit.pair == (0, 1) and name != "fsvm" for fit in fits]
    assert [np.isfinite(fit.gap) for fit in fits] == alone
    assert all(own or fit.status != "optimal" for own, fit in zip(alone, fits, strict=True))


def test_a_squared_norm_below_zero_is_warned_of_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=60) > 0
    gram = sigmoid_kernel(X, gamma=0.5, coef0=-1)
    with pytest.warns() as given:
        machine_class("rmm")(kernel="precomputed").fit(gram, y)
    assert [warning.category for warning in given] == [UserWarning, ConvergenceWarning]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sign", [1, -1])
def test_the_linear_program_of_the_mmrm_has_its_bound_on_any_matrix(sign):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    gram = sign * sigmoid_kernel(X, gamma=0.3, coef0=-1)
    fast, slow = (
        machine_class("mmrm")(kernel="precomputed", C=1.0, solver=solver).fit(gram, y).fits_[0]
        for solver in ("auto", "reference")
    )
    assert fast.status == slow.status == "optimal"
    assert fast.objective == pytest.approx(mmrm_by_linprog(gram, y), rel=1e-6)
    assert slow.objective == pytest.approx(fast.objective, rel=1e-6)


def mmrm_by_linprog(gram, y, C=1.0):
    """Return the optimal value of (30) by its matrices as they stand."""
    n, signs = len(y), np.where(y == 1, 1.0, -1.0)
    columns = gram * signs
    means = np.where(y == 1, 1 / (y == 1).sum(), -1 / (y == 0).sum())
    cost = np.r_[means @ columns, 0.0, np.full(n, C)]
    A = -np.c_[signs[:, None] * columns, signs, np.eye(n)]
    bounds = [(0, None)] * n + [(None, None)] + [(0, None)] * n
    return linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds).fun


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:the kernel matrix:UserWarning")
@pytest.mark.parametrize("name", ["lda", "mpm", "mempm", "m4"])
def test_a_machine_that_fails_on_a_matrix_with_negative_eigenvalues_names_them(name):
    rows = np.random.default_rng(0).normal(size=(16, 3))
    machine = machine_class(name)(kernel="precomputed")
    text = f"is not positive semidefinite.*{type(machine).__name__} has no solution on it; add"
    with pytest.raises(ValueError, match=text):
        machine.fit(-rows @ rows.T, np.arange(16) % 2)


@pytest.mark.filterwarnings("error")
def test_a_matrix_in_single_precision_is_neither_refused_nor_warned_of(iris):
    X, y = iris
    SVM(kernel="precomputed").fit(values(X, X).astype(np.float32), y)


def test_a_machine_without_other_kernels_says_that_it_needs_features(iris):
    class Linear(SVM):
        kernels = ("linear",)

    for kernel in ("precomputed", values):
        with pytest.raises(
            ValueError, match="Linear needs the features, since its only kernel is 'lin"
        ):
            Linear(kernel=kernel).fit(*iris)


def test_select_says_where_to_search_a_given_kernel(iris):
    with pytest.raises(ValueError, match="GridSearchCV"):
        select(SVM(kernel=values), *iris, {"C": [1, 10]})


@pytest.mark.parametrize("gamma", ["auto", "scale"])
def test_words_for_gamma_are_those_of_svc(gamma, iris):
    X, y = iris
    theirs = SVC(gamma=gamma, tol=1e-8).fit(X[:100], y[:100])
    found = SVM(gamma=gamma, tol=1e-8).fit(X[:100], y[:100]).decision_function(X)
    np.testing.assert_allclose(found, theirs.decision_function(X), atol=1e-5)
