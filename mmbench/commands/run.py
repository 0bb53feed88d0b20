"""``mmbench run``: starts worker processes, then reads, plans and runs experiments.

Most imports follow the start of the workers, so that both import libraries at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.commands.options import Options, Say, options_of, to_stderr, unbundled
from mmbench.config.files import load_yaml
from mmbench.errors import UserError, did_you_mean
from mmbench.running.local import LocalExecutor

if TYPE_CHECKING:
    from mmbench.commands.experiments import Finished, PlannedExperiment
    from mmbench.commands.options import Experiment
    from mmbench.running.runner import Executor

__all__ = ["run"]

#: Modules that worker processes import when they start.
WORKER_IMPORTS = ("mmbench.running.worker", "mmbench.selection.search")


def run(
    experiments: Experiment | Iterable[Experiment],
    results: str | Path | None = None,
    *,
    say: Say = to_stderr,
    **options: Any,
) -> list[Finished]:
    """Run experiments one after the other, without repeating jobs that have a result.

    Parameters
    ----------
    experiments : path, name, mapping, or an iterable of these
        YAML files, results folders, bundles, names listed by ``mmbench list configs``, or contents
        of YAML files.
    results : path, optional
        Folder in which a results folder per experiment is created. By default, an experiment that
        is given by its results folder continues in this folder, and the folder of all other
        experiments is ``results``.
    say : callable
        Called with messages for the user.
    **options
        Fields of `mmbench.commands.options.Options`.

    Returns
    -------
    list of Finished
        For each experiment, the numbers of jobs, the exit code and the results folder.

    Raises
    ------
    UserError
        If a configuration, an option or the data are not valid. The input is checked before any job
        is run.
    """
    given = options_of(results, options)
    asked = unbundled(experiments, given)
    executor = None if _may_need_queue(asked, given) else executor_for(given, (), say)
    try:
        from mmbench.commands.experiments import plan_experiments, run_planned
        from mmbench.running.runner import EXIT_INTERRUPTED

        planned, finished = plan_experiments(asked, given, say, executor), []
        executor = executor or executor_for(given, planned, say)
        for experiment in planned:
            finished.append(run_planned(experiment, executor, given, say))
            if finished[-1].exit_code == EXIT_INTERRUPTED:
                break
        return finished
    finally:
        if executor is not None:
            executor.close()


def _may_need_queue(experiments: Iterable[Any], options: Options) -> bool:
    """Return whether the options or the YAML files may select a batch system.

    Other checks of the YAML files, which import libraries, follow after the start of the worker
    processes.
    """
    if options.scheduler is not None:
        from mmbench.config.model import QUEUES

        return options.scheduler in QUEUES
    # the numbers of data sets, machines and splits are checked here, unless an option changes them
    count = not options.set
    contents = (load_yaml(e, count) if isinstance(e, str | Path) else dict(e) for e in experiments)
    stated = (isinstance(c, Mapping) and c.get("cluster") for c in contents)
    return any(option.startswith("cluster") for option in options.set) or any(stated)


def executor_for(options: Options, planned: Iterable[PlannedExperiment], say: Say) -> Executor:
    """Return an executor of jobs: on this computer, on a Dask cluster or on a batch system.

    ``--scheduler`` takes precedence over the key ``cluster``; a configuration without this key runs
    on the cluster of the others. Raises UserError if two configurations have different clusters, or
    if ``--scheduler`` is neither an address nor a known name.
    """
    clusters: list[Any] = [one.config.cluster for one in planned if one.config.cluster]
    if any(cluster != clusters[0] for cluster in clusters):
        raise UserError("cluster: differs between the configurations; run them one after the other")
    cluster = clusters[0] if clusters else {}
    name = options.scheduler or next(iter(cluster), None)
    if name is None:
        return LocalExecutor(options.slots, WORKER_IMPORTS)
    from mmbench.config.model import QUEUES
    from mmbench.running.cluster import DaskExecutor

    if name not in QUEUES:
        if name != "local" and ":" not in name:
            hint = did_you_mean(name, ("local", *QUEUES))
            raise UserError(f"--scheduler {name}: an address needs a port{hint}")
        return DaskExecutor(name, options.slots, WORKER_IMPORTS, say)
    settings = cluster.get(name)
    jobs = options.jobs or (settings.jobs if settings else 1)
    arguments = settings.arguments(name) if settings else {}
    return DaskExecutor(name, jobs, WORKER_IMPORTS, say, arguments)
