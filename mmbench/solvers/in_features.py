"""A `PiecewiseQP` of few features and many rows: no Gram matrix, an interior point, an exact end.

Pairwise steps need thousands of passes and an n x n matrix for what only as many free rows as
features settle. An interior point finds those at one product ``Z' diag Z`` an iteration; which
multipliers rest on a knot and which are inside a piece is read off it, or off a neighbouring
solution, and one linear system of the free rows gives u and b to rounding. The rows Z stand in for
the Gram matrix ``Z Z'`` of the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.solvers.bounded_decisions import BoundedDecisions
from mmbench.solvers.interior_point import InteriorPoint
from mmbench.solvers.rows import Rows, weighted_product
from mmbench.solvers.smoothed import smoothed_multipliers
from mmbench.solvers.svm_dual.active_set import free_part
from mmbench.solvers.svm_dual.descent import optimality
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution

#: Relative gaps to which the interior point goes before the free rows are read off it.
GAP_TOLERANCES = (1e-7, 1e-10)

#: Share of C at which multipliers start: where classes overlap, those of many rows end at C.
FIRST_SHARE = 0.25

#: Where all multipliers end below this share of C, differences to C have lost digits of theirs.
#: These are then solved for again with a C of which the largest is this share.
LOST_SHARE, FREE_SHARE = 1e-4, 0.1

#: A multiplier so near to a knot, as a share of the largest one or of C, is there.
ROUNDING_SHARE = 2e-6

#: By how much a decision may miss a slope on the wrong side before a row changes places.
SLOPE_TOLERANCE = 1e-10

#: Times that a system of free rows is solved for one guess: once, and for what was missed.
MAX_REFINEMENTS = 5

#: Singular values below this share of the largest one belong to columns that others tell.
RANK_TOLERANCE = 1e-12

#: Systems of free rows that are tried before a guess is given up.
MAX_ROUNDS = 15


@dataclass(frozen=True)
class Candidate:
    """Feasible multipliers u, and w, which is ``Z'u`` but for the digits that u has lost."""

    u: NDArray
    w: NDArray

    @classmethod
    def of(cls, rows: Rows, u: NDArray) -> Candidate:
        """Return a candidate whose w is that of u."""
        return cls(u, rows.T @ u)


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

    The SVM's decisions may be added to given ones, which its slopes then hold.

    Parameters
    ----------
    dual : PiecewiseQP
        With rows Z of shape (n, k) in place of the Gram matrix.
    y : ndarray of shape (n,)
        -1.0 or +1.0; both occur.
    C : float or ndarray of shape (n,)
        The penalty on slack, or that of each row.
    tol : float, default=1e-5
        Tolerance of the KKT conditions, in units of f.
    gap_tolerance : float, default=inf
        Largest relative duality gap.
    B : float, optional
    start : ndarray of shape (n,), optional
        u of a neighbouring problem, which may be the solution of this one too.

    Returns
    -------
    PiecewiseSolution
        Status ``optimal`` if both tolerances are met, else ``inaccurate``: the smallest gap found.
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
    """Solve from u of a neighbouring problem, or return None where its free rows do not settle.

    Parameters are those of `solve_in_features`; of u only which bounds it touches matters.
    """
    exact = settle(dual, start) if start.any() else None
    return None if exact is None else _measured(dual, exact, 1, tol, gap_tolerance)


def _candidates(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None, start: NDArray | None
) -> Iterator[tuple[Candidate, int]]:
    """Yield feasible candidates and the iterations that each took: exact ones first."""
    rows = _rows(dual)
    if B == 0:  # every decision is zero
        yield Candidate.of(rows, np.zeros(len(y))), 0
        return
    if start is not None:  # where no multiplier reaches C, it is the solution at a larger C too
        yield Candidate.of(rows, dual.feasible(start)), 0
    point, spent = _solved(dual, y, C, B), 0
    ends = []
    for tol in GAP_TOLERANCES:
        point.run(tol)
        guess = _guess(point, C)
        exact = settle(dual, guess)
        if exact is not None:
            yield exact, point.iterations + 1 - spent
            spent = point.iterations + 1
        ends.append(Candidate(point.dual_variables(), point.at["w"]))
    for end in reversed(ends):  # rounding may have spoilt the later one
        yield _ended(dual, end, C), max(point.iterations - spent, 0)
        spent = point.iterations
    shared = _shared(dual, guess)
    if shared is not None:
        yield Candidate.of(rows, shared), 0
    for u, steps in smoothed_multipliers(dual, C):
        exact = settle(dual, u)
        yield Candidate.of(rows, dual.feasible(u)) if exact is None else exact, steps


def _rows(dual: PiecewiseQP) -> Rows:
    """Return what stands in for the Gram matrix of a dual here."""
    return dual.gram  # type: ignore[return-value]


