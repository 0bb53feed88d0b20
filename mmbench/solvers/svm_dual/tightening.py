"""A `PiecewiseQP` solved until the relative duality gap is small, not only the violation of a row.

What each row misses of its optimality condition adds to the gap, times the slope of its loss: with
a large C a tolerance that is small for every decision leaves a large gap. Three means close it, the
second and the third where the first has met rounding errors:

1. a tighter tolerance;
2. the best multiple of w and b: a margin that is missed by a rounding error is met by a w that is
   larger by as little;
3. where decisions have a bound, which that would exceed, a w that keeps a distance from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo

#: Factors of the tolerance of the KKT conditions that are tried one after the other.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

#: Factor from which on the best multiple of w and b is taken. Down to it more accurate multipliers
#: close the gap, which improve the predictions too.
RESCALING_FACTOR = 8.0**-3

#: Share of a bound on the decisions by which they keep away from it in the last attempt. Its effect
#: on the objective is of the same order.
INWARD_SHARE = 1e-6

Start = PiecewiseSolution | NDArray | None


def solve_to_gap(
    problem: PiecewiseQP,
    tol: float,
    gap_tolerance: float,
    start: Start = None,
    solve: Callable[[PiecewiseQP, Start, float], PiecewiseSolution] = solve_smo,
    factors: Sequence[float] = TOLERANCE_FACTORS,
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
    factors : sequence of float, optional
        Factors of `tol`, descending from 1.

    Returns
    -------
    PiecewiseSolution
        The one with the smallest gap; its iterations are those of all.
    """
    found = best = solve(problem, start, tol)
    iterations = found.iterations
    for factor in factors[1:]:
        if best.gap <= gap_tolerance or found.status is not Status.OPTIMAL:
            break
        found = solve(problem, found, factor * tol)
        iterations += found.iterations
        scaled = problem.rescaled(found) if factor <= RESCALING_FACTOR else found
        best = _better(best, found, scaled)
    if best.gap > gap_tolerance:
        best = _better(best, problem.rescaled(best))
    if best.gap > gap_tolerance and np.isinf(problem.knots).any():
        found = solve(problem.inward(INWARD_SHARE), best, factors[-1] * tol)
        iterations += found.iterations
        moved = problem.solution(found.u, found.decision, found.bias, 0, found.status)
        best = _better(best, problem.rescaled(moved))
    return replace(best, iterations=iterations)


def _better(*solutions: PiecewiseSolution) -> PiecewiseSolution:
    """Return the solution with the smallest relative gap."""
    return min(solutions, key=lambda each: each.gap)
