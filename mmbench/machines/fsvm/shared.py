"""The optimum of the F-SVM for pairs of classes that share M.

In the units and coordinates of `fsvm_steps` (rho = 1, S diagonal), with ``V = S^{1/2}W`` and one
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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.fsvm.alternation import (
    Hyperplanes,
    Image,
    Rows,
    lower_bound,
    train_hyperplanes,
)
from mmbench.machines.fsvm.optimum import Optimum, no_direction

#: Rounds of the method, its over-relaxation, and every how many rounds the penalty is adapted.
MAX_ROUNDS, RELAXATION, EVERY = 500, 1.6, 5


@dataclass(frozen=True)
class Split:
    """Where the method stands.

    Attributes
    ----------
    V : ndarray of shape (k, n_pairs)
    D : ndarray of shape (k, n_pairs)
        The multipliers of U = V, over the penalty.
    penalty : float
        That of U = V.
    u : list of ndarray
        The SVMs' signed multipliers, each at most 1: over their bound, which is C / penalty.
    """

    V: NDArray
    D: NDArray
    penalty: float
    u: list[NDArray] | None


def solve_pairs(
    rows: Rows,
    images: Sequence[Image],
    C: float,
    tol: float,
    goal: float,
    start: Split | None = None,
) -> Optimum:
    """Minimise F* up to a relative gap.

    Parameters
    ----------
    rows : Rows
    images : sequence of Image
        The whitened rows of each pair.
    C : float
    tol : float
        Of the SVMs' optimality conditions.
    goal : float
        The gap, relative to the value, at which it ends.
    start : Split, optional
        `Optimum.state` of a neighbouring C.

    Returns
    -------
    Optimum
        Status ``iteration_limit`` where the gap was not reached, ``trivial`` where W = 0.
    """
    shape = (len(rows.s), len(rows.pairs))
    at = start or Split(np.zeros(shape), np.zeros(shape), 1.0, None)
    best, bound, status = no_direction(rows, C), 0.0, Status.ITERATION_LIMIT
    iterations = np.zeros(shape[1], dtype=int)
    for rounds in range(1, MAX_ROUNDS + 1):
        pull = at.V - at.D
        offsets = [image.rows @ pull[:, p] for p, image in enumerate(images)]
        cost = C / at.penalty
        starts = None if at.u is None else [cost * u for u in at.u]
        planes = train_hyperplanes(rows, images, cost, starts, tol, offsets=offsets)
        iterations += planes.iterations
        U = pull + planes.q / np.sqrt(rows.s)[:, None]
        value = sqrt(2.0) * float(np.linalg.norm(U, "nuc")) + C * planes.slack
        if value < best[0]:
            best = value, U / np.sqrt(rows.s)[:, None], planes.b
        bound = max(bound, lower_bound(_unscaled(planes, at.penalty), rows.s))
        if best[0] - bound <= goal * best[0]:
            status = planes.status if best[1].any() else Status.TRIVIAL
            break
        at = _advance(replace(at, u=[u / cost for u in planes.u]), U, adapt=rounds % EVERY == 0)
    return Optimum(
        *(best[1], best[2], best[0], bound),
        u=planes.u,
        violation=planes.violation * at.penalty,
        rounds=rounds,
        iterations=iterations.tolist(),
        status=status,
        state=at,
    )


def _unscaled(planes: Hyperplanes, penalty: float) -> Hyperplanes:
    return replace(planes, u=[penalty * u for u in planes.u], q=penalty * planes.q)


def _advance(at: Split, U: NDArray, adapt: bool) -> Split:
    """Shrink the singular values, move the multipliers, and balance the two residuals."""
    relaxed = RELAXATION * U + (1 - RELAXATION) * at.V
    left, sizes, right = np.linalg.svd(relaxed + at.D, full_matrices=False)
    V = (left * np.maximum(sizes - sqrt(2.0) / at.penalty, 0.0)) @ right
    D = at.D + relaxed - V
    if not adapt:
        return Split(V, D, at.penalty, at.u)
    primal = _size(U - V) / max(_size(V), _size(U))
    dual = _size(V - at.V) / _size(D)
    factor = sqrt(primal / dual)
    if 0.5 <= factor <= 2.0:
        return Split(V, D, at.penalty, at.u)
    factor = min(max(factor, 0.2), 5.0)
    return Split(V, D / factor, at.penalty * factor, at.u)


def _size(matrix: NDArray) -> float:
    """Return the length of a matrix, never zero."""
    return max(float(np.linalg.norm(matrix)), 1e-12)
