"""The SVMs of all pairs of classes for one matrix M, and lower bounds on the F-SVM's optimum.

In principal component coordinates (`Spectrum`), S is diagonal; the columns of W are the normal
vectors of the pairs. ``M = N / sqrt(rho)`` reduces any rho to rho = 1, so that a grid needs one
training per C / sqrt(rho):

    1/2 w'M^{-1}w + rho tr(MS) + C sum xi
        =  sqrt(rho) (1/2 w'N^{-1}w + tr(NS) + C / sqrt(rho) sum xi)

Step sizes and the lower bound on eigenvalues apply to N; in the paper to M, so that its algorithm 1
depends on rho itself (docs/machines/fsvm.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status, worst
from mmbench.kernels import row_squares
from mmbench.machines.svm import GAP_TOLERANCE_FACTOR, ROWS_PER_FEATURE, svm_dual
from mmbench.solvers.features import solve_in_features, solve_near
from mmbench.solvers.result import Result
from mmbench.solvers.svm_dual.qp import UNRESOLVED_TOLERANCES, PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo, solve_to_gap

#: If the tolerance is at least SEARCH_TOL, for example in a grid search, only the first digits of
#: the solution need to be correct.
SEARCH_TOL = 1e-4

#: The interior-point method is used for pairs with more than INTERIOR_ROWS rows (twice as many in a
#: grid search) and ROWS_PER_FEATURE rows per component. On 4000 rows, it is 3 (LFW) and 30 times
#: (Ringnorm) as fast as SMO.
INTERIOR_ROWS = 1000

#: The interior-point method also replaces SMO after MOST_STEPS steps or, with at least
#: INTERIOR_ROWS / 2 rows and a tolerance below SEARCH_TOL, after STEPS_PER_ROW steps per row.
STEPS_PER_ROW, MOST_STEPS = 10, 2_000_000


@dataclass
class PairRows:
    """The training rows of a pair of classes, multiplied by a matrix R with ``M = RR'``."""

    #: Transformed rows. Shape (n_p, k).
    rows: NDArray
    #: Labels -1.0 or +1.0. Shape (n_p,).
    y: NDArray
    #: Factors that multiply C in the penalties on slack: an array of shape (n_p,), or the number 1.
    weights: NDArray | float

    @cached_property
    def gram(self) -> NDArray:
        """Gram matrix of the transformed rows, shape (n_p, n_p)."""
        return self.rows @ self.rows.T

    def dual(
        self, C: float, offset: NDArray | None = None, in_features: bool = False
    ) -> PiecewiseQP:
        """Return the dual problem of an SVM, with `offset` added to the decision values."""
        dual = svm_dual(self.rows if in_features else self.gram, self.y, C * self.weights)
        return dual if offset is None else replace(dual, slopes=dual.slopes + offset[:, None])


@dataclass(frozen=True)
class JointRows:
    """The training rows of all pairs of classes."""

    #: Training rows in coordinates in which S is diagonal. Shape (n, k).
    Z: NDArray
    #: Diagonal of the scatter matrix S after the ridge term is added. Shape (k,).
    s: NDArray
    #: Row indices and labels (-1.0 or +1.0) of each pair of classes.
    pairs: list[tuple[NDArray, NDArray]]
    #: Factors that multiply C in the penalties on slack. For each pair of classes, an array with
    #: one factor per row, or the number 1.
    weights: Sequence[NDArray | float]

    @property
    def costs(self) -> list[NDArray]:
        """Factors that multiply C in the penalties on slack, one array per pair of classes."""
        return [c * np.ones(len(y)) for c, (_, y) in zip(self.weights, self.pairs, strict=True)]

    def transformed(self, root: NDArray) -> list[PairRows]:
        """Return the rows of each pair, multiplied by a matrix or scaled by a vector `root`."""
        T = self.Z * root if root.ndim == 1 else self.Z @ root
        return [PairRows(T[i], y, c) for c, (i, y) in zip(self.weights, self.pairs, strict=True)]


@dataclass(frozen=True, kw_only=True)
class JointSolution(Result):
    """Hyperplanes of all pairs of classes, and one matrix M for all pairs.

    `value` is the objective of the F-SVM, and `bound` is a lower bound on the optimum of the F-SVM.
    `violation` is the largest violation of a dual constraint of an SVM.
    """

    #: Normal vectors, one column per pair. Shape (k, n_pairs).
    W: NDArray
    #: Intercepts. Shape (n_pairs,).
    b: NDArray
    #: Dual variables ``u_i = y_i alpha_i`` of the last SVM of each pair.
    u: list[NDArray]
    #: Matrix `root` with ``M = root root'``. Shape (k, r).
    root: NDArray
    #: Objective values of the alternating algorithm after 0, 1, 2, ... rounds; a single value for
    #: the other algorithms.
    values: list[float]
    #: Number of M-steps of the alternating algorithm, number of SVMs per pair in the routes
    #: "secant" and "ADMM", or 1 for the cone program.
    rounds: int
    #: Number of iterations of the SVM solver for each pair.
    pair_iterations: list[int]
    #: Warm start for a training with another C.
    state: Any = None

    def extreme_eigenvalues(self) -> tuple[float, float]:
        """Return the smallest and the largest eigenvalue of M."""
        sizes = np.linalg.svd(self.root, compute_uv=False) ** 2
        smallest = float(sizes[-1]) if len(sizes) == len(self.root) else 0.0
        return smallest, float(sizes[0])


