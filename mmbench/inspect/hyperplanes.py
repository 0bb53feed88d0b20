"""The hyperplanes and kernel functions of fitted classifiers of mmbench and of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from mmbench.errors import UserError
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import PRECOMPUTED

#: Relative rounding error of kernel values in float32.
FLOAT32 = 1e-6

LINEAR = Kernel("linear")


class Hyperplane(NamedTuple):
    """The hyperplane of a pair of classes, ``f(z) = sum_i coef_i k(support_i, z) + b``."""

    pair: tuple
    kernel: Callable[[Any, Any], NDArray]
    support: NDArray
    coef: NDArray
    b: float

    def projections(self, rows: NDArray) -> NDArray:
        """Return the projection w'phi(z) of each row z; zeros if there are no support vectors."""
        if not len(self.coef):
            return np.zeros(len(rows))
        return self.kernel(rows, self.support) @ self.coef


def hyperplanes(
    machine: Any, X: NDArray, rows: NDArray, y: NDArray, kernel: Any
) -> Iterator[Hyperplane]:
    """Yield one hyperplane per pair of classes; the second class has positive decision values."""
    if isinstance(machine, tuple):
        normals, b = np.atleast_2d(machine[0]).astype(float), np.atleast_1d(machine[1])
        pairs = list(combinations(np.unique(y), 2))
        if not len(pairs) == len(normals) == len(b):
            given = f"{len(normals)} normals and {len(b)} biases"
            raise UserError(f"{given} for {len(pairs)} pairs of classes")
        for pair, normal, own in zip(pairs, normals, b, strict=True):
            if kernel is None:
                yield _linear(pair, normal, own)
            else:
                values = kernel_function(SimpleNamespace(kernel=kernel), X)
                yield Hyperplane(pair, values, rows, normal, float(own))
    elif hasattr(machine, "fits_") and hasattr(machine, "coef_"):
        for fit, w, own in zip(machine.fits_, machine.coef_, machine.intercept_, strict=True):
            yield _linear(fit.pair, w, own)
    elif hasattr(machine, "dual_coef_") and hasattr(machine, "classes_"):
        foreign = not hasattr(machine, "fits_")
        if machine.kernel == PRECOMPUTED or (callable(machine.kernel) and foreign):
            _check_support(machine, X, y)
            support = rows[machine.support_]
        else:
            support = dense(machine.support_vectors_)
        for k, (pair, coef, own) in enumerate(pair_coefficients(machine)):
            yield Hyperplane(pair, kernel_function(machine, X, k), support, coef, own)
    elif hasattr(machine, "coef_") and hasattr(machine, "classes_"):
        w = np.atleast_2d(machine.coef_)
        b = np.broadcast_to(machine.intercept_, len(w))
        if len(w) == 1:  # for two classes, `coef_` is the vector w of the second class
            w, b = np.vstack([np.zeros_like(w), w]), np.append(0.0, b)
        for i, j in combinations(range(len(w)), 2):
            yield _linear(tuple(machine.classes_[[i, j]]), w[j] - w[i], b[j] - b[i])
    else:
        why = "it is not fitted, or has neither dual coefficients nor coef_"
        pipeline = "for a Pipeline, pass the last step and the transformed rows"
        raise UserError(f"{type(machine).__name__} has no hyperplanes: {why}; {pipeline}")


def _linear(pair: tuple, w: NDArray, b: float) -> Hyperplane:
    return Hyperplane(pair, LINEAR, w[None], np.ones(1), float(b))


def dense(rows: Any) -> NDArray:
    """Return the values of a sparse or dense array as a dense array."""
    return rows.toarray() if issparse(rows) else np.asarray(rows)


def pair_coefficients(model: Any) -> Iterator[tuple[tuple, NDArray, float]]:
    """Yield each pair of classes with the coefficients of the support vectors and the intercept.

    Positive decision values mean the second class. For more than two classes, scikit-learn's SVC
    has the opposite sign, so its coefficients and intercepts are negated. For the pair i < j, they
    are in row j - 1 of ``dual_coef_`` for support vectors of class i, and in row i for class j.
    """
    classes, dual, b = np.asarray(model.classes_), dense(model.dual_coef_), model.intercept_
    by_pairs = hasattr(model, "fits_") or len(classes) == 2
    owner = None if by_pairs else np.repeat(np.arange(len(classes)), model.n_support_)
    for k, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        if owner is None:
            yield tuple(classes[[i, j]]), dual[k], float(b[k])
        else:
            coef = np.where(owner == i, dual[j - 1], np.where(owner == j, dual[i], 0.0))
            yield tuple(classes[[i, j]]), -coef, -float(b[k])


def kernel_function(model: Any, X: Any, pair: int = 0) -> Callable[[Any, Any], NDArray]:
    """Return the kernel function of a model for the pair of classes with index `pair`.

    `X` contains the training rows. With a precomputed kernel, `X` is the kernel matrix, and the
    returned function takes row numbers.
    """
    from sklearn.metrics.pairwise import pairwise_kernels

    kernel = getattr(model, "kernel", "rbf")
    if kernel == PRECOMPUTED:
        return lambda rows, others: X[np.ix_(rows, others)]
    if callable(kernel):
        return kernel
    if hasattr(model, "kernels_"):
        return model.kernels_[pair]
    gamma = getattr(model, "_gamma", model.gamma)
    if isinstance(gamma, str):
        variance = X.multiply(X).mean() - X.mean() ** 2 if issparse(X) else X.var()
        gamma = 1 / X.shape[1] if gamma == "auto" else 1 / (X.shape[1] * variance)
    options = {"gamma": gamma, "degree": model.degree, "coef0": model.coef0}
    return partial(pairwise_kernels, metric=kernel, filter_params=True, **options)


def _check_support(model: Any, X: NDArray, y: NDArray) -> None:
    """Raise UserError if the rows of X with indices `support_` are not the support vectors.

    For a kernel matrix or function, scikit-learn's SVC may use kernel values of wrong rows, since
    the row numbers in `support_` do not count rows of sample weight 0.
    """
    n, support = len(X), np.asarray(model.support_)
    wrong = n != getattr(model, "shape_fit_", (n,))[0] or n <= support.max(initial=0)
    if not (wrong or hasattr(model, "fits_") or getattr(model, "fit_status_", 0)):
        rows = support if model.kernel == PRECOMPUTED else X[support]
        K, labels = np.asarray(kernel_function(model, X)(rows, rows)), y[support]
        for pair, coef, b in pair_coefficients(model):
            t, size = np.where(labels == pair[1], 1.0, -1.0), np.abs(K) @ np.abs(coef)
            # the coefficients of a NuSVC with the margin rho are at most 1/rho
            scale = 1.0 if getattr(model, "C", 0) else np.abs(coef).max()
            # support vectors have ``t f <= 1`` up to the rounding errors of libsvm's float32 kernel
            # values
            above = t * (K @ coef + b) - 1 > 2 * model.tol * scale + FLOAT32 * size
            wrong |= bool((coef * t < 0).any() or (above & (coef != 0)).any())
    if wrong:
        given = f"the rows of X at support_ of {type(model).__name__}"
        advice = "give the training rows, and train without rows of weight 0"
        why = "with a given kernel, support_ does not count rows of weight 0"
        raise UserError(f"{given} are not its support vectors; {advice}: {why}")
