"""The binary problem of coefficients and penalties, whichever program computed them."""

from __future__ import annotations

from numbers import Real
from types import SimpleNamespace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmbench.errors import UserError, check_known, converted
from mmbench.inspect.binary import Binary
from mmbench.inspect.hyperplanes import dense
from mmbench.inspect.losses import LOSSES
from mmbench.inspect.models import check_size, semidefinite_gram, signs, validated
from mmbench.kernels.matrix import PRECOMPUTED


class Coefficients(TypedDict, total=False):
    """The arguments of `mmbench.certify` that state a solution without a model."""

    coef: ArrayLike | None
    dual_coef: ArrayLike | None
    intercept: float
    fit_intercept: bool
    kernel: Any
    gamma: float | None
    loss: str


def problem_of_coefficients(
    X: Any,
    y: ArrayLike,
    C: Any,
    *,
    coef: ArrayLike | None = None,
    dual_coef: ArrayLike | None = None,
    intercept: float = 0.0,
    fit_intercept: bool = True,
    kernel: Any = "linear",
    gamma: float | None = None,
    loss: str = "hinge",
    sample_weight: ArrayLike | None = None,
) -> Binary:
    """Return the binary problem of the coefficients that `mmbench.certify` gets."""
    check_known(loss, LOSSES, "unknown loss")
    if (coef is None) == (dual_coef is None):
        raise UserError("certify(X, y, ...) takes either coef or dual_coef")
    if coef is not None and kernel != "linear":
        raise UserError("coef belongs to the linear kernel; other kernels need dual_coef")
    if gamma is not None and kernel != "rbf":
        raise UserError("gamma belongs to the RBF kernel; give kernel='rbf', too")
    _, rows, labels, weights, _ = validated(None, X, y, sample_weight)
    n, name = rows.shape[0], "dual_coef" if coef is None else "coef"
    with converted(name, TypeError, ValueError):
        values = dense(dual_coef if coef is None else coef)
        given = np.ravel(np.asarray_chkfinite(values, float))
    if len(given) != (n if coef is None else rows.shape[1]):
        problem = f"{name} has {len(given)} numbers, and X the shape {rows.shape}"
        remedy = "; give 0 for rows that are no support vectors" if coef is None else ""
        raise UserError(problem + remedy)
    with converted("C must be one number, or one per row", TypeError, ValueError):
        penalties = np.broadcast_to(np.asarray(np.nan if C is None else C, float), n) * weights
    if not (np.isfinite(penalties).all() and (penalties >= 0).all() and penalties.any()):
        raise UserError("C must be a finite number > 0, or one number >= 0 per row")
    with converted("intercept", TypeError, ValueError):
        b = float(np.asarray_chkfinite(intercept, float).item())
    if b and not fit_intercept:
        remedy = "give its penalty a constant column of X, or fit_intercept=True"
        raise UserError(f"intercept is {b:g} although fit_intercept is False; {remedy}")
    pair, targets = _targets(labels, loss)
    if coef is not None:
        f, square = rows @ given + b, float(given @ given)
        return Binary(pair, rows, targets, penalties, f, square, None, fit_intercept, loss)
    if loss == "hinge" and (given * targets < 0).any():
        rule = f"dual_coef is alpha_i in the rows of {pair[1]!r}, and -alpha_i in the others"
        raise UserError(f"the signs of dual_coef differ from the signs of y; {rule}")
    gram = _kernel_matrix(kernel, gamma, rows)
    values = gram @ given
    square = float(given @ values)
    return Binary(pair, gram, targets, penalties, values + b, square, given, fit_intercept, loss)


def _targets(labels: NDArray, loss: str) -> tuple[tuple[Any, ...], NDArray]:
    """Return the labels of both classes and -1 or 1 per row, or the targets of a regression."""
    if (labels != labels).any():
        raise UserError("y contains NaN")
    pair = tuple(np.unique(labels).tolist())
    if loss == "squared_error" and pair != (-1, 1):
        with converted("y of loss='squared_error' must be numbers", TypeError, ValueError):
            return ("y",), labels.astype(float)
    if len(pair) != 2:
        raise UserError(f"y has {len(pair)} labels; give the rows of two classes")
    return pair, signs(labels, pair, pair[1])[1]


def _kernel_matrix(kernel: Any, gamma: float | None, rows: Any) -> NDArray:
    if not callable(kernel) and kernel not in ("linear", "rbf", PRECOMPUTED):
        raise UserError(f"kernel={kernel!r}: give 'linear', 'rbf', 'precomputed' or a function")
    if kernel == "rbf" and not (isinstance(gamma, Real) and 0 < gamma < np.inf):
        raise UserError("kernel='rbf' needs gamma > 0, such as gamma=0.5")
    model = SimpleNamespace(kernel=kernel, gamma=gamma, degree=None, coef0=None)
    check_size(model, rows)
    return semidefinite_gram(model, rows, np.arange(rows.shape[0]), 0, "these rows")
