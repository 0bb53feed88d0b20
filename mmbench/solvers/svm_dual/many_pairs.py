"""SVMs of all pairs of many classes, trained and certified in one compiled call per class.

The steps are the ones of `mmbench.solvers.svm_dual.smo`. With few rows per pair, separate trainings
spend most of their time outside the steps, and compute kernel values of a class once per pair. A
pair that needs Newton steps, or whose certificate exceeds the tolerances, is trained separately.
Times: task ``classes`` in `benchmarks/results/peers.csv`.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.compiled import compiled
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelRows, LazyGram, read_row
from mmbench.solvers.svm_dual.qp import ROUNDING_FACTOR, SUM_ROUNDING, UNRESOLVED_TOLERANCES
from mmbench.solvers.svm_dual.smo import NEWTON_BUDGET, PATIENCE, descend

#: Rounding unit of double precision.
EPSILON = 2.0**-52


class ManyPairs(NamedTuple):
    """The solutions of all pairs of classes, in the order of `class_pairs`."""

    #: Whether a pair is solved within the tolerances, shape (n_pairs,).
    solved: NDArray
    #: Intercept, objective, bound, violation, steps and number of support vectors of each pair.
    certificates: list[list[float]]
    #: Dual variables of all pairs, one pair after the other, each in ascending order of the rows.
    u: NDArray


def solve_pairs(
    kernel: Kernel,
    X: NDArray,
    labels: NDArray,
    C: float,
    tol: NDArray,
    gap_factor: float,
    lazy: bool,
) -> ManyPairs:
    """Solve the SVMs of all pairs of classes.

    `labels` are class indices. `tol` has one tolerance of the KKT conditions per pair; the
    tolerance of the relative duality gap is `gap_factor` times `tol`. If `lazy`, ``rbf`` kernel
    values are computed from differences of features.
    """
    rows = np.argsort(labels, kind="stable")
    ends = np.append(0, np.cumsum(np.bincount(labels)))
    sizes, X = np.diff(ends), X[rows]
    n_classes = len(sizes)
    starts = np.append(0, np.cumsum(np.add.outer(sizes, sizes)[np.triu_indices(n_classes, 1)]))
    # of each row of each pair: dual variable, decision without the intercept, and place in X
    u, decision, places = np.zeros(starts[-1]), np.zeros(starts[-1]), np.zeros(starts[-1], int)
    ended = np.full((len(starts) - 1, 3), np.inf)  # intercept, violation of KKT conditions, steps
    values = _Values(kernel, X, lazy)
    blocks = [values.between(ends[j], ends[j + 1], ends[j + 1]) for j in range(n_classes)]
    squares = np.concatenate([block.ravel() for block in blocks])
    offsets = np.append(0, np.cumsum(sizes**2))
    k = 0
    for i in range(n_classes - 1):
        if time_is_up():  # the other pairs are left unsolved
            break
        last = k + n_classes - 1 - i
        here = slice(starts[k], starts[last])
        solve_class(
            *(values.between(ends[i], ends[i + 1], ends[-1]), squares, offsets, ends, rows, i),
            *(C, tol[k:last], NEWTON_BUDGET, u[here], decision[here], places[here], ended[k:last]),
        )
        k = last
    positive = np.repeat([j for _, j in combinations(range(n_classes), 2)], np.diff(starts))
    y = np.where(places >= ends[positive], 1.0, -1.0)
    root = np.sqrt(np.concatenate([np.maximum(block.diagonal(), 0.0) for block in blocks]))[places]
    bias, kkt, steps = ended.T
    solutions = (u, decision, y, root)
    return _judged(solutions, bias, kkt, steps, starts, C, tol, gap_factor * tol)


class _Values:
    """Kernel values between blocks of consecutive rows."""

    def __init__(self, kernel: Kernel, X: NDArray, lazy: bool):
        self.columns = np.ascontiguousarray(X.T) if lazy else None
        self.gamma, self.rows = kernel.gamma, None if lazy else KernelRows(kernel, X)

    def between(self, first: int, last: int, end: int) -> NDArray:
        """Return the kernel values of the rows `first` to `last` with the rows `first` to `end`."""
        if self.rows is not None:
            return self.rows.take(slice(first, last)).values(self.rows.take(slice(first, end)))
        assert self.columns is not None
        block = LazyGram(
            np.empty((last - first, end - first)),
            np.ascontiguousarray(self.columns[:, first:end]),
            self.gamma,
            np.append(np.full(end - first, -1), 0),
        )
        for i in range(last - first):
            read_row(*block.source, i)
        return block.values


@np.errstate(all="ignore")  # a solution that is not finite is not solved
def _judged(
    solutions: tuple[NDArray, ...],
    bias: NDArray,
    kkt: NDArray,
    steps: NDArray,
    starts: NDArray,
    C: float,
    tol: NDArray,
    gap_tolerance: NDArray,
) -> ManyPairs:
    """Compute the certificates as in `PiecewiseQP.solution`, and decide which pairs are solved."""
    (u, decision, y, root), first, n = solutions, starts[:-1], np.diff(starts)
    f, total = decision + np.repeat(bias, n), partial(np.add.reduceat, indices=first)
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
    solved = (kkt <= tol) & (gap <= gap_tolerance) & credible & resolved & better & (bound < 0)
    outside = np.maximum.reduceat(np.maximum(-y * u, y * u - C), first)
    violation = np.maximum(abs(total(u)) / np.maximum(1.0, total(abs(u))), np.maximum(outside, 0.0))
    numbers = (
        bias,
        -bound,
        0.0 - np.maximum(value, least),
        violation,
        steps,
        total(u != 0, dtype=int),
    )
    return ManyPairs(solved, np.column_stack(numbers).tolist(), u)


@compiled(no_cfunc_wrapper=True)
def solve_class(
    block, squares, offsets, ends, rows, i, C, tol, budget, u_all, decisions, places, ended
):
    """Solve the SVMs of class i and each later class by pairwise steps.

    `block` contains the kernel values of class i with itself and all later classes. `squares`
    contains the kernel values within each class, one class after the other. The original row
    indices `rows` determine the order of the rows of a pair.
    """
    n_i, at = block.shape[0], 0
    for j in range(i + 1, ends.shape[0] - 1):
        n_j, tolerance = ends[j + 1] - ends[j], tol[j - i - 1]
        n = n_i + n_j
        u, decision, order = u_all[at : at + n], decisions[at : at + n], places[at : at + n]
        knots, slopes = np.empty((n, 2)), np.empty((n, 1))
        rise, fall, gram = np.empty(n), np.empty(n), np.empty((n, n))
        a, b = ends[i], ends[j]
        for p in range(n):
            positive = a == ends[i + 1] or (b < ends[j + 1] and rows[b] < rows[a])
            order[p] = b if positive else a
            a, b = (a, b + 1) if positive else (a + 1, b)
            slopes[p, 0] = -1.0 if positive else 1.0
            knots[p, 0], knots[p, 1] = (0.0, C) if positive else (-C, 0.0)
            rise[p], fall[p] = (1.0, np.inf) if positive else (-np.inf, -1.0)
        square = squares[offsets[j] : offsets[j + 1]].reshape((n_j, n_j))
        for p in range(n):
            for q in range(p + 1):
                k, m = min(order[p], order[q]), max(order[p], order[q])
                own = k >= ends[j]
                value = square[k - ends[j], m - ends[j]] if own else block[k - ends[i], m - ends[i]]
                gram[p, q] = gram[q, p] = value
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
            if attempt == PATIENCE or top - low <= tolerance or left <= 0 or not done:
                break
            done = descend(
                (gram, None, 0.0, np.arange(n + 1)),
                *(diagonal, u, decision, rise, fall, knots, slopes, tolerance, left, floor),
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
