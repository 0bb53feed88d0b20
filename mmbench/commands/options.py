"""Options of a run, and the type of what it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.limits import Limits, parse_limits

if TYPE_CHECKING:
    from mmbench.config.model import Config

    #: A YAML file, the name of an experiment, the content of a file, or a checked experiment.
    Experiment = str | Path | Mapping[str, Any] | Config

Say = Callable[[str], object]


@dataclass(frozen=True)
class Options:
    """Options of a run.

    Parameters
    ----------
    results : path
        Folder that gets a folder per experiment.
    store : path
        Local store of data files.
    mirror : str, optional
        Folder or URL that holds data files.
    jobs : int, optional
        Parallel processes; by default the number of physical cores.
    only : sequence of str
        ``dataset=NAME`` and ``machine=NAME``: the part of the jobs to run.
    smoke : bool
        Whether to run the smoke version.
    set : sequence of str
        ``KEY=VALUE``, in place of values of the configurations.
    strict : bool
        Whether fits that are not optimal count as failed.
    time_limit, memory_limit : str, optional
        Limits of a job, as ``"1h"`` and ``"8 GB"``, in place of those of the configuration.
    by_machine : bool
        Whether to run one machine after the other and to say the mean accuracy of each.
    scheduler : str, optional
        Address of a Dask scheduler, or "local"; by default processes on this computer are used.
    rerun : {"changed"}, optional
        Whether finished jobs run again if the sources of their machine have changed.

    Raises
    ------
    UserError
        If a limit or `rerun` is not valid.
    """

    results: str | Path = "results"
    store: str | Path = "datasets"
    mirror: str | None = None
    jobs: int | None = None
    only: Sequence[str] = ()
    smoke: bool = False
    set: Sequence[str] = ()
    strict: bool = False
    time_limit: str | None = None
    memory_limit: str | None = None
    scheduler: str | None = None
    by_machine: bool = False
    rerun: str | None = None

    def __post_init__(self) -> None:
        if self.rerun not in (None, "changed"):
            raise UserError(f"--rerun {self.rerun}: must be 'changed'")
        parse_limits(self.time_limit, self.memory_limit)

    @property
    def limits(self) -> Limits:
        """The limits of a job in seconds and bytes."""
        return parse_limits(self.time_limit, self.memory_limit)

    @property
    def slots(self) -> int:
        """The number of processes.

        Two threads of one core share its arithmetic units: solvers gain nothing from the second.
        """
        if self.jobs:
            return self.jobs
        import psutil

        cores = psutil.cpu_count(logical=False) or 1
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
        return max(1, min(cores, usable))


def has_terminal() -> bool:
    """Whether progress bars can be shown; a closed stream is None."""
    return sys.stderr is not None and sys.stderr.isatty()


def to_stderr(line: str) -> None:
    """Print a line for the user, if there is a place for it."""
    with suppress(OSError):
        print(line, file=sys.stderr)
