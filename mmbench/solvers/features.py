"""Solve a `PiecewiseQP` with a linear kernel, many rows and few features, without a Gram matrix.

The attribute `gram` of the problem contains the rows Z in place of the Gram matrix ``Z Z'``. A row
is free if u_i lies strictly between two knots of its piecewise linear cost; there are about as many
free rows as features. Pairwise steps need thousands of passes over an n x n matrix to find the free
rows. An interior-point method finds them with one product ``Z' diag(weights) Z`` per iteration. One
linear system in the free rows then gives u and b up to rounding errors.

==============  =======================================  ==========================================
route           condition                                cost
==============  =======================================  ==========================================
warm start      u at a neighbouring grid point is        one product with the rows
                optimal
active set      the active set converges (203 of 208     10 to 30 interior-point iterations of cost
                fits of 13 data sets)                    n k^2, and a few linear systems in at most
                                                         k + 1 free rows
interior point  the active set does not converge         as for the active set, and a least squares
                                                         problem in k unknowns for a feasible u
==============  =======================================  ==========================================

If no route finds an optimal solution, the caller continues with pairwise steps
(`mmbench.machines.svm`). benchmarks/peers.py compares these routes with liblinear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.interior_point import HingeInteriorPoint
from mmbench.solvers.rows import weighted_product
from mmbench.solvers.svm_dual.qp import (
    PiecewiseQP,
    PiecewiseSolution,
    free_part,
    gains,
    optimality,
)

#: Relative gaps of the interior point at which the active set method is tried.
GAP_TOLERANCES = (1e-7, 1e-10)

#: Initial multipliers as a fraction of C. If the classes overlap, many optimal multipliers equal C.
FIRST_BOX_SHARE = 0.25

#: If all multipliers a are below ``LOST_SHARE * C``, the difference ``C - a`` is inaccurate. The
#: problem is then solved again with C equal to the largest multiplier divided by FREE_SHARE.
LOST_SHARE, FREE_SHARE = 1e-4, 0.1

#: A multiplier is set to a knot if their distance, relative to the smaller of C and the largest
#: multiplier, is at most this value.
ROUNDING_SHARE = 2e-6

#: Tolerance of the optimality conditions, which are equations and inequalities between the decision
#: values and the slopes of the cost.
SLOPE_TOLERANCE = 1e-10

#: Maximum number of iterations of the refinement of one linear system; the first is the solution.
MAX_REFINEMENTS = 5

#: Relative threshold of singular values for the numerical rank.
RANK_TOLERANCE = 1e-12

#: Maximum number of active sets tried per initial active set; each needs one linear system.
MAX_ROUNDS = 15


@dataclass(frozen=True)
class Candidate:
    """Feasible multipliers u, and primal weights w that are more accurate than ``Z'u``."""

    u: NDArray
    w: NDArray
    route: str = "active set"


def solve_in_features(
    dual: PiecewiseQP,
    y: NDArray,
    C: float | NDArray,
    tol: float = 1e-5,
    gap_tolerance: float = np.inf,
    B: float | None = None,
    start: NDArray | None = None,
) -> PiecewiseSolution:
    """Solve the dual of the linear SVM, or of the RMM with decisions within [-B, B].

    `dual` has rows Z of shape (n, k) in place of the Gram matrix. If the slopes of `dual` are
    not -y, the offset ``slope + y`` is added to the SVM's decisions. `tol` is the tolerance of the
    KKT conditions in units of f. `start` is u at a neighbouring grid point. If no
    candidate meets both tolerances, the candidate with the smallest gap is returned, with the
    status ``inaccurate``.
    """
    best: PiecewiseSolution | None = None
    iterations = 0
    for candidate, spent in _candidates(dual, y, C, B, start):
        iterations = spent
        solution = _measured(dual, candidate, iterations, tol, gap_tolerance)
        if best is None or solution.status is Status.OPTIMAL or solution.gap < best.gap:
            best = solution
        if best.status is Status.OPTIMAL:
            break
    assert best is not None
    return replace(best, iterations=iterations)


