"""R-SVM+, R-SVMμ+ and MR-SVM: certificates recomputed from w and b, and hard data that end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.machines import MRSVM, RSVMMuPlus, RSVMPlus
from mmbench.machines.radius import generation

KERNELS = ("linear", "rbf", "poly")


def two_classes(seed=0, n=16, d=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.8 * y[:, None] * np.eye(d)[0], y


def hard_cases():
    X, y = two_classes()
    return {
        "repeated rows": (np.vstack([X, X[:5]]), np.append(y, 1 - y[:5])),
        "fewer rows than features": two_classes(n=8, d=12),
        "unbalanced": (X, (np.arange(16) > 13).astype(int)),
        "collinear": (X[:, :1] * [1.0, -2.0, 3.0], y),
    }


by_case = pytest.mark.parametrize("case", hard_cases())
by_kernel = pytest.mark.parametrize("kernel", KERNELS)
by_machine = pytest.mark.parametrize("machine", [RSVMPlus, RSVMMuPlus, MRSVM])


def quiet_fit(machine, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(X, y)


def features(machine, X):
    """The rows in the features that the machine weighs, and their weights w."""
    if machine.kernel == "linear":
        return X, machine.coef_[0]
    w = np.zeros(len(X))
    w[machine.support_] = machine.dual_coef_[0]
    return machine.kernels_[0](X, X), w


@by_case
@by_kernel
@by_machine
def test_every_route_is_bounded_by_every_other(machine, kernel, case):
    X, y = hard_cases()[case]
    solvers = ("auto", "reference") if machine is MRSVM else ("auto", "clarabel", "reference")
    options = {"C": 3.0, "kernel": kernel, "degree": 2}
    fits = [quiet_fit(machine(**options, solver=s), X, y).fits_[0] for s in solvers]
    for fit in fits:
        for other in fits:
            assert fit.bound <= other.objective * (1 + 1e-9)
    assert fits[0].status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fits[0].gap <= 1e-6


@by_case
@by_kernel
def test_the_objective_of_rsvm_plus_follows_from_w_and_b(kernel, case):
    X, y = hard_cases()[case]
    C, lam = 3.0, 0.7
    machine = RSVMPlus(C=C, lam=lam, kernel=kernel, degree=2).fit(X, y)
    rows, w = features(machine, X)
    slack = np.maximum(0.0, 1.0 - np.where(y > 0, 1, -1) * machine.decision_function(X)).sum()
    r = 0.5 * pdist(rows * np.abs(w), "sqeuclidean").max()
    assert machine.fits_[0].objective == pytest.approx(0.5 * w @ w + lam * r + C * slack, rel=1e-6)


@by_case
@pytest.mark.parametrize("machine", [RSVMMuPlus, MRSVM])
def test_the_objective_follows_from_w_and_b_at_the_best_mu(machine, case):
    X, y = hard_cases()[case]
    fitted = machine(C=3.0).fit(X, y)
    fit, w = fitted.fits_[0], fitted.coef_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y > 0, 1, -1) * fitted.decision_function(X))
    i, j = np.triu_indices(len(X), 1)
    halves, radii = 0.5 * (X[i] - X[j]) ** 2, (0.5 * np.ptp(X, axis=0)) ** 2

    def value(mu):
        mu = np.maximum(mu, 1e-12)
        norm = 0.5 * np.sum(w**2 / mu)
        if machine is MRSVM:
            return norm + 3.0 * slack @ slack / (mu @ radii)
        return norm + (halves @ mu).max() + 3.0 * slack.sum()

    start = np.abs(w) + 1e-3 * np.abs(w).max()
    one = {"type": "eq", "fun": lambda mu: mu.sum() - 1.0}
    best = minimize(value, start / start.sum(), bounds=[(0, 1)] * len(w), constraints=one)
    assert value(best.x / best.x.sum()) >= fit.bound * (1 - 1e-6)
    assert fit.objective <= value(best.x / best.x.sum()) * (1 + 1e-5)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@by_machine
def test_penalties_of_all_sizes_are_solved(machine, C):
    X, y = two_classes(n=40)
    fit = machine(C=C).fit(X, y).fits_[0]
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.gap <= 1e-6


@pytest.mark.parametrize("n", [180, 200])
def test_a_polynomial_kernel_on_hundreds_of_rows_is_solved(n, monkeypatch):
    """Its features are of order 1e6, so that C is 1e12 in units of them.

    From 200 rows on, the first rows are those of an SVM, which does not converge here.
    """
    svms, solve = [], generation.solve_smo
    monkeypatch.setattr(
        generation, "solve_smo", lambda *a, **k: svms.append(solve(*a, **k)) or svms[-1]
    )
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=(n, 3))
    fit = RSVMPlus(kernel="poly", C=1.0).fit(X, rng.integers(0, 2, n)).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert [svm.iterations <= 200 * n for svm in svms] == [True] * (n >= 200)


@by_machine
def test_absurd_scales_end_in_a_status_or_a_value_error(machine):
    X, y = two_classes()
    for scale, C in ((1e-150, 1.0), (1e150, 1.0), (1.0, 1e250), (1.0, 1e-250)):
        try:
            fits = quiet_fit(machine(C=C), scale * X, y).fits_
        except ValueError as error:
            assert "scale the data" in str(error)
        else:
            assert fits[0].status in (Status.OPTIMAL, Status.TRIVIAL, Status.INACCURATE)


def test_a_rare_class_that_overlaps_the_other_is_no_obstacle():
    """The interior point ends at a gap of 0.97 there, and Clarabel solves the program."""
    random = np.random.default_rng(0)
    y = (random.random(5000) < 0.05).astype(int)
    X = random.normal(size=(5000, 4)) + 1.2 * y[:, None]
    found = RSVMPlus(kernel="linear").fit(X, y).fits_[0]
    other = RSVMPlus(kernel="linear", solver="clarabel").fit(X, y).fits_[0]
    assert found.status == other.status == "optimal"
    assert found.objective == pytest.approx(other.objective, rel=1e-6)


@pytest.mark.parametrize("lam", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("case", ["wine", "digits", "seven powers of ten", "large", "a constant"])
def test_rsvm_mu_plus_solves_features_in_different_units(case, C, lam):
    """Neither a feature in large units nor a constant one may decide where all variables begin."""
    if case == "wine":
        X, y = load_wine(return_X_y=True)
    elif case == "digits":  # of 8 x 8 pixels some never vary and some hardly
        X, y = load_digits(return_X_y=True)
        X, y = X[np.isin(y, (8, 9))], y[np.isin(y, (8, 9))]
    else:
        random = np.random.RandomState(0)
        y = (random.uniform(size=300) < 0.05).astype(int)
        X = random.normal(size=(300, 3)) + 0.5 * y[:, None]
        if case == "large":  # the column in large units tells the classes apart
            y = (X[:, 1] + 0.5 * random.normal(size=300) > 0).astype(int)
        X *= [1.0, 1e3, 0.0] if case == "a constant" else [1.0, 1e5, 1e-2]
    # with units of 1e5, rounding leaves a gap of 1.4e-6 with NumPy 2.5 and SciPy 1.18
    for fit in RSVMMuPlus(C=C, lam=lam, tol=1e-5).fit(X, y).fits_:
        assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
        assert fit.gap <= 1e-5


def test_first_features_that_are_all_constant_are_solved():
    """No column's means differ here, and the first sixty begin."""
    square = np.tile([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], (5, 1))
    X, y = np.hstack([np.ones((20, 70)), square]), np.tile([0, 0, 1, 1], 5)
    (fit,) = RSVMMuPlus().fit(X, y).fits_
    assert fit.status is Status.TRIVIAL
    assert fit.gap <= 1e-6


