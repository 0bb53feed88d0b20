"""Decision functions as expansions over training rows, computed in blocks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from mmbench.kernels import Kernel
from mmbench.kernels.rows import KernelRows
from mmbench.machines.problem import BinaryModel

#: Rows of a kernel block in prediction are chosen so that one block stays below this many bytes.
BLOCK_BYTES = 2**24

#: Rows are far from the origin if their variance is less than this share of their mean square:
#: products with them then lose more digits than a linear machine has to lose.
FAR_VARIANCE_SHARE = 1e-4


def expand(kernel: Kernel, X: NDArray, support: NDArray, coef: NDArray) -> NDArray:
    """Return ``sum_i coef[p, i] k(support[i], x)``, shape (len(X), len(coef)), block by block."""
    n, n_support = X.shape[0], support.shape[0]  # a sparse array has no length
    out = np.zeros((n, len(coef)), dtype=coef.dtype)
    if not n_support:
        return out
    expansion = KernelRows(kernel, support, dtype=coef.dtype)
    step = max(1, BLOCK_BYTES // (coef.itemsize * n_support))
    for start in range(0, n, step):
        block: Any = X[start : start + step]
        if issparse(block) != issparse(support):  # rows are moved or not, all alike
            block = csr_array(block) if issparse(support) else block.toarray()
        rows = KernelRows(kernel, block, expansion.centre, coef.dtype)
        out[start : start + step] = rows.values(expansion) @ coef.T
    return out


def linear_weights(X: NDArray, model: BinaryModel) -> NDArray:
    """Return w of a linear machine, from its expansion over the training rows if need be."""
    return X.T @ model.coef if model.w is None else model.w


def is_finite(model: BinaryModel) -> bool:
    """Whether all numbers of a model are finite."""
    numbers = (part for part in (model.intercept, model.coef, model.w) if part is not None)
    return all(np.isfinite(part).all() for part in numbers)


def far_origin(X: NDArray) -> NDArray | None:
    """Return the mean of rows that lie so far from zero that digits would be lost, else None.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> far_origin(X), far_origin(X + 1e6)
    (None, array([1000000.5, 1000000.5]))
    """
    if not isinstance(X, np.ndarray):  # zeros of sparse rows hold them near zero
        return None
    mean = X.mean(axis=0)
    square = float(np.einsum("ij,ij->", X, X)) / len(X)  # of the mean, plus the variances
    return mean if mean @ mean > (1 - FAR_VARIANCE_SHARE) * square else None


def around(X: NDArray, origin: NDArray | None) -> NDArray:
    """Return rows counted from an origin; None is zero, and makes no copy."""
    return X if origin is None else X - origin
