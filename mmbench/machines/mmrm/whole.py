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
from mmbench.machines.mmrm.interior import InteriorPoint, Iterate, LowRank, first_iterate
from mmbench.machines.mmrm.program import Guess, KernelProgram
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

    Attributes
    ----------
    A : ndarray or LowRank of shape (n_rows, n_rows)
    """

    def __init__(self, program: KernelProgram) -> None:
        self.program, self.y, self.cost = program, program.y, program.cost
        factor = program.factor
        self.A: Any = self._dense() if factor is None else self._of_low_rank(factor)
        self.row_weights = program.row_weights
        self.n_columns, self.columns = program.n_columns, program.columns
        signed = [np.where(self.y == sign, self.row_weights, 0.0) for sign in (-1.0, 1.0)]
        self.class_sums = np.array([weights @ self.A for weights in signed])
        self.limit = program.limit * self.scale / program.scale

    def _dense(self) -> NDArray:
        every = np.arange(len(self.y))
        gram = self.program.kernel_values(every, every)
        self.shift = gram.mean(axis=0)
        gram -= self.shift
        self.scale = float(np.sqrt(np.mean(gram**2))) or 1.0
        gram *= self.y / self.scale
        gram *= self.y[:, None]
        return gram

    def _of_low_rank(self, factor: NDArray) -> LowRank:
        unit, mean = self.program.scale, factor.mean(axis=0)
        self.shift = unit * (factor @ mean)
        left = factor - mean
        mean_square = np.vdot(left.T @ left, factor.T @ factor) / len(factor) ** 2
        self.scale = unit * float(np.sqrt(mean_square)) or 1.0
        left *= (self.y * unit / self.scale)[:, None]
        return LowRank(left, factor * self.y[:, None])

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a part of A, shape (len(rows), len(columns)), from values of the kernel."""
        out = self.program.kernel_values(rows, columns)
        out -= self.shift[columns]
        out *= self.y[columns] / self.scale
        out *= self.y[rows][:, None]
        return out

    def part(self, rows: NDArray) -> Any:
        """Return A at some rows and the same columns."""
        if isinstance(self.A, LowRank):
            return self.A.part(rows, rows)
        return self.A if len(rows) == len(self.A) else self.A[np.ix_(rows, rows)]

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        return self.A @ u

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; A is not symmetric."""
        return lam @ self.A

    def original(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return u and b as the given program has them."""
        moved = float((self.y * u) @ self.shift) / self.scale
        return u * (self.program.scale / self.scale), b - moved


def solve_whole(program: KernelProgram, guess: Guess, tol: float) -> Solution:
    """Solve program (30) as a whole.

    Parameters
    ----------
    program : KernelProgram
    guess : Guess
        A neighbouring machine.
    tol : float
        For the certificate.

    Returns
    -------
    Solution
    """
    shifted = Shifted(program)
    solutions: list[Solution] = []
    for start in (_from_large_coefficients, _from_guess):
        iterate = start(shifted, guess)
        for tight in FINE:
            converged = iterate.run(tight, MAX_ITER)
            iterate.restore_dual()
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


def _from_large_coefficients(program: Shifted, guess: Guess) -> InteriorPoint:
    """Start from lam = 1/n_class, where A'lam = c, or a part of it where that is beyond the cost.

    The multiplier of the limit makes that feasible. Its coefficients are those that such reduced
    costs have on the central path.
    """
    rows = program.rows
    cost, c, margins = program.cost[rows], program.c[rows], guess.margins[rows]
    A, lam = program.part(rows), _shares(program, 0.9999)
    z = np.maximum(margins - 1, 0.3)
    reduced = c - lam @ A
    multiplier = SMALL * (float(np.abs(c).mean()) or 1.0) + 2 * float(np.abs(reduced).max())
    s = reduced + multiplier
    u = np.mean(z * lam) / s
    point = Iterate(u=u, b=0.0, xi=np.maximum(1 - margins, 0.01), z=z, lam=lam, s=s)
    return InteriorPoint(A, program.y[rows], c, cost, point, program.limit, multiplier)


def _from_guess(program: Shifted, guess: Guess) -> InteriorPoint:
    """Start from the neighbour's coefficients.

    Where the classes overlap little, or one is rare, large coefficients do not cancel, and no step
    from them is long.
    """
    rows = program.rows
    cost, c = program.cost[rows], program.c[rows]
    u = guess.u[rows] * (program.scale / program.program.scale)
    point = first_iterate(u, guess.margins[rows], _shares(program, 0.9), c)
    A = program.part(rows)
    return InteriorPoint(A, program.y[rows], c, cost, point, program.limit)


def _shares(program: Shifted, most: float) -> NDArray:
    """Return lam = 1/n_class, or a multiple of it that is at most so many times the cost."""
    rows = program.rows
    cost, class_cost = program.cost[rows], program.class_cost
    share = min(1.0, most * float(class_cost.min()))
    return share * cost / class_cost[(program.y[rows] > 0).astype(int)]


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
    found = [(*shifted.original(u, iterate.point.b), lam)]
    found.append((np.zeros_like(u), constant_bias(program), lam))
    vertex = solve_vertex(shifted, partition_of(iterate, rows, columns))
    if vertex is not None and vertex.signs_hold(shifted):
        found.append((*shifted.original(vertex.u, vertex.b), vertex.lam))
    return [certify(program, u, b, lam, tol, **facts) for u, b, lam in found]
