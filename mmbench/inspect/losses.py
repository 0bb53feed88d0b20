"""Losses of the objective ``1/2 ||w||^2 + sum_i C_i l(y_i, f_i)``, and its minimum if l is smooth.

With ``w = sum_i u_i phi(x_i)``, the dual objective ``sum_i g(u_i) - 1/2 ||w||^2`` is at most the
optimum, where ``g(u_i) = -C_i l*(-u_i / C_i)`` for the conjugate l* of the loss. If the intercept
has no penalty, the u_i sum to 0. For a smooth loss, any decision values f give the dual variables
``u_i = -C_i dl/df_i`` (Boyd and Vandenberghe, section 5.5).

    loss           l(y, f)                 g(u), with a = y u                 domain
    hinge          max(0, 1 - y f)         a                                  0 <= a <= C
    squared_hinge  max(0, 1 - y f)^2       a - a^2 / (4 C)                    0 <= a
    log_loss       log(1 + exp(-y f))      C H(a / C), H the binary entropy   0 <= a <= C
    squared_error  (y - f)^2               y u - u^2 / (4 C)                  all u
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import entr, expit

from mmbench.errors import Status
from mmbench.solvers.result import relative_gap

#: Relative duality gaps at which Newton's method ends, and up to which a solution is optimal.
NEWTON_GAP, OPTIMAL_GAP = 1e-10, 1e-6

#: Maximum number of Newton steps, and of step lengths 1, 1/2, 1/4, ... per Newton step.
MAX_STEPS, MAX_HALVINGS = 200, 40

#: Least decrease of the objective per step, relative to the decrease of its linear approximation.
DECREASE = 1e-4

#: Largest order of a Hessian that is factorised; larger systems are solved by conjugate gradients.
FACTORISED = 3000

#: Relative residual of conjugate gradients, and maximum number of products per Newton step.
RESIDUAL, MAX_PRODUCTS = 1e-4, 1000


class Loss(NamedTuple):
    """A convex loss of labels y and decision values f; all functions take and return arrays."""

    #: Loss l(y, f).
    value: Callable[[NDArray, NDArray], NDArray]
    #: Negative derivative ``-dl/df``.
    slope: Callable[[NDArray, NDArray], NDArray]
    #: Second derivative.
    curvature: Callable[[NDArray, NDArray], NDArray]
    #: Term g of the dual objective, of arrays u, y and C.
    gain: Callable[[NDArray, NDArray, NDArray], NDArray]
    #: Whether ``0 <= y u``, and whether ``y u <= C``.
    signed: bool = True
    bounded: bool = False


def _entropy(u: NDArray, y: NDArray, C: NDArray) -> NDArray:
    share = np.clip(np.divide(u * y, C, out=np.zeros(len(u)), where=C > 0), 0.0, 1.0)
    return C * (entr(share) + entr(1.0 - share))


def _less_squares(u: NDArray, y: NDArray, C: NDArray) -> NDArray:
    return u * y - 0.25 * np.divide(u**2, C, out=np.zeros(len(u)), where=C > 0)


#: Losses by the names that scikit-learn gives them.
LOSSES = {
    "hinge": Loss(
        value=lambda y, f: np.maximum(0.0, 1.0 - y * f),
        slope=lambda y, f: y * (y * f < 1.0),
        curvature=lambda y, f: np.zeros(len(y)),
        gain=lambda u, y, C: u * y,
        bounded=True,
    ),
    "squared_hinge": Loss(
        value=lambda y, f: np.maximum(0.0, 1.0 - y * f) ** 2,
        slope=lambda y, f: 2.0 * y * np.maximum(0.0, 1.0 - y * f),
        curvature=lambda y, f: 2.0 * (y * f < 1.0),
        gain=_less_squares,
    ),
    "log_loss": Loss(
        value=lambda y, f: np.logaddexp(0.0, -y * f),
        slope=lambda y, f: y * expit(-y * f),
        curvature=lambda y, f: expit(f) * expit(-f),
        gain=_entropy,
        bounded=True,
    ),
    "squared_error": Loss(
        value=lambda y, f: (y - f) ** 2,
        slope=lambda y, f: 2.0 * (y - f),
        curvature=lambda y, f: np.full(len(y), 2.0),
        gain=_less_squares,
        signed=False,
    ),
}


def feasible(loss: Loss, y: NDArray, C: NDArray, f: NDArray, free_intercept: bool) -> NDArray:
    """Return the dual variables that a smooth loss has at the decision values f.

    With a free intercept, the dual variables must sum to 0. For a signed loss, the variables of the
    class with the larger sum are reduced; for other losses, the intercept is changed.
    """
    u = C * loss.slope(y, f)
    if not free_intercept:
        return u
    if not loss.signed:
        return u - C * (u.sum() / C.sum())
    positive, negative = float(u[y > 0].sum()), -float(u[y < 0].sum())
    least = min(positive, negative)
    return u * np.where(y > 0, least / (positive or 1.0), least / (negative or 1.0))


def violation(loss: Loss, u: NDArray, y: NDArray, C: NDArray, free_intercept: bool) -> float:
    """Return the largest violation of a constraint by the dual variables u."""
    a = u * y
    return max(
        float((-a).max()) if loss.signed else 0.0,
        float((a - C).max()) if loss.bounded else 0.0,
        abs(float(u.sum())) if free_intercept else 0.0,
        0.0,
    )


class Optimum(NamedTuple):
    """A solution that mmbench computed."""

    #: Decision values of the training rows. Shape (n,).
    f: NDArray
    objective: float
    #: Lower bound on the optimal objective.
    bound: float
    status: Status


def minimised(X: Any, y: NDArray, C: NDArray, loss: Loss, free_intercept: bool) -> Optimum:
    """Minimise the objective of a smooth loss over rows X by Newton's method.

    The Hessian is factorised if there are at most `FACTORISED` features.
    """
    w, b, bound = np.zeros(X.shape[1]), 0.0, -np.inf
    f, objective = np.zeros(len(y)), float(C @ loss.value(y, np.zeros(len(y))))
    for _ in range(MAX_STEPS):
        u = feasible(loss, y, C, f, free_intercept)
        v = X.T @ u
        bound = max(bound, float(loss.gain(u, y, C).sum() - 0.5 * v @ v))
        if relative_gap(objective, bound) <= NEWTON_GAP:
            break
        u = C * loss.slope(y, f)
        gradient = np.append(w - X.T @ u, -u.sum() if free_intercept else 0.0)
        step = -_newton_direction(X, C * loss.curvature(y, f), gradient, free_intercept)
        for length in 0.5 ** np.arange(MAX_HALVINGS):
            new_w, new_b = w + length * step[:-1], b + length * step[-1]
            new_f = X @ new_w + new_b
            value = 0.5 * float(new_w @ new_w) + float(C @ loss.value(y, new_f))
            if value <= objective + DECREASE * length * float(gradient @ step):
                break
        else:  # rounding errors are larger than the decrease
            break
        w, b, f, objective = new_w, new_b, new_f, value
    solved = relative_gap(objective, bound) <= OPTIMAL_GAP
    return Optimum(f, objective, bound, Status.OPTIMAL if solved else Status.INACCURATE)


def _newton_direction(X: Any, weights: NDArray, gradient: NDArray, free: bool) -> NDArray:
    """Solve ``H s = gradient`` for the Hessian H of the weights w and the intercept."""
    d = X.shape[1]
    sums = np.append(X.T @ weights if free else np.zeros(d), 0.0)
    # without positive weights or without an intercept, the equation of the intercept is s = 0
    sums[-1] = float(weights.sum()) if free and weights.any() else 1.0
    if d <= FACTORISED:
        hessian = np.empty((d + 1, d + 1))
        product = X.T @ (X.multiply(weights[:, None]) if issparse(X) else X * weights[:, None])
        hessian[:-1, :-1] = product.toarray() if issparse(product) else product
        hessian[:-1, :-1].flat[:: d + 1] += 1.0
        hessian[-1], hessian[:, -1] = sums, sums
        try:
            return cho_solve(cho_factor(hessian), gradient)
        except LinAlgError:
            return np.linalg.lstsq(hessian, gradient)[0]

    def product_of(s: NDArray) -> NDArray:
        own = s[:-1] + X.T @ (weights * (X @ s[:-1])) + sums[:-1] * s[-1]
        return np.append(own, sums @ s)

    squares = X.multiply(X) if issparse(X) else X**2
    scale = 1.0 / np.append(1.0 + squares.T @ weights, sums[-1])
    shape = (d + 1, d + 1)
    jacobi = LinearOperator(shape, matvec=lambda s: scale * s)
    hessian_of = LinearOperator(shape, matvec=product_of)
    return cg(hessian_of, gradient, rtol=RESIDUAL, maxiter=MAX_PRODUCTS, M=jacobi)[0]
