"""``mmbench check``: checks of certificates and of the use in a grid search, for any machine."""

import warnings
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import estimator_checks_generator

from mmbench.errors import Status, converted, readable
from mmbench.machines import machine_class
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.problem import BinaryProblem, Fit
from mmbench.plugins import import_path

#: Two objectives are considered equal if their relative difference is at most SAME.
SAME = 1e-6
NO_CERTIFICATES = "; no certificates, since its optimisation problem is unknown"


def _data() -> tuple[NDArray, NDArray]:
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::2], np.array(["setosa", "versicolor", "virginica"])[y[::2]]


def _require(true: Any, message: str) -> None:
    if not true:
        raise AssertionError(message)


def _declared(machine: PairwiseClassifier) -> None:
    """Parameters are declared, and their defaults are valid."""
    for name, value in machine.get_params().items():
        _require(name in machine.parameters, f"{name} is not declared by parameter(...)")
        problem = machine.parameters[name].problem(value)
        _require(problem is None, f"the default of {name} {problem}")


def _certified(machine: PairwiseClassifier) -> None:
    """Fits are certified: a bound below the objective exists, and optimal fits have small gaps."""
    fits = machine.fit(*_data()).fits_
    _require(len(fits) == 3, f"three classes have three pairs, there are {len(fits)} fits")
    for fit in fits:
        pair = "/".join(map(str, fit.pair))
        Status(fit.status)
        _require(np.isfinite(fit.objective), f"{pair}: the objective is {fit.objective}")
        _require(np.isfinite(fit.bound), f"{pair}: the bound is {fit.bound}")
        allowed, above = SAME * max(1.0, abs(fit.objective)), fit.bound - fit.objective
        _require(above <= allowed, f"{pair}: the bound lies {above:.1e} above the objective")
        _require(fit.max_violation >= 0, f"{pair}: the violation is {fit.max_violation}")
        if fit.status is Status.OPTIMAL:
            _require(fit.gap <= machine.gap_tolerance, f"{pair}: optimal with a gap {fit.gap:.1e}")


def _same_in_any_order(machine: PairwiseClassifier) -> None:
    """The objective does not depend on the order of the rows."""
    X, y = _data()
    order = np.random.default_rng(0).permutation(len(y))
    _compare(clone(machine).fit(X, y).fits_, clone(machine).fit(X[order], y[order]).fits_, machine)


def _same_by_path(machine: PairwiseClassifier) -> None:
    """A training with a warm start reaches the objective of a training without a warm start."""
    X, y = _data()
    rows = y != "setosa"
    signs = np.where(y[rows] == "virginica", 1.0, -1.0)
    name = "C" if "C" in machine.parameters else "tol"
    points = [{name: getattr(machine, name) * factor} for factor in (1.0, 0.5)]
    problem = BinaryProblem(X[rows], signs, machine.kernel_for(X[rows]))
    path = [model.fit for model in machine.train_path(problem, points)]
    _compare(path, [machine.with_params(point).train(problem).fit for point in points], machine)


def _same_by_reference(machine: PairwiseClassifier) -> None:
    """The reference solver, if any, reaches the objective of the default solver."""
    X, y = _data()
    if machine.parameters["solver"].problem("reference") is None:
        other = clone(machine).set_params(solver="reference")
        _compare(clone(machine).fit(X, y).fits_, other.fit(X, y).fits_, machine)


def _compare(some: list[Fit], others: list[Fit], machine: PairwiseClassifier) -> None:
    for one, other in zip(some, others, strict=True):
        if one.status == other.status == Status.OPTIMAL:
            scale = max(abs(one.objective), abs(other.objective), 1e-12)
            away = abs(one.objective - other.objective) / scale
            allowed = max(SAME, machine.gap_tolerance)
            _require(away <= allowed, f"objectives {one.objective!r} and {other.objective!r}")


#: Checks of the certificates. The command prints the docstring of a check as the check's name.
CERTIFICATE_CHECKS = (_declared, _certified, _same_in_any_order, _same_by_path, _same_by_reference)


def check_machine(path: str) -> tuple[list[str], bool]:
    """Run all checks of a machine. Return a report, and whether all checks passed.

    The report has one line per failed check, and the number of passed checks. `path` is the name of
    a machine, or a class as ``module.Class`` or ``module:Class``. A class that is not a
    `PairwiseClassifier` has no certificates; only the checks of scikit-learn are run. Raises
    UserError if the machine is unknown or needs arguments.
    """
    cls = machine_class(import_path(path))
    certified = issubclass(cls, PairwiseClassifier)
    make: Callable[[], Any] = getattr(cls, "make", cls)
    with converted(f"{path}: cannot be instantiated without arguments", Exception):
        made = make()
    checks = [
        (f"scikit-learn: {getattr(check, 'func', check).__name__}", check, clone(estimator))
        for estimator, check in estimator_checks_generator(made)
    ]
    for check in CERTIFICATE_CHECKS if certified else ():
        checks.append((str(check.__doc__).rstrip("."), check, make()))
    n_passed, failed = 0, []
    for name, check, machine in checks:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(machine)
            n_passed += 1
        except SkipTest:  # the check needs a library that is not installed
            pass
        except Exception as error:  # any exception of a machine counts as a failed check
            text = str(error) if isinstance(error, AssertionError) else repr(error)
            failed.append(f"FAILED {name}: {readable(text)}")
    counts = f"{path}: {n_passed} of {n_passed + len(failed)} checks passed"
    return [*failed, counts if certified else counts + NO_CERTIFICATES], not failed
