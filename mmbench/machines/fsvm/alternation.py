"""The two steps of the F-SVM's alternation: hyperplanes for a fixed M, and M for fixed hyperplanes.

Everything is in the coordinates of a `Spectrum`, where S = diag(s), and in units in which rho = 1.
The step from there is exact for every variant: with ``M = N / sqrt(rho)``

    1/2 w'M^{-1}w + rho tr(MS) + C sum xi
        =  sqrt(rho) (1/2 w'N^{-1}w + tr(NS) + C / sqrt(rho) sum xi)

so that only C / sqrt(rho) matters, and a grid over C and rho needs one training a ratio. The step
sizes and the floor of the paper's code are taken in these units; with rho other than 1 its own M,
which is N / sqrt(rho), would take other steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, lapack

from mmbench.errors import Status, worst
from mmbench.machines.svm import svm_dual
from mmbench.solvers.linear_svm import solve_inside, solve_near
from mmbench.solvers.svm_dual.problem import PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo

#: The paper's code: first step size, its factor from step to step, floor of the eigenvalues of M.
FIRST_STEP, STEP_FACTOR, FLOOR = 0.1, 0.9, 1e-5
#: The gradient steps of one M-step end after so many, or when F falls by less than this share.
MAX_STEPS, MIN_DECREASE = 50, 1e-3
#: An SVM on so many rows, and so many to a component, may go to the interior point: at once above
#: the larger number, whose Gram matrix costs more, else after so many pairwise steps a row.
LEAST_ROWS, MOST_ROWS, MANY_ROWS, STEPS_PER_ROW = 500, 2000, 4, 10
#: A step halved below this does not lower F any more.
SHORTEST_STEP = 1e-9
#: From this `tol` on, that of a search, SVMs have no digits that an interior point could bring.
SEARCH_TOL = 1e-4


@dataclass
class Image:
    """The rows of a pair in the space of some M.

    Parameters
    ----------
    rows : ndarray of shape (n_p, k)
    """

    rows: NDArray

    @cached_property
    def gram(self) -> NDArray:
        """Their inner products, shape (n_p, n_p)."""
        return self.rows @ self.rows.T


@dataclass(frozen=True)
class Rows:
    """The training rows of all pairs.

    Attributes
    ----------
    Z : ndarray of shape (n, k)
        Coordinates in which S is diagonal.
    s : ndarray of shape (k,)
        Its diagonal, ridge included.
    pairs : list of (ndarray of int, ndarray)
        The rows of each pair and their signs (-1.0, +1.0).
    """

    Z: NDArray
    s: NDArray
    pairs: list[tuple[NDArray, NDArray]]

    def images(self, root: NDArray) -> list[Image]:
        """Return the rows of each pair for ``M = root root'`` (a vector: a diagonal root)."""
        T = self.Z * root if root.ndim == 1 else self.Z @ root
        return [Image(T[index]) for index, _ in self.pairs]


@dataclass(frozen=True)
class Hyperplanes:
    """SVMs of all pairs in the space of one M.

    Attributes
    ----------
    u : list of ndarray
        Signed multipliers of each pair.
    q : ndarray of shape (k, n_pairs)
        ``Z'u``, which is ``M^{-1} w``.
    b : ndarray of shape (n_pairs,)
    norm : float
        Sum over pairs of ``w'M^{-1}w``.
    slack : float
        Sum of all slacks.
    iterations : list of int
    violation : float
        Largest violation of a dual constraint.
    status : Status
    """

    u: list[NDArray]
    q: NDArray
    b: NDArray
    norm: float
    slack: float
    iterations: list[int]
    violation: float
    status: Status

    @property
    def multipliers(self) -> float:
        """The sum of all multipliers."""
        return float(sum(np.abs(u).sum() for u in self.u))


