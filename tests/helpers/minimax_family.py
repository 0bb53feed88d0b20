"""What the tests of LDA, MPM, MEMPM and M4 share: data, and the covariances spelled out."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.margin_problem import MarginProblem
from mmbench.solvers.cones import ConeProgram, solve_socp

LINEAR = Kernel("linear")


def gaussians(seed=0, n_x=40, n_y=25, d=3, shift=1.5):
    """Return two overlapping classes with different covariances."""
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(n_x, d)) @ rng.normal(size=(d, d)) + shift
    z = rng.normal(size=(n_y, d)) @ rng.normal(size=(d, d))
    return np.vstack([x, z]), np.repeat([1.0, -1.0], [n_x, n_y])


def twins(seed=0, n=30, d=3, shift=2.0):
    """Return two classes of the same shape: the second is the first, moved."""
    rng = np.random.RandomState(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return np.vstack([x + shift, x]), np.repeat([1.0, -1.0], n)


def covariances(X, y, ridge=0.0):
    """Return (Sx, Sy), with the relative ridge of the linear machines."""
    out = []
    for side in (y > 0, y < 0):
        S = np.cov(X[side].T, bias=True).reshape(X.shape[1], X.shape[1])
        out.append(S + ridge * np.trace(S) / len(S) * np.eye(len(S)))
    return out


def kernel_forms(K, y, ridge):
    """Return the matrices of squared spreads over coefficients (M4 paper, proposition 1)."""
    out = []
    for side in (y > 0, y < 0):
        centred = K[side] - K[side].mean(axis=0)
        out.append(centred.T @ centred / side.sum() + ridge * np.trace(K) / len(K) * K)
    return out


def spread(a, form):
    return float(np.sqrt(a @ form @ a))


def problem(X, y, kernel=LINEAR):
    return BinaryProblem(np.asarray(X, dtype=float), np.asarray(y, dtype=float), kernel)


def minmax(X):
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def affine(X, seed=0):
    """Return the rows after an invertible map and a shift, neither of them mild."""
    rng = np.random.RandomState(seed)
    A = rng.normal(size=(X.shape[1], X.shape[1])) + 2 * np.eye(X.shape[1])
    return X @ A + 10 * rng.normal(size=X.shape[1])


def random_problem(seed, n=30, k=4, C=0.3, removed=0):
    rng = np.random.RandomState(seed)
    y = np.where(np.arange(n) < n // 3, 1.0, -1.0)
    rows = rng.normal(size=(n, k)) + 0.6 * y[:, None]
    delta = rows[y > 0].mean(axis=0) - rows[y < 0].mean(axis=0)
    var_x = rng.rand(k)
    return MarginProblem(rows, y, delta, var_x, 1 - var_x, C, removed)


def cone_program_value(X, y, spreads, C=None, A=None, weights=1.0):
    """Return the optimum of the M4 in the original features: one cone per pair (root, factor).

    The objective is the sum of ``factor ||root w||`` plus C times the slacks or, given A, the sum
    of slacks, with a sum of spreads of at most 2/A.
    """
    n, d, m = *X.shape, len(spreads)
    weights, factors = weights * np.ones(n), np.array([factor for _, factor in spreads])
    margins = np.column_stack([y[:, None] * X, y, np.zeros((n, m)), np.eye(n)])
    linear = [np.eye(d + 1 + m + n)[-n:], margins]
    sides = np.append(np.zeros(n), -np.ones(n))
    cost = np.concatenate([np.zeros(d + 1), factors, (C or 1.0) * weights])
    if A is not None:
        linear.append(-np.concatenate([np.zeros(d + 1), factors, np.zeros(n)])[None])
        sides, cost[d + 1 : d + 1 + m] = np.append(sides, 2.0 / A), 0.0
    cones = np.zeros((m, 1 + d, d + 1 + m + n))
    cones[np.arange(m), 0, d + 1 + np.arange(m)] = 1.0
    cones[:, 1:, :d] = [root for root, _ in spreads]
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array((0, len(cost))),
        b=np.zeros(0),
        G=-sparse.csc_array(np.vstack([*linear, cones.reshape(-1, len(cost))])),
        h=np.append(sides, np.zeros(m * (1 + d))),
        n_linear=len(sides),
        cones=(1 + d,) * m,
    )
    return solve_socp(program, tol=1e-11).value
