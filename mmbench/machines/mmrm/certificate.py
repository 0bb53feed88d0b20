"""Solutions to a max-margin ratio program, and what they prove.

Nothing here is taken from a solver: a primal and a dual vector are judged by the program alone.
"""

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

#: A row that misses its margin by less does so by rounding.
ROUNDED_MARGIN = 1e-6

#: A solution whose relative gap is above `tol` but below this is "inaccurate".
INACCURATE_TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Solution(Result):
    """A primal and a dual vector of a program, with what they prove.

    `value` has the slacks that `margins` need, and u is within the program's limit, so the primal
    point violates nothing. `violation` is the largest of ``A'lam <= c`` over all columns. As the
    multiplier of the limit it makes lam feasible: `bound` is ``sum(lam) - limit violation``, and no
    point within the limit has a lower value.
    """

    #: Primal variables: u of shape (n_columns,), not negative where the program forbids it, and b.
    u: NDArray
    b: float
    #: Dual variables, within [0, cost]. Shape (n_rows,).
    lam: NDArray
    #: y f(x), recomputed. Shape (n_rows,).
    margins: NDArray
    iterations: int = 0
    #: How the solution was found.
    route: str = ""
    #: For a hot start of the same program with other costs.
    basis: Basis | None = None
    #: What only one kind of program reports, by name.
    facts: dict[str, Any] = field(default_factory=dict)

    def limited(self, program: Program, tol: float) -> bool:
        """Whether the limit binds: its multiplier takes more than `tol` of the dual value."""
        pays = self.violation * program.limit > tol * max(1.0, abs(self.value))
        return bool(pays and np.abs(self.u).sum() > program.limit / 2)


def certify(
    program: Program, u: NDArray, b: float, lam: NDArray, tol: float, **facts: Any
) -> Solution:
    """Recompute what a primal and a dual vector prove, from the problem alone.

    Parameters
    ----------
    program : Program
    u, b, lam : ndarray, float, ndarray
        As a solver returned them; they are first moved within their bounds.
    tol : float
        A solution is optimal if its relative gap is at most this.
    **facts
        Further fields of the solution.
    """
    u, lam = _within_limit(program, u), _balanced(program, lam)
    margins = program.forward(u) + program.y * b
    scale = _scale(program, u, margins)
    u, b, margins = scale * u, scale * b, scale * margins
    value = value_of(program, u, margins)
    reduced = program.c - program.adjoint(lam)
    violation = np.maximum(-reduced, 0) if program.nonnegative else np.abs(reduced)
    worst = float(violation.max(initial=0.0))
    solution = Solution(
        u=u,
        b=b,
        lam=lam,
        margins=margins,
        value=value,
        bound=float(lam.sum()) - program.limit * worst,
        violation=worst,
        status=Status.FAILED,
    )
    return judged(replace(solution, **facts), tol)


def value_of(program: Program, u: NDArray, margins: NDArray) -> float:
    """Return the objective of (28) or (30) at u, given ``y f(x)``."""
    return float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))


def _scale(program: Program, u: NDArray, margins: NDArray) -> float:
    """Return the multiple of u and b at which rows that miss their margin by rounding reach it.

    It is 1 where that does not lower the value, or is beyond the limit.
    """
    missed = (margins < 1) & (margins > 1 - ROUNDED_MARGIN) & (program.cost > 0)
    scale = 1 / float(margins[missed].min(initial=1.0))
    lower = value_of(program, scale * u, scale * margins) < value_of(program, u, margins)
    return scale if lower and scale * np.abs(u).sum() <= program.limit else 1.0


def _within_limit(program: Program, u: NDArray) -> NDArray:
    u = np.maximum(u, 0.0) if program.nonnegative else u
    total = float(np.abs(u).sum())
    return u * (program.limit / total) if total > program.limit else u


def _balanced(program: Program, lam: NDArray) -> NDArray:
    """Return multipliers within [0, cost] and with y'lam = 0: b is free."""
    lam = np.clip(lam, 0.0, program.cost)
    sums = np.array([lam[program.y < 0].sum(), lam[program.y > 0].sum()])
    shrunk = sums.min() / np.maximum(sums, np.finfo(np.float64).tiny)
    return lam * shrunk[(program.y > 0).astype(int)]


def judged(solution: Solution, tol: float) -> Solution:
    """Return a solution with the status that its gap gives it."""
    gap = abs(solution.gap)
    if not np.isfinite(gap) or gap > INACCURATE_TOLERANCE:
        return replace(solution, status=Status.FAILED)
    return replace(solution, status=Status.OPTIMAL if gap <= tol else Status.INACCURATE)


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


def constant_bias(program: Program) -> float:
    """Return the best b of w = 0: 1 or -1, for the class whose errors cost more.

    That is the larger one unless costs are weighted; then size breaks the tie.
    """
    ranks = [
        tuple(pair) for pair in zip(program.class_cost.round(9), program.class_sizes, strict=True)
    ]
    return 1.0 if ranks[1] >= ranks[0] else -1.0


def failed(program: Program, status: Status, route: str, iterations: int = 0) -> Solution:
    """Return the constant solution of a program that was not solved.

    It proves no bound.
    """
    b = constant_bias(program)
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
