"""Where the kernel values of a fold come from: a stored matrix of all rows, or one of a pair.

A view answers two questions: what is the training problem on some rows, and how do models trained
there decide at other rows. Row numbers always refer to the whole training set.
"""

from collections.abc import Iterator
from typing import Protocol

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
from mmbench.selection.grid import Point, group_by_kernel

#: The kernel matrix of a whole training set is kept while it is at most this large; larger sets
#: (MNIST) take one pair of classes at a time.
SHARED_BYTES = 2**30


class View(Protocol):
    """Kernel values of one kernel on one training set."""

    X: NDArray
    kernel: Kernel

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows, of classes -1.0 and +1.0."""

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return ``f(x)`` of models trained on `train`, shape (len(held), len(models))."""


#: The kernel matrix of a pair of classes is stored while it is at most this large. Machines that
#: train on parts of it do so for larger ones, along warm-started paths.
PAIR_BYTES = 2**32

#: Indices of the grid points that share a kernel, and its values.
Block = tuple[list[int], View]


def shared_blocks(
    machine: PairwiseClassifier, X: NDArray, points: list[Point], reference: NDArray
) -> Iterator[Block]:
    """Yield the grid points of each kernel and its view; one base matrix of `X` serves them all.

    `reference` holds the rows by which ``gamma="scale"`` is set: those of the final fit.
    """
    base = BaseMatrix(X, machine.search_space.single_precision)
    groups = group_by_kernel(points)
    for g, (kernel_params, members) in enumerate(groups):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        if kernel.name == "linear":
            yield members, RowsView(machine, X, kernel)
        else:
            gram = base.gram(kernel, last=g == len(groups) - 1)
            yield members, SharedView(X, kernel, gram)


def pair_blocks(
    machine: PairwiseClassifier, X: NDArray, rows: NDArray, points: list[Point], reference: NDArray
) -> Iterator[Block]:
    """Yield the same with a stored matrix of some rows only; values at others are computed."""
    for kernel_params, members in group_by_kernel(points):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        single = machine.search_space.single_precision
        if stores_pairs(len(rows), kernel.name, single):
            yield members, PairView(X, kernel, rows, single)
        else:
            yield members, RowsView(machine, X, kernel)


def precision(kernel_name: str, single: bool = True) -> type:
    """Return the type of stored kernel values.

    Values of ``rbf`` lie in [0, 1]: float32, libsvm's own precision, halves memory and time. The
    other kernels are not bounded, and keep float64, but for what `fits_single_precision` finds; so
    do machines that want all digits, which say so by ``single_precision = False``.
    """
    return np.float32 if kernel_name == "rbf" and single else np.float64


class BaseMatrix:
    """The base matrix of some rows, from which every width follows."""

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


def stores_pairs(n_samples: int, kernel_name: str, single: bool = True) -> bool:
    """Whether the kernel matrix of a pair of classes is stored."""
    size = n_samples**2 * np.dtype(precision(kernel_name, single)).itemsize
    return kernel_name != "linear" and size <= PAIR_BYTES


def can_share(n_samples: int, kernel_name: str, single: bool = True) -> bool:
    """Whether the kernel matrix of all rows may be kept."""
    return n_samples**2 * np.dtype(precision(kernel_name, single)).itemsize <= SHARED_BYTES


class SharedView:
    """A stored kernel matrix of all rows."""

    def __init__(self, X: NDArray, kernel: Kernel, gram: StoredGram):
        self.X, self.kernel, self._gram = X, kernel, gram

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows."""
        return PartProblem(self.X[rows], signs, self.kernel, self._gram, rows)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return the decisions of kernel expansions, reading only the columns they use."""
        scores = [model.scores[held] for model in models if model.scores is not None]
        if len(scores) == len(models):
            return np.column_stack(scores) + _intercepts(models)
        coef, support = _supported(models, self._gram.dtype)
        return self._gram.part(held, train[support]) @ coef.T + _intercepts(models)


class PairView:
    """A stored kernel matrix of the rows of one pair; values at other rows are computed."""

    def __init__(self, X: NDArray, kernel: Kernel, rows: NDArray, single: bool = True):
        self.X, self.kernel = X, kernel
        self._position = np.full(X.shape[0], -1)
        self._position[rows] = np.arange(len(rows))
        self._gram = BaseMatrix(X[rows], single).gram(kernel, last=True)

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows of the pair."""
        position = self._position[rows]
        if np.array_equal(position, np.arange(self._gram.n)):  # all of them: no copy is cut out
            return BinaryProblem(self.X[rows], signs, self.kernel, self._gram.values)
        return PartProblem(self.X[rows], signs, self.kernel, self._gram, position)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return the decisions of kernel expansions at rows of any class."""
        coef, support = _supported(models, self._gram.dtype)
        values = expand(self.kernel, self.X[held], self.X[train[support]], coef)
        return values + _intercepts(models)


class RowsView:
    """No stored matrix: a linear machine decides by its weights, others by their expansions."""

    def __init__(self, machine: PairwiseClassifier, X: NDArray, kernel: Kernel):
        moves = kernel.name == "linear" and machine.translation_invariant
        self.X, self.kernel = around(X, far_origin(X) if moves else None), kernel

    def problem(self, rows: NDArray, signs: NDArray) -> BinaryProblem:
        """Return the training problem on some rows, which may need no Gram matrix."""
        return BinaryProblem(self.X[rows], signs, self.kernel)

    def decisions(self, models: list[BinaryModel], train: NDArray, held: NDArray) -> NDArray:
        """Return the decisions of machines trained on some rows at others."""
        if self.kernel.name == "linear":
            W = np.array([linear_weights(self.X[train], model) for model in models])
            return self.X[held] @ W.T + _intercepts(models)
        coef, support = _supported(models, np.dtype(float))
        values = expand(self.kernel, self.X[held], self.X[train[support]], coef)
        return values + _intercepts(models)


def _supported(models: list[BinaryModel], dtype: np.dtype) -> tuple[NDArray, NDArray]:
    """Return the coefficients of all models over the training rows that any of them uses."""
    coef = np.array([model.coef for model in models], dtype=dtype)
    support = np.flatnonzero(coef.any(axis=0))
    return np.ascontiguousarray(coef[:, support]), support


def _intercepts(models: list[BinaryModel]) -> NDArray:
    return np.array([model.intercept for model in models])
