"""The soft M4 as the paper states it, made well posed by ``w'(xm - ym) = 1``.

    max over rho   rho - C g(rho),    g(rho) = min sum_i xi_i   subject to
    w'x_i + b >= rho sx - xi_i,  -(w'y_j + b) >= rho sy - xi_j,  w'(xm - ym) = 1     (20)-(22)

Without the equation everything but rho can shrink to zero at no cost, and the paper's objective is
unbounded. With it, ``g(rho) ~ rho min(nx, ny)/kappa`` for large rho, kappa being the MPM's: bounded
if and only if C exceeds ``kappa/min(nx, ny)``.

g need not be convex, so rho is found by branch and bound. Multipliers a of the points and c of the
row of means, found for any rho, give a lower bound gamma(rho), the largest number for which

    sum a_i y_i z_i + (c + gamma) delta = rho (sum_x a + c)(Dx p + Dy q),     ||p||, ||q|| <= 1

These (gamma, rho) are a convex set, and so ``C gamma(rho) - rho`` is concave: between two rho it is
no smaller than the line between its ends. If ``C (sum_x a + c) >= kappa`` it rises for ever, and
no larger rho is of interest.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.branch_and_bound import lowest_of_lines, minimise
from mmbench.machines.minimax.cones import fixed_program, solve_program, solve_spread
from mmbench.machines.minimax.problem import MarginProblem
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.solvers.result import Result

#: Tolerance of the dual equation, as a share of the tolerance of the objective at a w of twice the
#: spreads of the solution.
RESIDUAL_SHARE = 0.2

#: Largest number of values of rho, each twice the one before, that bound the search.
MAX_ENDS = 30

#: Largest number of steps of a bracket around gamma, each four times the one before.
MAX_BRACKET_STEPS = 40


@dataclass(frozen=True)
class MeanSolution(Result):
    """The best rho and its program's solution; `value` is ``C g(rho) - rho``."""

    #: Shape (k,).
    w: NDArray
    b: float
    #: ``slack`` is the sum at (w, b), an upper bound of g(rho).
    rho: float
    slack: float
    #: Shape (n,).
    multipliers: NDArray


def solve_mean(problem: MarginProblem, solver: str = "auto", tol: float = 1e-6) -> MeanSolution:
    """Minimise ``C g(rho) - rho``; both classes have points, and C is above `least_penalty`.

    Solver "reference" gives each point a cone, as the paper does.
    """
    search = _RhoSearch(problem, solver, tol)
    ends = [search.evaluate(0.0), search.evaluate(search.kappa)]
    while ends[-1].weight * problem.C < search.kappa and len(ends) < MAX_ENDS and not time_is_up():
        ends.append(search.evaluate(2.0 * ends[-1].at))
    # In narrower intervals the accuracy of the multipliers limits the bound. The search ends in one
    # if rho is nearly zero.
    best, bound = minimise(search.evaluate, search.lower, ends, 0.5 * tol, narrowest=0.1 * tol)
    if ends[-1].weight * problem.C < search.kappa:  # C is so near the least one that rho is open
        bound = -np.inf
    return MeanSolution(
        best.w,
        best.b,
        best.rho,
        best.slack,
        best.a,
        value=best.value,
        bound=bound,
        violation=abs(float(problem.delta @ best.w) - 1.0),
        iterations=search.iterations,
        status=Status.OPTIMAL,
        route="branch and bound",
    )


def least_penalty(problem: MarginProblem) -> float:
    """Return the largest C for which rho grows without end."""
    n_positive = int((problem.y > 0).sum())
    spread = minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    return 1.0 / (spread * (min(n_positive, len(problem.y) - n_positive) + problem.removed))


@dataclass(frozen=True)
class _RhoSolution:
    """The solution of the program of a rho, and the bound of its multipliers."""

    #: The program's rho.
    at: float
    #: The objective at (w, b) and at the best rho for them.
    value: float
    rho: float
    slack: float
    #: See `MeanSolution`.
    w: NDArray
    b: float
    #: Shape (n,).
    a: NDArray
    #: ``sum a_i y_i z_i + c delta``. Shape (k,).
    target: NDArray
    #: ``sum_x a + c``.
    weight: float
    #: The solver's, for the program's rho.
    gamma: float
    #: Tolerance of the length of p and q, and its effect on the objective.
    residual: float
    uncertainty: float


