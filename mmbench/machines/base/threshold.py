"""The bias b with minimum hinge loss or fewest training errors, and the best multiple of a w.

`best_bias`. A machine with hinge loss solves

    min over w, b   penalty(w) + C sum_i max(0, 1 - y_i (w'z_i + b))

For every penalty on w, the optimal b minimises the sum of the losses at the optimal w. The dual
multipliers satisfy ``0 <= a_i <= C`` and, since the penalty does not depend on b, ``y'a = 0``.

`optimal_bias`. The threshold with the fewest training errors (MAMC paper, section 2.3) solves

    f(x) = s(x) + b,     minimise   E_R = #{i : xi_i > 0},   then   E_S = sum_i xi_i
    subject to           y_i f(x_i) >= rho - xi_i,  xi_i >= 0                       (14)-(16)

A candidate is a gap between two consecutive sorted scores; the lower score belongs to class 2 (-1)
and the upper score to class 1 (+1). The threshold -b is the centre of the gap, and rho is half its
width (20). No other threshold has fewer errors than the best candidate, except possibly the two
thresholds that assign all points to one class; the paper excludes these two thresholds.

With row weights s, ``E_R`` is the sum of s_i over the rows with ``xi_i > 0``, and ``E_S = sum_i s_i
xi_i``.

(25) in the paper has "arg max" for the class 1 point above a misclassified class 2 point. The text
of the paper requires the nearest class 1 point, and therefore "arg min". Among equal solutions of
(14)-(16) the solution with the largest rho is taken, then the solution with the smallest |b|.

References
----------
S. Abe: Improving generalization abilities of maximal average margin classifiers. ANNPR, LNCS 9896,
2016.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Relative difference below which two sums of weights are considered equal, and also two errors,
#: slacks or margins of candidates.
TIE = 1e-12


def best_multiple(margins: NDArray, penalties: NDArray, length: float) -> float:
    """Return the s >= 0 that minimises ``s length + sum_i p_i max(0, 1 - s m_i)``.

    m_i is the margin and p_i the penalty of row i. If the function decreases without limit, the
    result is 1.

    Examples
    --------
    >>> best_multiple(np.array([0.5, 0.1, -0.2]), np.ones(3), 0.2)
    2.0
    """
    order = np.argsort(-margins)[: int((margins > 0).sum())]
    # entry j is the sum over the j largest margins; as s grows, these margins reach 1 first
    reached = np.append(0.0, np.cumsum((penalties * margins)[order]))
    rising = np.flatnonzero(length - penalties @ margins + reached >= 0)
    if not len(rising):
        return 1.0
    return float(1.0 / margins[order[rising[0] - 1]]) if rising[0] else 0.0


def best_bias(decision: NDArray, y: NDArray, weights: float | NDArray = 1.0) -> float:
    """Return a minimiser of ``sum_i s_i max(0, 1 - y_i (decision_i + b))`` over b.

    s are the weights. As a function of b, the loss is piecewise linear. Before the first kink, the
    slope of the loss is minus the total weight of the positive rows. At each kink the slope grows
    by the weight of one row. The centre of the interval with slope zero is returned, since the
    centre does not depend on the order of the classes.

    Examples
    --------
    >>> best_bias(np.array([3.0, 1.0, -2.0]), np.array([1.0, 1.0, -1.0]))
    0.5
    """
    s, kinks = weights / np.max(weights) * np.ones(len(y)), y - decision
    order = np.argsort(kinks)
    passed, positive = np.cumsum(s[order]), float(s[y > 0].sum())
    rounding = TIE * passed[-1]
    first, after = np.searchsorted(passed, [positive - rounding, positive + rounding])
    first, after = min(first, len(y) - 1), min(after, len(y) - 1)
    return float(0.5 * (kinks[order[first]] + kinks[order[after]]))


def balanced(a: NDArray, y: NDArray, upper: float | NDArray) -> NDArray:
    """Clip multipliers to [0, upper], and scale the class with the larger sum so that y'a = 0."""
    a = np.clip(a, 0.0, upper)
    positive, negative = float(a[y > 0].sum()), float(a[y < 0].sum())
    lighter = min(positive, negative)
    if lighter == 0:
        return np.zeros_like(a)
    return a * np.where(y > 0, lighter / positive, lighter / negative)


@dataclass(frozen=True)
class Bias:
    """A bias with the margin, the errors and the slacks of the training rows."""

    b: float
    #: Margin rho of (15): half the width of the gap.
    rho: float
    #: Number of errors E_R (14); with row weights, the total weight of the misclassified rows.
    errors: int | float
    #: Sum of the slacks E_S (16).
    slack: float
    #: Whether there is no candidate, so that all rows are assigned to one class.
    one_class: bool = False


