"""Which route solves a kernel program of the max-margin ratio machine, and what follows a failure.

Every route ends in a certificate that is recomputed from the whole program. Where one does not
certify, the next is tried, and the best objective and the best bound found are what is reported.
"""

from __future__ import annotations

from mmbench.solvers.mmrm_generation import solve_generation
from mmbench.solvers.mmrm_program import Answer, Program, best
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
        A named route is followed by no other.
    tol : float, default=1e-6
        For the certificate.

    Returns
    -------
    Answer
    """
    if solver == "reference":
        return solve_reference(program, tol=tol)
    answers: list[Answer] = []
    # a part of an unbounded program gives an interior point nothing to converge to
    if program.surely_bounded and (solver == "interior" or _is_large(program, guess, solver)):
        rounds = Rounds(program, guess, tol)
        answers.append(rounds.solve())
        # where even the whole Newton system was too badly conditioned, simplex does no better
        if answers[0].status is Status.OPTIMAL or rounds.careful:
            return answers[0]
    first = guess.first_rows(program)
    answers.append(solve_generation(program, first, first, tol=tol))
    if _needs_more(answers[-1]) and solver == "auto" and len(program.rows) <= WHOLE_UP_TO:
        answers.append(solve_reference(program, tol=tol))
    return best(program, answers, tol)


def _is_large(program: Program, guess: Guess, solver: str) -> bool:
    return solver == "auto" and len(guess.first_rows(program)) >= INTERIOR_FROM


def _needs_more(answer: Answer) -> bool:
    return answer.status not in (Status.OPTIMAL, Status.UNBOUNDED)
