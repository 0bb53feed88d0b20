"""Data beyond the digits of double precision end in a clear sentence or an honest status."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import Status
from mmbench.machines import KLDA, LSSVM, MACHINES, MAMC, SVM, SigmaSVM, machine_class
from mmbench.machines.base.estimator import WeightedClassifier


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def test_a_solution_worse_than_no_direction_is_failed_and_has_no_bound(wine):
    X, y = wine
    machine = LSSVM(reading="empirical", kernel="poly", degree=2, C=1)
    text = r"ended failed: .*by rounding the solution is worse than w = 0; scale the data"
    with pytest.warns(ConvergenceWarning, match=text):
        machine.fit(X[y < 2], y[y < 2])
    (fit,) = machine.fits_
    assert (fit.status, fit.bound) == (Status.FAILED, -math.inf)


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
        assert "scale the data" in str(error)
        return
    for fit in machine.fits_:
        s, sign = weights[np.isin(y, fit.pair)], np.where(y == fit.pair[1], 1.0, -1.0)
        mean = np.average(sign[np.isin(y, fit.pair)], weights=s)
        zero = 0.0 if isinstance(machine, KLDA) else 0.5 * s.sum() * (1 - mean**2)
        assert fit.status is Status.FAILED or fit.objective <= zero * (1 + 1e-6)
        assert fit.bound <= fit.objective + 1e-3 * abs(fit.objective)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("machine", [KLDA(), LSSVM(), MAMC(bias="optimized"), SVM(), SigmaSVM()])
def test_weights_whose_products_overflow_are_refused(wine, machine):
    assert isinstance(machine, WeightedClassifier)
    with pytest.raises(
        ValueError, match=r"^sample_weight has values above 1e\+100.*scale the data$"
    ):
        machine.fit(*wine, np.full(len(wine[1]), 1e300))


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
