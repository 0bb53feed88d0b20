"""Options of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmbench.jobs.limits import NO_LIMITS, Limits

#: Gets lines for the user.
Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Parameters
    ----------
    results : Path
        Folder that gets one folder for each experiment.
    store : Path
        Local store of data files.
    mirror : str, optional
        Folder or URL that holds data files.
    slots : int, optional
        Number of processes; physical cores when not given.
    only : tuple of str
        ``dataset=NAME`` and ``machine=NAME``.
    smoke : bool
        Whether to run the smoke version.
    limits : Limits
        Of each job, in place of those of the configuration.
    strict : bool
        Whether fits that are not optimal count as failed.
    scheduler : str, optional
        Address of a Dask scheduler, or "local"; processes on this computer when not given.
    overrides : tuple of str
        ``KEY=VALUE``, in place of values of the configurations.
    """

    results: Path
    store: Path
    mirror: str | None = None
    slots: int | None = None
    only: tuple[str, ...] = ()
    smoke: bool = False
    limits: Limits = NO_LIMITS
    strict: bool = False
    scheduler: str | None = None
    overrides: tuple[str, ...] = ()


def default_slots() -> int:
    """Return the number of physical cores that this process may use.

    Threads of one core share its arithmetic units: solvers gain nothing from the second one.
    """
    import psutil

    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
