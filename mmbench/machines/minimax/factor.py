"""Class spreads over rows in any coordinates, to the accuracy of a search.

With rows F, class covariances Sx and Sy and their ridges, every machine of the family asks for

    S = (Sx + rx I)/theta + (Sy + ry I)/(1 - theta),     sx + sy = min over theta of sqrt(w'S w)

Coordinates in which both covariances are diagonal serve every theta, but cost as much as ten
Cholesky factors of S. The minimum is flat: at a theta whose log-odds are off by delta the root is
too large by a share of ``delta^2 theta (1 - theta)/2``, at most ``delta^2/8``. To the accuracy that
ranks the points of a grid one or two theta do for a ridge, whatever the penalty C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve, cholesky, solve_triangular

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.direction import Direction
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


class FactorMetric:
    """``S^-1`` at one theta, by a Cholesky factor."""

    def __init__(self, problem: SpreadFactor, theta: float):
        self.problem, self.theta = problem, theta
        both, (ridge_x, ridge_y) = problem.covariances, problem.ridges
        diagonal = (both.diagonal() + ridge_x) / theta
        diagonal += (problem.variances + ridge_y) / (1.0 - theta)
        # Of the sum with the transpose the lower triangle is meant; no second array is made.
        matrix = np.multiply(both.T, theta / (1.0 - theta), order="F")
        matrix += both
        matrix /= theta
        matrix[np.diag_indices_from(matrix)] = diagonal
        self.factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, t: NDArray) -> NDArray:
        """Return ``S^-1 t``."""
        return cho_solve((self.factor, True), t, check_finite=False)

    def fits(self, spreads: NDArray, tol: float) -> bool:
        """Whether theta is near that of (sx, sy): its own makes them a share of tol/4 less."""
        odds = spreads[0] * (1.0 - self.theta) / (spreads[1] * self.theta)
        return bool(np.log(odds) ** 2 <= 2.0 * tol)

    def kernel(self) -> NDArray:
        """Return ``F S^-1 F'`` in single precision, shape (n, n)."""
        half = solve_triangular(
            self.factor.astype(np.float32),
            self.problem.rows.astype(np.float32, order="C").T,
            lower=True,
            overwrite_b=True,
            check_finite=False,
        )
        return half.T @ half


def minimax_factor(
    problem: SpreadFactor, theta: float, tol: float, max_rounds: int = 20
) -> tuple[Direction, FactorMetric]:
    """Minimise the total spread with ``w'(xm - ym) = 1``, as `minimax_direction` does.

    Parameters
    ----------
    problem : SpreadFactor
        Its class means are not equal.
    theta : float
        The first theta.
    tol : float
        Relative gap of the total spread.
    max_rounds : int, default=20

    Returns
    -------
    Direction
    FactorMetric
        At the last theta.
    """
    target, secant = problem.delta, Secant()
    for rounds in range(1, max_rounds + 1):
        metric = FactorMetric(problem, theta)
        w = metric.solve(target)
        spread_x, spread_y = (float(spread) for spread in problem.spreads(w, problem.rows @ w))
        bound = 1.0 / max(spread_x / theta, spread_y / (1.0 - theta))
        found = Direction.along(w, target, (spread_x, spread_y), bound, rounds)
        if found.closed(tol) or time_is_up():
            break
        theta = secant.next_share(theta, spread_x / (spread_x + spread_y))
    return found, metric
