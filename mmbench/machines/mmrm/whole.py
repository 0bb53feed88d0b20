"""A whole kernel program by one interior point: the route of inseparable data.

Where most rows lie within the margin a part of the program has no advantage, and the kernel is
often so smooth that coefficients of 1e6 and more cancel. Three things make that tractable.

Columns may be shifted: as ``y'lam = 0`` and b is free, A and

    A_ik = y_i y_k (K_ik - h_k) / sigma,   h_k = mean_i K_ik,   sigma^2 = mean_ik (K_ik - h_k)^2

are the same program with another b; its entries are of size one however smooth the kernel is.

The start has tiny reduced costs s and large coefficients mu/s, because all dual feasible points of
such a program have tiny reduced costs: from s of size one half of the iterations go into that.

Coefficients may have a price. Where K is singular to working precision the infimum is approached by
coefficients beyond 1e8 that fit rounding errors, and no solver reaches it. There the cost of u is

    c + price,   price = tol/2,

so that lam violates ``A'lam <= c`` by no more than the price: within tolerance the dual solution
proves that nothing better has coefficients of no larger sum. It says nothing about larger ones; so
where the price takes a part of the objective that is more than `tol`, the solution is "inaccurate".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpocon, dpotrf

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best, certify
from mmbench.machines.mmrm.interior import InteriorPoint, Iterate
from mmbench.machines.mmrm.program import KernelProgram
from mmbench.machines.mmrm.vertex import partition_of, solve_vertex

#: Relative complementarity at which a vertex is tried, and where that fails again.
FINE = (1e-7, 1e-9)

#: Reduced costs at the start, relative to the mean ``|c|``.
SMALL = 1e-5

#: Where a price takes less than this part of the objective, a hundredth of it is tried.
CHEAP = 1e-4

#: Most iterations for one tolerance; 15 to 25 are usual.
MAX_ITER = 60


class Shifted(KernelProgram):
    """The same program in shifted and scaled columns, with a price on its coefficients.

    Parameters
    ----------
    program : KernelProgram
    price : float
        Added to the cost of every coefficient, in the units of this program.
    """

    def __init__(self, program: KernelProgram, price: float) -> None:
        gram = program.gram.astype(np.float64)
        self.shift = gram.mean(axis=0)
        gram -= self.shift
        sigma = float(np.sqrt(np.mean(gram**2))) or 1.0
        gram *= program.y / sigma
        gram *= program.y[:, None]
        self.A, self.y, self.cost = gram, program.y, program.cost
        self.n_columns, self.columns = program.n_columns, program.columns
        self.class_sums = np.array([gram[program.y == sign].sum(axis=0) for sign in (-1.0, 1.0)])
        self.scale = sigma
        self.price = price
        self.c = program.c * (program.scale / sigma) + price

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
        With costs of at least 1/n_class, so that it is bounded.
    margins : ndarray of shape (n_rows,)
        ``y f(x)`` of a neighbouring machine.
    tol : float
        For the certificate.

    Returns
    -------
    Solution
        With the fact "coefficient_price", in the units of `program`, if a price was needed.
    """
    if not singular(program):
        return _solve(program, margins, 0.0, tol)
    solution = _solve(program, margins, tol / 2, tol)
    if solution.status is Status.OPTIMAL or _paid(solution) > CHEAP:
        return solution
    cheaper = _solve(program, margins, tol / 200, tol)
    return cheaper if cheaper.status is Status.OPTIMAL else solution


def _solve(program: KernelProgram, margins: NDArray, price: float, tol: float) -> Solution:
    """Solve with a price in the units of the shifted program."""
    shifted = Shifted(program, price)
    iterate = _start(shifted, margins)
    solutions: list[Solution] = []
    for tight in FINE:
        converged = iterate.run(tight, MAX_ITER)
        facts = {"iterations": iterate.iterations, "route": "whole"}
        solutions += _candidates(program, shifted, iterate, tol, facts)
        if best(program, solutions, tol).status is Status.OPTIMAL or price or not converged:
            break
    found = best(program, solutions, tol)
    if not price:
        return found
    found = replace(found, facts={"coefficient_price": price * shifted.scale / program.scale})
    exact = found.status is not Status.OPTIMAL or _paid(found) <= tol
    return found if exact else replace(found, status=Status.INACCURATE)


def _paid(solution: Solution) -> float:
    """Return what the coefficients cost, relative to the objective."""
    price = solution.facts["coefficient_price"]
    return price * float(solution.u.sum()) / max(1.0, abs(solution.value))


def singular(program: KernelProgram) -> bool:
    """Return whether the Gram matrix of the used rows is singular to working precision."""
    rows = program.rows
    gram = program.gram[np.ix_(rows, rows)].astype(np.float64)
    factor, failure = dpotrf(gram, lower=1)
    if failure:
        return True
    reciprocal, _ = dpocon(factor, np.abs(gram).sum(axis=0).max(), uplo="L")
    return reciprocal < len(rows) * np.finfo(np.float64).eps


def _start(program: Shifted, margins: NDArray) -> InteriorPoint:
    """Start from lam = 1/n_class, where A'lam = c, or close to it where that is beyond the cost."""
    rows, columns = program.rows, program.columns
    y, cost, c = program.y[rows], program.cost[rows], program.c[columns]
    margins = margins[rows]
    A = program.block(rows, columns)
    lam = np.minimum(cost / program.class_cost[(y > 0).astype(int)], 0.9 * cost)
    z = np.maximum(margins - 1, 0.3)
    off = np.abs(c - program.price - lam @ A).max()
    s = np.full(len(c), max(SMALL * np.abs(c).mean(), program.price, off / 10))
    point = Iterate(
        u=np.mean(z * lam) / s, b=0.0, xi=np.maximum(1 - margins, 0.01), z=z, lam=lam, s=s
    )
    return InteriorPoint(A, y, c, cost, point)


def _candidates(
    program: KernelProgram,
    shifted: Shifted,
    iterate: InteriorPoint,
    tol: float,
    facts: dict[str, Any],
) -> list[Solution]:
    """Return what is certified of an iterate and of the vertex of its partition, if it has one."""
    rows, columns = program.rows, program.columns
    u, lam = np.zeros(program.n_columns), np.zeros(len(program.y))
    u[columns], lam[rows] = iterate.point.u, iterate.point.lam
    found = [(u, iterate.point.b, lam)]
    vertex = solve_vertex(shifted, partition_of(iterate, rows, columns))
    if vertex is not None and vertex.signs_hold(shifted):
        found.append((vertex.u, vertex.b, vertex.lam))
    return [
        certify(program, *shifted.original(program, u, b), lam, tol, **facts) for u, b, lam in found
    ]
