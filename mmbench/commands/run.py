"""``mmbench run``: start workers, then read, plan and run experiments.

Most imports are inside the function `run`, after the start of the workers: so this process and the
workers import libraries at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.commands.options import Options, Say, to_stderr
from mmbench.errors import UserError
from mmbench.running.local import LocalExecutor

if TYPE_CHECKING:
    from mmbench.commands.experiments import Finished, PlannedExperiment
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

        planned, finished = plan_experiments(experiments, given, say), []
        if queue := queue_executor(planned, given, say):
            if executor is not None:
                executor.close()
            executor = queue
        assert executor is not None
        for experiment in planned:
            finished.append(run_planned(experiment, executor, given, say))
            if finished[-1].exit_code == EXIT_INTERRUPTED:
                break
        return finished
    finally:
        if executor is not None:
            executor.close()


def executor_for(options: Options, say: Say) -> Executor | None:
    """Return an executor on this computer or on a Dask cluster; None if `--scheduler` names a batch
    system, whose settings are in the configurations.
    """
    if options.scheduler is not None:
        from mmbench.config.model import QUEUES
        from mmbench.running.cluster import DaskExecutor

        if options.scheduler in QUEUES:
            return None
        return DaskExecutor(options.scheduler, options.slots, WORKER_IMPORTS, say)
    executor = LocalExecutor(options.slots, WORKER_IMPORTS)
    executor.start()
    return executor


def queue_executor(
    planned: Sequence[PlannedExperiment], options: Options, say: Say
) -> Executor | None:
    """Return an executor on the batch system of a run; None without a batch system.

    `--scheduler` takes precedence over the configurations. Raises UserError if the configurations
    differ in their clusters.
    """
    from mmbench.config.model import QUEUES

    clusters: list[Any] = [experiment.config.cluster or {} for experiment in planned]
    if any(cluster != clusters[0] for cluster in clusters):
        raise UserError("cluster: differs between the configurations; run them one after the other")
    name = options.scheduler or next(iter(clusters[0]), "")
    if name not in QUEUES:
        return None
    from mmbench.running.cluster import DaskExecutor

    settings = clusters[0].get(name)
    jobs = options.jobs or (settings.jobs if settings else 1)
    arguments = settings.arguments(name) if settings else {}
    return DaskExecutor(name, jobs, WORKER_IMPORTS, say, arguments)
