"""ECOS, an interior-point solver for cone programs, to check solutions of Clarabel.

ECOS is licensed under the GPL and has no wheels for Python 3.13 and later. It is therefore an
optional dependency, and no other module imports it.
"""

import numpy as np
from scipy import sparse

from mmbench.errors import Status, memory_of
from mmbench.solvers.cones import ConeProgram, RawSolution
from mmbench.solvers.result import note_status

#: Status for each ``info["exitFlag"]``; ECOS adds 10 if it stopped at a looser tolerance.
STATUS = {
    0: Status.OPTIMAL,
    10: Status.INACCURATE,
    1: Status.INFEASIBLE,
    11: Status.INFEASIBLE,
    2: Status.UNBOUNDED,
    12: Status.UNBOUNDED,
    -1: Status.ITERATION_LIMIT,
    -2: Status.INACCURATE,
}


@memory_of("ECOS")
def solve(program: ConeProgram, tol: float, max_iter: int) -> RawSolution:
    """Solve a cone program for `mmbench.solvers.cones.solve_socp`, without a time limit."""
    import ecos

    equations = {}
    if len(program.b):
        equations = {"A": sparse.csc_matrix(program.A), "b": program.b}
    found = ecos.solve(
        program.c,
        sparse.csc_matrix(program.G),
        program.h,
        {"l": program.n_linear, "q": list(program.cones)},
        **equations,
        verbose=False,
        feastol=tol,
        abstol=tol,
        reltol=tol,
        max_iters=max_iter,
    )
    status = STATUS.get(found["info"]["exitFlag"], Status.FAILED)
    note_status(status)
    return RawSolution(
        np.asarray(found["x"]),
        np.asarray(found["y"]) if len(program.b) else np.zeros(0),
        np.asarray(found["z"]),
        int(found["info"]["iter"]),
        status,
    )
