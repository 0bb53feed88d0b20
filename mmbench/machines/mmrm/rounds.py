"""Interior point and exact vertex: the fast route of large kernel programs.

An interior point on a growing part of the program finds which coefficients are positive and which
rows are tight. What a coarse iterate violates in the rest of the program comes in, and the next
round starts from an earlier one that is not yet near the boundary. Where it violates nothing, it
goes on, and one LU factorisation turns it into the exact vertex, which is judged in the same way.

A part with few rows may be unbounded because some c_k < 0, so it has for each class the mean of the
rows that it leaves out, at the sum of their costs: the rest implies that row, and with costs of at
least 1/n_class no part is unbounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, certify
from mmbench.machines.mmrm.interior import InteriorPoint, Iterate, first_iterate
from mmbench.machines.mmrm.program import NEAR_MARGIN, Guess, Program
from mmbench.machines.mmrm.vertex import partition_of, solve_vertex

#: Tolerances of the first round, of an iterate that shows whether the part lacks something, and of
#: the attempts at a vertex where it does not.
FIRST_TOLERANCE, COARSE_TOLERANCE = 3e-2, 1e-3
FINE_TOLERANCES = (1e-7, 1e-8, 1e-9, 1e-10)

#: Rows of a smaller margin come in after a round; after the first, those of `NEAR_MARGIN`.
FINE_MARGIN = 1.03

#: Rows of a larger margin leave the part.
DROPPED_MARGIN = 1.3

#: Columns that come in with those of negative reduced cost, as a share of the present ones.
COARSE_COLUMN_SHARE, FINE_COLUMN_SHARE = 0.1, 0.03

#: Largest share of new rows and columns in a part that starts from the last one's iterate.
MAX_NEW_SHARE = 0.2

#: Product u s of a new column at a warm start, as a share of the others': most stay at zero.
NEW_COLUMN_SHARE = 0.1

#: Rounds before the rest is left to generation.
MAX_ROUNDS = 24

#: Violations of rows and columns outside the part that count as none.
PRICING_TOLERANCE = 1e-7


@dataclass(frozen=True)
class PartOptimum:
    """The optimum of a part, or an iterate on the way to it, over the whole program."""

    u: NDArray
    b: float
    lam: NDArray
    #: Whether the interior point reached a fine tolerance.
    converged: bool
    #: Columns that are not on their way to zero.
    support: NDArray
    #: Of the limit of the coefficients; zero at a vertex.
    multiplier: float = 0.0


@dataclass(frozen=True)
class Kept:
    """An iterate of a part over the whole program, zero outside the part.

    Attributes
    ----------
    by_column : ndarray of shape (2, n_columns)
        u and s.
    by_row, rest : ndarray of shape (3, n_rows), (3, n_rest)
        xi, z and lam of the rows; of the class means and the limit.
    b : float
    """

    by_column: NDArray
    by_row: NDArray
    rest: NDArray
    b: float


class Rounds:
    """A part of the program that grows from round to round.

    Parameters
    ----------
    program : Program
        Of a kernel machine: row i and column i belong to the same sample.
    guess : Guess
    tol : float
        For the certificate.
    """

    def __init__(self, program: Program, guess: Guess, tol: float) -> None:
        self.program, self.guess, self.tol = program, guess, tol
        self.rows = self.columns = guess.first_rows(program)
        self.shift = np.zeros(len(self.columns))
        self.kept: Kept | None = None
        self.iterations = 0

    def solve(self) -> Solution:
        """Return the best solution that this route finds, with its certificate."""
        whole = self.program.rows
        if 2 * len(self.rows) > len(whole):
            self.rows = self.columns = whole
        else:
            self._first_round()
        for _ in range(MAX_ROUNDS):
            found = self._round()
            if found is not None and (not found.converged or not self._grown(found)):
                break
        return self._certified(found or self._optimum(self._cold_start()))

    def _first_round(self) -> None:
        """Bring in rows and columns by an iterate that is too coarse to leave any out."""
        iterate = self._cold_start()
        iterate.run(FIRST_TOLERANCE)
        self.iterations += iterate.iterations
        margins, reduced = self._priced(self._found(iterate))
        self._grow(margins, reduced, NEAR_MARGIN, COARSE_COLUMN_SHARE)

    def _round(self) -> PartOptimum | None:
        """Return the optimum of the part, or None once a coarse iterate has made it grow."""
        warm = self._warm_start()
        iterate = warm or self._cold_start()
        is_whole = min(len(self.rows), len(self.columns)) == len(self.program.rows)
        if not is_whole and iterate.run(COARSE_TOLERANCE):
            self._keep(iterate)
            if self._grown(self._found(iterate)):
                self.iterations += iterate.iterations
                return None
        found = self._optimum(iterate)
        if warm is None or found.converged or time_is_up():
            return found
        return self._optimum(self._cold_start())

    def _grown(self, found: PartOptimum) -> bool:
        """Whether something outside the part is violated; it comes in, with what is near it."""
        margins, reduced = self._priced(found)
        if not any(map(len, self._violated(margins, reduced))):
            return False
        self._drop_rows(margins, found.lam)
        self._grow(margins, reduced, FINE_MARGIN, FINE_COLUMN_SHARE)
        return True

    def _nearly_the_part_of(self, kept: Kept) -> bool:
        """Whether few rows and columns are new; else a cold start takes fewer iterations."""
        new_rows = np.sum(kept.by_row[2, self.rows] == 0)
        new_columns = np.sum(kept.by_column[0, self.columns] == 0)
        most = MAX_NEW_SHARE * (len(self.rows) + len(self.columns))
        same_rest = kept.rest.shape[1] == len(self._outside()) + 1
        return bool(same_rest and new_rows + new_columns <= most)

    def _optimum(self, iterate: InteriorPoint) -> PartOptimum:
        converged = False
        for tol in FINE_TOLERANCES:
            reached = iterate.run(tol)
            partition = partition_of(iterate, self.rows, self.columns)
            vertex = solve_vertex(self.program, partition)
            if vertex is not None:
                known = vertex.is_optimum(self.program, self.rows, self.columns, PRICING_TOLERANCE)
                vertex = vertex if known else None
            if vertex is not None or not reached:
                break
            converged = True
        self.iterations += iterate.iterations
        self._keep(iterate)
        if vertex is not None:
            return PartOptimum(vertex.u, vertex.b, vertex.lam, True, partition.positive)
        iterate.restore_dual()
        return replace(self._found(iterate), converged=converged, support=partition.positive)

    def _cold_start(self) -> InteriorPoint:
        """Start from the guess's u and from lam = 1/n_class, where A'lam = c.

        A nearly singular matrix leaves the dual feasible set almost no interior, and a start far
        from it takes twice the iterations. As y'lam = 0 and b is free, columns may be shifted by
        multiples of y: without their means ``A Theta A'`` is conditioned much better.
        """
        program, columns = self.program, self.columns
        A, y, cost, margins = self._part()
        self.shift = y @ A / len(y)
        A -= y[:, None] * self.shift
        c = program.c[columns]
        share = cost / program.class_cost[(y > 0).astype(int)]
        lam = np.minimum(share, 0.9 * cost)
        point = first_iterate(self.guess.u[columns], margins, lam, c)
        return InteriorPoint(A, y, c, cost, point, program.limit)

    def _keep(self, iterate: InteriorPoint) -> None:
        """Keep the central iterate of this part for the next, over the whole program."""
        point = iterate.central
        if point is None:
            return
        n, program = len(self.rows), self.program
        by_column = np.zeros((2, program.n_columns))
        by_row = np.zeros((3, len(program.y)))
        by_column[:, self.columns] = point.u, point.s
        by_row[:, self.rows] = point.xi[:n], point.z[:n], point.lam[:n]
        rest = np.array([point.xi[n:], point.z[n:], point.lam[n:]])
        self.kept = Kept(by_column, by_row, rest, self._bias(point))

    def _warm_start(self) -> InteriorPoint | None:
        """Start from the kept iterate, which is let go; None where the part is not near its own.

        New rows have its mean product ``z lam``. Their slacks, and those of new columns, are at
        least the geometric mean of the others': from a slack near zero no step is long.
        """
        kept, self.kept = self.kept, None
        if kept is None or not self._nearly_the_part_of(kept):
            return None
        iterate = self._cold_start()
        (u, s), (xi, z, lam) = kept.by_column[:, self.columns], kept.by_row[:, self.rows]
        margins, reduced = self._price(kept.by_column[0], kept.b, kept.by_row[2], 0.0)
        old, product = lam > 0, float(kept.by_row[1] @ kept.by_row[2]) / np.sum(kept.by_row[2] > 0)
        z[~old] = np.maximum(margins[self.rows[~old]] - 1, _geometric_mean(z[old]))
        lam[~old], xi[~old] = product / z[~old], product / self.program.cost[self.rows[~old]]
        old = u > 0
        s[~old] = np.maximum(reduced[self.columns[~old]], _geometric_mean(s[old]))
        u[~old] = NEW_COLUMN_SHARE * product / s[~old]
        xi, z, lam = np.hstack([[xi, z, lam], kept.rest])
        b = kept.b + float(self.shift @ u)
        iterate.point = Iterate(u=u, b=b, xi=xi, z=z, lam=lam, s=s)
        return iterate

    def _bias(self, point: Iterate) -> float:
        """Return b of the program for an iterate of the part, whose columns are shifted."""
        return point.b - float(self.shift @ point.u)

    def _part(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return A, y, cost and the guessed margins of the part, class means of the rest last."""
        program, rows = self.program, self.rows
        A = program.block(rows, self.columns)
        blocks, y = [A], [program.y[rows]]
        cost, margins = [program.cost[rows]], [self.guess.margins[rows]]
        for q, outside in self._outside():
            inside = program.y[rows] == (-1.0, 1.0)[q]
            weight = program.cost[rows[inside]] / program.class_cost[q] * program.class_sizes[q]
            rest = program.class_sums[q][self.columns] - weight @ A[inside]
            left = program.class_sizes[q] - weight.sum()
            blocks.append(rest[None] / left)
            y.append(np.array([(-1.0, 1.0)[q]]))
            cost.append(np.array([program.cost[outside].sum()]))
            margins.append(np.array([1.5]))
        return (
            np.vstack(blocks),
            np.concatenate(y),
            np.concatenate(cost),
            np.concatenate(margins),
        )

    def _outside(self) -> list[tuple[int, NDArray]]:
        """Return (class, its rows outside the part) for the classes that have some."""
        outside = [np.setdiff1d(rows, self.rows) for rows in self.program.class_rows]
        return [(q, rows) for q, rows in enumerate(outside) if len(rows)]

    def _found(self, iterate: InteriorPoint) -> PartOptimum:
        """Return an iterate over the whole program, multipliers of class means spread over them."""
        program, point = self.program, iterate.point
        u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
        u[self.columns], lam[self.rows] = point.u, point.lam[: len(self.rows)]
        for k, (_, outside) in enumerate(self._outside(), start=len(self.rows)):
            cost = program.cost[outside]
            lam[outside] = point.lam[k] * cost / cost.sum()
        return PartOptimum(u, self._bias(point), lam, False, self.columns, iterate.multiplier)

    def _priced(self, found: PartOptimum) -> tuple[NDArray, NDArray]:
        return self._price(found.u, found.b, found.lam, found.multiplier)

    def _price(
        self, u: NDArray, b: float, lam: NDArray, multiplier: float
    ) -> tuple[NDArray, NDArray]:
        """Return the margins of all rows and the reduced costs of all columns."""
        program = self.program
        return program.forward(u) + program.y * b, program.c - program.adjoint(lam) + multiplier

    def _violated(self, margins: NDArray, reduced: NDArray) -> tuple[NDArray, NDArray]:
        rows = np.setdiff1d(self.program.rows, self.rows)
        columns = np.setdiff1d(self.program.columns, self.columns)
        return rows[margins[rows] < 1 - PRICING_TOLERANCE], columns[
            reduced[columns] < -PRICING_TOLERANCE
        ]

    def _drop_rows(self, margins: NDArray, lam: NDArray) -> None:
        rows = self.rows
        far = (margins[rows] > DROPPED_MARGIN) & (lam[rows] < self.program.cost[rows] / 2)
        self.rows = rows[~far]

    def _grow(self, margins: NDArray, reduced: NDArray, near: float, extra: float) -> None:
        """Add rows of margin below `near`, columns of negative reduced cost and some next ones."""
        rows = np.setdiff1d(self.program.rows, self.rows)
        rows = rows[np.argsort(margins[rows], kind="stable")]
        rows = rows[margins[rows] < near][: max(50, len(self.rows) // 2)]
        columns = np.setdiff1d(self.program.columns, self.columns)
        columns = columns[np.argsort(reduced[columns], kind="stable")]
        count = int(np.sum(reduced[columns] < 0) + extra * len(self.columns))
        self.rows = np.concatenate([self.rows, rows])
        self.columns = np.concatenate([self.columns, columns[:count]])

    def _certified(self, found: PartOptimum) -> Solution:
        """Certify; an iterate also without the coefficients that are on their way to zero."""
        facts = {"iterations": self.iterations, "route": "interior"}
        u = np.zeros_like(found.u)
        u[found.support] = found.u[found.support]
        solution = certify(self.program, u, found.b, found.lam, self.tol, **facts)
        if solution.status is Status.OPTIMAL:
            return solution
        return certify(self.program, found.u, found.b, found.lam, self.tol, **facts)


def _geometric_mean(values: NDArray) -> float:
    return float(np.exp(np.log(values).mean()))
