"""Class spreads over a whole Gram matrix: one Cholesky factor where coordinates cost an eigenbasis.

Coordinates in which both covariances are diagonal serve every penalty C on slack, but of a Gram
matrix of 12000 rows they take ten minutes. A single training needs less. With K = F F', class means
taken out by H, and ``S = theta^-1 Sx + (1 - theta)^-1 Sy``, ridge r in both,

    S = F'H D H F + r' I,    D_ii = 1/(n_c theta_c),    r' = r/theta + r/(1 - theta)
    S^-1 F't = F'c,          c = (t - H M^-1 H K t)/r',    M = H K H + r' D^-1

so that a factor of M, n^3/3 steps, applies S^-1 to any vector of the span. At another theta the
same factor is a preconditioner: conjugate gradients see a condition number of at most the ratio of
the two thetas' odds, whatever the kernel.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular

from mmbench.allowance import time_is_up
from mmbench.machines.minimax.direction import Direction
from mmbench.machines.minimax.line_search import Secant

#: Squared distance of the class means, relative to the mean squared length of a row, at which
#: rounding alone keeps them apart.
EQUAL_MEANS = 1e-13

#: Least ridge, as a share of the trace, with which a factor of float32 values is a good
#: preconditioner, and the traces whose matrices such values can hold.
SINGLE_RIDGE, SINGLE_RANGE = 1e-5, (1e-30, 1e30)

#: Accuracy of conjugate gradients at the first theta, and then in units of the gap; their number.
COARSE, FINER, MAX_STEPS = 1e-2, 1e-2, 500


@dataclass(frozen=True)
class SpreadGram:
    """The Gram matrix of two classes and the ridge of both."""

    #: K, float64; read only. Shape (n, n).
    gram: NDArray
    #: -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: r, absolute and positive.
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

    def gradient(self, c: NDArray, decision: NDArray) -> NDArray:
        """Return g with ``F'g`` the gradient of sx + sy at ``w = F'c``, given ``Kc``."""
        spread_x, spread_y = self.spreads(c, decision)
        n_x = float((self.y > 0).sum())
        weights = np.where(
            self.y > 0, 1.0 / (n_x * spread_x), 1.0 / ((len(self.y) - n_x) * spread_y)
        )
        own = self.ridge / spread_x + self.ridge / spread_y
        return weights * self.centred(decision) + own * c

    def missing(self, residual: NDArray, values: NDArray) -> float:
        """Return a length, at least, of p and q with ``F'residual = Sx^{1/2}p + Sy^{1/2}q``.

        Half of it to each, and no covariance is below its ridge; `values` are ``K residual``.
        """
        return 0.5 * float(np.sqrt(max(0.0, residual @ values) / self.ridge))

    def spreads(self, c: NDArray, decision: NDArray) -> tuple[float, float]:
        """Return (sx, sy) of ``w = F'c``, given ``decision = Kc``."""
        own = self.ridge * max(0.0, float(c @ decision))
        return tuple(  # type: ignore[return-value]
            float(np.sqrt(decision[side].var() + own)) for side in (self.y > 0, self.y < 0)
        )


def fits_single(ridge: float, trace: float) -> bool:
    """Whether a factor of float32 values is a good preconditioner."""
    return ridge >= SINGLE_RIDGE * trace and SINGLE_RANGE[0] < trace < SINGLE_RANGE[1]


