"""The interior point's matrix where the kernel has a low numerical rank, and its Newton equations.

A smooth kernel on data of few dimensions has a Gram matrix of rank r much below n, to rounding.
With a pivoted Cholesky factor ``K = F F'`` the program's matrix is ``A = P Q'``, and with
``t = Q'du`` and ``v = P'dlam`` the Newton equations

    D dlam + P t + y db = r,    Q v - Theta^{-1} du = r_u,    y'dlam = r_b

have r-vectors in the place of the dense A. The entries of D and Theta differ by many powers of ten,
so sums like ``P'D^{-1}P`` would lose the small ones. With QR factors ``D^{-1/2} [P, y] = U [R, g]``
and ``Theta^{1/2} Q = V S`` the unknowns are ``p = U'D^{1/2} dlam`` and ``q = V'Theta^{-1/2} du``:

    p + R S'q + g db = U'D^{-1/2} r,    S R'p - q = V'Theta^{1/2} r_u,    g'p = r_b.

An iteration takes time of order ``n r^2`` instead of ``n^3``, and no n x n matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpstrf

from mmbench.machines.mmrm.newton import Refined, ScaledLU

#: Largest diagonal entry of what a factor leaves, relative to that of the Gram matrix. Rounding
#: errors of the kernel are of that size, and a factor that goes on multiplies them.
REMAINDER = 1e-14

#: Largest difference of a factor from some of the kernel's values, relative to the largest diagonal
#: entry; a given matrix may be indefinite.
MOST_DIFFERENCE = 1e-12


class LowRank:
    """``A = left @ right'``, with the products of an array.

    Parameters
    ----------
    left : ndarray of shape (n_rows, rank)
    right : ndarray of shape (n_columns, rank)
    """

    __array_ufunc__ = None  # so that ``array @ A`` comes here

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
        """Return some rows and columns."""
        return LowRank(self.left[rows], self.right[columns])

    def with_row(self, row: NDArray) -> LowRank:
        """Return the matrix with one more row."""
        left = np.zeros((len(self.left) + 1, self.left.shape[1] + 1))
        left[:-1, :-1], left[-1, -1] = self.left, 1.0
        return LowRank(left, np.column_stack([self.right, row]))


def low_rank_factor(
    diagonal: NDArray, block: Callable[[NDArray, NDArray], NDArray], most: int
) -> NDArray | None:
    """Return F with ``K = F F'`` to rounding, None where K has a higher rank than `most`.

    Only the columns of K at the pivots are formed.

    Parameters
    ----------
    diagonal : ndarray of shape (n_rows,)
        Of K; destroyed.
    block : callable
        Returns the values of K at some rows and columns.
    most : int

    Returns
    -------
    ndarray of shape (n_rows, rank) or None
    """
    n, largest = len(diagonal), float(diagonal.max())
    if most < 1 or largest <= 0:
        return None
    every, some = np.arange(n), np.linspace(0, n - 1, min(n, most + most // 4)).astype(int)
    if _rank(block(some, some), REMAINDER * largest) > most:
        return None
    factor = np.empty((most, n))
    for k in range(most):
        pivot = int(diagonal.argmax())
        if diagonal[pivot] <= REMAINDER * largest:
            found = factor[:k].T
            left = block(some, some) - found[some] @ found[some].T
            return found if np.abs(left).max(initial=0) <= MOST_DIFFERENCE * largest else None
        column = block(every, every[[pivot]])[:, 0]
        column -= factor[:k, pivot] @ factor[:k]
        factor[k] = column / np.sqrt(diagonal[pivot])
        diagonal -= factor[k] ** 2
        diagonal[pivot] = 0.0
    return None


def _rank(matrix: NDArray, remainder: float) -> int:
    """Return the numerical rank of a matrix if it is positive semidefinite; else less."""
    return int(dpstrf(matrix.T, tol=remainder, lower=1, overwrite_a=1)[2])


class OfLowRank(Refined):
    """The Newton equations of a matrix of low rank."""

    def __init__(self, A: LowRank, y: NDArray, diagonal: NDArray, weight: NDArray) -> None:
        super().__init__(A, y, diagonal, weight)
        self._row_root, self._column_root = np.sqrt(diagonal), np.sqrt(weight)
        bordered = np.column_stack([A.left, y])
        self._rows, R_rows = _qr(bordered / self._row_root[:, None])
        self._columns, R_columns = _qr(A.right * self._column_root[:, None])
        p, q, rank = len(R_rows), len(R_columns), A.left.shape[1]
        self._ends = p, p + q
        matrix = np.zeros((p + q + 1,) * 2)
        matrix[:p, p:-1] = R_rows[:, :rank] @ R_columns.T
        matrix[:p, -1] = R_rows[:, rank]
        matrix += matrix.T
        matrix[np.arange(p), np.arange(p)] = 1.0
        matrix[np.arange(p, p + q), np.arange(p, p + q)] = -1.0
        self._lu = ScaledLU(matrix)

    def _solve(self, r: NDArray, r_u: NDArray, r_b: float) -> tuple[NDArray, NDArray, float]:
        r, r_u = r / self._row_root, r_u * self._column_root
        r_in, r_u_in = r @ self._rows, r_u @ self._columns
        p, q, b = np.split(self._lu.solve(np.concatenate([r_in, r_u_in, [r_b]])), self._ends)
        lam = (self._rows @ (p - r_in) + r) / self._row_root
        u = (self._columns @ (q + r_u_in) - r_u) * self._column_root
        return u, lam, float(b[0])


def _qr(matrix: NDArray) -> tuple[NDArray, NDArray]:
    return qr(matrix, mode="economic", overwrite_a=True, check_finite=False)
