"""Clarabel, an interior-point solver of quadratic and conic programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.allowance import check_time, time_is_up, time_left
from mmbench.errors import Status, memory_of
from mmbench.solvers.result import Result, note_status

STATUS = {
    "Solved": Status.OPTIMAL,
    "AlmostSolved": Status.INACCURATE,
    "PrimalInfeasible": Status.INFEASIBLE,
    "AlmostPrimalInfeasible": Status.INFEASIBLE,
    "DualInfeasible": Status.UNBOUNDED,
    "AlmostDualInfeasible": Status.UNBOUNDED,
    "MaxIterations": Status.ITERATION_LIMIT,
    "MaxTime": Status.TIME_LIMIT,
    "InsufficientProgress": Status.INACCURATE,
}


#: Operations per product in a sparse factorisation: 1e9 products/s, 3e10 in dense matrices.
OPERATIONS_PER_PRODUCT = 25.0


@dataclass(frozen=True)
class QPSolution(Result):
    """The solution of a quadratic program."""

    #: Shape (n,).
    x: NDArray
    #: Multipliers z of ``Ax = b``; the Lagrangian contains the term ``z'(Ax - b)``. Shape (m,).
    multipliers: NDArray


def solve_qp(
    P: sparse.csc_array,
    q: NDArray,
    A: sparse.csc_array,
    b: NDArray,
    lower: NDArray,
    upper: NDArray,
    tol: float = 1e-8,
) -> QPSolution:
    """Minimise ``1/2 x'Px + q'x`` subject to ``Ax = b`` and ``lower <= x <= upper``.

    Parameters
    ----------
    P : csc_array of shape (n, n)
        Symmetric positive semidefinite matrix; only the upper triangle is read.
    q : ndarray of shape (n,)
    A : csc_array of shape (m, n)
    b : ndarray of shape (m,)
    lower, upper : ndarray of shape (n,)
        Bounds of x; infinite for a variable without a bound.
    tol : float, default=1e-8
        Absolute and relative tolerance of feasibility and of the duality gap.

    Returns
    -------
    QPSolution
        `bound` is the dual objective, and `violation` is the largest violation of the primal and
        the dual constraints.
    """
    above, below = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    eye = sparse.csr_array(sparse.eye_array(len(q)))
    rows = sparse.csc_array(sparse.vstack([A, -eye[above], eye[below]]))
    sides, m = np.concatenate([b, -lower[above], upper[below]]), len(b)
    half = sparse.csc_array(sparse.triu(P))
    cones = [("ZeroConeT", m), ("NonnegativeConeT", len(sides) - m)]
    x, z, iterations, status = solve_conic(half, q, rows, sides, cones, tol, 200)
    curvature = half @ x + half.T @ x - half.diagonal() * x
    slack = sides - rows @ x
    residuals = (np.abs(slack[:m]), -slack[m:], -z[m:], np.abs(curvature + q + rows.T @ z))
    return QPSolution(
        x,
        z[:m],
        value=float(0.5 * x @ curvature + q @ x),
        bound=float(-0.5 * x @ curvature - sides @ z),
        violation=max(float(part.max(initial=0.0)) for part in residuals),
        iterations=iterations,
        status=status,
    )


@memory_of("Clarabel")
def solve_conic(
    P: Any,
    q: NDArray,
    rows: Any,
    sides: NDArray,
    cones: Sequence[tuple[str, int]],
    tol: float,
    max_iter: int,
) -> tuple[NDArray, NDArray, int, Status]:
    """Minimise ``1/2 x'Px + q'x`` subject to ``sides - rows @ x`` in a product of cones.

    Each element of `cones` is a pair: Clarabel's name of a cone, and the dimension of the cone.
    Returns x, the multipliers of the constraints, the number of iterations and the status.
    """
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = max_iter
    settings.time_limit = time_left()
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    kinds = [getattr(clarabel, name)(size) for name, size in cones]
    P, rows = sparse.csc_matrix(P), sparse.csc_matrix(rows)
    # one factorisation: either the rows or the columns are eliminated first
    squares = [float((rows.count_nonzero(axis=axis) ** 2.0).sum()) for axis in (0, 1)]
    check_time(OPERATIONS_PER_PRODUCT * 0.5 * min(squares))
    found = clarabel.DefaultSolver(P, q, rows, sides, kinds, settings).solve()
    status = STATUS.get(str(found.status), Status.FAILED)
    note_status(status)
    if status is Status.TIME_LIMIT:
        time_is_up()  # called only to record that the time limit ended the training
    return np.array(found.x), np.array(found.z), found.iterations, status
