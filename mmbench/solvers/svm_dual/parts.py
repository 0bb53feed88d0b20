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
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual.descent import Descent, combine, optimality
from mmbench.solvers.svm_dual.newton_steps import compiled
from mmbench.solvers.svm_dual.pairwise import gains
from mmbench.solvers.svm_dual.problem import PiecewiseQP

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
