"""Pricing rounds for kernel programs with many rows but few rows near the margin.

Each round solves a restricted program, with a subset of the rows and columns, to a coarse
tolerance, always from the same warm start, and adds the violated rows and columns. If there are
none, the exact vertex of the active constraints is computed, and the others are tested again.

Since a restricted program may be unbounded, it has one more row per class: the mean of the omitted
rows, with the sum of their penalties, which bounds it if every penalty is at least 1/n_class.
Times: `benchmarks/peers.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import CertifiedSolution, certify, value_of
from mmbench.machines.mmrm.interior import UNBOUNDED_VALUE, LpInteriorPoint, first_iterate
from mmbench.machines.mmrm.program import Guess, Program
from mmbench.machines.mmrm.vertex import partition_of, solve_vertex

#: COARSE_TOLERANCE is the tolerance of the interior-point method before violated rows and columns
#: are searched. FINE_TOLERANCES are the tolerances in successive attempts to compute a vertex.
COARSE_TOLERANCE = 1e-3
FINE_TOLERANCES = (1e-7, 1e-8, 1e-9, 1e-10)

#: Upper bound on the margins of the rows that are added to a restricted program.
ADDED_MARGIN = 1.03

#: Lower bound on the margins of the rows that are removed from a restricted program.
DROPPED_MARGIN = 1.3

#: Number of columns without a violated constraint that are added per round, relative to the number
#: of columns of the restricted program.
ADDED_COLUMN_SHARE = 0.03

#: Maximum number of pricing rounds.
MAX_ROUNDS = 24

#: The constraint of an omitted row or column is considered violated if its violation exceeds
#: PRICING_TOLERANCE.
PRICING_TOLERANCE = 1e-7


@dataclass(frozen=True)
class RestrictedOptimum:
    """An optimum or iterate of a restricted program, extended to all rows and columns."""

    u: NDArray
    b: float
    lam: NDArray
    #: Whether the interior-point method reached one of FINE_TOLERANCES, or a vertex is optimal.
    converged: bool
    #: Indices of the columns whose coefficients do not converge to zero.
    support: NDArray
    #: Multiplier of the coefficient limit; 0 at a vertex.
    multiplier: float = 0.0


class RestrictedProgram:
    """A subset of the rows and columns of a kernel program.

    Rows and columns with violated constraints are added to the subset.
    """

    def __init__(self, program: Program, guess: Guess, tol: float) -> None:
        self.program, self.guess, self.tol = program, guess, tol
        self.rows = self.columns = guess.near_rows(program)
        if 2 * len(self.rows) > len(program.rows):
            self.rows = self.columns = program.rows
        self.shift = np.zeros(len(self.columns))
        self.iterations = 0

    def solve(self) -> CertifiedSolution:
        """Add rows and columns until no constraint is violated, and certify the optimum."""
        optimum: RestrictedOptimum | None = None
        for _ in range(MAX_ROUNDS):
            iterate, optimum = self._start(), None
            restricted = min(len(self.rows), len(self.columns)) < len(self.program.rows)
            coarse = restricted and iterate.run(COARSE_TOLERANCE)
            if coarse and self._add_violated(self._extended(iterate)):
                self.iterations += iterate.iterations
                continue
            optimum = self._optimum(iterate)
            if not optimum.converged or not self._add_violated(optimum):
                break
        return self._certified(optimum or self._optimum(self._start()))

    def _start(self) -> LpInteriorPoint:
        """Return an interior-point method for the restricted program, started at the warm start.

        If the slack penalties are large enough, the initial multipliers satisfy ``A'lam = c``.
        """
        program, columns = self.program, self.columns
        A, y, cost, margins = self._with_class_means()
        # Multiples of y may be subtracted from the columns of A, since b is free and y'lam = 0. The
        # subtraction centres the columns of diag(y) A, and greatly improves the condition number of
        # A Theta A' (see `interior`).
        self.shift = y @ A / len(y)
        A -= y[:, None] * self.shift
        c = program.c[columns]
        # If A is nearly singular, the dual feasible set has almost no interior. A start far from
        # this set would take twice as many iterations.
        lam = np.minimum(cost / program.class_cost[(y > 0).astype(int)], 0.9 * cost)
        point = first_iterate(self.guess.u[columns], margins, lam, c)
        return LpInteriorPoint(A, y, c, cost, point, program.limit)

    def _with_class_means(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return A, the labels, slack penalties and initial margins of the restricted program.

        The last rows of A are the means of the omitted rows of each class.
        """
        program, rows = self.program, self.rows
        A = program.block(rows, self.columns)
        blocks, y = [A], [program.y[rows]]
        cost, margins = [program.cost[rows]], [self.guess.margins[rows]]
        for q, outside in self._outside():
            inside = program.y[rows] == (-1.0, 1.0)[q]
            weight = program.cost[rows[inside]] / program.class_cost[q] * program.class_sizes[q]
            rest = program.class_sums[q][self.columns] - weight @ A[inside]
            blocks.append(rest[None] / (program.class_sizes[q] - weight.sum()))
            y.append(np.array([(-1.0, 1.0)[q]]))
            cost.append(np.array([program.cost[outside].sum()]))
            margins.append(np.array([1.5]))
        return np.vstack(blocks), np.concatenate(y), np.concatenate(cost), np.concatenate(margins)

    def _outside(self) -> list[tuple[int, NDArray]]:
        """Return (q, indices of the omitted rows) for each class q that has omitted rows."""
        outside = [np.setdiff1d(rows, self.rows) for rows in self.program.class_rows]
        return [(q, rows) for q, rows in enumerate(outside) if len(rows)]

    def _extended(self, iterate: LpInteriorPoint) -> RestrictedOptimum:
        """Extend the primal and dual vectors of an iterate to the whole program.

        The multiplier of the additional row of a class is distributed over the omitted rows of the
        class, in proportion to their slack penalties.
        """
        program, point = self.program, iterate.point
        u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
        u[self.columns], lam[self.rows] = point.u, point.lam[: len(self.rows)]
        for k, (_, outside) in enumerate(self._outside(), start=len(self.rows)):
            cost = program.cost[outside]
            lam[outside] = point.lam[k] * cost / cost.sum()
        b = point.b - float(self.shift @ point.u)
        return RestrictedOptimum(u, b, lam, False, self.columns, iterate.multiplier)

    def _optimum(self, iterate: LpInteriorPoint) -> RestrictedOptimum:
        """Refine an iterate until the vertex of its active constraints is optimal.

        If no vertex is optimal, the refined iterate is returned.
        """
        converged = False
        for tol in FINE_TOLERANCES:
            reached = iterate.run(tol)
            if time_is_up():
                self.iterations += iterate.iterations
                return self._extended(iterate)
            partition = partition_of(iterate, self.rows, self.columns)
            vertex = solve_vertex(self.program, partition)
            optimal = vertex is not None and vertex.is_optimum(
                self.program, self.rows, self.columns, PRICING_TOLERANCE
            )
            if optimal or not reached:
                break
            converged = True
        self.iterations += iterate.iterations
        if vertex is not None and optimal:
            return RestrictedOptimum(vertex.u, vertex.b, vertex.lam, True, partition.positive)
        iterate.restore_dual()
        return replace(self._extended(iterate), converged=converged, support=partition.positive)

    def _add_violated(self, optimum: RestrictedOptimum) -> bool:
        """Add rows and columns with violated constraints, and remove rows with large margins.

        Returns False if no constraint is violated, or if a negative objective value proves that the
        whole program is unbounded.
        """
        program = self.program
        margins = program.forward(optimum.u) + program.y * optimum.b
        reduced = program.c - program.adjoint(optimum.lam) + optimum.multiplier
        if value_of(program, optimum.u, margins) < -UNBOUNDED_VALUE:
            return False
        rows = np.setdiff1d(program.rows, self.rows)
        columns = np.setdiff1d(program.columns, self.columns)
        if not (
            np.any(margins[rows] < 1 - PRICING_TOLERANCE)
            or np.any(reduced[columns] < -PRICING_TOLERANCE)
        ):
            return False
        near = margins[self.rows] <= DROPPED_MARGIN
        costly = optimum.lam[self.rows] >= program.cost[self.rows] / 2
        kept = self.rows[near | costly]
        # rows and columns with nearly violated constraints are also added, to save rounds
        rows = rows[np.argsort(margins[rows], kind="stable")]
        rows = rows[margins[rows] < ADDED_MARGIN][: max(50, len(kept) // 2)]
        columns = columns[np.argsort(reduced[columns], kind="stable")]
        count = int(np.sum(reduced[columns] < 0) + ADDED_COLUMN_SHARE * len(self.columns))
        self.rows = np.concatenate([kept, rows])
        self.columns = np.concatenate([self.columns, columns[:count]])
        return True

    def _certified(self, optimum: RestrictedOptimum) -> CertifiedSolution:
        """Certify the optimum with the coefficients outside `support` set to zero.

        If the solution is not optimal, the optimum is certified again with all coefficients.
        """
        u = np.zeros_like(optimum.u)
        u[optimum.support] = optimum.u[optimum.support]
        for candidate in (u, optimum.u):
            b, lam = optimum.b, optimum.lam
            solution = certify(
                self.program, candidate, b, lam, self.tol, self.iterations, "interior"
            )
            if solution.status is Status.OPTIMAL:
                break
        return solution
