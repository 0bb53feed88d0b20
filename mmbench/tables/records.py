"""An experiment's folder of records as tables see it: nothing is moved, nothing repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmbench.errors import UserError
from mmbench.jobs.job import DEFAULT_DEGREE, Job
from mmbench.jobs.record import BadRecord
from mmbench.jobs.store import CONFIG, RecordStore
from mmbench.tables.cells import Cell, Key, key_of

#: Tables of full runs kept in git: they hold no records.
REFERENCE = "reference"


@dataclass(frozen=True)
class Experiment:
    """What one experiment's folder holds.

    Attributes
    ----------
    name : str
    store : RecordStore
    config : mapping
        The YAML file as run.
    records : list of mapping
        The intact ones, failed jobs included, that no later version of a machine has replaced.
    replaced : int
        Number of those left out because one has.
    unreadable : tuple of str
        One line for each file that is no intact record.
    """

    name: str
    store: RecordStore
    config: Mapping[str, Any]
    records: list[Mapping[str, Any]]
    replaced: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def layout(self) -> str:
        """Layout that the configuration asks for."""
        return self.config.get("layout", "generic")


def read_experiments(results: Path) -> list[Experiment]:
    """Return the experiments in a results folder, or the one whose folder it is.

    Raises
    ------
    UserError
        If it is no such folder, or holds no intact record.
    """
    experiments = [_read(folder) for folder in _folders(results)]
    if any(experiment.records for experiment in experiments):
        return experiments
    damaged = [line for experiment in experiments for line in experiment.unreadable]
    raise UserError(
        f"{results}: no intact record; the first of {len(damaged)} damaged ones: {damaged[0]}"
        if damaged
        else f"{results}: no records yet; run the experiment first"
    )


def _folders(results: Path) -> list[Path]:
    if (results / CONFIG).is_file():
        return [results]
    if not results.is_dir():
        kind = "is a file, not a results folder" if results.exists() else "no such folder"
        raise UserError(f"{results}: {kind}")
    found = sorted(path.parent for path in results.glob(f"*/{CONFIG}"))
    found = [folder for folder in found if folder.name != REFERENCE]
    if not found:
        raise UserError(
            f"{results}: not a results folder, neither it nor a folder in it has {CONFIG}"
        )
    return found


def _read(folder: Path) -> Experiment:
    store = RecordStore(folder)
    records: list[Mapping[str, Any]] = []
    unreadable = []
    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        try:
            record = store.read(key)
            Job.from_dict(record["job"])
        except (BadRecord, OSError, KeyError, TypeError) as error:
            unreadable.append(f"{store.path_of(key).name}: {error}")
        else:
            records.append(record)
    current = _current(records)
    replaced = len(records) - len(current)
    return Experiment(
        folder.name, store, _read_config(folder), current, replaced, tuple(unreadable)
    )


def _current(records: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records of the latest version of each machine, built on parents that are such."""
    jobs = [Job.from_dict(record["job"]) for record in records]
    tasks = [job.task_digest for job in jobs]
    newest: dict[str, int] = {}
    for job, task in zip(jobs, tasks, strict=True):
        newest[task] = max(newest.get(task, 0), job.machine_version)
    old = {
        job.key for job, task in zip(jobs, tasks, strict=True) if job.machine_version < newest[task]
    }
    while heirs := {job.key for job in jobs if job.parent in old} - old:
        old |= heirs
    return [record for record, job in zip(records, jobs, strict=True) if job.key not in old]


def _read_config(folder: Path) -> Mapping[str, Any]:
    import yaml

    try:
        config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        config = None
    if not isinstance(config, dict):
        raise UserError(f"{folder / CONFIG}: cannot be read as the configuration of an experiment")
    return config


def group_cells(experiment: Experiment) -> list[Cell]:
    """Return the cells of an experiment, also those without records, in the order configured."""
    cells: dict[Key, Cell] = {}
    for record in experiment.records:
        key = key_of(Job.from_dict(record["job"]))
        cells.setdefault(key, Cell(key)).records.append(record)
    planned = list(_planned(experiment.config, set(cells)))
    for key, published_only in planned:
        cells.setdefault(key, Cell(key, published_only=published_only))
    _count_splits(experiment.config, cells)
    order = {key: k for k, (key, _) in enumerate(planned)}
    return sorted(cells.values(), key=lambda cell: order.get(cell.key, len(order)))


