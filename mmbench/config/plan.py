"""The jobs and the table cells of a configuration."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from mmbench.config.faults import Fault
from mmbench.config.grids import AUTO, expand_auto, for_kernel, replaced_by
from mmbench.config.model import Config, DatasetEntry
from mmbench.config.smoke import SUFFIX
from mmbench.datasets.dataset import Dataset, DatasetRef
from mmbench.datasets.fetch import NotAvailable
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.partitions import split_slots
from mmbench.errors import UserError
from mmbench.jobs.identity import parameters_of
from mmbench.jobs.job import DEFAULT_DEGREE, Job, SplitRef
from mmbench.jobs.planned import Key, Plan, PlannedCell, PublishedRow, grouped, key_of
from mmbench.machines import alias_of, machine_class, make_machine
from mmbench.machines.base.foreign import ForeignClassifier

# -- jobs --------------------------------------------------------------------------------------


def plan(
    config: Config,
    store: Path,
    mirror: str | Path | None = None,
    allow_network: bool = True,
    absent: dict[str, str] | None = None,
) -> list[Job]:
    """Return the jobs of a configuration, ordered by data set, kernel, training size, split, degree
    and machine.

    The parent of a job precedes it, or belongs to the experiment that ``parameters_from`` names.
    Different jobs have different keys. If a card does not state the hash of the data, it is
    computed from the data, which are downloaded only if `allow_network` is true. If data whose
    number of splits is unknown cannot be downloaded, they have no jobs, and `absent` receives the
    name of the data set with the reason; without `absent`, NotAvailable is raised.
    """
    places: dict[str, Any] = {"store": store, "mirror": mirror, "allow_network": allow_network}
    jobs: list[Job] = []
    for entry in config.datasets:
        dataset = entry.ref(config.steps_of(entry))
        data = {"dataset": dataset, "dataset_hash": dataset_hash(dataset, **places)}
        splits = split_refs(config, dataset)
        if not splits:
            if absent and entry.label in absent:
                continue
            try:
                splits = split_refs(config, load_dataset(dataset, **places))
            except NotAvailable as error:
                if absent is None:
                    raise
                absent[entry.label] = str(error)
                continue
        for kernel, degrees in degrees_by_kernel(config).items():
            run = [name for name in config.machines if kernel in config.kernels_of(name)]
            keys: dict[SplitRef, dict[str, str]] = {split: {} for split in splits}
            known: set[str] = set()
            for degree in degrees:
                each = (job_of_column(config, entry, n, kernel, degree, **data) for n in run)
                # a classifier of another package that takes no degree runs once
                drafts = [draft for draft in each if draft.key not in known]
                known |= {draft.key for draft in drafts if ":" in draft.machine}
                if len(jobs) + len(splits) * len(drafts) > config.limits.jobs:
                    most = f"more than {config.limits.jobs} jobs"
                    raise UserError(f"{config.name}: {most} need --set limits.jobs=N")
                for split in splits:
                    for draft in drafts:
                        parent = keys[split][draft.use] if draft.use else None
                        own = config.machines[draft.column].split_of(split)
                        job = replace(draft, split=own, parent=parent)
                        keys[split][job.column] = job.key
                        jobs.append(job)
    if config.source is None or config.parameters_from is None:
        return jobs
    theirs = plan(config.source, **places, absent=absent)
    return list(_with_parents(jobs, theirs, config.parameters_from.splits))


def _with_parents(jobs: list[Job], theirs: list[Job], splits: int | None) -> Iterator[Job]:
    """Yield each job with its parents: the jobs of another experiment, in the list `theirs`, whose
    selected parameters the job uses.

    They are on the same split or, if `splits` is given, on the first `splits` splits.
    """
    keys: dict[tuple, dict[tuple[int, ...], str]] = {}
    for job in theirs:
        keys.setdefault(key_of(job)[:4], {})[job.split.at[:2]] = job.key
    for job in jobs:
        known, at = keys.get(key_of(job)[:4], {}), job.split.at[:2]
        if (splits is None and at not in known) or len(known) < (splits or 1):
            few = f"has too few splits of {job.dataset.name!r}: {len(known)}"
            none = f"selects no parameters of {job.column} for degree {job.degree}"
            raise UserError(f"parameters_from: {theirs[0].experiment} {few if known else none}")
        parent = known[at] if splits is None else tuple(known.values())[:splits]
        yield replace(job, use=job.column, parent=parent)


def version_of(machine: str, kernel: str) -> int:
    """Return the version of the installed code of a machine for one kernel."""
    cls = machine_class(machine)
    return cls.version + alias_of(machine).version + cls.kernel_versions.get(kernel, 0)


def need_dense_rows(config: Config) -> list[str]:
    """Return the names of the entries of ``machines`` that cannot be trained on sparse rows."""
    classes = {name: machine_class(config.machine_of(name)) for name in config.machines}
    return [name for name, cls in classes.items() if not getattr(cls, "sparse_input", True)]


def job_of_column(
    config: Config,
    entry: DatasetEntry,
    column: str,
    kernel: str,
    degree: int | None = None,
    **given: Any,
) -> Job:
    """Return a job for an entry of ``machines``, without a parent and with an incomplete split.

    The split of the job contains only the split rule, without repeat and fold. The keyword
    arguments `given` are further fields of the job.
    """
    machine = config.machine_of(column)
    params, grid = settings(config, column, kernel, degree, entry)
    known = parameters_of(make_machine(machine, **params))
    defaults = {n: v for n, v in known.items() if n not in {*params, *grid}}
    if not issubclass(machine_class(machine), ForeignClassifier):
        defaults = for_kernel({n: v for n, v in defaults.items() if n != "kernel"}, kernel)
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
        machine_version=version_of(machine, kernel),
        variant="" if column == machine else column,
        defaults=tuple(sorted(defaults.items())),
        calibrate=config.machines[column].calibrate,
        **given,
    )


def degrees_by_kernel(config: Config) -> dict[str, Sequence[int | None]]:
    """Return the polynomial degrees for each kernel, or [None] for a kernel without degrees."""
    kernels = dict.fromkeys(k for name in config.machines for k in config.kernels_of(name))
    return {k: (config.degree or [DEFAULT_DEGREE]) if k == "poly" else [None] for k in kernels}


def split_refs(config: Config, dataset: DatasetRef | Dataset) -> list[SplitRef]:
    """Return the train/test splits of a data set, ordered by training size.

    If the number of splits depends on data that are not read yet, the list is empty.
    """
    protocol = config.protocol
    rule, *args = (part for part in protocol.test if part is not None)
    slots = split_slots(protocol.test.spec, dataset, protocol.repeats)
    places = product(protocol.subsets, protocol.seed, slots)
    return [SplitRef(rule, tuple(args), *slot, seed, subset) for subset, seed, slot in places]


def settings(
    config: Config,
    column: str,
    kernel: str,
    degree: int | None = None,
    dataset: DatasetEntry | None = None,
) -> tuple[dict[str, Any], dict[str, tuple]]:
    """Return the fixed parameters and the grid of a machine on a data set, without ``auto``.

    If the key ``use`` names another entry of ``machines``, its fixed parameters are added here, and
    its selected parameters when the job runs. Fixed parameters of an alias are left out, since the
    job has the name of the alias.
    """
    entry, machine = config.machines[column], config.machine_of(column)
    cls, fixed = machine_class(machine), alias_of(machine).params
    override: Mapping[str, Any] = {} if dataset is None else dataset.grid
    axes = {name: override.get(name, axis) for name, axis in entry.grid.items()}
    grid = expand_auto(cls, axes)
    params = {**entry.params, **dict.fromkeys(replaced_by(cls, (*grid, *entry.params)))}
    if axes.get("gamma") == AUTO:  # the unit of the automatic grid
        params = {"gamma_scaling": "variance", **params}
    if entry.use:
        parent, _ = settings(config, entry.use, kernel, degree, dataset)
        if "degree" in machine_class(config.machine_of(entry.use)).parameters:
            degree = parent.get("degree")  # None if the degree is selected by grid search
        known = set(cls.parameters) - set(fixed) - set(replaced_by(cls, fixed))
        if "gamma" in (*grid, *entry.params):
            known -= {"gamma_scaling"}  # the unit of the parent's gamma
        params = {**{n: v for n, v in parent.items() if n in known}, **params}
    elif config.source is not None and column in config.source.machines:
        theirs, _ = settings(config.source, column, kernel, degree, _same(config.source, dataset))
        params = {n: theirs[n] for n in ("gamma_scaling",) if n in theirs} | params
    foreign = issubclass(cls, ForeignClassifier)
    if foreign and entry.kernel and "kernel" in cls.parameters:
        params["kernel"] = kernel
    shared = {
        "gamma_scaling": config.gamma_scaling,
        "kernel_scaling": config.kernel_scaling,
        "degree": params.get("degree", degree),
    }
    if foreign:  # the experiment's settings of kernels apply only to a kernel that the entry states
        shared = {"degree": shared["degree"]} if params.get("kernel") == "poly" else {}
    params |= {n: v for n, v in shared.items() if v not in (None, "none") and n in cls.parameters}
    params = {name: value for name, value in params.items() if name not in grid}
    # sort the values: the key of a job must not depend on the order of values in a YAML file
    for name, values in grid.items():
        grid[name] = tuple(sorted(values, key=_order))
    if foreign:
        return params, grid
    return for_kernel(params, kernel), for_kernel(grid, kernel)


def _same(config: Config, dataset: DatasetEntry | None) -> DatasetEntry | None:
    """Return the entry of a data set in another experiment."""
    return next((e for e in config.datasets if dataset and e.label == dataset.label), None)


def _order(value: Any) -> tuple[int, bool, Any]:
    """Return the sort key of a value in a grid: numbers, None, words, then lists and mappings."""
    nested = isinstance(value, tuple | dict)
    kind = 2 if nested else int(isinstance(value, str))
    return kind, value is None, repr(value) if nested else value


# -- table cells -------------------------------------------------------------------------------


def plan_of(config: Config, jobs: Iterable[Job] = ()) -> Plan:
    """Return the plan of an experiment's tables: table cells with the keys of their `jobs`, and the
    headings of the columns.
    """
    keys = grouped((key_of(job), job.key) for job in jobs)
    cells = []
    for key, n_splits in table_cells(config):
        own, published_only = tuple(keys.get(key, ())), key.machine in config.published_only
        # if `n_splits` is 0, the number of splits depends on the data, and is the number of jobs
        cells.append(PlannedCell(key, n_splits or len(own), own, published_only))
    labels = {
        column: entry.label or column
        for column, entry in config.machines.items()
        if entry.label or column != config.machine_of(column)
    }
    labels |= {
        row["machine"]: row["printed_method"]
        for row in config.published
        if row.get("machine") in config.published_only and "printed_method" in row
    }
    stated = {e.label: e.published_splits or config.published_splits for e in config.datasets}
    splits = {name: n for name, n in stated.items() if n}
    uses = {column: entry.use for column, entry in config.machines.items() if entry.use}
    smoke, metrics = config.name.endswith(SUFFIX), tuple(config.metrics)
    settings = (labels, config.published_names, splits, smoke, metrics, uses)
    ratio, published = config.protocol.test_to_train, tuple(placed_rows(config))
    layout, *more = config.layout
    return Plan(config.name, layout, tuple(cells), *settings, ratio, published, tuple(more))


def placed_rows(config: Config) -> Iterator[PublishedRow]:
    """Yield the rows of the key ``published``. If a row does not state its kernel or degree, the
    kernel and the degree of the machine on the data set are added.

    Raises `Fault` if the machine has several kernels or degrees on the data set.
    """
    names = {entry.label: entry.label for entry in config.datasets} | config.published_names
    places = grouped(
        ((names[key.dataset], key.machine), (key.kernel, key.degree))
        for key, _ in table_cells(config)
    )
    for k, row in enumerate(config.published, 1):
        kernel, degree = row.get("kernel"), row.get("degree")
        fitting = {
            place
            for place in places.get((row["dataset"], row.get("machine", "")), ())
            if kernel in (None, place[0]) and degree in (None, place[1])
        }
        if len(fitting) > 1:
            lacking = "degree" if kernel else "kernel"
            problem = f"is empty, and {row['machine']} has several {lacking}s"
            raise Fault(f"row {k}: {lacking} {problem}", "published")
        placed = row.copy()
        for kernel, degree in fitting:
            placed["kernel"] = kernel
            if degree is not None:
                placed["degree"] = degree
        yield placed


def table_cells(config: Config) -> Iterator[tuple[Key, int]]:
    """Yield the key and the number of splits of each table cell, in the order of the tables.

    The number of splits is 0 if it depends on data that are not read.
    """
    for entry in config.datasets:
        n_splits = Counter(split.size for split in split_refs(config, entry.ref(())))
        sizes = (SplitRef("", max_train=subset).size for subset in config.protocol.subsets)
        n_splits = n_splits or Counter(dict.fromkeys(sizes, 0))
        for kernel, degrees in degrees_by_kernel(config).items():
            run = [name for name in config.machines if kernel in config.kernels_of(name)]
            for machine in (*run, *config.published_only):
                shown = degrees
                # the key has the degree None if the degree is selected by grid search
                if kernel == "poly" and machine in run:
                    params = (settings(config, machine, kernel, degree)[0] for degree in degrees)
                    shown = list(dict.fromkeys(values.get("degree") for values in params))
                for degree in shown:
                    for size, count in n_splits.items():
                        yield Key(entry.label, kernel, degree, machine, size), count
