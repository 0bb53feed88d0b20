"""A `PiecewiseQP` whose matrix is not stored: solved on parts of it, which follow the support.

A part holds the rows in use (``u_i != 0``) and those at rest that violate the optimality conditions
most. Its matrix is one block of kernel values, on which a `Descent` goes on from where u stands,
the other rows being constants. What has changed then moves the decisions of all rows. Once few rows
at rest are as near to their violation as that of all rows is large, a part that holds them all is
complete: it is solved to the end. With too little memory for all rows in use a part holds those
that violate the conditions most (Joachims 1999; Lin 2001 proves that this converges).

Parts and changes are float32 where the kernel allows it. What that rounds is proportional to the
changes, so once ``Ku`` has been computed in float64, smaller and smaller changes keep its digits.
No solution is returned whose ``Ku`` misses float64 by more than a small share of the tolerance.

References
----------
C.-J. Lin: On the convergence of the decomposition method for support vector machines. IEEE
Transactions on Neural Networks 12(6), 2001.

Sequential minimal optimisation for `PiecewiseQP`: the fast route of the SVM and the RMM.

Each step moves one pair, ``u_i += t`` and ``u_j -= t``, beyond the minimum along it (successive
over-relaxation) or to the next knot. The pair is chosen by second order information (Fan, Chen and
Lin 2005, WSS 2). With pieces in place of boxes the RMM, whose dual (8) has three variables a row,
costs as much per step as the SVM: all three see the same ``(Ku)_i``, so one n-vector is the whole
gradient.

Steps need stored values (`descent`). A matrix that is not stored is solved by parts of it
(`parts`); one that is has a single part.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 6, 2005.

A `PiecewiseQP` solved until the relative duality gap is small, not only the violation of a row.

What each row misses of its optimality condition adds to the gap, times the slope of its loss: with
a large C a tolerance that is small for every decision leaves a large gap. Three means close it, the
second and the third where the first has met rounding errors:

1. a tighter tolerance;
2. the best multiple of w and b: a margin that is missed by a rounding error is met by a w that is
   larger by as little;
3. where decisions have a bound, which that would exceed, a w that keeps a distance from it.
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
    MIDDLE_SHARE,
    SINGLE_PRECISION_TOLERANCE,
    Descent,
    combine,
    compiled,
    gains,
    movable,
    newton_steps,
    optimality,
)

#: Rows at rest that join a part: a share of all, within bounds, or half as many as are in use. The
#: support of an RMM, which starts from the SVM's, may be five times as large.
NEW_ROWS_SHARE, LEAST_NEW_ROWS, MOST_NEW_ROWS = 0.125, 500, 3000

#: A part is solved to this share of the violation of all rows, a complete one to this share of
#: `tol`.
PART_VIOLATION_SHARE, PART_TOLERANCE_SHARE = 0.1, 0.5

#: Share of `tol` that the changes of ``Ku`` since it was float64 may have rounded at an end.
ROUNDING_SHARE = 1e-3

#: Rounds that may go by without a smaller violation before ``Ku`` is renewed, and such renewals
#: before rounding is held to be the reason: then float64 takes the place of float32, or it ends.
IDLE_ROUNDS, IDLE_RENEWALS = 20, 3

#: Relative decrease of the objective between two renewals that is not one of rounding.
LEAST_DECREASE = 1e-12


@dataclass
class GrowingParts:
    """Steps on parts: where they stand, as in `Descent`.

    `rounding` is what `decision` is expected to miss ``Ku`` by.
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
    store: NDArray | None = None

    def __post_init__(self) -> None:
        assert isinstance(self.problem.gram, KernelMatrix)
        self.matrix = self.problem.gram
        self.order = np.random.RandomState(0).permutation(len(self.u))  # among equal violations
        self._start_counting()

    def _start_counting(self) -> None:
        self.best, self.value = np.inf, np.inf
        self.idle, self.idle_renewals = 0, 0

    def run(self) -> None:
        """Go on until no pair violates the optimality conditions, or no step or time is left."""
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
                self.solve_part()

    def _accurate(self, rounding: float) -> bool:
        return rounding <= ROUNDING_SHARE * self.tol

    def _level(self) -> float:
        """Return the violation at which ``Ku`` has to be renewed."""
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

    def solve_part(self) -> None:
        """Take steps among the rows of a part, and move the decisions of all."""
        rows, complete = self.part()
        knots, slopes = self.problem.knots[rows], self.problem.slopes[rows]
        part = PiecewiseQP(self.matrix.part(rows), knots, slopes)
        share = 0.0 if complete else PART_VIOLATION_SHARE
        target = max(PART_TOLERANCE_SHARE * self._level(), share * self.violation)
        u, decision = self.u[rows], self.decision[rows]
        steps = Descent(part, self.diagonal[rows], u.copy(), decision.copy(), target, self.left)
        steps.offset = decision - combine(part.values, u)
        steps.store, self.store = self.store, None  # one holds it, who may exchange it
        steps.run()
        self.store = steps.store
        change = steps.u - u
        moved = np.flatnonzero(change)
        self.u[rows], self.left = steps.u, steps.left
        # what sums of rounded values lose, relative to the size of their coefficients
        unit = 0.5 * float(np.finfo(self.matrix.dtype).eps * self.diagonal.max())
        rounding = float(np.hypot(self.rounding, unit * np.linalg.norm(change)))
        if complete and not self._accurate(rounding):  # it would be renewed next
            self.renew()
            return
        self.matrix.add_columns(rows[moved], change[moved], self.decision)
        self.rounding = rounding
        self.measure()
        self.idle = 0 if self.violation < self.best else self.idle + 1
        if not len(moved):  # nor will it in the next round
            self.idle = IDLE_ROUNDS + 1
        self.best = min(self.best, self.violation)

    def part(self) -> tuple[NDArray, bool]:
        """Return the rows to go on with, and whether they are all that may have to move."""
        up, down = _misses(self.u, self.decision, self.problem.knots, self.problem.slopes)
        most = self.matrix.most_part_rows
        resting, miss = self.u == 0, np.maximum(up, down)
        used, near = np.flatnonzero(~resting), np.flatnonzero(resting & (miss > -self.violation))
        share = int(np.clip(NEW_ROWS_SHARE * len(self.u), LEAST_NEW_ROWS, MOST_NEW_ROWS))
        room = most - len(used)
        new = min(max(share, len(used) // 2), room if room >= LEAST_NEW_ROWS else most)
        if len(near) <= min(new, room):
            return np.union1d(used, near), True
        half = new // 2
        worst = [
            self._largest(np.where(resting & (side > 0), side, -np.inf), half)
            for side in (up, down)
        ]
        rows = np.union1d(used, np.concatenate(worst))
        if len(rows) > most:
            rows = np.union1d(self._largest(up, most // 2), self._largest(down, most // 2))
        return rows, False

    def _largest(self, miss: NDArray, most: int) -> NDArray:
        """Return the rows that miss most of the optimality conditions."""
        miss = miss[self.order]
        rows = np.flatnonzero(miss > -np.inf)
        if len(rows) > most:
            rows = rows[np.argpartition(-miss[rows], most - 1)[:most]]
        return self.order[rows]


@compiled()
def _misses(u, decision, knots, slopes):
    """Return what each row gains by growing and by shrinking, at the middle b; -inf for neither."""
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
    start: PiecewiseSolution | NDArray | None = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair violates the optimality conditions by `tol`.

    Parameters
    ----------
    problem : PiecewiseQP
    start : PiecewiseSolution or ndarray of shape (n,), optional
        A neighbouring solution, or its u; it need not be feasible.
    tol : float, default=1e-5
        Tolerance of the KKT conditions, in units of f (libsvm's `eps`).
    max_iter : int, optional
        Steps; by default libsvm's ``max(10**7, 100 n)``.

    Returns
    -------
    PiecewiseSolution
        Status ``optimal``, ``iteration_limit``, or ``inaccurate`` where rounding allows no
        further step.

    Raises
    ------
    ValueError
        If the Gram matrix or the start is not finite.
    """
    _compile()
    knots = np.ascontiguousarray(problem.knots, dtype=float)
    slopes = np.ascontiguousarray(problem.slopes, dtype=float)
    problem = replace(problem, knots=knots, slopes=slopes)
    if not isinstance(problem.gram, KernelMatrix):
        problem = replace(problem, gram=np.ascontiguousarray(problem.gram))
    diagonal = _diagonal(problem.gram)
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    u, decision = _started(problem, start)
    allowed = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    steps = GrowingParts if isinstance(problem.gram, KernelMatrix) else Descent
    state = steps(problem, diagonal, u, decision, tol, allowed)
    state.run()
    status = _status(state.violation <= tol, state.left <= 0)
    return problem.solution(state.u, state.decision, state.bias, allowed - state.left, status)


def _diagonal(gram: NDArray | KernelMatrix) -> NDArray:
    """Return ``k(x, x)`` of all rows."""
    return gram.diagonal() if isinstance(gram, KernelMatrix) else np.diagonal(gram).astype(float)


def _product(gram: NDArray | KernelMatrix, u: NDArray) -> NDArray:
    """Return ``Ku``."""
    return gram.product(u) if isinstance(gram, KernelMatrix) else combine(gram, u)


def _started(
    problem: PiecewiseQP, start: PiecewiseSolution | NDArray | None
) -> tuple[NDArray, NDArray]:
    """Return a feasible u next to a start, and ``Ku``, which a solution need not compute again."""
    if start is None:
        return np.zeros(len(problem.gram)), np.zeros(len(problem.gram))
    given = start.u if isinstance(start, PiecewiseSolution) else start
    if not np.isfinite(given).all():
        raise ValueError("the start has values that are not finite")
    u = problem.feasible(given)
    if isinstance(start, PiecewiseSolution) and np.array_equal(u, given):
        return u, start.decision.copy()
    return u, _product(problem.gram, u)


@cache
def _compile() -> None:
    """Compile what any problem may need, before the first: later ones are timed."""
    u = np.array([0.5, 0.5, -0.5, -0.5])
    knots, slopes = np.sort(np.column_stack([0 * u, 2 * u]), axis=1), -np.sign(u)[:, None]
    for dtype in (np.float32, np.float64):
        problem = PiecewiseQP(np.eye(4, dtype=dtype), knots, slopes)
        newton_steps(problem, u.copy(), combine(problem.values, u), budget=1e12)
        for tol in (SINGLE_PRECISION_TOLERANCE, SINGLE_PRECISION_TOLERANCE / 2):
            state = Descent(problem, np.ones(4), u.copy(), combine(problem.values, u), tol, left=10)
            state.measure()
            state.solve_part(movable(u, state.decision, knots, slopes, MIDDLE_SHARE))


def _status(solved: bool, exhausted: bool) -> Status:
    if solved:
        return Status.OPTIMAL
    return Status.ITERATION_LIMIT if exhausted else Status.INACCURATE


#: Factors of the tolerance of the KKT conditions that are tried one after the other.
TOLERANCE_FACTORS = tuple(8.0**-k for k in range(8))

#: Factor from which on the best multiple of w and b is taken. Down to it more accurate multipliers
#: close the gap, which improve the predictions too.
RESCALING_FACTOR = 8.0**-3

#: Share of a bound on the decisions by which they keep away from it in the last attempt. Its effect
#: on the objective is of the same order.
INWARD_SHARE = 1e-6

Start = PiecewiseSolution | NDArray | None


def solve_to_gap(
    problem: PiecewiseQP,
    tol: float,
    gap_tolerance: float,
    start: Start = None,
    solve: Callable[[PiecewiseQP, Start, float], PiecewiseSolution] = solve_smo,
    factors: Sequence[float] = TOLERANCE_FACTORS,
) -> PiecewiseSolution:
    """Solve to a tolerance of the KKT conditions, and to tighter ones until the gap is small.

    Parameters
    ----------
    problem : PiecewiseQP
    tol : float
        Tolerance of the KKT conditions, in units of f.
    gap_tolerance : float
        Largest relative duality gap.
    start : PiecewiseSolution or ndarray of shape (n,), optional
        A neighbouring solution, or its u; it need not be feasible.
    solve : callable, default=solve_smo
        Takes the problem, a start and a tolerance.
    factors : sequence of float, optional
        Factors of `tol`, descending from 1.

    Returns
    -------
    PiecewiseSolution
        The one with the smallest gap; its iterations are those of all.
    """
    found = best = solve(problem, start, tol)
    iterations = found.iterations
    for factor in factors[1:]:
        if best.gap <= gap_tolerance or found.status is not Status.OPTIMAL:
            break
        found = solve(problem, found, factor * tol)
        iterations += found.iterations
        scaled = problem.rescaled(found) if factor <= RESCALING_FACTOR else found
        best = _better(best, found, scaled)
    if best.gap > gap_tolerance:
        best = _better(best, problem.rescaled(best))
    if best.gap > gap_tolerance and np.isinf(problem.knots).any():
        found = solve(problem.inward(INWARD_SHARE), best, factors[-1] * tol)
        iterations += found.iterations
        moved = problem.solution(found.u, found.decision, found.bias, 0, found.status)
        best = _better(best, problem.rescaled(moved))
    return replace(best, iterations=iterations)


def _better(*solutions: PiecewiseSolution) -> PiecewiseSolution:
    """Return the solution with the smallest relative gap."""
    return min(solutions, key=lambda each: each.gap)
