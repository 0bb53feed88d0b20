"""A training problem on some rows of a kernel matrix that is stored for more rows."""

from __future__ import annotations

from functools import cached_property

from numpy.typing import NDArray

from mmbench.kernels import Kernel
from mmbench.kernels.stored import StoredGram
from mmbench.machines.problem import BinaryProblem


class PartProblem(BinaryProblem):
    """A fold of a cross-validation: its own Gram matrix is cut out when first asked for.

    A machine that needs no more than products with the matrix takes them of all folds at once,
    and cuts nothing out; the matrix itself is then never stored.

    Parameters
    ----------
    X, y, kernel
        As for `BinaryProblem`.
    whole : StoredGram
        The kernel matrix of all rows.
    rows : ndarray of int of shape (n_samples,)
        Where the rows of `X` stand in it.
    """

    def __init__(self, X: NDArray, y: NDArray, kernel: Kernel, whole: StoredGram, rows: NDArray):
        # given_gram is computed below, so the base's own constructor must not set it
        self.X, self.y, self.kernel, self.classes = X, y, kernel, ()
        self.whole, self.rows = whole, rows

    @cached_property
    def given_gram(self) -> NDArray:  # type: ignore[override]
        """The kernel matrix of the rows of `X`."""
        return self.whole.part(self.rows, self.rows)

    def copied_gram(self) -> NDArray:
        """Return the kernel matrix in float64; nothing is kept of it here."""
        return self.whole.part(self.rows, self.rows).astype(float, copy=False)
