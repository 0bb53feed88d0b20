"""The bias b with the smallest hinge loss, and the bias with the fewest training errors.

`best_bias` minimises ``sum_i max(0, 1 - y_i (w'z_i + b))``; `balanced` enforces ``0 <= a_i <= C``
and ``y'a = 0`` of the dual variables. `optimal_bias` solves (MAMC paper, section 2.3)

    f(x) = s(x) + b,     minimise   E_R = #{i : xi_i > 0},   then   E_S = sum_i xi_i
    subject to           y_i f(x_i) >= rho - xi_i,  xi_i >= 0                       (14)-(16)

Candidates for -b are midpoints between neighbouring scores, the smaller of class 2 (label -1) and
the larger of class 1 (label +1); rho (20) is half their distance. As in the paper, no other
threshold is considered, although one may have fewer errors. Ties are broken by the largest rho,
then the smallest |b|. In (25), "arg max" is a misprint for "arg min": the text asks for the nearest
point of class 1 above a misclassified point of class 2.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Relative tolerance of comparisons. Two sums of weights, two numbers of errors, two sums of slacks
#: or two margins are considered equal if their relative difference is below TIE.
TIE = 1e-12

#: Two scores are considered equal if they differ by at most SCORE_RESOLUTION times the largest
#: absolute score, or RANGE_RESOLUTION times their range: scores of repeated rows differ by rounding
#: errors. The second limit is for small sums of large terms, as with a small ridge.
SCORE_RESOLUTION, RANGE_RESOLUTION = 1e-12, 1e-9


def best_multiple(margins: NDArray, penalties: NDArray, length: float) -> float:
    """Return the factor s >= 0 that minimises ``s length + sum_i p_i max(0, 1 - s m_i)``.

    Row i has the margin m_i (`margins`) and the penalty p_i (`penalties`). If the function
    decreases for all s, it has no minimiser, and 1 is returned.

    Examples
    --------
    >>> best_multiple(np.array([0.5, 0.1, -0.2]), np.ones(3), 0.2)
    2.0
    """
    order = np.argsort(-margins)[: int((margins > 0).sum())]
    # Entry j of `reached` is the sum of p_i m_i (penalty times margin) over the j rows with the
    # largest margins, whose losses become zero first as the factor s increases.
    reached = np.append(0.0, np.cumsum((penalties * margins)[order]))
    rising = np.flatnonzero(length - penalties @ margins + reached >= 0)
    if not len(rising):
        return 1.0
    return float(1.0 / margins[order[rising[0] - 1]]) if rising[0] else 0.0


def best_bias(decision: NDArray, y: NDArray, weights: float | NDArray = 1.0) -> float:
    """Return a bias b that minimises ``sum_i s_i max(0, 1 - y_i (decision_i + b))`` for weights
    s_i.

    The loss is piecewise linear in b: its first slope is minus the total weight of the positive
    rows, and increases by the weight of a row at each kink. On an interval of minima, the midpoint
    is returned, which does not depend on the order of the classes.

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
    """Clip dual variables a to [0, upper], then scale down the a_i of one class so that y'a = 0."""
    a = np.clip(a, 0.0, upper)
    positive, negative = float(a[y > 0].sum()), float(a[y < 0].sum())
    lighter = min(positive, negative)
    if lighter == 0:
        return np.zeros_like(a)
    return a * np.where(y > 0, lighter / positive, lighter / negative)


@dataclass(frozen=True)
class Bias:
    """A bias b, and the resulting margin rho, training errors and sum of slacks."""

    b: float
    #: Margin rho of (15): half the distance between the two scores next to the threshold.
    rho: float
    #: Number of training errors E_R (14), or total weight of the misclassified rows if rows have
    #: weights.
    errors: int | float
    #: Sum of the slacks E_S (16).
    slack: float
    #: Whether the bias assigns all rows to one class.
    one_class: bool = False


def optimal_bias(
    scores: NDArray, y: NDArray, resolution: float | None = None, weights: NDArray | None = None
) -> Bias:
    """Return the candidate bias with the fewest training errors (14)-(16), in O(n log n) steps.

    Consecutive scores that differ by at most `resolution` are considered equal, since scores of
    repeated rows may differ by rounding errors. The default of `resolution` is the larger of
    SCORE_RESOLUTION times the largest absolute score and RANGE_RESOLUTION times the range of the
    scores. The weights of the rows are positive, by default 1.

    Examples
    --------
    >>> optimal_bias(np.array([1.0, 2.0, 4.0]), np.array([-1.0, -1.0, 1.0]))
    Bias(b=-3.0, rho=1.0, errors=0, slack=0.0, one_class=False)
    """
    if resolution is None:
        resolution = max(SCORE_RESOLUTION * np.abs(scores).max(), RANGE_RESOLUTION * np.ptp(scores))
    order = np.argsort(scores, kind="stable")
    s, positive = scores[order], y[order] > 0
    gaps = _gaps(s, positive, resolution)
    if not len(gaps):
        return one_class_bias(scores, y, weights)
    below, above = s[gaps], s[gaps + 1]
    # misclassified rows are rows of class 1 below the threshold and rows of class 2 above the
    # threshold
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
    """Return a bias that assigns all rows to the class with the larger total weight.

    The threshold is below or above all scores, at half their range, or at 1 if they are equal. At
    equal weights class 1 is predicted, as for a decision value of zero.
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
    """Return a `Bias` with the given b, and with the resulting errors and sum of slacks (16)."""
    margins = y * (scores + b)
    wrong = margins < 0
    own = np.ones(len(y), dtype=int) if weights is None else weights
    errors, slack = own[wrong].sum().item(), float(own[wrong] @ (rho - margins[wrong]))
    return Bias(b, rho, errors, slack, one_class)


def reference_bias(
    scores: NDArray, y: NDArray, resolution: float = 0.0, weights: NDArray | None = None
) -> Bias:
    """Compute the bias of `optimal_bias` by enumerating pairs of rows, as in the paper."""
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
    """Return all p for which ``-b = (s[p] + s[p + 1]) / 2`` is a candidate, for sorted scores s."""
    edges = np.flatnonzero(np.diff(s) > resolution)
    if not len(edges):
        return edges
    # `starts` are the first indices of blocks of equal sorted scores
    starts = np.concatenate([[0], edges + 1])
    n_positive = np.add.reduceat(positive.astype(np.intp), starts)
    sizes = np.diff(np.append(starts, len(s)))
    return edges[(n_positive[:-1] < sizes[:-1]) & (n_positive[1:] > 0)]


def _first(errors: NDArray, slack: NDArray, rho: NDArray, b: NDArray, weights: NDArray) -> int:
    """Return the index of the best threshold: least E_R, then least E_S, largest rho, least |b|.

    Values of E_R, E_S and rho are considered equal if they differ only by rounding errors.
    """
    tie = TIE * (np.abs(b).max() + rho.max())
    left = np.flatnonzero(errors <= errors.min() + TIE * weights.sum())
    left = left[slack[left] <= slack[left].min() + len(errors) * weights.mean() * tie]
    left = left[rho[left] >= rho[left].max() - tie]
    return int(left[np.argmin(np.abs(b[left]))])
