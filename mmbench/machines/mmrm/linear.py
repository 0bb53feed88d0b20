"""Program (28) of the linear machine: bounded or not, trivial or not, and its solution.

It has few columns, and HiGHS solves all of it in less time than generation takes: 256 columns and
1214 rows in 0.7 s.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, failed
from mmbench.machines.mmrm.program import LinearProgram
from mmbench.machines.mmrm.reference import solve_reference
from mmbench.solvers.highs_ import Basis, solve_lp


def solve_linear(
    program: LinearProgram,
    *,
    tol: float = 1e-6,
    basis: Basis | None = None,
) -> Solution:
    """Solve program (28), after an exact test of whether it is bounded.

    Parameters
    ----------
    program : LinearProgram
    tol : float, default=1e-6
        For the certificate.
    basis : Basis, optional
        Of the whole program at other costs, for a hot start.

    Returns
    -------
    Solution
        Unbounded, with the fact "bounded_from_factor", if the costs are too small.
    """
    if not program.surely_bounded:
        factor = critical_factor(program)
        if factor > 1 + 1e-7:
            solution = failed(program, Status.UNBOUNDED, "critical_cost")
            return replace(solution, facts={"bounded_from_factor": factor})
    return solve_reference(program, tol=tol, basis=basis)


def critical_factor(program: LinearProgram) -> float:
    """Return the smallest factor of the costs that makes the program bounded.

    With all costs C the product is the C* of

        C* = min max_i lam_i   s.t.  A'lam = c,  y'lam = 0,  lam >= 0.
    """
    n, share = len(program.y), 1 / program.class_sizes[(program.y > 0).astype(int)]
    equal = np.vstack([program.A.T, program.y]) * share
    caps = np.column_stack([np.eye(n), -program.cost / share])
    lp = solve_lp(
        np.append(np.zeros(n), 1.0),
        sparse.csr_array(np.vstack([np.pad(equal, ((0, 0), (0, 1))), caps])),
        row_lower=np.concatenate([program.c, [0.0], np.full(n, -np.inf)]),
        row_upper=np.concatenate([program.c, [0.0], np.zeros(n)]),
    )
    return lp.value
