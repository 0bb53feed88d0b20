"""The joint problem of all pairs of classes, and their hyperplanes for a fixed transformation M.

Everything is in the coordinates of a `Spectrum`, where S = diag(s), and in units in which rho = 1.
The step from there is exact for every variant: with ``M = N / sqrt(rho)``

    1/2 w'M^{-1}w + rho tr(MS) + C sum xi
        =  sqrt(rho) (1/2 w'N^{-1}w + tr(NS) + C / sqrt(rho) sum xi)

so that only C / sqrt(rho) matters, and a grid over C and rho needs one training a ratio. The step
sizes and the floor of the paper's code are taken in these units; with rho other than 1 its own M,
which is N / sqrt(rho), would take other steps.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status, worst
from mmbench.machines.svm import svm_dual
from mmbench.solvers.features import solve_in_features, solve_near
from mmbench.solvers.result import Result
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_smo, solve_to_gap

#: From this `tol` on, that of a search, few digits are asked of the SVMs.
SEARCH_TOL = 1e-4

#: Rows of a pair above which the interior point is faster than pairwise steps: in a search, and to
#: the last digits (4000 rows of LFW and Ringnorm: 3 and 30 times). It needs so many a component.
INTERIOR_ROWS_IN_SEARCH, INTERIOR_ROWS, INTERIOR_ROWS_PER_COMPONENT = 2000, 1000, 4

#: From so many rows on, to the last digits, the interior point takes over after so many pairwise
#: steps a row; after so many steps it does in any case, as they may need any number.
FEWER_INTERIOR_ROWS, STEPS_PER_ROW, STEPS_BEFORE_INTERIOR = 500, 10, 2_000_000


@dataclass
class PairRows:
    """The rows of a pair in the space of some M."""

    #: Shape (n_p, k).
    rows: NDArray
    #: -1.0 or +1.0. Shape (n_p,).
    y: NDArray
    #: Factors of C in the penalty on slack. Shape (n_p,).
    weights: NDArray | float = 1.0

    @cached_property
    def gram(self) -> NDArray:
        """Their inner products, shape (n_p, n_p)."""
        return self.rows @ self.rows.T

    def dual(
        self, C: float, offset: NDArray | None = None, in_features: bool = False
    ) -> PiecewiseQP:
        """Return the dual of their SVM, whose decisions are added to given ones."""
        dual = svm_dual(self.rows if in_features else self.gram, self.y, C * self.weights)
        return dual if offset is None else replace(dual, slopes=dual.slopes + offset[:, None])


@dataclass(frozen=True)
class JointRows:
    """The training rows of all pairs."""

    #: Coordinates in which S is diagonal. Shape (n, k).
    Z: NDArray
    #: Its diagonal, ridge included. Shape (k,).
    s: NDArray
    #: The rows of each pair and their signs (-1.0, +1.0). List of (ndarray of int, ndarray).
    pairs: list[tuple[NDArray, NDArray]]
    #: Factors of C in the penalty on slack in each pair; 1 by default.
    weights: list[NDArray] | None = None

    @property
    def costs(self) -> list[NDArray]:
        """The factors of C, 1 written out."""
        return self.weights or [np.ones(len(y)) for _, y in self.pairs]

    def transformed(self, root: NDArray) -> list[PairRows]:
        """Return the rows of each pair for ``M = root root'`` (a vector: a diagonal root)."""
        T = self.Z * root if root.ndim == 1 else self.Z @ root
        weights: Sequence[Any] = [1.0] * len(self.pairs) if self.weights is None else self.weights
        return [PairRows(T[i], y, own) for own, (i, y) in zip(weights, self.pairs, strict=True)]


@dataclass(frozen=True, kw_only=True)
class JointSolution(Result):
    """Hyperplanes of all pairs, in the coordinates of the rows, and the transformation they share.

    `value` and `bound` are of the F-SVM's problem, `violation` is that of the SVMs' duals.
    """

    #: Shape (k, n_pairs).
    W: NDArray
    #: Shape (n_pairs,).
    b: NDArray
    #: Signed multipliers of the last SVM of each pair.
    u: list[NDArray]
    #: ``M = root root'``. Shape (k, r).
    root: NDArray
    #: The value after 0, 1, 2, ... rounds; never growing.
    values: list[float]
    #: M-steps of an alternation; else SVMs that each pair took.
    rounds: int
    #: The solver's, of each pair.
    pair_iterations: list[int]
    #: From where a neighbouring C starts.
    state: Any = None
    #: Of an alternation in which no multiplier reached C: the slack after 0, 1, 2, ... rounds.
    slacks: list[float] | None = None

    def extreme_eigenvalues(self) -> tuple[float, float]:
        """Return the smallest and the largest eigenvalue of M."""
        sizes = np.linalg.svd(self.root, compute_uv=False) ** 2
        smallest = float(sizes[-1]) if len(sizes) == len(self.root) else 0.0
        return smallest, float(sizes[0])


