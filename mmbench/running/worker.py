"""Execute one job, in whatever process: everything goes in as arguments and comes out as a record.

Timing. CPU seconds are those of all threads of the process. Compiling (Numba) and importing
solvers happen in a rehearsal on a tiny problem, once per process and machine; it is timed as
``warm_up`` and so is in none of the stages that tables show.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.allowance import OutOfTime, allowed, time_is_up, within
from mmbench.errors import BeyondLimit, NotEnoughMemory, Status, UserError, worst
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.record import Clock, Content, new_record, timestamp
from mmbench.running.environment import environment
from mmbench.running.local import tell
from mmbench.running.parcel import MissingData, at_hand
from mmbench.running.progress import duration, readable

if TYPE_CHECKING:
    from mmbench.jobs.data import Prepared
    from mmbench.jobs.record import Choice
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


Arrays = dict[str, Any]

STAGES = ("preparation", "warm_up", "selection", "training", "test")


@dataclass(frozen=True)
class Context:
    """What a job needs to know of where it runs."""

    #: Local store of data files.
    data: Path
    #: Folder or URL that holds data files.
    mirror: str | None = None
    #: Pairs of classes to train at the same time.
    threads: int = 1
    #: The part of the free memory that is this job's; others run beside it.
    memory_share: float = 1.0
    #: Selected parameters of the job that this one uses; a list has one a pair of classes.
    inherited: tuple[Choice, ...] = ()
    limits: Limits = NO_LIMITS
    #: Whether the computer may see other files than that on which the run was started.
    remote: bool = False
    #: Address of the cluster that the pairs of classes of a large job may use.
    scheduler: str | None = None


class MemoryLimit(Exception):
    """A job would take more memory than there is."""


class _Stopped(Exception):
    """The time of a job was up before its trainings were done: how far they came, and in words."""

    def __init__(self, facts: dict[str, Any], words: str):
        super().__init__(words)
        self.facts = facts


def execute(job: Job, context: Context) -> tuple[Content, Arrays]:
    """Run a job. What goes wrong is in the record.

    Returns
    -------
    record : dict
    arrays : dict of str to ndarray
        ``test_index``, ``predicted``, ``decisions`` and ``y_test``; empty without a result.

    Raises
    ------
    MissingData
        If the job is far from home and its data can be had at home only.
    """
    from threadpoolctl import threadpool_limits

    import mmbench.selection  # noqa: F401  libraries loaded later would escape the limit

    started, clock = timestamp(), Clock(*STAGES, tell=tell)
    content: dict[str, Any]
    arrays: Arrays = {}
    limits, since = context.limits, time.monotonic()
    try:
        with threadpool_limits(1), within(allowed(limits.time, limits.memory)):
            status, content, arrays = _run(job, context, clock)
    except MissingData:
        raise
    except (OutOfTime, _Stopped, BeyondLimit) as error:
        status = Status.MEMORY_LIMIT if isinstance(error, BeyondLimit) else Status.TIME_LIMIT
        reached = {"stage": clock.now, "seconds": time.monotonic() - since, **_facts_of(error)}
        content = stopped(status, limits, reached, str(error))
    except Exception as error:
        status, content = _status_of(error), _failure(error)
    facts: dict[str, Any] = {
        "limits": asdict(context.limits),
        "cpu_seconds": clock.cpu,
        "wall_seconds": clock.wall,
        "started": started,
        "finished": timestamp(),
    }
    return new_record(job, status, **{**facts, **content}), arrays


def _facts_of(error: Exception) -> dict[str, Any]:
    """Return how far a job came that ended at one of its limits."""
    if isinstance(error, OutOfTime):
        return {"trainings": error.done, "planned": error.planned}
    return error.facts if isinstance(error, _Stopped) else {}


def _status_of(error: Exception) -> Status:
    limit = isinstance(error, MemoryLimit | MemoryError)
    return Status.MEMORY_LIMIT if limit else Status.FAILED


def _failure(error: Exception) -> dict[str, Any]:
    """Return what a record says of an exception, with a traceback where it was not expected."""
    expected = isinstance(error, UserError | MemoryLimit | NotEnoughMemory)
    text = " ".join(str(error).split())
    return {
        "reason": text if expected else f"{type(error).__name__}: {text}",
        "wrong_input": isinstance(error, UserError),
        "traceback": "" if expected else "".join(traceback.format_exception(error)),
    }


def _run(job: Job, context: Context, clock: Clock) -> tuple[Status, dict[str, Any], Arrays]:
    # Here because the process that starts a run reads this file and needs none of them.
    from mmbench.jobs.data import prepare
    from mmbench.jobs.evaluate import (
        calibrated_probabilities,
        certificates,
        doubts,
        evaluate,
        storable,
    )
    from mmbench.jobs.identity import identity, parameters_of
    from mmbench.jobs.train import job_seeds, train
    from mmbench.running.cluster import Spread

    seeds = job_seeds(job)
    with clock.stage("preparation"):
        places = context.data, context.mirror
        here = at_hand(job, *places) if context.remote else (job, *places)
        data = prepare(*here)
    threads = _threads(job, data, context)
    spread = Spread(context.scheduler, data.class_counts, context.limits)
    machine, selection = train(job, data, context.inherited, threads, seeds, clock, spread)
    clock.cpu["training"] += spread.cpu_seconds
    if time_is_up() and any(fit.status is Status.TIME_LIMIT for fit in machine.fits_):
        raise _Stopped(*best_reached(machine.fits_, machine.gap_tolerance))
    with clock.stage("test"):
        metrics, arrays = evaluate(machine, data, job.ties, seeds["ties"])
    notes: list[str] = []
    if job.calibrate:
        with clock.stage("calibration"):
            probabilities, notes = calibrated_probabilities(machine, job, data, seeds["selection"])
        if probabilities is not None:
            arrays |= {"classes": storable(machine.classes_), "probabilities": probabilities}
    content = {
        "metrics": metrics,
        "selection": selection,
        "seeds": seeds,
        "split": data.split,
        "parameters": parameters_of(machine),
        "code": identity(job.machine, job.machine_version),
        **certificates(machine.fits_, machine.gap_tolerance),
        "deviations": data.deviations,
        "warnings": [*data.warnings, *notes],
        "environment": environment(max(threads, spread.at_a_time)),
        "reason": doubts(machine.fits_),
    }
    return worst(fit.status for fit in machine.fits_), content, arrays


def _threads(job: Job, data: Prepared, context: Context) -> int:
    """Return how many threads memory allows, of those that the job may have."""
    from mmbench.machines.base.search_space import ADVICE
    from mmbench.running import memory  # as in `_run`

    n_rest = len(data.y_pool) - len(data.y_train)
    sizes = memory.Sizes(
        data.class_counts,
        len(data.y_test),
        data.X_train.shape[1],
        data.n_raw,
        n_rest,
        memory.stored_numbers(data.X_train),
    )
    free, limit = memory.budget_bytes(context.memory_share), context.limits.memory
    if not memory.threads_that_fit(job, sizes, 1, free):
        need, free_text = memory.estimate_bytes(job, sizes), readable(free)
        raise MemoryLimit(
            f"needs about {readable(need)} of memory, {free_text} may be used; {ADVICE}"
        )
    # An estimate is rather too large: one thread is tried, and the limit ends what exceeds it.
    return memory.threads_that_fit(job, sizes, context.threads, min(free, limit or free)) or 1
