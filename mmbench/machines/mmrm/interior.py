"""A primal-dual interior-point method for the linear programs of the max-margin ratio machine.

    min c'u + cost'xi   subject to   A u + y b + xi - z = right,   u, xi, z >= 0,   b free

The last row of A is the limit on the coefficients, ``-sum(u)/limit >= -1``; `right` is -1 there and
1 elsewhere. With multipliers lam from 0 to `cost` and ``s = c - A'lam >= 0``, Mehrotra's predictor
and corrector (SIAM J. Optim. 2, 1992) reduce ``u s``, ``xi (cost - lam)`` and ``z lam`` at the same
rate. With the diagonal matrices Theta of ``u/s`` and D of ``xi/(cost - lam) + z/lam``, a step is

    D dlam + A du + y db = r,    A'dlam - Theta^{-1} du = r_u,    y'dlam = r_b

    solver        when                                        operations per iteration
    reduced       default                                     n_rows^2 n_columns, Cholesky
    whole         after `reduced` has failed, at most 8001    (n_rows + n_columns)^3, LU
                  rows and columns together
    of_low_rank   Gram matrix of n rows and low rank r        n r^2, QR and LU of order 2r

`reduced` eliminates du. As ``y'dlam = r_b``, theta > 0 does not change the solution; with theta =
0, the matrix would be nearly singular along y, as A is shifted so that ``A'y = 0``:

    (D + A Theta A' + theta yy') dlam + y db = r + A Theta r_u + theta y r_b.

`whole` does not square the condition number of A, which for smooth kernels and few features leaves
`reduced` no correct digits. `of_low_rank` takes ``A = P Q'`` from a pivoted Cholesky factor;
``P'D^{-1}P`` would lose digits. With ``D^{-1/2} [P, y] = U [R, g]`` and ``Theta^{1/2} Q = V S``
(QR), ``p = U'D^{1/2} dlam`` and ``q = V'Theta^{-1/2} du`` satisfy

    p + R S'q + g db = U'D^{-1/2} r,    S R'p - q = V'Theta^{1/2} r_u,    g'p = r_b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsyrk, dtrsv
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf
from scipy.sparse.linalg import LinearOperator, cg

from mmbench.allowance import no_time_for, time_is_up
from mmbench.memory import check_free_memory


@dataclass
class Iterate:
    """The variables of an interior-point iterate: positive vectors and the free intercept b."""

    u: NDArray
    b: float
    xi: NDArray
    z: NDArray
    lam: NDArray
    s: NDArray

    def moved(self, step: Iterate, primal: float, dual: float) -> Iterate:
        """Return the iterate after a step with the given primal and dual step lengths."""
        return Iterate(
            self.u + primal * step.u,
            self.b + primal * step.b,
            self.xi + primal * step.xi,
            self.z + primal * step.z,
            self.lam + dual * step.lam,
            self.s + dual * step.s,
        )


def first_iterate(u: NDArray, margins: NDArray, lam: NDArray, c: NDArray) -> Iterate:
    """Return a positive iterate near a warm start (`u` and `margins`), with multipliers `lam`."""
    return Iterate(
        u=u + 0.1 * (float(u[u > 0].mean()) if np.any(u > 0) else 1.0),
        b=0.0,
        xi=np.maximum(1 - margins, 0.01),
        z=np.maximum(margins - 1, 0.3),
        lam=lam,
        s=np.full(len(c), 0.01 * size_of(c)),
    )


def size_of(c: NDArray) -> float:
    """Return the mean magnitude of the objective coefficients c, or 1 if c is a rounding error."""
    mean = float(np.abs(c).mean())
    return mean if mean > ROUNDED_COST else 1.0


#: If the mean of ``|c_k|`` over the objective coefficients c is at most ROUNDED_COST, the
#: coefficients are considered rounding errors.
ROUNDED_COST = 1e-12

#: Relative residual at which conjugate gradients stop.
CG_TOLERANCE = 1e-9

#: Maximum numbers of conjugate gradient steps in `reduced`. MAX_CG_STEPS applies if `whole` can
#: replace `reduced`, and MAX_CG_STEPS_OF_LARGE if the Newton equations are too large for `whole`.
MAX_CG_STEPS, MAX_CG_STEPS_OF_LARGE = 25, 300

#: Number of iterative refinement steps of the Newton equations.
MAX_REFINEMENTS = 2

#: Lower bound on the largest magnitude in a matrix column, to avoid a division by zero.
SMALLEST_SCALE = 1e-300

#: Relative increases of the diagonal in `reduced`, tried in turn until the Cholesky factorization
#: of the matrix succeeds.
DIAGONAL_SHIFTS = (1e-13, 1e-11, 1e-9)


#: Residuals of the primal constraints, of the dual constraints ``A'lam + s = c``, and of ``y'lam =
#: 0``.
Residuals = tuple[NDArray, NDArray, NDArray]

#: Function that returns the step (du, dlam, db) for the right-hand sides (r, r_u, r_b) of the
#: Newton equations.
NewtonSolver = Callable[[NDArray, NDArray, float], tuple[NDArray, NDArray, float]]


def reduced(
    A: NDArray, y: NDArray, diagonal: NDArray, weight: NDArray, max_steps: int
) -> NewtonSolver:
    """Return a Newton solver that eliminates the step du and uses conjugate gradients.

    LinAlgError is raised if the Cholesky factorization fails. If conjugate gradients do not
    converge, `reduced` and the returned solver also raise LinAlgError.
    """
    theta = float((np.square(A) @ weight).mean())
    part = np.column_stack([A * np.sqrt(weight), np.sqrt(theta) * y])
    for shift in DIAGONAL_SHIFTS:
        matrix = dsyrk(1.0, part.T, trans=1, lower=1)
        entries = np.einsum("ii->i", matrix)  # a view of the diagonal
        entries[:] = (entries + diagonal) * (1 + shift)
        factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if not failure:
            break
    else:
        raise LinAlgError("the reduced equations are not positive definite")

    def product(v: NDArray) -> NDArray:
        return diagonal * v + A @ (weight * (v @ A)) + theta * (y @ v) * y

    def precondition(v: NDArray) -> NDArray:
        half = dtrsv(factor, v, lower=1)  # dtrsv takes half the time of cho_solve
        return dtrsv(factor, half, lower=1, trans=1)

    shape = (len(y), len(y))
    operator = LinearOperator(shape, product, dtype=float)
    inverse = LinearOperator(shape, precondition, dtype=float)

    def conjugate_gradients(right: NDArray) -> NDArray:
        x, failure = cg(
            operator, right, precondition(right), rtol=CG_TOLERANCE, maxiter=max_steps, M=inverse
        )
        if failure:
            raise LinAlgError("conjugate gradients do not converge")
        return x

    along_b = conjugate_gradients(y)

    def solve(r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        lam = conjugate_gradients(r + A @ (weight * r_u) + theta * r_b * y)
        b = float((y @ lam - r_b) / (y @ along_b))
        lam = lam - b * along_b
        return weight * (lam @ A - r_u), lam, b

    return solve


def refined(
    A: Any, y: NDArray, diagonal: NDArray, inverse: NDArray, solve: NewtonSolver
) -> NewtonSolver:
    """Return `solve` with iterative refinement; `inverse` is the diagonal s/u of ``Theta^{-1}``."""

    def solve_refined(r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        u, lam, b = np.zeros(len(r_u)), np.zeros(len(r)), 0.0
        for _ in range(1 + MAX_REFINEMENTS):
            step = solve(
                r - diagonal * lam - A @ u - b * y,
                r_u - lam @ A + inverse * u,
                r_b - float(y @ lam),
            )
            u, lam, b = u + step[0], lam + step[1], b + step[2]
        return u, lam, b

    return solve_refined


def scaled_lu(matrix: NDArray) -> Callable[[NDArray], NDArray]:
    """Return a function that solves a symmetric linear system by an LU factorization.

    The entries of `matrix` are scaled in place to magnitudes of at most one.
    """
    scale = 1 / np.sqrt(np.maximum(np.abs(matrix).max(axis=0), SMALLEST_SCALE))
    matrix *= scale
    matrix *= scale[:, None]
    lu, pivots, _ = dgetrf(matrix.T, overwrite_a=True)
    return lambda right: scale * dgetrs(lu, pivots, scale * right)[0]


def whole(A: NDArray, y: NDArray, diagonal: NDArray, weight: NDArray) -> NewtonSolver:
    """Return a Newton solver that factorises the whole matrix of the Newton equations by LU."""
    (m, k), inverse = A.shape, 1 / weight
    matrix = np.zeros((m + k + 1,) * 2)
    matrix[:m, m:-1], matrix[m:-1, :m] = A, A.T
    matrix[:m, -1] = matrix[-1, :m] = y
    np.einsum("ii->i", matrix)[:-1] = np.concatenate([diagonal, -inverse])
    lu = scaled_lu(matrix)

    def solve(r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        solution = lu(np.concatenate([r, r_u, [r_b]]))
        return solution[m:-1], solution[:m], float(solution[-1])

    return refined(A, y, diagonal, inverse, solve)


class LowRank:
    """Linear operator ``A = left @ right'`` with the shapes (n_rows, rank) @ (rank, n_columns)."""

    __array_ufunc__ = None  # with None, NumPy calls `__rmatmul__` for ``array @ A``

    def __init__(self, left: NDArray, right: NDArray) -> None:
        self.left, self.right = left, right

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    def __matmul__(self, u: NDArray) -> NDArray:
        return self.left @ (u @ self.right)

    def __rmatmul__(self, lam: NDArray) -> NDArray:
        return self.right @ (lam @ self.left)

    @property
    def nbytes(self) -> int:
        return self.left.nbytes + self.right.nbytes

    def part(self, rows: NDArray, columns: NDArray) -> LowRank:
        """Return the submatrix with the given rows and columns."""
        return LowRank(self.left[rows], self.right[columns])

    def with_row(self, row: NDArray) -> LowRank:
        """Return the matrix with the vector `row` appended as the last row."""
        left = np.zeros((len(self.left) + 1, self.left.shape[1] + 1))
        left[:-1, :-1], left[-1, -1] = self.left, 1.0
        return LowRank(left, np.column_stack([self.right, row]))


