"""Class spreads over rows in any coordinates, to the accuracy of a search.

With rows F, class covariances Sx and Sy and their ridges, every machine of the family asks for

    S = (Sx + rx I)/theta + (Sy + ry I)/(1 - theta),     sx + sy = min over theta of sqrt(w'S w)

Coordinates in which both covariances are diagonal serve every theta, but cost as much as ten
Cholesky factors of S. One factor of S is a preconditioner at every other theta: the condition
number that conjugate gradients see is at most the ratio of the two thetas' odds.

The minimum is flat: at a theta whose log-odds are off by delta the root is too large by a share of
``delta^2 theta (1 - theta)/2``, at most ``delta^2/8``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.direction import Direction
from mmbench.machines.minimax.gram import COARSE, FINER, MAX_STEPS, fits_single
from mmbench.machines.minimax.line_search import Secant


@dataclass(frozen=True)
class SpreadFactor:
    """Rows of two classes and their covariances."""

    #: F, centred. Shape (n, k).
    rows: NDArray
    #: -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: That of the positive class, without ridge, in the lower triangle and on the diagonal, and
    #: that of the negative class in the upper triangle. Shape (k, k).
    covariances: NDArray
    #: Diagonal of the covariance of the negative class. Shape (k,).
    variances: NDArray
    #: (rx, ry), absolute and positive.
    ridges: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, rows: NDArray, y: NDArray) -> SpreadFactor:
        """Return the covariances of some rows; their ridges are those of `first`."""
        k = rows.shape[1]
        covariances, variances = np.zeros((k, k), order="F"), np.zeros(k)
        for side, lower in ((y < 0, 0), (y > 0, 1)):
            variances = covariances.diagonal().copy()  # in the end those of the first class
            covariances[np.diag_indices(k)] = 0.0
            part = rows[side]
            part -= part.mean(axis=0)
            covariances = blas.dsyrk(
                1.0 / len(part), part.T, beta=1.0, c=covariances, lower=lower, overwrite_c=1
            )
        return cls(rows, y, covariances, variances)

    def first(self, k: int, ridges: tuple[float, float]) -> SpreadFactor:
        """Return the problem in the first k coordinates, with ridges."""
        return SpreadFactor(
            self.rows[:, :k], self.y, self.covariances[:k, :k], self.variances[:k], ridges
        )

    @property
    def delta(self) -> NDArray:
        """Difference of the class means."""
        return self.rows[self.y > 0].mean(axis=0) - self.rows[self.y < 0].mean(axis=0)

    def spreads(self, w: NDArray, decision: NDArray) -> NDArray:
        """Return (sx, sy), given ``decision = Fw`` up to a constant."""
        squares = [decision[side].var() for side in (self.y > 0, self.y < 0)]
        return np.sqrt(np.add(squares, np.multiply(self.ridges, w @ w)))

    def product(self, w: NDArray, decision: NDArray, theta: float) -> NDArray:
        """Return ``S w`` at a theta, given ``decision = Fw``."""
        weighed = np.empty_like(decision)
        for side, share in ((self.y > 0, theta), (self.y < 0, 1.0 - theta)):
            part = decision[side]
            weighed[side] = (part - part.mean()) / (share * len(part))
        ridge_x, ridge_y = self.ridges
        return weighed @ self.rows + (ridge_x / theta + ridge_y / (1.0 - theta)) * w


class FactorMetric:
    """``S^-1`` at a theta, by a Cholesky factor, and at others by conjugate gradients.

    Where the ridge is not small beside the covariances the factor is one of float32 values, which
    takes half the time and memory.
    """

    def __init__(self, problem: SpreadFactor, theta: float):
        self.problem, self.theta = problem, theta
        both, (ridge_x, ridge_y) = problem.covariances, problem.ridges
        diagonal = (both.diagonal() + ridge_x) / theta
        diagonal += (problem.variances + ridge_y) / (1.0 - theta)
        trace = float((both.diagonal() + problem.variances).sum())
        dtype = np.float32 if fits_single(min(problem.ridges), trace) else np.float64
        # Of the sum with the transpose the lower triangle is meant; no second array is made.
        matrix = np.empty(both.shape, dtype, order="F")
        np.multiply(both.T, theta / (1.0 - theta), out=matrix, casting="same_kind")
        matrix += both
        matrix /= theta
        matrix[np.diag_indices_from(matrix)] = diagonal
        self.factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        (self._solve_triangle,) = blas.get_blas_funcs(("trsv",), (self.factor,))

    def solve(
        self, t: NDArray, theta: float, accuracy: float, start: NDArray | None = None
    ) -> tuple[NDArray, NDArray, float]:
        """Solve ``S w = t`` at a theta.

        Parameters
        ----------
        t : ndarray of shape (k,)
        theta : float
        accuracy : float
            Length of what is missing at which to stop, in units of ``sqrt(w'S w)``.
        start : ndarray of shape (k,), optional
            A guess.

        Returns
        -------
        w : ndarray of shape (k,)
        decision : ndarray of shape (n,)
            ``Fw``.
        missing : float
            A length, at least, of p and q with ``t - S w = Sx^{1/2}p + Sy^{1/2}q``: half of it to
            each, and no covariance is below its ridge.
        """
        problem = self.problem
        rows, unit = problem.rows, 0.5 / np.sqrt(min(problem.ridges))

        def product(v: NDArray) -> NDArray:
            return problem.product(v, rows @ v, theta)

        w = self._precondition(t)
        least = accuracy * float(np.sqrt(t @ w)) / unit
        w, _ = cg(
            LinearOperator(
                (len(t),) * 2, lambda v: problem.product(v, rows @ v, theta), dtype=float
            ),
            t,
            x0=w if start is None else start,
            rtol=0.0,
            atol=least,
            maxiter=MAX_STEPS,
            M=LinearOperator((len(t),) * 2, self._precondition, dtype=float),
        )
        decision = rows @ w
        rest = t - problem.product(w, decision, theta)
        return w, decision, float(unit * np.linalg.norm(rest))

    def _precondition(self, t: NDArray) -> NDArray:
        half = self._solve_triangle(self.factor, t, lower=1)
        return self._solve_triangle(self.factor, half, lower=1, trans=1).astype(float)

    def kernel(self) -> NDArray:
        """Return ``F S^-1 F'`` at the theta of the factor, in single precision, shape (n, n)."""
        half = solve_triangular(
            self.factor.astype(np.float32, copy=False),
            self.problem.rows.astype(np.float32, order="C").T,
            lower=True,
            overwrite_b=True,
            check_finite=False,
        )
        return half.T @ half


def minimax_factor(
    problem: SpreadFactor, theta: float, tol: float, max_rounds: int = 20
) -> tuple[Direction, FactorMetric, float]:
    """Minimise the total spread with ``w'(xm - ym) = 1``, as `minimax_direction` does.

    Parameters
    ----------
    problem : SpreadFactor
        Its class means are not equal.
    theta : float
        The first theta, that of the factor.
    tol : float
        Relative gap of the total spread.
    max_rounds : int, default=20

    Returns
    -------
    Direction
    FactorMetric
    float
        The last theta.
    """
    target, secant, metric = problem.delta, Secant(), FactorMetric(problem, theta)
    w, accuracy = None, COARSE
    for rounds in range(1, max_rounds + 1):
        w, decision, missing = metric.solve(target, theta, max(accuracy, 0.1 * tol), w)
        spread_x, spread_y = (float(spread) for spread in problem.spreads(w, decision))
        bound = 1.0 / (max(spread_x / theta, spread_y / (1.0 - theta)) + missing)
        found = Direction.along(w, target, (spread_x, spread_y), bound, rounds)
        if found.closed(tol) or time_is_up():
            break
        theta = secant.next_share(theta, spread_x / (spread_x + spread_y))
        accuracy = FINER * found.gap
    return found, metric, theta
