"""Data beyond the digits of double precision end in a clear sentence or an honest status."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from mmbench import certify
from mmbench.errors import Status, UserError
from mmbench.machines import (
    FSVM,
    KLDA,
    LDA,
    LSSVM,
    M4,
    MACHINES,
    MAMC,
    MEMPM,
    MMRM,
    MPM,
    RMM,
    SVM,
    RSVMMuPlus,
    RSVMPlus,
    SigmaSVM,
    machine_class,
)
from mmbench.machines.base.estimator import WeightedClassifier


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize("solver", ["auto", "reference"])
def test_the_emamc_of_raw_columns_is_within_its_certificate(wine, solver):
    """The optimum was computed with 70 digits; w = 0 has the objective 64.5."""
    X, y = wine
    machine = LSSVM(reading="empirical", kernel="poly", degree=2, C=1, solver=solver)
    with pytest.warns(ConvergenceWarning, match="ended inaccurate"):
        machine.fit(X[y < 2], y[y < 2])
    (fit,) = machine.fits_
    assert fit.bound <= 3.15291206966173 <= fit.objective
    assert fit.objective == pytest.approx(3.15291206966173, rel=1e-3)
    assert solver == "reference" or fit.objective - fit.bound < 1e-3 * fit.objective
    assert machine.score(X[y < 2], y[y < 2]) == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e15])
@pytest.mark.parametrize("degree", [1, 2, 4, 7])
@pytest.mark.parametrize("machine", [LSSVM(), LSSVM(reading="empirical"), KLDA()], ids=repr)
def test_no_objective_is_above_its_value_without_a_direction(wine, machine, degree, scale):
    X, y = wine
    machine.set_params(kernel="poly", degree=degree)
    weights = np.random.default_rng(0).random(len(y))
    try:
        machine.fit(X * scale, y, weights)
    except ValueError as error:
        assert "scale the data" in str(error) and scale == 1e15 and isinstance(machine, LSSVM)
        return
    for fit in machine.fits_:
        s, sign = weights[np.isin(y, fit.pair)], np.where(y == fit.pair[1], 1.0, -1.0)
        mean = np.average(sign[np.isin(y, fit.pair)], weights=s)
        zero = 0.0 if isinstance(machine, KLDA) else 0.5 * s.sum() * (1 - mean**2)
        assert fit.status is Status.FAILED or fit.objective <= zero * (1 + 1e-6)
        assert fit.bound <= fit.objective + 1e-3 * abs(fit.objective)


@pytest.mark.parametrize("scale", [1e10, 1e15, 1e20, 1e30])
def test_the_svm_of_long_separable_rows_has_a_hard_margin(scale):
    """The objective is 1e-20 to 1e-60; a gap relative to a larger number would hide any error."""
    X, y = load_iris(return_X_y=True)
    for own in (y < 2, y != 1):
        hard = SVM(kernel="linear", C=math.inf).fit(X[own], y[own]).fits_[0].objective
        (fit,) = SVM(kernel="linear").fit(scale * X[own], y[own]).fits_
        assert fit.status is Status.OPTIMAL
        assert fit.objective * scale**2 == pytest.approx(hard, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("power", [100, 120, 130, 140, 150])
def test_an_optimal_svm_of_very_long_rows_has_the_objective_of_scaled_rows(power):
    X, y = load_iris(return_X_y=True)
    for own in (y < 2, y != 1):
        hard = SVM(kernel="linear", C=math.inf).fit(X[own], y[own]).fits_[0].objective
        (fit,) = SVM(kernel="linear").fit(10.0**power * X[own], y[own]).fits_
        optimal = fit.objective * 10.0**power * 10.0**power == pytest.approx(hard, rel=1e-3)
        assert optimal or fit.status in (Status.INACCURATE, Status.ITERATION_LIMIT)


@pytest.mark.parametrize("scale", [1e15, 1e20])
def test_an_svm_whose_bound_is_lost_by_rounding_asks_to_scale_the_data(scale):
    """At the bound C the multipliers of overlapping classes must cancel to 30 digits and more."""
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"1/2 ended inaccurate.*; scale the data$"):
        machine = SVM(kernel="linear").fit(scale * X[y > 0], y[y > 0])
    # the smallest sum of slack over all hyperplanes, by a linear program
    assert machine.fits_[0].objective == pytest.approx(5.6, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("machine", [KLDA(), LSSVM(), MAMC(bias="optimized"), SVM(), SigmaSVM()])
def test_weights_whose_products_overflow_are_refused(wine, machine):
    assert isinstance(machine, WeightedClassifier)
    with pytest.raises(
        ValueError, match=r"^sample_weight has values above 1e\+100.*scale the weights$"
    ):
        machine.fit(*wine, np.full(len(wine[1]), 1e300))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("machine", [RSVMPlus(C=1e300), RSVMMuPlus(C=1e300)])
def test_penalties_that_overflow_with_the_features_are_refused(wine, machine):
    with pytest.raises(ValueError, match="range of double precision; scale the data"):
        machine.fit(wine[0] * 1e5, wine[1])


@pytest.mark.filterwarnings("error")
def test_decisions_that_are_not_finite_are_refused(wine):
    machine = SVM(kernel="poly", degree=5).fit(*wine)
    text = r"^decision values of the pair 0/1 are not numbers or not finite; scale the data$"
    with pytest.raises(ValueError, match=text):
        machine.predict(wine[0] * 1e80)


@pytest.mark.parametrize("error", [ZeroDivisionError("float division"), np.linalg.LinAlgError("5")])
def test_arithmetic_that_fails_is_an_error_with_a_remedy(wine, error):
    class Lost(SVM):
        def train(self, problem, warm=None):
            raise error

    text = r"^Lost found no solution in double precision; scale the data$"
    with pytest.raises(ValueError, match=text):
        Lost().fit(*wine)


@pytest.mark.parametrize("name", [n for n in MACHINES if "rbf" in machine_class(n).kernels])
def test_a_kernel_matrix_of_zeros_has_a_constant_decision_or_a_clear_error(name):
    y = np.repeat([0, 1], [3, 5])
    try:
        machine = machine_class(name)(kernel="precomputed").fit(np.zeros((8, 8)), y)
    except ValueError as error:
        assert "the kernel matrix is zero" in str(error)
    else:
        assert len(set(machine.predict(np.zeros((2, 8))))) == 1


@pytest.fixture(scope="module")
def repeated_rows():
    """36 rows of ten directions in 166 features, 16 of them again with the other label."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, (36, 10)) @ rng.normal(size=(10, 166))
    X, y, again = (X - X.mean(0)) / X.std(0), np.repeat([-1, 1], 18), np.r_[0:8, 28:36]
    return np.vstack([X, X[again]]), np.append(y, -y[again])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("degree", "C"), [(3, 100), (4, 100), (5, 100), (6, 100), (7, 1)])
