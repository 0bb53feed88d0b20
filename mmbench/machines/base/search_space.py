"""How parameters are selected: the default search space of a machine, and settings of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

#: The automatic grid of the width of ``rbf`` for all machines, in units of ``1 / (n_features *
#: X.var())``: experiments combine it with ``gamma_scaling="variance"``.
GAMMA_GRID = {"gamma": ("gamma", tuple(2.0**k for k in range(-7, 8, 2)))}


@dataclass(frozen=True)
class SearchSpace:
    """The default grid search of a machine.

    Parameters
    ----------
    auto_grids : mapping of str to (str, tuple)
        For each grid axis that may have the value ``auto``, the parameter that replaces the axis,
        and the values of this parameter. For example, ``{"B": ("B_fraction", (1.0, 0.75))}``
        replaces the axis B by two values of B_fraction.
    prefer : mapping of str to {"small", "large", "near_one"}
        Preferred values of parameters among grid points with equal scores: small values, large
        values, or values with a small absolute logarithm ("near_one"). Ties are broken by the first
        parameter of `prefer`, then by the second parameter, and so on.
    tol : float or None
        Tolerance of the trainings in a grid search, or None for the parameter `tol` of the machine.
    single_precision : bool
        Whether kernel values of magnitude about 1 may be stored in float32 during the search.
    """

    auto_grids: Mapping[str, tuple[str, tuple]] = field(default_factory=dict)
    prefer: Mapping[str, str] = field(default_factory=dict)
    tol: float | None = None
    single_precision: bool = True

    def extended(
        self, auto_grids: Mapping[str, tuple[str, tuple]] | None = None, **changes: Any
    ) -> SearchSpace:
        """Return a copy with additional automatic grids and with changed fields."""
        return replace(self, auto_grids={**self.auto_grids, **(auto_grids or {})}, **changes)


@dataclass(frozen=True)
class SelectRef:
    """The settings of hyper-parameter selection."""

    #: Number of cross-validation folds, or None without cross-validation.
    folds: int | None = 5
    #: Fraction of the rows that repeated random splits hold out for validation. If `folds` and
    #: `split` are None, parameters are validated on the rows that ``max_train`` excludes from
    #: training.
    split: float | None = None
    #: Number of repetitions of the cross-validation, or number of random splits.
    repeats: int = 1
    #: One parameter set is selected for all pairs of classes ("global"), for each pair ("pair"), or
    #: for all pairs by the metric on the test rows ("test"), which leaks test data.
    scope: str = "global"
    #: Tuples (parameter, "small" or "large"): the value that is preferred among grid points with
    #: equal scores. The machine declares the preference for all other parameters.
    prefer: tuple[tuple[str, str], ...] = ()
    #: Metric that selection maximizes; see `mmbench.selection.metrics`.
    metric: str = "accuracy"
