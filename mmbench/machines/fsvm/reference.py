"""The optimum of the F-SVM as one cone program: the reference of `fsvm_exact` and `fsvm_shared`.

    min  sqrt(2) g + C sum xi    subject to   t_i (q_i'v_p + b_p) >= 1 - xi_i,  xi >= 0

with whitened rows q_i, and g no smaller than the length of v for one pair (a second-order cone),
than the sum of singular values of V for several:

    g = (tr P + tr R) / 2,    [P V; V' R] positive semidefinite
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.fsvm.alternation import Rows
from mmbench.machines.fsvm.optimum import Optimum
from mmbench.solvers.cone_program import ConeProgram, solve_socp


def solve_cone(rows: Rows, C: float) -> Optimum:
    """Minimise F* with Clarabel; see the module.

    Parameters
    ----------
    rows : Rows
    C : float

    Returns
    -------
    Optimum
    """
    return _pair(rows, C) if len(rows.pairs) == 1 else _pairs(rows, C)


def _pair(rows: Rows, C: float) -> Optimum:
    _, y = rows.pairs[0]
    k, n = len(rows.s), len(y)
    margins = sparse.hstack([sparse.csr_array((n, 1)), _margins(rows, 0), sparse.eye_array(n)])
    slack = sparse.hstack([sparse.csr_array((n, k + 2)), sparse.eye_array(n)])
    cone = sparse.hstack([sparse.eye_array(k + 1), sparse.csr_array((k + 1, n + 1))])
    program = ConeProgram(
        c=np.concatenate([[sqrt(2.0)], np.zeros(k + 1), np.full(n, C)]),
        A=sparse.csc_array((0, k + 2 + n)),
        b=np.zeros(0),
        G=sparse.csc_array(-sparse.vstack([margins, slack, cone])),
        h=np.concatenate([-np.ones(n), np.zeros(n + k + 1)]),
        n_linear=2 * n,
        cones=(k + 1,),
    )
    found = solve_socp(program)
    return _optimum(
        rows,
        found.x[1 : k + 1, None],
        found.x[k + 1 : k + 2],
        found.value,
        found.bound,
        [y * found.z[:n]],
        found.violation,
        found.iterations,
        found.status,
    )


def _margins(rows: Rows, p: int) -> sparse.csr_array:
    """Return the rows ``t_i (q_i', 1)`` of pair p."""
    index, y = rows.pairs[p]
    whitened = rows.Z[index] / np.sqrt(rows.s)
    return sparse.csr_array(y[:, None] * np.column_stack([whitened, np.ones(len(y))]))


def _pairs(rows: Rows, C: float) -> Optimum:
    """Solve the semidefinite program in the columns (v_p, b_p), the slacks, and P and R."""
    k, n_pairs = len(rows.s), len(rows.pairs)
    size, n = k + n_pairs, sum(len(y) for _, y in rows.pairs)
    n_planes = n_pairs * (k + 1)
    margins = sparse.hstack(
        [sparse.block_diag([_margins(rows, p) for p in range(n_pairs)]), sparse.eye_array(n)]
    )
    slack = sparse.hstack([sparse.csr_array((n, n_planes)), sparse.eye_array(n)])
    matrix, free = _matrix(k, n_pairs)
    linear = sparse.vstack([margins, slack])
    empty = sparse.csr_array((2 * n, len(free)))
    top = sparse.hstack([linear, empty])
    low = sparse.hstack(
        [matrix[:, :n_planes], sparse.csr_array((matrix.shape[0], n)), matrix[:, n_planes:]]
    )
    traces = np.array([i == j for i, j in free], dtype=float)
    cost = np.concatenate([np.zeros(n_planes), np.full(n, C), 0.5 * sqrt(2.0) * traces])
    found = solve_socp(
        ConeProgram(
            c=cost,
            A=sparse.csc_array((0, len(cost))),
            b=np.zeros(0),
            G=sparse.csc_array(-sparse.vstack([top, low])),
            h=np.concatenate([-np.ones(n), np.zeros(n + matrix.shape[0])]),
            n_linear=2 * n,
            cones=(),
            matrix_order=size,
        )
    )
    x, z = found.x, found.z
    planes = x[:n_planes].reshape(n_pairs, k + 1)
    ends = np.cumsum([len(y) for _, y in rows.pairs])[:-1]
    return _optimum(
        rows,
        planes[:, :k].T,
        planes[:, k],
        found.value,
        found.bound,
        [y * a for (_, y), a in zip(rows.pairs, np.split(z[:n], ends), strict=True)],
        found.violation,
        found.iterations,
        found.status,
    )


def _matrix(k: int, n_pairs: int) -> tuple[sparse.csr_array, list[tuple[int, int]]]:
    """Return the map of (columns (v_p, b_p), entries of P and R) to the matrix as a vector.

    Clarabel wants the upper triangle by columns, what is off the diagonal times sqrt(2).
    """
    size, n_planes = k + n_pairs, n_pairs * (k + 1)
    upper = [(i, j) for j in range(size) for i in range(j + 1)]
    free = [(i, j) for i, j in upper if not (i < k <= j)]
    column = {place: n_planes + c for c, place in enumerate(free)}
    column |= {(i, k + p): p * (k + 1) + i for i in range(k) for p in range(n_pairs)}
    values = [1.0 if i == j else sqrt(2.0) for i, j in upper]
    shape = (len(upper), n_planes + len(free))
    places = (np.arange(len(upper)), [column[place] for place in upper])
    return sparse.csr_array((values, places), shape=shape), free


def _optimum(
    rows: Rows,
    V: NDArray,
    b: NDArray,
    value: float,
    bound: float,
    u: list[NDArray],
    violation: float,
    iterations: int,
    status: Status,
) -> Optimum:
    W = V / np.sqrt(rows.s)[:, None]
    each = [iterations] * len(rows.pairs)
    return Optimum(W, b, value, bound, u, violation, 1, each, status, None)
