"""Interior-point method for a whole kernel program, without a restriction to a subset of the rows.

With a smooth kernel, terms with coefficients of 1e5 and more cancel in the decision values. As b is
free and ``y'lam = 0``, multiples of y may be subtracted from the columns of A, which changes only
b, and gives entries of order one:

    A_ik = y_i y_k (K_ik - h_k) / sigma,   h_k = mean_i K_ik,   sigma^2 = mean_ik (K_ik - h_k)^2.

Dual feasible points then have tiny reduced costs ``s = c - A'lam``, and so has the first starting
point, with large ``u_k = mu/s_k``: larger s make the steps too short. If the classes overlap little
or one is rare, its own steps are short, and the method starts again from the coefficients of the
warm start. Times: `benchmarks/routes.py`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import CertifiedSolution, best, certify, constant_bias
from mmbench.machines.mmrm.interior import LowRank, LpInteriorPoint, first_iterate, size_of
from mmbench.machines.mmrm.program import Guess, KernelProgram
from mmbench.machines.mmrm.vertex import partition_of, solve_vertex

#: FINE_TOLERANCES are the tolerances of the first and the second run from a starting point. The
#: second run is omitted if the gap is at most EXACT_GAP times the machine's tolerance, usually at
#: the exact vertex only.
FINE_TOLERANCES, EXACT_GAP = (1e-7, 1e-9), 1e-3

#: Lower bound on the reduced costs at the first starting point, divided by the mean of ``|c_k|``.
SMALL_REDUCED_COST = 1e-5

#: Maximum number of interior-point iterations for each of FINE_TOLERANCES. The interior-point
#: method usually needs 15 to 25 iterations.
MAX_ITER = 60


class Shifted(KernelProgram):
    """Kernel program with shifted and scaled columns. `A` is an array or a `LowRank` operator."""

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

    def kernel_values(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return ``K_ik - mean_i K_ik`` for given rows i and columns k of the Gram matrix K."""
        return self.program.kernel_values(rows, columns) - self.shift[columns]

    def part(self, rows: NDArray) -> Any:
        """Return the submatrix of A with the indices `rows` for both rows and columns."""
        if isinstance(self.A, LowRank):
            return self.A.part(rows, rows)
        return self.A if len(rows) == len(self.A) else self.A[np.ix_(rows, rows)]

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        return self.A @ u

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; the shifted matrix A is not symmetric."""
        return lam @ self.A

    def original(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Convert u and b of the shifted and scaled program to the original program."""
        moved = float((self.y * u) @ self.shift) / self.scale
        return u * (self.program.scale / self.scale), b - moved


def solve_whole(program: KernelProgram, guess: Guess, tol: float) -> CertifiedSolution:
    """Solve the kernel program (30) with all rows and columns, from the warm start `guess`."""
    shifted = Shifted(program)
    solutions: list[CertifiedSolution] = []
    for large in (True, False):
        iterate = _start(shifted, guess, large)
        for fine in FINE_TOLERANCES:
            converged = iterate.run(fine, MAX_ITER)
            iterate.restore_dual()
            solutions += _candidates(program, shifted, iterate, tol)
            solution = best(program, solutions, tol)
            if abs(solution.gap) <= EXACT_GAP * tol or not converged:
                break
        if solution.status is Status.OPTIMAL or solution.value < -tol or time_is_up():
            break
    return solution


def _start(program: Shifted, guess: Guess, large: bool) -> LpInteriorPoint:
    """Return an interior-point method that starts at large coefficients or at the warm start.

    In each class, the initial multipliers are proportional to the slack penalties. The multipliers
    of a class sum to 1, or to less if the slack penalties are too small.
    """
    rows = program.rows
    cost, c, margins, y = program.cost[rows], program.c[rows], guess.margins[rows], program.y[rows]
    share = min(1.0, (0.9999 if large else 0.9) * float(program.class_cost.min()))
    A, lam = program.part(rows), share * cost / program.class_cost[(y > 0).astype(int)]
    u, multiplier = guess.u[rows] * (program.scale / program.program.scale), None
    point = first_iterate(u, margins, lam, c)
    if large:
        # The multiplier of the coefficient limit is so large that lam is dual feasible. The initial
        # coefficients are mu/s, with the reduced costs s and the mean mu of the products ``z lam``.
        reduced = c - lam @ A
        multiplier = SMALL_REDUCED_COST * size_of(c) + 2 * float(np.abs(reduced).max())
        s = reduced + multiplier
        point = replace(point, u=np.mean(point.z * lam) / s, s=s)
    return LpInteriorPoint(A, y, c, cost, point, program.limit, multiplier)


def _candidates(
    program: KernelProgram, shifted: Shifted, iterate: LpInteriorPoint, tol: float
) -> list[CertifiedSolution]:
    """Certify up to three solutions: the iterate, w = 0, and the vertex defined by the iterate."""
    rows, columns = program.rows, program.columns
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[columns], lam[rows] = iterate.point.u, iterate.point.lam[:-1]
    points = [
        (*shifted.original(u, iterate.point.b), lam),
        (np.zeros_like(u), constant_bias(program), lam),
    ]
    vertex = solve_vertex(shifted, partition_of(iterate, rows, columns))
    if vertex is not None and vertex.signs_hold(shifted):
        points.append((*shifted.original(vertex.u, vertex.b), vertex.lam))
    return [certify(program, *point, tol, iterate.iterations, "whole") for point in points]
