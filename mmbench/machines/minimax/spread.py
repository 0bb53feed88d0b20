"""Spreads of two classes along a direction, and the direction that minimises their sum.

    min over w   sx + sy   subject to   t'w = 1,        sx = sqrt(w'Sx w),  sy = sqrt(w'Sy w)

For ``0 < theta < 1`` Cauchy's inequality gives ``(sx + sy)^2 <= sx^2/theta + sy^2/(1 - theta)``,
with equality at ``theta = sx/(sx + sy)``. The right-hand side is the quadratic form w'S w with
``S = Sx/theta + Sy/(1 - theta)``, and its minimiser is a multiple of ``S^-1 t``. The textbook
iteration alternates the two steps; `minimax` solves the same equation in the log-odds of theta by
secant steps inside a bracket.

The dual, ``max g`` subject to ``g t = Sx^{1/2} p + Sy^{1/2} q``, ``||p||, ||q|| <= 1``, certifies
the result: ``p = Sx^{1/2} w/theta`` and ``q = Sy^{1/2} w/(1 - theta)`` are feasible up to their
length.

S^-1 is applied in one of two ways, and `minimax` is the same for both:

    minimax_direction   in coordinates in which Sx and Sy are diagonal, O(k) per theta
    GramSpread          over a kernel matrix of full rank, by one Cholesky factor

References
----------
G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. Jordan: A robust minimax approach to
classification. JMLR 3, 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.solvers.result import Result

#: The log-odds of theta are sought between minus and plus this value; at an end one class has no
#: spread along the solution.
MAX_LOGIT = 30.0

#: Targets larger than this, or smaller than its reciprocal, are scaled.
MAX_TARGET = 1e100

TINY = np.finfo(float).tiny

#: Smallest relative ridge with which a float32 factor is a good preconditioner, and the range of
#: traces that float32 can represent.
SINGLE_RIDGE, SINGLE_RANGE = 1e-5, (1e-30, 1e30)

#: Accuracy of conjugate gradients at the first theta, and then as a share of the gap; the largest
#: number of their steps.
FIRST_ACCURACY, ACCURACY_SHARE, MAX_STEPS = 1e-2, 1e-2, 500


@dataclass(frozen=True)
class Direction(Result):
    """A direction and its certificate; `value` is the total spread."""

    #: Scaled to ``t'w = 1``. Shape (k,).
    w: NDArray
    spread_x: float
    spread_y: float


class Trial(NamedTuple):
    """A multiple of ``S^-1 t`` at one theta."""

    w: NDArray
    #: ``t'w``.
    target: float
    spread_x: float
    spread_y: float
    #: Upper bound on the error of ``||p||`` and ``||q||`` that an inexact solution causes.
    residual: float = 0.0


def minimax(
    trial: Callable[[float, float], Trial], tol: float, route: str, max_trials: int = 100
) -> Direction:
    """Minimise the total spread; `trial` maps log-odds of theta and an accuracy to a `Trial`."""
    logit, low, high = 0.0, -MAX_LOGIT - 1.0, MAX_LOGIT + 1.0
    accuracy, last = FIRST_ACCURACY, (0.0, 0.0)
    for trials in range(1, max_trials + 1):
        w, target, spread_x, spread_y, residual = trial(logit, accuracy)
        longest = max(spread_x * (1.0 + np.exp(-logit)), spread_y * (1.0 + np.exp(logit)))
        found = Direction(
            w / target,
            spread_x / target,
            spread_y / target,
            value=(spread_x + spread_y) / target,
            bound=1.0 / (float(longest) + residual),
            violation=0.0,
            iterations=trials,
            status=Status.OPTIMAL,
            route=route,
        )
        image = np.log(spread_x + TINY) - np.log(spread_y + TINY)
        change = float(np.clip(image, -MAX_LOGIT, MAX_LOGIT)) - logit
        if found.closed(tol) or (abs(change) < 1e-12 and not residual) or time_is_up():
            break
        if not residual:
            low, high = (logit, high) if change > 0 else (low, logit)
        step = logit + change
        if abs(change) < abs(last[1]):
            step = logit - change * (logit - last[0]) / (change - last[1])
        if not low < step < high:
            step = 0.5 * (low + high)
        last = logit, change
        logit, accuracy = step, ACCURACY_SHARE * found.gap
    return found


def minimax_direction(target: NDArray, var_x: NDArray, var_y: NDArray) -> Direction:
    """Minimise the total spread in coordinates in which both covariances are diagonal.

    Where a variance of one class is zero, the variance of the other must be positive.

    Examples
    --------
    >>> found = minimax_direction(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 4.0]))
    >>> found.w.round(3), round(found.value, 6), round(found.bound, 6)
    (array([0.8, 0.2]), 1.788854, 1.788854)
    """
    size = float(np.abs(target).max(initial=0.0))
    if not 0.0 < size < np.inf:
        raise ValueError("the difference of the class means is not a finite vector; scale the data")
    # Squares of extreme targets would underflow or overflow.
    unit = 1.0 if 1.0 / MAX_TARGET < size < MAX_TARGET else size
    t = target / unit

    def trial(logit: float, _accuracy: float) -> Trial:
        # 1/theta and 1/(1 - theta), both exact at the ends.
        w = t / (var_x * (1.0 + np.exp(-logit)) + var_y * (1.0 + np.exp(logit)))
        squares = w * w
        spread_x, spread_y = float(np.sqrt(var_x @ squares)), float(np.sqrt(var_y @ squares))
        return Trial(w, float(t @ w), spread_x, spread_y)

    found = minimax(trial, 1e-14, "secant")
    names = ("w", "spread_x", "spread_y", "value", "bound")
    return replace(found, **{name: getattr(found, name) / unit for name in names})


class GramSpread:
    """Spreads of ``w = F'c`` over a whole kernel matrix ``K = F F'``, with one ridge r.

    Notes
    -----
    With the class means removed by H,

        S = F'H D H F + r' I,    D_ii = 1/(n_c theta_c),    r' = r/theta + r/(1 - theta)
        S^-1 F't = F'c,          c = (t - H M^-1 H K t)/r',    M = H K H + r' D^-1

    so that a Cholesky factor of M, n^3/3 operations, applies S^-1 to any vector of the span. The
    factor is made at ``theta = 1/2``. At another theta it is a preconditioner: conjugate gradients
    see a condition number of at most the ratio of the two thetas' odds, whatever the kernel. If the
    ridge is not small relative to the trace the factor is stored in single precision.
    """

    def __init__(self, gram: NDArray, y: NDArray, ridge: float):
        self.gram, self.y, self.ridge = gram, y, ridge
        self._sides = np.column_stack([y > 0, y < 0]).astype(float)
        self._counts = self._sides.sum(axis=0)
        #: Difference of the class means, as coefficients over the rows.
        self.target = self._sides @ (np.array([1.0, -1.0]) / self._counts)
        #: D and r' at ``theta = 1/2``.
        self.weights, self.damping = self._sides @ (2.0 / self._counts), 4.0 * ridge
        trace = float(np.trace(gram))
        single = ridge * len(y) >= SINGLE_RIDGE * trace
        single = single and SINGLE_RANGE[0] < trace < SINGLE_RANGE[1]
        self.dtype = np.float32 if single else np.float64
        self._means = gram @ self._sides / self._counts
        means = self._means - 0.5 * self._sides @ (
            self._sides.T @ self._means / self._counts[:, None]
        )
        # The transpose of a symmetric array is the array itself, in the memory order of LAPACK.
        matrix = np.array(gram.T, dtype=self.dtype, order="F")
        (update,) = blas.get_blas_funcs(("syr2k",), (matrix,))
        matrix = update(-1.0, means, self._sides, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        matrix[np.diag_indices_from(matrix)] += self.damping / self.weights
        self._factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        (self._solve_triangle,) = blas.get_blas_funcs(("trsv",), (self._factor,))

    def centred(self, values: NDArray) -> NDArray:
        """Return a vector over the rows less its mean in each class, ``H t``."""
        return values - self._sides @ (values @ self._sides / self._counts)

    def spreads(self, c: NDArray, decision: NDArray) -> NDArray:
        """Return (sx, sy) of ``w = F'c``, given ``decision = Kc``."""
        own = self.ridge * max(0.0, float(c @ decision))
        return np.sqrt([decision[side].var() + own for side in (self.y > 0, self.y < 0)])

    def gradient(self, c: NDArray, decision: NDArray) -> NDArray:
        """Return g, where F'g is the gradient of sx + sy at ``w = F'c``, given ``Kc``."""
        inverse = 1.0 / self.spreads(c, decision)
        weights = self._sides @ (inverse / self._counts)
        return weights * self.centred(decision) + self.ridge * inverse.sum() * c

    def residual_length(self, residual: NDArray, values: NDArray) -> float:
        """Return a bound on ||p||, ||q|| with ``F'residual = Sx^{1/2} p + Sy^{1/2} q``.

        Each takes half of the residual, and no covariance is below its ridge; `values` is
        ``K residual``.
        """
        return 0.5 * float(np.sqrt(max(0.0, residual @ values) / self.ridge))

    def half(self, values: NDArray) -> NDArray:
        """Return ``L^-1 H v`` with the factor L of M."""
        return self._solve_triangle(self._factor, self.centred(values), lower=1)

    def solution(self, t: NDArray, half: NDArray) -> NDArray:
        """Return c with ``S F'c = F't`` at ``theta = 1/2``, given ``half = L^-1 H K t``."""
        inner = self._solve_triangle(self._factor, half, lower=1, trans=1)
        return (t - self.centred(inner.astype(np.float64))) / self.damping

    def columns(self, rows: NDArray) -> NDArray:
        """Return ``L^-1 H K`` at some rows, shape (n, len(rows)), for `block`."""
        columns = self.gram[rows].astype(self.dtype)
        columns -= self._means[rows].astype(self.dtype) @ self._sides.T.astype(self.dtype)
        return solve_triangular(
            self._factor, columns.T, lower=True, overwrite_b=True, check_finite=False
        )

    def block(self, rows: NDArray, others: NDArray, products: NDArray) -> NDArray:
        """Return the kernel ``F S^-1 F'`` between rows and others, given ``columns'columns``."""
        kernel = self.gram[np.ix_(rows, others)]
        kernel -= products
        kernel /= self.damping
        return kernel

    def minimax(self, tol: float) -> Direction:
        """Minimise the total spread with ``w'(xm - ym) = 1``; the direction is given by its c."""
        values = self.gram @ self.target
        c = self.solution(self.target, self.half(values))

        def trial(logit: float, accuracy: float) -> Trial:
            nonlocal c
            c, residual = self._solve(logit, c, max(accuracy, 1e-3 * tol))
            decision = self.gram @ c
            spread_x, spread_y = self.spreads(c, decision)
            return Trial(c, float(values @ c), float(spread_x), float(spread_y), residual)

        return minimax(trial, 1e-2 * tol, "gram", max_trials=30)

    def _solve(self, logit: float, c: NDArray, accuracy: float) -> tuple[NDArray, float]:
        """Solve ``S F'c = F'target`` at any theta by conjugate gradients from a guess.

        The accuracy is relative to the spread of the solution; returns c and `residual_length`.
        """
        shares = np.array([1.0 + np.exp(-logit), 1.0 + np.exp(logit)])
        weights, damping = self._sides @ (shares / self._counts), self.ridge * shares.sum()
        decision = self.gram @ c
        residual = self.target - weights * self.centred(decision) - damping * c
        scale, size = float(self.target @ decision), np.inf
        step = step_values = np.zeros_like(c)
        for _ in range(MAX_STEPS):
            values = self.gram @ residual
            length = self.residual_length(residual, values)
            if length**2 <= accuracy**2 * scale:
                break
            z = self.solution(residual, self.half(values))
            product = float(z @ values)
            step = z + product / size * step
            step_values = self.gram @ z + product / size * step_values
            image = weights * self.centred(step_values) + damping * step
            rate = product / float(step_values @ image)
            c = c + rate * step
            scale += rate * float(self.target @ step_values)
            residual = residual - rate * image
            size = product
        return c, length
