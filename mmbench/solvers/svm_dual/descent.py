"""Rounds of pairwise steps and Newton steps on a stored matrix.

Most rows rest on a knot that they will not leave (Joachims 1999, shrinking). Rounds of steps
therefore go on among the other rows, on a copy of their part of K that stays in the cache; the
optimality conditions are those of all rows, on K itself.

References
----------
T. Joachims: Making large-scale SVM learning practical. Advances in Kernel Methods, 1999.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.kernels.matrix import accumulate
from mmbench.solvers.svm_dual.newton_steps import compiled, newton_steps
from mmbench.solvers.svm_dual.pairwise import descend, gains
from mmbench.solvers.svm_dual.problem import PiecewiseQP

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


@dataclass
class Descent:
    """Steps on a stored matrix: where they stand, u and ``Ku`` of all rows, and what may be spent.

    `left` counts steps, `work` the kernel values read since a part was last cut out, `budget` those
    that Newton steps may still cost. `refutations` counts the renewals of ``Ku`` that brought back
    a violation above the tolerance. `offset` is what other rows add to ``Ku``.
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
    offset: NDArray | float = 0.0

    def run(self) -> None:
        """Go on until no pair violates the optimality conditions, or no step or time is left."""
        self.measure()
        while self.violation > self.tol and self.left > 0 and self.refutations < MOST_REFUTATIONS:
            if time_is_up():
                self.measure(afresh=True)
                break
            rows = self.part()
            if rows is not None:
                self.solve_part(rows)
            elif not self.step_among_all():
                break

    def measure(self, afresh: bool = False) -> None:
        """Set b and the violation; ``Ku``, the sum of all its changes, is renewed before an end."""
        if afresh:
            self.decision = self.offset + combine(self.problem.values, self.u)
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
        rows = movable(self.u, self.decision, knots, slopes, MIDDLE_SHARE)
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
        self.decision += combine(self.problem.values, change)
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
        store = self.store
        if store is None or store.size < len(rows) ** 2 or store.dtype != dtype:
            largest = max(len(rows), int(LARGEST_PART_SHARE * len(self.u)))
            store = self.store = None  # the old goes before the new comes
            store = self.store = np.empty(largest**2, dtype)  # taken as it is written
        out = store[: len(rows) ** 2].reshape(len(rows), len(rows))
        _copy_square(gram, rows, out)
        return out


@compiled()
def _copy_square(gram, rows, out):
    for i in range(rows.shape[0]):
        row, to = gram[rows[i]], out[i]
        for k in range(rows.shape[0]):
            to[k] = row[np.uintp(rows[k])]  # unsigned: no test for negative numbers


def combine(gram: NDArray, u: NDArray) -> NDArray:
    """Return ``gram @ u`` in float64, reading only the rows where u is not zero."""
    rows, out = np.flatnonzero(u), np.zeros(len(u))
    accumulate(gram, rows, u[rows], out)
    return out


@compiled()
def movable(u, decision, knots, slopes, near):
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
