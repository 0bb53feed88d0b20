"""Worst-case accuracies of MPM, MEMPM and M4, and the sets of means and covariances."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.minimax_family import covariances, gaussians, kernel_forms
from sklearn.datasets import load_iris

import mmbench
from mmbench.kernels import Kernel
from mmbench.machines import M4, MEMPM, MPM
from mmbench.machines.minimax.spread import worst_case_accuracy

MACHINES = [MPM, MEMPM, M4]
#: Parameters with which the classes below are not the same as for the default parameters.
RADII = {"robust_mean": 0.3, "robust_covariance": 0.2}


def least_accuracy(margin, spread):
    """Return Cantelli's bound ``k^2/(1 + k^2)``, with ``k = margin/spread`` or 0."""
    kappa = max(0.0, margin / spread)
    return kappa**2 / (1 + kappa**2)


@pytest.mark.parametrize("cls", MACHINES)
@pytest.mark.parametrize("solver", ["auto", "reference"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("radii", [{}, RADII], ids=["plain", "robust"])
def test_it_follows_from_the_decisions_on_the_training_rows(cls, solver, kernel, radii):
    X, y = gaussians(shift=2.5)
    machine = cls(kernel=kernel, gamma=5.0, ridge=1e-2, solver=solver, **radii).fit(X, y)
    f, ridge = machine.decision_function(X), 1e-2 + radii.get("robust_covariance", 0.0)
    if kernel == "linear":
        w, forms = machine.coef_[0], covariances(X, y, ridge)
    else:
        w, forms = np.zeros(len(y)), kernel_forms(Kernel("rbf", 5.0)(X, X), y, ridge)
        w[machine.support_] = machine.dual_coef_[0]
    expected = [
        least_accuracy((y * f)[side].mean() - radii.get("robust_mean", 0.0) * s, s)
        for side, s in zip((y > 0, y < 0), (np.sqrt(w @ own @ w) for own in forms), strict=True)
    ]
    assert machine.worst_case_accuracy_ == pytest.approx([min(expected)], rel=1e-6)
    if cls is MPM:  # alpha is the same for both classes
        assert machine.fits_[0].extra["alpha"] == pytest.approx(expected[1], rel=1e-6)


@pytest.mark.parametrize("cls", MACHINES)
def test_no_mean_and_covariance_in_the_sets_has_a_smaller_bound_and_one_attains_it(cls):
    X, y = gaussians(shift=2.5)
    machine = cls(ridge=0, **RADII).fit(X, y)
    w, b, rng = machine.coef_[0], machine.intercept_[0], np.random.default_rng(0)
    bounds = []
    for sign, S in zip((1, -1), covariances(X, y), strict=True):
        mean, radius = X[y == sign].mean(axis=0), RADII["robust_covariance"] * np.trace(S) / len(S)
        changes = [np.outer(v, v) for v in rng.normal(size=(200, len(S)))]
        changes += [part + part.T for part in rng.normal(size=(200, len(S), len(S)))]
        changes.append(np.outer(w, w))  # the covariance with the largest spread
        for change in changes:
            other = S + radius * change / np.linalg.norm(change)
            if np.linalg.eigvalsh(other)[0] <= 0:
                continue
            spread = np.sqrt(w @ other @ w)
            for shift in (other @ w / spread, np.linalg.cholesky(other) @ rng.normal(size=len(S))):
                length = np.sqrt(shift @ np.linalg.solve(other, shift))
                moved = mean - sign * RADII["robust_mean"] * shift / length
                bounds.append(least_accuracy(sign * (w @ moved + b), spread))
    assert machine.worst_case_accuracy_ == pytest.approx([min(bounds)], rel=1e-9)


@pytest.mark.parametrize("kappa", [0.5, 2.0])
def test_a_distribution_of_two_values_attains_the_bound(kappa):
    share = 1 / (1 + kappa**2)  # of the rows on the decision boundary
    values, shares = np.array([0.0, kappa + 1 / kappa]), np.array([share, 1 - share])
    mean = values @ shares
    assert mean == pytest.approx(kappa)
    assert (values - mean) ** 2 @ shares == pytest.approx(1)
    bound = worst_case_accuracy(np.array([mean, mean + 1.0]), np.ones(2), 0.0)
    assert bound == pytest.approx(1 - share)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", MACHINES)
def test_the_radii_act_as_stated(cls, kernel):
    X, y = gaussians(shift=2.5)
    fits = [
        cls(kernel=kernel, **params).fit(X, y)
        for params in (
            {"ridge": 0.3},
            {"ridge": 0.1, "robust_covariance": 0.2},
            {"ridge": 0.3, "robust_mean": 0.1},
        )
    ]
    f, *others = (machine.decision_function(X) for machine in fits)
    for values in others[: 1 if cls is MEMPM else 2]:  # the mean's radius changes w of the MEMPM
        np.testing.assert_allclose(values, f, rtol=1e-9, atol=1e-12)
    bounds = [machine.worst_case_accuracy_[0] for machine in fits]
    assert bounds[2] < bounds[1] == pytest.approx(bounds[0])


@pytest.mark.parametrize("cls", MACHINES)
def test_there_is_one_bound_per_pair_which_may_be_zero(cls):
    X, y = load_iris(return_X_y=True)
    machine = cls().fit(X, y)
    assert machine.worst_case_accuracy_.shape == (3,)
    assert ((machine.worst_case_accuracy_ > 0.3) & (machine.worst_case_accuracy_ < 1)).all()
    X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [2, 0], [-2, 0]])  # equal means
    assert cls(ridge=1e-3).fit(X, [0, 0, 0, 0, 1, 1]).worst_case_accuracy_ == [0]
    assert cls(time_limit=1e-9).fit(X, [0, 0, 0, 0, 1, 1]).worst_case_accuracy_ == [0]
    assert cls(ridge=0).fit([[0.0], [1.0]], [0, 1]).worst_case_accuracy_ == [1]  # no spread


