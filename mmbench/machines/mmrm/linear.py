"""Program (28) of the linear machine: test of boundedness, and solution.

The program has few columns, and HiGHS solves the whole program: 0.7 s for 256 columns and 1214
rows. With at least 200 rows, an interior point in the space of the features is tried first; its
partition determines the exact vertex. If columns are nearly equal, both methods may fail. The
program is then solved again in orthonormal coordinates of the rows.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr, svd

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import (
    CertifiedSolution,
    best,
    certify,
    constant_solution,
    value_of,
    with_status,
)
from mmbench.machines.mmrm.program import LEAST_ROWS, LinearProgram
from mmbench.machines.mmrm.vertex import Partition, polished, solve_reference
from mmbench.solvers.highs_ import solve_lp
from mmbench.solvers.interior_point import HingeInteriorPoint
from mmbench.solvers.rows import weighted_product

#: Relative gap of the interior point.
GAP_TOLERANCE = 1e-10

#: Ridge of the Newton system, relative to the sum of the rows' weights in this system.
RIDGE = 1e-12

#: A direction is used if its singular value exceeds this fraction of the largest singular value.
#: Along other directions, decisions would have fewer digits than a certificate needs.
LEAST_SPREAD = 1e-8

#: The interior point can start from the multipliers 1/n_class if the costs are at least this
#: multiple of 1/n_class.
LEAST_ROOM = 1.01


def solve_linear(
    program: LinearProgram, tol: float = 1e-6, solver: str = "auto"
) -> CertifiedSolution:
    """Solve program (28), after an exact test whether the program is bounded.

    If the program is unbounded, the entry "bounded_from_factor" of `facts` is the smallest factor
    of the costs that makes the program bounded.
    """
    if not program.surely_bounded:
        factor = critical_factor(program)
        if factor > 1 + 1e-7:
            solution = constant_solution(program, Status.UNBOUNDED, "highs")
            return replace(solution, facts={"bounded_from_factor": factor})
    solution = _solved(program, tol, solver)
    if solution.status in (Status.OPTIMAL, Status.UNBOUNDED):
        return solution
    other = _solved_by_directions(program, tol, solver)
    return min(solution, other, key=lambda candidate: abs(candidate.gap))


def _solved(program: LinearProgram, tol: float, solver: str) -> CertifiedSolution:
    """Solve a bounded program in the coordinates of its features."""
    if len(program.y) >= LEAST_ROWS and solver in ("auto", "interior"):
        found = solve_in_features(program, tol)
        if found is not None and found.status is Status.OPTIMAL:
            return found
    found = solve_reference(program, tol, solver)
    if found.status in (Status.OPTIMAL, Status.UNBOUNDED):
        return found
    # The multipliers of HiGHS satisfy A'lam = c only up to a tolerance. The residual times the
    # coefficient limit is subtracted from the bound. The multipliers 1/n_class satisfy A'lam = c up
    # to rounding errors and give the bound 2, which is the optimum if all rows can lie on the
    # margins of their classes.
    lam = np.minimum(program.cost, program.class_shares)
    return best(program, [found, certify(program, found.u, found.b, lam, tol)], tol)


def _solved_by_directions(program: LinearProgram, tol: float, solver: str) -> CertifiedSolution:
    """Solve a bounded program in orthonormal coordinates of its rows.

    These coordinates are necessary if two columns differ by less than the tolerance of HiGHS. The
    machine is affine invariant, so the optimum is the same in all coordinates. The coefficient
    limit applies to the orthonormal coordinates; the value is recomputed in the coordinates of the
    features.
    """
    Z = np.asarray(program.Z)
    _, spread, directions = svd(qr(Z, mode="r")[0], full_matrices=False)
    used = spread > LEAST_SPREAD * spread.max(initial=0.0)
    back = directions[used].T * (np.sqrt(len(Z)) / spread[used])
    inner = LinearProgram(
        Z @ back, program.y, program.cost, program.limit, weights=program.row_weights
    )
    found = _solved(inner, tol, solver)
    w, b = inner.weights(found.u, found.b)
    u = back @ w
    margins = program.forward(u) + program.y * b
    value = value_of(program, u, margins)
    return with_status(replace(found, u=u, b=b, margins=margins, value=value), tol)


class _Ratio(HingeInteriorPoint):
    """The interior point of program (28): the objective has ``c'w`` in place of ``||w||^2 / 2``.

    The initial multipliers 1/n_class are feasible, and all iterates satisfy ``A'lam = c``.
    """

    def __init__(self, program: LinearProgram, lam: NDArray):
        self.c = program.c
        super().__init__(program.Z, program.y, program.cost, lam)

    def _norm(self, v: NDArray) -> float:
        return 0.0

    def _begin(self) -> float:
        self.at["w"] = np.zeros_like(self.c)
        return 0.0

    def _follow(self) -> tuple[NDArray, float]:
        return self.c - self.at["v"], 0.0

    def _system(self) -> tuple[float, NDArray, NDArray]:
        # the ridge keeps steps finite if columns are linearly dependent; the next step corrects
        # the residual that the ridge causes
        return RIDGE * float(self.weight.sum()), *super()._system()[1:]


def solve_in_features(program: LinearProgram, tol: float) -> CertifiedSolution | None:
    """Solve a program by an interior point and the exact vertex of its partition.

    Returns None if the costs are too small for the initial multipliers 1/n_class.
    """
    lam = program.class_shares
    if np.any(program.cost < LEAST_ROOM * lam):
        return None
    point = _Ratio(program, lam)
    point.run(GAP_TOLERANCE)
    at = point.at
    at_cost = at["rest"] / program.cost < at["slack"]
    tight = (at["a"] / program.cost > at["surplus"]) & ~at_cost
    varied = np.flatnonzero(program.spread)
    partition = Partition(varied, np.flatnonzero(tight), np.flatnonzero(at_cost))
    lam = _feasible(program, at["a"])
    found = certify(program, at["w"], float(at["b"]), lam, tol, point.iterations, "features")
    return polished(program, found, partition, tol)


def _feasible(program: LinearProgram, lam: NDArray) -> NDArray:
    """Project multipliers onto ``A'lam = c``, ``y'lam = 0`` to remove rounding errors.

    Each multiplier changes in proportion to its distance from the nearer bound. A second step
    reduces the residual of the first step.
    """
    Z, y, k = program.Z, program.y, len(program.c)
    room = np.minimum(lam, program.cost - lam)
    matrix = np.full((k + 1, k + 1), room.sum())
    matrix[:k, :k] = weighted_product(Z, room)
    matrix[:k, k] = matrix[k, :k] = Z.T @ room
    for _ in range(2):
        residual = np.append(program.c - program.adjoint(lam), -y @ lam)
        step = np.linalg.lstsq(matrix, residual)[0]
        lam = lam + room * y * (Z @ step[:k] + step[k])
    return lam


def critical_factor(program: LinearProgram) -> float:
    """Return the smallest factor of the costs that makes the program bounded.

    If all costs are C, the factor times C is the optimal value C* of

        C* = min max_i lam_i   s.t.  A'lam = c,  y'lam = 0,  lam >= 0.
    """
    n, share = len(program.y), program.class_shares
    equal = np.vstack([program.y * np.asarray(program.Z).T, program.y]) * share
    caps = np.column_stack([np.eye(n), -program.cost / share])
    lp = solve_lp(
        np.append(np.zeros(n), 1.0),
        sparse.csr_array(np.vstack([np.pad(equal, ((0, 0), (0, 1))), caps])),
        row_lower=np.concatenate([program.c, [0.0], np.full(n, -np.inf)]),
        row_upper=np.concatenate([program.c, [0.0], np.zeros(n)]),
    )
    return lp.value
