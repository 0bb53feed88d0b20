"""The status vocabulary shared by solvers, records and tables."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """How a fit ended. Every native solver status is translated to one of these."""

    OPTIMAL = "optimal"
    INACCURATE = "inaccurate"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TRIVIAL = "trivial"
    ONE_CLASS = "one_class"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    FAILED = "failed"


#: From harmless to fatal.
SEVERITY = (
    Status.OPTIMAL,
    Status.ONE_CLASS,
    Status.TRIVIAL,
    Status.INACCURATE,
    Status.ITERATION_LIMIT,
    Status.TIME_LIMIT,
    Status.UNBOUNDED,
    Status.INFEASIBLE,
    Status.MEMORY_LIMIT,
    Status.FAILED,
)


def worst(statuses: Iterable[Status | str]) -> Status:
    """Return the gravest of some statuses.

    Examples
    --------
    >>> worst(["optimal", "inaccurate", "trivial"])
    <Status.INACCURATE: 'inaccurate'>
    """
    return max(map(Status, statuses), key=SEVERITY.index)
