"""Execute one job: all input is in the arguments, and all output in the returned record and arrays.

CPU times are sums over all threads. In the stage ``warm_up``, a process trains a machine on a tiny
problem before its first job, to compile Numba code and import solvers.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.allowance import OutOfTime, allowed, messages_to, time_is_up, within
from mmbench.errors import BeyondLimit, NotEnoughMemory, Status, UserError, worst
from mmbench.jobs.clock import Clock, timestamp
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.record import Content, new_record
from mmbench.running.environment import environment, thread_pools
from mmbench.running.local import LimitReached, show, tell
from mmbench.running.parcel import MissingData, at_hand
from mmbench.running.progress import duration, readable

if TYPE_CHECKING:
    from mmbench.jobs.choice import Choice
    from mmbench.machines.base.problem import Fit


def stopped(status: Status, limits: Limits, reached: dict[str, Any], more: str = "") -> dict:
    """Return the reason, the limits and the progress of a job that a limit has stopped.

    The dict `reached` contains the last stage of the job (or None) under the key "stage", and the
    elapsed time under the key "seconds". The text `more` is appended to the reason.
    """
    time_limit, memory_limit = duration(limits.time or 0), readable(limits.memory or 0)
    limit = time_limit if status == Status.TIME_LIMIT else memory_limit
    stage = {None: "preparation", "warm_up": "a first training on 24 rows"}.get(
        reached["stage"], reached["stage"]
    )
    after = f"{duration(reached['seconds'])} in {stage}" + (f": {more}" if more else "")
    reason = f"{status.replace('_', ' ')} of {limit} reached after {after}"
    return {"reason": reason, "limits": asdict(limits), "reached": reached}


def best_reached(fits: Sequence[Fit], gap_tolerance: float) -> tuple[dict[str, Any], str]:
    """Return a description (dict and text) of the unfinished training with the largest duality gap.

    The list `fits` contains one training result per pair of classes. At least one training is
    unfinished, that is, has the status TIME_LIMIT.
    """
    ended = [fit for fit in fits if fit.status is Status.TIME_LIMIT]
    begun = [fit for fit in ended if math.isfinite(fit.objective)]
    worst = max(begun or ended, key=lambda fit: fit.gap)
    n_solved, n_begun = len(fits) - len(ended), len(fits) - len(ended) + len(begun)
    facts = {
        "pairs_solved": n_solved,
        "pairs_begun": n_begun,
        "pairs": len(fits),
        "pair": list(worst.pair),
        **{name: getattr(worst, name) for name in ("iterations", "objective", "bound", "gap")},
        "violation": worst.max_violation,
    }
    tolerance = f" (tolerance {gap_tolerance:.1e})" if gap_tolerance < float("inf") else ""
    words = f"{n_solved} of {len(fits)} pairs solved, {n_begun} begun"
    if begun:
        gap = f"a gap of {worst.gap:.1e}{tolerance} after {worst.iterations} iterations"
        words += f"; {'/'.join(map(str, worst.pair))} has {gap}"
    return facts, words


Arrays = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """The settings of a run that a job receives."""

    #: Local store of data files.
    data: Path
    #: Folder or URL that holds data files.
    mirror: str | None = None
    #: Number of pairs of classes that are trained at the same time.
    threads: int = 1
    #: Fraction of the free memory that this job may use; the rest is for other jobs that run at the
    #: same time.
    memory_share: float = 1.0
    #: Selected parameters of each parent (a job whose parameters this job inherits).
    inherited: tuple[Choice, ...] = ()
    limits: Limits = NO_LIMITS
    #: Whether the job may run on a computer without access to the data files of the main process.
    remote: bool = False
    #: Address of the Dask scheduler, identifier of the tasks of this run, and certificates for the
    #: connection (or None), for the pairs of a large job; None without a cluster.
    scheduler: tuple[str, str, Any] | None = None


class _Stopped(Exception):
    """A job has reached its time limit; `best_reached` returns the arguments of the exception."""


def execute(job: Job, context: Context) -> tuple[Content, Arrays]:
    """Run a job and return its record and its arrays; a job without a result has no arrays.

    If the job fails, its record states the reason. Raises MissingData if the data of the job must
    be sent to this computer.
    """
    clock = Clock("preparation", "warm_up", "selection", "training", "test", tell=tell)
    content: dict[str, Any]
    arrays: Arrays = {}
    limits, started, since = context.limits, timestamp(), time.monotonic()
    try:
        own = allowed(limits.time, limits.memory)
        own.name = job.column
        with thread_pools().limit(limits=1), within(own), messages_to(show):
            status, content, arrays = _run(job, context, clock)
    except MissingData:
        raise
    except (OutOfTime, _Stopped, BeyondLimit) as error:
        status = Status.MEMORY_LIMIT if isinstance(error, BeyondLimit) else Status.TIME_LIMIT
        facts, words = error.args if isinstance(error, _Stopped) else ({}, str(error))
        if isinstance(error, OutOfTime):
            facts = {"trainings": error.done, "planned": error.planned}
        reached = {"stage": clock.now, "seconds": time.monotonic() - since, **facts}
        content = stopped(status, limits, reached, words)
    except LimitReached as error:  # raised by a Dask worker that trained a pair of classes
        status, reached = error.status, {**error.reached, "stage": clock.now}
        content = stopped(status, limits, reached)
    except Exception as error:
        status = Status.MEMORY_LIMIT if isinstance(error, MemoryError) else Status.FAILED
        expected = isinstance(error, UserError | NotEnoughMemory)
        text = " ".join(str(error).split())
        content = {
            "reason": text if expected else f"{type(error).__name__}: {text}",
            "wrong_input": isinstance(error, UserError),
            "traceback": "" if expected else "".join(traceback.format_exception(error)),
        }
    times = {"cpu_seconds": clock.cpu, "wall_seconds": clock.wall, "started": started}
    return new_record(job, status, **{**times, "limits": asdict(limits), **content}), arrays


def _run(job: Job, context: Context, clock: Clock) -> tuple[Status, dict[str, Any], Arrays]:
    # imported here, since the process that starts a run does not need these modules
    from mmbench.jobs.evaluate import (
        calibrated_probabilities,
        certificates,
        doubts,
        evaluate,
        storable,
    )
    from mmbench.jobs.identity import identity, parameters_of
    from mmbench.jobs.prepare import prepare
    from mmbench.jobs.train import job_seeds, train
    from mmbench.running.cluster import Spread
    from mmbench.running.forecast import sizes_of_data, threads_that_fit

    seeds = job_seeds(job)
    with clock.stage("preparation"):
        places = job, context.data, context.mirror
        data = prepare(*(at_hand(*places) if context.remote else places))
    share, limit = context.memory_share, context.limits.memory
    threads = threads_that_fit(job, sizes_of_data(data), context.threads, share, limit)
    spread = Spread(context.scheduler, data.class_counts, context.limits)
    machine, selection = train(job, data, context.inherited, threads, seeds, clock, spread)
    clock.cpu["training"] += sum(spread.backend.cpu_seconds) if spread.backend else 0.0
    if time_is_up() and any(fit.status is Status.TIME_LIMIT for fit in machine.fits_):
        raise _Stopped(*best_reached(machine.fits_, machine.gap_tolerance))
    with clock.stage("test"):
        metrics, arrays = evaluate(machine, data, job.ties, seeds["ties"])
    notes: list[str] = []
    if job.calibrate:
        with clock.stage("calibration"):
            probabilities, notes = calibrated_probabilities(machine, job, data, seeds["selection"])
        # the probabilities of the classifier itself are not calibrated, and are stored as scores
        if "probabilities" in arrays:
            arrays.setdefault("scores", arrays.pop("probabilities"))
        if probabilities is not None:
            arrays |= {"classes": storable(machine.classes_), "probabilities": probabilities}
    content = {
        "metrics": metrics,
        "selection": selection,
        "seeds": seeds,
        "split": data.split,
        "parameters": parameters_of(machine),
        "code": identity(job),
        **certificates(machine.fits_, machine.gap_tolerance),
        "deviations": data.deviations,
        "warnings": [*data.warnings, *notes],
        "environment": environment(max(threads, spread.at_a_time)),
        "reason": doubts(machine.fits_),
    }
    return worst(fit.status for fit in machine.fits_), content, arrays
