"""A `PiecewiseQP` whose matrix is not stored: solved on parts of it, which follow the support.

A part holds the rows in use (``u_i != 0``) and those at rest that violate the optimality conditions
most. Its matrix is one block of kernel values, on which a `Descent` goes on from where u stands,
the other rows being constants. What has changed then moves the decisions of all rows. With too
little memory for all rows in use a part holds those that violate the conditions most (Joachims
1999; Lin 2001 proves that this converges).

Parts and changes are float32 where the kernel allows it. What that rounds is proportional to the
changes, so once ``Ku`` has been computed in float64, smaller and smaller changes keep its digits.
No solution is returned before ``Ku`` of all rows is float64.

References
----------
C.-J. Lin: On the convergence of the decomposition method for support vector machines. IEEE
Transactions on Neural Networks 12(6), 2001.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual.descent import Descent, combine, optimality
from mmbench.solvers.svm_dual.newton_steps import compiled
from mmbench.solvers.svm_dual.pairwise import gains
from mmbench.solvers.svm_dual.problem import PiecewiseQP

#: Rows at rest that join a part: a share of all, within bounds.
NEW_ROWS_SHARE, LEAST_NEW_ROWS, MOST_NEW_ROWS = 0.125, 500, 3000

#: Rows of a part, at most: beyond, steps among them cost more than they bring.
MOST_PART_ROWS = 10_000

#: A part is solved to this share of the violation of all rows, or of `tol`, if that is more.
PART_VIOLATION_SHARE, PART_TOLERANCE_SHARE = 0.1, 0.5

#: What sums of float32 values lose, relative to the size of their coefficients: independent errors.
SINGLE_ROUNDING = 0.5 * float(np.finfo(np.float32).eps)

#: Rounds that may go by without a smaller violation before ``Ku`` is renewed, and such renewals
#: before rounding is held to be the reason: then float64 takes the place of float32, or it ends.
IDLE_ROUNDS, IDLE_RENEWALS = 20, 3

#: Relative decrease of the objective between two renewals that is not one of rounding.
LEAST_DECREASE = 1e-12


@dataclass
class GrowingParts:
    """Steps on parts: where they stand, as in `Descent`.

    `renewed` says whether `decision` is ``Ku`` in float64, `summed` whether it has never been since
    u = 0.
    """

    problem: PiecewiseQP
    diagonal: NDArray
    u: NDArray
    decision: NDArray
    tol: float
    left: int
    bias: float = 0.0
    violation: float = np.inf
    renewed: bool = True
    store: NDArray | None = None

    def __post_init__(self) -> None:
        assert isinstance(self.problem.gram, KernelMatrix)
        self.matrix = self.problem.gram
        self.order = np.random.RandomState(0).permutation(len(self.u))  # among equal violations
        self._start_counting()

    def _start_counting(self) -> None:
        self.summed = self.matrix.dtype == np.float32 and not self.u.any()
        self.best, self.value = np.inf, np.inf
        self.idle, self.idle_renewals = 0, 0

    def run(self) -> None:
        """Go on until no pair violates the optimality conditions, or no step or time is left."""
        self.measure()
        while self.violation > self.tol or not self.renewed:
            spent = self.left <= 0 or time_is_up()
            if self.violation <= self._level() or self.idle > IDLE_ROUNDS or spent:
                if self.renewed and spent:
                    break
                self.renew()
            elif self.idle_renewals > IDLE_RENEWALS:
                if self.matrix.dtype == np.float64:
                    break
                self.matrix.to_double()
                self._start_counting()
            else:
                self.solve_part()

    def _level(self) -> float:
        """Return the violation at which ``Ku`` has to be renewed."""
        noise = SINGLE_ROUNDING * float(np.linalg.norm(self.u)) * self.diagonal.max()
        return max(self.tol, noise) if self.summed else self.tol

    def measure(self) -> None:
        """Set b and the violation."""
        knots, slopes = self.problem.knots, self.problem.slopes
        self.bias, self.violation = optimality(self.u, self.decision, knots, slopes)

    def renew(self) -> None:
        """Compute ``Ku`` in float64."""
        self.decision, self.renewed = self.matrix.product(self.u), True
        self.measure()
        value = 0.5 * float(self.u @ self.decision) + self.problem.cost(self.u)
        lower = self.value - value > LEAST_DECREASE * abs(value)
        self.idle_renewals = 0 if lower else self.idle_renewals + 1
        self.value = min(self.value, value)
        self.summed, self.idle, self.best = False, 0, self.violation

    def solve_part(self) -> None:
        """Take steps among the rows of a part, and move the decisions of all."""
        rows = self.part()
        knots, slopes = self.problem.knots[rows], self.problem.slopes[rows]
        part = PiecewiseQP(self.matrix.part(rows), knots, slopes)
        target = max(PART_TOLERANCE_SHARE * self.tol, PART_VIOLATION_SHARE * self.violation)
        u, decision = self.u[rows], self.decision[rows]
        steps = Descent(part, self.diagonal[rows], u.copy(), decision.copy(), target, self.left)
        steps.offset, steps.store = decision - combine(part.values, u), self.store
        steps.run()
        self.store = steps.store
        change = steps.u - u
        moved = np.flatnonzero(change)
        self.u[rows], self.left = steps.u, steps.left
        self.matrix.add_columns(rows[moved], change[moved], self.decision)
        self.renewed = self.renewed and not len(moved)
        self.measure()
        self.idle = 0 if self.violation < self.best else self.idle + 1
        if not len(moved):  # nor will it in the next round
            self.idle = IDLE_ROUNDS + 1
        self.best = min(self.best, self.violation)

    def part(self) -> NDArray:
        """Return the rows to go on with."""
        up, down = _misses(self.u, self.decision, self.problem.knots, self.problem.slopes)
        most = min(self.matrix.most_part_rows, MOST_PART_ROWS)
        share = int(NEW_ROWS_SHARE * len(self.u))
        used = np.flatnonzero(self.u)
        half = min(most, max(LEAST_NEW_ROWS, min(share, MOST_NEW_ROWS))) // 2
        resting = self.u == 0
        new = [
            self._largest(np.where(resting & (miss > 0), miss, -np.inf), half)
            for miss in (up, down)
        ]
        rows = np.union1d(used, np.concatenate(new))
        if len(rows) > most:
            rows = np.union1d(self._largest(up, most // 2), self._largest(down, most // 2))
        return rows

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
