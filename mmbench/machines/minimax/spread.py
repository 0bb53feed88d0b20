"""The direction of smallest total spread: the minimax probability machine without a cone solver.

    min over w   ||Dx w|| + ||Dy w||   subject to   t'w = 1,       Dx, Dy diagonal

For ``0 < theta < 1`` Cauchy's inequality gives ``(sx + sy)^2 <= sx^2/theta + sy^2/(1 - theta)``,
with equality at ``theta = sx/(sx + sy)``. For a given theta the right hand side is a quadratic form
``w'Aw`` with ``A = Dx^2/theta + Dy^2/(1 - theta)``, whose minimiser is ``A^-1 t / (t'A^-1 t)``. The
textbook iteration alternates the two; here the equation that it solves, one equation in theta, goes
to a bracketing root finder, which needs about ten evaluations of O(k).

Its dual, ``max g`` subject to ``g t = Dx p + Dy q``, ``||p||, ||q|| <= 1``, certifies the result:
``p = Dx w/theta`` and ``q = Dy w/(1 - theta)`` satisfy it up to their length.

References
----------
G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. Jordan: A robust minimax approach to
classification. JMLR 3, 2002.

Class spreads over a whole Gram matrix: one Cholesky factor where coordinates cost an eigenbasis.

Coordinates in which both covariances are diagonal serve every penalty C on slack, but of a Gram
matrix of 12000 rows they take ten minutes. A single training needs less. With K = F F', class means
taken out by H, and ``S = theta^-1 Sx + (1 - theta)^-1 Sy``, ridge r in both,

    S = F'H D H F + r' I,    D_ii = 1/(n_c theta_c),    r' = r/theta + r/(1 - theta)
    S^-1 F't = F'c,          c = (t - H M^-1 H K t)/r',    M = H K H + r' D^-1

so that a factor of M, n^3/3 steps, applies S^-1 to any vector of the span. At another theta the
same factor is a preconditioner: conjugate gradients see a condition number of at most the ratio of
the two thetas' odds, whatever the kernel.

Class spreads over rows in any coordinates, to the accuracy of a search.

With rows F, class covariances Sx and Sy and their ridges, every machine of the family asks for

    S = (Sx + rx I)/theta + (Sy + ry I)/(1 - theta),     sx + sy = min over theta of sqrt(w'S w)

Coordinates in which both covariances are diagonal serve every theta, but cost as much as ten
Cholesky factors of S. One factor of S is a preconditioner at every other theta: the condition
number that conjugate gradients see is at most the ratio of the two thetas' odds.

The minimum is flat: at a theta whose log-odds are off by delta the root is too large by a share of
``delta^2 theta (1 - theta)/2``, at most ``delta^2/8``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.minimax.line_search import Secant
from mmbench.solvers.result import Result

#: log(theta / (1 - theta)) is sought between minus and plus this.
MAX_LOGIT = 30.0

#: Targets larger than this, or smaller than its reciprocal, are scaled.
MAX_TARGET = 1e100

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Direction(Result):
    """A direction and its certificate: `value` is the total spread."""

    #: ``t'w = 1``. Shape (k,).
    w: NDArray
    #: ``||Dx w||`` and ``||Dy w||``.
    spread_x: float
    spread_y: float

    @classmethod
    def along(
        cls,
        w: NDArray,
        target: NDArray,
        spreads: Sequence[float],
        bound: float,
        iterations: int,
    ) -> Self:
        """Return the multiple of w with ``target'w = 1``, given its spreads and their bound."""
        scale = float(target @ w)
        w, (spread_x, spread_y) = w / scale, (float(spread) / scale for spread in spreads)
        return cls(
            w,
            spread_x,
            spread_y,
            value=spread_x + spread_y,
            bound=bound,
            violation=abs(float(target @ w) - 1.0),
            iterations=iterations,
            status=Status.OPTIMAL,
        )


