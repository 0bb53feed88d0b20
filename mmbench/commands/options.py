"""Options of a run."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmbench.errors import UserError, did_you_mean
from mmbench.jobs.limits import NO_LIMITS, Limits

#: Gets lines for the user.
Say = Callable[[str], object]


def format_of(output: Path | None, fmt: str | None, suffixes: Mapping[str, str]) -> str:
    """Return the format of a file: what is asked for, or what its suffix says, or the first.

    Raises
    ------
    UserError
        If the suffix is that of no format, or the format is unknown.
    """
    suffix = output.suffix.lower() if output else ""
    if fmt is None and suffix not in ("", *suffixes):
        raise UserError(f"{output}: must end in {', '.join(suffixes)}; or say --format")
    fmt = fmt or suffixes.get(suffix, next(iter(suffixes.values())))
    if fmt not in suffixes.values():
        raise UserError(f"unknown format {fmt!r}{did_you_mean(fmt, suffixes.values())}")
    return fmt


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
