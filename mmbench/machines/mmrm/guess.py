"""Where to start on a kernel program: what a neighbouring machine says of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.mmrm.program import Program

#: Rows of a smaller margin are near it.
NEAR_MARGIN = 1.05


@dataclass
class Iterate:
    """The variables of an interior point; all but b are positive vectors."""

    u: NDArray
    b: float
    xi: NDArray
    z: NDArray
    lam: NDArray
    s: NDArray

    def moved(self, step: Iterate, primal: float, dual: float) -> Iterate:
        """Return the point after a step of these lengths."""
        return Iterate(
            self.u + primal * step.u,
            self.b + primal * step.b,
            self.xi + primal * step.xi,
            self.z + primal * step.z,
            self.lam + dual * step.lam,
            self.s + dual * step.s,
        )


@dataclass(frozen=True)
class Guess:
    """Coefficients of a neighbouring machine and its margins.

    Attributes
    ----------
    u : ndarray of shape (n_columns,)
        Not negative; only its shape matters.
    margins : ndarray of shape (n_rows,)
        y f(x).
    """

    u: NDArray
    margins: NDArray

    def first_rows(self, program: Program) -> NDArray:
        """Return the rows that matter to the neighbour: near its margin or with a coefficient."""
        rows = program.rows
        return rows[(self.margins[rows] < NEAR_MARGIN) | (self.u[rows] > 0)]


def first_iterate(u: NDArray, margins: NDArray, lam: NDArray, c: NDArray) -> Iterate:
    """Return a positive iterate with the coefficients and margins of a neighbour.

    Parameters
    ----------
    u, c : ndarray of shape (n_columns,)
        The neighbour's coefficients, and their costs.
    margins, lam : ndarray of shape (n_rows,)
        The neighbour's margins, and multipliers below the rows' costs.
    """
    return Iterate(
        u=u + 0.1 * (float(u[u > 0].mean()) if np.any(u > 0) else 1.0),
        b=0.0,
        xi=np.maximum(1 - margins, 0.01),
        z=np.maximum(margins - 1, 0.3),
        lam=lam,
        s=np.full(len(c), 0.01 * np.abs(c).mean()),
    )