@pytest.mark.parametrize("form", [{"theta": 0.7}, {"A": 1.0}, {"variant": "lda"}], ids=str)
def test_the_bound_of_the_m4_has_the_spreads_of_the_classes(form):
    X, y = gaussians(shift=2.5)
    machine = M4(**form).fit(X, y)
    w, f = machine.coef_[0], y * machine.decision_function(X)
    forms = zip((y > 0, y < 0), covariances(X, y, 1e-8), strict=True)
    expected = min(least_accuracy(f[side].mean(), np.sqrt(w @ S @ w)) for side, S in forms)
    assert machine.worst_case_accuracy_ == pytest.approx([expected], rel=1e-6)


def test_the_factor_of_the_scatter_is_no_part_of_the_bound():
    X, y = gaussians(n_x=30, n_y=30)
    mean, total = (MPM(scatter=scatter).fit(X, y) for scatter in ("mean", "sum"))
    assert total.worst_case_accuracy_ == pytest.approx(mean.worst_case_accuracy_)


@pytest.mark.usefixtures("one_process")
def test_records_store_the_bound_and_the_accuracy_of_the_worse_class(tmp_path):
    """On breast cancer, the worse class is below the bound in none of 10 splits."""
    protocol = {"test": {"holdout": 0.1}, "repeats": 10, "seed": 0}
    machines = {"mpm": {}, "mpm_ridge": {"machine": "mpm", "params": {"ridge": 1}}, "lda": {}}
    content = {"name": "bound", "datasets": ["wdbc", "wine"], "kernel": "linear"}
    (run,) = mmbench.run({**content, "protocol": protocol, "machines": machines}, tmp_path)
    splits = mmbench.load(run.folder).query("dataset == 'wdbc' and machine == 'mpm'")
    assert splits.worst_case_accuracy_pct.between(74, 79).all()
    assert (splits.worst_class_accuracy_pct > splits.worst_case_accuracy_pct).all()
    assert (splits.worst_class_accuracy_pct <= splits.accuracy_pct).all()
    text = str(mmbench.table(run.folder, layout="comparison"))
    (line,) = (line for line in text.splitlines() if line.startswith("| MPM ") and " of 10" in line)
    assert line.split("|")[-2].strip() == "0 of 10"
    assert "| wine" in text and "0 of 20" not in text  # three classes have a bound per pair