def optimal_bias(
    scores: NDArray, y: NDArray, resolution: float = 0.0, weights: NDArray | None = None
) -> Bias:
    """Return the best bias in O(n log n) operations; the positive weights are 1 by default.

    Consecutive scores that differ by at most `resolution` are considered equal, since scores of
    repeated rows differ by rounding.

    Examples
    --------
    >>> optimal_bias(np.array([1.0, 2.0, 4.0]), np.array([-1.0, -1.0, 1.0]))
    Bias(b=-3.0, rho=1.0, errors=0, slack=0.0, one_class=False)
    """
    order = np.argsort(scores, kind="stable")
    s, positive = scores[order], y[order] > 0
    gaps = _gaps(s, positive, resolution)
    if not len(gaps):
        return one_class_bias(scores, y, weights)
    below, above = s[gaps], s[gaps + 1]
    # sums over misclassified rows: class 1 below the gap and class 2 above the gap
    own = np.ones(len(y), dtype=int) if weights is None else weights[order]
    low, high = np.where(positive, own, 0), np.where(positive, 0, own)[::-1]
    n_low, sum_low = np.cumsum(low)[gaps], np.cumsum(low * s)[gaps]
    n_high = np.cumsum(high)[::-1][gaps + 1]
    sum_high = np.cumsum(high * s[::-1])[::-1][gaps + 1]
    errors = n_low + n_high
    slack = n_low * above - sum_low + sum_high - n_high * below
    b, rho = -(below + above) / 2, (above - below) / 2
    k = _first(errors, slack, rho, b, own)
    return Bias(float(b[k]), float(rho[k]), errors[k].item(), max(0.0, float(slack[k])))


def one_class_bias(scores: NDArray, y: NDArray, weights: NDArray | None = None) -> Bias:
    """Return a bias that assigns all rows to the larger class, for scores without a candidate.

    The threshold lies outside the scores, at a distance of half their range. If both classes have
    the same weight, class 1 is predicted, as for a decision value of zero.
    """
    own = np.ones(len(y), dtype=int) if weights is None else weights
    low, high = float(scores.min()), float(scores.max())
    rho = (high - low) / 2 or 1.0
    sign = 1.0 if own @ y >= -TIE * own.sum() else -1.0
    b = rho - low if sign > 0 else -rho - high
    return given_bias(b, scores, y, weights, rho, one_class=True)


def given_bias(
    b: float,
    scores: NDArray,
    y: NDArray,
    weights: NDArray | None = None,
    rho: float = 0.0,
    one_class: bool = False,
) -> Bias:
    """Return a given bias with its errors and with the slacks (16) of misclassified rows."""
    margins = y * (scores + b)
    wrong = margins < 0
    own = np.ones(len(y), dtype=int) if weights is None else weights
    errors, slack = own[wrong].sum().item(), float(own[wrong] @ (rho - margins[wrong]))
    return Bias(b, rho, errors, slack, one_class)


def reference_bias(
    scores: NDArray, y: NDArray, resolution: float = 0.0, weights: NDArray | None = None
) -> Bias:
    """Return the best bias by the paper's enumeration of pairs (i, j), with the slacks of (15)."""
    own = np.ones(len(y), dtype=int) if weights is None else weights
    candidates = []
    for top in scores[y > 0]:
        lower = scores[(y < 0) & (scores < top - resolution)]  # (24)
        if not len(lower):
            continue
        bottom = lower.max()
        top = scores[(y > 0) & (scores > bottom + resolution)].min()  # (25), arg min
        b, rho = -(top + bottom) / 2, (top - bottom) / 2  # (20)
        candidates.append(given_bias(b, scores, y, weights, rho))
    if not candidates:
        return one_class_bias(scores, y, weights)
    errors, slack_sums, rho, b = (
        np.array([getattr(c, name) for c in candidates]) for name in ("errors", "slack", "rho", "b")
    )
    return candidates[_first(errors, slack_sums, rho, b, own)]


def _gaps(s: NDArray, positive: NDArray, resolution: float) -> NDArray:
    """Return the indices p of the candidates: gaps between the sorted scores s[p] and s[p + 1]."""
    edges = np.flatnonzero(np.diff(s) > resolution)
    if not len(edges):
        return edges
    # a block of equal scores starts at index 0 and after each edge
    starts = np.concatenate([[0], edges + 1])
    n_positive = np.add.reduceat(positive.astype(np.intp), starts)
    sizes = np.diff(np.append(starts, len(s)))
    return edges[(n_positive[:-1] < sizes[:-1]) & (n_positive[1:] > 0)]


def _first(errors: NDArray, slack: NDArray, rho: NDArray, b: NDArray, weights: NDArray) -> int:
    """Return the index of the best candidate by the module's tie rules, up to rounding."""
    tie = TIE * (np.abs(b).max() + rho.max())
    left = np.flatnonzero(errors <= errors.min() + TIE * weights.sum())
    left = left[slack[left] <= slack[left].min() + len(errors) * weights.mean() * tie]
    left = left[rho[left] >= rho[left].max() - tie]
    return int(left[np.argmin(np.abs(b[left]))])
