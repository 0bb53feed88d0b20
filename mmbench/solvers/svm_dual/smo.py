"""Sequential minimal optimisation for `PiecewiseQP`: the default route of kernel machines.

=====================  ==========================================  ================================
route                  condition                                   cost
=====================  ==========================================  ================================
SMO                    the Gram matrix is stored                   n kernel values read per step;
                                                                   n x n values in memory
SMO on working sets    the Gram matrix is not stored               kernel values of the working
                       (`KernelMatrix`): more than 3000 rows or    sets, and columns of K for the
                       not enough memory                           u_i that change
=====================  ==========================================  ================================

In the quadratic term of the RMM's dual (8), the three variables of a row occur only as u_i. A step
of the RMM therefore costs as much as a step of the SVM: the costs of u_i only have more pieces. The
script benchmarks/rmm_growth.py measures both routes; benchmarks/rmm_memory.py measures SMO on
working sets with little memory.

A working set contains the rows with ``u_i != 0`` and the rows with ``u_i = 0`` that violate the
optimality conditions most. `Descent` solves the restricted problem of the working set, in which all
other u_i are fixed. The change of u then changes the decisions of all rows. If all rows with
``u_i = 0`` that are close to a violation fit in the working set, the working set is complete, and
the restricted problem is solved to the final tolerance. If the rows with ``u_i != 0`` do not fit in
memory, a working set consists of the worst violators (Joachims 1999; Lin 2001 proves convergence).

Submatrices of working sets and changes of ``Ku`` are float32 if the kernel allows it. Their
rounding errors are proportional to the change of u. After ``Ku`` has been computed in float64, the
changes become smaller and smaller, and so do the rounding errors that they add to ``Ku``. In a
solution these errors are at most a small fraction of the tolerance.

`solve_to_gap` continues until the relative duality gap is small. The contribution of a row to the
gap is its violation times the slope of its loss; with a large C a small violation leads to a large
gap. The gap is reduced by three methods in turn. (1) The tolerance is tightened. (2) w and b are
multiplied by the factor that minimises the objective: a slightly larger w satisfies margins that
were violated by rounding errors. (3) If decisions are bounded and the larger w exceeds the bound,
the problem is solved with a slightly smaller bound.

References
----------
C.-J. Lin: On the convergence of the decomposition method for support vector machines. IEEE
Transactions on Neural Networks 12(6), 2001.
T. Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.steps import (
    Descent,
    combine,
    gains,
    newton_steps,
    optimality,
)

#: Number of rows with ``u_i = 0`` that are added to a working set: a fraction of all rows, its
#: minimum and its maximum. Half the number of rows with ``u_i != 0`` is used if it is larger, since
#: an RMM that starts from the SVM's solution may have five times as many support vectors.
NEW_ROWS_SHARE, LEAST_NEW_ROWS, MOST_NEW_ROWS = 0.125, 500, 3000

#: Tolerance on a working set as a fraction of the violation over all rows, and tolerance on a
#: complete working set as a fraction of `tol`.
SET_VIOLATION_SHARE, SET_TOLERANCE_SHARE = 0.1, 0.5

#: Upper bound on the rounding error of ``Ku`` in a solution, as a fraction of `tol`.
ROUNDING_SHARE = 1e-3

#: Number of rounds without a decrease of the violation after which ``Ku`` is recomputed; and number
#: of recomputations without a decrease of the objective after which float64 replaces float32 or, in
#: float64, the run ends.
IDLE_ROUNDS, IDLE_RENEWALS = 20, 3

#: Lower bound on the relative decrease of the objective between two recomputations that counts as a
#: decrease; smaller changes may be rounding errors.
LEAST_DECREASE = 1e-12

#: Factors by which the KKT tolerance is multiplied, tried in turn.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

#: w and b are rescaled if the tolerance factor is at most this value. With larger factors only more
#: accurate multipliers reduce the gap, which also improves the predictions.
RESCALING_FACTOR = 8.0**-3

#: Relative reduction of the bound on the decisions in the last attempt. The objective changes by a
#: relative amount of the same order.
INWARD_SHARE = 1e-6

Start = PiecewiseSolution | NDArray | None


@dataclass
class WorkingSets(Descent):
    """State of SMO on working sets of rows.

    `rounding` is the expected rounding error of `decision`.
    """

    rounding: float = 0.0

    def __post_init__(self) -> None:
        assert isinstance(self.problem.gram, KernelMatrix)
        self.matrix = self.problem.gram
        # rows with equal violations are in random order
        self.order = np.random.RandomState(0).permutation(len(self.u))
        self._start_counting()

    def _start_counting(self) -> None:
        self.best, self.value = np.inf, np.inf
        self.idle, self.idle_renewals = 0, 0

    def run(self) -> None:
        """Solve working sets until the violation is within `tol` or a limit is reached."""
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
        """Return the violation below which ``Ku`` must be recomputed in float64."""
        return max(self.tol, self.rounding)

    def measure(self) -> None:
        """Recompute b and the violation."""
        rise, fall = gains(self.u, self.problem.knots, self.problem.slopes)
        self.bias, self.violation = optimality(self.decision, rise, fall)

    def renew(self) -> None:
        """Recompute ``Ku`` in float64, and count recomputations without a decrease."""
        self.decision, self.rounding = self.matrix.product(self.u), 0.0
        self.measure()
        value = 0.5 * float(self.u @ self.decision) + self.problem.cost(self.u)
        lower = self.value - value > LEAST_DECREASE * abs(value)
        self.idle_renewals = 0 if lower else self.idle_renewals + 1
        self.value = min(self.value, value)
        self.idle, self.best = 0, self.violation

    def solve_set(self) -> None:
        """Solve the restricted problem of a working set and update the decisions of all rows."""
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
        # rounding errors of a sum are proportional to its coefficients
        unit = 0.5 * float(np.finfo(self.matrix.dtype).eps * self.diagonal.max())
        rounding = float(np.hypot(self.rounding, unit * np.linalg.norm(change)))
        if complete and not self._accurate(rounding):  # the next round would recompute ``Ku``
            self.renew()
            return
        self.matrix.add_columns(rows[moved], change[moved], self.decision)
        self.rounding = rounding
        self.measure()
        self.idle = self.idle + 1 if self.violation >= self.best else 0
        if not len(moved):  # the next round would not change u either
            self.idle = IDLE_ROUNDS + 1
        self.best = min(self.best, self.violation)

    def working_set(self) -> tuple[NDArray, bool]:
        """Return the rows of the next working set, and whether it is complete."""
        # violations of each row if u_i increases and if u_i decreases, at the middle b; -inf if
        # u_i is at its bound
        rise, fall = gains(self.u, self.problem.knots, self.problem.slopes)
        up, down = rise - self.decision, self.decision - fall
        middle = 0.5 * (up.max() - down.max())
        up, down = up - middle, down + middle
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
        """Return the `most` rows with the largest violations."""
        violation = violation[self.order]
        rows = np.flatnonzero(violation > -np.inf)
        if len(rows) > most:
            rows = rows[np.argpartition(-violation[rows], most - 1)[:most]]
        return self.order[rows]


def solve_smo(
    problem: PiecewiseQP,
    start: Start = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair of rows violates the KKT conditions by more than `tol`.

    `tol` is in units of f (libsvm's `eps`). `start` need not be feasible. The default of `max_iter`
    is libsvm's ``max(10**7, 100 n)`` steps. The status is ``inaccurate`` if rounding errors prevent
    further steps. Raises ValueError if the Gram matrix or the start is not finite.
    """
    gram, in_sets = problem.gram, isinstance(problem.gram, KernelMatrix)
    problem = replace(
        problem,
        gram=gram if isinstance(gram, KernelMatrix) else np.ascontiguousarray(gram),
        knots=np.ascontiguousarray(problem.knots, dtype=float),
        slopes=np.ascontiguousarray(problem.slopes, dtype=float),
    )
    diagonal = np.array(gram.diagonal(), dtype=float)  # a contiguous copy is faster to read
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
    """Return a feasible u near `start`, and ``Ku``, which is copied if `start` is feasible."""
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


