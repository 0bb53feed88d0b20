"""From a configuration to the plan of its tables: which cells there are, in which order."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from mmbench.config.files import find_config
from mmbench.config.model import Config
from mmbench.config.plan import kernels_and_degrees, settings, split_refs
from mmbench.config.read import load_config
from mmbench.config.smoke import SUFFIX
from mmbench.errors import UserError
from mmbench.jobs.job import Job
from mmbench.jobs.store import CONFIG, Key, Plan, PlannedCell, group_by_cell


def plan_of(config: Config, jobs: Iterable[Job] = ()) -> Plan:
    """Return what a configuration plans.

    Parameters
    ----------
    config : Config
    jobs : iterable of Job
        All its jobs; without them the plan does not say which records are its own.
    """
    keys = {cell: tuple(job.key for job in found) for cell, found in group_by_cell(jobs).items()}
    # where only the data tell the number of splits, it is that of the jobs
    cells = tuple(
        PlannedCell(
            key,
            n_splits or len(keys.get(key, ())),
            keys.get(key, ()),
            key.machine in config.published_only,
        )
        for key, n_splits in _cells(config)
    )
    labels = {
        column: entry.label or column
        for column, entry in config.machines.items()
        if entry.label or column != config.machine_of(column)
    }
    smoke = config.name.endswith(SUFFIX)
    published, metrics = _published_as(config), tuple(config.metrics)
    uses = {column: entry.use for column, entry in config.machines.items() if entry.use}
    return Plan(config.name, config.layout, cells, labels, published, smoke, metrics, uses=uses)


def replan(folder: Path) -> Plan | None:
    """Return the plan of a results folder from its configuration, or from that of its name.

    None where there is no valid one.
    """
    path = folder / CONFIG
    try:
        return plan_of(load_config(path if path.is_file() else find_config(folder.name)))
    except UserError:
        return None


def _cells(config: Config) -> Iterator[tuple[Key, int]]:
    """Yield the cells and their numbers of splits: data set, kernel, machine, degree, size."""
    kernels = dict.fromkeys(kernel for kernel, _ in kernels_and_degrees(config))
    for entry in config.datasets:
        n_splits = Counter(split.size for split in split_refs(config, entry.ref(())))
        n_splits = n_splits or Counter(dict.fromkeys(config.protocol.sizes, 0))
        for kernel in kernels:
            for machine in _machines(config, kernel):
                for degree in _degrees(config, machine, kernel):
                    for size, count in n_splits.items():
                        yield Key(entry.label, kernel, degree, machine, size), count


def _machines(config: Config, kernel: str) -> list[str]:
    """Return the machines of a kernel, then those of which published values alone are shown."""
    run = [name for name in config.machines if kernel in config.kernels_of(name)]
    return [*run, *config.published_only]


def _degrees(config: Config, machine: str, kernel: str) -> list[int | None]:
    """Return the degrees of a machine's cells; None in place of one that it selects."""
    degrees = [degree for name, degree in kernels_and_degrees(config) if name == kernel]
    if machine in config.published_only or kernel != "poly":
        return degrees
    stated = (settings(config, machine, kernel, degree)[0].get("degree") for degree in degrees)
    return list(dict.fromkeys(stated))


def _published_as(config: Config) -> dict[str, str]:
    """Return the published names of data sets that have another one; none for some classes."""
    return {
        entry.label: entry.published_as or ""
        for entry in config.datasets
        if entry.classes or entry.published_as
    }
