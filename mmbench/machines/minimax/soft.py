"""Solvers of the M4 in the normalization "margin" (see `m4`), with a soft or a hard margin.

The interior-point method applies ``||D w|| = min over e > 0 of (||D w||^2 / e + e) / 2`` to each
class spread. For fixed ex and ey, this is a linear SVM with w'Q w, ``Q = Sx/ex + Sy/ey``, in place
of w'w. The difference ``e - ||D w||^2 / e`` decreases only together with the complementarity
products; if it were zero in every iteration, e could reach zero too early, and remain there.

Multipliers ``0 <= a_i <= C`` with ``v = sum_i a_i y_i z_i = sum_j D_j p_j``, ``||p_j|| <= 1``, have
the lower bound ``sum_i a_i``. The vectors ``p_j = D_j Q^-1 v / e_j`` satisfy the equation; division
of a and all p_j by the largest ``||p_j||`` makes them feasible.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.minimax.margin_problem import MarginProblem, MarginSolution, middle_bias
from mmbench.machines.minimax.spread import minimax_direction
from mmbench.machines.minimax.spread_program import (
    bisect_rho,
    budget_program,
    margin_program,
    search_budget,
    solve_program,
    step_program,
)
from mmbench.solvers.highs_ import solve_lp
from mmbench.solvers.interior_point import HingeInteriorPoint, Values

#: Up to this number of rows, Clarabel solves the problem again if the interior-point method misses
#: the tolerance; it needs memory for up to 30 copies of the rows.
MOST_CONE_ROWS = 30_000

#: Classes are treated as separable if the margin along some direction exceeds LEAST_MARGIN times
#: the distance between the class means along this direction.
LEAST_MARGIN = 1e-9

#: A linear program proves that classes are not separable if two numbers are at most
#: OVERLAP_TOLERANCE: the upper bound on the margin from the dual solution, and the largest
#: constraint violation of the computed solution.
OVERLAP_TOLERANCE = 1e-6

#: Let e be the variable of a class spread ``||D w||``. In each step, the target of the difference
#: ``e - ||D w||^2 / e`` is EXCESS_SHARE times the sum of all complementarity products.
EXCESS_SHARE = 0.5

#: Maximum relative decrease of a variable e_j per interior-point step.
LARGEST_FALL = 0.7

#: The initial multiplier of a row is proportional to its share in the weight of its class, with
#: FIRST_SHARE times the largest factor that keeps ``||p_j|| <= 1`` and ``a <= C``.
FIRST_SHARE = 0.5


def solve_soft(problem: MarginProblem, solver: str = "auto", tol: float = 1e-6) -> MarginSolution:
    """Train the soft-margin M4 to the relative gap `tol`; both classes must have points."""
    if solver == "reference":
        return replace(search_budget(problem, tol), route="rho search")
    if solver in ("auto", "gram") and not problem.removed:
        point = SoftMarginPoint(problem)
        point.run(min(1e-10, 1e-4 * tol))
        found = problem.solution(point.at["w"], point.at["a"], point.iterations)
        if found.closed(tol) or len(problem.y) > MOST_CONE_ROWS or time_is_up():
            return replace(found, route="interior point")
    found = solve_program(margin_program(problem), solver, tol).for_problem(problem)
    return replace(found, route="cone program")


def solve_hard(
    problem: MarginProblem, solver: str = "auto", tol: float = 1e-6
) -> MarginSolution | Status:
    """Minimise the sum of class spreads ``sx + sy`` for a hard margin (no slacks).

    Returns INFEASIBLE if the classes are proven not to be separable. Returns FAILED if the linear
    program gives neither a separating hyperplane nor a proof that the classes are not separable.
    """
    w, margin, overlap = widest_margin(problem)
    if margin <= LEAST_MARGIN:
        return Status.INFEASIBLE if overlap else Status.FAILED
    if solver == "reference":
        return replace(bisect_rho(problem, tol), route="rho search")
    # The right-hand sides (the required margins) are scaled so that the class spreads are of order
    # 1.
    scale = 1.0 / float(problem.spreads(w).sum())
    program = margin_program(problem)
    program = replace(program, sides=0.5 * scale * margin * program.sides)
    found = solve_program(program, solver, tol).for_problem(problem)
    return replace(found, route="cone program")


def solve_ivanov(
    problem: MarginProblem, A: float, solver: str = "auto", tol: float = 1e-6
) -> MarginSolution:
    """Minimise the sum of slacks subject to ``sx + sy <= 2/A``; the penalty C is not used.

    Let a be multipliers of the rows, and v the vector ``sum_i a_i y_i z_i``. If ``v'w <= g (sx +
    sy)`` for all w, then ``sum a - 2 g/A`` is a lower bound on the sum of slacks.
    """
    problem, budget = replace(problem, C=1.0), 2.0 / A
    hard = solve_hard(replace(problem, C=np.inf), "auto" if solver == "reference" else solver, tol)
    if isinstance(hard, MarginSolution) and hard.value <= budget:
        return replace(hard, value=0.0, bound=0.0)
    found = solve_program(budget_program(problem, A), solver, tol)
    w = found.x[: len(problem.delta)]
    w = w * min(1.0, budget / max(float(problem.spreads(w).sum()), 1e-300))
    b = best_bias(problem.rows @ w, problem.y, problem.weights)
    a = balanced(found.multipliers, problem.y, problem.weights)
    v = problem.rows.T @ (a * problem.y)
    reach = minimax_direction(v, problem.var_x, problem.var_y).bound if v.any() else np.inf
    bound = max(0.0, float(a.sum()) - budget / reach)
    solved = problem.certified(w, b, a, bound, found.iterations)
    solved = replace(solved, value=problem.slack(w, b), route="cone program")
    return replace(problem.trivial_solution(), bound=bound).better(solved)


def widest_margin(problem: MarginProblem) -> tuple[NDArray, float, bool]:
    """Return the direction w with the widest margin relative to the distance of the class means.

    Three values are returned: w, scaled to ``w'(xm - ym) = 1``; the margin of w with the best b;
    and True if a dual solution proves that the classes are not separable. The direction w solves
    the linear program "step" with rho = 0.
    """
    program = step_program(problem, 0.0)
    used = np.setdiff1d(np.arange(len(program.cost)), program.scales)
    sides = np.append(program.sides, 1.0)
    found = solve_lp(
        program.cost[used],
        np.vstack([program.rows[:, used], np.append(problem.delta, [0.0, 0.0])]),
        row_lower=sides,
        row_upper=np.where(np.arange(len(sides)) < len(program.sides), np.inf, 1.0),
        col_lower=-np.inf,
        tol=LEAST_MARGIN,
    )
    w = found.x[: len(problem.delta)]
    decision = problem.rows @ w
    margin = float((problem.y * (decision + middle_bias(decision, problem.y))).min())
    return w, margin, max(found.violation, -found.bound) <= OVERLAP_TOLERANCE


class SoftMarginPoint(HingeInteriorPoint):
    """Primal-dual iterate of the soft-margin M4 that satisfies all inequalities strictly."""

    def __init__(self, problem: MarginProblem):
        rows, y, C = problem.rows, problem.y, problem.C * problem.weights
        squares = np.stack([problem.var_x, problem.var_y])
        self.squares, self.C, self.trivial = squares, C, problem.trivial[0]
        a = problem.weights / np.where(y > 0, *problem.totals)
        delta = rows.T @ (y * a)
        w = delta / squares.sum(axis=0)
        w *= 2.0 / max(float(w @ delta), 1e-300)  # the projected class means now differ by 2
        e = np.sqrt(squares @ (w * w))
        self.at = {"e": np.maximum(e, 1e-3 * e.sum()) if e.any() else np.ones(len(squares))}
        a *= FIRST_SHARE * min(1.0 / max(self._longest(delta), 1e-300), float(np.min(C / a)))
        super().__init__(rows, y, C, a, given=self.at)

    def _Q(self) -> NDArray:
        return self.squares.T @ (1.0 / self.at["e"])

    def _longest(self, v: NDArray) -> float:
        """Return the largest norm of the vectors ``p_j = D_j Q^-1 v / e_j``."""
        w = v / self._Q()
        return float((np.sqrt(self.squares @ (w * w)) / self.at["e"]).max())

    def _norm(self, v: NDArray) -> float:
        return float(v @ (v / self._Q())) - float(self.at["e"].sum())

    def _begin(self) -> float:
        self.at["w"] = self.at["v"] / self._Q()
        return 0.0

    def _follow(self) -> tuple[NDArray, NDArray]:
        Q = self._Q()
        return Q * self.at["w"] - self.at["v"], 1.0 / Q

    def _relative_gap(self, excess: float) -> float:
        a, longest = self.at["a"], max(self._longest(self.at["v"]), 1e-300)
        # a multiple of the multipliers is dual feasible only if no multiplier exceeds its bound C
        room = max(1.0, float(np.min(self.C / a)))
        bound = float(a.sum()) * min(1.0 / longest, room)
        value = min(excess + self._dual_value(), self.trivial)
        return (value - bound) / max(bound, 1e-300)

    def _ratios(self) -> NDArray:
        """Return the ratios ``||D_j w||^2 / e_j^2`` for both class spreads."""
        return self.squares @ self.at["w"] ** 2 / self.at["e"] ** 2

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        e = self.at["e"]
        between = -(self.squares * self.at["w"]).T / e**2
        return self._Q(), between, np.diag(0.5 * (1.0 + self._ratios()) / e)

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        excess = EXCESS_SHARE * 2.0 * len(self.y) * target
        return -self.miss, -0.5 * (1.0 - self._ratios() - excess / self.at["e"])

    def _complete(self, step: Values, added: NDArray) -> None:
        step["e"] = added

    def _length(self, step: Values, share: float) -> float:
        fall = float((-step["e"] / self.at["e"]).max())
        return min(super()._length(step, share), LARGEST_FALL / max(fall, LARGEST_FALL))
