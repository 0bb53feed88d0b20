"""The certificate of one binary problem: objective, lower bounds, gap and optimum.

A problem separates two classes, or one class from all others. For labels y_i = -1 or 1, penalties
C_i, a convex loss l and ``f(x) = w'phi(x) + b``, the objective is

    P(w, b) = 1/2 ||w||^2 + sum_i C_i l(y_i, f(x_i))

Lower bounds are dual objectives (`mmbench.inspect.losses`). A penalised intercept is the weight of
a constant feature. libsvm stops when the optimality conditions hold to within a tolerance; the
relative gap may then be 0.9 although all labels agree with the optimal solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse, vstack

from mmbench.errors import Status
from mmbench.inspect.hyperplanes import dense
from mmbench.inspect.losses import FACTORISED, LOSSES, Optimum, feasible, minimised, violation
from mmbench.solvers.result import relative_gap

#: Largest violation of the dual constraints of a lower bound, relative to the largest penalty.
DUAL_TOLERANCE = 1e-9


class Binary(NamedTuple):
    """A binary problem, and the solution that a fitted model contains."""

    #: Labels of the negative class and of the positive class; a regression has one name.
    pair: tuple[Any, ...]
    #: Kernel matrix (n, n) of a model with dual variables, otherwise training rows (n, d).
    X: Any
    #: Labels y_i of the training rows, -1 or 1, or the targets of a regression. Shape (n,).
    y: NDArray
    #: Penalties C_i of the training rows. Shape (n,).
    C: NDArray
    #: Decision values of the model at the training rows. Shape (n,).
    f: NDArray
    #: ``||w||^2``, plus the squared intercept if it is penalised.
    square: float
    #: Dual variables times labels a_i y_i, shape (n,), if the model has dual variables.
    u: NDArray | None = None
    #: Whether the binary problem has an intercept without a penalty.
    free_intercept: bool = True
    #: Name in `LOSSES`.
    loss: str = "hinge"


def certificate(problem: Binary) -> dict[str, Any]:
    """Return the row of one binary problem in the result of `mmbench.certify`."""
    y, C, u, free = problem.y, problem.C, problem.u, problem.free_intercept
    loss, square = LOSSES[problem.loss], problem.square
    losses, own = loss.value(y, problem.f), -np.inf
    model = {"objective": 0.5 * square + float(C @ losses), "dual": np.nan, "violation": np.nan}
    if problem.loss != "hinge":
        u = feasible(loss, y, C, problem.f, free)
        v = problem.X @ u if problem.u is not None else problem.X.T @ u
        square = float((u if problem.u is not None else v) @ v)
    if u is not None:
        model["dual"] = float(loss.gain(u, y, C).sum()) - 0.5 * square
        model["violation"] = violation(loss, u, y, C, free)
        if model["violation"] <= DUAL_TOLERANCE * float(C.max()):
            own = model["dual"]
    model["n_support"] = int(np.count_nonzero(losses if u is None else u))
    return certificate_row(problem.pair, model, own, problem.f, _optimum(problem))


def certificate_row(
    pair: tuple[Any, ...], model: dict[str, Any], own: float, f: NDArray, optimum: Optimum
) -> dict[str, Any]:
    """Return the row of one binary problem in the result of `mmbench.certify`.

    `model` contains the columns that depend only on the model, `own` is the lower bound from its
    dual variables, and `f` contains its decision values.
    """
    changed = np.count_nonzero((optimum.f > 0) != (f > 0)) if len(pair) > 1 else np.nan
    return {
        "pair": " / ".join(map(str, pair)),
        **{name: model[name] for name in ("objective", "dual", "violation")},
        "optimum": optimum.objective,
        "bound": optimum.bound,
        "gap": max(0.0, relative_gap(model["objective"], max(own, optimum.bound))),
        "decision_change": float(np.abs(optimum.f - f).max()),
        "labels_changed": changed,
        "n_support": model["n_support"],
        "status": str(optimum.status),
    }


def _optimum(problem: Binary) -> Optimum:
    """Solve a binary problem: by the SVM of mmbench for the hinge loss, else by Newton's method."""
    X, y, C, free = problem.X, problem.y, problem.C, problem.free_intercept
    present = np.unique(y[C > 0])
    if free and len(present) == 1 and problem.loss != "squared_error":
        # only one class has penalties > 0, so w = 0
        return Optimum(np.full(len(y), present[0]), 0.0, 0.0, Status.TRIVIAL)
    if problem.loss == "hinge":
        return _by_svm(problem)
    if problem.u is not None:
        X = _root(X)
    elif X.shape[0] < X.shape[1] and X.shape[0] <= FACTORISED:
        X = _root(dense(X @ X.T))
    elif free and not issparse(X):  # rounding errors grow with the means
        X = X - X.mean(axis=0)
    return minimised(X, y, C, LOSSES[problem.loss], free)


def _root(gram: NDArray) -> NDArray:
    """Return rows whose inner products are the entries of a positive semidefinite matrix."""
    values, vectors = eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _by_svm(problem: Binary) -> Optimum:
    """Solve a binary problem with hinge loss by the SVM of mmbench.

    Without an intercept, the rows -x_i with labels -y_i are added, and penalties halved: the
    optimal intercept is then 0.
    """
    from mmbench.machines import SVM

    X, y, C, gram = problem.X, problem.y, problem.C, problem.u is not None
    if not problem.free_intercept:
        y, C = np.append(y, -y), np.append(C, C) / 2
        X = np.block([[X, -X], [-X, X]]) if gram else _stacked(X)
    machine = SVM(kernel="precomputed" if gram else "linear", C=float(C.max()), tol=1e-6)
    fit = machine.fit(X, y, sample_weight=C / C.max()).fits_[0]
    b = 0.0 if problem.free_intercept else machine.intercept_[0]
    f = machine.decision_function(X)[: len(problem.y)] - b
    return Optimum(f, fit.objective, fit.bound, fit.status)


def _stacked(X: Any) -> Any:
    return csr_array(vstack([X, -X])) if issparse(X) else np.vstack([X, -X])
