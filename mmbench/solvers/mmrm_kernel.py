"""Which route solves a kernel program of the max-margin ratio machine, and what follows a failure.

Every route ends in a certificate that is recomputed from the whole program. Where one does not
certify, the next is tried, and the best objective and the best bound found are what is reported.
"""

from __future__ import annotations

from mmbench.solvers.mmrm_certificate import Answer, best
from mmbench.solvers.mmrm_generation import solve_generation
from mmbench.solvers.mmrm_program import Program
from mmbench.solvers.mmrm_reference import solve_reference
from mmbench.solvers.mmrm_rounds import Guess, Rounds
from mmbench.solvers.status import Status

#: From so many rows in the first part on, the interior point is faster than simplex pivots.
INTERIOR_FROM = 250

#: The whole program goes to HiGHS as the last resort only up to this many rows.
WHOLE_UP_TO = 2000


def solve_kernel(
    program: Program, guess: Guess, *, solver: str = "auto", tol: float = 1e-6
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
    for route in _routes(program, guess, solver):
        answer, hopeless = _solve(program, guess, route, tol)
        if answer.status in (Status.OPTIMAL, Status.UNBOUNDED):
            return answer
        answers.append(answer)
        if hopeless:
            break
    return best(program, answers, tol)


def _routes(program: Program, guess: Guess, solver: str) -> list[str]:
    """Return the routes to try, in their order."""
    if solver != "auto":
        return [solver]
    routes = ["generation"]
    # a part of an unbounded program gives an interior point nothing to converge to
    if program.surely_bounded:
        large = len(guess.first_rows(program)) >= INTERIOR_FROM
        routes.insert(0 if large else 1, "interior")
    if len(program.rows) <= WHOLE_UP_TO:
        routes.append("reference")
    return routes


def _solve(program: Program, guess: Guess, route: str, tol: float) -> tuple[Answer, bool]:
    """Return a route's answer, and whether it shows that no other will do better."""
    if route == "reference":
        return solve_reference(program, tol=tol), False
    if route == "interior":
        rounds = Rounds(program, guess, tol)
        # where even the whole Newton equations were too badly conditioned, simplex does no better
        return rounds.solve(), rounds.careful
    first = guess.first_rows(program)
    return solve_generation(program, first, first, tol=tol), False
