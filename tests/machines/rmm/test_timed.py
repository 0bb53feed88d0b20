"""The RMM with a clock is the RMM, from whatever start."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from mmbench.machines import RMM, make_machine


@pytest.mark.parametrize("name", ["rmm_b1", "rmm_b2", "rmm_b3"])
def test_warm_and_cold_are_the_rmm_at_the_same_bound(name):
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    settings = {"C": 10.0, "gamma": 0.01, "tol": 1e-6}
    warm, cold = (make_machine(n, **settings).fit(X, y) for n in (name, f"{name}_cold"))
    plain = RMM(**settings, B_fraction=warm.B_fraction).fit(X, y)
    for machine in (warm, cold):
        fit, theirs = machine.fits_[0], plain.fits_[0]
        assert fit.objective == pytest.approx(theirs.objective, rel=1e-4)
        assert fit.extra["B"] == pytest.approx(theirs.extra["B"], rel=1e-4)
        for part in ("gram", "svm", "rmm"):
            assert fit.extra[f"{part}_cpu_seconds"] > 0
    assert warm.B_fraction == {"rmm_b1": 0.5, "rmm_b2": 0.25, "rmm_b3": 0.1}[name]
