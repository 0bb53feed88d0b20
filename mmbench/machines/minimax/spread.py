"""Class spreads along a direction w, and the direction w with the smallest sum of spreads.

    min over w   sx + sy   subject to   t'w = 1,        sx = sqrt(w'Sx w),  sy = sqrt(w'Sy w)

In the MPM, t is the difference of the class means. By Cauchy's inequality,
``(sx + sy)^2 <= sx^2/theta + sy^2/(1 - theta)``, with equality at ``theta = sx/(sx + sy)``, and a
multiple of ``S^-1 t``, ``S = Sx/theta + Sy/(1 - theta)``, minimises the right-hand side. `minimax`
finds theta by a bracketed secant method in ``log(theta/(1 - theta))``; the textbook alternates
between w and theta.

The dual problem is ``max g`` subject to ``g t = Sx^{1/2} p + Sy^{1/2} q``, ``||p||, ||q|| <= 1``;
for any theta, ``p = Sx^{1/2} w/theta`` and ``q = Sy^{1/2} w/(1 - theta)`` give a lower bound after
scaling. Products with S^-1 take O(k) in diagonal coordinates, or a Cholesky factor (`GramSpread`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular

from mmbench.allowance import check_time, time_is_up
from mmbench.errors import Status
from mmbench.solvers.result import Result

#: Upper bound on the absolute value of the log-odds of theta. The absolute value reaches MAX_LOGIT
#: if one class has zero spread along the optimal w.
MAX_LOGIT = 30.0

#: A target vector t is scaled if max |t_i| is above MAX_TARGET or below 1/MAX_TARGET.
MAX_TARGET = 1e100

TINY = np.finfo(float).tiny

#: Minimum distance of the decision boundary from the projected class means, relative to their
#: distance. The optimal boundary contains the mean of a class without spread along w, such as a
#: class of one row, and rounding errors would decide the signs. LEAST_SHARE is below the default
#: tolerance.
LEAST_SHARE = 5e-7

#: The Cholesky factor is float32 if the ridge is at least SINGLE_RIDGE times the mean diagonal
#: entry of the kernel matrix, and its trace is in SINGLE_RANGE.
SINGLE_RIDGE, SINGLE_RANGE = 1e-5, (1e-30, 1e30)

#: Conjugate gradients: the tolerance for w is FIRST_ACCURACY at the first theta, then
#: ACCURACY_SHARE times the gap, with at most MAX_STEPS steps per theta.
FIRST_ACCURACY, ACCURACY_SHARE, MAX_STEPS = 1e-2, 1e-2, 500


@dataclass(frozen=True)
class Direction(Result):
    """A direction w that minimises the sum of class spreads, with ``value = sx + sy``."""

    #: Direction w with ``t'w = 1``, shape (k,). For a kernel matrix ``K = F F'``, coefficients c
    #: with ``w = F'c``, shape (n,).
    w: NDArray
    spread_x: float
    spread_y: float


class Trial(NamedTuple):
    """A multiple of the minimiser w for one value of theta, and the class spreads along w."""

    w: NDArray
    #: Scalar product ``t'w``.
    target: float
    spread_x: float
    spread_y: float
    #: Upper bound on the errors of the dual norms ``||p||`` and ``||q||`` that an inexact w causes.
    residual: float = 0.0


def minimax(
    trial: Callable[[float, float], Trial], tol: float, route: str, max_trials: int = 100
) -> Direction:
    """Minimise the sum of class spreads by a search over theta.

    `trial` takes the log-odds of theta and a tolerance for w, and returns a `Trial`.
    """
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


def spreads(w: NDArray, var_x: NDArray, var_y: NDArray) -> NDArray:
    """Return the class spreads (sx, sy) along w for diagonal covariances, shape (2,)."""
    squares = w * w
    return np.sqrt(np.array([var_x @ squares, var_y @ squares]))


def accuracy(kappa: float) -> float:
    """Return ``kappa^2 / (1 + kappa^2)``, the accuracy u with ``kappa(u) = kappa``.

    A negative kappa is replaced by 0.

    Examples
    --------
    >>> accuracy(2.0), accuracy(-2.0)
    (0.8, 0.0)
    """
    kappa = max(kappa, 0.0)
    return kappa**2 / (1.0 + kappa**2)


def worst_case_accuracy(margins: NDArray, spreads: NDArray, radius: float) -> float:
    """Return the lower bound on the accuracy of the worse class.

    `margins` contains ``w'xm + b`` and ``-(w'ym + b)``, and `spreads` contains sx and sy. `radius`
    is the radius of the set of class means, in spreads.

    Examples
    --------
    >>> round(worst_case_accuracy(np.array([2.0, 3.0]), np.ones(2), 0.0), 6)
    0.8
    """
    excess = np.maximum(margins - radius * spreads, 0.0)
    length = np.hypot(excess, spreads)
    return float(np.divide(excess, length, out=np.zeros(2), where=excess > 0).min() ** 2)


def inner(share: float) -> float:
    """Clip `share` to the interval from LEAST_SHARE to 1 - LEAST_SHARE.

    `share` is the distance of the decision boundary from one projected class mean, divided by the
    distance of the projected class means.
    """
    return float(np.clip(share, LEAST_SHARE, 1.0 - LEAST_SHARE))


def minimax_direction(target: NDArray, var_x: NDArray, var_y: NDArray) -> Direction:
    """Minimise the sum of class spreads over w with ``target'w = 1``, for diagonal covariances.

    In each coordinate the variance of at least one class must be positive.

    Examples
    --------
    >>> found = minimax_direction(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 4.0]))
    >>> found.w.round(3), round(found.value, 6), round(found.bound, 6)
    (array([0.8, 0.2]), 1.788854, 1.788854)
    """
    size = float(np.abs(target).max(initial=0.0))
    if not 0.0 < size < np.inf:
        raise ValueError("the difference of the class means is not a finite vector; scale the data")
    # the target vector is scaled if squares of its entries might underflow or overflow
    unit = 1.0 if 1.0 / MAX_TARGET < size < MAX_TARGET else size
    t = target / unit

    def trial(logit: float, _accuracy: float) -> Trial:
        # 1/theta = 1 + exp(-logit) and 1/(1 - theta) = 1 + exp(logit), without cancellation.
        w = t / (var_x * (1.0 + np.exp(-logit)) + var_y * (1.0 + np.exp(logit)))
        return Trial(w, float(t @ w), *spreads(w, var_x, var_y).tolist())

    found = minimax(trial, 1e-14, "secant")
    names = ("w", "spread_x", "spread_y", "value", "bound")
    return replace(found, **{name: getattr(found, name) / unit for name in names})


class GramSpread:
    """Class spreads along ``w = F'c`` for a kernel matrix ``K = F F'`` and an absolute ridge r.

    Notes
    -----
    Let H subtract the mean of each class, n_c be the size of class c, and theta_c be theta or 1 -
    theta. For every row i of class c and every vector t of n coefficients,

        S = F'H D H F + r' I,    D_ii = 1/(n_c theta_c),    r' = r/theta + r/(1 - theta)
        S^-1 F't = F'c,          c = (t - H M^-1 H K t)/r',    M = H K H + r' D^-1

    A Cholesky factor of M (n^3/3 operations) gives products with S^-1 in O(n^2). M is factorized
    only at ``theta = 1/2``, which is the preconditioner of conjugate gradients at other theta: the
    condition number is at most the larger of ``theta/(1 - theta)`` and its reciprocal. With a large
    enough ridge (SINGLE_RIDGE), the factor is float32.
    """

    def __init__(self, gram: NDArray, y: NDArray, ridge: float):
        self.gram, self.y, self.ridge = gram, y, ridge
        self._indices = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        self._sides = np.column_stack([y > 0, y < 0]).astype(float)
        self._counts = self._sides.sum(axis=0)
        #: Coefficients t of the difference of the class means, ``xm - ym = F't``, shape (n,).
        self.target = self._sides @ (np.array([1.0, -1.0]) / self._counts)
        #: Diagonal of the matrix D, shape (n,), and the ridge r' of the class docstring, both at
        #: ``theta = 1/2``.
        self.weights, self.damping = self._sides @ (2.0 / self._counts), 4.0 * ridge
        trace = float(np.trace(gram))
        in_range = SINGLE_RANGE[0] < trace < SINGLE_RANGE[1]
        single = in_range and ridge * len(y) >= SINGLE_RIDGE * trace
        self.dtype = np.float32 if single else np.float64
        self._means = gram @ self._sides / self._counts
        means = self._means - 0.5 * self._sides @ (
            self._sides.T @ self._means / self._counts[:, None]
        )
        check_time(len(y) ** 3 / (8 if single else 4))
        # the transpose converts a symmetric matrix to column-major order
        matrix = np.array(gram.T, dtype=self.dtype, order="F")
        (update,) = blas.get_blas_funcs(("syr2k",), (matrix,))
        matrix = update(-1.0, means, self._sides, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        matrix[np.diag_indices_from(matrix)] += self.damping / self.weights
        self._factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        (self._solve_triangle,) = blas.get_blas_funcs(("trsv",), (self._factor,))

    def centred(self, values: NDArray) -> NDArray:
        """Return ``H v``: the values v minus their mean over each class, shape (n,)."""
        return values - self._sides @ (values @ self._sides / self._counts)

    def spreads(self, c: NDArray, decision: NDArray) -> NDArray:
        """Return the class spreads (sx, sy) along ``w = F'c``, where `decision` is ``Kc``."""
        own = self.ridge * max(0.0, float(c @ decision))
        return np.sqrt([decision[side].var() + own for side in self._indices])

    def gradient(self, c: NDArray, decision: NDArray, spreads: NDArray) -> NDArray:
        """Return g, where F'g is the gradient of the sum of the class `spreads` at ``w = F'c``.

        `decision` is the vector Kc.
        """
        inverse = 1.0 / spreads
        weights = self._sides @ (inverse / self._counts)
        return weights * self.centred(decision) + self.ridge * inverse.sum() * c

    def residual_length(self, residual: NDArray, values: NDArray) -> float:
        """Return an upper bound on ||p|| and ||q|| for ``F'residual = Sx^{1/2} p + Sy^{1/2} q``.

        The vectors p and q are chosen such that ``Sx^{1/2} p = Sy^{1/2} q = F'residual / 2``. The
        upper bound follows from the ridge, since no eigenvalue of Sx and Sy is below the ridge.
        `values` is ``K residual``.
        """
        return 0.5 * float(np.sqrt(max(0.0, residual @ values) / self.ridge))

    def dual_length(
        self, c: NDArray, decision: NDArray, shares: NDArray, residual: NDArray, values: NDArray
    ) -> float:
        """Return an upper bound on ||p|| and ||q||, where ``Sx^{1/2} p + Sy^{1/2} q`` is the sum of
        ``shares_x Sx w + shares_y Sy w`` for ``w = F'c``, and ``F'residual``.

        The vectors are ``p = Sx^{1/2} (shares_x w + 2 v)`` and ``q = Sy^{1/2} (shares_y w + 2 v)``
        with ``v = S^-1 F'residual`` and ``S = 2 Sx + 2 Sy``; rounding errors of v are bounded by
        `residual_length`. `values` is ``K residual``.
        """
        v = self.solution(residual, self.half(values))
        image = self.gram @ v
        rest = residual - self.weights * self.centred(image) - self.damping * v
        sides = [
            self.spreads(share * c + 2.0 * v, share * decision + 2.0 * image) for share in shares
        ]
        length = max(sides[0][0], sides[1][1])
        return float(length) + self.residual_length(rest, self.gram @ rest)

    def half(self, values: NDArray) -> NDArray:
        """Return ``L^-1 H v`` for a vector v, where L is the Cholesky factor of M."""
        return self._solve_triangle(self._factor, self.centred(values), lower=1)

    def solution(self, t: NDArray, half: NDArray) -> NDArray:
        """Solve ``S F'c = F't`` for c at ``theta = 1/2``, where `half` is ``L^-1 H K t``."""
        inner = self._solve_triangle(self._factor, half, lower=1, trans=1)
        return (t - self.centred(inner.astype(np.float64))) / self.damping

    def columns(self, rows: NDArray) -> NDArray:
        """Return the columns of ``L^-1 H K`` with the indices `rows`, shape (n, len(rows))."""
        columns = self.gram[rows].astype(self.dtype)
        columns -= self._means[rows].astype(self.dtype) @ self._sides.T.astype(self.dtype)
        return solve_triangular(
            self._factor, columns.T, lower=True, overwrite_b=True, check_finite=False
        )

    def block(self, rows: NDArray, others: NDArray, products: NDArray) -> NDArray:
        """Return the block (rows, others) of the kernel matrix ``F S^-1 F'`` at ``theta = 1/2``.

        `products` is ``A'B``, where A and B are the matrices that `columns` returns for `rows` and
        `others`.
        """
        kernel = self.gram[np.ix_(rows, others)]
        kernel -= products
        kernel /= self.damping
        return kernel

    def minimax(self, tol: float) -> Direction:
        """Minimise sx + sy over c, where ``w = F'c`` and ``w'(xm - ym) = 1``."""
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
        """Solve ``S F'c = F'target`` by conjugate gradients; return c and its `residual_length`.

        The iteration starts from the argument `c`. `accuracy` is the tolerance of
        `residual_length`, relative to the square root of ``w'S w``.
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
