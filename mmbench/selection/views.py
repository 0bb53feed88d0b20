"""Kernel values for the folds of a grid search, read from a stored matrix or computed on demand.

Row indices refer to the rows of the whole search.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmbench.kernels import Kernel, row_squares
from mmbench.kernels.matrix import submatrix
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.problem import (
    BinaryModel,
    BinaryProblem,
    PartProblem,
    around,
    expand,
    far_origin,
    linear_weights,
)
from mmbench.selection.grid import GridPoint, group_by_kernel

#: Maximum size of a stored kernel matrix of all rows, in bytes. If the kernel matrix of all rows is
#: larger, as for MNIST, the kernel matrix of each pair of classes is stored.
SHARED_BYTES = 2**30

#: Maximum size of a stored kernel matrix of a pair of classes, in bytes. If the kernel matrix of a
#: pair is larger, machines compute kernel values on demand during each training.
PAIR_BYTES = 2**32

#: Distances for ``rbf`` are computed in float64 if ``gamma ||x||^2`` of a row x exceeds
#: LARGEST_SINGLE_EXPONENT, since the distances would be inaccurate in float32.
LARGEST_SINGLE_EXPONENT = 1e5

#: Indices of the grid points with the same kernel, and the `KernelView` of this kernel.
Block = tuple[list[int], "KernelView"]


def kernel_blocks(
    machine: PairwiseClassifier,
    X: NDArray,
    points: list[GridPoint],
    reference: NDArray,
    rows: NDArray | None = None,
    shared: bool = False,
) -> Iterator[Block]:
    """For each kernel, yield the indices of the grid points with this kernel, and a `KernelView`.

    The kernel values between `rows`, by default all rows, are stored, unless the kernel is linear
    or the matrix exceeds `PAIR_BYTES`, or `SHARED_BYTES` if it is `shared` by all pairs of classes.
    A stored matrix is computed from a base matrix of inner products or squared distances. If `rows`
    is None, one base matrix serves all kernels; otherwise each kernel matrix overwrites it, which
    halves the memory, and the base matrix is computed anew. ``gamma="scale"`` is computed from
    `reference`, the training rows of the final training.
    """
    groups, base, of_distances = list(kernels_of(machine, X, points, reference)), None, False
    for g, (members, kernel, single) in enumerate(groups):
        if not is_stored((X if rows is None else rows).shape[0], kernel.name, single, shared):
            moves = kernel.name == "linear" and machine.translation_invariant
            yield members, KernelView(around(X, far_origin(X) if moves else None), kernel)
            continue
        stored = X if rows is None else X[rows]
        bounded = single and kernel.fits_single_precision(stored)
        dtype = np.dtype(np.float32 if bounded else precision(kernel.name, single))
        if base is None or base.dtype != dtype or of_distances != (kernel.name == "rbf"):
            base, of_distances = kernel.base(stored, stored, dtype), kernel.name == "rbf"
        last = rows is not None or g == len(groups) - 1
        gram, base = kernel.apply(base, out=base if last else None), None if last else base
        view = KernelView(X, kernel, gram, rows)
        yield members, view
        # free this kernel matrix before the next kernel matrix is computed: the caller still has a
        # reference to the view
        del gram, view._gram, view._whole


def kernels_of(
    machine: PairwiseClassifier, X: NDArray, points: list[GridPoint], reference: NDArray
) -> Iterator[tuple[list[int], Kernel, bool]]:
    """For each kernel of a grid, yield the indices of its grid points, the kernel, and whether
    kernel values between rows of X may be float32.
    """
    largest = float(row_squares(X).max(initial=0.0))
    for kernel_params, members in group_by_kernel(points):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        coarse = kernel.name == "rbf" and kernel.gamma * largest > LARGEST_SINGLE_EXPONENT
        yield members, kernel, machine.search_space.single_precision and not coarse


class KernelView:
    """Training problems, and decision values of models, for one kernel.

    `gram` is the stored kernel matrix of the rows with the ascending indices `rows`, by default of
    all rows. Kernel values that are not stored are computed on demand.
    """

    def __init__(
        self, X: NDArray, kernel: Kernel, gram: NDArray | None = None, rows: NDArray | None = None
    ):
        self.X, self.kernel, self._gram, self._rows = X, kernel, gram, rows
        self._whole = gram if rows is None else None

    def problem(self, rows: NDArray, signs: NDArray, classes: tuple) -> BinaryProblem:
        """Return the training problem on given rows with the labels -1.0 and +1.0 in `signs`.

        The original labels of the negative and the positive class are in `classes`.
        """
        X, gram = self.X[rows], self._gram
        if gram is not None:
            index = rows if self._rows is None else np.searchsorted(self._rows, rows)
            if not np.array_equal(index, np.arange(len(gram))):
                part = PartProblem(X, signs, self.kernel, gram, index)
                part.classes = classes
                return part
        return BinaryProblem(X, signs, self.kernel, gram, classes)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return decision values at the rows `held`, shape (len(held), len(models)).

        The models were trained on the rows `train`.
        """
        intercepts = np.array([model.intercept for model in models])
        if self.kernel.name == "linear":
            W = np.array([linear_weights(self.X[train], model) for model in models])
            return self.X[held] @ W.T + intercepts
        scores = [model.scores for model in models if model.scores is not None]
        if self._whole is not None and len(scores) == len(models):
            return np.column_stack([values[held] for values in scores]) + intercepts
        dtype = float if self._gram is None else self._gram.dtype
        coef = np.array([model.coef for model in models], dtype=dtype)
        support = np.flatnonzero(coef.any(axis=0))
        coef, support = np.ascontiguousarray(coef[:, support]), train[support]
        if self._whole is not None:
            return submatrix(self._whole, held, support) @ coef.T + intercepts
        return expand(self.kernel, self.X[held], self.X[support], coef) + intercepts


def precision(kernel_name: str, single: bool = True) -> type:
    """Return the data type of stored kernel values.

    Values of rbf in [0, 1] are float32, the precision of libsvm, in half the memory and time. Other
    kernels are float64 here; `kernel_blocks` stores them as float32 if
    `Kernel.fits_single_precision`. If `single` is false, all values are float64, as for machines
    whose search space has ``single_precision = False``.
    """
    return np.float32 if kernel_name == "rbf" and single else np.float64


def is_stored(n_samples: int, kernel_name: str, single: bool = True, shared: bool = False) -> bool:
    """Return whether the kernel matrix of a pair of classes, or of all pairs, is stored.

    `shared` is true for the kernel matrix of all pairs.
    """
    size = n_samples**2 * np.dtype(precision(kernel_name, single)).itemsize
    return kernel_name != "linear" and size <= (SHARED_BYTES if shared else PAIR_BYTES)
