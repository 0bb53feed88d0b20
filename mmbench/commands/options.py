"""Options of a run."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmbench.jobs.limits import NO_LIMITS, Limits

#: Gets lines for the user.
Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a run."""

    #: Folder that gets one folder for each experiment.
    results: Path
    #: Local store of data files.
    store: Path
    #: Folder or URL that holds data files.
    mirror: str | None = None
    #: Number of processes; physical cores when not given.
    slots: int | None = None
    #: ``dataset=NAME`` and ``machine=NAME``.
    only: tuple[str, ...] = ()
    #: Whether to run the smoke version.
    smoke: bool = False
    #: Of each job, in place of those of the configuration.
    limits: Limits = NO_LIMITS
    #: Whether fits that are not optimal count as failed.
    strict: bool = False
    #: Address of a Dask scheduler, or "local"; processes on this computer when not given.
    scheduler: str | None = None
    #: ``KEY=VALUE``, in place of values of the configurations.
    overrides: tuple[str, ...] = ()


def default_slots() -> int:
    """Return the number of physical cores that this process may use.

    Threads of one core share its arithmetic units: solvers gain nothing from the second one.
    """
    import psutil

    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
