"""The optimum of the F-SVM: SVMs on whitened rows.

In units with rho = 1 and coordinates in which S is diagonal, with ``V = S^{1/2}W`` and one column
per pair of classes, the smallest value over M is

    F*(V, b) = sqrt(2) ||V||_* + C sum xi                     (sum of the singular values of V)

One pair (`solve_pair`). F* is an SVM on whitened rows, except that the norm is not squared. It has
the solution of the SVM with the penalty C' for which ``C' = c ||v(C')||``, ``c = C / sqrt(2)``. The
length of v(C') increases with C', so C' is found by secant steps in a bracket; each SVM starts from
the last. If no C' exists, w = 0 is optimal.

Several pairs (`solve_pairs`). The alternating direction method of multipliers (ADMM) separates the
two terms, ``U = V``: U are SVMs on whitened rows, each attracted to a given column, V is U with its
singular values shrunk. The whitened Gram matrices never change, and each SVM starts from the last.
Alternation over M and W, the paper's or with a decreasing eps, takes hundreds of times as long to
the same gap.

References
----------
S. Boyd et al.: Distributed optimization and statistical learning via the alternating direction
method of multipliers. Foundations and Trends in Machine Learning 3(1), 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.fsvm.pair_svms import (
    JointRows,
    JointSolution,
    PairRows,
    infimum_root,
    lower_bound,
    majority,
    train_hyperplanes,
)

#: SVMs per search for C'.
MAX_SVMS = 60

#: Gap of the SVMs, as a share of the gap asked of F*.
SVM_SHARE_OF_GAP = 0.5

#: Rounds of the ADMM, its over-relaxation, and rounds between two updates of its penalty.
MAX_ROUNDS, RELAXATION, ROUNDS_PER_PENALTY = 500, 1.6, 5

#: Factor of the SVMs' tolerance if their gaps exceed their share.
TIGHTENING_FACTOR = 1 / 8

#: The penalty changes by the root of the residuals' ratio, if that is at least 2, by at most 5.
SMALLEST_PENALTY_CHANGE, LARGEST_PENALTY_CHANGE = 2.0, 5.0


class WhitenedSVM(NamedTuple):
    """The last SVM of a search for C', from which the search for a neighbouring C starts."""

    #: C'.
    penalty: float
    #: Signed multipliers. Shape (n,).
    u: NDArray
    #: ``||v||``.
    length: float
    #: Slope of ``log C' - log ||v||`` in ``log C'``.
    slope: float


def solve_pair(
    rows: JointRows,
    whitened: PairRows,
    C: float,
    tol: float,
    gap_tolerance: float,
    start: WhitenedSVM | None = None,
) -> JointSolution:
    """Minimise F* of one pair; the status is ``trivial`` if w = 0 is optimal.

    `tol` is the tolerance of the SVMs' KKT conditions and of C', relatively; `start` is
    `JointSolution.state` of a neighbouring C.
    """
    c = C / sqrt(2.0)
    search = SecantSearch(log(c))
    if start is not None:  # the first secant step from there
        slope = start.slope if 0.1 <= start.slope <= 1.0 else 1.0
        search = SecantSearch(log(start.penalty), slope)
        search.move(log(start.penalty) - log(start.length) - log(c))
        search = SecantSearch(search.at, slope)  # its length bounds nothing: it is inexact
    best, bound, iterations, rounds = majority(rows, C), 0.0, 0, 0
    while rounds < MAX_SVMS:
        rounds += 1
        penalty = exp(search.at)
        starts = None if start is None else [penalty / start.penalty * start.u]
        planes = train_hyperplanes(
            rows, [whitened], penalty, starts, tol, gap_tolerance=SVM_SHARE_OF_GAP * gap_tolerance
        )  # multipliers at their bound stay there
        length = max(sqrt(max(planes.norm, 0.0)), 1e-300)
        start = WhitenedSVM(penalty, planes.u[0], length, search.slope)
        iterations += planes.iterations[0]
        value = sqrt(2.0) * length + C * planes.slack
        bound = max(bound, sqrt(2.0) * planes.multipliers * min(c / penalty, 1.0 / length))
        if value < best[0]:
            best = value, planes.q / rows.s[:, None], planes.b
        miss = search.at - log(length) - log(c)
        # the gap is quadratic in the error of C'
        if abs(miss) <= tol or best[0] - bound <= 0.1 * tol * best[0]:
            break
        search.move(miss)
        if search.is_settled or planes.status is Status.ITERATION_LIMIT or time_is_up():
            break
    value, W, b = best
    if value - bound > gap_tolerance * value:
        value, W, b = best_multiple(rows, C, W, b)
    return JointSolution(
        W=W,
        b=b,
        u=planes.u,
        root=infimum_root(W, rows.s),
        value=value,
        bound=bound,
        violation=planes.violation,
        values=[value],
        rounds=rounds,
        iterations=iterations,
        pair_iterations=[iterations],
        status=planes.status if W.any() or time_is_up() else Status.TRIVIAL,
        route="secant",
        state=start,
    )


