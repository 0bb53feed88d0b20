"""Solution of the linear program (28) of the linear machine, with a test of boundedness.

From 200 rows on, an interior-point method in the features precedes HiGHS, and ends at the exact
vertex of its active constraints. Both may fail if features are nearly equal; (28) is then solved
for the principal components, scaled to standard deviation 1.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import (
    CertifiedSolution,
    best,
    certify,
    constant_solution,
    value_of,
    with_status,
)
from mmbench.machines.mmrm.program import LEAST_ROWS, LinearProgram, principal_directions
from mmbench.machines.mmrm.vertex import Partition, polished, solve_reference
from mmbench.solvers.highs_ import solve_lp
from mmbench.solvers.interior_point import HingeInteriorPoint
from mmbench.solvers.rows import weighted_product

#: Relative duality gap at which the interior-point method stops.
GAP_TOLERANCE = 1e-10

#: Ridge on the diagonal of the Newton equations, relative to the sum of the row weights in these
#: equations.
RIDGE = 1e-12

#: The interior-point method starts at ``lam_i = 1/n_class`` for the class of row i, and is used
#: only if each penalty is at least LEAST_ROOM times this value.
LEAST_ROOM = 1.01


def solve_linear(
    program: LinearProgram, tol: float = 1e-6, solver: str = "auto"
) -> CertifiedSolution:
    """Solve the linear program (28), after an exact test of boundedness.

    If the program is unbounded, ``facts["bounded_from_factor"]`` is the smallest factor by which
    all slack penalties must be multiplied so that the program is bounded.
    """
    if not program.surely_bounded:
        factor = critical_factor(program)
        if factor > 1 + 1e-7:
            solution = constant_solution(program, Status.UNBOUNDED, "highs")
            return replace(solution, facts={"bounded_from_factor": factor})
    solution = _solved(program, tol, solver)
    if solution.status in (Status.OPTIMAL, Status.UNBOUNDED) or time_is_up():
        return solution
    other = _solved_by_directions(program, tol, solver)
    return min(solution, other, key=lambda candidate: abs(candidate.gap))


def _solved(program: LinearProgram, tol: float, solver: str) -> CertifiedSolution:
    """Solve program (28), which must be bounded, in the features of `program`."""
    if solver == "interior" or (solver == "auto" and len(program.y) >= LEAST_ROWS):
        found = solve_in_features(program, tol)
        if found is not None and (found.status is Status.OPTIMAL or time_is_up()):
            return found
    found = solve_reference(program, tol, solver)
    if found.status in (Status.OPTIMAL, Status.UNBOUNDED):
        return found
    # HiGHS satisfies A'lam = c only up to a tolerance, and a residual v lowers the bound by v times
    # the coefficient limit. The multipliers lam_i = 1/n_class satisfy A'lam = c up to rounding
    # errors; if no penalty is below 1/n_class, they are feasible, and their sum, 2, is a lower
    # bound. The optimal value is 2 if some w and b give every row the margin 1.
    lam = np.minimum(program.cost, program.class_shares)
    return best(program, [found, certify(program, found.u, found.b, lam, tol)], tol)


def _solved_by_directions(program: LinearProgram, tol: float, solver: str) -> CertifiedSolution:
    """Solve program (28), which must be bounded, in scaled principal components.

    Principal components do not change the optimal value, since the machine is affine invariant.
    """
    # principal components are necessary if two features differ by less than the tolerance of HiGHS
    Z = np.asarray(program.Z)
    directions, spread = principal_directions(Z)
    back = directions / spread
    # the coefficient limit applies to the weights of the scaled principal components
    inner = LinearProgram(
        Z @ back, program.y, program.cost, program.limit, weights=program.row_weights
    )
    found = _solved(inner, tol, solver)
    w, b = inner.weights(found.u, found.b)
    u = back @ w
    margins = program.forward(u) + program.y * b
    # the objective value is recomputed from the weights of the standardised features
    value = value_of(program, u, margins)
    return with_status(replace(found, u=u, b=b, margins=margins, value=value), tol)


class _Ratio(HingeInteriorPoint):
    """Interior-point method for program (28), with ``c'w`` in place of the SVM's ``||w||^2 / 2``.

    The initial multipliers 1/n_class and the multipliers of all iterates satisfy ``A'lam = c``.
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
        # if features are linearly dependent, the ridge keeps the steps finite, and leaves a
        # residual that the next step corrects
        return RIDGE * float(self.weight.sum()), *super()._system()[1:]


def solve_in_features(program: LinearProgram, tol: float) -> CertifiedSolution | None:
    """Solve (28) by an interior-point method and an exact vertex.

    The active constraints of the last iterate define the vertex. Returns None if a slack penalty is
    too small for the initial multipliers 1/n_class.
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
    if time_is_up():
        return found
    return polished(program, found, partition, tol)


def _feasible(program: LinearProgram, lam: NDArray) -> NDArray:
    """Project multipliers onto ``A'lam = c`` and ``y'lam = 0`` to remove rounding errors.

    The change of a multiplier is proportional to its distance from the nearer bound, 0 or the slack
    penalty.
    """
    Z, y, k = program.Z, program.y, len(program.c)
    room = np.minimum(lam, program.cost - lam)
    matrix = np.full((k + 1, k + 1), room.sum())
    matrix[:k, :k] = weighted_product(Z, room)
    matrix[:k, k] = matrix[k, :k] = Z.T @ room
    # the second projection reduces the rounding errors of the first projection
    for _ in range(1 if time_is_up() else 2):
        residual = np.append(program.c - program.adjoint(lam), -y @ lam)
        step = np.linalg.lstsq(matrix, residual)[0]
        lam = lam + room * y * (Z @ step[:k] + step[k])
    return lam


def critical_factor(program: LinearProgram) -> float:
    """Return the smallest factor of all slack penalties with which program (28) is bounded.

    If all slack penalties are C, the returned factor is C*/C, where C* is the smallest C with which
    the program is bounded:

        C* = min max_i lam_i   subject to   A'lam = c,  y'lam = 0,  lam >= 0.
    """
    n, share = len(program.y), program.class_shares
    equal = np.vstack([program.y * np.asarray(program.Z).T, program.y]) * share
    caps = sparse.hstack([sparse.eye_array(n), (-program.cost / share)[:, None]])
    lp = solve_lp(
        np.append(np.zeros(n), 1.0),
        sparse.vstack([sparse.csr_array(np.pad(equal, ((0, 0), (0, 1)))), caps], format="csr"),
        row_lower=np.concatenate([program.c, [0.0], np.full(n, -np.inf)]),
        row_upper=np.concatenate([program.c, [0.0], np.zeros(n)]),
    )
    return lp.value
