"""The optimum of the F-SVM, computed by SVMs on whitened rows.

For rho = 1 and diagonal S, with one normal vector per pair in the columns of W and
``V = S^{1/2}W``, (12) minimised over M is ``sqrt(2) ||V||_* + C sum xi`` with the sum ``||V||_*``
of the singular values of V.

`solve_pair`: for one pair, the minimiser is the normal vector v(C') of the SVM on whitened rows
with the penalty ``C' = C ||v(C')|| / sqrt(2)``, found by secant steps in a bracket; if there is no
such C', w = 0 is optimal.

`solve_pairs`: the alternating direction method of multipliers (ADMM; Boyd et al., Foundations and
Trends in Machine Learning 3(1), 2011) minimises the slack term over U and the norm over V, subject
to ``U = V`` with the multipliers D. A column of U is an SVM with a quadratic penalty on the
distance to ``V - D``; V shrinks the singular values of ``U + D``. Alternating between M and W takes
hundreds of times as long to the same gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.threshold import best_multiple
from mmbench.machines.fsvm.pair_svms import (
    JointRows,
    JointSolution,
    PairRows,
    infimum_root,
    lower_bound,
    majority,
    train_hyperplanes,
)

#: Maximum number of SVMs in the search for the penalty C' of the whitened SVM.
MAX_SVMS = 60

#: Ratio of the gap tolerance of the SVMs to the gap tolerance of the F-SVM.
SVM_SHARE_OF_GAP = 0.5

#: Maximum number of ADMM rounds, over-relaxation factor, and number of rounds between updates of
#: the ADMM penalty.
MAX_ROUNDS, RELAXATION, ROUNDS_PER_PENALTY = 500, 1.6, 5

#: If the sum of the SVMs' duality gaps exceeds SVM_SHARE_OF_GAP times the gap tolerance, the
#: tolerance of the SVMs' KKT conditions is multiplied by TIGHTENING_FACTOR.
TIGHTENING_FACTOR = 1 / 8

#: An update multiplies the ADMM penalty by sqrt(primal residual / dual residual), within a factor
#: of LARGEST_PENALTY_CHANGE, unless it lies within a factor of SMALLEST_PENALTY_CHANGE from 1.
SMALLEST_PENALTY_CHANGE, LARGEST_PENALTY_CHANGE = 2.0, 5.0


class WhitenedSVM(NamedTuple):
    """The last SVM in the search for the penalty C'.

    If the F-SVM is trained again with another C, the search starts from this SVM.
    """

    #: Penalty C' on the slack of the SVM.
    penalty: float
    #: Dual variables ``u_i = y_i alpha_i`` of the rows. Shape (n,).
    u: NDArray
    #: Length ``||v||`` of the normal vector.
    length: float
    #: Estimated derivative of ``log C' - log ||v||`` with respect to ``log C'``, where v is the
    #: normal vector of the SVM with the penalty C'.
    slope: float


def solve_pair(
    rows: JointRows,
    whitened: PairRows,
    C: float,
    tol: float,
    gap_tolerance: float,
    start: WhitenedSVM | None = None,
) -> JointSolution:
    """Compute the optimum of the F-SVM for one pair of classes.

    `tol` is the tolerance of the SVMs' KKT conditions, and the relative tolerance of the SVM
    penalty C'. `start` is the `JointSolution.state` of a solution for another C. The status of the
    solution is ``trivial`` if w = 0 is optimal.
    """
    c = C / sqrt(2.0)
    search = SecantSearch(log(c))
    if start is not None:  # the first secant step starts at the penalty of the warm start
        slope = start.slope if 0.1 <= start.slope <= 1.0 else 1.0
        search = SecantSearch(log(start.penalty), slope)
        search.move(log(start.penalty) - log(start.length) - log(c))
        # the bracket is deleted, since it depends on the inexact ||v|| of the warm start
        search = SecantSearch(search.at, slope)
    best, bound, iterations, rounds = majority(rows, C), 0.0, 0, 0
    while rounds < MAX_SVMS:
        rounds += 1
        penalty = exp(search.at)
        # dual variables are multiplied by the ratio of the new penalty C' to the previous penalty
        starts = None if start is None else [penalty / start.penalty * start.u]
        planes = train_hyperplanes(
            rows, [whitened], penalty, starts, tol, gap_tolerance=SVM_SHARE_OF_GAP * gap_tolerance
        )
        length = max(sqrt(max(planes.norm, 0.0)), 1e-300)
        start = WhitenedSVM(penalty, planes.u[0], length, search.slope)
        iterations += planes.iterations[0]
        value = sqrt(2.0) * length + C * planes.slack
        bound = max(bound, sqrt(2.0) * planes.multipliers * min(c / penalty, 1.0 / length))
        if value < best[0]:
            best = value, planes.q / rows.s[:, None], planes.b
        miss = search.at - log(length) - log(c)
        # the duality gap is of the order of the squared error of C', and may be small before `miss`
        # is
        if abs(miss) <= tol or best[0] - bound <= 0.1 * tol * best[0]:
            break
        search.move(miss)
        narrow = search.high - search.low <= 1e-12 * max(1.0, abs(search.at))
        if narrow or planes.status is Status.ITERATION_LIMIT or time_is_up():
            break
    value, W, b = best
    if value - bound > gap_tolerance * value:
        # if C is large, slacks due to rounding errors increase the objective; multiplying w and b
        # by a factor s slightly above 1 removes these slacks
        (index, y), costs = rows.pairs[0], C * rows.costs[0]
        margins = y * (rows.Z[index] @ W[:, 0] + b[0])
        length = sqrt(2.0) * float(np.linalg.norm(np.sqrt(rows.s) * W[:, 0]))
        s = best_multiple(margins, costs, length)
        value = s * length + float(costs @ np.maximum(0.0, 1.0 - s * margins))
        W, b = s * W, s * b
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


class SecantSearch:
    """Search for the root of an increasing function by secant steps, safeguarded by a bracket.

    SciPy's root finders need an initial bracket. Finding an initial bracket would take as many
    function evaluations as the complete secant search.

    Examples
    --------
    >>> search = SecantSearch(0.0)
    >>> for _ in range(12):
    ...     search.move(search.at ** 3 - 8)
    >>> round(search.at, 6)
    2.0
    """

    #: Maximum distance between two successive points of the search.
    LONGEST_STEP = 4.0

    def __init__(self, at: float, slope: float = 1.0):
        self.at, self.slope = at, slope
        self.low, self.high = -np.inf, np.inf
        self.last: tuple[float, float] | None = None

    def move(self, value: float) -> None:
        """Move `at` to the next point, given the function value `value` at the current point."""
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
    """An iterate of the alternating direction method of multipliers."""

    #: Matrix V of the constraint U = V, computed by shrinking singular values. Shape (k, n_pairs).
    V: NDArray
    #: Scaled multipliers of the constraint U = V. Shape (k, n_pairs).
    D: NDArray
    #: ADMM penalty on violations of the constraint U = V.
    penalty: float
    #: Dual variables ``u_i = y_i alpha_i`` of the SVMs, divided by their upper bound ``C /
    #: penalty``.
    u: list[NDArray] | None


def solve_pairs(
    rows: JointRows,
    whitened: Sequence[PairRows],
    C: float,
    tol: float,
    gap_tolerance: float,
    start: ADMMState | None = None,
) -> JointSolution:
    """Compute the optimum of the F-SVM for several pairs of classes by ADMM.

    `tol` is the initial tolerance of the SVMs' KKT conditions. The argument `start` is the
    `JointSolution.state` of a solution for another C. The status of the solution is ``trivial`` if
    w = 0 is optimal.
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
        u=[at.penalty * u for u in planes.u],
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
    """Return the next iterate of ADMM. The columns of U are the normal vectors of the SVMs.

    If `adapt` is true, the ADMM penalty is changed to balance the primal and the dual residual.
    """
    relaxed = RELAXATION * U + (1 - RELAXATION) * at.V
    left, sizes, right = np.linalg.svd(relaxed + at.D, full_matrices=False)
    V = (left * np.maximum(sizes - sqrt(2.0) / at.penalty, 0.0)) @ right
    D = at.D + relaxed - V

    def size(*matrices: NDArray) -> float:
        return max(1e-12, *(float(np.linalg.norm(matrix)) for matrix in matrices))

    factor = sqrt(size(U - V) / size(V, U) / (size(V - at.V) / size(D)))
    if not adapt or 1.0 / SMALLEST_PENALTY_CHANGE <= factor <= SMALLEST_PENALTY_CHANGE:
        factor = 1.0
    factor = min(max(factor, 1.0 / LARGEST_PENALTY_CHANGE), LARGEST_PENALTY_CHANGE)
    return ADMMState(V, D / factor, at.penalty * factor, at.u)
