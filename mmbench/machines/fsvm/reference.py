"""The optimum of the F-SVM by one cone program, to check the results of the module `optimum`.

    min  sqrt(2) g + C sum xi    subject to   t_i (q_i'v_p + b_p) >= 1 - xi_i,  xi >= 0

The rows q_i are whitened, v_p is the normal vector of pair p, and g is at least the norm of v for
one pair. For several, g is at least the sum of the singular values of V = (v_p):

    g = (tr P + tr R) / 2,    [[P, V], [V', R]] positive semidefinite
"""

from math import sqrt
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced
from mmbench.machines.fsvm.pair_svms import (
    JointRows,
    JointSolution,
    infimum_root,
    lower_bound,
    majority,
)
from mmbench.solvers.cones import ConeProgram, solve_socp


def solve_reference(rows: JointRows, C: float) -> JointSolution:
    """Compute the optimum of the F-SVM by one cone program (Clarabel).

    The objective and the lower bound are computed from the hyperplanes and the multipliers.
    """
    k, n_pairs = len(rows.s), len(rows.pairs)
    n, n_planes = sum(len(y) for _, y in rows.pairs), n_pairs * (k + 1)
    # if C is below 1, the objective is divided by C: the multipliers are at most C, and a tiny C
    # would be below Clarabel's tolerance
    unit = min(C, 1.0)
    norm, cost, cone = (_length if n_pairs == 1 else _nuclear_norm)(k, n_pairs)
    margins = sparse.block_diag([_margins(rows, p) for p in range(n_pairs)])
    planes = sparse.vstack([margins, sparse.csr_array((n, n_planes))])
    slack = sparse.vstack([sparse.eye_array(n)] * 2)
    linear = sparse.hstack([planes, slack, sparse.csr_array((2 * n, len(cost)))])
    beside = sparse.csr_array((norm.shape[0], n))
    bounded = sparse.hstack([norm[:, :n_planes], beside, norm[:, n_planes:]])
    program = ConeProgram(
        c=np.concatenate([np.zeros(n_planes), C * np.concatenate(rows.costs), cost]) / unit,
        A=sparse.csc_array((0, n_planes + n + len(cost))),
        b=np.zeros(0),
        G=sparse.csc_array(-sparse.vstack([linear, bounded])),
        h=np.concatenate([-np.ones(n), np.zeros(n + norm.shape[0])]),
        n_linear=2 * n,
        **cone,
    )
    found = solve_socp(program)
    planes = found.x[:n_planes].reshape(n_pairs, k + 1)
    V, b = planes[:, :k].T, planes[:, k]
    value = sqrt(2.0) * float(np.linalg.norm(V, "nuc"))
    multipliers = np.split(unit * found.z[:n], np.cumsum([len(y) for _, y in rows.pairs])[:-1])
    u, Q = [], []
    for p, (index, y) in enumerate(rows.pairs):
        costs = C * rows.costs[p]
        value += float(costs @ np.maximum(0.0, 1.0 - _margins(rows, p) @ planes[p]))
        u.append(y * balanced(multipliers[p], y, costs))
        Q.append(rows.Z[index].T @ u[p])
    # w = 0 is the better solution if C is small
    value, W, b = min(
        (value, V / np.sqrt(rows.s)[:, None], b), majority(rows, C), key=itemgetter(0)
    )
    return JointSolution(
        W=W,
        b=b,
        u=u,
        root=infimum_root(W, rows.s),
        value=value,
        bound=lower_bound(np.column_stack(Q), float(np.abs(np.concatenate(u)).sum()), rows.s),
        violation=0.0,
        values=[value],
        rounds=1,
        iterations=found.iterations,
        pair_iterations=[found.iterations] * n_pairs,
        # Clarabel's status is not used, since Clarabel may call a badly scaled program infeasible,
        # but the F-SVM always has an optimum. The caller changes the status if the gap is too
        # large.
        status=Status.OPTIMAL if W.any() else Status.TRIVIAL,
        route="reference",
    )


def _margins(rows: JointRows, p: int) -> sparse.csr_array:
    """Return the matrix of the margin constraints of pair p, with the rows ``t_i (q_i', 1)``."""
    index, y = rows.pairs[p]
    whitened = rows.Z[index] / np.sqrt(rows.s)
    return sparse.csr_array(y[:, None] * np.column_stack([whitened, np.ones(len(y))]))


def _length(k: int, n_pairs: int) -> tuple[sparse.csr_array, NDArray, dict]:
    """Return the parts of the cone program for the norm of v, for one pair of classes.

    The parts are the matrix that maps (v, b, g) to (g, v), the cost sqrt(2) of g, and the
    second-order cone ``||v|| <= g``.
    """
    order = np.append(k + 1, np.arange(k))
    norm = sparse.csr_array((np.ones(k + 1), (np.arange(k + 1), order)), shape=(k + 1, k + 2))
    return norm, np.array([sqrt(2.0)]), {"cones": (k + 1,)}


def _nuclear_norm(k: int, n_pairs: int) -> tuple[sparse.csr_array, NDArray, dict]:
    """Return the parts of the cone program for the nuclear norm of V.

    The parts are the matrix that maps the variables to the entries of ``[[P, V], [V', R]]``, the
    costs of the entries of P and R, and the semidefinite cone.
    """
    size, n_planes = k + n_pairs, n_pairs * (k + 1)
    upper = [(i, j) for j in range(size) for i in range(j + 1)]
    free = [(i, j) for i, j in upper if not (i < k <= j)]
    # the variables are (v_p, b_p) for each pair p, followed by the entries of P and R
    column = {place: n_planes + c for c, place in enumerate(free)}
    column |= {(i, k + p): p * (k + 1) + i for i in range(k) for p in range(n_pairs)}
    values = [1.0 if i == j else sqrt(2.0) for i, j in upper]
    places = (np.arange(len(upper)), [column[place] for place in upper])
    norm = sparse.csr_array((values, places), shape=(len(upper), n_planes + len(free)))
    traces = np.array([0.5 * sqrt(2.0) * (i == j) for i, j in free])
    return norm, traces, {"cones": (), "matrix_order": size}