def train_hyperplanes(
    rows: Rows,
    images: Sequence[Image],
    C: float,
    starts: Sequence[NDArray] | None,
    tol: float,
    solver: str = "auto",
    offsets: Sequence[NDArray] | None = None,
) -> Hyperplanes:
    """Train the SVM of each pair on its rows in the space of M.

    Parameters
    ----------
    rows : Rows
    images : sequence of Image
    C : float
    starts : sequence of ndarray, optional
        Signed multipliers of a neighbouring problem.
    tol : float
        Of the optimality conditions.
    solver : {"auto", "pairwise", "reference"}, default="auto"
        "pairwise" takes pairwise steps alone, "auto" what is fastest; "reference" is libsvm.
    offsets : sequence of ndarray of shape (n_p,), optional
        Decisions to which those of the hyperplanes are added.

    Returns
    -------
    Hyperplanes
    """
    found, slack, violation = [], 0.0, 0.0
    for p, image in enumerate(images):
        y = rows.pairs[p][1]
        start = None if starts is None else starts[p]
        if offsets is None:
            one, given = _solve(image, y, C, start, tol, solver), np.zeros(len(y))
        else:
            one, given = _solve_beside(offsets[p], image, y, C, start, tol), offsets[p]
        slack += float(np.maximum(0.0, 1.0 - y * (given + one.decision + one.bias)).sum())
        size = y * one.u
        outside = max(-float(size.min()), float(size.max()) - C, abs(float(one.u.sum())))
        violation = max(violation, outside)
        found.append(one)
    return Hyperplanes(
        u=[one.u for one in found],
        q=np.column_stack(
            [rows.Z[index].T @ one.u for (index, _), one in zip(rows.pairs, found, strict=True)]
        ),
        b=np.array([one.bias for one in found]),
        norm=float(sum(one.u @ one.decision for one in found)),
        slack=slack,
        iterations=[one.iterations for one in found],
        violation=violation,
        status=worst(one.status for one in found),
    )


def _solve(
    image: Image, y: NDArray, C: float, start: NDArray | None, tol: float, solver: str
) -> PiecewiseSolution:
    """Guess the free rows; else take pairwise steps, few where an interior point costs as much."""
    if solver == "reference":
        from mmbench.solvers.libsvm_ import solve_libsvm

        return solve_libsvm(svm_dual(image.gram, y, C), y, C, tol)
    if solver == "pairwise":
        return solve_smo(svm_dual(image.gram, y, C), start, tol)
    found = None if start is None else solve_near(image.rows, y, C, start, tol)
    n, k = image.rows.shape
    certified = tol < SEARCH_TOL or n > MOST_ROWS
    if found is None and certified and n >= max(MANY_ROWS * k, LEAST_ROWS):
        if n <= MOST_ROWS:
            few = solve_smo(svm_dual(image.gram, y, C), start, tol, STEPS_PER_ROW * n)
            if few.status is Status.OPTIMAL:
                return few
            start = few.u
        found = solve_inside(image.rows, y, C, tol)
    return solve_smo(svm_dual(image.gram, y, C), start, tol) if found is None else found


def _solve_beside(
    offset: NDArray, image: Image, y: NDArray, C: float, start: NDArray | None, tol: float
) -> PiecewiseSolution:
    """Train a hyperplane whose decisions are added to given ones."""
    found = None if start is None else solve_near(image.rows, y, C, start, tol, offset)
    if found is not None:
        return found
    dual = svm_dual(image.gram, y, C)
    return solve_smo(replace(dual, slopes=dual.slopes + offset[:, None]), start, tol)


def lower_bound(planes: Hyperplanes, s: NDArray) -> float:
    """Return a lower bound of the optimum: the value of the dual at the scaled multipliers.

        max sum a   subject to   0 <= a <= C,  sum_i a_i t_i = 0,  ||S^{-1/2} Q|| <= sqrt(2)

    with a column ``q = sum_i a_i t_i z_i`` of Q a pair, and the spectral norm. The multipliers of
    any SVM, scaled into the last constraint, are feasible.
    """
    size = np.linalg.norm(planes.q / np.sqrt(s)[:, None], 2)
    return planes.multipliers * min(1.0, np.sqrt(2.0) / max(float(size), 1e-300))


# -- M for fixed hyperplanes -----------------------------------------------------------------------


def transform_value(M: NDArray, W: NDArray, s: NDArray, eps: float = 0.0) -> float:
    """Return ``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``; infinity where M is not positive."""
    value, _ = _value_and_image(M, W, s)
    return value + 0.5 * eps * float(np.trace(np.linalg.inv(M))) if eps else value


