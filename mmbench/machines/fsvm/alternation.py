"""The alternating algorithm of the F-SVM: SVMs for a fixed matrix M, then an update of M (M-step).

An M-step decreases the following function (notation: `pair_svms`), with eps = 0 for "pg":

    1/2 tr(M^{-1} (WW' + eps I)) + tr(MS),     S = diag(s)
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, cholesky, lapack

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.fsvm.pair_svms import (
    INTERIOR_ROWS,
    MOST_STEPS,
    SEARCH_TOL,
    Hyperplanes,
    JointRows,
    JointSolution,
    PairRows,
    lower_bound,
    train_hyperplanes,
)

#: Constants of the gradient steps in the authors' code: the initial step size, the factor that
#: multiplies the step size after each step, and the lower bound on the eigenvalues of M.
FIRST_STEP, STEP_FACTOR, FLOOR = 0.1, 0.9, 1e-5
#: An M-step ends after MAX_STEPS gradient steps, or if the relative decrease of the objective in a
#: step is at most MIN_DECREASE.
MAX_STEPS, MIN_DECREASE = 50, 1e-3
#: The gradient steps also end if halving has reduced the step size to SHORTEST_STEP or less.
SHORTEST_STEP = 1e-9


def gradient_steps(M: NDArray, W: NDArray, s: NDArray, max_steps: int = MAX_STEPS) -> NDArray:
    """Take projected gradient steps on ``1/2 tr(M^{-1}WW') + tr(MS)``, (20)-(22) of the paper.

    If a step would increase the objective, its step size is halved until the objective does not
    increase. In the paper, step sizes are not halved, and the gradient steps may diverge.
    """
    M, W = np.asfortranarray(M), np.asfortranarray(W)
    step, (value, image) = FIRST_STEP, _value_and_image(M, W, s)
    for _ in range(max_steps):
        while step > SHORTEST_STEP:
            moved = blas.dsyrk(0.5 * step, image, beta=1.0, c=M, lower=1)
            np.einsum("ii->i", moved)[:] -= step * s
            moved = above_floor(moved)
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
    """Return ``1/2 tr(M^{-1} WW') + tr(MS)`` and ``M^{-1}W`` from the lower triangle of M."""
    # LAPACK is called directly, since SciPy's checks take longer than the solution of a small
    # system
    factor, failed = lapack.dpotrf(M, lower=1, clean=0)
    if failed:
        return np.inf, W
    image, _ = lapack.dpotrs(factor, W, lower=1)
    return 0.5 * float(np.sum(W * image)) + float(np.diagonal(M) @ s), image


def above_floor(M: NDArray) -> NDArray:
    """Return the matrix nearest to M among all matrices with eigenvalues of at least `FLOOR`.

    Only the lower triangle of M is read.
    """
    shifted = np.array(M, order="F")
    np.einsum("ii->i", shifted)[:] -= FLOOR
    if lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0:
        return M
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


def closed_form_root(W: NDArray, s: NDArray, eps: float) -> NDArray:
    """Return R with ``RR' = M``, where M minimises ``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``.

    The minimiser is ``M = 2^{-1/2} S^{-1/2} (S^{1/2} (WW' + eps I) S^{1/2})^{1/2} S^{-1/2}``.
    """
    root = np.sqrt(s)
    inner = (root[:, None] * W) @ (root[:, None] * W).T
    inner[np.diag_indices_from(inner)] += eps * s
    values, vectors = np.linalg.eigh(inner)
    return vectors * (np.maximum(values, 0.0) / 2.0) ** 0.25 / root[:, None]


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
    """Alternate between SVMs and updates of M (M-steps), starting at ``M = S^{-1/2}`` (17).

    `first` has the rows of each pair, transformed for this M. The alternation ends after `rounds`
    rounds, or if a round decreases the objective by at most the relative amount `decrease`. An
    M-step is `closed_form_root` if eps > 0, else gradient steps. `max_steps` limits the iterations
    of the SVM solver per pair, over all rounds. The returned status is the worst of its SVMs;
    `JointSolution.state` has the dual variables of the first SVMs.
    """
    route = "semi-whitened SVM" if not rounds else "closed M-steps" if eps else "gradient M-steps"
    few = max(len(pair.y) for pair in first) <= 2 * INTERIOR_ROWS
    if rounds and solver == "auto" and few and tol < SEARCH_TOL:
        # All SVMs are trained by one solver. The solutions of different solvers differ in the last
        # digits, and these differences could change the number of rounds.
        solver = "pairwise"
    root = np.diag(rows.s**-0.25)
    M = np.diag(1.0 / np.sqrt(rows.s))
    planes = train_hyperplanes(rows, first, C, starts, tol, solver)
    start, iterations = planes.u, np.array(planes.iterations)
    bound = lower_bound(planes.q, planes.multipliers, rows.s)
    values = [_value(M, planes, rows.s, C, eps)]
    while len(values) <= rounds and planes.status is not Status.ITERATION_LIMIT:
        if time_is_up(iterations=len(values), objective=values[-1]):
            break
        if iterations.max() >= MOST_STEPS:
            solver = "interior"
        try:
            if eps:
                next_root = closed_form_root(M @ planes.q, rows.s, eps)
                moved = next_root @ next_root.T
            else:
                moved = gradient_steps(M, M @ planes.q, rows.s)
                next_root = cholesky(moved, lower=True)
        except LinAlgError:  # M is numerically singular
            planes = replace(planes, status=Status.INACCURATE)
            break
        after = train_hyperplanes(rows, rows.transformed(next_root), C, planes.u, tol, solver)
        iterations += after.iterations
        if iterations.max() > max_steps:
            after = replace(after, status=Status.ITERATION_LIMIT)
        value = _value(moved, after, rows.s, C, eps)
        if value >= values[-1]:  # the SVMs are too inaccurate to decrease the objective
            break
        M, root, planes = moved, next_root, after
        values.append(value)
        bound = max(bound, lower_bound(planes.q, planes.multipliers, rows.s))
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
        route=route,
        state=start,
    )


def _value(M: NDArray, planes: Hyperplanes, s: NDArray, C: float, eps: float) -> float:
    value = 0.5 * planes.norm + float(np.diagonal(M) @ s) + C * planes.slack
    return value + 0.5 * eps * float(np.trace(np.linalg.inv(M))) if eps else value


def lower_bound_eps(planes: Hyperplanes, s: NDArray, eps: float) -> float:
    """Return a lower bound on the optimum of the F-SVM with ``WW' + eps I`` in place of ``WW'``.

    The dual objective is ``sum a + sqrt(2 eps) tr((S - 1/2 QQ')^{1/2})``, with a and Q as in
    `lower_bound`. It is computed for several feasible multiples of the SVMs' dual variables. The
    largest multiple need not be best, since the slope of the matrix square root is infinite on the
    boundary.
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
