"""Sequential minimal optimisation for `PiecewiseQP`: the fast route of the SVM and the RMM.

Each step moves one pair, ``u_i += t`` and ``u_j -= t``, beyond the minimum along it (successive
over-relaxation) or to the next knot. The pair is chosen by second order information (Fan, Chen and
Lin 2005, WSS 2). With pieces in place of boxes the RMM, whose dual (8) has three variables a row,
costs as much per step as the SVM: all three see the same ``(Ku)_i``, so one n-vector is the whole
gradient.

Steps need stored values (`descent`). A matrix that is not stored is solved by parts of it
(`parts`); one that is has a single part.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 6, 2005.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual.descent import (
    MIDDLE_SHARE,
    SINGLE_PRECISION_TOLERANCE,
    Descent,
    combine,
    movable,
)
from mmbench.solvers.svm_dual.newton_steps import newton_steps
from mmbench.solvers.svm_dual.parts import GrowingParts
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution


def solve_smo(
    problem: PiecewiseQP,
    start: PiecewiseSolution | NDArray | None = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair violates the optimality conditions by `tol`.

    Parameters
    ----------
    problem : PiecewiseQP
    start : PiecewiseSolution or ndarray of shape (n,), optional
        A neighbouring solution, or its u; it need not be feasible.
    tol : float, default=1e-5
        Tolerance of the KKT conditions, in units of f (libsvm's `eps`).
    max_iter : int, optional
        Steps; by default libsvm's ``max(10**7, 100 n)``.

    Returns
    -------
    PiecewiseSolution
        Status ``optimal``, ``iteration_limit``, or ``inaccurate`` where rounding allows no
        further step.

    Raises
    ------
    ValueError
        If the Gram matrix or the start is not finite.
    """
    _compile()
    knots = np.ascontiguousarray(problem.knots, dtype=float)
    slopes = np.ascontiguousarray(problem.slopes, dtype=float)
    problem = replace(problem, knots=knots, slopes=slopes)
    if not isinstance(problem.gram, KernelMatrix):
        problem = replace(problem, gram=np.ascontiguousarray(problem.gram))
    diagonal = _diagonal(problem.gram)
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    u, decision = _started(problem, start)
    allowed = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    steps = GrowingParts if isinstance(problem.gram, KernelMatrix) else Descent
    state = steps(problem, diagonal, u, decision, tol, allowed)
    state.run()
    status = _status(state.violation <= tol, state.left <= 0)
    return problem.solution(state.u, state.decision, state.bias, allowed - state.left, status)


def _diagonal(gram: NDArray | KernelMatrix) -> NDArray:
    """Return ``k(x, x)`` of all rows."""
    return gram.diagonal() if isinstance(gram, KernelMatrix) else np.diagonal(gram).astype(float)


def _product(gram: NDArray | KernelMatrix, u: NDArray) -> NDArray:
    """Return ``Ku``."""
    return gram.product(u) if isinstance(gram, KernelMatrix) else combine(gram, u)


def _started(
    problem: PiecewiseQP, start: PiecewiseSolution | NDArray | None
) -> tuple[NDArray, NDArray]:
    """Return a feasible u next to a start, and ``Ku``, which a solution need not compute again."""
    if start is None:
        return np.zeros(len(problem.gram)), np.zeros(len(problem.gram))
    given = start.u if isinstance(start, PiecewiseSolution) else start
    if not np.isfinite(given).all():
        raise ValueError("the start has values that are not finite")
    u = problem.feasible(given)
    if isinstance(start, PiecewiseSolution) and np.array_equal(u, given):
        return u, start.decision.copy()
    return u, _product(problem.gram, u)


@cache
def _compile() -> None:
    """Compile what any problem may need, before the first: later ones are timed."""
    u = np.array([0.5, 0.5, -0.5, -0.5])
    knots, slopes = np.sort(np.column_stack([0 * u, 2 * u]), axis=1), -np.sign(u)[:, None]
    for dtype in (np.float32, np.float64):
        problem = PiecewiseQP(np.eye(4, dtype=dtype), knots, slopes)
        newton_steps(problem, u.copy(), combine(problem.values, u), budget=1e12)
        for tol in (SINGLE_PRECISION_TOLERANCE, SINGLE_PRECISION_TOLERANCE / 2):
            state = Descent(problem, np.ones(4), u.copy(), combine(problem.values, u), tol, left=10)
            state.measure()
            state.solve_part(movable(u, state.decision, knots, slopes, MIDDLE_SHARE))


def _status(solved: bool, exhausted: bool) -> Status:
    if solved:
        return Status.OPTIMAL
    return Status.ITERATION_LIMIT if exhausted else Status.INACCURATE
