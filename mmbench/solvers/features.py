"""The linear SVM's interior point with bounds of its decisions at the rows: the linear RMM.

    min over w, b, xi   1/2 ||w||^2 + C sum_i xi_i
    subject to          y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  -B <= f(z_i) <= B,  f(z) = w'z + b

The bounds add to a row the products ``p (B - y f)`` and ``q (B + y f)`` and one number to its
weight in the system, so that an iteration costs what the SVM's does. Then ``v = Z' y (a - p + q)``.

The linear RMM whose bound is a variable: the interior point of its form (13).

    min over w, b, t, xi   1/2 ||w||^2 + sum_i C_i xi_i + D t
    subject to             y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  -t <= f(z_i) <= t,  t >= 1,
                           f(z) = w'z + b

Beside the products of a given bound there is ``(t - 1) m``, ``m = D - sum_i (p_i + q_i)`` being the
multiplier of ``t >= 1``. t is one more unknown of the system.

A `PiecewiseQP` of few features by Newton's method on smoothed losses, smoothed less and less.

Adding ``h/2 u_i^2`` to each cost of the dual makes each loss its Moreau envelope: a hinge is round
over h times its slope, an infinite wall a steep parabola. What is left is smooth in w and b,

    min over w, b   1/2 ||w||^2 + sum_i envelope_i(w'z_i + b)

and at its minimum the derivatives of the envelopes are feasible multipliers u, with a gap that
vanishes with h. An interior point takes short steps where one class is rare: each of the many rows
far from the margin still pushes a little, and together they outweigh the few that decide. Here a
row that is not in a rounded place has no say in a step.

References
----------
O. Chapelle: Training a support vector machine in the primal. Neural Computation 19, 2007.
N. Parikh, S. Boyd: Proximal algorithms. Foundations and Trends in Optimization 1, 2014, 3.1.

A `PiecewiseQP` of few features and many rows: no Gram matrix, an interior point, an exact end.

Pairwise steps need thousands of passes and an n x n matrix for what only as many free rows as
features settle. An interior point finds those at one product ``Z' diag Z`` an iteration; which
multipliers rest on a knot and which are inside a piece is read off it, or off a neighbouring
solution, and one linear system of the free rows gives u and b to rounding. The rows Z stand in for
the Gram matrix ``Z Z'`` of the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.solvers.interior_point import InteriorPoint, Values
from mmbench.solvers.rows import Rows, weighted_product
from mmbench.solvers.svm_dual.active_set import free_part
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.steps import optimality

#: Share of B that the first decisions do not exceed.
FIRST_DECISION_SHARE = 0.5


class BoundedDecisions(InteriorPoint):
    """A point inside all inequalities, bounds included; parameters are those of the base, and B.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
    y : ndarray of shape (n,)
    C : float or ndarray of shape (n,)
    B : float
    a : ndarray of shape (n,)
    """

    positive = (*InteriorPoint.positive, "above", "below", "p", "q")
    products = (*InteriorPoint.products, ("above", "p", 1.0), ("below", "q", 1.0))
    bounds = (("p", "above", -1.0), ("q", "below", 1.0))

    def __init__(self, rows: Rows, y: NDArray, C: float | NDArray, B: float, a: NDArray):
        self.B = B
        super().__init__(rows, y, C, a)

    def _inside(self, margin: NDArray) -> NDArray:
        share = min(1.0, FIRST_DECISION_SHARE * self.B / max(float(np.abs(margin).max()), 1e-300))
        self.at["w"], self.at["b"] = share * self.at["w"], share * self.at["b"]
        return share * margin

    def _begin_rows(self) -> None:
        at = self.at
        margin = at["surplus"] - at["slack"] + 1.0
        size = np.full(len(margin), float((at["surplus"] * at["a"]).mean()) / self.B)
        at |= {"above": self.B - margin, "below": self.B + margin, "p": size, "q": size.copy()}

    def _multipliers(self, values: Values) -> NDArray:
        return values["a"] - values["p"] + values["q"]

    def _dual_value(self) -> float:
        spent = self.B * float(self.at["p"].sum() + self.at["q"].sum())
        return super()._dual_value() - spent

    def _added_weight(self) -> NDArray:
        return self.at["p"] / self.at["above"] + self.at["q"] / self.at["below"]

    def _added_free(self, target: float, ahead: Values | None) -> NDArray:
        self.to_above = self._open("above", "p", target, ahead) / self.at["above"]
        self.to_below = self._open("below", "q", target, ahead) / self.at["below"]
        return self.to_below - self.to_above

    def _complete_rows(self, step: Values, margin: NDArray) -> None:
        at = self.at
        step["above"], step["below"] = -margin, margin
        step["p"] = self.to_above + at["p"] / at["above"] * margin
        step["q"] = self.to_below - at["q"] / at["below"] * margin


#: Share of what they may be, by C and by D, at which multipliers start.
FIRST_MULTIPLIER_SHARE = 0.25


class FreeBound(BoundedDecisions):
    """A point inside all inequalities.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
    y : ndarray of shape (n,)
    C : float or ndarray of shape (n,)
    D : float
    """

    positive = (*BoundedDecisions.positive, "r", "m")
    products = (*BoundedDecisions.products, ("r", "m", 1.0))

    def __init__(self, rows: Rows, y: NDArray, C: float | NDArray, D: float):
        self.D, s = D, C * np.ones(len(y))
        lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
        InteriorPoint.__init__(
            self, rows, y, C, FIRST_MULTIPLIER_SHARE * s * lighter / lighter.max()
        )

    @property
    def t(self) -> float:
        """The bound."""
        return 1.0 + float(self.at["r"][0])

    def _inside(self, margin: NDArray) -> NDArray:
        return margin

    def _begin_rows(self) -> None:
        at, n = self.at, len(self.y)
        margin = at["surplus"] - at["slack"] + 1.0
        size = FIRST_MULTIPLIER_SHARE * self.D / n
        room = float(np.abs(margin).max()) + float((at["surplus"] * at["a"]).mean()) / size
        at |= {"p": np.full(n, size), "q": np.full(n, size), "r": np.array([room])}
        at |= {"m": np.array([(1.0 - 2.0 * FIRST_MULTIPLIER_SHARE) * self.D])}
        at |= {"above": self.t - margin, "below": self.t + margin}

    def _dual_value(self) -> float:
        return InteriorPoint._dual_value(self) + float(self.at["m"][0])

    def _system(self) -> tuple[float, NDArray, NDArray]:
        at = self.at
        of_p, of_q = at["p"] / at["above"], at["q"] / at["below"]
        signed = self.y * (of_q - of_p)
        between = np.append(self.Z.T @ signed, signed.sum())[:, None]
        of_t = of_p.sum() + of_q.sum() + at["m"] / at["r"]
        return 1.0, between, of_t[:, None]

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        self._added_free(target, ahead)
        self.to_m = self._open("r", "m", target, ahead) / self.at["r"]
        return -self.miss, self.to_above.sum() + self.to_below.sum() + self.to_m

    def _complete(self, step: Values, added: NDArray) -> None:
        at = self.at
        step["r"], step["m"] = added, self.to_m - at["m"] / at["r"] * added
        for room, multiplier in (("above", "p"), ("below", "q")):
            step[room] = step[room] + added
            step[multiplier] = step[multiplier] - at[multiplier] / at[room] * added


#: Margins over which a hinge is round at first; the factor from one h to the next; how many there
#: are; Newton steps with each, and the relative gradient at which these end.
FIRST_WIDTH, FACTOR, WIDTHS, STEPS, GRADIENT = 10.0, 0.2, 16, 30, 1e-2

#: A step ends where the derivative along it is at most this share of its first value; such points
#: are sought in so many halvings or doublings.
SLOPE_SHARE, MAX_HALVINGS = 0.3, 60

#: The curvature in b is at least this many times that of all rows: where none is in a rounded
#: place, there is no other.
LEAST_CURVATURE = 1e-10


def smoothed_multipliers(dual: PiecewiseQP, C: float | NDArray) -> Iterator[tuple[NDArray, int]]:
    """Yield u of losses that are smoothed less and less, and the Newton steps that each took.

    Multipliers are within their bounds; their sum is zero to the precision of the steps.

    Parameters
    ----------
    dual : PiecewiseQP
        With rows of shape (n, k) in place of the Gram matrix.
    C : float or ndarray of shape (n,)
        The largest multipliers of the hinge.
    """
    rows: Rows = dual.gram  # type: ignore[assignment]
    n, k = rows.shape
    w, b, f = np.zeros(k), 0.0, np.zeros(n)
    h = FIRST_WIDTH / float(np.max(C))
    for _ in range(WIDTHS):
        taken = 0
        while taken < STEPS:
            u, rounded = _derivatives(dual, f, h)
            of_w, of_b = w - rows.T @ u, -float(u.sum())
            small = np.linalg.norm(of_w) <= GRADIENT * np.linalg.norm(w)
            if time_is_up() or (small and abs(of_b) <= GRADIENT * np.abs(u).sum()):
                break
            try:
                dw, db = _newton_step(rows, rounded / h, of_w, of_b, n / h)
            except LinAlgError:
                return
            taken += 1
            df = rows @ dw + db
            length = _length(dual, f, df, h, float(w @ dw), float(dw @ dw))
            w, b, f = w + length * dw, b + length * db, f + length * df
        yield u, taken
        if time_is_up():
            return
        h *= FACTOR


def _derivatives(dual: PiecewiseQP, f: NDArray, h: float) -> tuple[NDArray, NDArray]:
    """Return u, minus the derivatives of the envelopes at f, and where these are curved."""
    u, rounded = np.zeros(len(f)), np.zeros(len(f), dtype=bool)
    for low, high, slope in zip(dual.knots.T, dual.knots.T[1:], dual.slopes.T, strict=False):
        inside = -(f + slope) / h
        u += np.clip(inside, low, high) - np.clip(0.0, low, high)
        rounded |= (inside > low) & (inside < high)
    return u, rounded


def _newton_step(
    rows: Rows, weights: NDArray, of_w: NDArray, of_b: float, largest: float
) -> tuple[NDArray, float]:
    """Return the step in w and b, given curved rows, the gradient and b's largest curvature."""
    k = len(of_w)
    matrix = np.empty((k + 1, k + 1))
    matrix[:k, :k] = weighted_product(rows, weights) + np.eye(k)
    matrix[:k, k] = matrix[k, :k] = rows.T @ weights
    matrix[k, k] = weights.sum() + LEAST_CURVATURE * largest
    step = np.linalg.solve(matrix, -np.append(of_w, of_b))  # SciPy's warns of each that is ill
    return step[:k], float(step[k])


def _length(
    dual: PiecewiseQP, f: NDArray, df: NDArray, h: float, w_dw: float, dw_dw: float
) -> float:
    """Return a length of a step at which the objective has about its minimum along it."""

    def derivative(length: float) -> float:
        return w_dw + length * dw_dw - float(_derivatives(dual, f + length * df, h)[0] @ df)

    enough = SLOPE_SHARE * abs(derivative(0.0))
    return _near_zero(derivative, enough)


def _near_zero(derivative: Callable[[float], float], enough: float) -> float:
    """Return where a derivative that rises from below zero is within `enough` of it."""
    short, long, length = 0.0, np.inf, 1.0
    for _ in range(MAX_HALVINGS):
        here = derivative(length)
        if abs(here) <= enough:
            break
        short, long = (length, long) if here < 0 else (short, length)
        length = 2.0 * length if np.isinf(long) else 0.5 * (short + long)
    return length


#: Relative gaps to which the interior point goes before the free rows are read off it.
GAP_TOLERANCES = (1e-7, 1e-10)

#: Share of C at which multipliers start: where classes overlap, those of many rows end at C.
FIRST_BOX_SHARE = 0.25

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
        a = FIRST_BOX_SHARE * C * lighter / lighter.max()
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
