"""What the tests of LDA, MPM, MEMPM and M4 share: data, and the covariances spelled out."""

from __future__ import annotations

import numpy as np

from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.margin_problem import MarginProblem

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
