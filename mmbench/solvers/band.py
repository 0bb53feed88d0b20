"""Reduction of a large symmetric matrix to a band, by products of matrices alone.

    K = Q B Q',   B_ij = 0 for |i - j| > WIDTH

The reduction to a tridiagonal matrix takes as many operations, but half of them are products of a
matrix with one vector, for which all of it is read from memory each time. Householder's reflectors
of WIDTH columns at once are applied together, ``I - V T V'``, and a system in B costs a number of
operations that is small beside n^2: the first stage of the two-stage algorithm for eigenvalues
suffices.

References
----------
C. Bischof, B. Lang, X. Sun: A framework for symmetric band reduction. ACM Transactions on
Mathematical Software 26, 2000.
R. Schreiber, C. Van Loan: A storage-efficient WY representation for products of Householder
transformations. SIAM Journal on Scientific and Statistical Computing 10, 1989.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_banded, solve_triangular

#: Off-diagonals that B keeps on each side.
WIDTH = 128

#: Columns of the remaining matrix that one product reads, below the diagonal only.
BLOCK = 512


class Band:
    """A symmetric matrix in coordinates in which it is a band; as `shifted.Tridiagonal`.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric; it is left as it is.
    width : int, default=WIDTH
        Off-diagonals on each side.
    """

    def __init__(self, matrix: NDArray, width: int = WIDTH):
        # The transpose of a symmetric array is itself, in the order of LAPACK.
        self._reduced = np.array(matrix.T, dtype=np.float64, order="F")
        self._width = width
        n = len(self._reduced)
        #: For each group of reflectors its first row and the triangle T.
        self._groups: list[tuple[int, NDArray]] = []
        bands = []
        for start in range(0, n - width - 1, width):
            bands.append(self._reduce(start))
        done = len(bands) * width
        rest = self._reduced[done:, done:]
        self._lower = np.hstack([*bands, _below(rest, width)])

    def enter(self, columns: NDArray) -> NDArray:
        """Return ``Q'`` times some columns, shape (n, k)."""
        out = np.array(columns, dtype=np.float64)
        for row, T in self._groups:
            V = self._reflectors(row)
            out[row:] -= V @ (T.T @ (V.T @ out[row:]))
        return out

    def leave(self, columns: NDArray) -> NDArray:
        """Return ``Q`` times some columns, shape (n, k)."""
        out = np.array(columns, dtype=np.float64)
        for row, T in reversed(self._groups):
            V = self._reflectors(row)
            out[row:] -= V @ (T @ (V.T @ out[row:]))
        return out

    def solve(self, shift: complex, columns: NDArray) -> NDArray:
        """Return ``(B + shift I)^-1`` times some columns; all in the coordinates of B."""
        k, n = self._lower.shape[0] - 1, self._lower.shape[1]
        bands = np.zeros((2 * k + 1, n), dtype=np.result_type(type(shift), np.float64))
        bands[k:] = self._lower
        bands[k] += shift
        for d in range(1, k + 1):
            bands[k - d, d:] = self._lower[d, : n - d]
        return solve_banded((k, k), bands, columns, overwrite_ab=True, check_finite=False)

    def _reduce(self, start: int) -> NDArray:
        """Clear the columns from `start` on below the band; return their part of it.

        Their reflectors take the place of what is cleared. With ``X = A V T`` and ``W = X -
        1/2 V T'V'X`` the matrix A after these columns becomes ``A - V W' - W V'``.
        """
        width, row = self._width, start + self._width
        panel = self._reduced[row:, start:row]
        panel[:], tau, _, _ = lapack.dgeqrf(panel)
        band = _below(self._reduced[start:, start:row], width)
        V = self._reflectors(row)
        T = _triangle(V, tau)
        self._groups.append((row, T))
        rest = self._reduced[row:, row:]
        X = _product(rest, V) @ T
        W = X - 0.5 * (V @ (T.T @ (V.T @ X)))
        left, right = np.hstack([V, W]), np.hstack([W, V])
        for c in range(0, len(rest), BLOCK):
            rest[c:, c : c + BLOCK] -= left[c:] @ right[c : c + BLOCK].T
        return band

    def _reflectors(self, row: int) -> NDArray:
        """Return V of the reflectors that act from a row on."""
        panel = self._reduced[row:, row - self._width : row]
        V = np.tril(panel[:, : len(panel)], -1)
        np.fill_diagonal(V, 1.0)
        return V


def _below(columns: NDArray, width: int) -> NDArray:
    """Return the first diagonals of some columns from their first row down, shape (width + 1, k).

    Of a cleared part what stands below its triangle are reflectors, and no diagonal reaches them.
    """
    out = np.zeros((width + 1, columns.shape[1]))
    for d in range(min(width + 1, len(columns))):
        diagonal = np.diagonal(columns, -d)
        out[d, : len(diagonal)] = diagonal
    return out


def _triangle(V: NDArray, tau: NDArray) -> NDArray:
    """Return T with ``H_1 H_2 ... = I - V T V'``, H_j the reflector of column j of V."""
    idle = tau == 0  # the identity: LAPACK's sign for nothing to clear
    inverse = np.triu(V.T @ V, 1)
    inverse[idle] = inverse[:, idle] = 0.0
    inverse[np.diag_indices(len(tau))] = 1.0 / np.where(idle, 1.0, tau)
    T = solve_triangular(inverse, np.eye(len(tau)), check_finite=False)
    T[np.diag_indices(len(tau))] = tau
    return T


def _product(lower: NDArray, V: NDArray) -> NDArray:
    """Return a symmetric matrix, of which the lower triangle is read, times some columns."""
    out = np.zeros_like(V)
    for c in range(0, len(lower), BLOCK):
        own = slice(c, c + BLOCK)
        corner = np.tril(lower[own, own])
        out[own] += corner @ V[own] + np.tril(corner, -1).T @ V[own]
        below = lower[c + BLOCK :, own]
        out[c + BLOCK :] += below @ V[own]
        out[own] += below.T @ V[c + BLOCK :]
    return out
