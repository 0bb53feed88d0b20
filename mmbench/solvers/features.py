"""A `PiecewiseQP` with a linear kernel, many rows and few features: no Gram matrix.

Pairwise steps need thousands of passes over an n x n matrix to settle as many free rows as there
are features. An interior point finds these rows at one product ``Z' diag Z`` per iteration; one
linear system of the free rows then gives u and b to rounding. The rows Z stand in for the Gram
matrix ``Z Z'`` of the problem.

==============  =======================================  ==========================================
route           when                                     cost
==============  =======================================  ==========================================
warm start      u of a neighbouring problem is optimal   one product with the rows
active set      the free rows of the interior point      10 to 30 iterations, n k^2 each, and a few
                settle (203 of 208 fits of 13 sets)      systems of at most k + 1 free rows
interior point  they do not settle                       the same, and a least squares problem in k
                                                         unknowns that makes u feasible
==============  =======================================  ==========================================

If none of them is optimal, the caller goes on with pairwise steps (`mmbench.machines.svm`).
benchmarks/linear_growth.py measures these routes against liblinear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.interior_point import HingeInteriorPoint
from mmbench.solvers.rows import Rows, weighted_product
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution, free_part
from mmbench.solvers.svm_dual.steps import optimality

#: Relative gaps of the interior point at which the free rows are read off.
GAP_TOLERANCES = (1e-7, 1e-10)

#: First multipliers as a share of C: if classes overlap, those of many rows end at C.
FIRST_BOX_SHARE = 0.25

#: ``C - a`` is inaccurate if all a are below LOST_SHARE of C. The problem is then solved again with
#: a C of which the largest multiplier is FREE_SHARE.
LOST_SHARE, FREE_SHARE = 1e-4, 0.1

#: Distance from a knot, as a share of the largest multiplier or of C, that counts as zero.
ROUNDING_SHARE = 2e-6

#: Largest violation of a slope by a decision that is taken for rounding.
SLOPE_TOLERANCE = 1e-10

#: Most solutions of the system of one guess, including refinements.
MAX_REFINEMENTS = 5

#: Relative threshold of singular values for the numerical rank.
RANK_TOLERANCE = 1e-12

#: Most systems of free rows per guess.
MAX_ROUNDS = 15


@dataclass(frozen=True)
class Candidate:
    """Feasible multipliers u, and primal weights w, more accurate than ``Z'u``."""

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
    """Solve the dual of the linear SVM, or of the SVM with decisions within [-B, B].

    `dual` has rows Z of shape (n, k) in place of the Gram matrix. Its slopes may differ from -y:
    the SVM's decisions are then added to given ones. `tol` is the tolerance of the KKT conditions
    in units of f. `start` is u of a neighbouring problem. The status is ``optimal`` if both
    tolerances are met, else ``inaccurate``, for the smallest gap found.
    """
    best: PiecewiseSolution | None = None
    iterations = 0
    for candidate, spent in _candidates(dual, y, C, B, start):
        iterations += spent
        found = _measured(dual, candidate, iterations, tol, gap_tolerance)
        if best is None or found.status is Status.OPTIMAL or found.gap < best.gap:
            best = found
        if best.status is Status.OPTIMAL:
            break
    assert best is not None
    return replace(best, iterations=iterations)


def solve_near(
    dual: PiecewiseQP, start: NDArray, tol: float = 1e-5, gap_tolerance: float = np.inf
) -> PiecewiseSolution | None:
    """Solve from u of a neighbouring problem, or return None if its free rows do not settle.

    Only which bounds u touches matters; parameters as for `solve_in_features`.
    """
    exact = settle(dual, start) if start.any() else None
    return None if exact is None else _measured(dual, exact, 1, tol, gap_tolerance)


def _candidates(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None, start: NDArray | None
) -> Iterator[tuple[Candidate, int]]:
    """Yield feasible candidates and the iterations that each took, in the order of the routes."""
    rows = _rows(dual)
    if B == 0 or start is not None:  # if B is zero, so is every decision
        u = np.zeros(len(y)) if B == 0 else dual.feasible(start)  # type: ignore[arg-type]
        yield Candidate(u, rows.T @ u, "warm start"), 0
        if B == 0:
            return
    point, spent, ends = _solved(dual, y, C, B), 0, []
    for tol in GAP_TOLERANCES:
        point.run(tol)
        exact = settle(dual, _guess(point, C))
        ends.append(Candidate(point.dual_variables(), point.at["w"], "interior point"))
        if exact is not None:
            yield exact, point.iterations + 1 - spent
            spent = point.iterations + 1
    for end in reversed(ends):  # rounding may have spoilt the later one
        yield _feasible(dual, end, C), max(point.iterations - spent, 0)
        spent = point.iterations


