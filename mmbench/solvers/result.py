"""`Result`, the certificate of optimality that every solver returns with its solution."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mmbench.errors import Status

_native: ContextVar[list[Status] | None] = ContextVar("native", default=None)


@contextmanager
def native_statuses() -> Iterator[list[Status]]:
    """Collect the statuses that solvers of other packages report inside a ``with`` block."""
    statuses: list[Status] = []
    token = _native.set(statuses)
    try:
        yield statuses
    finally:
        _native.reset(token)


def note_status(status: Status) -> None:
    """Append a status reported by a solver of another package to the list of `native_statuses`."""
    statuses = _native.get()
    if statuses is not None:
        statuses.append(status)


def relative_gap(value: float, bound: float) -> float:
    """Return ``(value - bound) / max(|value|, |bound|)``, or 0 if both numbers are 0.

    The denominator has no lower bound (for example 1), since the optimal objective of an SVM may be
    tiny. If all features are doubled, the optimal objective of a hard-margin SVM is divided by 4.

    Examples
    --------
    >>> round(relative_gap(1e-30, 0.9e-30), 12), relative_gap(1.0, -math.inf)
    (0.1, inf)
    """
    scale = max(abs(value), abs(bound))
    if scale == 0:
        return 0.0
    return (value - bound) / scale if math.isfinite(scale) else math.inf


@dataclass(frozen=True, kw_only=True)
class Result:
    """Base class of the results of solvers; subclasses add the solution."""

    #: Objective of the problem, recomputed from the solution.
    value: float
    #: Bound from a dual feasible point: in a minimisation a lower bound, -inf if it is unknown.
    bound: float
    #: Largest violation of a constraint, recomputed from the solution.
    violation: float
    iterations: int
    status: Status
    #: Name of the algorithm; the docstring of the solver's module lists the algorithms.
    route: str = ""

    @property
    def gap(self) -> float:
        """Relative duality gap; see `relative_gap`."""
        return relative_gap(self.value, self.bound)

    def closed(self, tol: float) -> bool:
        """Whether the relative gap of a minimisation is at most `tol`."""
        return self.gap <= tol
