"""SVMs of all pairs of many classes, trained and certified in one compiled call per class.

The steps are the ones of `mmbench.solvers.svm_dual.smo`. With few rows per pair, separate trainings
spend most of their time outside the steps, and compute kernel values of a class once per pair. A
pair that needs Newton steps, or whose certificate exceeds the tolerances, is trained separately.
Times: task ``classes`` in `benchmarks/results/peers.csv`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.compiled import compiled
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelRows
from mmbench.solvers.svm_dual.qp import ROUNDING_FACTOR, SUM_ROUNDING, UNRESOLVED_TOLERANCES
from mmbench.solvers.svm_dual.smo import NEWTON_BUDGET, PATIENCE, descend

#: Rounding unit of double precision.
EPSILON = 2.0**-52


class ManyPairs(NamedTuple):
    """The solutions of all pairs of classes: arrays over pairs, in the order of `class_pairs`."""

    #: Dual variables of all pairs, one pair after the other.
    u: NDArray
    #: Row of each dual variable: the rows of the first class of a pair, then of the second class.
    rows: NDArray
    #: Index of the first dual variable of each pair, and the length of `u`.
    starts: NDArray
    bias: NDArray
    #: Number of steps.
    steps: NDArray
    #: Whether a pair is solved within the tolerances.
    solved: NDArray
    objective: NDArray
    bound: NDArray
    violation: NDArray
    #: Number of support vectors.
    support: NDArray


def solve_pairs(
    kernel: Kernel,
    X: NDArray,
    labels: NDArray,
    C: float,
    tol: NDArray,
    gap_factor: float,
) -> ManyPairs:
    """Solve the SVMs of all pairs of classes.

    `labels` are class indices. `tol` has one tolerance of the KKT conditions per pair; the
    tolerance of the relative duality gap is `gap_factor` times `tol`. The rows of a pair are
    ordered by class.
    """
    rows = np.argsort(labels, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(labels)))
    sizes, values = np.diff(ends), KernelRows(kernel, X[rows])
    low, high = np.triu_indices(len(sizes), 1)
    n = sizes[low] + sizes[high]
    starts = np.append(0, np.cumsum(n))
    # of each row of each pair: whether it is of the second class, place in `rows`, dual variable,
    # and decision without the intercept
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], n)
    second = places >= np.repeat(sizes[low], n)
    places += np.repeat(ends[low], n) + second * np.repeat(ends[high] - ends[low + 1], n)
    u, decision = np.zeros(starts[-1]), np.zeros(starts[-1])
    ended = np.tile([0.0, np.inf, 0.0], (len(low), 1))  # intercept, KKT violation, steps
    offsets, diagonal, end = np.append(0, np.cumsum(sizes**2)), np.zeros(len(rows)), len(low)
    squares, space = np.zeros(offsets[-1]), np.empty(n.max() ** 2)
    for i in reversed(range(len(sizes))):
        if time_is_up():  # the other pairs are left unsolved
            break
        own = slice(ends[i], ends[i + 1])
        block = values.take(own).values(values.take(slice(ends[i], None)))
        squares[offsets[i] : offsets[i + 1]] = block[:, : sizes[i]].ravel()
        diagonal[own] = block.diagonal()
        first = end - (len(sizes) - 1 - i)
        here, k = slice(starts[first], starts[end]), slice(first, end)
        solve_class(
            *(block, squares, offsets, ends, i, C, tol[k], NEWTON_BUDGET, space),
            *(u[here], decision[here], ended[k]),
        )
        end = first
    root = np.sqrt(np.maximum(diagonal, 0.0))[places]
    data = u, decision, np.where(second, 1.0, -1.0), root
    found = _judged(data, ended, starts, C, tol, gap_factor * tol)
    return ManyPairs(u, rows[places], starts, ended[:, 0], ended[:, 2], *found)


@np.errstate(all="ignore")  # a solution that is not finite is not solved
def _judged(
    solutions: tuple[NDArray, ...],
    ended: NDArray,
    starts: NDArray,
    C: float,
    tol: NDArray,
    gap_tolerance: NDArray,
) -> tuple[NDArray, ...]:
    """Compute the certificates as in `PiecewiseQP.solution`, and decide which pairs are solved."""
    (u, decision, y, root), first, n = solutions, starts[:-1], np.diff(starts)
    f, total = decision + np.repeat(ended[:, 0], n), partial(np.add.reduceat, indices=first)
    quadratic = np.maximum(0.5 * total(u * decision), 0.0)
    size, positive = total(abs(u) * root), total(y > 0, dtype=int)
    unit = ROUNDING_FACTOR * np.sqrt(n) * np.finfo(float).eps
    value = quadratic - total(y * u) + 0.5 * unit * size**2
    bound = -quadratic - C * total(np.maximum(0.0, 1.0 - y * f))
    least = -C * np.minimum(n, 2 * np.minimum(positive, n - positive))
    credible = (value <= 0) & (value >= least - SUM_ROUNDING * abs(least))
    gap = (value - bound) / np.maximum(abs(value), abs(bound))
    span = np.maximum.reduceat(f, first) - np.minimum.reduceat(f, first)
    scale = np.minimum(1.0, size * np.maximum.reduceat(root, first))
    resolved = span > UNRESOLVED_TOLERANCES * tol * scale
    better = (gap <= unit) | (bound > least + unit * abs(least))
    closed = (ended[:, 1] <= tol) & (gap <= gap_tolerance)
    outside = np.maximum.reduceat(np.maximum(-y * u, y * u - C), first)
    violation = np.maximum(abs(total(u)) / np.maximum(1.0, total(abs(u))), np.maximum(outside, 0.0))
    solved = closed & credible & resolved & better & (bound < 0) & (violation <= tol)
    return solved, -bound, 0.0 - np.maximum(value, least), violation, total(u != 0, dtype=int)


@compiled(no_cfunc_wrapper=True)
def solve_class(block, squares, offsets, ends, i, C, tols, budget, space, u_all, decisions, ended):
    """Solve the SVMs of class i and each later class by pairwise steps.

    `block` contains the kernel values of class i with itself and all later classes. `squares`
    contains the kernel values within each class, one class after the other. The kernel matrix of a
    pair is written to `space`.
    """
    n_i, at, columns = block.shape[0], 0, block.T.copy()
    for j in range(i + 1, ends.shape[0] - 1):
        n_j, first = ends[j + 1] - ends[j], ends[j] - ends[i]
        n, tol = n_i + n_j, tols[j - i - 1]
        u, decision = u_all[at : at + n], decisions[at : at + n]
        knots, slopes = np.empty((n, 2)), np.empty((n, 1))
        rise, fall, gram = np.empty(n), np.empty(n), space[: n * n].reshape((n, n))
        square = squares[offsets[j] : offsets[j + 1]].reshape((n_j, n_j))
        for p in range(n):
            positive = p >= n_i
            slopes[p, 0] = -1.0 if positive else 1.0
            knots[p, 0], knots[p, 1] = (0.0, C) if positive else (-C, 0.0)
            rise[p], fall[p] = (1.0, np.inf) if positive else (-np.inf, -1.0)
            for q in range(n_i):
                gram[p, q] = columns[first + p - n_i, q] if positive else block[p, q]
            for q in range(n_j):
                gram[p, n_i + q] = square[p - n_i, q] if positive else block[p, first + q]
        diagonal = np.diag(gram).copy()
        largest, steps, done = diagonal.max(), 0, 1
        floor = EPSILON * largest if largest > 0 else 1e-12
        for attempt in range(PATIENCE + 1):
            top, low, total, inside = -np.inf, np.inf, 0.0, 0
            for p in range(n):
                top, low = max(top, rise[p] - decision[p]), min(low, fall[p] - decision[p])
                if rise[p] == fall[p]:
                    total, inside = total + rise[p] - decision[p], inside + 1
            left = np.int64(budget / n) - steps
            if attempt == PATIENCE or top - low <= tol or left <= 0 or not done:
                break
            done = descend(
                (gram, None, 0.0, np.arange(n + 1)),
                *(diagonal, u, decision, rise, fall, knots, slopes, tol, left, floor),
            )
            steps += done
            decision[:] = 0.0  # the updated product contains the rounding errors of all updates
            for q in range(n):
                if u[q] != 0.0:
                    for p in range(n):
                        decision[p] += u[q] * gram[q, p]
        ended[j - i - 1, 0] = total / inside if inside else 0.5 * (top + low)
        ended[j - i - 1, 1], ended[j - i - 1, 2] = top - low, steps
        at += n