def _rows(dual: PiecewiseQP) -> Rows:
    """Return the rows that stand in for the Gram matrix of a dual."""
    return dual.gram  # type: ignore[return-value]


def _solved(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None
) -> HingeInteriorPoint:
    """Return the interior point at the first gap tolerance.

    If no multiplier comes near C, the solution for a smaller C is the same, with more digits.
    """
    iterations, s = 0, C / np.max(C) * np.ones(len(y))
    lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
    while True:
        a = FIRST_BOX_SHARE * C * lighter / lighter.max()
        # slopes that differ from -y hold given decisions, to which those of u are added
        offset = dual.slopes[:, 0] + y if B is None else 0.0
        point = HingeInteriorPoint(_rows(dual), y, C, a, offset, B)
        point.run(GAP_TOLERANCES[0])
        point.iterations = iterations = iterations + point.iterations
        largest = float((point.at["a"] / C).max())
        if largest >= LOST_SHARE or point.gap > 1.0:
            return point
        C = C * (largest / FREE_SHARE)


def _feasible(dual: PiecewiseQP, end: Candidate, C: float | NDArray) -> Candidate:
    """Return feasible multipliers: those near a knot set to it, the others moved to keep w.

    Rounding of large multipliers would change a short w, and so would a single multiplier that
    balances their sum.
    """
    rows, u, w = _rows(dual), end.u, end.w
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
    u = u - room * (u.sum() / room.sum())  # moves along rows less their mean keep this sum
    for _ in range(MAX_REFINEMENTS):
        residual = scale * (w - rows.T @ u)
        move = scale * np.linalg.lstsq(products, residual, rcond=RANK_TOLERANCE)[0]
        u = u + room * (rows @ move - mean @ move)
    return replace(end, u=dual.feasible(u))


def _guess(point: HingeInteriorPoint, C: float | NDArray) -> NDArray:
    """Return multipliers, set to a knot if the products of the row indicate it.

    Of the two factors of a vanishing product, the smaller one in its own unit is zero.
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
    """Return a candidate with b and its certificate."""
    u, w = candidate.u, candidate.w
    decision = _rows(dual) @ w
    bias, violation = optimality(u, decision, dual.knots, dual.slopes)
    found = dual.solution(
        u, decision, bias, iterations, Status.INACCURATE, weights=w, route=candidate.route
    )
    if found.gap > gap_tolerance:
        found = min(found, dual.rescaled(found), key=lambda one: one.gap)
    solved = violation <= tol and found.gap <= gap_tolerance
    return replace(found, status=Status.OPTIMAL) if solved else found


def settle(dual: PiecewiseQP, u: NDArray) -> Candidate | None:
    """Return the solution next to a guess of u, or None if the active set does not settle.

    Only which knots the guess touches matters. The decision of a row inside a piece is the slope of
    the piece, which gives u of these rows and b by one system. Rows that then violate an optimality
    condition change places, and the system is solved again.
    """
    rows, knots, index = _rows(dual), dual.knots, np.arange(len(u))
    place, slopes = _places(dual, u)
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
    """Return multipliers of free rows with a given sum, and w and b, so that decisions are slopes.

    With long rows and large multipliers the solution is refined, as its residual exceeds rounding;
    w then has more digits than the multipliers.
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


def _places(dual: PiecewiseQP, u: NDArray) -> tuple[NDArray, NDArray]:
    """Return where each u is, ``2 j`` at knot j and ``2 j + 1`` in the piece above it, and slopes.

    Slopes are those below and above each knot, infinite beyond the outer two.
    """
    place = 2 * (dual.knots < u[:, None]).sum(axis=1)
    place -= ~(dual.knots == u[:, None]).any(axis=1)
    beyond = np.full((len(u), 1), np.inf)
    return place, np.hstack([-beyond, dual.slopes, beyond])
