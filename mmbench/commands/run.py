"""What ``mmbench run`` does: read all configurations, look at the data, plan, run, say what became.

Everything that can be wrong with the input is found before the first job starts and before
anything is written to the results folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.commands.only import keep_keys, keep_only, parse_only
from mmbench.commands.preflight import prepare_data
from mmbench.config.cells import plan_of
from mmbench.config.model import Config
from mmbench.config.plan import plan
from mmbench.config.read import load_configs, to_yaml
from mmbench.config.smoke import smoke
from mmbench.errors import SEVERITY, UserError
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.plan import Plan
from mmbench.jobs.store import RecordStore

if TYPE_CHECKING:
    from mmbench.running.local import LocalExecutor
    from mmbench.running.runner import Summary

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


@dataclass(frozen=True)
class Experiment:
    """A configuration, its jobs to run, its whole plan, and the folder of its records.

    `source` is the folder of the records that the jobs use.
    """

    config: Config
    jobs: list[Job] = field(repr=False)
    plan: Plan = field(repr=False)
    folder: Path
    source: Path | None = None


def plan_experiments(
    names: Iterable[str], options: Options, say: Say | None = None
) -> list[Experiment]:
    """Return the experiments of some configurations with the jobs that `options` ask for.

    Parameters
    ----------
    names : iterable of str
        Configurations.
    options : Options
    say : callable, optional
        Gets what is remarkable in the data, which are fetched and checked first. Without it no
        data are read, and none are fetched.

    Raises
    ------
    UserError
        If configurations, options or data are wrong.
    """
    configs = load_configs(names)
    if options.smoke:
        configs = [smoke(config) for config in configs]
    asked = {config.name for config in configs}
    configs = _with_sources(configs)
    wanted = parse_only(options.only, configs)
    if say:
        for config in configs:
            prepare_data(config, wanted.get("dataset"), options.store, options.mirror, say)
    planned = [_planned(config, wanted, options, say is not None) for config in configs]
    planned = [one if one.config.name in asked else _needed(one, planned) for one in planned]
    experiments = [experiment for experiment in planned if experiment.jobs]
    if not experiments:
        raise UserError(f"--only {' --only '.join(options.only)}: leaves no job")
    return experiments


def _with_sources(configs: Iterable[Config]) -> list[Config]:
    """Put before each experiment the one that it takes parameters from, which must run first."""
    by_name: dict[str, Config] = {}
    for config in configs:
        for one in filter(None, (config.source, config)):
            by_name.setdefault(one.name, one)
    return list(by_name.values())


def _planned(
    config: Config, wanted: dict[str, set[str]], options: Options, allow_network: bool
) -> Experiment:
    jobs = plan(config, options.store, options.mirror, allow_network)
    cells = plan_of(config, jobs)
    folder = options.results / config.source.name if config.source else None
    return Experiment(config, keep_only(jobs, wanted), cells, options.results / config.name, folder)


def _needed(source: Experiment, planned: Iterable[Experiment]) -> Experiment:
    """Return an experiment that was not asked for, with the jobs alone that others take over."""
    children = (other for other in planned if other.source == source.folder)
    parents = {job.parent for other in children for job in other.jobs}
    return replace(source, jobs=keep_keys(source.jobs, parents))


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
    from mmbench.running.local import LocalExecutor

    executor = LocalExecutor(options.slots or default_slots(), WORKER_IMPORTS)
    executor.start()  # half of what a short run takes besides its work is imports
    try:
        return _launch(plan_experiments(names, options, say), executor, options, say)
    finally:
        executor.cancel()


def _launch(
    experiments: Iterable[Experiment], executor: LocalExecutor, options: Options, say: Say
) -> int:
    from mmbench.running.runner import EXIT_INTERRUPTED

    code = 0
    for experiment in experiments:
        code = max(code, run_experiment(experiment, executor, options, say))
        if code == EXIT_INTERRUPTED:
            break
    return code


def run_experiment(
    experiment: Experiment, executor: LocalExecutor, options: Options, say: Say
) -> int:
    """Run one planned experiment and return its exit code.

    Raises
    ------
    UserError
        If its results folder is somebody else's or cannot be written to.
    """
    from mmbench.running.runner import EXIT_FAILED, run

    store = RecordStore.create(experiment.folder, to_yaml(experiment.config), experiment.plan)
    done = run(
        experiment.jobs,
        store,
        executor,
        data=options.store.absolute(),
        mirror=options.mirror,
        limits=options.limits.over(experiment.config.limits.amounts),
        source=RecordStore(experiment.source) if experiment.source else None,
    )
    for line in done.wrong_input:
        say(line)
    if others := len(set(store.keys()) - experiment.plan.jobs):
        say(
            f"{experiment.folder}: {others} records are of other settings, or of earlier versions "
            "of a machine; tables leave them out, 'mmbench clean' removes them"
        )
    say(
        f"{experiment.config.name}: {done.done} jobs done, {done.reused} done before, "
        f"{len(done.failed)} failed, {done.left} left{_doubts(done)}; "
        f"records are in {experiment.folder}"
    )
    return max(done.exit_code, EXIT_FAILED if options.strict and done.doubtful else 0)


def _doubts(done: Summary) -> str:
    """Say how many jobs have a result by fits that are not solved."""
    if not done.doubtful:
        return ""
    counts = sorted(done.doubtful.items(), key=lambda item: -SEVERITY.index(item[0]))
    kinds = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts)
    return f", {done.doubtful.total()} with fits that are not optimal ({kinds})"


def default_slots() -> int:
    """Return the number of physical cores that this process may use.

    Threads of one core share its arithmetic units: solvers gain nothing from the second one.
    """
    import psutil

    physical = psutil.cpu_count(logical=False) or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
