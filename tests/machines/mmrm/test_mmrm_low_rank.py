"""Kernel matrices of low numerical rank, and matrices that only seem to have a low rank."""

import numpy as np
import pytest

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MMRM


def gaussian_classes(n, share, distance, n_features=2):
    random = np.random.default_rng(0)
    y = np.where(random.random(n) < share, 1.0, -1.0)
    X = random.normal(size=(n, n_features))
    X[y > 0] += distance / np.sqrt(n_features)
    return X, y


def assert_optimum_of_the_reference(X, y, **parameters):
    reference = MMRM(solver="reference", **parameters).fit(X, y).fits_[0]
    fit = MMRM(**parameters).fit(X, y).fits_[0]
    assert (fit.status, fit.route) == (reference.status, "whole")
    assert fit.objective == pytest.approx(reference.objective, rel=1e-6)
    assert 0 <= fit.gap <= 1e-6


@pytest.mark.parametrize("factor", [1.1, 30.0])
def test_a_program_of_low_rank_has_the_optimum_of_the_reference_solver(factor):
    X, y = gaussian_classes(200, 0.3, 1.0)
    assert_optimum_of_the_reference(X, y, gamma=2.0**-10, C_factor=factor, coefficient_limit=1e4)


@pytest.mark.parametrize("kind", ["low rank", "indefinite", "negative"])
def test_a_given_matrix_has_the_optimum_of_the_reference_solver(kind):
    X, y = gaussian_classes(80, 0.5, 1.0)
    gram = Kernel("poly", degree=2)(X, X)
    if kind == "indefinite":
        part = 0.1 * np.outer(X[:, 0] > 0, X[:, 0] < 0)
        gram += (part + part.T) / 2
    if kind == "negative":
        gram *= -1
    assert_optimum_of_the_reference(gram, y, kernel="precomputed", C_factor=3.0)


@pytest.mark.parametrize(
    ("n", "share", "distance", "gamma"),
    [(400, 0.3, 4.0, 0.06), (400, 0.03, 0.8, 0.06), (4050, 0.03, 0.8, 2.0**-7)],
)
def test_a_rare_class_and_coefficients_that_do_not_cancel_are_certified(n, share, distance, gamma):
    X, y = gaussian_classes(n, share, distance)
    fit = MMRM(gamma=gamma).fit(X, y).fits_[0]
    assert fit.status in (Status.OPTIMAL, Status.TRIVIAL)
    assert fit.route == ("whole" if share < 0.1 else "interior")
    assert 0 <= fit.gap <= 1e-6
