"""``mmbench run``: start workers, then read, plan and run experiments.

Most imports are inside the function `run`, after the start of the workers: so this process and the
workers import libraries at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.commands.options import Options, Say, to_stderr
from mmbench.running.local import LocalExecutor

if TYPE_CHECKING:
    from mmbench.commands.experiments import Finished
    from mmbench.commands.options import Experiment
    from mmbench.running.runner import Executor

#: Modules that workers import at their start.
WORKER_IMPORTS = ("mmbench.running.worker", "mmbench.selection")


def run(
    experiments: Experiment | Iterable[Experiment],
    results: str | Path = "results",
    *,
    say: Say = to_stderr,
    **options: Any,
) -> list[Finished]:
    """Run experiments one after the other; jobs that have a result are not run again.

    Parameters
    ----------
    experiments : path, name, mapping, or an iterable of these
        YAML files, names listed by ``mmbench list configs``, or contents of YAML files.
    results : path
        Folder in which a results folder per experiment is created.
    say : callable
        Called with messages for the user.
    **options
        Fields of `mmbench.commands.options.Options`.

    Returns
    -------
    list of Finished
        Numbers of jobs and results folder of each experiment.

    Raises
    ------
    UserError
        If a configuration, an option or the data are not valid; no job has run in this case.
    """
    given = Options(results, **options)
    executor = executor_for(given, say)
    try:
        from mmbench.commands.experiments import plan_experiments, run_planned
        from mmbench.running.runner import EXIT_INTERRUPTED

        finished = []
        for experiment in plan_experiments(experiments, given, say):
            finished.append(run_planned(experiment, executor, given, say))
            if finished[-1].exit_code == EXIT_INTERRUPTED:
                break
        return finished
    finally:
        executor.close()


def executor_for(options: Options, say: Say) -> Executor:
    """Return an executor on this computer or on the Dask cluster of the options."""
    if options.scheduler is not None:
        from mmbench.running.cluster import DaskExecutor

        return DaskExecutor(options.scheduler, options.slots, WORKER_IMPORTS, say)
    executor = LocalExecutor(options.slots, WORKER_IMPORTS)
    executor.start()
    return executor