@pytest.mark.parametrize("D", [None, 0.5, 1.0])
def test_no_bound_exceeds_a_feasible_value(repeated_rows, degree, C, D):
    X, y = repeated_rows
    machine = SVM() if D is None else SigmaSVM(D=D)
    machine.set_params(kernel="poly", degree=degree, C=C).fit(X, y)
    (fit,) = machine.fits_
    # f = y where a row occurs once, f in [-1, 1] where it occurs with both labels
    assert 0 <= fit.bound <= C * 2 * 16 + 0.5
    assert fit.status is Status.INACCURATE or fit.objective <= fit.bound * (1 + 1e-3)
    assert fit.status in (Status.OPTIMAL, Status.INACCURATE)
    assert math.isfinite(fit.objective)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 2.0], 20)])
@pytest.mark.parametrize("D", [0.0, 0.1, 0.999])
@pytest.mark.parametrize("degree", [None, 1, 2])
def test_the_bound_of_the_sigma_svm_is_of_all_directions(degree, D, weights):
    """Of the two columns one separates the classes and has 1e-14 of the variance of the other."""
    rng, y, C = np.random.default_rng(0), np.repeat([-1, 1], 20), 1e3
    X = np.column_stack([1e7 * rng.normal(size=40), y + 0.1 * rng.normal(size=40)])
    machine = SigmaSVM(kernel="linear", C=C, D=D)
    if degree is not None:
        machine.set_params(kernel="poly", degree=degree)
    (fit,) = machine.fit(X, y, weights).fits_
    # twice the second column: one of the features of a polynomial kernel
    f, shares = 2 * X[:, 1], np.full(40, 1 / 40) if weights is None else weights / weights.sum()
    assert (y * f).min() > 1
    variance = shares @ (f - shares @ f) ** 2
    assert fit.bound <= 0.5 * ((1 - D) * 4 + D * variance)
    assert fit.status is not Status.OPTIMAL or fit.objective <= 0.51 * ((1 - D) * 4 + D * variance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("form", ["bound", "penalty", "relaxed"])
def test_an_rmm_that_overflows_keeps_the_order_of_bound_and_objective(repeated_rows, form):
    X, y = repeated_rows
    (fit,) = RMM(kernel="poly", degree=6, C=1e4, form=form).fit(X, y).fits_
    assert fit.status is not Status.OPTIMAL
    assert 0 <= fit.bound <= fit.objective < math.inf


@pytest.mark.parametrize("solver", ["auto", "smo", "reference"])
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
@pytest.mark.parametrize(
    "machine", [SVM(), RMM(), RMM(form="penalty"), RMM(form="relaxed"), SigmaSVM()], ids=repr
)
def test_decisions_that_the_tolerance_does_not_resolve_are_constant(machine, solver, tol):
    rng = np.random.default_rng(0)
    y = rng.uniform(size=160) < 0.2
    X = rng.normal(size=(160, 6)) + 0.3 * y[:, None]
    machine.set_params(C=0.01, kernel="linear", solver=solver, tol=tol).fit(X, y)
    assert len(set(machine.decision_function(X))) == 1
    assert not machine.predict(X).any()
    assert machine.fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize("C", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("machine", [SVM(), RMM(B=2), SigmaSVM()], ids=repr)
def test_with_a_tiny_C_no_solution_is_worse_than_a_constant_decision(machine, C):
    rng = np.random.default_rng(3)
    y = rng.uniform(size=160) < 0.2
    X = rng.normal(size=(160, 6)) + 0.3 * y[:, None]
    for kernel in ("linear", "poly", "rbf"):
        machine.set_params(C=C, kernel=kernel).fit(X, y)
        assert machine.fits_[0].objective <= 2 * C * y.sum() * (1 + 1e-14), kernel
    assert len(set(machine.set_params(kernel="linear").fit(X, y).decision_function(X))) == 1


@pytest.mark.parametrize("machine", [SVM(), RMM(B=2), SigmaSVM()], ids=repr)
@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_a_tiny_C_ranks_rows_if_w_is_better_than_zero(machine, kernel):
    rng = np.random.default_rng(3)
    y = rng.uniform(size=160) < 0.2
    X = rng.normal(size=(160, 6)) + 0.3 * y[:, None]
    for C in (1e-9, 1e-8):
        machine.set_params(C=C, kernel=kernel, tol=1e-5).fit(X, y)
        (fit,), decisions = machine.fits_, machine.decision_function(X)
        assert fit.objective < 2 * C * y.sum()
        exact = machine.set_params(tol=1e-12).fit(X, y).decision_function(X)
        assert roc_auc_score(y, decisions) == pytest.approx(roc_auc_score(y, exact), abs=0.05)


@pytest.mark.parametrize("solver", ["auto", "smo", "reference"])
def test_with_a_small_C_and_equal_classes_decisions_rank_by_the_class_means(solver):
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = rng.normal(size=(160, 6)) + y[:, None]
    machine = SVM(C=1e-9, kernel="linear", solver=solver).fit(X, y)
    means = X @ (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    assert roc_auc_score(y, machine.decision_function(X)) == roc_auc_score(y, means)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", [None, np.arange(1.0, 41.0)])
def test_overflow_of_a_width_or_an_exponent_is_no_warning(weights):
    X = np.random.default_rng(0).normal(size=(40, 4))
    y = np.arange(40) % 2
    SVM(gamma=1e8).fit(X * 1e150, y, weights)
    with pytest.raises(ValueError, match="scale the data"):
        SVM(gamma="scale").fit((X + 1e6) * 1e150, y, weights)


@pytest.mark.parametrize("part", ["X", "y", "sample_weight"])
def test_masked_values_are_no_numbers(wine, part):
    arrays = {"X": wine[0], "y": wine[1], "sample_weight": np.ones(len(wine[1]))}
    masked = {**arrays, part: np.ma.masked_less(arrays[part], np.median(arrays[part]) + 0.5)}
    plain = {name: np.ma.masked_array(array) for name, array in arrays.items()}
    machine = SVM(kernel="linear").fit(**plain)
    with pytest.raises(ValueError, match=rf"^masked values in .*{part}.* leave out the rows$"):
        SVM(kernel="linear").fit(**masked)
    with pytest.raises(UserError, match=r"^masked values"):
        certify(machine, **masked)
    with pytest.raises(ValueError, match=r"^masked values"):
        machine.predict(np.ma.masked_less(wine[0], 1.0))


def test_lapack_prints_no_message_of_its_own(capfd):
    X = np.random.default_rng(2).normal(size=(25, 1))
    M4(kernel="poly", degree=6).fit(X, np.repeat([0, 1], [24, 1]))
    captured = capfd.readouterr()
    assert "On entry to" not in captured.out + captured.err


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_joint_training_does_not_warn_of_overflow():
    X = 1e150 * np.random.default_rng(0).normal(size=(25, 1))
    y = np.repeat([0, 1], [24, 1])
    try:
        FSVM(kernel="poly", degree=1).fit(X, y)
    except ValueError as error:
        assert "scale the data" in str(error)


@pytest.mark.parametrize("place", [(1e8, 1.0), (1e6, 0.01)])
def test_unit_weights_far_from_the_origin_leave_gamma_as_it_is(place):
    offset, scale = place
    Z = np.random.default_rng(0).normal(size=(200, 2))
    X, y = offset + scale * Z, (Z**2).sum(axis=1) > 1.4
    plain, weighted = SVM().fit(X, y), SVM().fit(X, y, np.ones(200))
    assert weighted.kernels_[0].gamma == pytest.approx(plain.kernels_[0].gamma, rel=1e-6)


@pytest.mark.parametrize("machine", [RSVMPlus, RSVMMuPlus])
@pytest.mark.parametrize("limit", [None, 5])
def test_weights_over_four_hundred_magnitudes_end_the_training(machine, limit):
    X, y = np.random.default_rng(0).normal(size=(24, 3)), np.arange(24) % 2
    with pytest.raises(ValueError, match="scale the data"):
        machine(time_limit=limit).fit(X, y, np.where(y, 1e-300, 1e100))


@pytest.mark.parametrize("scale", [1e-152, 1e-155, 1e-162])
def test_a_hard_margin_on_columns_that_underflow_ends(scale, capfd):
    X, y = np.random.default_rng(0).normal(size=(24, 3)), np.arange(24) % 2
    with pytest.raises(ValueError, match="scale the data"):
        SVM(kernel="linear", C=np.inf).fit(scale * X, y)
    assert "DLASCL" not in "".join(capfd.readouterr())


def test_an_rmm_without_weights_has_the_bound_of_its_constant():
    X, y = 1e-9 * np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    machine = RMM(kernel="poly", C=0.001).fit(X, y)
    largest = float(np.abs(machine.decision_function(X)).max())
    assert machine.fits_[0].extra == {"theta": largest, "B": largest}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_dual_that_clarabel_calls_unbounded_is_inaccurate():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 3)) * 2)
    y = X[:, 0] + rng.normal(size=60) * 2 > 0
    fit = SVM(kernel="poly", degree=1, C=1e7, solver="clarabel").fit(X, y).fits_[0]
    assert fit.status in (Status.OPTIMAL, Status.INACCURATE)
    assert fit.bound <= fit.objective


