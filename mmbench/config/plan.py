"""From a configuration to its jobs, in an order in which every job follows the one it uses."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmbench.config.grids import expand_auto, for_kernel, replaced_by
from mmbench.config.model import Config, DatasetEntry
from mmbench.datasets import (
    Dataset,
    DatasetRef,
    dataset_hash,
    known_beforehand,
    load_dataset,
    split_slots,
)
from mmbench.errors import UserError
from mmbench.jobs.job import DEFAULT_DEGREE, Job, SplitRef
from mmbench.machines import alias_of, machine_class
from mmbench.machines.base.foreign import ForeignClassifier

#: Where a job stands in an experiment, but for its split: data set, kernel, degree, machine.
Place = tuple[str, str, int | None, str]


def plan(
    config: Config, store: Path, mirror: str | Path | None = None, allow_network: bool = True
) -> list[Job]:
    """Return the jobs of an experiment: data set, kernel, degree, training size, split, machine.

    Parameters
    ----------
    config : Config
    store : Path
        Local store of data files.
    mirror : str or Path, optional
        Folder or URL that holds data files.
    allow_network : bool
        Whether data whose content no card can know beforehand may be fetched for their hash.

    Returns
    -------
    list of Job
        A parent comes before its children, or is a job of the experiment that ``parameters_from``
        names. Keys are unique.

    Raises
    ------
    UserError
        If a user's data file cannot be read.
    """
    jobs: list[Job] = []
    for entry in config.datasets:
        jobs += _dataset_jobs(config, entry, store, mirror, allow_network)
    if config.source is None or config.parameters_from is None:
        return jobs
    theirs = plan(config.source, store, mirror, allow_network)
    return _with_parents(jobs, theirs, config.source.name, config.parameters_from.splits)


def _with_parents(jobs: list[Job], theirs: list[Job], source: str, splits: int | None) -> list[Job]:
    """Return jobs that use those of a source: of their own split, or of its first `splits`."""
    keys: dict[Place, dict[tuple[int, int], str]] = {}
    for job in theirs:
        keys.setdefault(_place(job), {})[job.split.repeat, job.split.fold] = job.key
    used: list[Job] = []
    for job in jobs:
        found, at = keys[_place(job)], (job.split.repeat, job.split.fold)
        if (splits is None and at not in found) or len(found) < (splits or 0):
            raise UserError(
                f"parameters_from: {source} has too few splits of {job.dataset.name!r}: "
                f"{len(found)}"
            )
        parent = found[at] if splits is None else tuple(found.values())[:splits]
        used.append(replace(job, use=job.column, parent=parent))
    return used


def _place(job: Job) -> Place:
    return job.dataset.name, job.kernel, job.degree, job.column


def _dataset_jobs(
    config: Config, entry: DatasetEntry, store: Path, mirror: str | Path | None, allow_network: bool
) -> Iterator[Job]:
    dataset = entry.ref(config.steps_of(entry))
    content = dataset_hash(dataset, store=store, mirror=mirror, allow_network=allow_network)
    splits = split_refs(config, _described(config, dataset, store, mirror, allow_network))
    for kernel, degree in kernels_and_degrees(config):
        drafts = [
            _draft(config, entry, column, kernel, degree, dataset_hash=content, dataset=dataset)
            for column in config.machines
            if kernel in config.kernels_of(column)
        ]
        for split in splits:
            yield from _at_split(drafts, split)


def _described(
    config: Config, dataset: DatasetRef, store: Path, mirror: str | Path | None, allow_network: bool
) -> DatasetRef | Dataset:
    """Return what the splits are counted of: the data themselves where nothing else tells."""
    if known_beforehand(config.protocol.test.spec, dataset):
        return dataset
    return load_dataset(dataset, store=store, mirror=mirror, allow_network=allow_network)


def _at_split(drafts: list[Job], split: SplitRef) -> Iterator[Job]:
    """Yield the jobs of one split, each with the key of the one it uses."""
    keys: dict[str, str] = {}
    for draft in drafts:
        job = replace(draft, split=split, parent=keys[draft.use] if draft.use else None)
        keys[job.column] = job.key
        yield job


def _draft(
    config: Config,
    entry: DatasetEntry,
    column: str,
    kernel: str,
    degree: int | None,
    **given: Any,
) -> Job:
    """Return the job of a machine's column without its split."""
    machine = config.machine_of(column)
    params, grid = settings(config, column, kernel, degree, entry)
    return Job(
        experiment=config.name,
        split=SplitRef(config.protocol.test.rule),
        machine=machine,
        kernel=kernel,
        params=tuple(sorted(params.items())),
        grid=tuple(sorted(grid.items())),
        use=config.machines[column].use,
        select=config.select.ref,
        ties=config.ties,
        machine_version=_version(machine, kernel),
        variant="" if column == machine else column,
        calibrate=config.machines[column].calibrate,
        **given,
    )


