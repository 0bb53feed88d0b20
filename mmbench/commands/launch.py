"""Start workers, then read, plan and run what is asked for.

Little is imported here at first: while this process imports the libraries that planning needs, the
workers import those of their jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mmbench.commands.options import Options, Say, default_slots
from mmbench.running.local import Executor, LocalExecutor

if TYPE_CHECKING:
    from mmbench.config.model import Config

#: What every job needs, and this process does not.
WORKER_IMPORTS = ("mmbench.running.worker", "mmbench.selection")


def launch(names: Iterable[str | Config], options: Options, say: Say) -> int:
    """Run experiments one after the other and return the exit code.

    Parameters
    ----------
    names : iterable of str or Config
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
    executor = _executor(options, say)
    try:
        from mmbench.commands.experiments import plan_experiments
        from mmbench.commands.run import run_experiments

        experiments = plan_experiments(names, options, say)
        return run_experiments(experiments, executor, options, say)
    finally:
        executor.close()


def _executor(options: Options, say: Say) -> Executor:
    slots = options.slots or default_slots()
    if options.scheduler is not None:
        from mmbench.running.cluster import DaskExecutor

        return DaskExecutor(options.scheduler, slots, WORKER_IMPORTS, say)
    executor = LocalExecutor(slots, WORKER_IMPORTS)
    executor.start()
    return executor
