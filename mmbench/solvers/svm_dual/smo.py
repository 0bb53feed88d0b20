"""Sequential minimal optimisation for `PiecewiseQP`: the fast route of the SVM and the RMM.

Each step moves one pair, ``u_i += t`` and ``u_j -= t``, to the minimum along it or to the next
knot. The pair is chosen by second order information (Fan, Chen and Lin 2005, WSS 2). With pieces
in place of boxes the RMM, whose dual (8) has three variables a row, costs as much per step as the
SVM: all three see the same ``(Ku)_i``, so one n-vector is the whole gradient.

Most rows rest on a knot that they will not leave (Joachims 1999, shrinking). Rounds of steps
therefore go on among the other rows, on a copy of their part of K that stays in the cache; the
optimality conditions are those of all rows, on K itself.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 6, 2005.
T. Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.svm_dual.newton_steps import compiled, newton_steps
from mmbench.solvers.svm_dual.pairwise import descend, gains
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution

#: Pairwise steps come in chunks of as many as the part has rows, at least so many; of a quarter of
#: that among all rows, so that a part is found early. Between chunks Ctrl-C is heard and Newton
#: steps are taken; after so many chunks the rows of the part are chosen anew.
LEAST_CHUNK_STEPS, CHUNKS_PER_PART = 1000, 4

#: A part is cut out if it has at most this share of the rows, and once steps have read this many
#: kernel values for each that it holds: a short training is over before a copy would pay.
LARGEST_PART_SHARE, READS_PER_PART_VALUE = 0.8, 0.5

#: Rows at a knot join a part if they violate the optimality conditions at some b in this middle
#: share of the interval that is left for b.
MIDDLE_SHARE = 0.25

#: A part is solved to this share of the violation of all rows, or of `tol`, if that is more.
PART_VIOLATION_SHARE, PART_TOLERANCE_SHARE = 0.05, 0.9

#: From this `tol` on a part is held in float32. What that rounds concerns the steps of one round
#: only, after which ``Ku`` follows from K itself.
SINGLE_PRECISION_TOLERANCE = 1e-4

#: Rounds on parts that may go by without a smaller violation; then come steps among all rows.
IDLE_ROUNDS = 3

#: Times that ``Ku`` computed afresh may refute a solution: the violation is then one of rounding.
MOST_REFUTATIONS = 20


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
    gram = np.ascontiguousarray(problem.gram)
    diagonal = np.diagonal(gram).astype(float)
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    knots = np.ascontiguousarray(problem.knots, dtype=float)
    slopes = np.ascontiguousarray(problem.slopes, dtype=float)
    problem = replace(problem, gram=gram, knots=knots, slopes=slopes)
    u, decision = _started(problem, start)
    allowed = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    state = _State(problem, diagonal, u, decision, tol, allowed)
    state.measure()
    while state.violation > tol and state.left > 0 and state.refutations < MOST_REFUTATIONS:
        rows = state.part()
        if rows is not None:
            state.solve_part(rows)
        elif not state.step_among_all():
            break
    status = _status(state.violation <= tol, state.left <= 0)
    return problem.solution(state.u, state.decision, state.bias, allowed - state.left, status)


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
    return u, combine(problem.gram, u)


@cache
def _compile() -> None:
    """Compile what any problem may need, before the first: later ones are timed."""
    u = np.array([0.5, 0.5, -0.5, -0.5])
    knots, slopes = np.sort(np.column_stack([0 * u, 2 * u]), axis=1), -np.sign(u)[:, None]
    for dtype in (np.float32, np.float64):
        problem = PiecewiseQP(np.eye(4, dtype=dtype), knots, slopes)
        newton_steps(problem, u.copy(), combine(problem.gram, u), budget=1e12)
        for tol in (SINGLE_PRECISION_TOLERANCE, SINGLE_PRECISION_TOLERANCE / 2):
            state = _State(problem, np.ones(4), u.copy(), combine(problem.gram, u), tol, left=10)
            state.measure()
            state.solve_part(_movable(u, state.decision, knots, slopes, MIDDLE_SHARE))


def _status(solved: bool, exhausted: bool) -> Status:
    if solved:
        return Status.OPTIMAL
    return Status.ITERATION_LIMIT if exhausted else Status.INACCURATE


@dataclass
class _State:
    """Where a solution stands: u, ``Ku`` of all rows, and what may be spent.

    `left` counts steps, `work` the kernel values read since a part was last cut out, `budget` those
    that Newton steps may still cost. `refutations` counts the renewals of ``Ku`` that brought back
    a violation above the tolerance.
    """

    problem: PiecewiseQP
    diagonal: NDArray
    u: NDArray
    decision: NDArray
    tol: float
    left: int
    bias: float = 0.0
    violation: float = np.inf
    best: float = np.inf
    patience: int = IDLE_ROUNDS
    work: float = 0.0
    budget: float = 0.0
    refutations: int = 0
    store: NDArray | None = None

    def measure(self, afresh: bool = False) -> None:
        """Set b and the violation; ``Ku``, the sum of all its changes, is renewed before an end."""
        if afresh:
            self.decision = combine(self.problem.gram, self.u)
        knots, slopes = self.problem.knots, self.problem.slopes
        self.bias, self.violation = optimality(self.u, self.decision, knots, slopes)
        solved = self.violation <= self.tol
        if not afresh and self.work and (solved or self.left <= 0):
            self.measure(afresh=True)
            self.refutations += solved and self.violation > self.tol

    def step_among_all(self) -> bool:
        """Take a chunk of steps among all rows; return whether there was one to take."""
        chunk = min(max(len(self.u), LEAST_CHUNK_STEPS) // CHUNKS_PER_PART, self.left)
        done = self._chunk(self.problem, self.diagonal, self.u, self.decision, self.tol, chunk)
        self.measure(afresh=done == 0)
        return done > 0 or self.violation <= self.tol

    def part(self) -> NDArray | None:
        """Return the rows to go on with, None for all."""
        if not self.patience:
            return None
        knots, slopes = self.problem.knots, self.problem.slopes
        rows = _movable(self.u, self.decision, knots, slopes, MIDDLE_SHARE)
        small = len(rows) <= LARGEST_PART_SHARE * len(self.u)
        worth = small and READS_PER_PART_VALUE * len(rows) ** 2 <= self.work
        return rows if worth and len(rows) > 1 else None

    def solve_part(self, rows: NDArray) -> None:
        """Take some chunks of steps among some rows, fewer if they are solved before."""
        part = PiecewiseQP(self._cut(rows), self.problem.knots[rows], self.problem.slopes[rows])
        diagonal, u, decision = self.diagonal[rows], self.u[rows], self.decision[rows]
        target = max(PART_TOLERANCE_SHARE * self.tol, PART_VIOLATION_SHARE * self.violation)
        self.work = 0.0
        for _ in range(CHUNKS_PER_PART):
            chunk = min(max(len(rows), LEAST_CHUNK_STEPS), self.left)
            if self._chunk(part, diagonal, u, decision, target, chunk) < chunk:
                break
        change = np.zeros(len(self.u))
        change[rows] = u - self.u[rows]
        self.u[rows] = u
        self.decision += combine(self.problem.gram, change)
        self.measure()
        self.patience = IDLE_ROUNDS if self.violation < self.best else self.patience - 1
        self.best = min(self.best, self.violation)

    def _chunk(
        self,
        problem: PiecewiseQP,
        diagonal: NDArray,
        u: NDArray,
        decision: NDArray,
        tol: float,
        chunk: int,
    ) -> int:
        """Take up to `chunk` steps in place, and Newton steps if they are not enough."""
        arguments = diagonal, u, decision, problem.knots, problem.slopes, tol, chunk
        done = descend(problem.gram, *arguments)
        self.left -= done
        self.work += float(done * len(u))
        self.budget += float(done * len(u))
        if done == chunk:  # not there yet: Newton steps may cost as much as these steps did
            self.budget = newton_steps(problem, u, decision, self.budget)
        return done

    def _cut(self, rows: NDArray) -> NDArray:
        """Return the Gram matrix of some rows, in memory that every part of this solution uses."""
        gram = self.problem.gram
        dtype = np.dtype(np.float32 if self.tol >= SINGLE_PRECISION_TOLERANCE else gram.dtype)
        if self.store is None or self.store.size < len(rows) ** 2:
            self.store = np.empty(len(rows) ** 2, dtype)
        out = self.store[: len(rows) ** 2].reshape(len(rows), len(rows))
        _copy_square(gram, rows, out)
        return out


@compiled()
def _copy_square(gram, rows, out):
    for i in range(rows.shape[0]):
        row, to = gram[rows[i]], out[i]
        for k in range(rows.shape[0]):
            to[k] = row[np.uintp(rows[k])]  # unsigned: no test for negative numbers


@compiled()
def combine(gram, u):
    """Return ``gram @ u`` in float64, reading only the rows where u is not zero, four at a time."""
    out, rows = np.zeros(u.shape[0]), np.flatnonzero(u)
    whole = rows.shape[0] // 4 * 4
    for s in range(0, whole, 4):
        i, j, k, m = rows[s], rows[s + 1], rows[s + 2], rows[s + 3]
        a, b, c, d = gram[i], gram[j], gram[k], gram[m]
        for p in range(out.shape[0]):
            out[p] += u[i] * a[p] + u[j] * b[p] + (u[k] * c[p] + u[m] * d[p])
    for i in rows[whole:]:
        row = gram[i]
        for p in range(out.shape[0]):
            out[p] += u[i] * row[p]
    return out


@compiled()
def _movable(u, decision, knots, slopes, near):
    """Return the rows inside a piece, and those at a knot that may leave it.

    These are the ones that would gain by it at some b in the middle `near` of what is left for b.
    """
    n = u.shape[0]
    rise, fall = np.empty(n), np.empty(n)
    top, low = -np.inf, np.inf
    for k in range(n):
        rise[k], fall[k] = gains(u[k], knots[k], slopes[k])
        rise[k] -= decision[k]
        fall[k] -= decision[k]
        top, low = max(top, rise[k]), min(low, fall[k])
    middle, reach = 0.5 * (top + low), 0.5 * near * (top - low)
    inside = rise == fall
    return np.flatnonzero(inside | (rise >= middle - reach) | (fall <= middle + reach))


@compiled()
def optimality(u, decision, knots, slopes):
    """Return b (mean over rows inside a piece, else the middle of its interval) and the violation.

    The violation is the largest gain minus the smallest loss, never negative.
    """
    total, inside = 0.0, 0
    top, low = -np.inf, np.inf
    for k in range(u.shape[0]):
        rise, fall = gains(u[k], knots[k], slopes[k])
        top, low = max(top, rise - decision[k]), min(low, fall - decision[k])
        if rise == fall:
            total += rise - decision[k]
            inside += 1
    # no row may grow, or none may shrink: every b on one side is a multiplier
    top, low = (top if top > -np.inf else low), (low if low < np.inf else top)
    bias = total / inside if inside else 0.5 * (top + low)
    return bias, max(top - low, 0.0)
