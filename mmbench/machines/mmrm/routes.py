"""Which route solves a kernel program of the max-margin ratio machine, and what follows a failure.

Every route ends in a certificate that is recomputed from the whole program. Where one does not
certify, the next is tried, and the best objective and the best bound found are what is reported.
"""

from __future__ import annotations

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best
from mmbench.machines.mmrm.generation import solve_generation
from mmbench.machines.mmrm.program import KernelProgram
from mmbench.machines.mmrm.reference import solve_reference
from mmbench.machines.mmrm.rounds import Guess, Rounds
from mmbench.machines.mmrm.whole import solve_whole

#: From so many rows in the first part on, the interior point is faster than simplex pivots.
MIN_INTERIOR_ROWS = 250

#: The whole program is solved only up to so many rows.
MAX_WHOLE_ROWS = 2000

#: The whole program is solved at once from so many rows near the guess's margin on, if they are
#: most of it.
MIN_WHOLE_ROWS = 100


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
    solutions: list[Solution] = []
    routes = _routes(program, guess, solver)
    for tried, route in enumerate(routes, start=1):
        solution, hopeless = _solve(program, guess, route, tol)
        if solution.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return solution
        solutions.append(solution)
        if hopeless and "whole" not in routes[tried:]:
            break
    return best(program, solutions, tol)


def _routes(program: KernelProgram, guess: Guess, solver: str) -> list[str]:
    """Return the routes to try, in their order."""
    if solver != "auto":
        return [solver]
    size, first = len(program.rows), len(guess.first_rows(program))
    routes = ["generation"]
    # a part of an unbounded program gives an interior point nothing to converge to
    if program.surely_bounded:
        routes.insert(0 if first >= MIN_INTERIOR_ROWS else 1, "interior")
        if size <= MAX_WHOLE_ROWS:
            at_once = first >= MIN_WHOLE_ROWS and 2 * first > size
            routes.insert(0 if at_once else 1, "whole")
    if size <= MAX_WHOLE_ROWS:
        routes.append("reference")
    return routes


def _solve(program: KernelProgram, guess: Guess, route: str, tol: float) -> tuple[Solution, bool]:
    """Return a route's solution, and whether it shows that no other will do better."""
    if route == "reference":
        return solve_reference(program, tol=tol), False
    if route == "whole":
        solution = solve_whole(program, guess.margins, tol)
        # where coefficients need a price, no route does without
        return (
            solution,
            "coefficient_price" in solution.facts and solution.status is Status.INACCURATE,
        )
    if route == "interior":
        rounds = Rounds(program, guess, tol)
        # where even the whole Newton equations were too badly conditioned, simplex does no better
        return rounds.solve(), rounds.ill_conditioned
    first = guess.first_rows(program)
    return solve_generation(program, first, first, tol=tol), False
