"""MR-SVM: margins against a weighted sum of the columns' radii, as one second-order cone program.

    min over w, b, xi, mu   1/2 sum_k w_k^2 / mu_k + C sum_i xi_i^2 / sum_k mu_k R_k^2
    subject to              y_i (w'z_i + b) >= 1 - xi_i,  sum_k mu_k = 1,  mu >= 0

Let ``v = sum_i y_i a_i z_i`` for any ``a >= 0`` with ``sum_i y_i a_i = 0``. Minimised over w, b, xi
and mu, the Lagrangian is ``sum a - m/2``, ``m = max_k (v_k^2 + R_k^2 ||a||^2 / (2 C))``; the best
multiple of a gives the bound ``(sum a)^2 / (2 m)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.machines.hinge import balanced
from mmbench.machines.radius.cone import Columns, without_zeros
from mmbench.machines.radius.problem import quotient
from mmbench.solvers.cone_program import ConeProgram, solve_socp


@dataclass(frozen=True)
class FeatureRadiusPoint:
    """A point of the program, and what proves it.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
    mu : ndarray of shape (k,)
    radius : float
        ``sum_k mu_k R_k^2``.
    value, bound : float
        The objective with the smallest slacks, and the dual.
    u : ndarray of shape (n,)
        Signed multipliers of the rows.
    iterations : int
    """

    w: NDArray
    b: float
    mu: NDArray
    radius: float
    value: float
    bound: float
    u: NDArray
    iterations: int


def solve_feature_radius(rows: NDArray, y: NDArray, C: float, tol: float) -> FeatureRadiusPoint:
    """Minimise by Clarabel.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Not all rows are equal.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    C : float
    tol : float
        Relative gap.

    Returns
    -------
    FeatureRadiusPoint
    """
    squares = (0.5 * (rows.max(axis=0) - rows.min(axis=0))) ** 2
    program, columns = _program(rows, y, C, squares)
    found = solve_socp(program, tol=float(np.clip(0.01 * tol, 1e-10, 1e-5)))
    w, mu = without_zeros(found.x[columns.at["w"]], found.x[columns.at["mu"]])
    b = float(found.x[columns.at["b"]][0])
    slack = np.maximum(0.0, 1.0 - y * (rows @ w + b))
    radius = float(mu @ squares)
    a = balanced(found.z[: len(y)], y, np.inf)
    largest = float(((rows.T @ (y * a)) ** 2 + squares * (a @ a) / (2.0 * C)).max())
    return FeatureRadiusPoint(
        *(w, b, mu, radius),
        value=0.5 * quotient(w, mu) + C * float(slack @ slack) / radius,
        bound=float(a.sum()) ** 2 / (2.0 * max(largest, 1e-300)),
        u=y * a,
        iterations=found.iterations,
    )


def _program(rows: NDArray, y: NDArray, C: float, squares: NDArray) -> tuple[ConeProgram, Columns]:
    """Return the cone program; zeta stands for ``sum xi^2 / sum mu R^2``."""
    n, d = rows.shape
    columns = Columns(w=d, b=1, xi=n, e=d, mu=d, zeta=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["zeta"]] = 0.5, C
    products, sides = columns.products(d, "mu")
    # ((zeta + sum mu R^2)/2, (zeta - sum mu R^2)/2, xi), its first entry no smaller than the others
    ends, halves = np.array([[-0.5], [-0.5]]), np.array([[-0.5], [0.5]]) * squares
    both = columns.rows(2, {"zeta": ends, "mu": halves})
    slack = columns.rows(n, {"xi": -sparse.eye_array(n)})
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(columns.rows(1, {"mu": np.ones((1, d))})),
        b=np.ones(1),
        G=sparse.csc_array(sparse.vstack([columns.margins(rows, y), products, both, slack])),
        h=np.concatenate([-np.ones(n), sides, np.zeros(n + 2)]),
        n_linear=n,
        cones=(3,) * d + (n + 2,),
    )
    return program, columns
