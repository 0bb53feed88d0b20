"""The certificate of a solution, which every solver returns."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from mmbench.errors import Status

_native: ContextVar[list[Status] | None] = ContextVar("native", default=None)


@contextmanager
def native_statuses() -> Iterator[list[Status]]:
    """Collect the statuses that solvers of other packages return inside a ``with`` block."""
    statuses: list[Status] = []
    token = _native.set(statuses)
    try:
        yield statuses
    finally:
        _native.reset(token)


def note_status(status: Status) -> None:
    """Append a status, returned by a solver of another package, to `native_statuses`."""
    statuses = _native.get()
    if statuses is not None:
        statuses.append(status)


def relative_gap(value: float, bound: float) -> float:
    """Return ``value - bound`` relative to the larger magnitude of both; 0 if both are 0.

    The denominator has no lower bound: for long rows the objective of an SVM is tiny, since it is
    inversely proportional to the square of their length.

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
    """Base class of solver results; a subclass adds the solution."""

    #: Objective of the problem, recomputed from the solution.
    value: float
    #: Bound on the optimal value, computed from a dual feasible point. In a minimisation it is a
    #: lower bound, and minus infinity if no bound is known.
    bound: float
    #: Largest violation of a constraint, recomputed from the solution.
    violation: float
    iterations: int
    status: Status
    #: Name of the algorithm, as in the table in the docstring of the solver's module.
    route: str = ""

    @property
    def gap(self) -> float:
        """Relative duality gap; see `relative_gap`."""
        return relative_gap(self.value, self.bound)

    def closed(self, tol: float) -> bool:
        """Whether the relative gap of a minimisation is at most `tol`."""
        return self.gap <= tol
