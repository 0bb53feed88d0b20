"""Solutions of max-margin ratio programs, with lower bounds and statuses.

They are computed from the primal and the dual vector, not taken from the solver's report.
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

#: The weights w are considered zero if the range of the decision values on the training rows is at
#: most CONSTANT_DECISION_RANGE.
CONSTANT_DECISION_RANGE = 1e-6

#: A margin between 1 - ROUNDED_MARGIN and 1 is considered a margin of 1 with a rounding error.
ROUNDED_MARGIN = 1e-6

#: Maximum relative duality gap for the status "inaccurate". A solution whose relative duality gap
#: exceeds INACCURATE_TOLERANCE has the status "failed".
INACCURATE_TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class CertifiedSolution(Result):
    """A primal and a dual vector of a linear program, with the objective value and a lower bound.

    The head of `mmbench.machines.mmrm.mmrm` lists the values of `route`. `value` is the objective
    with the smallest feasible slacks; the coefficients u satisfy the limit `Program.limit` on
    ``sum |u_k|``. `violation` is the largest violation of ``A'lam <= c`` (kernel program) or
    ``A'lam = c`` (linear program). With `violation` as the multiplier of the limit, lam is dual
    feasible, so that ``bound = sum(lam) - limit * violation`` holds for all u within the limit.
    """

    #: Coefficients of the columns of A, nonnegative in a kernel program. Shape (n_columns,).
    u: NDArray
    b: float
    #: Multipliers of the margin constraints, between 0 and the penalties on slack. Shape (n_rows,).
    lam: NDArray
    #: Margins ``y_i f(x_i)`` of the rows. Shape (n_rows,).
    margins: NDArray
    #: Entries that a solver adds to `Fit.extra`. For example, `solve_linear` adds
    #: "bounded_from_factor" if the program is unbounded.
    facts: dict[str, Any] = field(default_factory=dict)

    def limited(self, program: Program, tol: float) -> bool:
        """Whether the upper limit on ``sum |u_k|`` is active.

        The limit is considered active if two conditions hold: ``sum |u_k|`` exceeds half of the
        limit, and ``max(1, limit) * violation`` exceeds ``tol * max(1, |value|)``.
        """
        binds = self.violation * max(1.0, program.limit) > tol * max(1.0, abs(self.value))
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
    """Project a solver's primal and dual vectors onto their bounds, and compute the certificate."""
    total = float(np.abs(u := np.maximum(u, 0.0) if program.nonnegative else u).sum())
    limit = program.limit if program.nonnegative else np.inf  # (28) has no coefficient limit
    if total > limit:
        u = u * (limit / total)
    lam = balanced(lam, program.y, program.cost)
    margins = program.forward(u) + program.y * b
    value = value_of(program, u, margins)
    # Rounding errors may cause margins just below 1. Multiplying u and b by `scale` raises these
    # margins to at least 1. The multiples are used if the objective value decreases.
    missed = (margins < 1) & (margins > 1 - ROUNDED_MARGIN) & (program.cost > 0)
    scale = 1 / float(margins[missed].min(initial=1.0))
    if scale * np.abs(u).sum() <= limit:
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
        bound=float(lam.sum()) - min(limit, max(program.limit, total)) * violation,
        violation=violation,
        status=Status.FAILED,
        iterations=iterations,
        route=route,
    )
    return with_status(solution, tol)


def value_of(program: Program, u: NDArray, margins: NDArray) -> float:
    """Return the objective value of (28) or (30) for coefficients u with margins ``y_i f(x_i)``."""
    return float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))


def with_status(solution: CertifiedSolution, tol: float) -> CertifiedSolution:
    """Return the solution with the status that follows from its relative duality gap."""
    gap = abs(solution.gap)
    if not np.isfinite(gap) or gap > INACCURATE_TOLERANCE:
        return replace(solution, status=Status.FAILED)
    return replace(solution, status=Status.OPTIMAL if gap <= tol else Status.INACCURATE)


def best(program: Program, solutions: Sequence[CertifiedSolution], tol: float) -> CertifiedSolution:
    """Combine the primal vector of lowest `value` with the dual vector of highest `bound`."""
    lowest = min(solutions, key=lambda solution: solution.value)
    highest = max(solutions, key=lambda solution: solution.bound)
    if lowest is highest:
        return lowest
    u, b, lam = lowest.u, lowest.b, highest.lam
    return certify(program, u, b, lam, tol, lowest.iterations, lowest.route)


def constant_bias(program: Program) -> float:
    """Return the optimal b for w = 0: the label of the class with the larger sum of penalties.

    If both classes have the same sum of slack penalties, their sums of sample weights are compared.
    """
    negative, positive = zip(program.class_cost.round(9), program.class_sizes, strict=True)
    return 1.0 if positive >= negative else -1.0


def constant_solution(
    program: Program, status: Status, route: str, iterations: int = 0
) -> CertifiedSolution:
    """Return the solution w = 0 with the given status and the lower bound minus infinity."""
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    found = certify(program, u, constant_bias(program), lam, 1.0, iterations, route)
    return replace(found, bound=-np.inf, violation=0.0, status=status)


def trivial_if_constant(program: Program, solution: CertifiedSolution) -> CertifiedSolution:
    """Return the solution w = 0 with the status "trivial" if the decision values are constant.

    A `solution` whose decision values vary, or whose status is neither "optimal" nor "inaccurate",
    is returned unchanged.
    """
    solved = solution.status in (Status.OPTIMAL, Status.INACCURATE)
    if not solved or np.ptp(program.y * solution.margins) > CONSTANT_DECISION_RANGE:
        return solution
    constant = constant_solution(program, Status.TRIVIAL, solution.route, solution.iterations)
    kept = {name: getattr(solution, name) for name in ("lam", "bound", "violation", "facts")}
    return replace(constant, **kept)


def recertified(
    program: Program, solution: CertifiedSolution, tol: float
) -> CertifiedSolution | None:
    """Return `solution` if it is also optimal for `program`, otherwise None.

    A solution with zero slacks stays optimal for all slack penalties that are at least the
    multipliers lam. Therefore a separable pair of classes has the same solution for all
    sufficiently large C.
    """
    same = len(solution.lam) == len(program.y) and len(solution.u) == program.n_columns
    if not same or solution.margins.min() < 1 - 1e-9 or np.any(solution.lam > program.cost):
        return None
    again = certify(program, solution.u, solution.b, solution.lam, tol, route="reused")
    return again if again.status is Status.OPTIMAL else None
