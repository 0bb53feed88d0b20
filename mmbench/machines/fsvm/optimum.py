"""The optimum of the F-SVM for one pair of classes: SVMs on whitened rows, and a search for C.

In the units and coordinates of `fsvm_steps` (rho = 1, S diagonal) the smallest value over M is

    F*(w, b) = sqrt(2) ||S^{1/2}w|| + C sum_i xi_i

With ``v = S^{1/2}w`` this is an SVM on whitened rows but for the norm, which is not squared. The
SVM of cost C' has its solution where ``C' = c ||v(C')||``, ``c = C / sqrt(2)``. The length of v(C')
grows with C', so C' is found by bracketing; each SVM starts from the last. Where no C' exists,
w = 0 is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.fsvm.alternation import Image, Rows, train_hyperplanes

#: SVMs that one search for C' may take.
MAX_SVMS = 60


@dataclass(frozen=True)
class Optimum:
    """The best hyperplanes found, in the coordinates of the rows.

    Attributes
    ----------
    W : ndarray of shape (k, n_pairs)
    b : ndarray of shape (n_pairs,)
    value, bound : float
        F* at W and b, and a lower bound of the optimum.
    u : list of ndarray
        Signed multipliers of the last SVM of each pair.
    violation : float
        The largest violation of a dual constraint.
    rounds : int
        SVMs that each pair took.
    iterations : list of int
        Of each pair.
    status : Status
    state : Start or mmbench.machines.fsvm.shared.Split
        From where a neighbouring C starts.
    """

    W: NDArray
    b: NDArray
    value: float
    bound: float
    u: list[NDArray]
    violation: float
    rounds: int
    iterations: list[int]
    status: Status
    state: Any


@dataclass(frozen=True)
class Start:
    """An SVM on whitened rows: its cost, its signed multipliers, and where to go from it.

    Attributes
    ----------
    cost : float
    u : ndarray of shape (n,)
    length : float
        ``||v||``.
    slope : float
        That of ``log cost - log ||v||`` in ``log cost``.
    """

    cost: float
    u: NDArray
    length: float
    slope: float

    def at(self, cost: float) -> list[NDArray]:
        """Return multipliers for another cost; those at their bound stay there."""
        return [cost / self.cost * self.u]

    def towards(self, c: float) -> Root:
        """Return the search for ``C' = c ||v(C')||`` from here.

        The length is as exact as the SVM was, so what it misses by bounds nothing.
        """
        slope = self.slope if 0.1 <= self.slope <= 1.0 else 1.0
        root = Root(log(self.cost), slope)
        root.move(log(self.cost) - log(self.length) - log(c))
        return Root(root.at, slope)


def solve_pair(
    rows: Rows,
    image: Image,
    C: float,
    tol: float,
    start: Start | None = None,
) -> Optimum:
    """Minimise F* of one pair.

    Parameters
    ----------
    rows : Rows
    image : Image
        The whitened rows.
    C : float
    tol : float
        Of the SVMs' optimality conditions, and of C', relatively.
    start : Start, optional
        `Optimum.state` of a neighbouring C.

    Returns
    -------
    Optimum
        Status ``trivial`` where w = 0 is optimal.
    """
    c = C / sqrt(2.0)
    search = Root(log(c)) if start is None else start.towards(c)
    best, bound, iterations, rounds = no_direction(rows, C), 0.0, 0, 0
    while rounds < MAX_SVMS:
        rounds += 1
        cost = exp(search.at)
        starts = None if start is None else start.at(cost)
        planes = train_hyperplanes(rows, [image], cost, starts, tol)
        length = max(sqrt(max(planes.norm, 0.0)), 1e-300)
        start = Start(cost, planes.u[0], length, search.slope)
        iterations += planes.iterations[0]
        value = sqrt(2.0) * length + C * planes.slack
        bound = max(bound, sqrt(2.0) * planes.multipliers * min(c / cost, 1.0 / length))
        if value < best[0]:
            best = value, planes.q / rows.s[:, None], planes.b
        miss = search.at - log(length) - log(c)
        # what C' misses enters the gap squared
        if abs(miss) <= tol or best[0] - bound <= 0.1 * tol * best[0]:
            break
        search.move(miss)
    return Optimum(
        *(best[1], best[2], best[0], bound),
        u=planes.u,
        violation=planes.violation,
        rounds=rounds,
        iterations=[iterations],
        status=planes.status if best[1].any() else Status.TRIVIAL,
        state=start,
    )


def no_direction(rows: Rows, C: float) -> tuple[float, NDArray, NDArray]:
    """Return F*, w and b of no direction: the larger class everywhere.

    Each row of the smaller class has slack 2.
    """
    positive = np.array([(y > 0).sum() for _, y in rows.pairs])
    negative = np.array([(y < 0).sum() for _, y in rows.pairs])
    value = 2.0 * C * float(np.minimum(positive, negative).sum())
    return value, np.zeros((len(rows.s), len(rows.pairs))), np.where(positive < negative, -1.0, 1.0)


class Root:
    """The zero of an increasing function: secant steps, kept inside a bracket once there is one.

    Parameters
    ----------
    at : float
        Where to begin.
    slope : float, default=1.0
        Of the function, until two points tell.

    Examples
    --------
    >>> root = Root(0.0)
    >>> for _ in range(12):
    ...     root.move(root.at ** 3 - 8)
    >>> round(root.at, 6)
    2.0
    """

    #: The longest step without a bracket.
    FURTHEST = 4.0

    def __init__(self, at: float, slope: float = 1.0):
        self.at, self.slope = at, slope
        self.low: tuple[float, float] | None = None
        self.high: tuple[float, float] | None = None
        self.last: tuple[float, float] | None = None

    def move(self, value: float) -> None:
        """Go to the next point, given the value at this one."""
        here = (self.at, value)
        self.low, self.high = (here, self.high) if value < 0 else (self.low, here)
        if self.last is not None and self.last[0] != self.at:
            self.slope = (value - self.last[1]) / (self.at - self.last[0])
        step = value / self.slope if self.slope > 0 else np.sign(value) * self.FURTHEST
        to = self.at - min(max(step, -self.FURTHEST), self.FURTHEST)
        if self.low and self.high and not self.low[0] < to < self.high[0]:
            to = 0.5 * (self.low[0] + self.high[0])
        self.last, self.at = here, float(to)
