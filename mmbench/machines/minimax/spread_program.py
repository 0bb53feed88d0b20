"""Linear rows, a slack a row, and few spreads: the cone programs of the M4 and the MPM.

    min over x, xi   c'x + sum_i price_i xi_i
    subject to       R x + xi >= h,  xi >= 0          (xi_i = 0 where the price is infinite)
                     ||D_j x[:k]|| <= x[s_j]          for a few diagonal D_j
                     q'x = 1                          (where there is a q)

The two spreads of the M4 stand in all its rows, so that two cones take the place of one a row. With
multipliers a of the rows and (z_j, zeta_j) of the cones the dual is

    max   h'a + lambda   subject to   c - R'a - sum_j (zeta_j e_{s_j} + D_j z_j) - lambda q = 0,
    0 <= a <= price,  ||z_j|| <= zeta_j
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status


@dataclass(frozen=True)
class SpreadProgram:
    """One program of the class above.

    Parameters
    ----------
    cost : ndarray of shape (n_columns,)
        c.
    rows : ndarray of shape (n_rows, n_columns)
        R.
    sides : ndarray of shape (n_rows,)
        h.
    price : ndarray of shape (n_rows,)
        Infinite where a row admits no slack.
    roots : tuple of ndarray of shape (k,)
        Diagonals of the D_j.
    scales : tuple of int
        The columns s_j, none of them among the first k.
    equation : ndarray of shape (n_columns,) or None
        q.
    """

    cost: NDArray
    rows: NDArray
    sides: NDArray
    price: NDArray
    roots: tuple[NDArray, ...]
    scales: tuple[int, ...]
    equation: NDArray | None = None

    @property
    def priced(self) -> NDArray:
        """Which rows admit slack."""
        return np.isfinite(self.price)

    def value(self, x: NDArray) -> float:
        """Return the objective at `x`, with the smallest slacks."""
        slack = np.maximum(0.0, self.sides - self.rows @ x)[self.priced]
        return float(self.cost @ x + self.price[self.priced] @ slack)

    def violation(self, x: NDArray) -> float:
        """Return the largest violation of a constraint that slack does not pay for."""
        worst = float((self.sides - self.rows @ x)[~self.priced].max(initial=0.0))
        for root, scale in zip(self.roots, self.scales, strict=True):
            worst = max(worst, float(np.linalg.norm(root * x[: len(root)]) - x[scale]))
        if self.equation is not None:
            worst = max(worst, abs(float(self.equation @ x) - 1.0))
        return worst


@dataclass(frozen=True)
class SpreadSolution:
    """What a solver of a `SpreadProgram` returns.

    Attributes
    ----------
    x : ndarray of shape (n_columns,)
    multipliers : ndarray of shape (n_rows,)
        a.
    price_of_equation : float
        lambda; 0 where there is no equation.
    iterations : int
    status : Status
    """

    x: NDArray
    multipliers: NDArray
    price_of_equation: float
    iterations: int
    status: Status
