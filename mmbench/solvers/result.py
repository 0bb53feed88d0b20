"""The certificate that every solver returns with its solution."""

import math
from dataclasses import dataclass

from mmbench.errors import Status

#: Least magnitude that a gap is relative to.
SMALLEST_SCALE = 1e-12


def relative_gap(value: float, bound: float) -> float:
    """Return the distance of a value to a bound, relative to the larger of their magnitudes.

    Examples
    --------
    >>> round(relative_gap(1e-3, 0.9e-3), 12), relative_gap(1.0, -math.inf)
    (0.1, inf)
    """
    scale = max(abs(value), abs(bound), SMALLEST_SCALE)
    return (value - bound) / scale if math.isfinite(scale) else math.inf


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base of the results of solvers; a subclass adds the solution itself."""

    #: Objective of the problem at the solution, recomputed from it.
    value: float
    #: Bound on the optimal value from a dual feasible point, below `value` for a minimum; minus
    #: infinity if there is none.
    bound: float
    #: Largest violation of a constraint, recomputed from the solution.
    violation: float
    iterations: int
    status: Status
    #: Name of the algorithm, as in the table at the head of the solver's module.
    route: str = ""

    @property
    def gap(self) -> float:
        """The relative duality gap; see `relative_gap`."""
        return relative_gap(self.value, self.bound)

    def closed(self, tol: float) -> bool:
        """Whether value and bound of a minimum agree up to a relative tolerance."""
        return self.gap <= tol
