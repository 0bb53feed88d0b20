"""What a run has to know of a machine besides its parameters: how to search, how much memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class SearchSpace:
    """How the hyper-parameters of a machine are searched where the user does not say.

    Parameters
    ----------
    auto_grids : mapping of str to (str, tuple)
        What ``auto`` means in a grid: ``{"B": ("B_fraction", (1.0, 0.75))}`` replaces axis B.
    prefer : mapping of str to {"small", "large", "near_one"}
        Which of several equally good grid points is taken, first key first.
    tol : float or None
        Tolerance of the trainings of a run's grid search; None for that of the final training.
    single_precision : bool
        Whether kernel values of order 1 may be stored in float32 during the search.
    """

    auto_grids: Mapping[str, tuple[str, tuple]] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    tol: float | None = None
    single_precision: bool = True

    def extended(
        self, auto_grids: Mapping[str, tuple[str, tuple]] | None = None, **changes: Any
    ) -> SearchSpace:
        """Return a copy with more automatic grids and other values of the fields named."""
        return replace(self, auto_grids={**self.auto_grids, **(auto_grids or {})}, **changes)


@dataclass(frozen=True)
class MemoryNeeds:
    """What one training holds at once, so that a run knows beforehand whether a job fits.

    Parameters
    ----------
    gram_copies : int
        Arrays as large as a pair's Gram matrix, that matrix included.
    linear_gram_copies : int or None
        The same for a linear kernel, where rows take the place of most of them.
    linear_row_copies : int or None
        Arrays as large as a pair's rows that a linear kernel takes instead of any Gram matrix,
        beside up to three as large as a covariance matrix and some vectors.
    rows_per_feature : int
        Rows a feature from which it does so.
    part_bytes : int
        Most bytes taken for parts of that matrix.
    """

    gram_copies: int = 1
    linear_gram_copies: int | None = None
    linear_row_copies: int | None = None
    rows_per_feature: int = 0
    part_bytes: int = 0

    def in_features(self, kernel: str, n_rows: int, n_features: int) -> bool:
        """Whether a training holds rows instead of any Gram matrix."""
        few = n_rows >= self.rows_per_feature * n_features
        return kernel == "linear" and self.linear_row_copies is not None and few

    def copies(self, kernel: str) -> int:
        """Return the arrays as large as a Gram matrix that a training with a kernel holds."""
        linear = kernel == "linear" and self.linear_gram_copies is not None
        return self.linear_gram_copies if linear else self.gram_copies  # type: ignore[return-value]
