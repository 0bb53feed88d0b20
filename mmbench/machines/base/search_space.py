"""Default search spaces of the machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


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
