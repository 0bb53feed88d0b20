"""Solutions to a max-margin ratio program, and what they prove.

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
from mmbench.solvers.result import Result

#: Decisions that differ by no more than this over all training rows are constant: w = 0.
CONSTANT_DECISION_RANGE = 1e-6

#: A solution whose relative gap or violation is above `tol` but below this is "inaccurate".
INACCURATE_TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Solution(Result):
    """A primal and a dual vector of a program, with what they prove.

    `value` has the slacks that `margins` need, so the primal point violates nothing; `violation`
    is the largest of the dual constraints over all columns. No feasible point whose coefficients
    sum (in absolute value) to no more than those of `u` has a value below `bound`: ``sum(lam)``
    less the violations times that sum.

    Attributes
    ----------
    u, b : ndarray of shape (n_columns,), float
        Primal variables; u is never negative where the program forbids it.
    lam : ndarray of shape (n_rows,)
        Dual variables, within [0, cost].
    margins : ndarray of shape (n_rows,)
        y f(x), recomputed.
    route : str
        How the solution was found.
    basis : Basis or None
        For a hot start of the same program with other costs.
    facts : dict
        What only one kind of program reports, by name.
    """

    u: NDArray
    b: float
    lam: NDArray
    margins: NDArray
    iterations: int = 0
    route: str = ""
    basis: Basis | None = None
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance of `objective` to `bound`, relative to ``max(1, |value|)``."""
        return (self.value - self.bound) / max(1.0, abs(self.value))


def certify(
    program: Program, u: NDArray, b: float, lam: NDArray, tol: float, **facts: Any
) -> Solution:
    """Recompute what a primal and a dual vector prove, from the problem alone.

    Parameters
    ----------
    program : Program
    u, b, lam : ndarray, float, ndarray
        As a solver returned them; they are first clipped to their bounds.
    tol : float
        A solution is optimal if relative gap and violation are at most this.
    **facts
        Further fields of the solution.
    """
    u = np.maximum(u, 0.0) if program.nonnegative else u
    lam = np.clip(lam, 0.0, program.cost)
    margins = program.forward(u) + program.y * b
    value = float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))
    reduced = program.c - program.adjoint(lam)
    violation = np.maximum(-reduced, 0) if program.nonnegative else np.abs(reduced)
    worst, imbalance = float(violation.max(initial=0.0)), abs(float(program.y @ lam))
    bound = float(lam.sum()) - worst * float(np.abs(u).sum()) - imbalance * abs(b)
    solution = Solution(
        u=u,
        b=b,
        lam=lam,
        margins=margins,
        value=value,
        bound=bound,
        violation=max(worst, imbalance),
        status=Status.FAILED,
    )
    return replace(solution, status=_judge(solution, tol), **facts)


def _judge(solution: Solution, tol: float) -> Status:
    error = max(abs(solution.gap), solution.violation)
    if not np.isfinite(error):
        return Status.FAILED
    if error <= tol:
        return Status.OPTIMAL
    return Status.INACCURATE if error <= INACCURATE_TOLERANCE else Status.FAILED


def best(program: Program, solutions: Sequence[Solution], tol: float) -> Solution:
    """Join the lowest value with the highest bound among some solutions to one program."""
    lowest = min(solutions, key=lambda solution: solution.value)
    highest = max(solutions, key=lambda solution: solution.bound)
    if lowest is highest:
        return lowest
    joined = certify(program, lowest.u, lowest.b, highest.lam, tol)
    facts: dict[str, Any] = {
        "iterations": lowest.iterations,
        "route": lowest.route,
        "basis": lowest.basis,
    }
    return replace(joined, **facts)


def failed(program: Program, status: Status, route: str, iterations: int = 0) -> Solution:
    """Return the constant solution of a program that was not solved.

    It decides for the class whose errors cost more, which is the larger one unless they are
    weighted; then size breaks the tie. It proves no bound.
    """
    ranks = [
        tuple(pair) for pair in zip(program.class_cost.round(9), program.class_sizes, strict=True)
    ]
    b = 1.0 if ranks[1] >= ranks[0] else -1.0
    margins = program.y * b
    return Solution(
        u=np.zeros(program.n_columns),
        b=b,
        lam=np.zeros(len(program.y)),
        margins=margins,
        value=float(program.cost @ np.maximum(1 - margins, 0)),
        bound=-np.inf,
        violation=0.0,
        status=status,
        iterations=iterations,
        route=route,
    )


def settled(program: Program, solution: Solution) -> Solution:
    """Return the majority class's constant decision for a solution with w = 0, status trivial."""
    solved = solution.status in (Status.OPTIMAL, Status.INACCURATE)
    if not solved or np.ptp(program.y * solution.margins) > CONSTANT_DECISION_RANGE:
        return solution
    constant = failed(program, Status.TRIVIAL, solution.route, solution.iterations)
    return replace(
        constant,
        lam=solution.lam,
        bound=solution.bound,
        violation=solution.violation,
        facts=solution.facts,
    )


def reused(program: Program, solution: Solution, tol: float) -> Solution | None:
    """Return a solution of the same program at other costs if it is one here too, else None.

    Costs do not matter to a solution without slack as long as no multiplier exceeds them.
    """
    same = len(solution.lam) == len(program.y) and len(solution.u) == program.n_columns
    if not same or solution.margins.min() < 1 - 1e-9 or np.any(solution.lam > program.cost):
        return None
    again = certify(program, solution.u, solution.b, solution.lam, tol, route="reused")
    return replace(again, basis=solution.basis) if again.status is Status.OPTIMAL else None
