"""Start workers, then read, plan and run what is asked for.

Little is imported here at first: while this process imports the libraries that planning needs, the
workers import those of their jobs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.running.local import LocalExecutor

Say = Callable[[str], object]

#: What every job needs, and this process does not.
WORKER_IMPORTS = ("mmbench.running.worker", "mmbench.selection")


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
    """

    results: Path
    store: Path
    mirror: str | None = None
    slots: int | None = None
    only: tuple[str, ...] = ()
    smoke: bool = False
    limits: Limits = NO_LIMITS
    strict: bool = False


def launch(names: Iterable[str], options: Options, say: Say) -> int:
    """Run experiments one after the other and return the exit code.

    Parameters
    ----------
    names : iterable of str
        Configurations.
    options : Options
    say : callable
        Gets lines for the user.

    Returns
    -------
    int
        0 all jobs done, 1 some job failed (with `strict`, or has a fit that is not optimal), 2 the
        input of some job was wrong, 130 interrupted.

    Raises
    ------
    UserError
        If configurations, options or data are wrong; nothing has run then.
    """
    executor = LocalExecutor(options.slots or default_slots(), WORKER_IMPORTS)
    executor.start()
    try:
        from mmbench.commands.experiments import plan_experiments
        from mmbench.commands.run import run_experiments

        experiments = plan_experiments(names, options, say)
        return run_experiments(experiments, executor, options, say)
    finally:
        executor.cancel()


def default_slots() -> int:
    """Return the number of physical cores that this process may use.

    Threads of one core share its arithmetic units: solvers gain nothing from the second one.
    """
    import psutil

    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