@dataclass(frozen=True)
class Hyperplanes:
    """The trained SVMs of all pairs of classes for one matrix M."""

    #: Dual variables ``u_i = y_i alpha_i`` of the rows of each pair.
    u: list[NDArray]
    #: Vectors ``Z'u = M^{-1} w`` for the rows Z of each pair of classes, one column per pair. Shape
    #: (k, n_pairs).
    q: NDArray
    #: Intercepts. Shape (n_pairs,).
    b: NDArray
    #: Sum of ``w'M^{-1}w`` over all pairs, with the normal vectors w.
    norm: float
    #: Weighted sum of the slacks of all pairs.
    slack: float
    #: Sum of the SVMs' absolute duality gaps over all pairs.
    absolute_gap: float
    iterations: list[int]
    #: Largest violation of a dual constraint of an SVM.
    violation: float
    status: Status

    @property
    def multipliers(self) -> float:
        """Sum of the dual variables ``|u_i|`` of all pairs."""
        return float(sum(np.abs(u).sum() for u in self.u))


def train_hyperplanes(
    rows: JointRows,
    transformed: Sequence[PairRows],
    C: float,
    starts: Sequence[NDArray] | None,
    tol: float,
    solver: str = "auto",
    offsets: Sequence[NDArray] | None = None,
    gap_tolerance: float = np.inf,
) -> Hyperplanes:
    """Train the SVM of each pair of classes on the pair's transformed rows.

    `starts` contains a warm start for each pair: the dual variables u of an SVM with another C or
    M. `offsets` contains one array per pair of classes, which is added to the decision values of
    the pair's rows. `solver` is "auto", "reference" (libsvm), "pairwise" (SMO first) or "interior"
    (interior-point method first).
    """
    found, slack = [], 0.0
    for p, pair in enumerate(transformed):
        start = None if starts is None else starts[p]
        offset = None if offsets is None else offsets[p]
        iterations = 0
        for svm in _attempts(pair, C, start, tol, gap_tolerance, solver, offset):
            iterations += svm.iterations
            if (svm.status is Status.OPTIMAL and svm.gap <= gap_tolerance) or time_is_up():
                break
        decision = svm.decision + svm.bias + (0.0 if offset is None else offset)
        slack += float(np.sum(pair.weights * np.maximum(0.0, 1.0 - pair.y * decision)))
        found.append(replace(svm, iterations=iterations))
    return Hyperplanes(
        u=[svm.u for svm in found],
        q=np.column_stack(
            [rows.Z[index].T @ svm.u for svm, (index, _) in zip(found, rows.pairs, strict=True)]
        ),
        b=np.array([svm.bias for svm in found]),
        norm=float(sum(svm.u @ svm.decision for svm in found)),
        slack=slack,
        absolute_gap=float(sum(svm.value - svm.bound for svm in found)),
        iterations=[svm.iterations for svm in found],
        violation=max(svm.violation for svm in found),
        status=worst(svm.status for svm in found),
    )


