"""Which route solves a kernel program of the max-margin ratio machine, and what follows a failure.

Every route ends in a certificate that is recomputed from the whole program. Where one does not
certify, the next is tried, and the best objective and the best bound found are what is reported.
"""

from __future__ import annotations

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Answer, best
from mmbench.machines.mmrm.generation import solve_generation
from mmbench.machines.mmrm.program import KernelProgram
from mmbench.machines.mmrm.reference import solve_reference
from mmbench.machines.mmrm.rounds import Guess, Rounds
from mmbench.machines.mmrm.whole import solve_whole

#: From so many rows in the first part on, the interior point is faster than simplex pivots.
INTERIOR_FROM = 250

#: The whole program is solved only up to so many rows: by an interior point, at once where so many
#: rows are near the guess's margin and they are most of it; by HiGHS as the last resort.
WHOLE_UP_TO, WHOLE_FROM = 2000, 100


def solve_kernel(
    program: KernelProgram, guess: Guess, *, solver: str = "auto", tol: float = 1e-6
) -> Answer:
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
    Answer
    """
    answers: list[Answer] = []
    routes = _routes(program, guess, solver)
    for tried, route in enumerate(routes, start=1):
        answer, hopeless = _solve(program, guess, route, tol)
        if answer.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return answer
        answers.append(answer)
        if hopeless and "whole" not in routes[tried:]:
            break
    return best(program, answers, tol)


def _routes(program: KernelProgram, guess: Guess, solver: str) -> list[str]:
    """Return the routes to try, in their order."""
    if solver != "auto":
        return [solver]
    size, first = len(program.rows), len(guess.first_rows(program))
    routes = ["generation"]
    # a part of an unbounded program gives an interior point nothing to converge to
    if program.surely_bounded:
        routes.insert(0 if first >= INTERIOR_FROM else 1, "interior")
        if size <= WHOLE_UP_TO:
            at_once = first >= WHOLE_FROM and 2 * first > size
            routes.insert(0 if at_once else 1, "whole")
    if size <= WHOLE_UP_TO:
        routes.append("reference")
    return routes


def _solve(program: KernelProgram, guess: Guess, route: str, tol: float) -> tuple[Answer, bool]:
    """Return a route's answer, and whether it shows that no other will do better."""
    if route == "reference":
        return solve_reference(program, tol=tol), False
    if route == "whole":
        answer = solve_whole(program, guess.margins, tol)
        # where coefficients need a price, no route does without
        return answer, "coefficient_price" in answer.facts and answer.status is Status.INACCURATE
    if route == "interior":
        rounds = Rounds(program, guess, tol)
        # where even the whole Newton equations were too badly conditioned, simplex does no better
        return rounds.solve(), rounds.careful
    first = guess.first_rows(program)
    return solve_generation(program, first, first, tol=tol), False
