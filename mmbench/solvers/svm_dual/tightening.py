"""A `PiecewiseQP` solved until the relative duality gap is small, not only the violation of a row.

What each row misses of its optimality condition adds to the gap, times the slope of its loss: with
a large C a tolerance that is small for every decision leaves a large gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo

#: Factors of the tolerance of the KKT conditions that are tried one after the other.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

#: Factor from which on the best multiple of w and b is taken. Down to it more accurate multipliers
#: close the gap, which improve the predictions too.
RESCALING_FACTOR = 8.0**-3

#: A tighter tolerance that leaves more than this share of the gap has met the rounding errors.
LEAST_PROGRESS = 0.5

Start = PiecewiseSolution | NDArray | None


def solve_to_gap(
    problem: PiecewiseQP,
    tol: float,
    gap_tolerance: float,
    start: Start = None,
    solve: Callable[[PiecewiseQP, Start, float], PiecewiseSolution] = solve_smo,
) -> PiecewiseSolution:
    """Solve to a tolerance of the KKT conditions, and to tighter ones until the gap is small.

    Parameters
    ----------
    problem : PiecewiseQP
    tol : float
        Tolerance of the KKT conditions, in units of f.
    gap_tolerance : float
        Largest relative duality gap.
    start : PiecewiseSolution or ndarray of shape (n,), optional
        A neighbouring solution, or its u; it need not be feasible.
    solve : callable, default=solve_smo
        Takes the problem, a start and a tolerance.

    Returns
    -------
    PiecewiseSolution
        The one with the smallest gap; its iterations are those of all.
    """
    best, iterations = None, 0
    for factor in TOLERANCE_FACTORS:
        start = found = solve(problem, start, factor * tol)
        iterations += found.iterations
        if found.gap > gap_tolerance and factor <= RESCALING_FACTOR:
            found = problem.rescaled(found)
        stuck = best is not None and _width(found) > LEAST_PROGRESS * _width(best)
        best = found if best is None or found.gap < best.gap else best
        if best.gap <= gap_tolerance or stuck or found.status is not Status.OPTIMAL:
            break
    assert best is not None
    return replace(best, iterations=iterations)


def _width(found: PiecewiseSolution) -> float:
    """Return the absolute gap: relative ones are all near 1 while the value is far off."""
    return found.value - found.bound
