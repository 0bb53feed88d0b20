"""A `PiecewiseQP` of few features by Newton's method on smoothed losses, smoothed less and less.

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
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from mmbench.allowance import time_is_up
from mmbench.solvers.rows import Rows, weighted_product
from mmbench.solvers.svm_dual.problem import PiecewiseQP

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
