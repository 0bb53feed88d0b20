"""A whole kernel program by one interior point: the route of inseparable data and smooth kernels.

Where most rows lie within the margin a part of the program has no advantage, and the kernel is
often so smooth that coefficients of 1e5 and more cancel. Two things make that tractable.

Columns may be shifted: as ``y'lam = 0`` and b is free, A and

    A_ik = y_i y_k (K_ik - h_k) / sigma,   h_k = mean_i K_ik,   sigma^2 = mean_ik (K_ik - h_k)^2

are the same program with another b; its entries are of size one however smooth the kernel is.

The start has tiny reduced costs s and large coefficients mu/s, because all dual feasible points of
such a program have tiny reduced costs: from s of size one half of the iterations go into that.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpocon, dpotrf

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best, certify, constant_bias
from mmbench.machines.mmrm.interior import InteriorPoint, Iterate
from mmbench.machines.mmrm.program import KernelProgram
from mmbench.machines.mmrm.vertex import partition_of, solve_vertex

#: Relative complementarity at which a solution is tried, and where that does not certify again.
FINE = (1e-7, 1e-9)

#: Reduced costs at the start, relative to the mean ``|c|``.
SMALL = 1e-5

#: Most iterations for one tolerance; 15 to 25 are usual.
MAX_ITER = 60


class Shifted(KernelProgram):
    """The same program in shifted and scaled columns.

    Parameters
    ----------
    program : KernelProgram
    """

    def __init__(self, program: KernelProgram) -> None:
        every = np.arange(len(program.y))
        gram = program.kernel_values(every, every)
        self.shift = gram.mean(axis=0)
        gram -= self.shift
        sigma = float(np.sqrt(np.mean(gram**2))) or 1.0
        gram *= program.y / sigma
        gram *= program.y[:, None]
        self.A, self.y, self.cost = gram, program.y, program.cost
        self.row_weights = program.row_weights
        self.n_columns, self.columns = program.n_columns, program.columns
        own = [np.flatnonzero(program.y == sign) for sign in (-1.0, 1.0)]
        sums = [(gram[rows] * self.row_weights[rows, None]).sum(axis=0) for rows in own]
        self.class_sums = np.array(sums)
        self.scale = sigma
        self.limit = program.limit * sigma / program.scale

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a part of A, shape (len(rows), len(columns))."""
        if len(rows) == len(columns) == len(self.A):
            return self.A
        return self.A[np.ix_(rows, columns)]

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        return self.A @ u

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; A is not symmetric."""
        return lam @ self.A

    def original(self, program: KernelProgram, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return u and b as the given program has them."""
        return u * (program.scale / self.scale), b - float((self.y * u) @ self.shift) / self.scale


def solve_whole(program: KernelProgram, margins: NDArray, tol: float) -> Solution:
    """Solve program (30) as a whole.

    Parameters
    ----------
    program : KernelProgram
    margins : ndarray of shape (n_rows,)
        ``y f(x)`` of a neighbouring machine.
    tol : float
        For the certificate.

    Returns
    -------
    Solution
    """
    shifted = Shifted(program)
    solutions: list[Solution] = []
    for by_class in (False, True):
        iterate = _start(shifted, margins, by_class)
        for tight in FINE:
            converged = iterate.run(tight, MAX_ITER)
            facts = {"iterations": iterate.iterations, "route": "whole"}
            solutions += _candidates(program, shifted, iterate, tol, facts)
            found = best(program, solutions, tol)
            if found.status is Status.OPTIMAL or not converged:
                break
        if converged or time_is_up():
            break
    return found


def singular(program: KernelProgram, rows: NDArray) -> bool:
    """Return whether the Gram matrix of some rows is singular to working precision."""
    gram = program.kernel_values(rows, rows)
    factor, failure = dpotrf(gram, lower=1)
    if failure:
        return True
    reciprocal, _ = dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")
    return reciprocal < len(rows) * np.finfo(np.float64).eps


def _start(program: Shifted, margins: NDArray, by_class: bool) -> InteriorPoint:
    """Start from lam = 1/n_class, where A'lam = c, or a part of it where that is beyond the cost.

    The multiplier of the limit makes that feasible. The coefficients of a rare class do not cancel
    those of the other, and steps are short, unless both sum to the same: `by_class`.
    """
    rows, columns = program.rows, program.columns
    y, cost, c = program.y[rows], program.cost[rows], program.c[columns]
    margins = margins[rows]
    A = program.block(rows, columns)
    share = min(1.0, 0.9999 * float(program.class_cost.min()))
    lam = share * cost / program.class_cost[(y > 0).astype(int)]
    z = np.maximum(margins - 1, 0.3)
    reduced = c - lam @ A
    multiplier = SMALL * (float(np.abs(c).mean()) or 1.0) + 2 * float(np.abs(reduced).max())
    s = reduced + multiplier
    u = np.mean(z * lam) / s
    if by_class:
        u *= len(y) / (2 * program.class_sizes[(y > 0).astype(int)])
    point = Iterate(u=u, b=0.0, xi=np.maximum(1 - margins, 0.01), z=z, lam=lam, s=s)
    return InteriorPoint(A, y, c, cost, point, program.limit, multiplier)


def _candidates(
    program: KernelProgram,
    shifted: Shifted,
    iterate: InteriorPoint,
    tol: float,
    facts: dict[str, Any],
) -> list[Solution]:
    """Return what is certified of an iterate, w = 0, and the partition's vertex if it has one."""
    rows, columns = program.rows, program.columns
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[columns], lam[rows] = iterate.point.u, iterate.point.lam[:-1]
    found = [(*shifted.original(program, u, iterate.point.b), lam)]
    found.append((np.zeros_like(u), constant_bias(program), lam))
    vertex = solve_vertex(shifted, partition_of(iterate, rows, columns))
    if vertex is not None and vertex.signs_hold(shifted):
        found.append((*shifted.original(program, vertex.u, vertex.b), vertex.lam))
    return [certify(program, u, b, lam, tol, **facts) for u, b, lam in found]
