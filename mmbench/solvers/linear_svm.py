"""The linear SVM's dual in the space of its features: for many rows of few features.

    min over u   1/2 ||Z'u||^2 - sum_i y_i u_i    subject to   sum_i u_i = 0,  0 <= y_i u_i <= C

Pairwise steps need thousands of passes and an n x n matrix for what only as many free rows as
features settle. From a neighbouring solution the free rows are guessed (`active_set`); without one
an interior point finds them, at one product ``Z' diag Z`` an iteration. Either way the optimality
conditions are tested as those of pairwise steps.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.interior_point import InteriorPoint, solve_growing
from mmbench.solvers.svm_dual.active_set import settle
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution

#: Relative gap to which the interior point goes.
GAP_TOLERANCE = 1e-10


def solve_near(
    rows: NDArray,
    y: NDArray,
    C: float | NDArray,
    start: NDArray,
    tol: float = 1e-5,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    """Solve from a neighbouring solution, or return None where its free rows do not settle.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Z.
    y : ndarray of shape (n,)
        -1.0 or +1.0; both occur.
    C : float or ndarray of shape (n,)
    start : ndarray of shape (n,)
        u; only which bounds it touches matters.
    tol : float, default=1e-5
        Tolerance of the KKT conditions (libsvm's eps).
    offset : ndarray of shape (n,), optional
        Decisions to which those of the solution are added: ``y - offset`` in place of y in f.

    Returns
    -------
    PiecewiseSolution or None
        Status ``optimal``.
    """
    return _settled(rows, y, C, start, tol, 0, offset) if start.any() else None


def solve_inside(
    rows: NDArray,
    y: NDArray,
    C: float | NDArray,
    tol: float = 1e-5,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    """Solve by an interior point, or return None where rounding leaves it short of the test.

    Parameters
    ----------
    rows, y, C, tol, offset
        As for `solve_near`.

    Returns
    -------
    PiecewiseSolution or None
        Status ``optimal``.
    """
    point = solve_growing(partial(InteriorPoint, rows, y, offset=offset), C, GAP_TOLERANCE)
    a, rest = point.at["a"], point.at["rest"]
    # of the two factors of a product that vanishes, the smaller one in its own unit is zero
    below, above = a < point.at["surplus"] * a.max(), rest < point.at["slack"] * C
    guess = y * np.where(below, 0.0, np.where(above, C, a))
    found = _settled(rows, y, C, guess, tol, point.iterations, offset)
    return found or _shared(rows, y, C, guess, tol, point.iterations, offset)


def _settled(
    rows: NDArray,
    y: NDArray,
    C: float | NDArray,
    guess: NDArray,
    tol: float,
    iterations: int,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    u = settle(rows, np.ones(rows.shape[1]), y, C, guess, offset=offset)
    return None if u is None else _tested(rows, y, C, u, tol, iterations + 1, offset)


def _shared(
    rows: NDArray,
    y: NDArray,
    C: float | NDArray,
    guess: NDArray,
    tol: float,
    iterations: int,
    offset: NDArray | float,
) -> PiecewiseSolution | None:
    """Solve where more rows than features are free: their ``y f = 1`` fix w and b, not their u.

    Equal rows, or many on one hyperplane, share their multipliers in more than one way; the guess
    is changed as little as these equations ask.
    """
    free = np.flatnonzero((y * guess > 0) & (y * guess < C))
    if len(free) <= rows.shape[1]:
        return None
    part = np.column_stack([rows[free], np.ones(len(free))])
    missing = (y - offset - rows @ (rows.T @ guess))[free]
    move = np.linalg.lstsq(part, missing)[0]  # of w, and b
    move[-1] = -guess.sum()
    u = guess.copy()
    u[free] += np.linalg.lstsq(part.T, move)[0]
    return _tested(rows, y, C, u, tol, iterations, offset)


def _tested(
    rows: NDArray,
    y: NDArray,
    C: float | NDArray,
    u: NDArray,
    tol: float,
    iterations: int,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    """Return the solution if no two rows disagree on b by more than `tol`, else None."""
    dual = _dual(rows, y, C, offset)
    u = dual.feasible(u)
    decision, size = rows @ (rows.T @ u), y * u
    miss = y - offset - decision
    below, above = size < C, size > 0
    grows, shrinks = np.where(y > 0, below, above), np.where(y > 0, above, below)
    if not miss[grows].max() - miss[shrinks].min() <= tol:
        return None
    free = below & above
    ends = miss[grows].max() + miss[shrinks].min()
    bias = float(miss[free].mean() if free.any() else 0.5 * ends)
    return dual.solution(u, decision, bias, iterations, Status.OPTIMAL)


def _dual(rows: NDArray, y: NDArray, C: Any, offset: NDArray | float = 0.0) -> PiecewiseQP:
    """Return the costs and bounds of the dual; the rows stand in for the Gram matrix."""
    ends = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1)
    return PiecewiseQP(rows, ends, (offset - y)[:, None])
