"""Class spreads over a whole Gram matrix: one Cholesky factor where coordinates cost an eigenbasis.

Coordinates in which both covariances are diagonal serve every price of slack, but of a Gram matrix
of 12000 rows they take ten minutes. A single training needs less. With K = F F', class means taken
out by H, and ``S = theta^-1 Sx + (1 - theta)^-1 Sy``, ridge r in both,

    S = F'H D H F + r' I,    D_ii = 1/(n_c theta_c),    r' = r/theta + r/(1 - theta)
    S^-1 F't = F'c,          c = (t - H M^-1 H K t)/r',    M = H K H + r' D^-1

so that a factor of M, n^3/3 steps, applies S^-1 to any vector of the span. At another theta the
same factor is a preconditioner: conjugate gradients see a condition number of at most the ratio of
the two thetas' odds, whatever the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve, cholesky, solve_triangular

from mmbench.solvers.secant import Secant

#: Squared distance of the class means, relative to the mean squared length of a row, at which
#: rounding alone keeps them apart.
EQUAL_MEANS = 1e-13

#: Relative residual at which conjugate gradients stop, and their largest number.
RESIDUAL, MAX_STEPS = 1e-11, 500


@dataclass(frozen=True)
class SpreadGram:
    """The Gram matrix of two classes and the ridge of both.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        K, float64; read only.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    ridge : float
        r, absolute and positive.
    """

    gram: NDArray
    y: NDArray
    ridge: float

    @property
    def means(self) -> NDArray:
        """Coefficients over the rows of the difference of the class means."""
        positive = self.y > 0
        return np.where(positive, 1.0 / positive.sum(), -1.0 / (~positive).sum())

    def centred(self, columns: NDArray) -> NDArray:
        """Return vectors over the rows less their mean in each class, ``H t``; shape (n, ...)."""
        out = np.array(columns, order="F")
        for side in (self.y > 0, self.y < 0):
            out[side] -= out[side].mean(axis=0)
        return out

    def spreads(self, c: NDArray, decision: NDArray) -> tuple[float, float]:
        """Return (sx, sy) of ``w = F'c``, given ``decision = Kc``."""
        own = self.ridge * max(0.0, float(c @ decision))
        return tuple(  # type: ignore[return-value]
            float(np.sqrt(decision[side].var() + own)) for side in (self.y > 0, self.y < 0)
        )


class GramMetric:
    """``S^-1`` at one theta, by a Cholesky factor of M."""

    def __init__(self, problem: SpreadGram, theta: float):
        self.problem, self.theta = problem, theta
        y, gram = problem.y, problem.gram
        sides = np.column_stack([y > 0, y < 0]).astype(float)
        counts = sides.sum(axis=0)
        self.weights = 1.0 / (sides @ (counts * [theta, 1.0 - theta]))
        self.ridge = problem.ridge / theta + problem.ridge / (1.0 - theta)
        means = gram @ sides / counts
        means -= 0.5 * sides @ (sides.T @ means / counts[:, None])
        matrix = blas.dsyr2k(
            -1.0, means, sides, beta=1.0, c=np.array(gram, order="F"), lower=1, overwrite_c=1
        )
        matrix[np.diag_indices_from(matrix)] += self.ridge / self.weights
        self.factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, t: NDArray) -> tuple[NDArray, NDArray]:
        """Return c with ``S F'c = F't``, and ``Kt``."""
        values = self.problem.gram @ t
        inner = cho_solve(
            (self.factor, True),
            self.problem.centred(values),
            overwrite_b=True,
            check_finite=False,
        )
        return (t - self.problem.centred(inner)) / self.ridge, values

    def columns(self, rows: NDArray) -> NDArray:
        """Return ``L^-1 H K`` at some rows, shape (n, len(rows)); their products make `block`."""
        columns = self.problem.centred(self.problem.gram[rows].T)
        return solve_triangular(
            self.factor, columns, lower=True, overwrite_b=True, check_finite=False
        )

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return the kernel ``F S^-1 F'`` between some rows, given their `columns`."""
        return (self.problem.gram[np.ix_(rows, rows)] - columns.T @ columns) / self.ridge

    def near(self, theta: float, t: NDArray, c: NDArray) -> NDArray:
        """Return c with ``S F'c = F't`` at another theta, by conjugate gradients from a guess."""
        problem, gram = self.problem, self.problem.gram
        weights = self.weights * np.where(
            problem.y > 0, self.theta / theta, (1.0 - self.theta) / (1.0 - theta)
        )
        ridge = problem.ridge / theta + problem.ridge / (1.0 - theta)

        def applied(v: NDArray, values: NDArray) -> NDArray:
            return problem.centred(weights * problem.centred(values)) + ridge * v

        z, values = self.solve(t)
        goal, size = RESIDUAL**2 * float(z @ values), np.inf
        c, residual = c.copy(), t - applied(c, gram @ c)
        step = step_values = np.zeros_like(c)
        for _ in range(MAX_STEPS):
            z, values = self.solve(residual)
            product = float(z @ values)
            if product <= goal:
                break
            share = product / size
            step, step_values = z + share * step, gram @ z + share * step_values
            image = applied(step, step_values)
            length = product / float(step_values @ image)
            c += length * step
            residual -= length * image
            size = product
        return c


@dataclass(frozen=True)
class GramDirection:
    """The direction of smallest total spread with ``w'(xm - ym) = 1``, ``w = F'c``.

    Attributes
    ----------
    c, decision : ndarray of shape (n,)
        And ``Kc``.
    spread_x, spread_y, bound : float
        The spreads, and a total that no direction has less of.
    theta : float
        ``sx/(sx + sy)``.
    iterations : int
        Values of theta that were tried.
    """

    c: NDArray
    decision: NDArray
    spread_x: float
    spread_y: float
    bound: float
    theta: float
    iterations: int

    @property
    def value(self) -> float:
        """The total spread."""
        return self.spread_x + self.spread_y

    def closed(self, tol: float) -> bool:
        """Whether value and bound agree up to a relative tolerance."""
        return self.value - self.bound <= tol * self.value


def minimax_gram(
    problem: SpreadGram, tol: float = 1e-6, max_rounds: int = 30
) -> GramDirection | None:
    """Minimise the total spread; None where the class means are equal.

    Parameters
    ----------
    problem : SpreadGram
    tol : float, default=1e-6
        Relative gap; a hundredth of it is aimed at.
    max_rounds : int, default=30

    Notes
    -----
    The equation in theta and the bound are those of `mmbench.solvers.minimax`; the first theta is
    one half, at which the factor is made.
    """
    target, theta, secant = problem.means, 0.5, Secant()
    if target @ (problem.gram @ target) <= EQUAL_MEANS * np.trace(problem.gram) / len(target):
        return None
    metric = GramMetric(problem, theta)
    c, _ = metric.solve(target)
    for rounds in range(1, max_rounds + 1):
        decision = problem.gram @ c
        spread_x, spread_y = problem.spreads(c, decision)
        scale = float(target @ decision)
        bound = 1.0 / max(spread_x / theta, spread_y / (1.0 - theta))
        best = GramDirection(
            c / scale,
            decision / scale,
            spread_x / scale,
            spread_y / scale,
            bound,
            spread_x / (spread_x + spread_y),
            rounds,
        )
        if best.closed(1e-2 * tol):
            break
        theta = secant.next_share(theta, best.theta)
        c = metric.near(theta, target, c)
    return best
