"""Newton's method on smoothed losses ends where pairwise steps do, and where others do not."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench import RMM, SVM, SigmaSVM
from mmbench.machines.rmm import rmm_dual
from mmbench.machines.svm import svm_dual
from mmbench.solvers.features import smoothed_multipliers
from mmbench.solvers.svm_dual import solve_to_gap


def rare(n_rows, n_features=3, distance=1.2, share=0.05):
    """Return overlapping normal classes, one of them rare."""
    random = np.random.default_rng(0)
    y = np.where(random.random(n_rows) < share, 1.0, -1.0)
    return random.normal(size=(n_rows, n_features)) + distance * (y[:, None] > 0), y


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("distance", [0.0, 1.2, 3.0])
@pytest.mark.parametrize("B", [None, 1.5])
def test_the_last_multipliers_are_those_of_pairwise_steps(C, distance, B):
    X, y = rare(400, distance=distance)
    dual = [svm_dual(K, y, C) if B is None else rmm_dual(K, y, C, B) for K in (X, X @ X.T)]
    expected = solve_to_gap(dual[1], 1e-8, 1e-9)
    values = []
    for u, _ in smoothed_multipliers(dual[0], C):
        u = dual[0].feasible(u)
        v = X.T @ u
        values.append(0.5 * float(v @ v) + dual[0].cost(u) + dual[0].constant)
    assert values[-1] == pytest.approx(expected.value, rel=1e-6)
    assert values[-1] <= values[0]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("share", [0.05, 0.005])
def test_a_rare_class_among_many_rows_is_no_obstacle(C, share):
    X, y = rare(50_000, share=share)
    svm = SVM(kernel="linear", C=C, tol=1e-6).fit(X, y).fits_[0]
    assert svm.status == "optimal" and svm.gap <= 1e-6
    if C == 1.0:
        sigma = SigmaSVM(kernel="linear", C=C).fit(X, y).fits_[0]
        X, y = rare(20_000, share=share)  # as many steps as on all rows
        penalty = RMM(kernel="linear", C=C, D=10.0, form="penalty").fit(X, y).fits_[0]
        assert sigma.status == penalty.status == "optimal"
        assert penalty.gap <= 1e-6 and sigma.gap <= 1e-5