def of_low_rank(A: LowRank, y: NDArray, diagonal: NDArray, weight: NDArray) -> NewtonSolver:
    """Return a Newton solver for a program whose matrix A has low rank."""
    row_root, column_root = np.sqrt(diagonal), np.sqrt(weight)
    U, R_rows = np.linalg.qr(np.column_stack([A.left, y]) / row_root[:, None])
    V, R_columns = np.linalg.qr(A.right * column_root[:, None])
    n_p, n_q = len(R_rows), len(R_columns)
    matrix = np.zeros((n_p + n_q + 1,) * 2)
    matrix[:n_p, n_p:-1] = R_rows[:, :-1] @ R_columns.T
    matrix[:n_p, -1] = R_rows[:, -1]
    matrix += matrix.T
    np.einsum("ii->i", matrix)[:-1] = np.repeat([1.0, -1.0], [n_p, n_q])
    lu = scaled_lu(matrix)

    def solve(r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        r, r_u = r / row_root, r_u * column_root
        r_in, r_u_in = r @ U, r_u @ V
        p, q, b = np.split(lu(np.concatenate([r_in, r_u_in, [r_b]])), [n_p, n_p + n_q])
        lam = (U @ (p - r_in) + r) / row_root
        u = (V @ (q + r_u_in) - r_u) * column_root
        return u, lam, float(b[0])

    return refined(A, y, diagonal, 1 / weight, solve)


#: Step length, divided by the step length at which the first variable becomes zero.
BOUNDARY_FRACTION = 0.995

#: If a step of `reduced` increases the primal residual above REDUCED_RESIDUAL_LIMIT, `whole`
#: replaces `reduced`.
REDUCED_RESIDUAL_LIMIT = 1e-6

#: The iterations end if the objective value is below -UNBOUNDED_VALUE. A negative objective value
#: proves that the program without the coefficient limit is unbounded.
UNBOUNDED_VALUE = 1e-3

#: Maximum number of rows of a kernel program that is solved as a whole, and maximum order of the
#: matrix in `whole`.
WHOLE_ROWS = 4000
MAX_WHOLE_ORDER = 2 * WHOLE_ROWS + 1


class LpInteriorPoint:
    """Interior-point method for one linear program.

    A call of `run` with a smaller tolerance continues from the last iterate. The limit
    ``sum(u) <= limit`` is the last row of `A`, `y` and `cost`. Its initial multiplier is
    `multiplier`, by default the mean of the products ``z_i lam_i``, divided by `limit`.
    """

    def __init__(
        self,
        A: NDArray | LowRank,
        y: NDArray,
        c: NDArray,
        cost: NDArray,
        point: Iterate,
        limit: float,
        multiplier: float | None = None,
    ) -> None:
        task = f"MMRM, an interior point of {len(y)} rows and {len(c)} coefficients,"
        check_free_memory(task, 4 * A.nbytes)
        self.limit = limit
        last = np.full(len(c), -1 / limit)
        self.A: Any = A.with_row(last) if isinstance(A, LowRank) else np.vstack([A, last])
        self.y, self.c, self.right = np.append(y, 0.0), c, np.append(np.ones(len(y)), -1.0)
        # the penalty on the slack of the coefficient limit is so large that any violation of the
        # limit increases the objective
        penalty = 2 * cost.sum() + limit * max(0.0, -c.min())
        self.cost = np.append(cost, penalty)
        mu = float(np.mean(point.z * point.lam))
        paid = min(mu if multiplier is None else limit * multiplier, penalty / 2)
        self.point = replace(
            point,
            xi=np.append(point.xi, mu / (penalty - paid)),
            z=np.append(point.z, mu / paid),
            lam=np.append(point.lam, paid),
        )
        self.iterations = 0
        self.ill_conditioned = isinstance(A, LowRank)

    @property
    def slack(self) -> NDArray:
        """Multipliers ``cost - lam`` of the constraints ``xi >= 0``."""
        return self.cost - self.point.lam

    def run(self, tol: float, max_iter: int = 100) -> bool:
        """Iterate until the sum of the complementarity products is below ``tol (1 + |objective|)``.

        Constraint residuals have the tolerance ``10 * max(tol, 1e-9)``. Returns True if both are
        reached, or if the objective proves that the program is unbounded; False if steps are too
        short, values are not finite, or the iterations or the time end.
        """
        for k in range(max_iter):
            size = 1 + abs(self.objective)
            residuals = self._residuals()
            complementarity = self._products_sum(self.point) / size
            error = max(np.abs(r).max(initial=0.0) for r in residuals)
            if not np.isfinite(complementarity + error):
                return False
            if self._value(residuals[0]) < -UNBOUNDED_VALUE:
                return True
            if complementarity < tol and error < max(tol, 1e-9) * 10:
                return True
            if time_is_up(iterations=self.iterations, gap=complementarity, violation=error):
                return False
            self.iterations += 1
            try:
                longest = self._iterate(residuals, 0.02 * tol * size)
            except LinAlgError:
                return False
            if k > 8 and longest < 1e-3:
                return False
        return False

    def restore_dual(self) -> None:
        """Reduce the dual residuals by a step that changes only lam and s.

        A residual v of ``A'lam + s = c`` lowers the certified bound by ``limit * v``.
        """
        rows, columns, balance = self._residuals()
        zeros = [np.zeros_like(product) for product in (self.point.u, rows, rows)]
        try:
            step = self._direction(self._system(), (zeros[1], columns, balance), zeros)
        except LinAlgError:
            return
        self.point = self.point.moved(step, 0.0, self._lengths(step, BOUNDARY_FRACTION)[1])

    @property
    def multiplier(self) -> float:
        """Multiplier of the coefficient limit ``sum(u) <= limit``."""
        return float(self.point.lam[-1]) / self.limit

    @property
    def objective(self) -> float:
        """Objective value ``c'u + cost'xi`` of the current iterate."""
        return float(self.c @ self.point.u + self.cost @ self.point.xi)

    def _value(self, row_residual: NDArray) -> float:
        """Primal objective value with the smallest feasible slacks.

        A negative objective value proves that the program is unbounded without the coefficient
        limit.
        """
        missing = (self.point.xi - self.point.z + row_residual)[:-1]
        return float(self.c @ self.point.u + self.cost[:-1] @ np.maximum(missing, 0))

    def _residuals(self) -> Residuals:
        p = self.point
        return self._row_residual(p), self.c - p.lam @ self.A - p.s, np.atleast_1d(-self.y @ p.lam)

    def _row_residual(self, p: Iterate) -> NDArray:
        return self.right - (self.A @ p.u + self.y * p.b + p.xi - p.z)

    def _products_sum(self, p: Iterate) -> float:
        return float(p.u @ p.s + p.xi @ (self.cost - p.lam) + p.z @ p.lam)

    def _iterate(self, residuals: Residuals, target: float) -> float:
        """Take one step, and return the larger of the primal and the dual step length."""
        system = self._system()
        try:
            step = self._step(system, residuals, target)
            left = residuals[0] - (self.A @ step.u + self.y * step.b + step.xi - step.z)
            if not self.ill_conditioned and np.abs(left).max() >= 0.1 * REDUCED_RESIDUAL_LIMIT:
                zeros = [np.zeros_like(product) for product in (step.u, step.xi, step.z)]
                rest = (left, zeros[0], residuals[2] - self.y @ step.lam)
                step = step.moved(self._direction(system, rest, zeros), 1.0, 1.0)
        except LinAlgError:
            self.ill_conditioned = True
            return self._iterate(residuals, target)
        lengths = self._lengths(step, BOUNDARY_FRACTION)
        moved = self.point.moved(step, *lengths)
        drift = np.abs(self._row_residual(moved)).max()
        limit = max(REDUCED_RESIDUAL_LIMIT, np.abs(residuals[0]).max())
        if not self.ill_conditioned and drift > limit:
            self.ill_conditioned = True
            return self._iterate(residuals, target)
        self.point = moved
        return max(lengths)

    def _step(self, system: NewtonSolver, residuals: Residuals, target: float) -> Iterate:
        """Return the combined predictor and corrector step of Mehrotra's method."""
        p, count = self.point, len(self.c) + 2 * len(self.y)
        products = (p.u * p.s, p.xi * self.slack, p.z * p.lam)
        mu = sum(float(q.sum()) for q in products) / count
        affine = self._direction(system, residuals, [-q for q in products])
        after = p.moved(affine, *self._lengths(affine, 1.0))
        sigma = (max(self._products_sum(after), 0.0) / count / mu) ** 3
        goal = max(sigma * mu, target / count)
        second = (affine.u * affine.s, -affine.xi * affine.lam, affine.z * affine.lam)
        wanted = [goal - q - d for q, d in zip(products, second, strict=True)]
        return self._direction(system, residuals, wanted)

    def _direction(
        self, system: NewtonSolver, residuals: Residuals, wanted: list[NDArray]
    ) -> Iterate:
        """Return the Newton direction that changes the complementarity products by `wanted`."""
        p, slack = self.point, self.slack
        rp, rd, rb = residuals
        cu, cx, cz = wanted
        u, lam, b = system(rp - cx / slack + cz / p.lam, rd - cu / p.u, float(rb[0]))
        xi, z = (cx + p.xi * lam) / slack, (cz - p.z * lam) / p.lam
        return Iterate(u=u, b=b, xi=xi, z=z, lam=lam, s=rd - lam @ self.A)

    def _lengths(self, step: Iterate, fraction: float) -> tuple[float, float]:
        """Return the primal and the dual step length.

        A step length is `fraction` times the length at which the first variable becomes zero, but
        at most 1.
        """
        p = self.point
        primal = min(_reach(p.u, step.u), _reach(p.xi, step.xi), _reach(p.z, step.z))
        dual = min(_reach(p.lam, step.lam), _reach(self.slack, -step.lam), _reach(p.s, step.s))
        return min(1.0, fraction * primal), min(1.0, fraction * dual)

    def _system(self) -> NewtonSolver:
        """Return a solver of the Newton equations at the current iterate.

        Raises LinAlgError if `reduced` fails and the Newton equations are too large for `whole`, or
        if the time limit is too short for a factorization.
        """
        p = self.point
        m, n = self.A.shape
        if not isinstance(self.A, LowRank) and no_time_for(m * m * (n / 2 + m / 6)):
            raise LinAlgError("no time is left for a factorization")
        weight = p.u / p.s
        diagonal = p.xi / self.slack + p.z / p.lam
        large = sum(self.A.shape) > MAX_WHOLE_ORDER
        if not self.ill_conditioned:
            most = MAX_CG_STEPS_OF_LARGE if large else MAX_CG_STEPS
            try:
                return reduced(self.A, self.y, diagonal, weight, most)
            except LinAlgError:
                self.ill_conditioned = True
        if isinstance(self.A, LowRank):
            return of_low_rank(self.A, self.y, diagonal, weight)
        if large:
            raise LinAlgError("the Newton equations are too large for an LU factorization")
        return whole(self.A, self.y, diagonal, weight)


def _reach(value: NDArray, step: NDArray) -> float:
    """Return the smallest length at which a step along `step` makes an entry of `value` zero."""
    down = step < 0
    return float(np.min(value[down] / -step[down], initial=np.inf))
