"""Clarabel, an interior point for cone programs: the reference of the minimax family."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mmbench.errors import Status
from mmbench.solvers.clarabel_ import STATUS
from mmbench.solvers.cone_program import ConeProgram, ConeSolution


def solve(program: ConeProgram, tol: float, max_iter: int, time_limit: float) -> ConeSolution:
    """Solve a cone program; see `mmbench.solvers.cone_program.solve_socp`."""
    import clarabel

    n, n_equations = len(program.c), len(program.b)
    cones = [clarabel.ZeroConeT(n_equations), clarabel.NonnegativeConeT(program.n_linear)]
    cones += [clarabel.SecondOrderConeT(size) for size in program.cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = max_iter
    settings.time_limit = time_limit
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    found = clarabel.DefaultSolver(
        sparse.csc_matrix((n, n)),
        program.c,
        sparse.csc_matrix(sparse.vstack([program.A, program.G])),
        np.concatenate([program.b, program.h]),
        cones,
        settings,
    ).solve()
    multipliers = np.array(found.z)
    return ConeSolution(
        np.array(found.x),
        multipliers[:n_equations],
        multipliers[n_equations:],
        found.iterations,
        STATUS.get(str(found.status), Status.FAILED),
    )
