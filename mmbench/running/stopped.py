"""What a record says of a job that one of its limits has stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mmbench.errors import Status
from mmbench.jobs.limits import Limits
from mmbench.running.progress import duration, readable

if TYPE_CHECKING:
    from mmbench.machines.base.problem import Fit


def stopped(status: Status, limits: Limits, reached: dict[str, Any], more: str = "") -> dict:
    """Return the reason, the limits and what was reached.

    Parameters
    ----------
    status : {Status.TIME_LIMIT, Status.MEMORY_LIMIT}
    limits : Limits
    reached : dict
        "stage", which may be None, and "seconds" at least.
    more : str
        What else is to be said of how far the job came.
    """
    if status == Status.TIME_LIMIT:
        limit = f"time limit of {duration(limits.time or 0)}"
    else:
        limit = f"memory limit of {readable(limits.memory or 0)}"
    stage = "compiling" if reached["stage"] == "warm_up" else reached["stage"] or "preparation"
    after = f"{duration(reached['seconds'])} in {stage}"
    reason = f"{limit} reached after {after}" + (f": {more}" if more else "")
    return {"reason": reason, "limits": asdict(limits), "reached": reached}


def best_reached(fits: Sequence[Fit], gap_tolerance: float) -> tuple[dict[str, Any], str]:
    """Return the certificate of the training that is furthest from done, and that in words.

    Parameters
    ----------
    fits : sequence of Fit
        Of all pairs of classes, at least one of which the time limit ended.
    gap_tolerance : float
    """
    ended = [fit for fit in fits if fit.status is Status.TIME_LIMIT]
    begun = [fit for fit in ended if math.isfinite(fit.objective)]
    worst = max(begun or ended, key=lambda fit: fit.gap)
    facts = {
        "pairs_solved": len(fits) - len(ended),
        "pairs_begun": len(fits) - len(ended) + len(begun),
        "pairs": len(fits),
        "pair": list(worst.pair),
        "iterations": worst.iterations,
        "objective": worst.objective,
        "bound": worst.bound,
        "gap": worst.gap,
        "violation": worst.max_violation,
    }
    asked = f" where {gap_tolerance:.1e} is asked" if gap_tolerance < float("inf") else ""
    counts = f"{facts['pairs_solved']} of {len(fits)} pairs solved, {facts['pairs_begun']} begun"
    if not begun:
        return facts, counts
    return facts, (
        f"{counts}; {'/'.join(map(str, worst.pair))} has a gap of {worst.gap:.1e}{asked} after "
        f"{worst.iterations} iterations"
    )
