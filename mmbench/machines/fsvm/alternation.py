"""The transformation M for fixed hyperplanes W, one column a pair, in units in which rho = 1.

min over M > 0   1/2 tr(M^{-1} (WW' + eps I)) + tr(MS),     S = diag(s)

The joint problem of all pairs of classes, and their hyperplanes for a fixed transformation M.

Everything is in the coordinates of a `Spectrum`, where S = diag(s), and in units in which rho = 1.
The step from there is exact for every variant: with ``M = N / sqrt(rho)``

    1/2 w'M^{-1}w + rho tr(MS) + C sum xi
        =  sqrt(rho) (1/2 w'N^{-1}w + tr(NS) + C / sqrt(rho) sum xi)

so that only C / sqrt(rho) matters, and a grid over C and rho needs one training a ratio. The step
sizes and the floor of the paper's code are taken in these units; with rho other than 1 its own M,
which is N / sqrt(rho), would take other steps.

The F-SVM's alternation: hyperplanes for a fixed M, M for fixed hyperplanes.

The optimum of the F-SVM for pairs of classes that share M.

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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, cholesky, lapack

from mmbench.allowance import time_is_up
from mmbench.errors import Status, worst
from mmbench.machines.svm import svm_dual
from mmbench.solvers.features import solve_in_features, solve_near
from mmbench.solvers.result import Result
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_smo, solve_to_gap

#: The paper's code: first step size, its factor from step to step, floor of the eigenvalues of M.
FIRST_STEP, STEP_FACTOR, FLOOR = 0.1, 0.9, 1e-5
#: The gradient steps of one M-step end after so many, or when F falls by less than this share.
MAX_STEPS, MIN_DECREASE = 50, 1e-3
#: A step halved below this does not lower F any more.
SHORTEST_STEP = 1e-9


def gradient_steps(M: NDArray, W: NDArray, s: NDArray, max_steps: int = MAX_STEPS) -> NDArray:
    """Lower ``1/2 tr(M^{-1}WW') + tr(MS)`` by projected gradient steps, equations (20) to (22).

    The step is halved until the value does not grow: the plain steps of the paper diverge.
    """
    M, W = np.asfortranarray(M), np.asfortranarray(W)
    # All steps together take at most so much of S from M: then none can lead below the floor.
    far = _is_above_floor(M - np.diag(FIRST_STEP / (1 - STEP_FACTOR) * s))
    step, (value, image) = FIRST_STEP, _value_and_image(M, W, s)
    for _ in range(max_steps):
        while step > SHORTEST_STEP:
            moved = blas.dsyrk(0.5 * step, image, beta=1.0, c=M, lower=1)
            np.einsum("ii->i", moved)[:] -= step * s
            moved = moved if far else above_floor(moved)
            lower, turned = _value_and_image(moved, W, s)
            if lower <= value:
                break
            step *= 0.5
        else:
            break
        M, image, fallen, value = moved, turned, value - lower, lower
        if fallen <= MIN_DECREASE * value:
            break
        step *= STEP_FACTOR
    return np.tril(M) + np.tril(M, -1).T


def _value_and_image(M: NDArray, W: NDArray, s: NDArray) -> tuple[float, NDArray]:
    """Return ``1/2 tr(M^{-1} WW') + tr(MS)`` and ``M^{-1}W``; of M the lower triangle is read."""
    # LAPACK itself: the checks of scipy's functions take longer than small systems.
    factor, failed = lapack.dpotrf(M, lower=1, clean=0)
    if failed:
        return np.inf, W
    image, _ = lapack.dpotrs(factor, W, lower=1)
    return 0.5 * float(np.sum(W * image)) + float(np.diagonal(M) @ s), image


def above_floor(M: NDArray) -> NDArray:
    """Return the nearest matrix with no eigenvalue below `FLOOR`; M's lower triangle is read."""
    if _is_above_floor(M):
        return M
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


def _is_above_floor(M: NDArray) -> bool:
    shifted = np.array(M, order="F")
    np.einsum("ii->i", shifted)[:] -= FLOOR
    return lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0


def closed_form_root(W: NDArray, s: NDArray, eps: float) -> NDArray:
    """Return a root of the M with the smallest ``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``.

    Notes
    -----
    ``M = 2^{-1/2} S^{-1/2} (S^{1/2} (WW' + eps I) S^{1/2})^{1/2} S^{-1/2}``.
    """
    root = np.sqrt(s)
    inner = (root[:, None] * W) @ (root[:, None] * W).T
    inner[np.diag_indices_from(inner)] += eps * s
    values, vectors = np.linalg.eigh(inner)
    return vectors * (np.maximum(values, 0.0) / 2.0) ** 0.25 / root[:, None]


def infimum_root(W: NDArray, s: NDArray) -> NDArray:
    """Return a root of ``M = W (W'S W)^{-1/2} W' / sqrt(2)``, where the infimum without eps is.

    M lies on the edge of the cone: the root has one column a pair.
    """
    root = np.sqrt(s)[:, None]
    left, sizes, _ = np.linalg.svd(root * W, full_matrices=False)
    return left * np.sqrt(sizes / np.sqrt(2.0)) / root


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


#: Slack that costs this share of F is one of rounding.
NEGLIGIBLE_SHARE = 1e-6


def alternate(
    rows: JointRows,
    first: Sequence[PairRows],
    C: float,
    tol: float,
    *,
    rounds: int,
    decrease: float,
    eps: float = 0.0,
    solver: str = "auto",
    starts: Sequence[NDArray] | None = None,
    max_steps: int = 10**7,
) -> JointSolution:
    """Alternate SVMs and M-steps from the semi-whitening ``M = S^{-1/2}``, equation (17).

    Parameters
    ----------
    rows : JointRows
    first : sequence of PairRows
        The semi-whitened rows of each pair.
    C, tol, solver, starts
        As for `train_hyperplanes`.
    rounds : int
        An M-step and an SVM each; 0 is the SVM on semi-whitened rows.
    decrease : float
        Ends where F falls by less than this share; 0 for never.
    eps : float, default=0.0
        Added to ``ww'``; then the M-step is exact. Without it, gradient steps are taken.
    max_steps : int, default=10**7
        Steps of the solver that the SVMs of a pair may take in all rounds together.

    Returns
    -------
    JointSolution
        Its status is that of the SVMs, its state the multipliers of round 0.
    """
    few = max(len(pair.y) for pair in first) <= INTERIOR_ROWS_IN_SEARCH
    if rounds and solver == "auto" and few and tol < SEARCH_TOL:
        solver = "pairwise"  # where rounds end depends on the last digits of the SVMs: keep those
    root = np.diag(rows.s**-0.25)
    M = np.diag(1.0 / np.sqrt(rows.s))
    planes = train_hyperplanes(rows, first, C, starts, tol, solver)
    start, iterations = planes.u, np.array(planes.iterations)
    bound, values = lower_bound(planes, rows.s), [_value(M, planes, rows.s, C, eps)]
    slacks, inside = [planes.slack], planes.inside
    while len(values) <= rounds and planes.status is not Status.ITERATION_LIMIT:
        if time_is_up():
            break
        if iterations.max() >= STEPS_BEFORE_INTERIOR:
            solver = "interior"
        try:
            moved, next_root = _transformation(M, M @ planes.q, rows.s, eps)
        except LinAlgError:  # M is singular but for rounding
            planes = replace(planes, status=Status.INACCURATE)
            break
        after = train_hyperplanes(rows, rows.transformed(next_root), C, planes.u, tol, solver)
        iterations += after.iterations
        if iterations.max() > max_steps:
            after = replace(after, status=Status.ITERATION_LIMIT)
        value, inside = _value(moved, after, rows.s, C, eps), inside and after.inside
        if value >= values[-1]:  # below the accuracy of the SVMs
            break
        M, root, planes = moved, next_root, after
        values.append(value)
        slacks.append(planes.slack)
        bound = max(bound, lower_bound(planes, rows.s))
        if values[-2] - value <= decrease * values[-2]:
            break
    return JointSolution(
        W=M @ planes.q,
        b=planes.b,
        u=planes.u,
        root=root,
        value=values[-1],
        bound=lower_bound_eps(planes, rows.s, eps) if eps else bound,
        violation=planes.violation,
        values=values,
        rounds=len(values) - 1,
        iterations=int(iterations.sum()),
        pair_iterations=iterations.tolist(),
        status=planes.status,
        state=start,
        slacks=slacks if inside and planes.status is Status.OPTIMAL else None,
    )


def at_larger(found: JointSolution, by: float) -> JointSolution | None:
    """Return an alternation at a C that is larger by so much, if it is known to be the same.

    That is where no multiplier reached C: then no slack is positive but for the tolerance of the
    SVMs, and all SVMs and all M are those of any larger C.
    """
    if found.slacks is None or by * max(found.slacks) > NEGLIGIBLE_SHARE * found.value:
        return None
    values = [value + by * slack for value, slack in zip(found.values, found.slacks, strict=True)]
    return replace(found, value=values[-1], values=values)


def _transformation(M: NDArray, W: NDArray, s: NDArray, eps: float) -> tuple[NDArray, NDArray]:
    """Return the next M, and a root of it."""
    if eps:
        root = closed_form_root(W, s, eps)
        return root @ root.T, root
    moved = gradient_steps(M, W, s)
    return moved, cholesky(moved, lower=True)


def _value(M: NDArray, planes: Hyperplanes, s: NDArray, C: float, eps: float) -> float:
    value = 0.5 * planes.norm + float(np.diagonal(M) @ s) + C * planes.slack
    return value + 0.5 * eps * float(np.trace(np.linalg.inv(M))) if eps else value


def lower_bound_eps(planes: Hyperplanes, s: NDArray, eps: float) -> float:
    """Return a lower bound of the optimum with ``WW' + eps I`` in place of ``WW'``.

    Notes
    -----
    For multipliers in the feasible set of `lower_bound`, minimising over W, b and then M leaves
    ``sum a + sqrt(2 eps) tr((S - 1/2 QQ')^{1/2})``. The multipliers are scaled into that set, and a
    little further: at its edge the root falls infinitely fast.
    """
    size = float(np.linalg.norm(planes.q / np.sqrt(s)[:, None], 2))
    largest = min(1.0, np.sqrt(2.0) / max(size, 1e-300))
    outer = 0.5 * planes.q @ planes.q.T
    bounds = []
    for share in (1.0, 1 - 1e-6, 1 - 1e-4, 1 - 1e-2, 0.9):
        scale = share * largest
        values = np.linalg.eigvalsh(np.diag(s) - scale**2 * outer)
        rest = np.sqrt(np.maximum(values, 0.0)).sum()
        bounds.append(scale * planes.multipliers + np.sqrt(2.0 * eps) * float(rest))
    return max(bounds)


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