def solve_near(
    dual: PiecewiseQP, start: NDArray, tol: float = 1e-5, gap_tolerance: float = np.inf
) -> PiecewiseSolution | None:
    """Solve by the active set method from u at a neighbouring grid point; return None if it does
    not converge.

    `start` only determines the initial active set. `solve_in_features` describes the other
    parameters. The F-SVM needs the exact solution: with pairwise steps alone, the result for two
    equal rows and the result for one row of weight 2 differ in the sixth digit.
    """
    exact = solve_active_set(dual, start) if start.any() else None
    return None if exact is None else _measured(dual, exact, 1, tol, gap_tolerance)


def _candidates(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None, start: NDArray | None
) -> Iterator[tuple[Candidate, int]]:
    """Yield feasible candidates in the order of the routes, each with the iterations so far."""
    rows = dual.gram
    if B == 0 or start is not None:  # if B is zero, every decision is zero
        u = np.zeros(len(y)) if B == 0 else dual.feasible(start)  # type: ignore[arg-type]
        yield Candidate(u, rows.T @ u, "warm start"), 0
        if B == 0:
            return
    point, spent, ends = _solved(dual, y, C, B), 0, []
    for tol in GAP_TOLERANCES:
        point.run(tol)
        exact = solve_active_set(dual, _guess(point, C))
        ends.append(Candidate(point.dual_variables(), point.at["w"], "interior point"))
        if exact is not None:
            spent = point.iterations + 1
            yield exact, spent
    # because of rounding errors, a point with a smaller gap may be less accurate
    for end in reversed(ends):
        yield _feasible(dual, end, C), max(point.iterations, spent)


def _solved(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None
) -> HingeInteriorPoint:
    """Return the interior point at the first gap tolerance.

    If all multipliers are far below C, the problem is solved again with a smaller C, since the
    solution is the same and has smaller rounding errors.
    """
    iterations, s = 0, C / np.max(C) * np.ones(len(y))
    lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
    while True:
        a = FIRST_BOX_SHARE * C * lighter / lighter.max()
        # slopes other than -y mean that an offset is added to the decisions
        offset = dual.slopes[:, 0] + y if B is None else 0.0
        point = HingeInteriorPoint(dual.gram, y, C, a, offset, B)
        point.run(GAP_TOLERANCES[0])
        point.iterations = iterations = iterations + point.iterations
        largest = float((point.at["a"] / C).max())
        if largest >= LOST_SHARE or point.gap > 1.0:
            return point
        C = C * (largest / FREE_SHARE)


def _feasible(dual: PiecewiseQP, end: Candidate, C: float | NDArray) -> Candidate:
    """Return feasible multipliers with ``Z'u`` close to w.

    Multipliers near a knot are set to the knot. The other multipliers are then changed by a least
    squares problem, so that ``Z'u`` remains close to w. Without these changes, the rounding of
    large multipliers would change a short w.
    """
    rows, u, w = dual.gram, end.u, end.w
    near = ROUNDING_SHARE * np.minimum(C, float(np.abs(u).max()))
    for knot in dual.knots.T:
        u = np.where(np.abs(u - knot) <= near, knot, u)
    room = np.abs(u[:, None] - dual.knots).min(axis=1)
    if not room.any():
        return replace(end, u=dual.feasible(u))
    mean = rows.T @ room / room.sum()
    products = weighted_product(rows, room)
    size = np.sqrt(np.diagonal(products))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    products = scale * (products - np.outer(room.sum() * mean, mean)) * scale[:, None]
    u = u - room * (u.sum() / room.sum())  # the loop changes u along centred rows: the sum stays 0
    for _ in range(MAX_REFINEMENTS):
        residual = scale * (w - rows.T @ u)
        move = scale * np.linalg.lstsq(products, residual, rcond=RANK_TOLERANCE)[0]
        u = u + room * (rows @ move - mean @ move)
    return replace(end, u=dual.feasible(u))


