"""Symmetric systems ``(K + s I) x = r`` for many shifts s, from one reduction of K.

    K = Q T Q',   T tridiagonal (Householder)
    (K + s I)^-1 = Q (T + s I)^-1 Q'

The reduction takes 4/3 n^3 operations once, a shift O(n), and going in and out of the coordinates
of T O(n^2). The eigendecomposition that textbooks name here is this reduction plus a second
iteration on T and the eigenvectors, which cost twice as much again and are of no use to a system.

A large K stops at a band (`mmbench.solvers.band`), and of ``K = F F'`` with few columns in F only a
matrix of their number is reduced.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, qr, solve_banded

from mmbench.solvers.band import Band

#: Rows from which the reduction to a band is the faster one; below, its many parts cost more.
LARGE = 2500


class ShiftedSystems(Protocol):
    """A symmetric matrix, prepared for systems with many shifts.

    Its coordinates are orthonormal: inner products are those of the original rows.
    """

    def enter(self, columns: NDArray) -> NDArray:
        """Return ``Q'`` times some columns, shape (n, k)."""

    def solve(self, shift: complex, columns: NDArray) -> NDArray:
        """Return ``(Q'KQ + shift I)^-1`` times some columns; all in the coordinates."""

    def leave(self, columns: NDArray) -> NDArray:
        """Return ``Q`` times some columns, shape (n, k)."""


def shifted_systems(matrix: NDArray, factor: NDArray | None = None) -> ShiftedSystems:
    """Reduce a symmetric matrix in the cheapest way.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), n >= 2
        K; it is left as it is.
    factor : ndarray of shape (n, k), 2 <= k <= n, optional
        F with ``K = F F'``.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    >>> systems = shifted_systems(K)
    >>> r = systems.enter(np.array([[1.0], [0.0], [0.0]]))
    >>> x = systems.leave(systems.solve(0.5, r))
    >>> np.allclose((K + 0.5 * np.eye(3)) @ x, [[1], [0], [0]])
    True
    """
    if factor is not None:
        return Factored(factor)
    return Band(matrix) if len(matrix) >= LARGE else Tridiagonal(matrix)


class Tridiagonal:
    """K in the coordinates in which it is tridiagonal.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), n >= 2
        Symmetric; it is left as it is.
    """

    def __init__(self, matrix: NDArray):
        # The transpose of a symmetric array is itself, in the order of LAPACK.
        matrix = np.array(matrix.T, dtype=np.float64, order="F")
        work, _ = lapack.dsytrd_lwork(len(matrix), lower=1)
        reduced, self._diagonal, self._beside, self._tau, info = lapack.dsytrd(
            matrix, lower=1, lwork=int(work), overwrite_a=1
        )
        if info:
            raise ValueError(f"dsytrd refused argument {-info}")
        # Reflector i acts on the coordinates after i, as in a QR factorisation of the rows after
        # the first; so what applies such a Q applies this one. The view starts at entry (1, 0) and
        # keeps the stride, at the price of a last row that is not read.
        n = len(matrix)
        entries = reduced.ravel(order="A")
        self._reflectors = entries[1 : 1 + n * (n - 1)].reshape((n, n - 1), order="F")

    def enter(self, columns: NDArray) -> NDArray:
        """Return ``Q'`` times some columns, shape (n, k)."""
        return self._apply("T", columns)

    def leave(self, columns: NDArray) -> NDArray:
        """Return ``Q`` times some columns, shape (n, k)."""
        return self._apply("N", columns)

    def solve(self, shift: complex, columns: NDArray) -> NDArray:
        """Return ``(T + shift I)^-1`` times some columns; all in the coordinates of T."""
        bands = np.zeros((3, len(self._diagonal)), dtype=np.result_type(type(shift), np.float64))
        bands[0, 1:] = bands[2, :-1] = self._beside
        bands[1] = self._diagonal + shift
        return solve_banded((1, 1), bands, columns, overwrite_ab=True, check_finite=False)

    def _apply(self, transposed: str, columns: NDArray) -> NDArray:
        out = np.array(columns, dtype=np.float64, order="F")
        out[1:] = _reflected(transposed, self._reflectors, self._tau, out[1:])
        return out


class Factored:
    """``K = F F'`` in the coordinates of ``F = Q R``: ``R R'`` reduced, and zero in all others.

    Parameters
    ----------
    factor : ndarray of shape (n, k), 2 <= k <= n
        F; it is left as it is.
    """

    def __init__(self, factor: NDArray):
        (self._reflectors, self._tau), R = qr(factor, mode="raw", check_finite=False)
        self._rank = factor.shape[1]
        self._inner = shifted_systems(R[: self._rank] @ R[: self._rank].T)

    def enter(self, columns: NDArray) -> NDArray:
        """Return ``Q'`` times some columns, shape (n, k)."""
        out = np.array(columns, dtype=np.float64, order="F")
        out = _reflected("T", self._reflectors, self._tau, out)
        out[: self._rank] = self._inner.enter(out[: self._rank])
        return out

    def leave(self, columns: NDArray) -> NDArray:
        """Return ``Q`` times some columns, shape (n, k)."""
        out = np.array(columns, dtype=np.float64, order="F")
        out[: self._rank] = self._inner.leave(out[: self._rank])
        return _reflected("N", self._reflectors, self._tau, out)

    def solve(self, shift: complex, columns: NDArray) -> NDArray:
        """Return ``(Q'KQ + shift I)^-1`` times some columns; all in the coordinates."""
        out = columns / shift
        out[: self._rank] = self._inner.solve(shift, columns[: self._rank])
        return out


def _reflected(transposed: str, reflectors: NDArray, tau: NDArray, columns: NDArray) -> NDArray:
    """Return a product of reflectors, or its transpose, times some columns."""
    arguments = ("L", transposed, reflectors, tau, columns)
    _, work, _ = lapack.dormqr(*arguments, lwork=-1)
    out, _, _ = lapack.dormqr(*arguments, lwork=int(work[0]))
    return out
