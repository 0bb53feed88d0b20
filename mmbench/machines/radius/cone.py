"""R-SVM+, R-SVM_mu+ and MR-SVM as second-order cone programs, with the pairs that are listed.

    min   1/2 sum_k e_k + lam r + C sum_i xi_i
    subject to   y_i (w'z_i + b) >= 1 - xi_i,  xi_i >= 0,
                 R-SVM+      e_k >= w_k^2,        1/2 sum_k e_k  (z_ik - z_jk)^2 <= r
                 R-SVM_mu+   e_k mu_k >= w_k^2,   1/2 sum_k mu_k (z_ik - z_jk)^2 <= r,  sum mu = 1

In the published R-SVM+ (9) the pairs see w_k^2 itself. As e_k stands in them with a coefficient
that is not negative, ``e_k = w_k^2`` at the optimum, and pairs are linear rows here.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.machines.radius.problem import RadiusProblem, RestrictedSolution
from mmbench.solvers.cones import ConeProgram, solve_socp

#: A weight mu, of a sum of 1, that is zero but for the solver's tolerance.
ZERO_WEIGHT = 1e-10


class Columns:
    """The columns of a program by name, and its rows as they are added.

    Parameters
    ----------
    **sizes : int
        Number of columns of each name.
    """

    def __init__(self, **sizes: int):
        ends = np.cumsum(list(sizes.values()))
        self.at = {
            name: slice(int(end) - size, int(end))
            for (name, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.n = int(ends[-1])

    def rows(self, n_rows: int, parts: Mapping[str, sparse.sparray | NDArray]) -> sparse.sparray:
        """Return rows that are zero but for some columns."""
        blocks = [
            sparse.csr_array(parts[name])
            if name in parts
            else sparse.csr_array((n_rows, where.stop - where.start))
            for name, where in self.at.items()
        ]
        return sparse.hstack(blocks)

    def margins(
        self, rows: NDArray, y: NDArray, slack_unit: float | NDArray = 1.0
    ) -> sparse.sparray:
        """Return the rows of ``1 - y_i (w'z_i + b) - xi_i <= 0``, without the 1."""
        n, signs = len(y), -y[:, None]
        xi = sparse.diags_array(-slack_unit * np.ones(n))
        parts = {"w": signs * rows, "b": signs, "xi": xi}
        return self.rows(n, parts)

    def products(self, d: int, second: str | None) -> tuple[sparse.sparray, NDArray]:
        """Return the cones of ``e_k mu_k >= w_k^2``, or of ``e_k >= w_k^2``: rows and sides.

        They read ``((e + mu)/2, (e - mu)/2, w)``, its first entry no smaller than the others.
        """
        take = [
            sparse.kron(sparse.eye_array(d), np.array(column)[:, None])
            for column in ([-0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, -1.0])
        ]
        parts = {"e": take[0], "w": take[2]}
        if second is not None:
            return self.rows(3 * d, parts | {second: take[1]}), np.zeros(3 * d)
        return self.rows(3 * d, parts), np.tile([0.5, -0.5, 0.0], d)


def largest_weights(problem: RadiusProblem, squares: NDArray) -> NDArray:
    """Return units for w: what |w_k| cannot exceed in R-SVM+, where it may be very small.

    w = 0 costs ``2 C`` for each row of the smaller class, and w_k alone at least ``(1 + lam D_k)
    w_k^2 / 2``, D_k being the largest square of a listed pair.
    """
    if problem.simplex:
        return np.ones(squares.shape[1])
    costs = problem.C * np.ones(len(problem.y))
    smaller = min(costs[problem.y > 0].sum(), costs[problem.y < 0].sum())
    return np.sqrt(4.0 * smaller / (1.0 + problem.lam * squares.max(axis=0)))


def radius_program(problem: RadiusProblem, squares: NDArray) -> tuple[ConeProgram, Columns]:
    """Return the program above, with w in units of `largest_weights` and e in their squares.

    Parameters
    ----------
    problem : RadiusProblem
    squares : ndarray of shape (m, k)
        Of the pairs listed, one at least.
    """
    (n, d), m = problem.rows.shape, len(squares)
    scale = largest_weights(problem, squares)
    seen = "mu" if problem.simplex else "e"
    columns = Columns(w=d, b=1, xi=n, e=d, mu=d if problem.simplex else 0, r=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["r"]] = 0.5 * scale**2, problem.lam
    cost[columns.at["xi"]] = problem.C
    weights = squares if problem.simplex else squares * scale**2
    cones, sides = columns.products(d, "mu" if problem.simplex else None)
    linear = [
        columns.margins(problem.rows * scale, problem.y),
        columns.rows(n, {"xi": -sparse.eye_array(n)}),
        columns.rows(m, {seen: 0.5 * weights, "r": np.full((m, 1), -1.0)}),
    ]
    one = columns.rows(1, {"mu": np.ones((1, d))} if problem.simplex else {})
    n_equations = int(problem.simplex)
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(one)[:n_equations],
        b=np.ones(n_equations),
        G=sparse.csc_array(sparse.vstack([*linear, cones])),
        h=np.concatenate([-np.ones(n), np.zeros(n + m), sides]),
        n_linear=2 * n + m,
        cones=(3,) * d,
    )
    return program, columns


def solve_cone(problem: RadiusProblem, pairs: NDArray, tol: float) -> RestrictedSolution:
    """Solve the program with some pairs; where the solver gives up, w and the multipliers are 0."""
    (n, d), m = problem.rows.shape, len(pairs)
    squares = problem.squares(pairs)
    program, columns = radius_program(problem, squares)
    unit = max(1.0, problem.lam, float(np.max(problem.C)))
    found = solve_socp(replace(program, c=program.c / unit), tol=tol)
    w, mu, u, theta = np.zeros(d), None, np.zeros(n), np.zeros(m)
    if problem.simplex:
        mu = np.full(d, 1.0 / d)
    if np.isfinite(found.x).all() and np.isfinite(found.z).all():
        u, theta = unit * problem.y * found.z[:n], unit * found.z[2 * n : 2 * n + m]
        w = found.x[columns.at["w"]] * largest_weights(problem, squares)
        if problem.simplex:
            w, mu = without_zeros(w, found.x[columns.at["mu"]])
    return RestrictedSolution(w=w, mu=mu, u=u, theta=theta, iterations=found.iterations)


def without_zeros(w: NDArray, mu: NDArray, part: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Return w and mu with the zeros that an interior point leaves above zero set to it.

    Parameters
    ----------
    w, mu : ndarray of shape (k,)
    part : ndarray of shape (k,), optional
        Of each column in the decisions. A column in large units may have one with a small mu.
    """
    kept = mu > ZERO_WEIGHT
    if part is not None:
        kept |= part > ZERO_WEIGHT * part.max()
    mu = np.where(kept, mu, 0.0)
    return np.where(mu > 0, w, 0.0), mu / mu.sum()