def compile_steps() -> None:
    """Compile the Numba functions of `Descent`, so that no measured time includes compilation."""
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
    """Solve to the KKT tolerance ``factor * tol`` for each of `factors`, until the gap is small.

    Returns the solution with the smallest relative gap, with the iterations of all attempts.
    """
    solution = best = solve(problem, start, tol)
    iterations = solution.iterations
    for factor in factors[1:]:
        exact = best.rounding <= gap_tolerance * max(abs(best.value), abs(best.bound))
        if best.gap <= gap_tolerance or solution.status is not Status.OPTIMAL or not exact:
            break
        solution = solve(problem, solution, factor * tol)
        iterations += solution.iterations
        scaled = problem.rescaled(solution) if factor <= RESCALING_FACTOR else solution
        best = min(best, solution, scaled, key=_rank)
    if best.gap > gap_tolerance:
        best = min(best, problem.rescaled(best), key=_rank)
    if best.gap > gap_tolerance and np.isinf(problem.knots).any():
        solution = solve(problem.inward(INWARD_SHARE), best, factors[-1] * tol)
        iterations += solution.iterations
        moved = problem.solution(
            solution.u, solution.decision, solution.bias, 0, solution.status, route=solution.route
        )
        best = min(best, problem.rescaled(moved), key=_rank)
    return replace(best, iterations=iterations)


def _rank(solution: PiecewiseSolution) -> tuple[float, float]:
    return solution.gap, -solution.bound  # if the dual value is 0, all gaps are 1
