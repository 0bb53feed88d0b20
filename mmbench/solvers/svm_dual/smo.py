"""Sequential minimal optimisation for `PiecewiseQP`: the default route of kernel machines.

=====================  ==========================================  ================================
route                  when                                        cost
=====================  ==========================================  ================================
SMO                    the Gram matrix is stored                   n kernel values read per step;
                                                                   n x n values in memory
SMO on working sets    it is not (`KernelMatrix`): more than       the values of the working sets
                       3000 rows, or not enough memory             and of the columns that change
=====================  ==========================================  ================================

The three variables per row of the RMM's dual (8) share one ``(Ku)_i``, so with pieces in place of
boxes a step of the RMM costs as much as a step of the SVM. benchmarks/rmm_growth.py measures both
routes, benchmarks/rmm_memory.py the second one in little memory.

A working set holds the rows with ``u_i != 0`` and those at zero that violate the optimality
conditions most. `Descent` solves it with the other rows fixed; the change of u then moves the
decisions of all rows. Once all rows at zero that are near a violation fit in, the set is complete
and is solved to the tolerance. If memory does not hold all rows with ``u_i != 0``, a set consists
of the worst violators (Joachims 1999; Lin 2001 proves convergence).

Working sets and changes are float32 if the kernel allows it. Their rounding errors are proportional
to the changes, so once ``Ku`` has been computed in float64, smaller and smaller changes keep its
digits. ``Ku`` of a solution differs from float64 by a small share of the tolerance at most.

`solve_to_gap` continues until the relative duality gap is small. The violation of each row adds to
the gap, times the slope of its loss; with a large C a small violation leaves a large gap. It is
closed by a tighter tolerance; then by the best multiple of w and b, since a slightly larger w meets
margins that were missed by rounding; then, if decisions are bounded and the larger w exceeds the
bound, by a w that keeps a distance from it.

References
----------
C.-J. Lin: On the convergence of the decomposition method for support vector machines. IEEE
Transactions on Neural Networks 12(6), 2001.
T. Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.steps import (
    Descent,
    combine,
    compiled,
    gains,
    newton_steps,
    optimality,
)

#: Rows at zero that are added to a working set: this share of all rows, within these limits, or
#: half the number of rows with ``u_i != 0`` if that is more. The support of an RMM, which starts
#: from the SVM's solution, may be five times as large.
NEW_ROWS_SHARE, LEAST_NEW_ROWS, MOST_NEW_ROWS = 0.125, 500, 3000

#: Tolerance on a working set: this share of the violation of all rows; on a complete one this share
#: of `tol`.
SET_VIOLATION_SHARE, SET_TOLERANCE_SHARE = 0.1, 0.5

#: Largest rounding error of ``Ku`` in a solution, as a share of `tol`.
ROUNDING_SHARE = 1e-3

#: Rounds without a smaller violation before ``Ku`` is recomputed, and recomputations without a
#: smaller objective before float64 replaces float32, or the run ends.
IDLE_ROUNDS, IDLE_RENEWALS = 20, 3

#: Relative decrease of the objective between two recomputations that exceeds rounding.
LEAST_DECREASE = 1e-12

#: Factors of the KKT tolerance that are tried in turn.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

#: From this factor on the best multiple of w and b is taken. Before, more accurate multipliers
#: close the gap, which improves the predictions too.
RESCALING_FACTOR = 8.0**-3

#: Relative distance from the bound on the decisions in the last attempt. Its effect on the
#: objective is of the same order.
INWARD_SHARE = 1e-6

Start = PiecewiseSolution | NDArray | None


@dataclass
class WorkingSets:
    """State of the steps on working sets; fields as in `Descent`.

    `rounding` is the expected rounding error of `decision`.
    """

    problem: PiecewiseQP
    diagonal: NDArray
    u: NDArray
    decision: NDArray
    tol: float
    left: int
    bias: float = 0.0
    violation: float = np.inf
    rounding: float = 0.0

    def __post_init__(self) -> None:
        assert isinstance(self.problem.gram, KernelMatrix)
        self.matrix = self.problem.gram
        self.order = np.random.RandomState(0).permutation(len(self.u))  # among equal violations
        self._start_counting()

    def _start_counting(self) -> None:
        self.best, self.value = np.inf, np.inf
        self.idle, self.idle_renewals = 0, 0

    def run(self) -> None:
        """Solve sets until no pair violates the conditions, or no step or time is left."""
        self.measure()
        while self.violation > self.tol or not self._accurate(self.rounding):
            spent = self.left <= 0 or time_is_up()
            if self.violation <= self._level() or self.idle > IDLE_ROUNDS or spent:
                if spent and self._accurate(self.rounding):
                    break
                self.renew()
            elif self.idle_renewals > IDLE_RENEWALS:
                if self.matrix.dtype == np.float64:
                    break
                self.matrix.to_double()
                self._start_counting()
            else:
                self.solve_set()

    def _accurate(self, rounding: float) -> bool:
        return rounding <= ROUNDING_SHARE * self.tol

    def _level(self) -> float:
        """Return the violation at which ``Ku`` has to be recomputed."""
        return max(self.tol, self.rounding)

    def measure(self) -> None:
        """Set b and the violation."""
        knots, slopes = self.problem.knots, self.problem.slopes
        self.bias, self.violation = optimality(self.u, self.decision, knots, slopes)

    def renew(self) -> None:
        """Compute ``Ku`` in float64."""
        self.decision, self.rounding = self.matrix.product(self.u), 0.0
        self.measure()
        value = 0.5 * float(self.u @ self.decision) + self.problem.cost(self.u)
        lower = self.value - value > LEAST_DECREASE * abs(value)
        self.idle_renewals = 0 if lower else self.idle_renewals + 1
        self.value = min(self.value, value)
        self.idle, self.best = 0, self.violation

    def solve_set(self) -> None:
        """Solve the problem on a working set and update the decisions of all rows."""
        rows, complete = self.working_set()
        knots, slopes = self.problem.knots[rows], self.problem.slopes[rows]
        part = PiecewiseQP(self.matrix.part(rows), knots, slopes)
        share = 0.0 if complete else SET_VIOLATION_SHARE
        target = max(SET_TOLERANCE_SHARE * self._level(), share * self.violation)
        u, decision = self.u[rows], self.decision[rows]
        offset = decision - combine(part.values, u)
        steps = Descent(
            part, self.diagonal[rows], u.copy(), decision.copy(), target, self.left, offset
        )
        steps.run()
        change = steps.u - u
        moved = np.flatnonzero(change)
        self.u[rows], self.left = steps.u, steps.left
        # rounding errors of a sum are relative to the size of its coefficients
        unit = 0.5 * float(np.finfo(self.matrix.dtype).eps * self.diagonal.max())
        rounding = float(np.hypot(self.rounding, unit * np.linalg.norm(change)))
        if complete and not self._accurate(rounding):  # the next round would recompute it
            self.renew()
            return
        self.matrix.add_columns(rows[moved], change[moved], self.decision)
        self.rounding = rounding
        self.measure()
        self.idle = self.idle + 1 if self.violation >= self.best else 0
        if not len(moved):  # the next round would not move either
            self.idle = IDLE_ROUNDS + 1
        self.best = min(self.best, self.violation)

    def working_set(self) -> tuple[NDArray, bool]:
        """Return the rows of the next set, and whether it is complete."""
        up, down = _violations(self.u, self.decision, self.problem.knots, self.problem.slopes)
        most = self.matrix.most_part_rows
        at_zero, worst = self.u == 0, np.maximum(up, down)
        used, near = np.flatnonzero(~at_zero), np.flatnonzero(at_zero & (worst > -self.violation))
        share = int(np.clip(NEW_ROWS_SHARE * len(self.u), LEAST_NEW_ROWS, MOST_NEW_ROWS))
        room = most - len(used)
        new = min(max(share, len(used) // 2), room if room >= LEAST_NEW_ROWS else most)
        if len(near) <= min(new, room):
            return np.union1d(used, near), True
        half = new // 2
        added = [
            self._largest(np.where(at_zero & (side > 0), side, -np.inf), half)
            for side in (up, down)
        ]
        rows = np.union1d(used, np.concatenate(added))
        if len(rows) > most:
            rows = np.union1d(self._largest(up, most // 2), self._largest(down, most // 2))
        return rows, False

    def _largest(self, violation: NDArray, most: int) -> NDArray:
        """Return the rows with the largest violations."""
        violation = violation[self.order]
        rows = np.flatnonzero(violation > -np.inf)
        if len(rows) > most:
            rows = rows[np.argpartition(-violation[rows], most - 1)[:most]]
        return self.order[rows]


@compiled()
def _violations(u, decision, knots, slopes):
    """Return each row's gain from growing and from shrinking at the middle b, -inf if it cannot."""
    n = u.shape[0]
    up, down = np.empty(n), np.empty(n)
    top, low = -np.inf, np.inf
    for k in range(n):
        rise, fall = gains(u[k], knots[k], slopes[k])
        up[k], down[k] = rise - decision[k], decision[k] - fall
        top, low = max(top, up[k]), min(low, -down[k])
    middle = 0.5 * (top + low)
    return up - middle, down + middle