def _guess(point: HingeInteriorPoint, C: float | NDArray) -> NDArray:
    """Return the multipliers u of an interior point; u_i of a row that is not free is a knot.

    The factors of each complementarity product are divided by their units, and the smaller factor
    is then taken as zero.
    """
    at, unit = point.at, float(point.at["a"].max())
    at_C = at["rest"] < at["slack"] * C
    total = np.where(at["a"] < at["surplus"] * unit, 0.0, np.where(at_C, C, at["a"]))
    for multiplier, room, sign in point.bounds:
        ends = at[multiplier] < at[room] * unit
        total += sign * np.where(ends, 0.0, at[multiplier])
    return point.y * total


def _measured(
    dual: PiecewiseQP, candidate: Candidate, iterations: int, tol: float, gap_tolerance: float
) -> PiecewiseSolution:
    """Return the solution that consists of a candidate, the optimal b and the certificate."""
    u, w = candidate.u, candidate.w
    decision = dual.gram @ w
    bias, violation = optimality(decision, *gains(u, dual.knots, dual.slopes))
    solution = dual.solution(
        u, decision, bias, iterations, Status.INACCURATE, weights=w, route=candidate.route
    )
    if solution.gap > gap_tolerance:
        solution = min(solution, dual.rescaled(solution), key=lambda s: s.gap)
    solved = violation <= tol and solution.gap <= gap_tolerance
    return replace(solution, status=Status.OPTIMAL) if solved else solution


def solve_active_set(dual: PiecewiseQP, u: NDArray) -> Candidate | None:
    """Return the solution by an active set method from a guess u, or None if it does not converge.

    The active set assigns each u_i to a knot or to the piece between two knots. The guess only
    determines the initial active set. The decision of a row on a piece is minus the slope of the
    piece, so one linear system gives b and the u of these rows. Each row that then violates an
    optimality condition is assigned to the next knot or piece, and the system is solved again.
    """
    rows, knots, index = dual.gram, dual.knots, np.arange(len(u))
    # position 2 j is knot j, position 2 j + 1 the piece above knot j; slopes beyond the end knots
    # are infinite
    place = 2 * (knots < u[:, None]).sum(axis=1) - ~(knots == u[:, None]).any(axis=1)
    beyond = np.full((len(u), 1), np.inf)
    slopes = np.hstack([-beyond, dual.slopes, beyond])
    for _ in range(MAX_ROUNDS):
        piece = place // 2
        free = np.flatnonzero(place % 2)
        u = np.where(place % 2, 0.0, knots[index, np.minimum(piece, knots.shape[1] - 1)])
        if not 0 < len(free) <= rows.shape[1] + 1:
            return None
        found = _on_slopes(rows[free], -slopes[free, piece[free] + 1], rows.T @ u, -u.sum())
        if found is None:
            return None
        u[free], w, b = found
        wanted = -(rows @ w + b)
        moves = np.where(wanted > slopes[index, piece + 1] + SLOPE_TOLERANCE, 1, 0)
        moves -= wanted < slopes[index, piece] - SLOPE_TOLERANCE
        low, high = knots[free, piece[free]], knots[free, piece[free] + 1]
        moves[free] = (u[free] > high).astype(int) - (u[free] < low)
        if not moves.any():
            return Candidate(u, w)
        place += moves
    return None


def _on_slopes(
    part: NDArray, slopes: NDArray, w: NDArray, total: float
) -> tuple[NDArray, NDArray, float] | None:
    """Return u of the free rows, w and b, for which the decisions of these rows equal `slopes`.

    `part` contains the free rows, `w` is the contribution of the other rows to the weights, and
    `total` is the sum of the returned u. Iterative refinement continues while the residual exceeds
    SLOPE_TOLERANCE and decreases. Refinement is necessary for long rows and large multipliers; w is
    then more accurate than u.
    """
    square, u, b, size = part @ part.T, np.zeros(len(part)), 0.0, np.inf
    for refinements in range(MAX_REFINEMENTS):
        residual = slopes - part @ w - b
        before, size = size, float(np.abs(residual).max())
        if refinements and not SLOPE_TOLERANCE < size < before:
            break
        found = free_part(square, residual, total)
        if found is None:
            return None
        u, w, b, total = u + found[0], w + part.T @ found[0], b + found[1], 0.0
    return u, w, b
