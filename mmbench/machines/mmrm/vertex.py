"""Vertices of a max-margin ratio program, computed by one LU factorization or by HiGHS.

With the notation of the module `program`, P are the columns with ``u > 0``, R the rows with margin
1 and ``0 < lam < cost``, and T the rows with ``lam = cost``. A nondegenerate vertex has
``|R| = |P| + 1`` and the square matrix ``M = [A_RP, y_R]``:

    M (u_P; b) = 1,      M'lam_R = (c_P - A_TP'cost_T; -y_T'cost_T).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dgetrf, dgetrs

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import CertifiedSolution, best, certify, constant_solution
from mmbench.machines.mmrm.interior import LpInteriorPoint
from mmbench.machines.mmrm.program import COEFFICIENT_LIMIT, Program
from mmbench.solvers.cones import SOLVERS, ConeProgram, ConeSolution, solve_socp
from mmbench.solvers.highs_ import LpSolution, solve_lp

#: Tolerance for negative coefficients of a vertex, relative to the largest coefficient, and for
#: negative multipliers, relative to the largest multiplier.
SIGN_TOLERANCE = 1e-9

#: Maximum number of simplex pivots in HiGHS. HiGHS needs a few thousand pivots for most programs,
#: but has run for hours on nearly singular programs.
MAX_PIVOTS = 100_000


@dataclass(frozen=True)
class Partition:
    """Index sets: columns with u > 0 (P), rows with margin 1 (R), and rows with lam = cost (T)."""

    positive: NDArray
    tight: NDArray
    at_cost: NDArray


def partition_of(iterate: LpInteriorPoint, rows: NDArray, columns: NDArray) -> Partition:
    """Return the active constraints of an iterate as a `Partition`.

    The smaller factor of each complementarity product, such as ``u_k s_k``, is considered zero.
    Factors are compared after division by the largest factor of their kind (``cost - lam`` by the
    largest penalty). `rows` and `columns` are the indices in the whole program; the last rows of an
    iterate, class means of omitted rows and the coefficient limit, have none.
    """
    point, first = iterate.point, slice(len(rows))
    # the last entries of xi, z and lam belong to the coefficient limit, and are omitted
    xi, z, lam = point.xi[:-1], point.z[:-1], point.lam[:-1]
    at_cost = np.zeros(len(rows), dtype=bool)
    if xi.max() > 1e-7:
        at_cost = (xi / iterate.slack[:-1])[first] > xi.max() / iterate.cost[first].max()
    tight = (lam / z)[first] > lam.max() / z.max()
    return Partition(
        positive=columns[point.u / point.s > point.u.max() / point.s.max()],
        tight=rows[tight & ~at_cost],
        at_cost=rows[at_cost],
    )


@dataclass(frozen=True)
class Vertex:
    """A vertex of the program: the u, b and lam that the active constraints determine."""

    partition: Partition
    u: NDArray
    b: float
    lam: NDArray

    def signs_hold(self, program: Program) -> bool:
        """Whether coefficients and multipliers satisfy their bounds up to `SIGN_TOLERANCE`."""
        tight = self.partition.tight
        lam = self.lam[tight]
        return bool(
            (not program.nonnegative or self.u.min() >= -SIGN_TOLERANCE * self.u.max(initial=0.0))
            and lam.min(initial=0.0) >= -SIGN_TOLERANCE * lam.max(initial=0.0)
            and np.all(lam <= program.cost[tight] * (1 + SIGN_TOLERANCE))
        )

    def is_optimum(
        self, program: Program, rows: NDArray, columns: NDArray, violation: float
    ) -> bool:
        """Whether the vertex is optimal for the restricted program of `rows` and `columns`.

        A constraint is considered satisfied if its violation is at most `violation`.
        """
        if not self.signs_hold(program):
            return False
        margins = program.forward(self.u) + program.y * self.b
        reduced = program.c - program.adjoint(self.lam)
        inside = np.setdiff1d(rows, self.partition.at_cost)
        least = min(margins[inside].min() - 1.0, reduced[columns].min())
        return bool(least >= -violation)


def solve_vertex(program: Program, partition: Partition) -> Vertex | None:
    """Return the vertex of a partition by one LU factorization of the matrix M.

    Return None if M, the matrix of the active constraints, is not square or is singular.
    """
    positive, tight, at_cost = partition.positive, partition.tight, partition.at_cost
    if len(tight) != len(positive) + 1:
        return None
    matrix = np.column_stack([program.block(tight, positive), program.y[tight]])
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    lam[at_cost] = program.cost[at_cost]
    reduced = program.c[positive] - program.adjoint(lam)[positive]
    right = np.append(reduced, -program.y @ lam)
    lu, pivots, _ = dgetrf(matrix)
    solutions = []
    for trans, wanted in ((0, np.ones(len(tight))), (1, right)):
        operator = matrix.T if trans else matrix
        x, _ = dgetrs(lu, pivots, wanted, trans=trans)
        with np.errstate(all="ignore"):  # M may be singular
            x += dgetrs(lu, pivots, wanted - operator @ x, trans=trans)[0]
        if not np.isfinite(x).all():
            return None
        solutions.append(x)
    u[positive], lam[tight] = solutions[0][:-1], solutions[1]
    return Vertex(partition, u, float(solutions[0][-1]), lam)


def polished(
    program: Program, solution: CertifiedSolution, partition: Partition, tol: float
) -> CertifiedSolution:
    """Improve a solution by the exact vertex of its active constraints, if the vertex exists."""
    vertex = solve_vertex(program, partition)
    if vertex is None:
        return solution
    u, b, lam = vertex.u, vertex.b, vertex.lam
    exact = certify(program, u, b, lam, tol, solution.iterations, solution.route)
    return best(program, [solution, exact], tol)


def solve_reference(
    program: Program, tol: float = 1e-6, solver: str = "reference"
) -> CertifiedSolution:
    """Solve the whole program (28) or (30) by a solver of another package.

    HiGHS accepts violations of 1e-7 per constraint, and each violation changes the objective value
    by up to 1e-7 times the slack penalty. Therefore the exact vertex of the basis found by HiGHS is
    also computed.
    """
    rows, columns = program.rows, program.columns
    n, k = len(rows), len(columns)
    matrix = sparse.hstack(  # columns of the variables u, b and xi
        [
            sparse.csc_array(program.block(rows, columns)),
            sparse.csc_array(program.y[rows, None]),
            sparse.eye_array(n),
        ],
        format="csr",
    )
    right = np.ones(n)
    if program.nonnegative:
        # HiGHS omits matrix entries below 1e-9, and 1 / limit would be smaller if the limit is
        # large
        unit = min(program.limit, COEFFICIENT_LIMIT)
        limit = np.append(np.full(k, -1 / unit), np.zeros(1 + n))
        matrix = sparse.vstack([matrix, limit[None]], format="csr")
        right = np.append(right, -program.limit / unit)
    lower = np.zeros(k + 1 + n)
    lower[0 if not program.nonnegative else k : k + 1] = -np.inf
    costs = np.concatenate([program.c[columns], [0.0], program.cost[rows]])
    lp: ConeSolution | LpSolution
    if solver in SOLVERS:
        lp = solve_socp(_cone_program(costs, matrix, right, lower), solver)
        multipliers, basis, route = lp.z, None, solver
    else:
        lp = solve_lp(
            costs,
            matrix,
            row_lower=right,
            col_lower=lower,
            iteration_limit=MAX_PIVOTS,
            interior=solver == "highs_ipm",
        )
        multipliers, basis, route = lp.row_dual, lp.basic, "highs"
    if lp.status is Status.UNBOUNDED:
        return constant_solution(program, Status.UNBOUNDED, route, lp.iterations)
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[columns], lam[rows] = lp.x[:k], multipliers[:n]
    found = certify(program, u, float(lp.x[k]), lam, tol, lp.iterations, route)
    if basis is None:
        return found
    basic, slack, active = basis[0][:k], basis[0][k + 1 :], ~basis[1][:n]
    partition = Partition(columns[basic], rows[active & ~slack], rows[active & slack])
    return polished(program, found, partition, tol)


def _cone_program(
    c: NDArray, A: sparse.csr_array, row_lower: NDArray, col_lower: NDArray
) -> ConeProgram:
    """Return the program ``min c'x`` subject to ``A x >= row_lower`` and ``x >= col_lower``."""
    bounded = np.flatnonzero(np.isfinite(col_lower))
    eye = sparse.csr_array(sparse.eye_array(len(c)))
    sides = np.concatenate([row_lower, col_lower[bounded]])
    return ConeProgram(
        c=c,
        A=sparse.csc_array((0, len(c))),
        b=np.zeros(0),
        G=sparse.csc_array(-sparse.vstack([A, eye[bounded]])),
        h=-sides,
        n_linear=len(sides),
        cones=(),
    )
