"""Program (28) of the linear machine: bounded or not, trivial or not, and its solution.

It has few columns, and HiGHS solves all of it in less time than generation takes: 256 columns and
1214 rows in 0.7 s. Many rows are left to an interior point in the space of the features.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import qr, svd

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Solution, best, certify, failed, judged, value_of
from mmbench.machines.mmrm.program import LEAST_ROWS, LinearProgram
from mmbench.machines.mmrm.vertex import Partition, polished, solve_reference
from mmbench.solvers.highs_ import Basis, solve_lp
from mmbench.solvers.interior_point import InteriorPoint
from mmbench.solvers.rows import weighted_product

#: Relative gap to which the interior point goes.
GAP_TOLERANCE = 1e-10

#: Ridge of a step, as a share of the squares that it is added to.
RIDGE = 1e-12

#: Directions of the rows whose spread is at most this share of the largest are not used: the
#: decision of a row would be computed to fewer digits than a certificate needs.
LEAST_SPREAD = 1e-8

#: Costs that are less than this multiple of the multipliers 1/n_class leave these no room.
LEAST_ROOM = 1.01


def solve_linear(
    program: LinearProgram,
    *,
    tol: float = 1e-6,
    basis: Basis | None = None,
    whole: bool = False,
) -> Solution:
    """Solve program (28), after an exact test of whether it is bounded.

    Parameters
    ----------
    program : LinearProgram
    tol : float, default=1e-6
        For the certificate.
    basis : Basis, optional
        Of the whole program at other costs, for a hot start.
    whole : bool, default=False
        Whether HiGHS is to solve it, however many rows there are.

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
    found = _solved(program, tol, basis, whole)
    if found.status not in (Status.OPTIMAL, Status.UNBOUNDED):
        found = min(found, _solved_by_directions(program, tol, whole), key=lambda one: abs(one.gap))
    return found


def _solved(program: LinearProgram, tol: float, basis: Basis | None, whole: bool) -> Solution:
    """Solve a bounded program in the coordinates in which it is stated."""
    if len(program.y) >= LEAST_ROWS and not whole:
        found = solve_in_features(program, tol)
        if found is not None and found.status is Status.OPTIMAL:
            return found
    found = solve_reference(program, tol=tol, basis=basis)
    if found.status in (Status.OPTIMAL, Status.UNBOUNDED):
        return found
    # HiGHS keeps A'lam = c to its tolerance, and the limit of the coefficients multiplies what is
    # left. The multipliers 1/n_class keep it to rounding: they prove 2, which is the value where
    # each class can be brought to its margin.
    lam = np.minimum(program.cost, program.class_shares)
    return best(program, [found, certify(program, found.u, found.b, lam, tol)], tol)


def _solved_by_directions(program: LinearProgram, tol: float, whole: bool) -> Solution:
    """Solve a bounded program in orthonormal coordinates of its rows.

    Of columns that are nearly equal HiGHS ignores what tells them apart: it is less than its
    tolerance. The machine is affine invariant, so that any coordinates are as good. The limit is
    one of the coefficients in these; the value returned is that of the features' coefficients.
    """
    Z = np.asarray(program.Z)
    _, spread, directions = svd(qr(Z, mode="r")[0], full_matrices=False)
    used = spread > LEAST_SPREAD * spread.max(initial=0.0)
    back = directions[used].T * (np.sqrt(len(Z)) / spread[used])
    inner = LinearProgram(
        Z @ back, program.y, program.cost, program.limit, weights=program.row_weights
    )
    found = _solved(inner, tol, None, whole)
    w, b = inner.weights(found.u, found.b)
    u = back @ w
    margins = program.forward(u) + program.y * b
    value = value_of(program, u, margins)
    moved = replace(found, u=u, b=b, margins=margins, value=value, basis=None)
    return judged(moved, tol)


class _Ratio(InteriorPoint):
    """The interior point of program (28): w costs ``c'w``, not ``||w||^2 / 2``.

    The multipliers 1/n_class are feasible, and remain so: ``A'lam = c`` holds from there on.
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
        # keeps steps finite where columns depend on one another; the next step sees what it left
        return RIDGE * float(self.weight.sum()), *super()._system()[1:]


def solve_in_features(program: LinearProgram, tol: float) -> Solution | None:
    """Solve a program of many rows by an interior point and the vertex next to its end.

    Returns
    -------
    Solution or None
        None where costs leave no room above the multipliers 1/n_class to start from.
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
    facts = {"iterations": point.iterations, "route": "features"}
    found = certify(program, at["w"], float(at["b"]), _feasible(program, at["a"]), tol, **facts)
    return polished(program, found, partition, tol)


def _feasible(program: LinearProgram, lam: NDArray) -> NDArray:
    """Return multipliers that rounding had moved off ``A'lam = c``, ``y'lam = 0``, moved back.

    Each moves in proportion to its room within the bounds; the second step sees what the first
    rounded.
    """
    Z, y, k = program.Z, program.y, len(program.c)
    room = np.minimum(lam, program.cost - lam)
    matrix = np.full((k + 1, k + 1), room.sum())
    matrix[:k, :k] = weighted_product(Z, room)
    matrix[:k, k] = matrix[k, :k] = Z.T @ room
    for _ in range(2):
        missing = np.append(program.c - program.adjoint(lam), -y @ lam)
        step = np.linalg.lstsq(matrix, missing)[0]
        lam = lam + room * y * (Z @ step[:k] + step[k])
    return lam


def critical_factor(program: LinearProgram) -> float:
    """Return the smallest factor of the costs that makes the program bounded.

    With all costs C the product is the C* of

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
