"""Solutions of a max-margin ratio program with their certificates.

Value, bound and status are recomputed from the program and the two vectors; the values that a
solver reports are not used.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced
from mmbench.machines.mmrm.program import Program
from mmbench.solvers.result import Result

#: Decisions on the training rows count as constant (w = 0) if their range is at most this value.
CONSTANT_DECISION_RANGE = 1e-6

#: A margin between 1 minus this value and 1 is treated as a margin of 1 with a rounding error.
ROUNDED_MARGIN = 1e-6

#: Maximum relative gap for the status "inaccurate"; with a larger gap the status is "failed".
INACCURATE_TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class CertifiedSolution(Result):
    """A primal and a dual vector of a program, with objective value and lower bound.

    The docstring of `mmbench.machines.mmrm.mmrm` lists the routes.

    The primal point is feasible: u satisfies the coefficient limit, and `value` includes the slack
    of rows with margins below 1. `violation` is the largest violation of ``A'lam <= c`` over all
    columns. If the multiplier of the coefficient limit is `violation`, lam is dual feasible.
    Therefore `bound`, which is ``sum(lam) - limit violation``, is a lower bound for all points that
    satisfy the limit.
    """

    #: Coefficients, shape (n_columns,); nonnegative in a kernel program.
    u: NDArray
    b: float
    #: Multipliers of the rows, between 0 and cost. Shape (n_rows,).
    lam: NDArray
    #: Margins y f(x). Shape (n_rows,).
    margins: NDArray
    #: Entries of `Fit.extra` that only the linear machine or only the kernel machine has.
    facts: dict[str, Any] = field(default_factory=dict)

    def limited(self, program: Program, tol: float) -> bool:
        """Whether the coefficient limit is active.

        The limit counts as active if its term in the dual objective exceeds `tol` relative to the
        value and the sum of ``|u|`` exceeds half of the limit.
        """
        binds = self.violation * program.limit > tol * max(1.0, abs(self.value))
        return bool(binds and np.abs(self.u).sum() > program.limit / 2)


def certify(
    program: Program,
    u: NDArray,
    b: float,
    lam: NDArray,
    tol: float,
    iterations: int = 0,
    route: str = "",
) -> CertifiedSolution:
    """Certify a solver's primal and dual vectors, after a projection onto their bounds."""
    total = float(np.abs(u := np.maximum(u, 0.0) if program.nonnegative else u).sum())
    if total > program.limit:
        u = u * (program.limit / total)
    lam = balanced(lam, program.y, program.cost)
    margins = program.forward(u) + program.y * b
    value = value_of(program, u, margins)
    # if margins are below 1 only by rounding errors, the slack is removed by scaling u and b
    missed = (margins < 1) & (margins > 1 - ROUNDED_MARGIN) & (program.cost > 0)
    scale = 1 / float(margins[missed].min(initial=1.0))
    if scale * np.abs(u).sum() <= program.limit:
        scaled = value_of(program, scale * u, scale * margins)
        if scaled < value:
            u, b, margins, value = scale * u, scale * b, scale * margins, scaled
    reduced = program.c - program.adjoint(lam)
    violations = np.maximum(-reduced, 0) if program.nonnegative else np.abs(reduced)
    violation = float(violations.max(initial=0.0))
    solution = CertifiedSolution(
        u=u,
        b=b,
        lam=lam,
        margins=margins,
        value=value,
        bound=float(lam.sum()) - program.limit * violation,
        violation=violation,
        status=Status.FAILED,
        iterations=iterations,
        route=route,
    )
    return with_status(solution, tol)


def value_of(program: Program, u: NDArray, margins: NDArray) -> float:
    """Return the objective of (28) or (30) at u, given ``y f(x)``."""
    return float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))


def with_status(solution: CertifiedSolution, tol: float) -> CertifiedSolution:
    """Return the solution with the status that follows from its relative gap."""
    gap = abs(solution.gap)
    if not np.isfinite(gap) or gap > INACCURATE_TOLERANCE:
        return replace(solution, status=Status.FAILED)
    return replace(solution, status=Status.OPTIMAL if gap <= tol else Status.INACCURATE)


def best(program: Program, solutions: Sequence[CertifiedSolution], tol: float) -> CertifiedSolution:
    """Combine the lowest value with the highest bound of several solutions of one program."""
    lowest = min(solutions, key=lambda solution: solution.value)
    highest = max(solutions, key=lambda solution: solution.bound)
    if lowest is highest:
        return lowest
    u, b, lam = lowest.u, lowest.b, highest.lam
    return certify(program, u, b, lam, tol, lowest.iterations, lowest.route)


def constant_bias(program: Program) -> float:
    """Return the optimal b for w = 0: the sign of the class with the larger sum of costs.

    Without class weights, the class with the larger sum is the larger class. If the sums are equal,
    the result is the sign of the larger class.
    """
    negative, positive = zip(program.class_cost.round(9), program.class_sizes, strict=True)
    return 1.0 if positive >= negative else -1.0


def constant_solution(
    program: Program, status: Status, route: str, iterations: int = 0
) -> CertifiedSolution:
    """Return w = 0 with the bound minus infinity, for a program without solution."""
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    found = certify(program, u, constant_bias(program), lam, 1.0, iterations, route)
    return replace(found, bound=-np.inf, violation=0.0, status=status)


def trivial_if_constant(program: Program, solution: CertifiedSolution) -> CertifiedSolution:
    """Return the constant decision of the majority class, status "trivial", if w = 0 is optimal.

    Any other solution is returned unchanged.
    """
    solved = solution.status in (Status.OPTIMAL, Status.INACCURATE)
    if not solved or np.ptp(program.y * solution.margins) > CONSTANT_DECISION_RANGE:
        return solution
    constant = constant_solution(program, Status.TRIVIAL, solution.route, solution.iterations)
    return replace(
        constant,
        lam=solution.lam,
        bound=solution.bound,
        violation=solution.violation,
        facts=solution.facts,
    )


def recertified(
    program: Program, solution: CertifiedSolution, tol: float
) -> CertifiedSolution | None:
    """Return a solution found with other costs if it is also optimal for this program, else None.

    If a solution has no slack, it is optimal for all costs that are at least its multipliers. A
    search over C therefore solves a separable pair of classes only once.
    """
    same = len(solution.lam) == len(program.y) and len(solution.u) == program.n_columns
    if not same or solution.margins.min() < 1 - 1e-9 or np.any(solution.lam > program.cost):
        return None
    again = certify(program, solution.u, solution.b, solution.lam, tol, route="reused")
    return again if again.status is Status.OPTIMAL else None
