"""The dual SVM whose kernel is a diagonal quadratic form of the rows, ``K = Z M Z'``.

Trained many times over for nearby M, it starts from the rows that were free last time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.svm_dual.active_set import settle
from mmbench.solvers.svm_dual.problem import PiecewiseQP
from mmbench.solvers.svm_dual.smo import solve_smo

#: Tolerance of pairwise steps, in units of f: they only have to find which rows are free.
LOOSE = 1e-3

#: A row of multipliers needs pairwise steps at most this many times its length, per round.
STEPS_PER_ROW = 200


def train_scaled(
    rows: NDArray, metric: NDArray, y: NDArray, C: float, u: NDArray, tol: float
) -> NDArray:
    """Return u of the SVM: by its free rows, or pairwise steps first.

    Where there is nothing to start from, kernel values in single precision find the free rows.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Z.
    metric : ndarray of shape (k,)
        Diagonal of M.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    C : float
    u : ndarray of shape (n,)
        Signed multipliers of a neighbouring problem; zero where there is none.
    tol : float
        Of the pairwise steps; free rows that settle are exact.

    Returns
    -------
    ndarray of shape (n,)
    """
    cold = not u.any()
    found = None if cold else settle(rows, metric, y, C, u)
    if found is not None:
        return found
    u = _pairwise(rows, metric, y, C, u, LOOSE if cold else tol, np.float32 if cold else np.float64)
    found = settle(rows, metric, y, C, u)
    return u if found is None else found


def _pairwise(
    rows: NDArray,
    metric: NDArray,
    y: NDArray,
    C: float,
    u: NDArray,
    tol: float,
    dtype: type,
) -> NDArray:
    scaled = (rows * np.sqrt(metric)).astype(dtype, copy=False)
    ends = np.outer(C * y, [0.0, 1.0])
    dual = PiecewiseQP(scaled @ scaled.T, np.sort(ends, axis=1), -y[:, None])
    return solve_smo(dual, u, tol, STEPS_PER_ROW * len(u)).u
