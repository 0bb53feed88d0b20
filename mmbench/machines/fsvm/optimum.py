"""The optimum of the F-SVM for one pair of classes: SVMs on whitened rows, and a search for C.

In the units and coordinates of `hyperplanes` (rho = 1, S diagonal) the smallest value over M is

    F*(w, b) = sqrt(2) ||S^{1/2}w|| + C sum_i xi_i

With ``v = S^{1/2}w`` this is an SVM on whitened rows but for the norm, which is not squared. It has
the solution of the SVM with that penalty C' for which ``C' = c ||v(C')||``, ``c = C / sqrt(2)``.
The length of v(C') grows with C', so C' is found by bracketing; each SVM starts from the last.
Where no C' exists, w = 0 is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.fsvm.alternation import (
    JointRows,
    JointSolution,
    PairRows,
    infimum_root,
    majority,
    train_hyperplanes,
)

#: SVMs that one search for C' may take.
MAX_SVMS = 60

#: An SVM with a relative gap leaves one of F* that is at most twice as large.
SVM_SHARE_OF_GAP = 0.5


@dataclass(frozen=True)
class WhitenedSVM:
    """An SVM on whitened rows, from which the search for a neighbouring C starts."""

    #: C'.
    penalty: float
    #: Signed multipliers. Shape (n,).
    u: NDArray
    #: ``||v||``.
    length: float
    #: That of ``log C' - log ||v||`` in ``log C'``.
    slope: float

    def search(self, c: float) -> SecantSearch:
        """Return the search for ``C' = c ||v(C')||`` from here.

        The length is as exact as the SVM was, so what it misses by bounds nothing.
        """
        slope = self.slope if 0.1 <= self.slope <= 1.0 else 1.0
        search = SecantSearch(log(self.penalty), slope)
        search.move(log(self.penalty) - log(self.length) - log(c))
        return SecantSearch(search.at, slope)


def solve_pair(
    rows: JointRows,
    whitened: PairRows,
    C: float,
    tol: float,
    gap_tolerance: float,
    start: WhitenedSVM | None = None,
) -> JointSolution:
    """Minimise F* of one pair.

    Parameters
    ----------
    rows : JointRows
    whitened : PairRows
    C : float
    tol : float
        Tolerance of the SVMs' KKT conditions, and of C', relatively.
    gap_tolerance : float
        Largest relative gap.
    start : WhitenedSVM, optional
        `JointSolution.state` of a neighbouring C.

    Returns
    -------
    JointSolution
        Status ``trivial`` where w = 0 is optimal.
    """
    c = C / sqrt(2.0)
    search = SecantSearch(log(c)) if start is None else start.search(c)
    best, bound, iterations, rounds = majority(rows, C), 0.0, 0, 0
    while rounds < MAX_SVMS:
        rounds += 1
        penalty = exp(search.at)
        # multipliers at their bound stay there
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
        # what C' misses enters the gap squared
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
        state=start,
    )


def best_multiple(
    rows: JointRows, C: float, W: NDArray, b: NDArray
) -> tuple[float, NDArray, NDArray]:
    """Return F* of one pair, w and b for the best multiple of w and b.

    Where a margin is missed by a rounding error and C is large, a w that is longer by as little has
    no slack. The slope in the multiple s is ``sqrt(2) ||v|| - C (sum of y f where s y f < 1)``.
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
    """The zero of an increasing function: secant steps, kept inside a bracket once there is one.

    SciPy's searches ask for a bracket first, which takes as many values as this search altogether.

    Parameters
    ----------
    at : float
        Where to begin.
    slope : float, default=1.0
        Of the function, until two points tell.

    Examples
    --------
    >>> search = SecantSearch(0.0)
    >>> for _ in range(12):
    ...     search.move(search.at ** 3 - 8)
    >>> round(search.at, 6)
    2.0
    """

    #: The longest step without a bracket.
    LONGEST_STEP = 4.0

    def __init__(self, at: float, slope: float = 1.0):
        self.at, self.slope = at, slope
        self.low, self.high = -np.inf, np.inf
        self.last: tuple[float, float] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the bracket is so narrow that only the values' own errors decide in it."""
        return self.high - self.low <= 1e-12 * max(1.0, abs(self.at))

    def move(self, value: float) -> None:
        """Go to the next point, given the value at this one."""
        at = self.at
        self.low, self.high = (at, self.high) if value < 0 else (self.low, at)
        if self.last is not None and self.last[0] != at:
            self.slope = (value - self.last[1]) / (at - self.last[0])
        step = value / self.slope if self.slope > 0 else np.sign(value) * self.LONGEST_STEP
        to = at - min(max(step, -self.LONGEST_STEP), self.LONGEST_STEP)
        if not self.low < to < self.high:
            to = 0.5 * (self.low + self.high)
        self.last, self.at = (at, value), float(to)
