"""The soft M4 of the paper with the additional equation ``w'(xm - ym) = 1`` (normalization "mean").

    max over rho   rho - C g(rho),    g(rho) = min sum_i xi_i   subject to
    w'x_i + b >= rho sx - xi_i,  -(w'y_j + b) >= rho sy - xi_j,  w'(xm - ym) = 1     (20)-(22)

Notation: module `m4`. The objective is bounded above if and only if C exceeds
``kappa/min(nx, ny)``, with the optimum 1/kappa of the MPM, because g(rho) grows like
``rho min(nx, ny)/kappa``. As g is not always convex, ``C g(rho) - rho`` is minimised by branch and
bound. With fixed multipliers a_i of the points and c of the means, from the solution for one rho,
gamma(rho) is the largest gamma for which p and q satisfy the dual equation

    sum a_i y_i z_i + (c + gamma) (xm - ym) = rho (sum_x a + c)(Dx p + Dy q),   ||p||, ||q|| <= 1

with sum_x over the positive class and the spreads ||Dx w||, ||Dy w||. ``gamma(rho) <= g(rho)``, and
``C gamma(rho) - rho`` is concave, so its chord is a lower bound on an interval. If
``C (sum_x a + c) >= kappa``, larger rho need not be searched.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.branch_and_bound import lowest_of_lines, minimise
from mmbench.machines.minimax.margin_problem import MarginProblem
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.machines.minimax.spread_program import fixed_program, solve_spread
from mmbench.solvers.result import Result

#: The lower bound is decreased by RESIDUAL_SHARE times the tolerance, because the dual equation
#: holds only approximately. It is then valid if the spreads along the optimal w are at most twice
#: the spreads along the computed w.
RESIDUAL_SHARE = 0.2

#: For ``rho = 0``, directions are omitted if their singular value is at most LEAST_LENGTH times the
#: largest. No spread bounds the weights there, and weights of 1e12 would multiply rounding errors.
LEAST_LENGTH = 1e-8

#: Smallest tolerance that is passed to the solver of the cone programs.
LEAST_SOLVER_TOL = 1e-13

#: Maximum number of values of rho that are tried as the upper end of the search interval; each
#: value is twice the previous value.
MAX_ENDS = 30

#: Maximum number of steps in the search for an interval that contains the multiplier gamma; each
#: step is four times as long as the previous step.
MAX_BRACKET_STEPS = 40


@dataclass(frozen=True)
class MeanSolution(Result):
    """Solution of the program "fixed rho" of `spread_program`, with data for lower bounds.

    `value` is the objective ``C slack - rho``. `bound` is a lower bound on the objective over all
    rho.
    """

    #: Value of rho in the program "fixed rho".
    at: float
    #: Optimal rho for the computed (w, b), and the sum of slacks at this rho.
    rho: float
    slack: float
    #: Weights, shape (k,), and intercept.
    w: NDArray
    b: float
    #: Multipliers of the points, shape (n,).
    multipliers: NDArray
    #: Left-hand side of the dual equation without the term in gamma,
    #: ``sum a_i y_i z_i + c delta``. Shape (k,).
    target: NDArray
    #: Factor ``sum_x a + c`` on the right-hand side of the dual equation.
    weight: float
    #: Multiplier gamma of the equation ``w'(xm - ym) = 1``, as returned by the solver.
    gamma: float
    #: Tolerance of the constraint ``rho * weight * max(||p||, ||q||) <= rho * weight``.
    residual: float
    #: Decrease of the lower bound that compensates for the tolerance `residual`.
    uncertainty: float


def solve_mean(problem: MarginProblem, solver: str = "auto", tol: float = 1e-6) -> MeanSolution:
    """Minimise the objective ``C g(rho) - rho`` over rho.

    Both classes must have points, and C must exceed `least_penalty`.
    """
    search = _RhoSearch(problem, solver, tol)
    ends, C = [search.evaluate(0.0), search.evaluate(1.0)], search.problem.C
    while ends[-1].weight * C < 1.0 and len(ends) < MAX_ENDS and not time_is_up():
        ends.append(search.evaluate(2.0 * ends[-1].at))
    # The search ends if the interval of rho with the smallest bound has a relative width of 0.1 *
    # tol, below which inaccurate multipliers prevent an increase of the bound.
    best, bound = minimise(search.evaluate, search.lower, ends, 0.5 * tol, narrowest=0.1 * tol)
    # if C is close to `least_penalty`, the optimal rho may be outside the searched interval, and no
    # lower bound is known
    if ends[-1].weight * C < 1.0:
        bound = -np.inf
    kappa = search.kappa
    return replace(
        best,
        w=best.w / kappa,
        rho=kappa * best.rho,
        value=kappa * best.value,
        bound=kappa * bound,
        iterations=search.iterations,
    )


def least_penalty(problem: MarginProblem) -> float:
    """Return the largest penalty C for which the optimal rho is infinite."""
    spread = minimax_direction(problem.delta, problem.var_x, problem.var_y).value
    return 1.0 / (spread * (min(problem.totals) + problem.removed))


class _RhoSearch:
    """Solutions of the program "fixed rho", and lower bounds over intervals of rho.

    The rows, C and rho are divided by kappa, so that the class spreads of the MPM sum to 1.
    """

    def __init__(self, problem: MarginProblem, solver: str, tol: float):
        self.solver, self.tol = solver, tol
        self.mpm = minimax_direction(problem.delta, problem.var_x, problem.var_y)
        self.kappa = kappa = 1.0 / self.mpm.value
        rows, delta = np.asarray(problem.rows) / kappa, problem.delta / kappa
        # Without the division by kappa, which may exceed 1000 with a ridge of 1e-8, a large rho
        # would multiply the solver's errors in the spreads, and the gap would stay above 1e-6.
        self.problem = replace(problem, rows=rows, delta=delta, C=problem.C / kappa)
        self.iterations, self.lowest = 0, 1.0
        lengths, axes = np.linalg.svd(np.vstack([rows, delta]), full_matrices=False)[1:]
        self.axes = axes[lengths > LEAST_LENGTH * lengths[0]]
        none = np.zeros(len(self.axes))
        spanned = {"rows": rows @ self.axes.T, "delta": self.axes @ delta}
        self.spanned = replace(self.problem, **spanned, var_x=none, var_y=none)

    def evaluate(self, at: float) -> MeanSolution:
        """Solve the program "fixed rho" for the value `at` of rho."""
        problem, n = self.problem, len(self.problem.y)
        flat = at == 0 and len(self.axes) < len(problem.delta)
        program = fixed_program(self.spanned if flat else problem, at)
        # the solver's tolerance is absolute, and must be smaller if the magnitude of the objective
        # is below 1
        tol = max(LEAST_SOLVER_TOL, min(1e-9, 1e-3 * self.tol) * min(1.0, abs(self.lowest)))
        found = solve_spread(program, self.solver, tol)
        self.iterations += found.iterations
        w, b = found.x[:-3] @ self.axes if flat else found.x[:-3], float(found.x[-3])
        scale = float(problem.delta @ w)
        if not scale > 0:  # the solver has failed
            w, scale = self.kappa * self.mpm.w, 1.0
            b = best_bias(problem.rows @ w, problem.y)
        w, b = w / scale, b / scale
        rho, slack = self._best_rho(w, b)
        value = problem.C * slack - rho
        self.lowest = min(self.lowest, value)
        uncertainty = RESIDUAL_SHARE * self.tol * abs(value)
        a = balanced(found.multipliers[:n], problem.y, problem.weights)
        c = float(np.clip(found.multipliers[n:].sum(), 0.0, problem.removed))
        return MeanSolution(
            at,
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
            value=value,
            bound=-np.inf,
            violation=abs(float(problem.delta @ w) - 1.0),
            iterations=found.iterations,
            status=Status.OPTIMAL,
            route="branch and bound",
        )

    def _best_rho(self, w: NDArray, b: float) -> tuple[float, float]:
        """Return the optimal rho for fixed (w, b), and the sum of slacks at this rho.

        The objective ``C slack - rho`` has the derivative ``C s - 1`` with respect to rho, where s
        is a sum over the rows with positive slack, with the terms row weight times class spread.
        """
        problem, (spread_x, spread_y) = self.problem, self.problem.spreads(w)
        spreads = problem.weights * np.where(problem.y > 0, spread_x, spread_y)
        margins = problem.weights * problem.y * (problem.rows @ w + b)
        spreads = np.append(spreads, problem.removed * (spread_x + spread_y))
        margins = np.append(margins, problem.removed)
        ends = np.divide(margins, spreads, out=np.full_like(spreads, np.inf), where=spreads > 0)
        order = np.argsort(ends)
        rises = np.flatnonzero(problem.C * np.cumsum(spreads[order]) >= 1.0)
        rho = max(0.0, float(ends[order[rises[0]]])) if len(rises) else 0.0
        return rho, float(np.maximum(0.0, rho * spreads - margins).sum())

    def lower(self, left: MeanSolution, right: MeanSolution) -> float:
        """Return a lower bound on the objective over an interval of rho, the larger of two bounds.

        The first lower bound interpolates the concave function ``C gamma(rho) - rho`` linearly. The
        second lower bound uses the fact that the minimum slack g(rho) does not decrease as rho
        increases.
        """
        lines = [(self._bound(p, left.at), self._bound(p, right.at)) for p in (left, right)]
        lines = [line for line in lines if np.isfinite(line).all()]
        monotone = max(0.0, self._bound(left, left.at) + left.at) - right.at
        return max([monotone, *([lowest_of_lines(*lines)] if lines else [])])

    def _bound(self, point: MeanSolution, rho: float) -> float:
        """Return the lower bound ``C gamma(rho) - rho`` from the multipliers of `point`.

        If no number gamma satisfies the dual equation, minus infinity is returned.
        """
        room = rho * point.weight + point.residual

        def excess(gamma: float) -> float:
            """Return the excess ``rho * weight * max(||p||, ||q||) - (rho * weight + residual)``.

            The vectors p and q solve the dual equation and minimise ``max(||p||, ||q||)``.
            """
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
    """Return an interval in which a convex function becomes positive, or None if none is found."""
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
