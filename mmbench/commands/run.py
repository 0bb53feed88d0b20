"""``mmbench run``: start workers, then read, plan and run experiments.

Little is imported at first: while this process imports the libraries that planning needs, the
workers import those of their jobs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.commands.options import Options, Say, to_stderr
from mmbench.running.local import Executor, LocalExecutor

if TYPE_CHECKING:
    from mmbench.commands.experiments import Finished
    from mmbench.commands.options import Experiment

#: Imports of a job that this process itself does not need.
WORKER_IMPORTS = ("mmbench.running.worker", "mmbench.selection")


def run(
    experiments: Experiment | Iterable[Experiment],
    results: str | Path = "results",
    *,
    say: Say = to_stderr,
    **options: Any,
) -> list[Finished]:
    """Run experiments one after the other; jobs that have a record are not run again.

    Parameters
    ----------
    experiments : path, name, mapping, or an iterable of these
        YAML files, names from ``mmbench list configs``, or the content of a file.
    results : path
        Folder that gets a folder per experiment.
    say : callable
        Called with lines for the user.
    **options
        Fields of `mmbench.commands.options.Options`.

    Returns
    -------
    list of Finished
        Counts of jobs and the folder of records of each experiment.

    Raises
    ------
    UserError
        If configurations, options or data are wrong; nothing has run then.
    """
    given = Options(results, **options)
    executor = _executor(given, say)
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


def _executor(options: Options, say: Say) -> Executor:
    if options.scheduler is not None:
        from mmbench.running.cluster import DaskExecutor

        return DaskExecutor(options.scheduler, options.slots, WORKER_IMPORTS, say)
    executor = LocalExecutor(options.slots, WORKER_IMPORTS)
    executor.start()
    return executor