@pytest.mark.parametrize("lam", [0.001, 0.1])
@pytest.mark.parametrize("load, pair", [(load_wine, (0, 2)), (load_iris, (0, 1))])
def test_a_hard_margin_with_a_small_radius_penalty_is_solved(load, pair, lam):
    X, y = load(return_X_y=True)
    rows = np.isin(y, pair)
    X = (X[rows] - X.mean(axis=0)) / X.std(axis=0)
    (fit,) = RSVMMuPlus(C=1e5, lam=lam).fit(X, y[rows]).fits_
    assert fit.status is Status.OPTIMAL
    assert fit.gap <= 1e-6


def test_rows_that_are_all_far_apart_take_few_rounds():
    """A column of dates makes such rows; with few pairs per round, 36 programs were needed."""
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = np.hstack([rng.normal(size=(100, 3)) + 0.8 * y[:, None], 10.0 * np.eye(100)])
    (fit,) = RSVMMuPlus(kernel="rbf", gamma=0.01, C=0.1, lam=1000.0).fit(X, y).fits_
    assert fit.status is Status.OPTIMAL
    assert fit.extra["rounds"] <= 18


@pytest.mark.parametrize("value", [0.1, 1.0, 3.3, 1e5])
@by_kernel
@by_machine
def test_equal_rows_of_both_classes_are_trivial(machine, kernel, value):
    """Their mean may differ from them by rounding."""
    y = np.arange(25) % 3 == 0
    fit = machine(kernel=kernel).fit(np.full((25, 3), value), y).fits_[0]
    assert fit.status is Status.TRIVIAL
    assert fit.route == "equal rows"