def _attempts(
    pair: PairRows,
    C: float,
    start: NDArray | None,
    tol: float,
    gap_tolerance: float,
    solver: str,
    offset: NDArray | None,
) -> Iterator[PiecewiseSolution]:
    """Yield the solutions of an SVM by several algorithms, one after the other.

    The algorithms are an active-set method (if there is a warm start), SMO (if there are few rows),
    the interior-point method, and SMO until the duality gap is at most `gap_tolerance`.
    """
    if solver == "reference":
        from mmbench.solvers.libsvm_ import solve_libsvm

        yield solve_libsvm(pair.dual(C), pair.y, C * pair.weights, tol)
        return
    by_rows = pair.dual(C, offset, in_features=True)
    if start is not None and solver != "pairwise":
        near = solve_near(by_rows, start, tol)
        if near is not None:
            yield near
    (n, k), certified = pair.rows.shape, tol < SEARCH_TOL
    many = INTERIOR_ROWS if certified else 2 * INTERIOR_ROWS
    enough = ROWS_PER_FEATURE * k
    if solver == "pairwise" or (solver == "auto" and n <= max(many, enough)):
        short = certified and n >= max(INTERIOR_ROWS // 2, enough) and solver == "auto"
        steps = STEPS_PER_ROW * n if short else MOST_STEPS
        few = solve_smo(pair.dual(C, offset), start, tol, steps)
        yield few
        start = few.u
    yield solve_in_features(by_rows, pair.y, C * pair.weights, tol)
    yield solve_to_gap(pair.dual(C, offset), tol, gap_tolerance, start)


def majority(rows: JointRows, C: float) -> tuple[float, NDArray, NDArray]:
    """Return the objective, W and b of the solution W = 0, which predicts the larger class.

    With W = 0, the rows of the smaller class of each pair have slack 2.
    """
    costs = [(y, weights) for (_, y), weights in zip(rows.pairs, rows.costs, strict=True)]
    positive = np.array([weights[y > 0].sum() for y, weights in costs])
    negative = np.array([weights[y < 0].sum() for y, weights in costs])
    value = 2.0 * C * float(np.minimum(positive, negative).sum())
    return value, np.zeros((len(rows.s), len(rows.pairs))), np.where(positive < negative, -1.0, 1.0)


def lower_bound(Q: NDArray, total: float, s: NDArray) -> float:
    """Return a lower bound on the optimum of the F-SVM: a dual objective value.

        max sum a   subject to   0 <= a <= C,  sum_i a_i t_i = 0,  ||S^{-1/2} Q|| <= sqrt(2)

    Q has one column ``q = sum_i a_i t_i z_i`` per pair of classes, and the norm is the spectral
    norm. The dual variables of SVMs with penalty C satisfy the first two constraints; a factor of
    at most 1 makes them satisfy the third. `total` is the sum of all a_i.
    """
    scaled = Q / np.sqrt(s)[:, None]
    # the norm of a single column needs no SVD
    size = np.linalg.norm(scaled, 2 if scaled.shape[1] > 1 else None)
    return total * min(1.0, np.sqrt(2.0) / max(float(size), 1e-300))


def constant_if_unresolved(
    rows: JointRows, found: JointSolution, C: float, tol: float, eps: float | None
) -> JointSolution:
    """Set w = 0 for each pair of classes whose decision values are constant up to the tolerance.

    The terms of ``w = M sum_i u_i z_i`` then cancel, and the direction of w is arbitrary (see
    `PiecewiseQP.constant_if_unresolved`). The tolerance is ``UNRESOLVED_TOLERANCES * tol``, or
    smaller if the dual variables are small. If w = 0 would increase the objective by more than the
    gap tolerance, `found` is returned. For "opt", `eps` is None, since `found.value` is minimised
    over M.
    """
    W, b, slack = found.W.copy(), found.b.copy(), 0.0
    for p, ((index, y), weights) in enumerate(zip(rows.pairs, rows.weights, strict=True)):
        decision, range_limit = rows.Z[index] @ W[:, p], UNRESOLVED_TOLERANCES * tol
        if W[:, p].any() and np.ptp(decision) <= range_limit:
            lengths = np.sqrt(row_squares(rows.Z[index] @ found.root))
            size = float(np.abs(found.u[p]) @ lengths * lengths.max())
            if np.ptp(decision) <= range_limit * min(1.0, size):
                decision, W[:, p], b[p] = 0.0, 0.0, np.clip(b[p], -1, 1)
        slack += float(np.sum(weights * np.maximum(0.0, 1.0 - y * (decision + b[p]))))
    if np.array_equal(W, found.W):
        return found
    if eps is None:
        value = np.sqrt(2.0) * float(np.linalg.norm(np.sqrt(rows.s)[:, None] * W, "nuc"))
    else:
        inverse = np.linalg.inv(found.root)
        value = 0.5 * float(np.sum((inverse @ W) ** 2) + eps * np.sum(inverse**2))
        value += float(rows.s @ np.sum(found.root**2, axis=1))
    value += C * slack
    if value > (1.0 + GAP_TOLERANCE_FACTOR * tol) * found.value:
        return found
    return replace(found, W=W, b=b, value=value, values=[*found.values[:-1], value])


def infimum_root(W: NDArray, s: NDArray) -> NDArray:
    """Return R with ``RR' = M = W (W'S W)^{-1/2} W' / sqrt(2)``, the minimiser of (12) for fixed W.

    The minimiser M is on the boundary of the cone of positive semidefinite matrices. R has one
    column per pair of classes.
    """
    root = np.sqrt(s)[:, None]
    left, sizes, _ = np.linalg.svd(root * W, full_matrices=False)
    return left * np.sqrt(sizes / np.sqrt(2.0)) / root