def _planned(config: Mapping[str, Any], present: set[Key]) -> Iterator[tuple[Key, bool]]:
    """Yield the cells that a configuration asks for, and whether only as published values."""
    published_only = config.get("published_only", [])
    for dataset in map(_dataset_name, config.get("datasets", [])):
        for kernel, machines in _machines_by_kernel(config).items():
            for machine in [*machines, *published_only]:
                for degree in _degrees(config, Key(dataset, kernel, None, machine), present):
                    for size in _sizes(config):
                        key = Key(dataset, kernel, degree, machine, size)
                        yield key, machine in published_only


def _dataset_name(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    return entry.get("name") or Path(entry["path"]).stem


def _machines_by_kernel(config: Mapping[str, Any]) -> dict[str, list[str]]:
    shared = _as_list(config.get("kernel", "rbf"))
    kernels: dict[str, list[str]] = {kernel: [] for kernel in shared}
    for machine, entry in config.get("machines", {}).items():
        for kernel in _as_list((entry or {}).get("kernel") or shared):
            kernels.setdefault(kernel, []).append(machine)
    return kernels


def _degrees(config: Mapping[str, Any], key: Key, present: set[Key]) -> list[int | None]:
    """Return the degrees of a polynomial kernel: as configured, else those that have records."""
    if key.kernel != "poly":
        return [None]
    if config.get("degree") is not None:
        return _as_list(config["degree"])
    degrees = {k.degree for k in present if k._replace(degree=None, size=None) == key}
    return sorted(degrees, key=str) or [_own_degree(config, key.machine)]


def _own_degree(config: Mapping[str, Any], machine: str) -> int | None:
    """Return the degree that a machine states or inherits; None where it selects one."""
    entry = config.get("machines", {}).get(machine) or {}
    if "degree" in entry.get("grid", {}):
        return None
    if "degree" in entry.get("params", {}):
        return entry["params"]["degree"]
    inherited = _own_degree(config, entry["use"]) if entry.get("use") else None
    return inherited or DEFAULT_DEGREE


def _sizes(config: Mapping[str, Any]) -> list[int | None]:
    """Return the training sizes, where a configuration lists several."""
    sizes = config.get("protocol", {}).get("max_train")
    return sizes if isinstance(sizes, list) else [None]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _count_splits(config: Mapping[str, Any], cells: Mapping[Key, Cell]) -> None:
    """Tell every cell how many splits its data set has: as configured, or as any machine has."""
    seen: dict[str, set[tuple[int, int]]] = {}
    for cell in cells.values():
        for record in cell.records:
            split = record["job"]["split"]
            seen.setdefault(cell.key.dataset, set()).add((split["repeat"], split["fold"]))
    configured = _configured_splits(config.get("protocol", {}))
    for cell in cells.values():
        splits = seen.get(cell.key.dataset, set())
        cell.n_expected = max(configured, len(splits), len(cell.records))


def _configured_splits(protocol: Mapping[str, Any]) -> int:
    """Return the number of splits that a protocol states, as far as it does without the data."""
    test = protocol.get("test")
    folds = test.get("kfold", 1) if isinstance(test, Mapping) else 1
    return folds * (protocol.get("repeats") or 1)


def check_settings(experiment: Experiment, cells: list[Cell], mix: bool) -> tuple[str, ...]:
    """Refuse records of different settings, or with `mix` return the remark that they are mixed.

    Raises
    ------
    UserError
        If records differ in the protocol, the selection or the tie rule, or if those of one cell
        differ in anything but the number of their split, and `mix` is not set.
    """
    problem = _shared_difference(experiment.records) or _cell_difference(cells)
    if not problem:
        return _leak(experiment.records)
    if mix:
        mixed = f"Records of different settings are mixed: {problem}."
        return (mixed, *_leak(experiment.records))
    raise UserError(
        f"{experiment.name}: {problem}; run into another results folder, or ask for a mixed table"
    )


def _leak(records: list[Mapping[str, Any]]) -> tuple[str, ...]:
    if not any(Job.from_dict(record["job"]).validates_on_test for record in records):
        return ()
    return ("LEAK: parameters were chosen by the accuracy on the test part; it is too high.",)


def _shared_difference(records: list[Mapping[str, Any]]) -> str:
    digests = Counter(Job.from_dict(record["job"]).settings_digest for record in records)
    if len(digests) < 2:
        return ""
    parts = ", ".join(f"{count} of {digest[:8]}" for digest, count in digests.most_common())
    return f"the records have {len(digests)} different settings ({parts})"


def _cell_difference(cells: list[Cell]) -> str:
    for cell in cells:
        digests = {Job.from_dict(record["job"]).cell_digest for record in cell.records}
        if len(digests) > 1:
            where = f"{cell.key.machine} on {cell.key.dataset} ({cell.key.kernel})"
            return f"{where} has records of {len(digests)} different settings"
    return ""
