"""The dual (8) of the relative margin machine: as a `PiecewiseQP`, and as the paper prints it."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.kernels.matrix import KernelMatrix
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution

#: Tolerance of the interior point, unless a smaller one is asked for.
REFERENCE_TOLERANCE = 1e-9


def rmm_dual(
    gram: NDArray | KernelMatrix,
    y: NDArray,
    C: float | NDArray,
    B: float,
    cap: float | NDArray = np.inf,
) -> PiecewiseQP:
    """Return (8), its sign changed, with alpha, lambda and lambda* at their best for a given u.

    Between 0 and ``y_i C`` it is alpha that moves and u_i costs ``-y_i u_i``; below, lambda moves
    at a cost of B; above, lambda*. `cap` is an upper bound of each lambda and lambda*, which (14)
    has; C and it may be of each row. For B < 1 it pays to have alpha = lambda = C at u = 0, so that
    the middle slope is B too.
    """
    ends = np.sort(np.column_stack([0 * y, C * y]), axis=1)
    slope = np.full(len(y), B)
    return PiecewiseQP(
        gram,
        knots=np.column_stack([ends[:, 0] - cap, ends, ends[:, 1] + cap]),
        slopes=np.column_stack([-slope, -min(1, B) * y, slope]),
        constant=-float(np.sum(C + 0 * y)) * max(0.0, 1 - B),
    )


def solve_paper_dual(
    dual: PiecewiseQP,
    y: NDArray,
    C: float | NDArray,
    B: float,
    tol: float,
    cap: float | NDArray = np.inf,
    total: float | None = None,
) -> PiecewiseSolution:
    """Solve (8) as it stands by an interior point, in the variables (u, alpha, lambda, lambda*).

    Parameters
    ----------
    dual : PiecewiseQP
        The same problem, by which the solution is certified; see `rmm_dual`.
    y : ndarray of shape (n_samples,)
    C : float or ndarray of shape (n_samples,)
    B, tol : float
    cap : float or ndarray of shape (n_samples,), default=inf
        Upper bound of each lambda and lambda*.
    total : float, optional
        Upper bound of their sum, which (13) and (14) have.
    """
    from mmbench.solvers.clarabel_ import solve_qp

    n, limited = len(y), int(total is not None)
    none, ones, eye = np.zeros(n), np.ones((1, n)), sparse.eye_array(n)
    rows = [[ones, None, None, None, None], [eye, -sparse.diags_array(y), eye, -eye, None]]
    if limited:
        rows.append([None, None, ones, ones, np.ones((1, 1))])
    multipliers = sparse.coo_array((3 * n + limited, 3 * n + limited))
    found = solve_qp(
        P=sparse.csc_array(sparse.block_diag([dual.gram, multipliers])),
        q=np.repeat([0.0, -1.0, B, 0.0], [n, n, 2 * n, limited]),
        A=sparse.csc_array(sparse.block_array([row[: 4 + limited] for row in rows])),
        b=np.concatenate([[0.0], none, [total] * limited]),
        lower=np.repeat([-np.inf, 0.0], [n, 3 * n + limited]),
        upper=np.concatenate([none + np.inf, none + C, none + cap, none + cap, [np.inf] * limited]),
        tol=min(tol, REFERENCE_TOLERANCE),
    )
    u = dual.feasible(found.x[:n])
    bias = float(found.multipliers[0])
    return dual.solution(u, dual.gram @ u, bias, found.iterations, found.status)
