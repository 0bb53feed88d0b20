"""Clarabel, an interior-point solver: the reference for quadratic programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status

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


@dataclass(frozen=True)
class QPSolution:
    """What `solve_qp` returns.

    Attributes
    ----------
    x : ndarray of shape (n,)
    multipliers : ndarray of shape (m,)
        z of the equations, in ``Px + q + A'z + (bounds) = 0``.
    iterations : int
    status : Status
    """

    x: NDArray
    multipliers: NDArray
    iterations: int
    status: Status


def solve_qp(
    P: sparse.csc_array,
    q: NDArray,
    A: sparse.csc_array,
    b: NDArray,
    lower: NDArray,
    upper: NDArray,
    tol: float = 1e-8,
    time_limit: float = np.inf,
) -> QPSolution:
    """Minimise ``1/2 x'Px + q'x`` subject to ``Ax = b`` and ``lower <= x <= upper``.

    Parameters
    ----------
    P : csc_array of shape (n, n)
        Symmetric positive semidefinite; the upper triangle is read.
    q : ndarray of shape (n,)
    A : csc_array of shape (m, n)
    b : ndarray of shape (m,)
    lower, upper : ndarray of shape (n,)
        Infinite where there is no bound.
    tol : float, default=1e-8
        For feasibility and gap, absolute and relative.
    time_limit : float, default=inf
        Seconds.

    Returns
    -------
    QPSolution
    """
    import clarabel

    above, below = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    eye = sparse.csr_array(sparse.eye_array(len(q)))
    rows = sparse.csc_array(sparse.vstack([A, -eye[above], eye[below]]))
    sides = np.concatenate([b, -lower[above], upper[below]])
    cones = [
        clarabel.ZeroConeT(len(b)),
        clarabel.NonnegativeConeT(len(above) + len(below)),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.time_limit = time_limit
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tol
    upper_half = sparse.csc_array(sparse.triu(P))
    found = clarabel.DefaultSolver(upper_half, q, rows, sides, cones, settings).solve()
    return QPSolution(
        np.array(found.x),
        np.array(found.z)[: len(b)],
        found.iterations,
        STATUS.get(str(found.status), Status.FAILED),
    )
