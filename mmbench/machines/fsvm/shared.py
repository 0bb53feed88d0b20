"""The optimum of the F-SVM for pairs of classes that share M.

In the units and coordinates of `hyperplanes` (rho = 1, S diagonal), with ``V = S^{1/2}W`` and one
column of W a pair, the smallest value over M is

    F*(V, b) = sqrt(2) ||V||_* + C sum xi                     (sum of the singular values of V)

The alternating direction method of multipliers separates the two terms, ``U = V``: U are SVMs of
the pairs on whitened rows, each pulled towards a given column, V is U with its singular values
shrunk. The whitened Gram matrices never change, and each SVM starts from the last. Alternation
over M and W (the paper's, or with ``WW' + eps I`` and a shrinking eps) takes hundreds of times as
long to the same gap.

References
----------
S. Boyd et al.: Distributed optimization and statistical learning via the alternating direction
method of multipliers. Foundations and Trends in Machine Learning 3(1), 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.fsvm.hyperplanes import (
    Hyperplanes,
    JointRows,
    JointSolution,
    PairRows,
    lower_bound,
    majority,
    train_hyperplanes,
)
from mmbench.machines.fsvm.transformation import infimum_root

#: Rounds of the method, its over-relaxation, and every how many rounds the penalty is adapted.
MAX_ROUNDS, RELAXATION, ROUNDS_PER_PENALTY = 500, 1.6, 5

#: Where the SVMs' own gaps are more than this share of the one asked for, their tolerance falls.
SVM_SHARE_OF_GAP, TIGHTENING_FACTOR = 0.5, 1 / 8

#: The penalty is adapted by the root of the residuals' ratio, if that is at least 2, by at most 5.
SMALLEST_PENALTY_CHANGE, LARGEST_PENALTY_CHANGE = 2.0, 5.0


@dataclass(frozen=True)
class SplitState:
    """Where the method stands."""

    #: Shape (k, n_pairs).
    V: NDArray
    #: The multipliers of U = V, over the penalty. Shape (k, n_pairs).
    D: NDArray
    #: That of U = V.
    penalty: float
    #: The SVMs' signed multipliers, each at most 1: over their bound, which is C / penalty.
    u: list[NDArray] | None


def solve_pairs(
    rows: JointRows,
    whitened: Sequence[PairRows],
    C: float,
    tol: float,
    gap_tolerance: float,
    start: SplitState | None = None,
) -> JointSolution:
    """Minimise F* up to a relative gap.

    Parameters
    ----------
    rows : JointRows
    whitened : sequence of PairRows
    C : float
    tol : float
        Tolerance of the SVMs' KKT conditions.
    gap_tolerance : float
        The gap, relative to the value, at which it ends.
    start : SplitState, optional
        `JointSolution.state` of a neighbouring C.

    Returns
    -------
    JointSolution
        Status ``iteration_limit`` where the gap was not reached, ``trivial`` where W = 0.
    """
    shape = (len(rows.s), len(rows.pairs))
    at = start or SplitState(np.zeros(shape), np.zeros(shape), 1.0, None)
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
        bound = max(bound, lower_bound(_unscaled(planes, at.penalty), rows.s))
        if best[0] - bound <= gap_tolerance * best[0]:
            status = planes.status if best[1].any() else Status.TRIVIAL
            break
        if planes.status is Status.ITERATION_LIMIT or time_is_up():
            break
        if planes.missed * at.penalty > SVM_SHARE_OF_GAP * gap_tolerance * best[0]:
            tol *= TIGHTENING_FACTOR
        at = _advance(
            replace(at, u=[u / cost for u in planes.u]), U, adapt=rounds % ROUNDS_PER_PENALTY == 0
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
        state=at,
    )


def _unscaled(planes: Hyperplanes, penalty: float) -> Hyperplanes:
    return replace(planes, u=[penalty * u for u in planes.u], q=penalty * planes.q)


def _advance(at: SplitState, U: NDArray, adapt: bool) -> SplitState:
    """Shrink the singular values, move the multipliers, and balance the two residuals."""
    relaxed = RELAXATION * U + (1 - RELAXATION) * at.V
    left, sizes, right = np.linalg.svd(relaxed + at.D, full_matrices=False)
    V = (left * np.maximum(sizes - sqrt(2.0) / at.penalty, 0.0)) @ right
    D = at.D + relaxed - V
    if not adapt:
        return SplitState(V, D, at.penalty, at.u)
    primal = _size(U - V) / max(_size(V), _size(U))
    dual = _size(V - at.V) / _size(D)
    factor = sqrt(primal / dual)
    if 1.0 / SMALLEST_PENALTY_CHANGE <= factor <= SMALLEST_PENALTY_CHANGE:
        return SplitState(V, D, at.penalty, at.u)
    factor = min(max(factor, 1.0 / LARGEST_PENALTY_CHANGE), LARGEST_PENALTY_CHANGE)
    return SplitState(V, D / factor, at.penalty * factor, at.u)


def _size(matrix: NDArray) -> float:
    """Return the length of a matrix, never zero."""
    return max(float(np.linalg.norm(matrix)), 1e-12)
