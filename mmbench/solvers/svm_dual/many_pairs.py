"""SVMs or RMMs of all pairs of many classes, trained and certified in one compiled call per class.

The steps are the ones of `mmbench.solvers.svm_dual.smo`. With few rows per pair, separate trainings
spend most of their time outside the steps, and compute kernel values of a class once per pair. A
pair that needs a series of Newton steps, or whose certificate exceeds the tolerances, is trained
separately. An RMM whose bound B is at least theta, the largest ``|f|`` of the SVM, is the SVM;
other RMMs start from the SVM's solution, which must also be within the tolerances. Times: task
``classes`` in `benchmarks/results/peers.csv`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.compiled import compiled, compiled_inside
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import KernelRows
from mmbench.solvers.svm_dual.qp import ROUNDING_FACTOR, SUM_ROUNDING, UNRESOLVED_TOLERANCES
from mmbench.solvers.svm_dual.smo import (
    NEWTON_BUDGET,
    PATIENCE,
    TOLERANCE_FACTORS,
    descend,
    slopes_at,
)

#: Rounding unit of double precision.
EPSILON = 2.0**-52

#: Factors of the KKT tolerance that are tried until the duality gap is within its tolerance; for
#: smaller ones, `solve_to_gap` also compares other solutions.
FACTORS = TOLERANCE_FACTORS[:3]

#: If more than FEW_OPEN_PAIRS and more than half of the pairs so far are not solved, all other
#: pairs are trained separately.
FEW_OPEN_PAIRS = 3

#: For at most FEW_ROWS rows, pairwise steps end at the KKT tolerance COARSE_TOLERANCE, then at a
#: tenth of it, and so on. Each time, a Newton step solves the KKT conditions of the rows inside a
#: linear piece: with 40 rows and the tolerance 1e-7, 50 pairwise steps are left of 280. The Newton
#: step is not taken if a u_i would leave its piece or come closer to a knot than NEAR_KNOT times
#: the largest ``|u_i|``, nor if a pivot is below SINGULAR times k(x, x), as for equal rows.
FEW_ROWS, COARSE_TOLERANCE, NEAR_KNOT, SINGULAR = 100, 0.1, 1e-9, 1e-9

#: Column of the array `ended` that is 1 for a solved pair.
SOLVED = 4


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
    #: Largest ``|f|`` of the SVM at the rows of each pair.
    theta: NDArray
    #: Bound B of each RMM.
    B: NDArray
    #: Whether a pair is solved within the tolerances.
    solved: NDArray
    objective: NDArray
    bound: NDArray
    violation: NDArray
    #: Number of support vectors.
    support: NDArray


@np.errstate(all="ignore")  # a solution that is not finite is not solved
def solve_pairs(
    kernel: Kernel,
    X: NDArray,
    labels: NDArray,
    C: float,
    tol: NDArray,
    gap_factor: float,
    B: float = np.inf,
    fraction: float = 0.0,
) -> ManyPairs:
    """Solve the SVMs, or the RMMs with a finite B, of all pairs of classes.

    `labels` are class indices. `tol` has one tolerance of the KKT conditions per pair; the
    tolerance of the relative duality gap is `gap_factor` times `tol`. The rows of a pair are
    ordered by class. B is at least 1; with a positive fraction, ``B = 1 + fraction (theta - 1)``.
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
    u, decision, ended = np.zeros(starts[-1]), np.zeros(starts[-1]), np.zeros((len(low), 10))
    offsets, end = np.append(0, np.cumsum(sizes**2)), len(low)
    squares, space = np.zeros(offsets[-1]), np.empty(n.max() ** 2)
    for i in reversed(range(len(sizes))):
        open_pairs = np.count_nonzero(ended[end:, SOLVED] == 0)
        # the other pairs are left unsolved; most of them may need Newton steps
        if time_is_up() or open_pairs > max(FEW_OPEN_PAIRS, (len(low) - end) // 2):
            break
        own = slice(ends[i], ends[i + 1])
        block = values.take(own).values(values.take(slice(ends[i], None)))
        squares[offsets[i] : offsets[i + 1]] = block[:, : sizes[i]].ravel()
        first = end - (len(sizes) - 1 - i)
        here, k = slice(starts[first], starts[end]), slice(first, end)
        solve_class(
            *(block, squares, offsets, ends, i, float(C), (float(B), float(fraction)), tol[k]),
            *((float(gap_factor), NEWTON_BUDGET), space, u[here], decision[here], ended[k]),
        )
        end = first
    finite = np.isfinite(np.add.reduceat(u + decision, starts[:-1]))
    bias, steps, theta, bounds, judged, scale, *numbers = ended.T
    finite &= np.isfinite(numbers).all(axis=0) & np.isfinite(bias)
    if (theta > bounds).any():
        u *= np.repeat(scale, n)
        bias *= scale
    solved = finite & (judged > 0)
    return ManyPairs(u, rows[places], starts, bias, steps, theta, bounds, solved, *numbers)


@compiled(no_cfunc_wrapper=True)
def solve_class(
    block, squares, offsets, ends, i, C, bounds, tols, limits, space, u_all, decisions, ended
):
    """Solve the SVMs or RMMs of class i and each later class by pairwise steps.

    `block` contains the kernel values of class i with itself and all later classes. `squares`
    contains the kernel values within each class, one class after the other. The kernel matrix of a
    pair is written to `space`. Columns of `ended`: intercept, number of steps, theta, B, whether
    the pair is solved, scale of u and of the intercept, and the numbers of the certificate.
    """
    (B, fraction), (gap_factor, budget) = bounds, limits
    n_i, at, columns = block.shape[0], 0, block.T.copy()
    for j in range(i + 1, ends.shape[0] - 1):
        n_j, first = ends[j + 1] - ends[j], ends[j] - ends[i]
        n, tol, end = n_i + n_j, tols[j - i - 1], ended[j - i - 1]
        u, decision = u_all[at : at + n], decisions[at : at + n]
        knots, slopes = np.empty((n, 4)), np.empty((n, 3))
        gram = space[: n * n].reshape((n, n))
        square = squares[offsets[j] : offsets[j + 1]].reshape((n_j, n_j))
        for p in range(n):
            positive = p >= n_i
            slopes[p, 1] = -1.0 if positive else 1.0
            knots[p, 0], knots[p, 3] = -np.inf, np.inf
            knots[p, 1], knots[p, 2] = (0.0, C) if positive else (-C, 0.0)
            for q in range(n_i):
                gram[p, q] = columns[first + p - n_i, q] if positive else block[p, q]
            for q in range(n_j):
                gram[p, n_i + q] = square[p - n_i, q] if positive else block[p, first + q]
        inner, least = (knots[:, 1:3].copy(), slopes[:, 1:2].copy()), (tol, gap_factor * tol)
        _solve(gram, u, decision, *inner, n_i, C, np.inf, *least, budget, end)
        end[2] = np.abs(decision + end[0]).max()
        end[3] = 1.0 + fraction * (end[2] - 1.0) if fraction > 0.0 else B
        if end[2] > end[3] and end[SOLVED] > 0.0:
            slopes[:, 0], slopes[:, 2] = -end[3], end[3]
            _solve(gram, u, decision, knots, slopes, n_i, C, end[3], *least, budget, end)
        at += n


@compiled_inside()
def _solve(gram, u, decision, knots, slopes, n_i, C, B, tol, gap_tolerance, budget, end):
    """Decrease the KKT tolerance until the duality gap is within its tolerance; write to `end`."""
    diagonal, level = np.diag(gram).copy(), tol
    root = np.sqrt(np.maximum(diagonal, 0.0))
    for factor in FACTORS:
        level = factor * tol
        end[0], kkt, steps = _steps(gram, diagonal, u, decision, knots, slopes, level, budget)
        end[1] += steps
        gap, sound = _certify(u, decision, root, n_i, C, B, tol, end)
        end[SOLVED] = 1.0 if sound and kkt <= level and gap <= gap_tolerance else 0.0
        if kkt > level or gap <= gap_tolerance:
            break


@compiled_inside()
def _certify(u, decision, root, n_i, C, B, tol, end):
    """Write the certificate as in `PiecewiseQP.solution`; return the relative gap, and soundness.

    A solution is sound if its value is credible, its decisions are not constant, and w = 0 is not
    as good; see `PiecewiseQP`.
    """
    n, norm, gain, beyond, farthest, lost, support = u.shape[0], 0.0, 0.0, 0.0, 0.0, 0.0, 0
    total, absolute, size, top, low = 0.0, 0.0, 0.0, -np.inf, np.inf
    for p in range(n):
        v, f = u[p] if p >= n_i else -u[p], decision[p] + end[0]
        alpha = min(max(v, 0.0), C)
        excess = abs(v - alpha)  # lambda_i + lambda*_i, which is 0 for an SVM
        gain, beyond, farthest = gain + alpha, beyond + excess, max(farthest, excess)
        norm, size, support = norm + u[p] * decision[p], size + abs(v) * root[p], support + (v != 0)
        total, absolute, top, low = total + u[p], absolute + abs(v), max(top, f), min(low, f)
    largest = max(top, -low)
    # the factor makes |f| <= B true also after rounding
    scale = 1.0 if largest <= B else (1.0 - 2.0 * EPSILON) * B / largest
    for p in range(n):
        f = scale * (decision[p] + end[0])
        lost += max(0.0, 1.0 - f if p >= n_i else 1.0 + f)
    norm, unit = 0.5 * max(norm, 0.0), ROUNDING_FACTOR * np.sqrt(n) * EPSILON
    penalty = B * beyond if np.inf > B else 0.0
    value = norm - gain + penalty + 0.5 * unit * size * size
    bound = -scale * scale * norm - C * lost
    least = -C * min(n, 2 * min(n_i, n - n_i))
    credible = least - SUM_ROUNDING * abs(least) <= value <= 0.0
    gap = (value - bound) / max(abs(value), abs(bound))
    small = min(1.0, size * root.max())
    resolved = scale * (top - low) > UNRESOLVED_TOLERANCES * tol * small
    better = gap <= unit or bound > least + unit * abs(least)
    outside = max(scale * largest - B, 0.0) if np.inf > B else farthest
    violation = max(abs(total) / max(1.0, absolute), outside)
    end[5], end[6], end[7], end[8] = scale, -bound, 0.0 - max(value, least), violation
    end[9] = support
    return gap, credible and resolved and better and bound < 0.0 and violation <= tol


@compiled_inside()
def _steps(gram, diagonal, u, decision, knots, slopes, tol, budget):
    """Take pairwise steps; return the intercept, the KKT violation and the number of steps."""
    n, largest, steps, done = u.shape[0], diagonal.max(), 0, 1
    floor = EPSILON * largest if largest > 0 else 1e-12
    level = COARSE_TOLERANCE if n <= FEW_ROWS else tol
    rise, fall = np.empty(n), np.empty(n)
    for p in range(n):
        rise[p], fall[p] = slopes_at(u, knots, slopes, p)[:2]
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
            *(diagonal, u, decision, rise, fall, knots, slopes, level, left, floor),
        )
        steps += done
        _multiply(gram, u, decision)  # the updated product contains the rounding errors of updates
        if level > tol:
            _solve_inside(gram, u, decision, rise, fall, knots, slopes)
            level, done = max(tol, 0.1 * level), 1
    return total / inside if inside else 0.5 * (top + low), top - low, steps