class _RhoSearch:
    """The programs of all rho, and the bounds that their multipliers give at other rho."""

    def __init__(self, problem: MarginProblem, solver: str, tol: float):
        self.problem, self.solver, self.tol = problem, solver, tol
        self.mpm = minimax_direction(problem.delta, problem.var_x, problem.var_y)
        self.kappa, self.iterations = 1.0 / self.mpm.value, 0
        self._bounds: dict[tuple[float, float], float] = {}

    def evaluate(self, at: float) -> _RhoSolution:
        """Solve the program of a rho."""
        problem, (n, k) = self.problem, self.problem.rows.shape
        program = fixed_program(problem, at)
        if self.solver == "reference":
            found = solve_spread(program, "clarabel", 1e-3 * self.tol, cone_a_row=at > 0)
        else:
            found = solve_program(program, self.solver, self.tol)
        self.iterations += found.iterations
        w, b = found.x[:k], float(found.x[k])
        scale = float(problem.delta @ w)
        if not scale > 0:  # the solver has failed
            w, b, scale = self.mpm.w, best_bias(problem.rows @ self.mpm.w, problem.y), 1.0
        w, b = w / scale, b / scale
        rho, slack = self._best_rho(w, b)
        uncertainty = RESIDUAL_SHARE * self.tol * abs(problem.C * slack - rho)
        a = balanced(found.multipliers[:n], problem.y, 1.0)
        c = float(np.clip(found.multipliers[n:].sum(), 0.0, problem.removed))
        return _RhoSolution(
            at,
            problem.C * slack - rho,
            rho,
            slack,
            w,
            b,
            a,
            target=problem.rows.T @ (a * problem.y) + c * problem.delta,
            weight=0.5 * float(a.sum()) + c,
            gamma=found.equation_multiplier,
            residual=0.5 * uncertainty / (problem.C * float(problem.spreads(w).sum())),
            uncertainty=uncertainty,
        )

    def _best_rho(self, w: NDArray, b: float) -> tuple[float, float]:
        """Return the best rho for (w, b), and its sum of slacks.

        The slope in rho is -1 plus C times the spreads of the rows with slack.
        """
        problem, (spread_x, spread_y) = self.problem, self.problem.spreads(w)
        spreads = np.where(problem.y > 0, spread_x, spread_y)
        margins = problem.y * (problem.rows @ w + b)
        spreads = np.append(spreads, problem.removed * (spread_x + spread_y))
        margins = np.append(margins, problem.removed)
        ends = np.divide(margins, spreads, out=np.full_like(spreads, np.inf), where=spreads > 0)
        order = np.argsort(ends)
        rises = np.flatnonzero(problem.C * np.cumsum(spreads[order]) >= 1.0)
        rho = max(0.0, float(ends[order[rises[0]]])) if len(rises) else 0.0
        return rho, float(np.maximum(0.0, rho * spreads - margins).sum())

    def lower(self, left: _RhoSolution, right: _RhoSolution) -> float:
        """Return a lower bound between two rho, by lines and by the monotony of g."""
        lines = [(self._bound(p, left.at), self._bound(p, right.at)) for p in (left, right)]
        lines = [line for line in lines if np.isfinite(line).all()]
        monotone = max(0.0, self._bound(left, left.at) + left.at) - right.at
        return max([monotone, *([lowest_of_lines(*lines)] if lines else [])])

    def _bound(self, point: _RhoSolution, rho: float) -> float:
        """Return ``C gamma(rho) - rho``; minus infinity if the multipliers give no gamma."""
        asked = point.at, rho  # the intervals on both sides of a point need the same bound
        if asked not in self._bounds:
            self._bounds[asked] = self._bound_at(point, rho)
        return self._bounds[asked]

    def _bound_at(self, point: _RhoSolution, rho: float) -> float:
        room = rho * point.weight + point.residual

        def excess(gamma: float) -> float:
            """Return the length of p and q minus the largest length allowed."""
            target = point.target + gamma * self.problem.delta
            if not target.any():
                return -room
            found = minimax_direction(target, self.problem.var_x, self.problem.var_y)
            return 1.0 / found.bound - room

        unit = max(1.0, abs(point.gamma))
        bracket = _bracket(excess, point.gamma, 1e-6 * unit)
        if bracket is None:
            return -np.inf
        gamma = brentq(excess, *bracket, xtol=1e-13 * unit) - 1e-12 * unit
        return self.problem.C * float(gamma) - rho - point.uncertainty


def _bracket(
    excess: Callable[[float], float], start: float, step: float
) -> tuple[float, float] | None:
    """Return an interval in which a convex function rises through zero; None if not found."""
    low = high = start
    value = excess(start)
    if value <= 0:
        for _ in range(MAX_BRACKET_STEPS):
            high = low + step
            if excess(high) > 0:
                return low, high
            low, step = high, 4.0 * step
        return None
    for _ in range(MAX_BRACKET_STEPS):
        low, last = high - step, value
        value = excess(low)
        if value <= 0:
            return low, high
        if value >= last:
            return None
        high, step = low, 4.0 * step
    return None
