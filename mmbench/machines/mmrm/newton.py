"""The Newton equations of the interior point of a dense part, solved in two ways.

    D dlam + A du + y db = r,    A'dlam - Theta^{-1} du = r_u,    y'dlam = r_b

`Reduced` eliminates du. What is left is positive definite,

    (D + A Theta A' + theta yy') dlam + y db = r + A Theta r_u + theta y r_b,

where the term in theta changes nothing, as y'dlam is given, and removes the nearly singular
direction that the free b leaves. It is factorised only where it matters: rows of large D and
columns of small Theta are left to conjugate gradients on the true operator.

`Whole` factorises the equations as they stand. That costs some times more, but does not square
the condition of A: the Gram matrix of a smooth kernel on data of few dimensions is nearly singular,
and there the reduced equations lose all their digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve, solve_triangular
from scipy.linalg.blas import dsyrk, dtrsv
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import LinearOperator, cg

#: Relative residual of conjugate gradients.
CG_TOLERANCE = 1e-9

#: Steps of conjugate gradients before the reduced equations are given up for the whole ones; and
#: where these are too many to be factorised.
MAX_CG_STEPS, MAX_CG_STEPS_OF_LARGE = 25, 300

#: Steps of iterative refinement of the whole system.
MAX_REFINEMENTS = 2

#: A pivot so many times the largest entry of A is eliminated before the rest is factorised.
LARGE_PIVOT_RATIO = 20.0

#: Keeps an empty column from a division by zero.
SMALLEST_SCALE = 1e-300

#: Relative shifts of the diagonal with which a Cholesky factor is tried.
DIAGONAL_SHIFTS = (1e-13, 1e-11, 1e-9)

#: (r, r_u, r_b) to (du, dlam, db).
System = Callable[[NDArray, NDArray, float], tuple[NDArray, NDArray, float]]


class NotSolved(Exception):
    """The reduced equations are too badly conditioned."""


class Workspace:
    """What the reduced equations of all points share.

    Arrays that every iteration writes anew are kept: fresh memory of their size costs as much time
    as what is computed in it.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n_columns)
    """

    def __init__(self, A: NDArray) -> None:
        n_rows, n_columns = A.shape
        self.A, self.squares = A, A * A
        self._part = np.empty(n_rows * (n_columns + 1))
        self._matrix = np.empty(n_rows * n_rows)

    def product(self, rows: NDArray, columns: NDArray, scale: NDArray, border: NDArray) -> NDArray:
        """Return the lower triangle of ``B B'``, to be overwritten.

        Parameters
        ----------
        rows, columns : ndarray of int
        scale : ndarray of shape (len(columns),)
        border : ndarray of shape (len(rows),)
            B has these columns of A, scaled, and the border.
        """
        m, k = len(rows), len(columns)
        whole = self.A.shape == (m, k)
        part = self._part[: m * (k + 1)].reshape(m, k + 1)
        np.multiply(self.A if whole else self.A[np.ix_(rows, columns)], scale, out=part[:, :-1])
        part[:, -1] = border
        out = self._matrix[: m * m].reshape((m, m), order="F")
        return dsyrk(1.0, part.T, trans=1, lower=1, c=out, overwrite_c=1)


class Reduced:
    """The reduced equations at one point.

    Parameters
    ----------
    workspace : Workspace
        Of A. It holds the factor, until the equations at another point take it.
    y, diagonal : ndarray of shape (n_rows,)
        Labels and D.
    weight : ndarray of shape (n_columns,)
        Theta.
    threshold : float
        A row is factorised if D is below this many times the diagonal of ``A Theta A'``.
    max_steps : int
        Of conjugate gradients.

    Raises
    ------
    NotSolved
        If the matrix has no Cholesky factor, or, when solving, if conjugate gradients do not
        converge.
    """

    def __init__(
        self,
        workspace: Workspace,
        y: NDArray,
        diagonal: NDArray,
        weight: NDArray,
        threshold: float,
        max_steps: int = MAX_CG_STEPS,
    ) -> None:
        self.max_steps = max_steps
        self.A, self.y, self.diagonal, self.weight = workspace.A, y, diagonal, weight
        self.steps, squares = 0, workspace.squares
        curvature = squares @ weight
        self.theta = float(curvature.mean())
        self._rest = diagonal + curvature
        near = diagonal < threshold * curvature
        near[diagonal.argmin()] = True  # LAPACK takes no factor of no rows
        self._near = np.flatnonzero(near)
        gain = weight * (np.where(near, 1 / diagonal, 0.0) @ squares)
        self._factor = self._factorise(workspace, np.flatnonzero(gain > 0.1 / threshold))
        self._along_b = self._solve(y)

    def __call__(self, r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        """Return (du, dlam, db)."""
        A, y, weight = self.A, self.y, self.weight
        lam = self._solve(r + A @ (weight * r_u) + self.theta * r_b * y)
        b = float((y @ lam - r_b) / (y @ self._along_b))
        lam = lam - b * self._along_b
        return weight * (lam @ A - r_u), lam, b

    def _factorise(self, workspace: Workspace, columns: NDArray) -> NDArray:
        near, root = self._near, np.sqrt(self.weight[columns])
        for shift in DIAGONAL_SHIFTS:
            matrix = workspace.product(near, columns, root, np.sqrt(self.theta) * self.y[near])
            diagonal = np.einsum("ii->i", matrix)  # a view
            diagonal[:] = (diagonal + self.diagonal[near]) * (1 + shift)
            factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
            if not failure:
                return factor
        raise NotSolved

    def _solve(self, right: NDArray) -> NDArray:
        steps = 0

        def count(_: NDArray) -> None:
            nonlocal steps
            steps += 1

        shape = (len(right), len(right))
        x, failure = cg(
            LinearOperator(shape, self._apply, dtype=float),
            right,
            x0=self._precondition(right),
            rtol=CG_TOLERANCE,
            maxiter=self.max_steps,
            M=LinearOperator(shape, self._precondition, dtype=float),
            callback=count,
        )
        if failure:
            raise NotSolved
        self.steps = max(self.steps, steps)
        return x

    def _apply(self, v: NDArray) -> NDArray:
        image = self.A @ (self.weight * (v @ self.A))
        return self.diagonal * v + image + self.theta * (self.y @ v) * self.y

    def _precondition(self, v: NDArray) -> NDArray:
        out = v / self._rest
        half = dtrsv(self._factor, v[self._near], lower=1)  # half the time of cho_solve
        out[self._near] = dtrsv(self._factor, half, lower=1, trans=1)
        return out


class Refined(ABC):
    """Equations that are solved by a factor and iterative refinement; arguments as `Reduced`."""

    def __init__(self, A: Any, y: NDArray, diagonal: NDArray, weight: NDArray) -> None:
        self.A, self.y, self.diagonal, self.inverse = A, y, diagonal, 1 / weight

    @abstractmethod
    def _solve(self, r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        """Return (du, dlam, db) by the factor."""

    def __call__(self, r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        """Return (du, dlam, db)."""
        u, lam, b = np.zeros(len(r_u)), np.zeros(len(r)), 0.0
        for _ in range(1 + MAX_REFINEMENTS):
            step = self._solve(
                r - self.diagonal * lam - self.A @ u - b * self.y,
                r_u - lam @ self.A + self.inverse * u,
                r_b - float(self.y @ lam),
            )
            u, lam, b = u + step[0], lam + step[1], b + step[2]
        return u, lam, b


class ScaledLU:
    """An LU factorisation of a symmetric matrix in equilibrated rows and columns.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Destroyed.
    """

    def __init__(self, matrix: NDArray) -> None:
        self._scale = 1 / np.sqrt(np.maximum(np.abs(matrix).max(axis=0), SMALLEST_SCALE))
        matrix *= self._scale
        matrix *= self._scale[:, None]
        self._lu = lu_factor(matrix, overwrite_a=True, check_finite=False)

    def solve(self, right: NDArray) -> NDArray:
        return self._scale * lu_solve(self._lu, self._scale * right, check_finite=False)


def safe_pivot(A: NDArray) -> float:
    """Return how large a pivot has to be that is eliminated before the rest is factorised."""
    return LARGE_PIVOT_RATIO * max(float(A.max()), -float(A.min()))


class Whole(Refined):
    """The equations as they stand.

    Pivots that are large beside the entries of A are eliminated first: columns of small Theta,
    then rows of large D by a Cholesky factor. Nothing is lost by that, and half of the time of an
    LU factorisation of everything is saved; what is left has one.
    """

    def __init__(self, A: NDArray, y: NDArray, diagonal: NDArray, weight: NDArray) -> None:
        super().__init__(A, y, diagonal, weight)
        safe = safe_pivot(A)
        self._light = np.flatnonzero(self.inverse >= safe)
        heavy = np.flatnonzero(self.inverse < safe)
        self._far, near = np.flatnonzero(diagonal >= safe), np.flatnonzero(diagonal < safe)
        self._near, self._heavy = near, heavy
        self._part = part = A[:, self._light]
        root = part / np.sqrt(self.inverse[self._light])
        rows = root @ root.T
        rows[np.diag_indices(len(y))] += diagonal
        self._factor = np.linalg.cholesky(rows[np.ix_(self._far, self._far)])
        self._coupling = np.column_stack(
            [rows[np.ix_(self._far, near)], A[np.ix_(self._far, heavy)], y[self._far]]
        )
        k = len(near)
        matrix = np.zeros((k + len(heavy) + 1,) * 2)
        matrix[:k, k:-1] = A[np.ix_(near, heavy)]
        matrix[:k, -1] = y[near]
        matrix += matrix.T
        matrix[:k, :k] = rows[np.ix_(near, near)]
        matrix[np.arange(k, k + len(heavy)), np.arange(k, k + len(heavy))] = -self.inverse[heavy]
        if len(self._far):
            image = self._forward(self._coupling)
            matrix -= image.T @ image
        self._lu = ScaledLU(matrix)

    def _solve(self, r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        light, near, far = self._light, self._near, self._far
        r = r + self._part @ (r_u[light] / self.inverse[light])
        inner = self._backward(self._forward(r[far]))
        right = np.concatenate([r[near], r_u[self._heavy], [r_b]]) - inner @ self._coupling
        left = self._lu.solve(right)
        u, lam = np.empty(len(r_u)), np.empty(len(r))
        lam[near], u[self._heavy] = left[: len(near)], left[len(near) : -1]
        lam[far] = inner - self._backward(self._forward(self._coupling @ left))
        u[light] = (lam @ self._part - r_u[light]) / self.inverse[light]
        return u, lam, float(left[-1])

    def _forward(self, v: NDArray) -> NDArray:
        return solve_triangular(self._factor, v, lower=True, check_finite=False)

    def _backward(self, v: NDArray) -> NDArray:
        return solve_triangular(self._factor, v, lower=True, trans=1, check_finite=False)
