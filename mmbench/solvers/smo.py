"""Sequential minimal optimisation for `PiecewiseQP`: the fast route of the SVM and the RMM.

Each step moves one pair, ``u_i += t`` and ``u_j -= t``, to the minimum along it or to the next
knot. The pair is chosen by second order information (Fan, Chen and Lin 2005, WSS 2). With pieces
in place of boxes the RMM, whose dual (8) has three variables a row, costs as much per step as the
SVM: all three see the same ``(Ku)_i``, so one n-vector is the whole gradient.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 6, 2005.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mmbench.solvers.piecewise import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.status import Status
from mmbench.solvers.subspace import newton_steps

#: Pairwise steps come in chunks of n, at least this many. Between chunks Ctrl-C is heard, ``Ku`` is
#: computed afresh, and Newton steps are taken.
MIN_CHUNK = 1000

#: Columns looked at together. A block is scanned for its best row only if a vectorised test says
#: that it holds a better one: an argmax loop would not be vectorised.
BLOCK = 64

#: NaN never occurs (a Gram matrix that holds one is refused), infinity does.
compiled = partial(
    njit,
    nogil=True,
    cache=True,
    error_model="numpy",
    fastmath={"nnan", "nsz", "contract", "reassoc"},
)


def solve_smo(
    problem: PiecewiseQP,
    start: NDArray | None = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
) -> PiecewiseSolution:
    """Solve by pairwise steps until no pair violates the optimality conditions by `tol`.

    Parameters
    ----------
    problem : PiecewiseQP
    start : ndarray of shape (n,), optional
        A neighbouring solution; it need not be feasible.
    tol : float, default=1e-5
        Largest difference of ``f(x_i)`` that two rows may disagree on b by (libsvm's `eps`).
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
        If the Gram matrix is not finite.
    """
    gram = np.ascontiguousarray(problem.gram)
    diagonal = np.diagonal(gram).astype(float)
    if not np.isfinite(diagonal).all():
        raise ValueError("the kernel matrix has values that are not finite; scale the data")
    knots = np.ascontiguousarray(problem.knots, dtype=float)
    slopes = np.ascontiguousarray(problem.slopes, dtype=float)
    u = np.zeros(len(gram)) if start is None else problem.feasible(start)
    allowed = left = max(10**7, 100 * len(u)) if max_iter is None else max_iter
    chunk, budget = max(len(u), MIN_CHUNK), 0.0
    decision = combine(gram, u)
    done, violation, bias = 1, np.inf, 0.0
    while done and violation > tol and left > 0:
        done = _descend(gram, diagonal, u, decision, knots, slopes, tol, min(chunk, left))
        left -= done
        if done == chunk:  # not there yet: Newton steps may cost as much as these steps did
            u, budget = newton_steps(problem, u, budget + done * len(u))
        decision = combine(gram, u)
        bias, violation = _optimality(u, decision, knots, slopes)
    status = _status(violation <= tol, left <= 0)
    return PiecewiseSolution(u, decision, bias, allowed - left, status)


def _status(solved: bool, exhausted: bool) -> Status:
    if solved:
        return Status.OPTIMAL
    return Status.ITERATION_LIMIT if exhausted else Status.INACCURATE


@compiled()
def combine(gram, u):
    """Return ``gram @ u`` in float64, reading only the rows where u is not zero."""
    out = np.zeros(u.shape[0])
    for i in range(u.shape[0]):
        if u[i] != 0:
            row = gram[i]
            for k in range(out.shape[0]):
                out[k] += u[i] * row[k]
    return out


@compiled()
def _descend(gram, diagonal, u, decision, knots, slopes, tol, max_iter):
    """Take up to `max_iter` steps in place and return their number.

    ``rise[i] - decision[i]`` is what u_i gains by growing, ``fall[i] - decision[i]`` what it loses
    by shrinking; b lies between the largest gain and the smallest loss at an optimum.
    """
    n = u.shape[0]
    rise, fall = np.empty(n), np.empty(n)
    for k in range(n):
        rise[k], fall[k] = _gains(u[k], knots[k], slopes[k])
    # float32 kernel values make the curvature of near duplicates a difference of rounding errors
    floor = np.finfo(gram.dtype).eps * diagonal.max()
    if floor <= 0.0:
        floor = 1e-12
    i, top = _move(decision, rise, gram[0], gram[0], 0.0)
    for step in range(max_iter):
        j, low = _partner(decision, fall, diagonal, gram[i], diagonal[i], top, floor)
        if top - low <= tol:
            return step
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(gram[i, j]), floor)
        t = (top - (fall[j] - decision[j])) / curvature
        above, below = _next_knot(u[i], knots[i]), _previous_knot(u[j], knots[j])
        t = min(t, above - u[i], u[j] - below)
        grown = above if t == above - u[i] else u[i] + t
        shrunk = below if t == u[j] - below else u[j] - t
        if grown == u[i] and shrunk == u[j]:  # t is below the rounding of u
            return step
        u[i], u[j] = grown, shrunk
        rise[i], fall[i] = _gains(u[i], knots[i], slopes[i])
        rise[j], fall[j] = _gains(u[j], knots[j], slopes[j])
        i, top = _move(decision, rise, gram[i], gram[j], t)
    return max_iter


@compiled()
def _move(decision, rise, row_i, row_j, t):
    """Add ``t (K_i - K_j)`` to ``Ku`` in place; return the row with the largest gain, and it."""
    best, top = 0, -np.inf
    for start in range(0, decision.shape[0], BLOCK):
        f, r = decision[start : start + BLOCK], rise[start : start + BLOCK]
        k_i, k_j = row_i[start : start + BLOCK], row_j[start : start + BLOCK]
        better = 0
        for k in range(f.shape[0]):
            moved = f[k] + t * (np.float64(k_i[k]) - np.float64(k_j[k]))
            f[k] = moved
            better += r[k] - moved > top
        if better:
            for k in range(f.shape[0]):
                if r[k] - f[k] > top:
                    best, top = start + k, r[k] - f[k]
    return best, top


@compiled()
def _partner(decision, fall, diagonal, row_i, diagonal_i, top, floor):
    """Return the row j that lowers the objective most together with i, and the smallest loss."""
    best, score, low = 0, 0.0, top
    for start in range(0, decision.shape[0], BLOCK):
        f, r = decision[start : start + BLOCK], fall[start : start + BLOCK]
        k_i, d = row_i[start : start + BLOCK], diagonal[start : start + BLOCK]
        better = 0
        for k in range(f.shape[0]):
            loss = r[k] - f[k]
            gain = max(top - loss, 0.0)
            curvature = max(diagonal_i + d[k] - 2.0 * np.float64(k_i[k]), floor)
            better += (gain * gain > score * curvature) | (loss < low)
        if better:
            for k in range(f.shape[0]):
                loss = r[k] - f[k]
                if loss < top:
                    low = min(low, loss)
                    curvature = max(diagonal_i + d[k] - 2.0 * np.float64(k_i[k]), floor)
                    gained = (top - loss) * (top - loss) / curvature
                    if gained > score:
                        best, score = start + k, gained
    return best, low


@compiled()
def _gains(u, knots, slopes):
    """Return minus the slopes of the cost to the right and to the left of u."""
    rise, fall = -np.inf, np.inf
    for s in range(slopes.shape[0]):
        if knots[s] <= u < knots[s + 1]:
            rise = -slopes[s]
        if knots[s] < u <= knots[s + 1]:
            fall = -slopes[s]
    return rise, fall


@compiled()
def _next_knot(u, knots):
    for knot in knots:
        if knot > u:
            return knot
    return u


@compiled()
def _previous_knot(u, knots):
    for knot in knots[::-1]:
        if knot < u:
            return knot
    return u


@compiled()
def _optimality(u, decision, knots, slopes):
    """Return b (mean over rows inside a piece, else the middle of its interval) and the violation.

    The violation is the largest gain minus the smallest loss, never negative.
    """
    total, inside = 0.0, 0
    top, low = -np.inf, np.inf
    for k in range(u.shape[0]):
        rise, fall = _gains(u[k], knots[k], slopes[k])
        top, low = max(top, rise - decision[k]), min(low, fall - decision[k])
        if rise == fall:
            total += rise - decision[k]
            inside += 1
    bias = total / inside if inside else 0.5 * (top + low)
    return bias, max(top - low, 0.0)
