"""From the names of configurations to planned experiments.

Everything that can be wrong with the input is found before the first job starts and before
anything is written to the results folder.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmbench.commands.only import keep_keys, keep_only, parse_only
from mmbench.commands.options import Options, Say
from mmbench.commands.preflight import prepare_data
from mmbench.config.cells import plan_of
from mmbench.config.model import Config
from mmbench.config.plan import plan
from mmbench.config.read import load_configs
from mmbench.config.smoke import smoke
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.store import Plan


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
    names: Iterable[str | Config], options: Options, say: Say | None = None
) -> list[Experiment]:
    """Return the experiments of some configurations with the jobs that `options` ask for.

    Parameters
    ----------
    names : iterable of str or Config
        Configurations.
    options : Options
    say : callable, optional
        Gets warnings about the data, which are fetched and checked first. Without it data of cards
        are neither fetched nor read.

    Raises
    ------
    UserError
        If configurations, options or data are wrong.
    """
    configs = load_configs(names, options.overrides)
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
    parents = {key for other in children for job in other.jobs for key in job.parents}
    return replace(source, jobs=keep_keys(source.jobs, parents))
