"""Objective and lower bound of the machines that penalise the variance of decision values.

    min over w      a/2 ||w||^2 + c/2 var(w'z_1, ..., w'z_n) + sum_i loss_i(w'z_i)

The variance is ``w'Sw`` for the (weighted) covariance S of the mapped rows z_i.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmbench.kernels import row_squares
from mmbench.machines.base.problem import BinaryModel, BinaryProblem
from mmbench.solvers.svm_dual.qp import ROUNDING_FACTOR


def primal_objective(
    problem: BinaryProblem,
    model: BinaryModel,
    a: float,
    c: float,
    C: float,
    weights: NDArray | None = None,
) -> float:
    """Return the objective with the loss ``C s_i max(0, 1 - y_i f(x_i))`` at a model.

    The objective is computed from the coefficients for the kernel of the data, since a conversion
    from another kernel may lose digits.
    """
    if model.w is None:
        products = problem.gram @ model.coef
        norm = float(model.coef @ products)
    else:
        products, norm = problem.X @ model.w, float(model.w @ model.w)
    f = products + model.intercept
    slack = np.maximum(0.0, 1.0 - problem.y * f)
    variance = np.average((f - np.average(f, weights=weights)) ** 2, weights=weights)
    total = slack.sum() if weights is None else weights @ slack
    return 0.5 * (a * norm + c * float(variance)) + C * float(total)


def dual_bound(
    problem: BinaryProblem,
    u: NDArray,
    model: BinaryModel,
    a: float,
    c: float,
    weights: NDArray | None = None,
) -> float:
    """Return a lower bound on ``y'u + min over v of (1/2 v'Mv - u'Zv)`` with ``M = a I + c S``.

    For a dual feasible u, this is a lower bound on the optimum. A dual objective from an inverse of
    M may exceed the optimum: the computed inverse may lack directions of small variance, and its
    rounding errors grow with the condition number of the Gram matrix. For every w with the residual
    ``r = Z'u - Mw``, the expression is

        y'u - u'Zw + 1/2 w'Mw - 1/2 r'M^-1 r

    Since ``M >= a I``, replacing M^-1 by ``I / a`` gives a lower bound; for the w of the model, r
    is small. Rounding errors are bounded as in `PiecewiseQP.solution`.
    """
    X, w, coef, n = problem.X, model.w, model.coef, len(u)
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    unit = ROUNDING_FACTOR * np.sqrt(n) * np.finfo(float).eps
    squares = row_squares(X) if coef is None else np.maximum(problem.gram.diagonal(), 0.0)
    roots, mean_square = np.sqrt(squares), float(shares @ squares)
    with np.errstate(over="ignore", invalid="ignore"):
        if coef is not None:
            products, size = problem.gram @ coef, float(np.abs(coef) @ roots)
            norm = float(coef @ products)
        else:
            assert w is not None
            products, norm = X @ w, float(w @ w)
            size = np.sqrt(norm)
        mean = float(shares @ products)
        f = products - mean
        rest = u - c * shares * f
        if coef is not None:
            rest -= a * coef
            rounding = unit * float(np.abs(rest) @ roots) ** 2
            residual = np.sqrt(max(0.0, float(rest @ (problem.gram @ rest))) + rounding)
        else:
            assert w is not None
            residual = float(np.linalg.norm(X.T @ rest - a * w))
            residual += unit * float(np.abs(rest) @ roots)
        residual += c * unit * size * mean_square
        spread, error = np.sqrt(shares @ f**2), unit * size * np.sqrt(mean_square)
        value = float((problem.y - f) @ u) - mean * float(u.sum())
        value += 0.5 * (a * norm + c * spread**2)
        rounding = unit * size * (float(np.abs(u) @ roots) + 0.5 * a * size)
        rounding += c * error * (spread + 0.5 * error)
        return float(value - rounding - 0.5 * residual**2 / a)