@dataclass(frozen=True)
class Hyperplanes:
    """SVMs of all pairs in the space of one M."""

    #: Signed multipliers of each pair.
    u: list[NDArray]
    #: ``Z'u``, which is ``M^{-1} w``. Shape (k, n_pairs).
    q: NDArray
    #: Shape (n_pairs,).
    b: NDArray
    #: Sum over pairs of ``w'M^{-1}w``.
    norm: float
    #: Sum of all slacks, by their weights.
    slack: float
    #: Sum over pairs of the SVMs' absolute duality gaps.
    missed: float
    #: Whether no multiplier is at its upper bound.
    inside: bool
    iterations: list[int]
    #: Largest violation of a dual constraint.
    violation: float
    status: Status

    @property
    def multipliers(self) -> float:
        """The sum of all multipliers."""
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
    """Train the SVM of each pair on its rows in the space of M.

    Parameters
    ----------
    rows : JointRows
    transformed : sequence of PairRows
    C : float
    starts : sequence of ndarray, optional
        Signed multipliers of a neighbouring problem.
    tol : float
        Tolerance of the KKT conditions.
    solver : {"auto", "pairwise", "interior", "reference"}, default="auto"
        "auto" is what is fastest, "pairwise" and "interior" what they name as long as it leads to
        the tolerance, "reference" libsvm.
    offsets : sequence of ndarray of shape (n_p,), optional
        Decisions to which those of the hyperplanes are added.
    gap_tolerance : float, default=inf
        Largest relative gap of each SVM.
    """
    found, slack = [], 0.0
    for p, pair in enumerate(transformed):
        start = None if starts is None else starts[p]
        offset = None if offsets is None else offsets[p]
        attempts = _attempts(pair, C, start, tol, gap_tolerance, solver, offset)
        one = _first_solved(attempts, gap_tolerance)
        decision = one.decision + one.bias + (0.0 if offset is None else offset)
        slack += float(np.sum(pair.weights * np.maximum(0.0, 1.0 - pair.y * decision)))
        found.append(one)
    return Hyperplanes(
        u=[one.u for one in found],
        q=np.column_stack(
            [rows.Z[index].T @ one.u for (index, _), one in zip(rows.pairs, found, strict=True)]
        ),
        b=np.array([one.bias for one in found]),
        norm=float(sum(one.u @ one.decision for one in found)),
        slack=slack,
        missed=float(sum(one.value - one.bound for one in found)),
        inside=all(
            bool((np.abs(one.u) < C * pair.weights).all())
            for one, pair in zip(found, transformed, strict=True)
        ),
        iterations=[one.iterations for one in found],
        violation=max(one.violation for one in found),
        status=worst(one.status for one in found),
    )


def _first_solved(
    attempts: Iterable[PiecewiseSolution | None], gap_tolerance: float
) -> PiecewiseSolution:
    """Return the first attempt that reaches the tolerances, else the last."""
    iterations = 0
    for found in attempts:
        iterations += found.iterations if found else 0
        if found and found.status is Status.OPTIMAL and found.gap <= gap_tolerance:
            break
    assert found is not None  # the last attempt answers
    return replace(found, iterations=iterations)


def _attempts(
    pair: PairRows,
    C: float,
    start: NDArray | None,
    tol: float,
    gap_tolerance: float,
    solver: str,
    offset: NDArray | None,
) -> Iterator[PiecewiseSolution | None]:
    """Guess the free rows; take pairwise steps, or the interior point where those are many."""
    if solver == "reference":
        from mmbench.solvers.libsvm_ import solve_libsvm

        yield solve_libsvm(pair.dual(C), pair.y, C * pair.weights, tol)
        return
    by_rows = pair.dual(C, offset, in_features=True)
    if start is not None and solver != "pairwise":
        yield solve_near(by_rows, start, tol)
    (n, k), certified = pair.rows.shape, tol < SEARCH_TOL
    many = INTERIOR_ROWS if certified else INTERIOR_ROWS_IN_SEARCH
    enough = INTERIOR_ROWS_PER_COMPONENT * k
    if solver == "pairwise" or (solver == "auto" and n <= max(many, enough)):
        short = certified and n >= max(FEWER_INTERIOR_ROWS, enough) and solver == "auto"
        steps = STEPS_PER_ROW * n if short else STEPS_BEFORE_INTERIOR
        few = solve_smo(pair.dual(C, offset), start, tol, steps)
        yield few
        start = few.u
    yield solve_in_features(by_rows, pair.y, C * pair.weights, tol)
    yield solve_to_gap(pair.dual(C, offset), tol, gap_tolerance, start)


def majority(rows: JointRows, C: float) -> tuple[float, NDArray, NDArray]:
    """Return value, W and b of no direction: the larger class everywhere.

    Each row of the smaller class has slack 2.
    """
    signed = [(y, own) for (_, y), own in zip(rows.pairs, rows.costs, strict=True)]
    positive = np.array([own[y > 0].sum() for y, own in signed])
    negative = np.array([own[y < 0].sum() for y, own in signed])
    value = 2.0 * C * float(np.minimum(positive, negative).sum())
    return value, np.zeros((len(rows.s), len(rows.pairs))), np.where(positive < negative, -1.0, 1.0)


def lower_bound(planes: Hyperplanes, s: NDArray) -> float:
    """Return a lower bound of the optimum: the value of the dual at the scaled multipliers.

        max sum a   subject to   0 <= a <= C,  sum_i a_i t_i = 0,  ||S^{-1/2} Q|| <= sqrt(2)

    with a column ``q = sum_i a_i t_i z_i`` of Q a pair, and the spectral norm. The multipliers of
    any SVM, scaled into the last constraint, are feasible.
    """
    scaled = planes.q / np.sqrt(s)[:, None]
    size = np.linalg.norm(scaled, 2 if scaled.shape[1] > 1 else None)  # of a column without an SVD
    return planes.multipliers * min(1.0, np.sqrt(2.0) / max(float(size), 1e-300))
