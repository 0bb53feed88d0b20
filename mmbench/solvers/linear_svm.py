"""The linear SVM's dual in the space of its features: for many rows of few features.

    min over u   1/2 ||Z'u||^2 - sum_i y_i u_i    subject to   sum_i u_i = 0,  0 <= y_i u_i <= C

Pairwise steps need thousands of passes and an n x n matrix for what only as many free rows as
features settle. From a neighbouring solution the free rows are guessed (`active_set`); without one
an interior point finds them, at one product ``Z' diag Z`` an iteration. Either way the optimality
conditions are tested as those of pairwise steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.interior_point import InteriorPoint
from mmbench.solvers.svm_dual.active_set import settle
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution

#: Relative gap to which the interior point goes.
GAP_TOLERANCE = 1e-10

#: A multiplier so near to a bound, as a share of C, is guessed to be there; as near as that, it is.
GUESS_SHARE, ROUNDING_SHARE = 1e-4, 2e-6


def solve_near(
    rows: NDArray,
    y: NDArray,
    C: float,
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
    C : float
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
    rows: NDArray, y: NDArray, C: float, tol: float = 1e-5
) -> PiecewiseSolution | None:
    """Solve by an interior point, or return None where rounding leaves it short of the test.

    Parameters
    ----------
    rows, y, C, tol
        As for `solve_near`.

    Returns
    -------
    PiecewiseSolution or None
        Status ``optimal``.
    """
    point = InteriorPoint(rows, y, C)
    point.run(GAP_TOLERANCE)
    u = y * point.at["a"]
    found = _settled(rows, y, C, _snapped(u, y, C, GUESS_SHARE), tol, point.iterations)
    if found is not None:
        return found
    # Equal rows, or many on one hyperplane, share their multipliers in more than one way.
    u = _dual(rows, y, C).feasible(_snapped(u, y, C, ROUNDING_SHARE))
    return _tested(rows, y, C, u, tol, point.iterations)


def _snapped(u: NDArray, y: NDArray, C: float, share: float) -> NDArray:
    """Return multipliers with those at a bound that are so near to it, as a share of C."""
    size = y * u / C
    return C * y * np.where(size < share, 0.0, np.where(size > 1.0 - share, 1.0, size))


def _settled(
    rows: NDArray,
    y: NDArray,
    C: float,
    guess: NDArray,
    tol: float,
    iterations: int,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    u = settle(rows, np.ones(rows.shape[1]), y, C, guess, offset=offset)
    return None if u is None else _tested(rows, y, C, u, tol, iterations + 1, offset)


def _tested(
    rows: NDArray,
    y: NDArray,
    C: float,
    u: NDArray,
    tol: float,
    iterations: int,
    offset: NDArray | float = 0.0,
) -> PiecewiseSolution | None:
    """Return the solution if no two rows disagree on b by more than `tol`, else None."""
    decision, size = rows @ (rows.T @ u), y * u
    miss = y - offset - decision
    below, above = size < C, size > 0
    grows, shrinks = np.where(y > 0, below, above), np.where(y > 0, above, below)
    if not miss[grows].max() - miss[shrinks].min() <= tol:
        return None
    free = below & above
    ends = miss[grows].max() + miss[shrinks].min()
    bias = float(miss[free].mean() if free.any() else 0.5 * ends)
    return _dual(rows, y, C, offset).solution(u, decision, bias, iterations, Status.OPTIMAL)


def _dual(rows: NDArray, y: NDArray, C: float, offset: NDArray | float = 0.0) -> PiecewiseQP:
    """Return the costs and bounds of the dual; the rows stand in for the Gram matrix."""
    ends = np.sort(np.outer(C * y, [0.0, 1.0]), axis=1)
    return PiecewiseQP(rows, ends, (offset - y)[:, None])
