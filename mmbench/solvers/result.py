"""What every solver returns besides its solution: how good it is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmbench.errors import Status


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base of the results of solvers; a subclass adds the solution itself.

    Parameters
    ----------
    value : float
        Objective of the problem at the solution, recomputed from it.
    bound : float
        A bound on the optimal value, from a dual feasible point: below `value` for a minimum.
        Minus infinity where there is none.
    violation : float
        Largest violation of a constraint, recomputed from the solution.
    iterations : int
    status : Status
    """

    value: float
    bound: float
    violation: float
    iterations: int
    status: Status

    @property
    def gap(self) -> float:
        """Distance of `value` to `bound`, relative to the larger of their magnitudes."""
        scale = max(abs(self.value), abs(self.bound), np.finfo(float).tiny)
        return float((self.value - self.bound) / scale) if np.isfinite(scale) else np.inf

    def closed(self, tol: float) -> bool:
        """Whether value and bound of a minimum agree up to a relative tolerance."""
        return self.gap <= tol
