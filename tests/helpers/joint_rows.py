"""What tests of the F-SVM share: rows in uncorrelated coordinates, and the M-step spelled out."""

from __future__ import annotations

import numpy as np

from mmbench.machines.base.voting import class_pairs, pair_rows
from mmbench.machines.fsvm.optimum import solve_pair
from mmbench.machines.fsvm.pair_svms import JointRows
from mmbench.machines.kernel_pca import Spectrum

VARIANTS = ("semi", "pg", "eps", "opt")
COSTS = (0.03, 0.3, 3.0)


def rows_of(found: Spectrum, labels: np.ndarray) -> JointRows:
    pairs = [pair_rows(labels, i, j) for i, j in class_pairs(int(labels.max()) + 1)]
    s = found.variances + 1e-8 * found.variances.mean()
    return JointRows(found.rows, s, pairs, [1.0] * len(pairs))


def random_problem(seed: int, n: int = 24, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.7 * y[:, None], y


def transform_value(M, W, s, eps=0.0) -> float:
    """``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``."""
    inverse = np.linalg.inv(M)
    return 0.5 * np.trace(W.T @ inverse @ W) + np.diagonal(M) @ s + 0.5 * eps * np.trace(inverse)


def gradient(M, W, s, eps=0.0) -> np.ndarray:
    """That of `transform_value`, equation (21)."""
    inverse = np.linalg.inv(M)
    return -0.5 * inverse @ (W @ W.T + eps * np.eye(len(s))) @ inverse + np.diag(s)


def optimum_of(rows: JointRows, C: float, tol: float = 1e-8):
    return solve_pair(rows, rows.transformed(rows.s**-0.5)[0], C, tol, 100 * tol)
