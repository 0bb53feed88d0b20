"""Newton steps among the rows inside a piece: what pairwise steps are worst at.

Where the Gram matrix has low rank (a linear kernel and a large C) or its spectrum falls fast, pairs
need millions of tiny steps to settle a few dozen rows. While those stay inside their pieces the
problem is quadratic with one equation, solved by one factorisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.solvers.piecewise import PiecewiseQP

#: Cost of a step besides its arithmetic, in the unit of `step_cost`.
OVERHEAD = 2e5

#: A series of steps starts when this many can be afforded: each but the last ends at a knot, and a
#: series that is broken off gains little.
SERIES = 20


def step_cost(n_inside: int, n: int) -> float:
    """Return what a Newton step costs, counted in kernel values that a pairwise step reads."""
    return n_inside**3 / 24 + n_inside * n + OVERHEAD


def newton_steps(problem: PiecewiseQP, u: NDArray, budget: float) -> tuple[NDArray, float]:
    """Take Newton steps until one ends between knots, if they are affordable.

    Parameters
    ----------
    problem : PiecewiseQP
    u : ndarray of shape (n,)
        Feasible.
    budget : float
        In the unit of `step_cost`.

    Returns
    -------
    u : ndarray of shape (n,)
        Feasible, and no worse.
    budget : float
        What is left of it.
    """
    reserve = SERIES
    at_knot = True
    while at_knot:
        inside = (problem.knots[:, :-1] < u[:, None]) & (u[:, None] < problem.knots[:, 1:])
        rows = np.flatnonzero(inside.any(axis=1))
        cost = step_cost(len(rows), len(u))
        if len(rows) < 2 or reserve * cost > budget:
            break
        reserve = 1
        budget -= cost
        moved, at_knot = _step(problem, u, rows, inside[rows].argmax(axis=1))
        u = problem.feasible(moved)
    return u, budget


def _step(problem: PiecewiseQP, u: NDArray, rows: NDArray, piece: NDArray) -> tuple[NDArray, bool]:
    """Minimise over ``u[rows]`` up to the first knot; return u and whether one was met."""
    square = problem.gram[np.ix_(rows, rows)].astype(float)
    support = np.flatnonzero(u)
    slope = problem.gram[np.ix_(rows, support)] @ u[support] + problem.slopes[rows, piece]
    direction = _direction(square, slope, np.finfo(problem.gram.dtype).eps)
    curvature, descent = direction @ square @ direction, -slope @ direction
    if not descent > 0:
        return u, False
    low, high = problem.knots[rows, piece], problem.knots[rows, piece + 1]
    ends = np.where(direction > 0, high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction == 0, np.inf, (ends - u[rows]) / direction)
        full = np.divide(descent, curvature)
    first = room.argmin()
    at_knot = not (0 < full < room[first])
    moved = u.copy()
    moved[rows] = np.clip(u[rows] + (room[first] if at_knot else full) * direction, low, high)
    if at_knot:
        moved[rows[first]] = ends[first]
    return moved, at_knot


def _direction(square: NDArray, slope: NDArray, eps: float) -> NDArray:
    """Return the Newton direction with sum zero; zero where the matrix cannot be factored.

    The ridge keeps a singular matrix factorable. Along its null space the direction is then
    steep and long, and ends at a knot, as it should.
    """
    square = square.copy()
    square[np.diag_indices_from(square)] += eps ** (2 / 3) * np.trace(square) / len(square)
    try:
        factor = cho_factor(square, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return np.zeros(len(slope))
    solved = cho_solve(factor, np.column_stack([slope, np.ones_like(slope)]), check_finite=False)
    b = -solved[:, 0].sum() / solved[:, 1].sum()
    return -(solved[:, 0] + b * solved[:, 1])