def _solved(dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float | None) -> InteriorPoint:
    """Return the interior point at its end.

    Where no multiplier comes near C, the solution is that of a C next to them, with more digits.
    """
    iterations, s, rows = 0, C / np.max(C) * np.ones(len(y)), _rows(dual)
    lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
    while True:
        a = FIRST_SHARE * C * lighter / lighter.max()
        if B is None:  # slopes that are not -y stand for decisions to which those of u are added
            point = InteriorPoint(rows, y, C, a, offset=dual.slopes[:, 0] + y)
        else:
            point = BoundedDecisions(rows, y, C, B, a)
        point.run(GAP_TOLERANCES[0])
        point.iterations = iterations = iterations + point.iterations
        largest = float((point.at["a"] / C).max())
        if largest >= LOST_SHARE or point.gap > 1.0:
            return point
        C = C * (largest / FREE_SHARE)


def _ended(dual: PiecewiseQP, end: Candidate, C: float | NDArray) -> Candidate:
    """Return feasible multipliers: those near a knot are at it, and others moved to keep w.

    As large ones lose the digits of a short w, and so does one that makes up for the others' sum.
    """
    rows, u, w = _rows(dual), end.u, end.w
    near = ROUNDING_SHARE * np.minimum(C, float(np.abs(u).max()))
    for knot in dual.knots.T:
        u = np.where(np.abs(u - knot) <= near, knot, u)
    room = np.abs(u[:, None] - dual.knots).min(axis=1)
    if not room.any():
        return Candidate(dual.feasible(u), w)
    mean = rows.T @ room / room.sum()
    products = weighted_product(rows, room)
    size = np.sqrt(np.diagonal(products))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    products = scale * (products - np.outer(room.sum() * mean, mean)) * scale[:, None]
    u = u - room * (u.sum() / room.sum())  # moves along rows less their mean keep this sum
    for _ in range(MAX_REFINEMENTS):
        missed = scale * (w - rows.T @ u)
        move = scale * np.linalg.lstsq(products, missed, rcond=RANK_TOLERANCE)[0]
        u = u + room * (rows @ move - mean @ move)
    return Candidate(dual.feasible(u), w)


def _guess(point: InteriorPoint, C: float | NDArray) -> NDArray:
    """Return multipliers with those at a knot of which a row's products tell that they end there.

    Of the two factors of a product that vanishes, the smaller one in its own unit is zero.
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
    found = dual.solution(u, decision, bias, iterations, Status.INACCURATE, weights=w)
    if found.gap > gap_tolerance:
        found = min(found, dual.rescaled(found), key=lambda one: one.gap)
    solved = violation <= tol and found.gap <= gap_tolerance
    return replace(found, status=Status.OPTIMAL) if solved else found


def settle(dual: PiecewiseQP, u: NDArray) -> Candidate | None:
    """Return the solution next to a guess, or None if the guess does not settle.

    Rows inside a piece have its slope as their decision, which gives their u and b by one system.
    Rows that then break an optimality condition change places, and the guess is tried again.

    Parameters
    ----------
    dual : PiecewiseQP
        With rows in place of the Gram matrix.
    u : ndarray of shape (n,)
        The guess; only which knots it touches matters.
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
    """Return multipliers of free rows, of a given sum, and w and b by which these are on slopes.

    A system of long rows and large multipliers misses the decisions by rounding; it is solved again
    for what is missed. w then has these digits, the multipliers have not.
    """
    square, u, b, size = part @ part.T, np.zeros(len(part)), 0.0, np.inf
    for refinements in range(MAX_REFINEMENTS):
        missed = slopes - part @ w - b
        before, size = size, float(np.abs(missed).max())
        if refinements and not SLOPE_TOLERANCE < size < before:
            break
        found = free_part(square, missed, total)
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


def _shared(dual: PiecewiseQP, u: NDArray) -> NDArray | None:
    """Return feasible multipliers where more rows than features are inside a piece, else None.

    The decisions of such rows fix w and b, not their u: equal rows, or many on one hyperplane,
    share it in more than one way. A guess is changed as little as these decisions ask.
    """
    rows = _rows(dual)
    place, slopes = _places(dual, u)
    free = np.flatnonzero(place % 2)
    if len(free) <= rows.shape[1]:
        return None
    part = np.column_stack([rows[free], np.ones(len(free))])
    missing = -slopes[free, place[free] // 2 + 1] - rows[free] @ (rows.T @ u)
    move = np.linalg.lstsq(part, missing)[0]  # of w, and b
    move[-1] = -u.sum()
    u = u.copy()
    u[free] += np.linalg.lstsq(part.T, move)[0]
    return dual.feasible(u)
