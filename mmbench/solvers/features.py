"""Solve a `PiecewiseQP` with a linear kernel, many rows and few features, without a Gram matrix.

Here, `gram` of the problem is the data matrix Z. If the free support vectors (u_i strictly between
two knots; about one per feature) are known, one linear system gives u and b. The active set method
(10 to 30 iterations of n k^2 for n rows and k features) converges in 203 of 208 trainings on 13
data sets; otherwise, the interior-point method and a least squares problem give a feasible u. After
a failure, `mmbench.machines.svm` continues with SMO. Times: `benchmarks/peers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.solvers.interior_point import HingeInteriorPoint
from mmbench.solvers.rows import weighted_product
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution, free_part, gains, optimality

#: Relative gaps at which the interior-point method stops, and the active set method is tried.
GAP_TOLERANCES = (1e-7, 1e-10)

#: Largest initial multiplier relative to C; many optimal multipliers are C if classes overlap.
FIRST_BOX_SHARE = 0.25

#: If all a are below ``LOST_SHARE * C``, C becomes ``max(a) / FREE_SHARE``: ``C - a`` lost digits.
LOST_SHARE, FREE_SHARE = 1e-4, 0.1

#: Distance to a knot, relative to ``min(C, max_j |u_j|)``, at which u_i is rounded to the knot.
ROUNDING_SHARE = 2e-6

#: Absolute tolerance of decisions, compared with the slopes of the cost of u_i.
SLOPE_TOLERANCE = 1e-10

#: Maximum number of solves in iterative refinement, including the first solve.
MAX_REFINEMENTS = 5

#: Singular values below RANK_TOLERANCE times the largest singular value are treated as zero.
RANK_TOLERANCE = 1e-12

#: Maximum number of iterations of the active set method; an iteration solves one linear system.
MAX_ROUNDS = 15


@dataclass(frozen=True)
class Candidate:
    """A candidate for the solution: dual variables u and weights w.

    For the data matrix Z, the weights w are at least as accurate as the product ``Z'u``.
    """

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
    """Solve the dual of the linear SVM or, if `B` is given, of the linear RMM.

    ``dual.gram`` is the data matrix Z, shape (n, k). In the dual of the SVM, row i has the slope
    -y_i; another slope s_i adds the constant ``s_i + y_i`` to its decision. The RMM bounds the
    decisions by -B and B. `tol` is the tolerance of the KKT conditions, in decision values, and
    `start` has the dual variables at a neighbouring grid point. If no method meets `tol` and
    `gap_tolerance`, the solution with the smallest gap is returned as ``inaccurate``.
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


def solve_near(dual: PiecewiseQP, start: NDArray, tol: float = 1e-5) -> PiecewiseSolution | None:
    """Solve by the active set method; return None if `start` is zero or the method fails.

    The initial active set is determined by `start`, the dual variables at a neighbouring point of
    the parameter grid. The F-SVM needs exact solutions: with SMO alone, the results for two equal
    rows and for one row of weight 2 would differ in the sixth digit.
    """
    exact = solve_active_set(dual, start) if start.any() else None
    return None if exact is None else _measured(dual, exact, 1, tol, np.inf)


def _candidates(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None, start: NDArray | None
) -> Iterator[tuple[Candidate, int]]:
    """Yield feasible candidates for the solution, each with the number of iterations so far."""
    rows = dual.gram
    if start is not None:
        u = dual.feasible(start)
        yield Candidate(u, rows.T @ u, "warm start"), 0
    point, spent, ends = _solved(dual, y, C, B), 0, []
    for tol in GAP_TOLERANCES:
        point.run(tol)
        ends.append(Candidate(point.dual_variables(), point.at["w"], "interior point"))
        if time_is_up():
            break
        exact = solve_active_set(dual, _guess(point, C))
        if exact is not None:
            spent = point.iterations + 1
            yield exact, spent
    # the interior points of all tolerances are candidates, since the last interior point may be
    # inaccurate because of rounding errors
    for end in reversed(ends):
        yield _feasible(dual, end, C), max(point.iterations, spent)
        if time_is_up():
            break