@pytest.mark.parametrize("name", sorted({machine_class(n).__name__: n for n in MACHINES}.values()))
def test_features_whose_products_underflow_are_refused_or_change_nothing(name):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    machine = machine_class(name)(kernel="linear")
    with pytest.raises(ValueError, match=r"underflow; scale the data$"):
        machine.fit(1e-170 * X, y)
    machine.fit(0 * X, y)  # constant rows are no error


@pytest.mark.parametrize(
    "machine", [SVM(gamma=0.5), MMRM(gamma=0.5), M4(kernel="rbf", gamma=0.5, ridge=0.1)]
)
@pytest.mark.parametrize("fill", [1e15, 1e20, 1e100])
def test_fill_values_leave_the_digits_of_the_other_rows(machine, fill):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    X[7, 1] = X[3, 0] = fill
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    expected = clone(machine).set_params(kernel="precomputed").fit(np.exp(-0.5 * distances), y)
    assert machine.fit(X, y).fits_[0].objective == pytest.approx(
        expected.fits_[0].objective, rel=1e-6
    )


def test_scikit_learns_copy_of_libsvm_ends(monkeypatch):
    # rounding errors of the kernel values are above the tolerance, which is never reached
    monkeypatch.setattr("mmbench.solvers.libsvm_.LEAST_STEP_LIMIT", 1000)
    X = np.round(np.random.default_rng(1).normal(size=(24, 3))) * 1e8
    machine = SigmaSVM(kernel="linear", C=0.1, D=0, solver="sklearn")
    with pytest.warns(ConvergenceWarning, match="ended inaccurate"):
        machine.fit(X, np.arange(24) < 23, np.where(np.arange(24) < 23, 1.0, 23.0))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("machine", [LDA(), MPM(), MEMPM(), M4(), M4(margin="hard")], ids=repr)
@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("ridge", [0.0, 1e-8, 1.0])
@pytest.mark.parametrize("copies", [3, 7])
def test_copies_of_two_rows_are_no_spread(machine, d, ridge, copies):
    two = np.random.default_rng(d).random((2, d))
    machine = clone(machine).set_params(ridge=ridge)
    alone = clone(machine).fit(two, [0, 1])
    many = machine.fit(np.repeat(two, copies, axis=0), np.repeat([0, 1], copies))
    assert many.fits_[0].status is alone.fits_[0].status is Status.UNBOUNDED
    np.testing.assert_allclose(many.decision_function(two), alone.decision_function(two))
