"""The whole program of the max-margin ratio machine in HiGHS."""

import numpy as np
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, certify, failed
from mmbench.machines.mmrm.program import Program
from mmbench.machines.mmrm.vertex import Partition, polished
from mmbench.solvers.highs_ import BASIC, Basis, LpSolution, solve_lp

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