def _solved(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None
) -> HingeInteriorPoint:
    """Run the interior-point method until the relative gap is at most ``GAP_TOLERANCES[0]``.

    If all multipliers are far below the penalty C, the problem is solved again with a smaller C:
    the solution is the same, and the rounding errors are smaller.
    """
    iterations, s = 0, C / np.max(C) * np.ones(len(y))
    lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
    while True:
        a = FIRST_BOX_SHARE * C * lighter / lighter.max()
        # a slope other than -y_i means that ``slope + y_i`` is added to the decision of row i
        offset = dual.slopes[:, 0] + y if B is None else 0.0
        point = HingeInteriorPoint(dual.gram, y, C, a, offset, B)
        point.run(GAP_TOLERANCES[0])
        point.iterations = iterations = iterations + point.iterations
        largest = float((point.at["a"] / C).max())
        # `not` before the parenthesis, since the loop must also end if the gap is NaN
        if not (largest < LOST_SHARE and point.gap <= 1.0) or time_is_up():
            return point
        C = C * (largest / FREE_SHARE)


def _feasible(dual: PiecewiseQP, end: Candidate, C: float | NDArray) -> Candidate:
    """Return the candidate with feasible dual variables u for which ``Z'u`` is close to w.

    Dual variables near a knot of their cost are rounded to it, the others corrected by a least
    squares problem.
    """
    rows, u, w = dual.gram, end.u, end.w
    near = ROUNDING_SHARE * np.minimum(C, float(np.abs(u).max()))
    for knot in dual.knots.T:
        u = np.where(np.abs(u - knot) <= near, knot, u)
    room = np.abs(u[:, None] - dual.knots).min(axis=1)
    if not (room.any() and np.isfinite(room).all()):
        return replace(end, u=dual.feasible(u))
    mean = rows.T @ room / room.sum()
    products = weighted_product(rows, room)
    size = np.sqrt(np.diagonal(products))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    products = scale * (products - np.outer(room.sum() * mean, mean)) * scale[:, None]
    u = u - room * (u.sum() / room.sum())
    # The loop reduces ``w - Z'u``, which may be large if ``Z'u`` is small compared with u, since u
    # was rounded to knots. The sum of u stays 0: the weighted mean is subtracted from the rows.
    values, vectors = np.linalg.eigh(products)
    used = values > RANK_TOLERANCE * values.max(initial=0.0)
    values, vectors = values[used], vectors[:, used]
    for _ in range(MAX_REFINEMENTS):
        residual = scale * (w - rows.T @ u)
        move = scale * (vectors @ (vectors.T @ residual / values))
        u = u + room * (rows @ move - mean @ move)
    return replace(end, u=dual.feasible(u))


def _guess(point: HingeInteriorPoint, C: float | NDArray) -> NDArray:
    """Guess the optimal dual variables u from an interior point.

    In each complementarity product of `HingeInteriorPoint`, the smaller factor is guessed to be 0.
    """
    # to compare the two factors, the slack xi is multiplied by C; the surplus and the slacks of the
    # bounds are multiplied by the largest multiplier
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
    """Return the solution of a candidate, with the optimal b and a certificate of optimality."""
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
    """Solve by an active set method from a guess u; return None if the method does not converge.

    The active set assigns u_i to a knot of its piecewise linear cost, where u_i is fixed, or to a
    linear piece, where u_i is free and the decision of row i must be minus the slope. These
    conditions are a linear system in b and the free u_i. If its solution violates a condition of
    row i, u_i is assigned to the next knot or piece, in the direction that reduces the violation.
    """
    rows, knots, index = dual.gram, dual.knots, np.arange(len(u))
    # `place[i]` is 2 j at knot j, and 2 j + 1 on the linear piece between knots j and j + 1. The
    # slope is -inf below the first and inf above the last knot.
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
    """Return u, weights w and intercept b for which the decisions of the rows `part` are `slopes`.

    These are the free support vectors; `w` is ``Z'u`` of all other rows, and the returned u sum to
    `total`.
    """
    # iterative refinement is necessary if norms of rows or dual variables are large; as a result, w
    # is more accurate than ``Z'u``
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