def _version(machine: str, kernel: str) -> int:
    """Return the number that rises with every change of a machine's results."""
    cls = machine_class(machine)
    return cls.version + alias_of(machine).version + cls.kernel_versions.get(kernel, 0)


def kernels_and_degrees(config: Config) -> list[tuple[str, int | None]]:
    """Return the kernels of an experiment, polynomial ones once per degree."""
    kernels = dict.fromkeys(k for name in config.machines for k in config.kernels_of(name))
    degrees = config.degree or [DEFAULT_DEGREE]
    return [(k, d) for k in kernels for d in (degrees if k == "poly" else [None])]


def split_refs(config: Config, dataset: DatasetRef | Dataset) -> list[SplitRef]:
    """Return the splits of a data set, size by size; none where only the data tell how many."""
    protocol = config.protocol
    rule, arg = protocol.test.rule, protocol.test.arg
    args = () if arg is None else (arg,)
    return [
        SplitRef(rule, args, repeat, fold, seed, subset)
        for subset in protocol.subsets
        for seed in protocol.seeds
        for repeat, fold in split_slots(protocol.test.spec, dataset, protocol.repeats)
    ]


def settings(
    config: Config,
    column: str,
    kernel: str,
    degree: int | None = None,
    dataset: DatasetEntry | None = None,
) -> tuple[dict[str, Any], dict[str, tuple]]:
    """Return what a machine runs with on a data set: fixed parameters and explicit grid.

    Fixed parameters of the machine it uses are inherited here; selected ones when the job runs.
    What an alias fixes is no part of them: the job's machine names the alias.
    """
    entry, machine = config.machines[column], config.machine_of(column)
    cls, fixed = machine_class(machine), alias_of(machine).params
    override: Mapping[str, Any] = {} if dataset is None else dataset.grid
    stated = {name: override.get(name, axis) for name, axis in entry.grid.items()}
    grid = expand_auto(cls, stated)
    params = {**entry.params, **dict.fromkeys(replaced_by(cls, (*grid, *entry.params)))}
    if entry.use:
        parent, _ = settings(config, entry.use, kernel, degree, dataset)
        heard = set(cls.parameters) - set(fixed) - set(replaced_by(cls, fixed))
        params = {**{n: v for n, v in parent.items() if n in heard}, **params}
    shared = {
        "gamma_scaling": None if config.gamma_scaling == "none" else config.gamma_scaling,
        "kernel_scaling": None if config.kernel_scaling == "none" else config.kernel_scaling,
        "degree": params.get("degree", degree),
    }
    params |= {n: v for n, v in shared.items() if v is not None and n in cls.parameters}
    params = {name: value for name, value in params.items() if name not in grid}
    grid = {name: _ordered(values) for name, values in grid.items()}
    if issubclass(cls, ForeignClassifier):
        return params, grid
    return for_kernel(params, kernel), for_kernel(grid, kernel)


def _ordered(values: tuple) -> tuple:
    """Sort an axis, so that the order in a file is no part of a job's identity."""
    return tuple(sorted(values, key=lambda value: (isinstance(value, str), value is None, value)))
