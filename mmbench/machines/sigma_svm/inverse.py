"""The Sigma-SVM's kernel at one D by an inverse: a decomposition takes ten times as long.

With Kc the centred Gram matrix of n rows and ``s = n (1-D)/D`` the kernel (4) between these rows is

    Kc ((1-D) I + D/n Kc)^-1 = (n/D) (I - s P),    P = (Kc + s I)^-1

and the machine with the multipliers u has the coefficients ``(n/D) P u`` over the rows. A Cholesky
factor and the inverse from it take n^3 operations, and one array beside the Gram matrix (5 to 8
times faster: benchmarks/sigma_inverse.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mmbench.kernels import CHUNK_ROWS
from mmbench.machines.problem import BinaryProblem

#: Least mean eigenvalue of Kc relative to s: below, ``I - s P`` is a difference of near equals.
LEAST_EIGENVALUE_RATIO = 1e-7

#: Least s relative to the trace of Kc: below, a Cholesky factor is one of rounding errors.
LEAST_SHIFT = 1e-9


@dataclass(frozen=True)
class InverseKernel:
    """The matrix of (4) at one D, and the way back to the kernel of the data."""

    #: Of (4). Shape (n, n).
    gram: NDArray
    #: Of the columns of the kernel's own matrix. Shape (n,).
    means: NDArray
    D: float

    def original(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return coefficients over the rows and the intercept of multipliers u and a bias."""
        n, D = len(u), self.D
        weights = u
        if D > 0:
            weights = ((n / D) * u - self.gram @ u) * (D / (n * (1 - D)))
            weights -= weights.mean()  # 1'u = 0, and 1 is an eigenvector of P
        return weights, b - float(self.means @ weights)


def inverse_kernel(problem: BinaryProblem, D: float) -> InverseKernel | None:
    """Return (4) between the training rows; None where rounding would count, as at D = 1.

    Parameters
    ----------
    problem : BinaryProblem
        Of two rows at least.
    D : float
        From 0 to 1.
    """
    given = problem.gram
    n, means = len(given), given.mean(axis=0, dtype=np.float64)
    # The transpose of a symmetric array is itself, in the order of LAPACK.
    matrix = np.array(given.T, dtype=np.float64, order="F")
    matrix -= means
    matrix -= (means - means.mean())[:, None]
    if D == 0:
        _mirror(matrix)  # what was taken off in two steps is not symmetric to the last digit
        return InverseKernel(matrix.T, means, D)
    trace, s = float(np.trace(matrix)), n * (1 - D) / D
    if s < LEAST_SHIFT * trace or trace < LEAST_EIGENVALUE_RATIO * n * s:
        return None
    matrix[np.diag_indices(n)] += s
    factor, failed = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=0)
    if failed:
        return None
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse *= -s * n / D
    inverse[np.diag_indices(n)] += n / D
    _mirror(inverse)  # LAPACK leaves the upper triangle alone
    return InverseKernel(inverse.T, means, D)


def _mirror(matrix: NDArray) -> None:
    """Copy the lower triangle to the upper one."""
    for start in range(0, len(matrix), CHUNK_ROWS):
        own = slice(start, start + CHUNK_ROWS)
        corner = np.tril(matrix[own, own])
        matrix[own, own] = corner + np.tril(corner, -1).T
        matrix[own, start + CHUNK_ROWS :] = matrix[start + CHUNK_ROWS :, own].T
