"""Where the kernel values of a fold come from: a stored matrix of all rows, or of a pair's.

A view answers two questions: what is the training problem on some rows, and how do models trained
there decide at other rows. Row numbers always refer to the whole training set.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmbench.kernels import Kernel
from mmbench.kernels.matrix import StoredGram
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

#: Largest kernel matrix of a whole training set that is stored, in bytes; larger sets (MNIST) take
#: one pair of classes at a time.
SHARED_BYTES = 2**30

#: Largest stored kernel matrix of a pair of classes. Machines that train on parts of the matrix do
#: so for larger ones, along warm-started paths.
PAIR_BYTES = 2**32

#: Indices of the grid points that share a kernel, and its values.
Block = tuple[list[int], "View"]


def shared_blocks(
    machine: PairwiseClassifier, X: NDArray, points: list[GridPoint], reference: NDArray
) -> Iterator[Block]:
    """Yield the grid points of each kernel and its view; one base matrix of `X` serves them all.

    `reference` holds the training rows of the final fit, which set ``gamma="scale"``.
    """
    base = BaseMatrix(X, machine.search_space.single_precision)
    groups = group_by_kernel(points)
    for g, (kernel_params, members) in enumerate(groups):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        if kernel.name == "linear":
            yield members, _rows_view(machine, X, kernel)
        else:
            yield members, StoredView(X, kernel, base.gram(kernel, last=g == len(groups) - 1))


def pair_blocks(
    machine: PairwiseClassifier,
    X: NDArray,
    rows: NDArray,
    points: list[GridPoint],
    reference: NDArray,
) -> Iterator[Block]:
    """Yield the same with a stored matrix of some rows only; values at others are computed."""
    single = machine.search_space.single_precision
    for kernel_params, members in group_by_kernel(points):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        if stores_pairs(len(rows), kernel.name, single):
            gram = BaseMatrix(X[rows], single).gram(kernel, last=True)
            yield members, StoredView(X, kernel, gram, rows)
        else:
            yield members, _rows_view(machine, X, kernel)


class View:
    """Kernel values that are not stored: a linear machine decides by its weights."""

    dtype = np.dtype(float)

    def __init__(self, X: NDArray, kernel: Kernel):
        self.X, self.kernel = X, kernel

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows, of classes -1.0 and +1.0."""
        return BinaryProblem(self.X[rows], signs, self.kernel)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return ``f(x)`` of models trained on `train`, shape (len(held), len(models))."""
        intercepts = np.array([model.intercept for model in models])
        if self.kernel.name == "linear":
            W = np.array([linear_weights(self.X[train], model) for model in models])
            return self.X[held] @ W.T + intercepts
        coef = np.array([model.coef for model in models], dtype=self.dtype)
        support = np.flatnonzero(coef.any(axis=0))
        coef = np.ascontiguousarray(coef[:, support])
        return self._expanded(coef, train[support], held) + intercepts

    def _expanded(self, coef: NDArray, support: NDArray, held: NDArray) -> NDArray:
        return expand(self.kernel, self.X[held], self.X[support], coef)


class StoredView(View):
    """A stored kernel matrix of all rows, or of the rows given; other values are computed."""

    def __init__(self, X: NDArray, kernel: Kernel, gram: StoredGram, rows: NDArray | None = None):
        super().__init__(X, kernel)
        self._gram, self._whole, self.dtype = gram, rows is None, gram.dtype
        self._position = np.full(X.shape[0], -1)
        self._position[slice(None) if rows is None else rows] = np.arange(gram.n)

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows, with its part of the matrix."""
        position = self._position[rows]
        if np.array_equal(position, np.arange(self._gram.n)):  # all of them: no copy is cut out
            return BinaryProblem(self.X[rows], signs, self.kernel, self._gram.values)
        return PartProblem(self.X[rows], signs, self.kernel, self._gram, position)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return decisions, from the scores of training if it has computed them."""
        scores = [model.scores for model in models if model.scores is not None]
        if self._whole and len(scores) == len(models):
            intercepts = np.array([model.intercept for model in models])
            return np.column_stack([values[held] for values in scores]) + intercepts
        return super().decisions(models, train, held)

    def _expanded(self, coef: NDArray, support: NDArray, held: NDArray) -> NDArray:
        if self._whole:
            return self._gram.part(held, support) @ coef.T
        return super()._expanded(coef, support, held)


def _rows_view(machine: PairwiseClassifier, X: NDArray, kernel: Kernel) -> View:
    moves = kernel.name == "linear" and machine.translation_invariant
    return View(around(X, far_origin(X) if moves else None), kernel)


class BaseMatrix:
    """The base matrix of some rows, from which the kernel matrix of every width follows."""

    def __init__(self, X: NDArray, single: bool = True):
        self.X, self._single = X, single
        self._base: NDArray | None = None

    def gram(self, kernel: Kernel, last: bool) -> StoredGram:
        """Return the kernel matrix; the last kernel asked for may overwrite the base."""
        bounded = self._single and kernel.fits_single_precision(self.X)
        dtype = np.dtype(np.float32 if bounded else precision(kernel.name, self._single))
        if self._base is None or self._base.dtype != dtype:
            self._base = kernel.base(self.X, self.X, dtype)
        base, self._base = self._base, None if last else self._base
        return StoredGram(kernel, base, overwrite=last)


def precision(kernel_name: str, single: bool = True) -> type:
    """Return the type of stored kernel values.

    Values of ``rbf`` lie in [0, 1]: float32, libsvm's own precision, halves memory and time. Other
    kernels are unbounded and keep float64 unless `fits_single_precision` holds, as do machines with
    ``single_precision = False``.
    """
    return np.float32 if kernel_name == "rbf" and single else np.float64


def stores_pairs(n_samples: int, kernel_name: str, single: bool = True) -> bool:
    """Whether the kernel matrix of a pair of classes is stored."""
    size = n_samples**2 * np.dtype(precision(kernel_name, single)).itemsize
    return kernel_name != "linear" and size <= PAIR_BYTES


def can_share(n_samples: int, kernel_name: str, single: bool = True) -> bool:
    """Whether the kernel matrix of all rows may be stored."""
    return n_samples**2 * np.dtype(precision(kernel_name, single)).itemsize <= SHARED_BYTES
