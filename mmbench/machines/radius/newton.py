"""R-SVM+ as a few SVMs: Newton steps in the multipliers of its pairs.

For fixed multipliers theta of the pairs, R-SVM+ is an SVM with a diagonal quadratic form:

    g(theta) = min over w, b   1/2 sum_k (1 + q_k) w_k^2 + C sum_i xi_i,
    q_k = sum_p theta_p (z_ik - z_jk)^2

and its optimum is the maximum of g over ``theta >= 0, sum theta = lam``. g is concave; its slope in
theta_p is the pair's half squared distance scaled by w, and while the same rows stay free its
curvature follows from their linear system. With ``E_kp = w_k (z_ik - z_jk)^2``, Q = 1 + q, and F
the free rows:

    H = -E'Q^-1 E + R'S R,    R = Z_F Q^-1 E,    [S .; . .] = [Z_F Q^-1 Z_F', 1; 1', 0]^-1

Pairs that exceed the listed ones are added on the way, so that no program is solved to the end for
pairs that do not matter.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.machines.radius.generation import first_pairs, joined, solve_generating
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem
from mmbench.solvers.svm_dual.problem import PiecewiseQP
from mmbench.solvers.svm_dual.scaled import LOOSE, train_scaled
from mmbench.solvers.svm_dual.smo import solve_smo

#: Pairs that are added after a step at most.
MOST_PAIRS = 5

#: A step along a direction is long enough when the slope there has fallen to this share.
SLOPE = 0.5

#: SVMs that one step along a direction may take.
MAX_TRIALS = 12


def solve_newton(
    problem: RadiusProblem,
    tol: float = 1e-6,
    start: RadiusPoint | None = None,
    max_rounds: int = 60,
) -> RadiusPoint:
    """Minimise R-SVM+.

    Parameters
    ----------
    problem : RadiusProblem
    tol : float, default=1e-6
        Relative gap, and violation of pairs.
    start : RadiusPoint, optional
        Of a neighbouring problem on the same rows.
    max_rounds : int, default=60
        Steps; then constraint generation by an interior point takes over.

    Returns
    -------
    RadiusPoint
    """
    pairs = first_pairs(problem) if start is None else start.pairs
    theta = np.zeros(len(pairs)) if start is None else start.theta
    theta = _scaled(theta, problem.lam)
    u = np.zeros(len(problem.y)) if start is None else start.u
    svm = _Svm(problem, u, 0.01 * tol)
    svm.train(problem.squares(pairs), theta)
    best, rounds = None, 0
    while rounds < max_rounds:
        rounds += 1
        found, far = problem.point(svm.w, None, svm.u, pairs, theta, MOST_PAIRS)
        best = found if best is None else _better(best, found)
        if best.closed(tol) or problem.lam == 0:
            break
        listed = joined(pairs, far)
        theta = np.append(theta, np.zeros(len(listed) - len(pairs)))
        pairs = listed
        theta, moved = _step(problem, svm, problem.squares(pairs), theta)
        if not moved:
            break
    assert best is not None
    best = replace(best, rounds=rounds, iterations=svm.trained)
    if best.closed(tol):
        return best
    found = solve_generating(problem, tol, best)
    total = best.iterations + found.iterations
    return replace(_better(best, found), rounds=rounds + found.rounds, iterations=total)


def _scaled(theta: NDArray, total: float) -> NDArray:
    """Return multipliers of the sum wanted: the first pair has it all where there are none."""
    if theta.any():
        return theta * (total / theta.sum())
    theta = np.zeros(len(theta))
    theta[0] = total
    return theta


def _better(best: RadiusPoint, found: RadiusPoint) -> RadiusPoint:
    """Return the later point, but with the smaller value and the larger bound of both."""
    bound = max(best.bound, found.bound)
    if found.value <= best.value:
        return replace(found, bound=bound)
    return replace(found, bound=bound, w=best.w, b=best.b, value=best.value, r=best.r)


class _Svm:
    """The SVM at some theta, from where the next one starts."""

    def __init__(self, problem: RadiusProblem, u: NDArray, tol: float):
        self.problem, self.tol = problem, min(tol, LOOSE)
        self.u = np.clip(problem.y * u, 0.0, problem.C) * problem.y
        self.trained = 0

    def train(self, squares: NDArray, theta: NDArray) -> None:
        """Set u, Q and w."""
        rows, y, C = self.problem.rows, self.problem.y, self.problem.C
        self.Q = 1.0 + squares.T @ theta
        self.u = train_scaled(rows, 1.0 / self.Q, y, C, self.u, self.tol)
        self.w = (rows.T @ self.u) / self.Q
        self.trained += 1

    def slopes(self, squares: NDArray) -> NDArray:
        """Return the gradient of g."""
        return 0.5 * squares @ (self.w * self.w)

    def curvature(self, squares: NDArray) -> NDArray:
        """Return -H."""
        size = self.problem.y * self.u
        free = self.problem.rows[(size > 0) & (size < self.problem.C)]
        E = squares.T * self.w[:, None]
        scaled = E / self.Q[:, None]
        matrix = E.T @ scaled
        if not len(free):
            return matrix
        R = free @ scaled
        square = (free / self.Q) @ free.T
        square[np.diag_indices_from(square)] += 1e-12 * np.trace(square)
        try:
            factor = cho_factor(square)
        except LinAlgError:
            return matrix
        solved, ones = cho_solve(factor, R), cho_solve(factor, np.ones(len(free)))
        shared = np.outer(solved.sum(axis=0), solved.sum(axis=0)) / ones.sum()
        return matrix - R.T @ solved + shared


def _step(
    problem: RadiusProblem, svm: _Svm, squares: NDArray, theta: NDArray
) -> tuple[NDArray, bool]:
    """Take a Newton step on the simplex and train there; return theta, and whether it moved."""
    slopes = svm.slopes(squares)
    direction = _direction(svm.curvature(squares), slopes, theta)
    first = float(slopes @ direction)
    if not first > 0:
        return theta, False
    low, high, slope_low, length = 0.0, 1.0, first, 1.0
    for _ in range(MAX_TRIALS):
        reached = np.maximum(theta + length * direction, 0.0)
        svm.train(squares, reached)
        slope = float(svm.slopes(squares) @ direction)
        if (slope >= 0 and length == 1.0) or abs(slope) <= SLOPE * first:
            break
        if slope > 0:
            low, slope_low = length, slope
        else:
            high, slope_high = length, slope
        share = slope_low / (slope_low - slope_high)
        length = low + min(max(share, 0.1), 0.9) * (high - low)
    return reached, True


def _direction(curvature: NDArray, slopes: NDArray, theta: NDArray) -> NDArray:
    """Return the maximiser of the quadratic model, as a change of theta within the simplex."""
    size = max(float(np.trace(curvature)) / len(theta), 1e-300)
    square = 0.5 * (curvature + curvature.T)
    square[np.diag_indices_from(square)] += 1e-12 * size
    ends = np.column_stack([-theta, np.zeros(len(theta)), np.full(len(theta), np.inf)])
    model = PiecewiseQP(square, ends, np.repeat(-slopes[:, None], 2, axis=1))
    spread = float(slopes.max() - slopes.min())
    return solve_smo(model, None, 1e-9 * max(spread, 1e-300), 10_000).u
