"""Column-and-constraint generation for the program of the max-margin ratio machine.

A master program holds a subset I of the rows and J of the columns; after each solution the rows
that it violates and the columns of negative reduced cost come in, until there is none. The
solution is then optimal for the whole program.

A master with few rows may be unbounded although the whole program is not, because some c_k < 0.
So it also has, for each class q, the mean of all rows of the class, which they imply:

    (s_q/n_q)'u + q b + (sum_{i in I_q} cost_i xi_i + o_q) / W_q >= 1,   W_q = sum of the costs,

where o_q >= 0, at cost 1, stands for the slacks outside I. Its multiplier tau_q means
lam_i += tau_q cost_i / W_q for all rows of the class, and it vanishes at the end. When costs are so
small that the whole program may be unbounded, a ray of the master either proves that it is, or
violates rows, which come in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best, certify, failed
from mmbench.machines.mmrm.program import Program
from mmbench.machines.mmrm.vertex import Partition, polished
from mmbench.solvers.highs_ import BASIC, Basis, LpModel, LpSolution

#: A row or column comes in when it is violated by more than this.
PRICING_TOLERANCE = 1e-7

#: Tolerance of HiGHS where its own, 1e-7, leaves too large a gap: a reduced cost that it lets pass
#: counts in the bound as often as the coefficients sum to.
SMALLEST_HIGHS_TOLERANCE = 1e-10

#: Pivots of one solution of a master. Programs that can be solved take a few thousand; nearly
#: singular ones have been seen to go on for hours.
MAX_PIVOTS = 20_000


class Master:
    """The restricted program in HiGHS.

    Columns in their order: b, o_- and o_+, then u_j and xi_i as they come in. Rows: the two class
    means, then the rows i.
    """

    def __init__(self, program: Program, rows: NDArray, columns: NDArray) -> None:
        self.program = program
        self.rows = np.zeros(0, dtype=np.intp)
        self.columns = np.zeros(0, dtype=np.intp)
        self._u_at = np.zeros(0, dtype=np.intp)
        self._xi_at = np.zeros(0, dtype=np.intp)
        self.model = LpModel(iteration_limit=MAX_PIVOTS)
        self.model.add_columns([0.0, 1.0, 1.0], [-np.inf, 0.0, 0.0], np.inf)
        weight = program.class_cost
        means = np.array([[-1.0, 1 / weight[0], 0.0], [1.0, 0.0, 1 / weight[1]]])
        self.model.add_rows(1.0, np.inf, means)
        self.add_columns(columns)
        self.add_rows(rows)

    def add_columns(self, columns: NDArray) -> None:
        """Add variables u_j."""
        if not len(columns):
            return
        program = self.program
        means = program.class_sums[:, columns] / program.class_sizes[:, None]
        block = np.vstack([means, program.block(self.rows, columns)])
        lower = 0.0 if program.nonnegative else -np.inf
        at = self.model.shape[1] + np.arange(len(columns))
        self.model.add_columns(program.c[columns], lower, np.inf, block)
        self.columns = np.concatenate([self.columns, columns])
        self._u_at = np.concatenate([self._u_at, at])

    def add_rows(self, rows: NDArray) -> None:
        """Add rows i with their slacks xi_i."""
        if not len(rows):
            return
        program = self.program
        n_rows, n_columns = self.model.shape
        cost, positive = program.cost[rows], program.y[rows] > 0
        means = np.zeros((n_rows, len(rows)))
        means[positive.astype(int), np.arange(len(rows))] = (
            cost / program.class_cost[positive.astype(int)]
        )
        self.model.add_columns(cost, 0.0, np.inf, means)
        at = n_columns + np.arange(len(rows))
        block = np.zeros((len(rows), n_columns + len(rows)))
        block[:, 0] = program.y[rows]
        block[:, self._u_at] = program.block(rows, self.columns)
        block[np.arange(len(rows)), at] = 1.0
        self.model.add_rows(1.0, np.inf, block)
        self.rows = np.concatenate([self.rows, rows])
        self._xi_at = np.concatenate([self._xi_at, at])

    def primal(self, x: NDArray) -> tuple[NDArray, float]:
        """Return u over all columns, and b."""
        u = np.zeros(self.program.n_columns)
        u[self.columns] = x[self._u_at]
        return u, float(x[0])

    def dual(self, row_dual: NDArray) -> NDArray:
        """Return lam over all rows, the multipliers of the class means spread over them."""
        program = self.program
        tau = np.maximum(row_dual[:2], 0) / program.class_cost
        lam = tau[(program.y > 0).astype(int)] * program.cost
        lam[self.rows] += row_dual[2:]
        return lam

    def partition(self, basis: Basis) -> Partition:
        """Return the partition of a basis; not square if a class mean is active in it."""
        active = basis.rows[2:] != BASIC
        slack = basis.columns[self._xi_at] == BASIC
        return Partition(
            positive=self.columns[basis.columns[self._u_at] == BASIC],
            tight=self.rows[active & ~slack],
            at_cost=self.rows[active & slack],
        )


def solve_generation(
    program: Program,
    rows: NDArray,
    columns: NDArray,
    *,
    tol: float = 1e-6,
) -> Solution:
    """Solve the program from a first guess of its active rows and columns.

    Parameters
    ----------
    program : Program
    rows, columns : ndarray of int
        The first I and J.
    tol : float, default=1e-6
        For the certificate.

    Returns
    -------
    Solution
    """
    master = Master(program, rows, columns)
    simplex, iterations = "dual", 0
    while True:
        lp = master.model.solve(simplex)
        iterations += lp.iterations
        if lp.status is Status.UNBOUNDED:
            new_rows, new_columns = _rows_against_ray(master), np.zeros(0, dtype=np.intp)
            if not len(new_rows):
                return failed(program, Status.UNBOUNDED, "generation", iterations)
        elif lp.status is Status.OPTIMAL:
            new_rows, new_columns = _price(master, lp)
        else:
            break
        if (not len(new_rows) and not len(new_columns)) or time_is_up():
            break
        master.add_columns(new_columns)
        master.add_rows(new_rows)
        simplex = "dual" if len(new_rows) else "primal"
    solution = _certified(master, lp, tol, iterations)
    if solution.status is Status.OPTIMAL or lp.status is not Status.OPTIMAL or time_is_up():
        return solution
    master.model.set_tol(SMALLEST_HIGHS_TOLERANCE)
    lp = master.model.solve("primal")
    finer = _certified(master, lp, tol, iterations + lp.iterations)
    return best(program, [solution, finer], tol)


def _certified(master: Master, lp: LpSolution, tol: float, iterations: int) -> Solution:
    """Return the better of what HiGHS found and the exact vertex of its basis."""
    program = master.program
    facts: dict[str, Any] = {"iterations": iterations, "route": "generation"}
    lam = master.dual(lp.row_dual)
    solution = certify(program, *master.primal(lp.x), lam, tol, **facts)
    if lp.basis is None:
        return solution
    return polished(program, solution, master.partition(lp.basis), tol)


def _price(master: Master, lp: LpSolution) -> tuple[NDArray, NDArray]:
    """Return the rows and columns outside the master that its solution violates most."""
    program = master.program
    u, b = master.primal(lp.x)
    shortfall = 1 - program.forward(u) - program.y * b
    reduced = program.c - program.adjoint(master.dual(lp.row_dual))
    rows = _worst(shortfall, program.rows, master.rows, PRICING_TOLERANCE)
    columns = _worst(-reduced, program.columns, master.columns, PRICING_TOLERANCE)
    return rows, columns


def _rows_against_ray(master: Master) -> NDArray:
    """Return rows that forbid the master's ray, or none if the whole program has it too."""
    ray = master.model.primal_ray()
    if ray is None:
        return np.zeros(0, dtype=np.intp)
    program = master.program
    u, b = master.primal(ray)
    margins = program.forward(u) + program.y * b
    slope = program.c @ u + program.cost @ np.maximum(-margins, 0)
    if slope < 0:
        return np.zeros(0, dtype=np.intp)
    return _worst(-margins, program.rows, master.rows, 0.0)


def _worst(excess: NDArray, allowed: NDArray, present: NDArray, tol: float) -> NDArray:
    """Return the allowed, not yet present indices of largest excess, at most half as many again."""
    outside = np.setdiff1d(allowed, present)
    outside = outside[excess[outside] > tol]
    limit = max(50, len(present) // 2)
    return outside[np.argsort(-excess[outside], kind="stable")[:limit]]
