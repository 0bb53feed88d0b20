"""Which route solves a kernel program of the max-margin ratio machine, and what follows a failure.

Every route ends in a certificate that is recomputed from the whole program. Where one does not
certify, the next is tried, and the best objective and the best bound found are what is reported.
"""

from collections.abc import Iterator

import numpy as np

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.search_space import SMALL_PART_ROWS
from mmbench.machines.base.threshold import best_bias
from mmbench.machines.mmrm.certificate import Solution, best, certify, failed
from mmbench.machines.mmrm.generation import solve_generation
from mmbench.machines.mmrm.guess import Guess
from mmbench.machines.mmrm.program import KernelProgram
from mmbench.machines.mmrm.reference import solve_reference
from mmbench.machines.mmrm.rounds import Rounds
from mmbench.machines.mmrm.whole import singular, solve_whole

#: From so many rows in the first part on, the interior point is faster than simplex pivots.
MIN_INTERIOR_ROWS = 250


def solve_kernel(
    program: KernelProgram, guess: Guess, *, solver: str = "auto", tol: float = 1e-6
) -> Solution:
    """Solve program (30).

    Parameters
    ----------
    program : Program
    guess : Guess
        A neighbouring machine; its support and margins say where to begin.
    solver : {"auto", "interior", "generation", "reference"}, default="auto"
        "auto" goes by the number of rows near the guess's margin, and tries another route where
        one does not certify.
    tol : float, default=1e-6
        For the certificate.

    Returns
    -------
    Solution
    """
    if time_is_up():  # in the training of the guess
        return _from_guess(program, guess, tol)
    solutions: list[Solution] = []
    for route in _routes(program, guess, solver):
        solution = _solve(program, guess, route, tol)
        if solution.value < -tol:  # of (30) itself: multiples of the solution have no lower end
            return failed(program, Status.UNBOUNDED, route, solution.iterations)
        if solution.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return solution
        solutions.append(solution)
        if time_is_up():
            break
    return best(program, solutions, tol)


def _from_guess(program: KernelProgram, guess: Guess, tol: float) -> Solution:
    """Return what a guess is worth, and what the multipliers 1/n_class prove."""
    u = program.scale * guess.u
    b = best_bias(program.y * program.forward(u), program.y)
    lam = np.minimum(program.cost, program.class_shares)
    return certify(program, u, b, lam, tol, route="guess")


def _routes(program: KernelProgram, guess: Guess, solver: str) -> Iterator[str]:
    """Yield the routes to try, in their order."""
    few = len(program.rows) <= SMALL_PART_ROWS
    if solver != "auto":
        yield solver
        if solver == "interior" and _solved_whole(program):
            yield "whole"
        return
    rows = guess.first_rows(program)
    if not program.surely_bounded:  # simplex tells whether it is
        yield from ["generation", *(["whole"] if _solved_whole(program) else [])]
        yield from ["reference"] if few else []
        return
    large = len(rows) >= MIN_INTERIOR_ROWS
    # a part has no advantage on inseparable data, and simplex none where coefficients cancel
    at_once = 2 * len(rows) > len(program.rows) if large else singular(program, rows)
    first, second = ("interior", "generation") if large else ("generation", "interior")
    if not at_once:
        yield first
    if _solved_whole(program):
        yield "whole"
    if at_once:
        yield first
    yield second


def _solved_whole(program: KernelProgram) -> bool:
    return len(program.rows) <= SMALL_PART_ROWS or program.factor is not None


def _solve(program: KernelProgram, guess: Guess, route: str, tol: float) -> Solution:
    if route == "reference":
        return solve_reference(program, tol=tol)
    if route == "whole":
        return solve_whole(program, guess, tol)
    if route == "interior":
        return Rounds(program, guess, tol).solve()
    first = guess.first_rows(program)
    return solve_generation(program, first, first, tol=tol)
