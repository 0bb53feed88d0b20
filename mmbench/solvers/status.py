"""The status vocabulary shared by solvers, records and tables."""

from __future__ import annotations

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
