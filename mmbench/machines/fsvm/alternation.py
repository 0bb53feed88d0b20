"""The F-SVM's alternation: hyperplanes for a fixed M, M for fixed hyperplanes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.fsvm.hyperplanes import (
    INTERIOR_ROWS_IN_SEARCH,
    SEARCH_TOL,
    STEPS_BEFORE_INTERIOR,
    Hyperplanes,
    JointRows,
    JointSolution,
    PairRows,
    lower_bound,
    train_hyperplanes,
)
from mmbench.machines.fsvm.transformation import closed_form_root, gradient_steps

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
