"""Pairwise steps for a `PiecewiseQP`, compiled: what `solve_smo` is made of.

A step moves ``u_i += t`` and ``u_j -= t`` beyond the minimum along it or to the next knot, i being
the row that gains most by growing, j the one that then lowers the objective most (Fan, Chen and Lin
2005, WSS 2). Both are found while K's row is read, in blocks that stay in the cache.
"""

import numpy as np

from mmbench.solvers.svm_dual.newton_steps import compiled

#: Columns looked at together. A block is scanned for its best row only if a vectorised test says
#: that it holds a better one: an argmax loop would not be vectorised.
BLOCK_COLUMNS = 64

#: Length of a step, in units of that to the minimum along the pair: successive over-relaxation. Any
#: below 2 lowers the objective. 1.5 took 0.5 to 0.7 times the steps of 1 on most of ten SVMs and
#: their RMMs (rbf, poly, linear; C from 0.1 to 1000), at worst 1.2 times. The last steps, from this
#: multiple of the tolerance on, go to the minimum, so that few variables come to it exactly.
RELAXATION, LAST_STEPS_TOLERANCES = 1.5, 2.0


@compiled()
def descend(gram, diagonal, u, decision, knots, slopes, tol, max_iter):
    """Take up to `max_iter` steps in place and return their number.

    ``rise[i] - decision[i]`` is what u_i gains by growing, ``fall[i] - decision[i]`` what it loses
    by shrinking; b lies between the largest gain and the smallest loss at an optimum.
    """
    n = u.shape[0]
    rise, fall = np.empty(n), np.empty(n)
    for k in range(n):
        rise[k], fall[k] = gains(u[k], knots[k], slopes[k])
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
        if top - low > LAST_STEPS_TOLERANCES * tol:
            t *= RELAXATION
        above, below = _next_knot(u[i], knots[i]), _previous_knot(u[j], knots[j])
        t = min(t, above - u[i], u[j] - below)
        grown = above if t == above - u[i] else u[i] + t
        shrunk = below if t == u[j] - below else u[j] - t
        if grown == u[i] and shrunk == u[j]:  # t is below the rounding of u
            return step
        u[i], u[j] = grown, shrunk
        rise[i], fall[i] = gains(u[i], knots[i], slopes[i])
        rise[j], fall[j] = gains(u[j], knots[j], slopes[j])
        i, top = _move(decision, rise, gram[i], gram[j], t)
    return max_iter


@compiled()
def _move(decision, rise, row_i, row_j, t):
    """Add ``t (K_i - K_j)`` to ``Ku`` in place; return the row with the largest gain, and it."""
    best, top = 0, -np.inf
    for start in range(0, decision.shape[0], BLOCK_COLUMNS):
        f, r = decision[start : start + BLOCK_COLUMNS], rise[start : start + BLOCK_COLUMNS]
        k_i, k_j = row_i[start : start + BLOCK_COLUMNS], row_j[start : start + BLOCK_COLUMNS]
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
    for start in range(0, decision.shape[0], BLOCK_COLUMNS):
        f, r = decision[start : start + BLOCK_COLUMNS], fall[start : start + BLOCK_COLUMNS]
        k_i, d = row_i[start : start + BLOCK_COLUMNS], diagonal[start : start + BLOCK_COLUMNS]
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
def gains(u, knots, slopes):
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
