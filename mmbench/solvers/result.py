"""What every solver returns besides its solution: how good it is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

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