def _value_and_image(M: NDArray, W: NDArray, s: NDArray) -> tuple[float, NDArray]:
    """Return ``1/2 tr(M^{-1} WW') + tr(MS)`` and ``M^{-1}W``; of M the lower triangle is read."""
    # LAPACK itself: the checks of scipy's functions take longer than small systems.
    factor, failed = lapack.dpotrf(M, lower=1, clean=0)
    if failed:
        return np.inf, W
    image, _ = lapack.dpotrs(factor, W, lower=1)
    return 0.5 * float(np.sum(W * image)) + float(np.diagonal(M) @ s), image


def gradient(M: NDArray, W: NDArray, s: NDArray, eps: float = 0.0) -> NDArray:
    """Return that of `transform_value`: ``-1/2 M^{-1} (WW' + eps I) M^{-1} + S``, equation (21)."""
    inverse = np.linalg.inv(M)
    image = inverse @ W
    return -0.5 * (image @ image.T + eps * inverse @ inverse) + np.diag(s)


def gradient_steps(M: NDArray, W: NDArray, s: NDArray) -> NDArray:
    """Lower ``1/2 tr(M^{-1}WW') + tr(MS)`` by projected gradient steps, equations (20) to (22).

    The step is halved until the value does not grow: the plain steps of the paper diverge.
    """
    M, W = np.asfortranarray(M), np.asfortranarray(W)
    # All steps together take at most so much of S from M: then none can lead below the floor.
    far = _is_above_floor(M - np.diag(FIRST_STEP / (1 - STEP_FACTOR) * s))
    step, (value, image) = FIRST_STEP, _value_and_image(M, W, s)
    for _ in range(MAX_STEPS):
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


# -- the alternation -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alternation:
    """Where an alternation ended.

    Attributes
    ----------
    M : ndarray of shape (k, k)
    planes : Hyperplanes
        The SVMs in the space of M.
    values : list of float
        F after 0, 1, 2, ... rounds; never growing.
    bound : float
        The best lower bound of the optimum of F without eps.
    iterations : list of int
        Of each pair.
    start : list of ndarray
        The multipliers of round 0: a neighbouring C starts there.
    """

    M: NDArray
    planes: Hyperplanes
    values: list[float]
    bound: float
    iterations: list[int]
    start: list[NDArray]

    @property
    def W(self) -> NDArray:
        """The hyperplanes, one column a pair."""
        return self.M @ self.planes.q


def alternate(
    rows: Rows,
    first: Sequence[Image],
    C: float,
    tol: float,
    *,
    rounds: int,
    decrease: float,
    eps: float = 0.0,
    solver: str = "auto",
    starts: Sequence[NDArray] | None = None,
) -> Alternation:
    """Alternate SVMs and M-steps from the semi-whitening ``M = S^{-1/2}``, equation (17).

    Parameters
    ----------
    rows : Rows
    first : sequence of Image
        The semi-whitened rows of each pair.
    C, tol, solver, starts
        As for `train_hyperplanes`.
    rounds : int
        An M-step and an SVM each; 0 is the SVM on semi-whitened rows.
    decrease : float
        Ends where F falls by less than this share; 0 for never.
    eps : float, default=0.0
        Added to ``ww'``; then the M-step is exact. Without it, gradient steps are taken.

    Returns
    -------
    Alternation
    """
    few = max(len(image.rows) for image in first) <= MOST_ROWS
    if rounds and solver == "auto" and few and tol < SEARCH_TOL:
        solver = "pairwise"  # where rounds end depends on the last digits of the SVMs: keep those
    M = np.diag(1.0 / np.sqrt(rows.s))
    planes = train_hyperplanes(rows, first, C, starts, tol, solver)
    start, iterations = planes.u, np.array(planes.iterations)
    bound, values = lower_bound(planes, rows.s), [_value(M, planes, rows.s, C, eps)]
    for _ in range(rounds):
        W = M @ planes.q
        root = closed_form_root(W, rows.s, eps) if eps else None
        moved = gradient_steps(M, W, rows.s) if root is None else root @ root.T
        images = rows.images(cholesky(moved, lower=True) if root is None else root)
        after = train_hyperplanes(rows, images, C, planes.u, tol, solver)
        iterations += after.iterations
        value = _value(moved, after, rows.s, C, eps)
        if value >= values[-1]:  # below the accuracy of the SVMs
            break
        M, planes = moved, after
        values.append(value)
        bound = max(bound, lower_bound(planes, rows.s))
        if values[-2] - value <= decrease * values[-2]:
            break
    return Alternation(M, planes, values, bound, iterations.tolist(), start)


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