@compiled_inside()
def _multiply(gram, u, decision):
    """Write ``Ku`` to `decision`."""
    decision[:] = 0.0
    for q in range(u.shape[0]):
        if u[q] != 0.0:
            for p in range(u.shape[0]):
                decision[p] += u[q] * gram[q, p]


@compiled_inside()
def _solve_inside(gram, u, decision, rise, fall, knots, slopes):
    """Take the Newton step of all u_i inside a linear piece; see COARSE_TOLERANCE."""
    free = np.flatnonzero(rise == fall)
    m = free.shape[0]
    if m < 2:
        return
    system, moved = np.ones((m + 1, m + 1)), np.zeros(m + 1)
    system[m, m] = 0.0
    for p in range(m):
        moved[p] = rise[free[p]] - decision[free[p]]
        for q in range(m):
            system[p, q] = gram[free[p], free[q]]
    for k in range(m + 1):  # elimination without pivots, since the kernel matrix is definite
        if k < m and not system[k, k] > SINGULAR * gram[free[k], free[k]]:
            return
        for p in range(k + 1, m + 1):
            factor = system[p, k] / system[k, k]
            moved[p] -= factor * moved[k]
            for q in range(k + 1, m + 1):
                system[p, q] -= factor * system[k, q]
    for k in range(m, -1, -1):
        for q in range(k + 1, m + 1):
            moved[k] -= system[k, q] * moved[q]
        moved[k] /= system[k, k]
    moved[:m] += u[free]
    near = NEAR_KNOT * np.abs(moved[:m]).max()
    for p in range(m):
        above, below = slopes_at(u, knots, slopes, free[p])[2:]
        if not below + near < moved[p] < above - near:
            return
    u[free] = moved[:m]
    _multiply(gram, u, decision)