class GramMetric:
    """``S^-1`` at one theta, by a Cholesky factor of M.

    Where the ridge is not small beside the trace the factor is one of float32 values, which takes
    half the time and memory: all that ask for more digits refine, see `near`.
    """

    def __init__(self, problem: SpreadGram, theta: float):
        self.problem, self.theta = problem, theta
        y, gram = problem.y, problem.gram
        sides = np.column_stack([y > 0, y < 0]).astype(float)
        counts = sides.sum(axis=0)
        self.weights = 1.0 / (sides @ (counts * [theta, 1.0 - theta]))
        self.ridge = problem.ridge / theta + problem.ridge / (1.0 - theta)
        single = fits_single(problem.ridge * len(y), float(np.trace(gram)))
        self.dtype = np.float32 if single else np.float64
        self._sides, self._means = sides, gram @ sides / counts
        means = self._means - 0.5 * sides @ (sides.T @ self._means / counts[:, None])
        # The transpose of a symmetric array is itself, in the order of LAPACK.
        matrix = np.array(gram.T, dtype=self.dtype, order="F")
        (update,) = blas.get_blas_funcs(("syr2k",), (matrix,))
        matrix = update(-1.0, means, sides, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        matrix[np.diag_indices_from(matrix)] += self.ridge / self.weights
        self.factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        (self._solve_triangle,) = blas.get_blas_funcs(("trsv",), (self.factor,))

    def half(self, values: NDArray) -> NDArray:
        """Return ``L^-1 H v``, shape (n,)."""
        return self._solve_triangle(self.factor, self.problem.centred(values), lower=1)

    def solution(self, t: NDArray, half: NDArray) -> NDArray:
        """Return c with ``S F'c = F't``, given ``half = L^-1 H K t``."""
        inner = self._solve_triangle(self.factor, half, lower=1, trans=1)
        return (t - self.problem.centred(inner.astype(np.float64))) / self.ridge

    def solve(self, t: NDArray) -> tuple[NDArray, NDArray]:
        """Return c with ``S F'c = F't`` to the digits of the factor, and ``Kt``."""
        values = self.problem.gram @ t
        return self.solution(t, self.half(values)), values

    def columns(self, rows: NDArray) -> NDArray:
        """Return ``L^-1 H K`` at some rows, shape (n, len(rows)); their products make `block`."""
        columns = self.problem.gram[rows].astype(self.dtype)
        columns -= self._means[rows].astype(self.dtype) @ self._sides.T.astype(self.dtype)
        return solve_triangular(
            self.factor, columns.T, lower=True, overwrite_b=True, check_finite=False
        )

    def block(self, rows: NDArray, others: NDArray, products: NDArray) -> NDArray:
        """Return the kernel ``F S^-1 F'`` between some rows and others.

        Parameters
        ----------
        rows, others : ndarray of int
        products : ndarray of shape (len(rows), len(others))
            Of their `columns`.
        """
        kernel = self.problem.gram[np.ix_(rows, others)]
        kernel -= products
        kernel /= self.ridge
        return kernel

    def near(
        self, theta: float, t: NDArray, c: NDArray, decision: NDArray, accuracy: float = 1e-12
    ) -> tuple[NDArray, float]:
        """Solve ``S F'c = F't`` at another theta by conjugate gradients.

        Parameters
        ----------
        theta : float
        t : ndarray of shape (n,)
        c, decision : ndarray of shape (n,)
            A guess, and its ``Kc``.
        accuracy : float, default=1e-12
            Length of what is missing at which to stop, in units of the spread of the solution.

        Returns
        -------
        ndarray of shape (n,)
            c.
        float
            How far both spreads of the solution may be off: see `SpreadGram.missing`.
        """
        problem, gram = self.problem, self.problem.gram
        weights = self.weights * np.where(
            problem.y > 0, self.theta / theta, (1.0 - self.theta) / (1.0 - theta)
        )
        ridge = problem.ridge / theta + problem.ridge / (1.0 - theta)

        c, residual = c.copy(), t - weights * problem.centred(decision) - ridge * c
        scale, size = float(t @ decision), np.inf
        step = step_values = np.zeros_like(c)
        for _ in range(MAX_STEPS):
            z, values = self.solve(residual)
            missing = problem.missing(residual, values)
            if missing**2 <= accuracy**2 * scale:
                break
            product = float(z @ values)
            share = product / size
            step, step_values = z + share * step, gram @ z + share * step_values
            image = weights * problem.centred(step_values) + ridge * step
            length = product / float(step_values @ image)
            c += length * step
            scale += length * float(t @ step_values)
            residual -= length * image
            size = product
        return c, missing


def minimax_gram(
    problem: SpreadGram, tol: float = 1e-6, max_rounds: int = 30
) -> tuple[Direction, NDArray, GramMetric] | None:
    """Minimise the total spread with ``w'(xm - ym) = 1``, ``w = F'c``.

    Parameters
    ----------
    problem : SpreadGram
    tol : float, default=1e-6
        Relative gap; a hundredth of it is aimed at.
    max_rounds : int, default=30

    Returns
    -------
    Direction
        Its `w` is c.
    ndarray of shape (n,)
        ``Kc``.
    GramMetric
        At one half. None takes the place of all three where the class means are equal.

    Notes
    -----
    The equation in theta and the bound are those of `direction`; the first theta is one half,
    at which the factor is made. What conjugate gradients leave is part of the bound, so
    that they need not go further than the theta at hand is worth.
    """
    target, theta, secant = problem.means, 0.5, Secant()
    values = problem.gram @ target
    if target @ values <= EQUAL_MEANS * np.trace(problem.gram) / len(target):
        return None
    metric = GramMetric(problem, theta)
    c, _ = metric.solve(target)
    decision, accuracy = problem.gram @ c, COARSE
    for rounds in range(1, max_rounds + 1):
        c, missing = metric.near(theta, target, c, decision, max(accuracy, 1e-3 * tol))
        decision = problem.gram @ c
        spread_x, spread_y = problem.spreads(c, decision)
        longest = max(spread_x / theta, spread_y / (1.0 - theta))
        bound = 1.0 / (longest + missing)
        best = Direction.along(c, values, (spread_x, spread_y), bound, rounds)
        if best.closed(1e-2 * tol) or time_is_up():
            break
        theta = secant.next_share(theta, spread_x / (spread_x + spread_y))
        accuracy = FINER * best.gap
    return best, decision / float(target @ decision), metric