def minimax_direction(target: NDArray, var_x: NDArray, var_y: NDArray) -> Direction:
    """Minimise the total spread.

    Parameters
    ----------
    target : ndarray of shape (k,)
        t, not zero.
    var_x, var_y : ndarray of shape (k,)
        Squares of the diagonals of Dx and Dy; where one is zero the other is not.

    Raises
    ------
    ValueError
        If the target is zero or not finite.

    Examples
    --------
    >>> found = minimax_direction(np.array([1.0, 1.0]), np.array([1.0, 4.0]), np.array([1.0, 4.0]))
    >>> found.w.round(3), round(found.value, 6), round(found.bound, 6)
    (array([0.8, 0.2]), 1.788854, 1.788854)
    """
    size = float(np.abs(target).max())
    if not 0.0 < size < np.inf:
        raise ValueError("the difference of the class means is not a finite vector; scale the data")
    if not 1.0 / MAX_TARGET < size < MAX_TARGET:  # squares would underflow
        found = minimax_direction(target / size, var_x, var_y)
        spreads = found.spread_x, found.spread_y
        return Direction.along(found.w, target, spreads, found.bound / size, found.iterations)
    evaluations = 0

    def trial(logit: float) -> tuple[NDArray, float, float]:
        nonlocal evaluations
        evaluations += 1
        # 1/theta and 1/(1 - theta), both exact at the ends.
        w = target / (var_x * (1.0 + np.exp(-logit)) + var_y * (1.0 + np.exp(logit)))
        squares = w * w
        return w, float(np.sqrt(var_x @ squares)), float(np.sqrt(var_y @ squares))

    def excess(logit: float) -> float:
        _, spread_x, spread_y = trial(logit)
        return np.log(spread_x + TINY) - np.log(spread_y + TINY) - logit

    logit = _root(excess)
    w, spread_x, spread_y = trial(logit)
    longest = max(spread_x * (1.0 + np.exp(-logit)), spread_y * (1.0 + np.exp(logit)))
    return Direction.along(w, target, (spread_x, spread_y), 1.0 / float(longest), evaluations)


def _root(excess: Callable[[float], float]) -> float:
    """Return the zero of a function that falls; an end where it has none.

    At an end one class has no spread along the solution.
    """
    if excess(-MAX_LOGIT) <= 0:
        return -MAX_LOGIT
    if excess(MAX_LOGIT) >= 0:
        return MAX_LOGIT
    return float(brentq(excess, -MAX_LOGIT, MAX_LOGIT, xtol=1e-12))


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


@dataclass(frozen=True)
class SpreadFactor:
    """Rows of two classes and their covariances."""

    #: F, centred. Shape (n, k).
    rows: NDArray
    #: -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: That of the positive class, without ridge, in the lower triangle and on the diagonal, and
    #: that of the negative class in the upper triangle. Shape (k, k).
    covariances: NDArray
    #: Diagonal of the covariance of the negative class. Shape (k,).
    variances: NDArray
    #: (rx, ry), absolute and positive.
    ridges: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, rows: NDArray, y: NDArray) -> SpreadFactor:
        """Return the covariances of some rows; their ridges are those of `first`."""
        k = rows.shape[1]
        covariances, variances = np.zeros((k, k), order="F"), np.zeros(k)
        for side, lower in ((y < 0, 0), (y > 0, 1)):
            variances = covariances.diagonal().copy()  # in the end those of the first class
            covariances[np.diag_indices(k)] = 0.0
            part = rows[side]
            part -= part.mean(axis=0)
            covariances = blas.dsyrk(
                1.0 / len(part), part.T, beta=1.0, c=covariances, lower=lower, overwrite_c=1
            )
        return cls(rows, y, covariances, variances)

    def first(self, k: int, ridges: tuple[float, float]) -> SpreadFactor:
        """Return the problem in the first k coordinates, with ridges."""
        return SpreadFactor(
            self.rows[:, :k], self.y, self.covariances[:k, :k], self.variances[:k], ridges
        )

    @property
    def delta(self) -> NDArray:
        """Difference of the class means."""
        return self.rows[self.y > 0].mean(axis=0) - self.rows[self.y < 0].mean(axis=0)

    def spreads(self, w: NDArray, decision: NDArray) -> NDArray:
        """Return (sx, sy), given ``decision = Fw`` up to a constant."""
        squares = [decision[side].var() for side in (self.y > 0, self.y < 0)]
        return np.sqrt(np.add(squares, np.multiply(self.ridges, w @ w)))

    def product(self, w: NDArray, decision: NDArray, theta: float) -> NDArray:
        """Return ``S w`` at a theta, given ``decision = Fw``."""
        weighed = np.empty_like(decision)
        for side, share in ((self.y > 0, theta), (self.y < 0, 1.0 - theta)):
            part = decision[side]
            weighed[side] = (part - part.mean()) / (share * len(part))
        ridge_x, ridge_y = self.ridges
        return weighed @ self.rows + (ridge_x / theta + ridge_y / (1.0 - theta)) * w


