"""Answers to a max-margin ratio program, and what they prove.

Nothing here is taken from a solver: a primal and a dual vector are judged by the program alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.mmrm.program import Program
from mmbench.solvers.highs_ import Basis

#: Decisions that differ by no more than this over all training rows are constant: w = 0.
FLAT = 1e-6

#: An answer whose relative gap or violation is above `tol` but below this is "inaccurate".
USABLE = 1e-3


@dataclass(frozen=True)
class Answer:
    """A primal and a dual vector of a program, with what they prove.

    Attributes
    ----------
    u, b : ndarray of shape (n_columns,), float
        Primal variables; u is never negative where the program forbids it.
    lam : ndarray of shape (n_rows,)
        Dual variables, within [0, cost].
    margins : ndarray of shape (n_rows,)
        y f(x), recomputed.
    objective : float
        Primal value, with the slacks that `margins` need.
    bound : float
        No feasible point whose coefficients sum (in absolute value) to no more than those of `u`
        has a lower value: ``sum(lam)`` less the violations times that sum.
    max_violation : float
        Largest violation of the dual constraints over all columns; the primal point has none.
    status : Status
    iterations : int
    route : str
        How the answer was found.
    basis : Basis or None
        For a hot start of the same program with other costs.
    facts : dict
        What only one kind of program reports, by name.
    """

    u: NDArray
    b: float
    lam: NDArray
    margins: NDArray
    objective: float
    bound: float
    max_violation: float
    status: Status
    iterations: int = 0
    route: str = ""
    basis: Basis | None = None
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance of `objective` to `bound`, relative to ``max(1, |objective|)``."""
        return (self.objective - self.bound) / max(1.0, abs(self.objective))


def certify(
    program: Program, u: NDArray, b: float, lam: NDArray, tol: float, **facts: Any
) -> Answer:
    """Recompute what a primal and a dual vector prove, from the problem alone.

    Parameters
    ----------
    program : Program
    u, b, lam : ndarray, float, ndarray
        As a solver returned them; they are first clipped to their bounds.
    tol : float
        An answer is optimal if relative gap and violation are at most this.
    **facts
        Further fields of the answer.
    """
    u = np.maximum(u, 0.0) if program.nonnegative else u
    lam = np.clip(lam, 0.0, program.cost)
    margins = program.forward(u) + program.y * b
    objective = float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))
    reduced = program.c - program.adjoint(lam)
    violation = np.maximum(-reduced, 0) if program.nonnegative else np.abs(reduced)
    worst, imbalance = float(violation.max(initial=0.0)), abs(float(program.y @ lam))
    bound = float(lam.sum()) - worst * float(np.abs(u).sum()) - imbalance * abs(b)
    answer = Answer(u, b, lam, margins, objective, bound, max(worst, imbalance), Status.FAILED)
    return replace(answer, status=_judge(answer, tol), **facts)


def _judge(answer: Answer, tol: float) -> Status:
    error = max(abs(answer.gap), answer.max_violation)
    if not np.isfinite(error):
        return Status.FAILED
    if error <= tol:
        return Status.OPTIMAL
    return Status.INACCURATE if error <= USABLE else Status.FAILED


def best(program: Program, answers: Sequence[Answer], tol: float) -> Answer:
    """Join the lowest objective with the highest bound among some answers to one program."""
    lowest = min(answers, key=lambda answer: answer.objective)
    highest = max(answers, key=lambda answer: answer.bound)
    if lowest is highest:
        return lowest
    joined = certify(program, lowest.u, lowest.b, highest.lam, tol)
    facts: dict[str, Any] = {
        "iterations": lowest.iterations,
        "route": lowest.route,
        "basis": lowest.basis,
    }
    return replace(joined, **facts)


def failed(program: Program, status: Status, route: str, iterations: int = 0) -> Answer:
    """Return the constant answer of a program that was not solved.

    It decides for the class whose errors cost more, which is the larger one unless they are
    weighted; then size breaks the tie. It proves no bound.
    """
    ranks = [
        tuple(pair) for pair in zip(program.class_cost.round(9), program.class_sizes, strict=True)
    ]
    b = 1.0 if ranks[1] >= ranks[0] else -1.0
    margins = program.y * b
    return Answer(
        u=np.zeros(program.n_columns),
        b=b,
        lam=np.zeros(len(program.y)),
        margins=margins,
        objective=float(program.cost @ np.maximum(1 - margins, 0)),
        bound=-np.inf,
        max_violation=0.0,
        status=status,
        iterations=iterations,
        route=route,
    )


def settled(program: Program, answer: Answer) -> Answer:
    """Return the majority class's constant decision for an answer with w = 0, status trivial."""
    solved = answer.status in (Status.OPTIMAL, Status.INACCURATE)
    if not solved or np.ptp(program.y * answer.margins) > FLAT:
        return answer
    constant = failed(program, Status.TRIVIAL, answer.route, answer.iterations)
    return replace(
        constant,
        lam=answer.lam,
        bound=answer.bound,
        max_violation=answer.max_violation,
        facts=answer.facts,
    )


def reused(program: Program, answer: Answer, tol: float) -> Answer | None:
    """Return a solution of the same program at other costs if it is one here too, else None.

    Costs do not matter to a solution without slack as long as no multiplier exceeds them.
    """
    same = len(answer.lam) == len(program.y) and len(answer.u) == program.n_columns
    if not same or answer.margins.min() < 1 - 1e-9 or np.any(answer.lam > program.cost):
        return None
    again = certify(program, answer.u, answer.b, answer.lam, tol, route="reused")
    return replace(again, basis=answer.basis) if again.status is Status.OPTIMAL else None