@by_machine
def test_a_constant_feature_that_is_no_binary_fraction_has_no_weight(machine):
    X, y = two_classes(n=25)
    here = machine().fit(X, y)
    there = machine().fit(np.hstack([X, np.full((25, 1), 0.1)]), y)
    assert there.fits_[0].status is Status.OPTIMAL
    assert there.coef_[0, -1] == 0.0
    if machine is RSVMMuPlus:  # a mu of the constant feature makes the radius smaller
        assert there.fits_[0].objective < here.fits_[0].objective
    else:
        assert there.fits_[0].objective == pytest.approx(here.fits_[0].objective, rel=1e-6)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
@by_machine
def test_a_kernel_matrix_whose_squares_overflow_is_refused_in_words(machine, scale):
    X, y = two_classes()
    with pytest.raises(ValueError, match="scale the data"):
        machine(kernel="precomputed").fit(scale * (X @ X.T), y)


def test_a_radius_penalty_that_overflows_is_refused_in_words():
    X, y = two_classes()
    with pytest.raises(ValueError, match="scale the data"):
        RSVMMuPlus().fit(1e100 * X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["auto", "clarabel", "reference"])
@pytest.mark.parametrize(("degree", "scale"), [(2, 1.0), (2, 10.0), (3, 1.0)])
def test_rsvm_mu_plus_solves_polynomial_features_by_every_route(degree, scale, solver):
    """The penalty on their radius exceeds the norm by orders of magnitude.

    On some processors Clarabel does not solve the problem with long rows to its tolerance.
    """
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(30, 3))
    y = X[:, 0] > 0
    y[:4] = ~y[:4]
    machine = RSVMMuPlus(kernel="poly", degree=degree)
    best = machine.fit(X, y).fits_[0]
    assert best.status is Status.OPTIMAL
    assert best.gap <= 1e-6
    fit = machine.set_params(solver=solver).fit(X, y).fits_[0]
    assert (fit.status is Status.OPTIMAL) == (fit.gap <= 1e-6)
    assert fit.status is Status.OPTIMAL or scale > 1
    assert fit.bound <= best.objective * (1 + 1e-9)
    assert fit.objective >= best.bound * (1 - 1e-9)


def test_a_fit_says_which_route_solved_it():
    X, y = two_classes(n=40)
    for machine in (RSVMPlus, RSVMMuPlus):
        for solver in ("interior", "clarabel", "reference"):
            assert machine(solver=solver).fit(X, y).fits_[0].route == solver
    assert MRSVM().fit(X, y).fits_[0].route == "clarabel"
    assert MRSVM(C=1e-9).fit(X, y).fits_[0].route == "clarabel"