def best_multiple(
    rows: JointRows, C: float, W: NDArray, b: NDArray
) -> tuple[float, NDArray, NDArray]:
    """Return F* of one pair, w and b for the best multiple of w and b.

    If a margin is missed by rounding and C is large, a slightly longer w has no slack. The slope in
    the multiple s is ``sqrt(2) ||v|| - C (sum of y f where s y f < 1)``.
    """
    (index, y), own = rows.pairs[0], rows.costs[0]
    margins = y * (rows.Z[index] @ W[:, 0] + b[0])
    length = sqrt(2.0) * float(np.linalg.norm(np.sqrt(rows.s) * W[:, 0]))
    order = np.argsort(margins)[::-1][: int((margins > 0).sum())]
    ends = margins[order]  # s reaches the largest margin first
    slopes = length - C * (own @ margins - np.cumsum(own[order] * ends))
    rising = np.flatnonzero(slopes >= 0)
    s = 1.0 / float(ends[rising[0]]) if len(rising) else 1.0
    slack = float(own @ np.maximum(0.0, 1.0 - s * margins))
    return s * length + C * slack, s * W, s * b


class SecantSearch:
    """Root of an increasing function by secant steps, kept inside the bracket.

    SciPy's root finders ask for a bracket first, which takes as many values as this whole search.

    Examples
    --------
    >>> search = SecantSearch(0.0)
    >>> for _ in range(12):
    ...     search.move(search.at ** 3 - 8)
    >>> round(search.at, 6)
    2.0
    """

    #: Longest step without a bracket.
    LONGEST_STEP = 4.0

    def __init__(self, at: float, slope: float = 1.0):
        self.at, self.slope = at, slope
        self.low, self.high = -np.inf, np.inf
        self.last: tuple[float, float] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the bracket is as narrow as the errors of the values."""
        return self.high - self.low <= 1e-12 * max(1.0, abs(self.at))

    def move(self, value: float) -> None:
        """Move `at` to the next point, given the value at this one."""
        at = self.at
        self.low, self.high = (at, self.high) if value < 0 else (self.low, at)
        if self.last is not None and self.last[0] != at:
            self.slope = (value - self.last[1]) / (at - self.last[0])
        step = value / self.slope if self.slope > 0 else np.sign(value) * self.LONGEST_STEP
        to = at - min(max(step, -self.LONGEST_STEP), self.LONGEST_STEP)
        if not self.low < to < self.high:
            to = 0.5 * (self.low + self.high)
        self.last, self.at = (at, value), float(to)


class ADMMState(NamedTuple):
    """An iterate of the ADMM."""

    #: Shape (k, n_pairs).
    V: NDArray
    #: Scaled multipliers of U = V. Shape (k, n_pairs).
    D: NDArray
    #: Penalty on U = V.
    penalty: float
    #: Signed multipliers of the SVMs, divided by their upper bound C / penalty.
    u: list[NDArray] | None


def solve_pairs(
    rows: JointRows,
    whitened: Sequence[PairRows],
    C: float,
    tol: float,
    gap_tolerance: float,
    start: ADMMState | None = None,
) -> JointSolution:
    """Minimise F* of several pairs; the status is ``trivial`` if W = 0 is optimal.

    Parameters are those of `solve_pair`.
    """
    shape = (len(rows.s), len(rows.pairs))
    at = start or ADMMState(np.zeros(shape), np.zeros(shape), 1.0, None)
    best, bound, status = majority(rows, C), 0.0, Status.ITERATION_LIMIT
    iterations = np.zeros(shape[1], dtype=int)
    for rounds in range(1, MAX_ROUNDS + 1):
        pull = at.V - at.D
        offsets = [pair.rows @ pull[:, p] for p, pair in enumerate(whitened)]
        cost = C / at.penalty
        starts = None if at.u is None else [cost * u for u in at.u]
        planes = train_hyperplanes(rows, whitened, cost, starts, tol, offsets=offsets)
        iterations += planes.iterations
        U = pull + planes.q / np.sqrt(rows.s)[:, None]
        value = sqrt(2.0) * float(np.linalg.norm(U, "nuc")) + C * planes.slack
        if value < best[0]:
            best = value, U / np.sqrt(rows.s)[:, None], planes.b
        scaled = at.penalty * planes.q, at.penalty * planes.multipliers
        bound = max(bound, lower_bound(*scaled, rows.s))
        if best[0] - bound <= gap_tolerance * best[0]:
            status = planes.status if best[1].any() else Status.TRIVIAL
            break
        if planes.status is Status.ITERATION_LIMIT or time_is_up():
            break
        if planes.absolute_gap * at.penalty > SVM_SHARE_OF_GAP * gap_tolerance * best[0]:
            tol *= TIGHTENING_FACTOR
        at = _advance(
            at._replace(u=[u / cost for u in planes.u]), U, adapt=rounds % ROUNDS_PER_PENALTY == 0
        )
    value, W, b = best
    return JointSolution(
        W=W,
        b=b,
        u=planes.u,
        root=infimum_root(W, rows.s),
        value=value,
        bound=bound,
        violation=planes.violation * at.penalty,
        values=[value],
        rounds=rounds,
        iterations=int(iterations.sum()),
        pair_iterations=iterations.tolist(),
        status=status,
        route="ADMM",
        state=at,
    )


def _advance(at: ADMMState, U: NDArray, adapt: bool) -> ADMMState:
    """Shrink the singular values, update the multipliers, and balance the two residuals."""
    relaxed = RELAXATION * U + (1 - RELAXATION) * at.V
    left, sizes, right = np.linalg.svd(relaxed + at.D, full_matrices=False)
    V = (left * np.maximum(sizes - sqrt(2.0) / at.penalty, 0.0)) @ right
    D = at.D + relaxed - V
    if not adapt:
        return ADMMState(V, D, at.penalty, at.u)
    primal = _size(U - V) / max(_size(V), _size(U))
    dual = _size(V - at.V) / _size(D)
    factor = sqrt(primal / dual)
    if 1.0 / SMALLEST_PENALTY_CHANGE <= factor <= SMALLEST_PENALTY_CHANGE:
        return ADMMState(V, D, at.penalty, at.u)
    factor = min(max(factor, 1.0 / LARGEST_PENALTY_CHANGE), LARGEST_PENALTY_CHANGE)
    return ADMMState(V, D / factor, at.penalty * factor, at.u)


def _size(matrix: NDArray) -> float:
    """Return the Frobenius norm, at least 1e-12."""
    return max(float(np.linalg.norm(matrix)), 1e-12)
