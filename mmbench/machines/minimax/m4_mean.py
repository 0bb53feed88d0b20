"""Routes to the soft M4 as the paper states it, made well posed by ``w'(xm - ym) = 1``.

    max over rho   rho - C g(rho),    g(rho) = min sum_i xi_i   subject to
    w'x_i + b >= rho sx - xi_i,  -(w'y_j + b) >= rho sy - xi_j,  w'(xm - ym) = 1     (20)-(22)

Without the equation everything but rho can shrink to zero at no cost, and the paper's objective is
unbounded. With it, ``g(rho) ~ rho min(nx, ny)/kappa`` for large rho, kappa being the MPM's: bounded
if and only if C exceeds ``kappa/min(nx, ny)``. g need not be convex, so that a search by
interpolation alone may end at a local maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.hinge import balanced
from mmbench.machines.minimax.direction import minimax_direction
from mmbench.machines.minimax.line_search import interpolate, maximise
from mmbench.machines.minimax.m4_margin import solve_program
from mmbench.machines.minimax.m4_problem import MarginProblem
from mmbench.machines.minimax.m4_programs import fixed_program
from mmbench.machines.minimax.spread_program import SpreadSolution, solve_spread
from mmbench.solvers.result import Result

#: The grid of rho: this many points up to this multiple of kappa.
GRID, REACH = 20, 3.0

#: The least rho, relative to kappa: at zero the spreads would drop out of the program.
LEAST = 1e-4


@dataclass(frozen=True)
class MeanSolution(Result):
    """The best rho and its program's solution; `value` is ``C g(rho) - rho``.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
    rho, slack : float
        ``slack`` is the sum at (w, b), an upper bound of g(rho).
    multipliers : ndarray of shape (n,)
    """

    w: NDArray
    b: float
    rho: float
    slack: float
    multipliers: NDArray


def solve_mean(problem: MarginProblem, solver: str = "auto", tol: float = 1e-6) -> MeanSolution:
    """Maximise ``rho - C g(rho)``.

    Parameters
    ----------
    problem : MarginProblem
        With points of both classes, different means and C above `least_penalty`.
    solver : {"auto", "reference", "clarabel", "ecos"}, default="auto"
        "reference" interpolates from (0, kappa/2, kappa) on and gives each point a cone, as the
        paper; the others look at a grid first.
    tol : float, default=1e-6
        Of rho relative to kappa, and of each program.
    """
    kappa = 1.0 / minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    search = _Search(problem, solver, tol)
    if solver == "reference":
        pattern = (LEAST * kappa, 0.5 * kappa, kappa)
        rho, _ = interpolate(search.criterion, pattern, tol * kappa)
    else:
        grid = np.concatenate([[LEAST], np.linspace(0.0, REACH, GRID + 1)[1:]]) * kappa
        rho, _ = maximise(search.criterion, list(grid), tol * kappa)
    return search.solution(rho)


def least_penalty(problem: MarginProblem) -> float:
    """Return the C below which rho grows without end."""
    kappa = 1.0 / minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    n_positive = int((problem.y > 0).sum())
    return kappa / (min(n_positive, len(problem.y) - n_positive) + problem.removed)


class _Search:
    """The programs of all rho that were looked at."""

    def __init__(self, problem: MarginProblem, solver: str, tol: float):
        self.problem, self.solver, self.tol = problem, solver, tol
        self.found: dict[float, tuple[SpreadSolution, float]] = {}

    def criterion(self, rho: float) -> float:
        """Return ``rho - C g(rho)``."""
        if rho <= 0:
            return -np.inf
        if rho not in self.found:
            program = fixed_program(self.problem, rho)
            if self.solver == "reference":
                found = solve_spread(program, "clarabel", 1e-3 * self.tol, cone_a_row=True)
            else:
                found = solve_program(program, self.solver, self.tol)
            self.found[rho] = found, self._slack(found, rho)
        return rho - self.problem.C * self.found[rho][1]

    def _slack(self, found: SpreadSolution, rho: float) -> float:
        """Return the sum of slacks at the true spreads of w, scaled to meet the equation."""
        problem, k = self.problem, len(self.problem.delta)
        scale = float(problem.delta @ found.x[:k])
        w, b = found.x[:k] / scale, float(found.x[k]) / scale
        spreads = problem.spreads(w)
        need = rho * np.where(problem.y > 0, spreads[0], spreads[1])
        own = np.maximum(0.0, need - problem.y * (problem.rows @ w + b)).sum()
        shared = max(0.0, rho * float(spreads.sum()) - 1.0)
        return float(own) + problem.removed * shared

    def solution(self, rho: float) -> MeanSolution:
        """Return the solution of a rho that was looked at."""
        problem, k, n = self.problem, len(self.problem.delta), len(self.problem.y)
        found, slack = self.found[rho]
        scale = float(problem.delta @ found.x[:k])
        w = found.x[:k] / scale
        return MeanSolution(
            w,
            float(found.x[k]) / scale,
            rho,
            slack,
            found.multipliers[:n],
            value=problem.C * slack - rho,
            bound=problem.C * slack_bound(problem, rho, found) - rho,
            violation=abs(float(problem.delta @ w) - 1.0),
            iterations=sum(solution.iterations for solution, _ in self.found.values()),
            status=Status.OPTIMAL,
        )


def slack_bound(problem: MarginProblem, rho: float, found: SpreadSolution) -> float:
    """Return a lower bound of g(rho) from the multipliers of a solution.

    Notes
    -----
    With multipliers a of the points and c of the row of means, gamma is a bound if
    ``sum a_i y_i z_i + (c + gamma) delta = rho (sum_x a + c)(Dx p + Dy q)`` with p and q no longer
    than 1. The solver's gamma may be too large by its rounding; it is lowered until this holds.
    """
    n = len(problem.y)
    a = balanced(found.multipliers[:n], problem.y, 1.0)
    share = float(np.clip(found.multipliers[n:].sum(), 0.0, problem.removed))
    pull = problem.rows.T @ (a * problem.y)
    room = rho * (0.5 * float(a.sum()) + share)
    step = 1e-12 * max(1.0, abs(found.equation_multiplier))
    while step < max(1.0, abs(found.equation_multiplier)):
        gamma = found.equation_multiplier - step
        target = pull + (share + gamma) * problem.delta
        if minimax_direction(target, problem.var_x, problem.var_y).bound * room >= 1.0:
            return max(0.0, gamma)
        step *= 4.0
    return 0.0
