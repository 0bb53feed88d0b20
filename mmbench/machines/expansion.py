"""Decision functions as expansions over training rows, computed in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmbench.kernels import Kernel
from mmbench.machines.problem import BinaryModel

#: Rows of a kernel block in prediction are chosen so that one block stays below this many bytes.
BLOCK_BYTES = 64 * 2**20


def expand(kernel: Kernel, X: NDArray, support: NDArray, coef: NDArray) -> NDArray:
    """Return ``sum_i coef[p, i] k(support[i], x)``, shape (len(X), len(coef)), block by block."""
    out = np.zeros((len(X), len(coef)), dtype=coef.dtype)
    if not len(support):
        return out
    step = max(1, BLOCK_BYTES // (coef.itemsize * max(1, len(support))))
    for start in range(0, len(X), step):
        block = kernel(X[start : start + step], support, dtype=coef.dtype)
        out[start : start + step] = block @ coef.T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return w of a linear machine, from its expansion over the training rows if need be."""
    return X.T @ model.coef if model.w is None else model.w


def is_finite(model: BinaryModel) -> bool:
    """Whether all numbers of a model are finite."""
    numbers = (part for part in (model.intercept, model.coef, model.w) if part is not None)
    return all(np.isfinite(part).all() for part in numbers)