class FactorMetric:
    """``S^-1`` at a theta, by a Cholesky factor, and at others by conjugate gradients.

    Where the ridge is not small beside the covariances the factor is one of float32 values, which
    takes half the time and memory.
    """

    def __init__(self, problem: SpreadFactor, theta: float):
        self.problem, self.theta = problem, theta
        both, (ridge_x, ridge_y) = problem.covariances, problem.ridges
        diagonal = (both.diagonal() + ridge_x) / theta
        diagonal += (problem.variances + ridge_y) / (1.0 - theta)
        trace = float((both.diagonal() + problem.variances).sum())
        dtype = np.float32 if fits_single(min(problem.ridges), trace) else np.float64
        # Of the sum with the transpose the lower triangle is meant; no second array is made.
        matrix = np.empty(both.shape, dtype, order="F")
        np.multiply(both.T, theta / (1.0 - theta), out=matrix, casting="same_kind")
        matrix += both
        matrix /= theta
        matrix[np.diag_indices_from(matrix)] = diagonal
        self.factor = cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        (self._solve_triangle,) = blas.get_blas_funcs(("trsv",), (self.factor,))

    def solve(
        self, t: NDArray, theta: float, accuracy: float, start: NDArray | None = None
    ) -> tuple[NDArray, NDArray, float]:
        """Solve ``S w = t`` at a theta.

        Parameters
        ----------
        t : ndarray of shape (k,)
        theta : float
        accuracy : float
            Length of what is missing at which to stop, in units of ``sqrt(w'S w)``.
        start : ndarray of shape (k,), optional
            A guess.

        Returns
        -------
        w : ndarray of shape (k,)
        decision : ndarray of shape (n,)
            ``Fw``.
        missing : float
            A length, at least, of p and q with ``t - S w = Sx^{1/2}p + Sy^{1/2}q``: half of it to
            each, and no covariance is below its ridge.
        """
        problem = self.problem
        rows, unit = problem.rows, 0.5 / np.sqrt(min(problem.ridges))

        def product(v: NDArray) -> NDArray:
            return problem.product(v, rows @ v, theta)

        w = self._precondition(t)
        least = accuracy * float(np.sqrt(t @ w)) / unit
        w, _ = cg(
            LinearOperator(
                (len(t),) * 2, lambda v: problem.product(v, rows @ v, theta), dtype=float
            ),
            t,
            x0=w if start is None else start,
            rtol=0.0,
            atol=least,
            maxiter=MAX_STEPS,
            M=LinearOperator((len(t),) * 2, self._precondition, dtype=float),
        )
        decision = rows @ w
        rest = t - problem.product(w, decision, theta)
        return w, decision, float(unit * np.linalg.norm(rest))

    def _precondition(self, t: NDArray) -> NDArray:
        half = self._solve_triangle(self.factor, t, lower=1)
        return self._solve_triangle(self.factor, half, lower=1, trans=1).astype(float)

    def kernel(self) -> NDArray:
        """Return ``F S^-1 F'`` at the theta of the factor, in single precision, shape (n, n)."""
        half = solve_triangular(
            self.factor.astype(np.float32, copy=False),
            self.problem.rows.astype(np.float32, order="C").T,
            lower=True,
            overwrite_b=True,
            check_finite=False,
        )
        return half.T @ half


def minimax_factor(
    problem: SpreadFactor, theta: float, tol: float, max_rounds: int = 20
) -> tuple[Direction, FactorMetric, float]:
    """Minimise the total spread with ``w'(xm - ym) = 1``, as `minimax_direction` does.

    Parameters
    ----------
    problem : SpreadFactor
        Its class means are not equal.
    theta : float
        The first theta, that of the factor.
    tol : float
        Relative gap of the total spread.
    max_rounds : int, default=20

    Returns
    -------
    Direction
    FactorMetric
    float
        The last theta.
    """
    target, secant, metric = problem.delta, Secant(), FactorMetric(problem, theta)
    w, accuracy = None, COARSE
    for rounds in range(1, max_rounds + 1):
        w, decision, missing = metric.solve(target, theta, max(accuracy, 0.1 * tol), w)
        spread_x, spread_y = (float(spread) for spread in problem.spreads(w, decision))
        bound = 1.0 / (max(spread_x / theta, spread_y / (1.0 - theta)) + missing)
        found = Direction.along(w, target, (spread_x, spread_y), bound, rounds)
        if found.closed(tol) or time_is_up():
            break
        theta = secant.next_share(theta, spread_x / (spread_x + spread_y))
        accuracy = FINER * found.gap
    return found, metric, theta
