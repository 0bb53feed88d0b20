"""Vertices of the program: of a partition, by one LU factorisation; of all of it, by HiGHS.

With P = {u > 0}, R = {rows with y f = 1 and 0 < lam < cost} and T = {rows with lam = cost}, a
vertex that is not degenerate has ``|R| = |P| + 1``, and the square matrix ``M = [A_RP, y_R]`` gives
it all:

    M (u_P; b) = 1,      M'lam_R = (c_P - A_TP'cost_T; -y_T'cost_T).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lu_factor, lu_solve

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best, certify, failed
from mmbench.machines.mmrm.interior import InteriorPoint
from mmbench.machines.mmrm.program import Program
from mmbench.solvers.highs_ import BASIC, Basis, LpSolution, solve_lp

#: How negative, relative to the largest, a coefficient or multiplier of a vertex may come out.
SIGN_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Partition:
    """Columns P and rows R, T, as indices of the whole program."""

    positive: NDArray
    tight: NDArray
    at_cost: NDArray

    @property
    def square(self) -> bool:
        """Whether the partition can be a vertex."""
        return len(self.tight) == len(self.positive) + 1


def partition_of(iterate: InteriorPoint, rows: NDArray, columns: NDArray) -> Partition:
    """Sort rows and columns by which factor of an iterate's products is the larger.

    `rows` may be fewer than the iterate has: then they are its first ones.
    """
    point, own = iterate.point, slice(len(rows))
    xi, z, lam = point.xi[:-1], point.z[:-1], point.lam[:-1]  # without the row of the limit
    at_cost = np.zeros(len(rows), dtype=bool)
    if xi.max() > 1e-7:
        at_cost = (xi / iterate.slack[:-1])[own] > xi.max() / iterate.cost[own].max()
    tight = (lam / z)[own] > lam.max() / z.max()
    return Partition(
        positive=columns[point.u / point.s > point.u.max() / point.s.max()],
        tight=rows[tight & ~at_cost],
        at_cost=rows[at_cost],
    )


@dataclass(frozen=True)
class Vertex:
    """The primal and dual vectors that belong to a partition."""

    partition: Partition
    u: NDArray
    b: float
    lam: NDArray

    def signs_hold(self, program: Program) -> bool:
        """Whether u and lam have the signs that the partition says."""
        part = self.partition
        lam = self.lam[part.tight]
        top = lam.max(initial=0.0)
        room = program.cost[part.tight] * (1 + SIGN_TOLERANCE)
        return bool(
            (not program.nonnegative or self.u.min() >= -SIGN_TOLERANCE * self.u.max(initial=0.0))
            and lam.min(initial=0.0) >= -SIGN_TOLERANCE * top
            and np.all(lam <= room)
        )

    def is_optimum(
        self, program: Program, rows: NDArray, columns: NDArray, violation: float
    ) -> bool:
        """Whether its signs hold, and some rows and columns are violated by no more than that."""
        if not self.signs_hold(program):
            return False
        margins = program.forward(self.u) + program.y * self.b
        reduced = program.c - program.adjoint(self.lam)
        inside = np.setdiff1d(rows, self.partition.at_cost)
        least = min(margins[inside].min() - 1.0, reduced[columns].min())
        return bool(least >= -violation)


def solve_vertex(program: Program, partition: Partition) -> Vertex | None:
    """Return the vertex of a partition, or None where its matrix is not square or is singular."""
    if not partition.square:
        return None
    positive, tight, at_cost = partition.positive, partition.tight, partition.at_cost
    matrix = np.column_stack([program.block(tight, positive), program.y[tight]])
    spread = program.cost[at_cost]
    right = np.append(
        program.c[positive] - program.combined(at_cost, spread, positive),
        -program.y[at_cost] @ spread,
    )
    with np.errstate(all="ignore"):
        factor = lu_factor(matrix, check_finite=False)
        solution = _refined(matrix, factor, np.ones(len(tight)), trans=0)
        multipliers = _refined(matrix, factor, right, trans=1)
    if not (np.isfinite(solution).all() and np.isfinite(multipliers).all()):
        return None
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[positive], b = solution[:-1], float(solution[-1])
    lam[tight], lam[at_cost] = multipliers, spread
    return Vertex(partition, u, b, lam)


def polished(program: Program, solution: Solution, partition: Partition, tol: float) -> Solution:
    """Return the better of a solution and the exact vertex of a partition.

    HiGHS stops at a tolerance of 1e-7 a row, which large costs multiply.
    """
    vertex = solve_vertex(program, partition)
    if vertex is None:
        return solution
    facts = {name: getattr(solution, name) for name in ("iterations", "route", "basis")}
    exact = certify(program, vertex.u, vertex.b, vertex.lam, tol, **facts)
    return best(program, [solution, exact], tol)


def _refined(
    matrix: NDArray, factor: tuple[NDArray, NDArray], right: NDArray, trans: Literal[0, 1]
) -> NDArray:
    """Solve with the matrix, or its transpose, and one step of iterative refinement."""
    operator = matrix.T if trans else matrix
    x = lu_solve(factor, right, trans=trans, check_finite=False)
    return x + lu_solve(factor, right - operator @ x, trans=trans, check_finite=False)


#: Programs that can be solved take a few thousand pivots; nearly singular ones have been seen to go
#: on for hours.
MAX_ITERATIONS = 100_000


def solve_reference(
    program: Program, *, tol: float = 1e-6, basis: Basis | None = None, method: str = "choose"
) -> Solution:
    """Solve (28) or (30) with all its rows and columns.

    Parameters
    ----------
    program : Program
    tol : float, default=1e-6
        For the certificate.
    basis : Basis, optional
        Of the same program with other costs; where it does not fit it is not used.
    method : {"choose", "simplex", "ipm"}, default="choose"

    Returns
    -------
    Solution
    """
    rows, columns = program.rows, program.columns
    limited = program.nonnegative and program.surely_bounded  # else the limit would hide a ray
    shape = (len(rows) + limited, len(columns) + 1 + len(rows))
    lp = _solve(program, method, _fitting(basis, *shape), limited)
    if lp.status is Status.UNBOUNDED:
        return failed(program, Status.UNBOUNDED, "reference", lp.iterations)
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[columns] = lp.x[: len(columns)]
    lam[rows] = lp.row_dual[: len(rows)]
    solution = certify(
        program,
        u,
        float(lp.x[len(columns)]),
        lam,
        tol,
        iterations=lp.iterations,
        route="reference",
        basis=lp.basis,
    )
    if lp.basis is None:
        return solution
    return polished(program, solution, _partition(program, lp.basis), tol)


def _partition(program: Program, basis: Basis) -> Partition:
    rows, columns = program.rows, program.columns
    slack = basis.columns[len(columns) + 1 :] == BASIC
    active = basis.rows[: len(rows)] != BASIC
    return Partition(
        positive=columns[basis.columns[: len(columns)] == BASIC],
        tight=rows[active & ~slack],
        at_cost=rows[active & slack],
    )


def _solve(program: Program, method: str, basis: Basis | None, limited: bool) -> LpSolution:
    """Solve with the columns (u, b, xi), and with the limit of the coefficients as the last row."""
    rows, columns = program.rows, program.columns
    last = np.append(np.full(len(columns), -1 / program.limit), np.zeros(1 + len(rows)))
    free = np.full(len(columns) + 1, -np.inf)
    if program.nonnegative:
        free[:-1] = 0.0
    matrix = sparse.hstack(
        [
            sparse.csc_array(program.block(rows, columns)),
            sparse.csc_array(program.y[rows, None]),
            sparse.eye_array(len(rows)),
        ],
        format="csr",
    )
    return solve_lp(
        np.concatenate([program.c[columns], [0.0], program.cost[rows]]),
        sparse.vstack([matrix, last[None]], format="csr") if limited else matrix,
        row_lower=np.append(np.ones(len(rows)), np.full(int(limited), -1.0)),
        col_lower=np.concatenate([free, np.zeros(len(rows))]),
        method=method,
        basis=basis,
        iteration_limit=MAX_ITERATIONS,
    )


def _fitting(basis: Basis | None, n_rows: int, n_columns: int) -> Basis | None:
    if basis is None or (len(basis.rows), len(basis.columns)) != (n_rows, n_columns):
        return None
    return basis
