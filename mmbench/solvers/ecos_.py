"""ECOS, an interior-point solver for cone programs, to check solutions of Clarabel.

ECOS is licensed under the GPL and has no wheels for Python 3.13 and later. It is therefore an
optional dependency.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status, memory_of
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
def solve_cones(
    c: NDArray,
    A: sparse.csc_array,
    b: NDArray,
    G: sparse.csc_array,
    h: NDArray,
    n_linear: int,
    cones: Sequence[int],
    matrix_order: int,
    tol: float,
    max_iter: int,
) -> tuple[NDArray, NDArray, NDArray, int, Status]:
    """Solve a `mmbench.solvers.cones.ConeProgram` with ``matrix_order=0``, without a time limit.

    Returns x, y, z, the iterations and the status.
    """
    import ecos

    equations = {"A": sparse.csc_matrix(A), "b": b} if len(b) else {}
    found = ecos.solve(
        c,
        sparse.csc_matrix(G),
        h,
        {"l": n_linear, "q": list(cones)},
        **equations,
        verbose=False,
        feastol=tol,
        abstol=tol,
        reltol=tol,
        max_iters=max_iter,
    )
    info = found["info"]
    status = STATUS.get(info["exitFlag"], Status.FAILED)
    note_status(status)
    y = np.asarray(found["y"]) if len(b) else np.zeros(0)
    return np.asarray(found["x"]), y, np.asarray(found["z"]), int(info["iter"]), status