def solve_smo(
    problem: PiecewiseQP,
    start: Start = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair violates the optimality conditions by `tol`.

    `tol` is in units of f (libsvm's `eps`). A start need not be feasible. By default libsvm's
    ``max(10**7, 100 n)`` steps are allowed. The status is ``inaccurate`` if rounding allows no
    further step. Raises ValueError if the Gram matrix or the start is not finite.
    """
    _compile()
    problem = replace(
        problem,
        gram=problem.gram
        if isinstance(problem.gram, KernelMatrix)
        else np.ascontiguousarray(problem.gram),
        knots=np.ascontiguousarray(problem.knots, dtype=float),
        slopes=np.ascontiguousarray(problem.slopes, dtype=float),
    )
    gram = problem.gram
    in_sets = isinstance(gram, KernelMatrix)
    diagonal = np.array(gram.diagonal(), dtype=float)  # a copy: steps read it contiguously
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    u, decision = _started(problem, start)
    allowed = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    state = (WorkingSets if in_sets else Descent)(problem, diagonal, u, decision, tol, allowed)
    state.run()
    if state.violation <= tol:
        status = Status.OPTIMAL
    else:
        status = Status.INACCURATE if state.left > 0 else Status.ITERATION_LIMIT
    return problem.solution(
        *(state.u, state.decision, state.bias, allowed - state.left, status),
        route="SMO on working sets" if in_sets else "SMO",
    )


def _started(problem: PiecewiseQP, start: Start) -> tuple[NDArray, NDArray]:
    """Return a feasible u next to a start, and ``Ku``, taken from the start if that is feasible."""
    if start is None:
        return np.zeros(len(problem.gram)), np.zeros(len(problem.gram))
    given = start.u if isinstance(start, PiecewiseSolution) else start
    if not np.isfinite(given).all():
        raise ValueError("the start has values that are not finite")
    u = problem.feasible(given)
    if isinstance(start, PiecewiseSolution) and np.array_equal(u, given):
        return u, start.decision.copy()
    gram = problem.gram
    return u, gram.product(u) if isinstance(gram, KernelMatrix) else combine(gram, u)


@cache
def _compile() -> None:
    """Compile all numba functions before the first problem, so that later ones are timed right."""
    u = np.array([0.5, 0.5, -0.5, -0.5])
    knots, slopes = np.sort(np.column_stack([0 * u, 2 * u]), axis=1), -np.sign(u)[:, None]
    for dtype in (np.float32, np.float64):
        problem = PiecewiseQP(np.eye(4, dtype=dtype), knots, slopes)
        newton_steps(problem, u.copy(), combine(problem.values, u), budget=1e12)
        Descent(problem, np.ones(4), u.copy(), combine(problem.values, u), 1e-6, left=10).run()


def solve_to_gap(
    problem: PiecewiseQP,
    tol: float,
    gap_tolerance: float,
    start: Start = None,
    solve: Callable[[PiecewiseQP, Start, float], PiecewiseSolution] = solve_smo,
    factors: Sequence[float] = TOLERANCE_FACTORS,
) -> PiecewiseSolution:
    """Solve to a KKT tolerance, and to tighter ones (`factors`) until the relative gap is small.

    Returned is the solution with the smallest gap; its iterations are the sum of all attempts.
    """
    found = best = solve(problem, start, tol)
    iterations = found.iterations
    for factor in factors[1:]:
        exact = best.rounding <= gap_tolerance * max(abs(best.value), abs(best.bound))
        if best.gap <= gap_tolerance or found.status is not Status.OPTIMAL or not exact:
            break
        found = solve(problem, found, factor * tol)
        iterations += found.iterations
        scaled = problem.rescaled(found) if factor <= RESCALING_FACTOR else found
        best = min(best, found, scaled, key=_rank)
    if best.gap > gap_tolerance:
        best = min(best, problem.rescaled(best), key=_rank)
    if best.gap > gap_tolerance and np.isinf(problem.knots).any():
        found = solve(problem.inward(INWARD_SHARE), best, factors[-1] * tol)
        iterations += found.iterations
        moved = problem.solution(
            found.u, found.decision, found.bias, 0, found.status, route=found.route
        )
        best = min(best, problem.rescaled(moved), key=_rank)
    return replace(best, iterations=iterations)


def _rank(solution: PiecewiseSolution) -> tuple[float, float]:
    return solution.gap, -solution.bound  # without a dual bound all gaps are 1
