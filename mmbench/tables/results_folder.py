"""Functions that read the experiments or the reference tables in a results folder."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mmbench import resources
from mmbench.errors import UserError, converted
from mmbench.jobs.record import BadRecord, Record
from mmbench.jobs.store import CONFIG, PLAN, Arrays, Key, Plan, RecordStore, grouped, key_of
from mmbench.tables.frame import (
    CODE,
    METRIC,
    NO_TARGET,
    PLACE,
    TYPES,
    Cell,
    Row,
    as_long_table,
    rows_of,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Experiment"]

CSV = "table.csv"
MARKDOWN = "table.md"
SPLITS = "splits.csv.gz"
#: Name of the folder that contains the reference tables.
REFERENCE = "reference"
#: Exceptions that can be raised when a damaged table is read from a file.
DAMAGED = (ValueError, OSError, EOFError, zlib.error)
#: Columns of the table of predictions, which has one row per test row.
PREDICTION_COLUMNS = (*PLACE, "row", "label", "predicted", "decision", "record")

#: Type of a function that returns the plan of the experiment in a folder. The plan is made from the
#: configuration in the folder. If the folder has no configuration, the configuration with the
#: folder's name is used. Without a valid configuration, the function returns None.
Replan = Callable[[Path], Plan | None]


@dataclass(frozen=True)
class Experiment:
    """An experiment with its plan and records, or a reference table.

    A reference table is the stored result of an earlier run.

    Attributes
    ----------
    folder : Path
        Folder of the experiment or of the reference table.
    plan : Plan
        Plan of the jobs. The plan of a reference table is made from the configuration with the name
        of the reference table.
    records : sequence of Record
        Records of planned jobs, including failed jobs. A reference table has no records.
    remarks : tuple of str
        Sentences on damaged records and on records whose settings differ from the plan, to be
        printed below the tables.
    include_failed : bool, default=False
        Whether means include splits on which the training of a binary classifier failed.
    frame : DataFrame, optional
        The long table for a reference table, or None for an experiment with records.
    deviations : mapping of str to sequence of str
        For a reference table, differences of each data set from the paper's data set.
    foreign : set of str
        Names of the classifiers from other packages. These classifiers have no kernel.
    """

    folder: Path
    plan: Plan
    records: Sequence[Record] = ()
    remarks: tuple[str, ...] = ()
    include_failed: bool = False
    frame: pd.DataFrame | None = None
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Name of the experiment: the name of its folder."""
        return self.folder.name

    @property
    def sized(self) -> bool:
        """Whether the experiment has several training sizes."""
        keys = (cell.key for cell in self.plan.cells) if self.frame is None else self.frame.key
        return any(key.size is not None for key in keys)

    @property
    def has_records(self) -> bool:
        """Whether the experiment has records (false for a reference table)."""
        return self.frame is None

    @property
    def text(self) -> str | None:
        """Markdown text of a reference table, or None for an experiment with records."""
        path = self.folder / MARKDOWN
        return None if self.has_records or not path.is_file() else path.read_text("utf-8")

    @cached_property
    def store(self) -> RecordStore:
        """Store of the records."""
        return RecordStore(self.folder)

    def arrays(self, record: Record) -> Arrays:
        """Return the stored arrays of a record, or an empty dict if none are stored."""
        return self.store.arrays(record.key) if record.arrays else {}

    @cached_property
    def cells(self) -> list[Cell]:
        """Table cells in the order of the plan, including table cells without records."""
        found = {record.key: record for record in self.records}
        return [
            Cell(cell, [found[key] for key in cell.jobs if key in found], self)
            for cell in self.plan.cells
        ]

    @property
    def splits(self) -> Path | None:
        """Path of the file with the split table, or None if the folder contains no such file."""
        path = self.folder / SPLITS
        return path if path.is_file() else None

    @cached_property
    def stored_splits(self) -> dict[Key, list[Row]]:
        """For each table cell of a reference table, the rows of the table cell in the file
        `splits`.
        """
        if self.has_records or self.splits is None:
            return {}
        needed = ("repeat", "fold", "seed", "split_hash", "fits", METRIC)
        with converted(f"{self.splits}: not a split table of mmbench", *DAMAGED):
            return grouped(_keyed_rows(self.splits, self.plan, *needed))


def split_rows(experiment: Experiment) -> list[dict[str, Any]]:
    """Return the rows of an experiment's split table; see `mmbench.tables.frame`."""
    return [row for cell in experiment.cells for row in cell.splits]


def prediction_rows(experiment: Experiment) -> Iterator[dict[str, Any]]:
    """Yield one row per test row of each finished record, with the columns `PREDICTION_COLUMNS`.

    The column ``row`` contains the index of the test row in the data set. The column ``decision``
    contains the decision value, or None if there are more than two classes.
    """
    for split in split_rows(experiment):
        arrays = experiment.arrays(split["source"]) if split["source"].done else {}
        for k, row in enumerate(arrays.get("test_index", ())):
            decisions = arrays["decisions"][k]
            yield {
                **split,
                "row": int(row),
                "label": str(arrays["y_test"][k]),
                "predicted": str(arrays["predicted"][k]),
                "decision": float(decisions[0]) if len(decisions) == 1 else None,
            }


# -- experiments -----------------------------------------------------------------------------------


def read_experiment(folder: Path, replan: Replan, mix: bool = False) -> Experiment:
    """Return the experiment whose records are stored in a folder.

    If no plan is stored in the folder, the plan is made by the function `replan`. If the plan lists
    no jobs, only the latest record of each table cell and split is used. If `mix` is true, records
    that do not belong to the plan are used too. Raises UserError if the folder contains no
    intact record.
    """
    store = RecordStore(folder)
    records, damaged = store.records()
    if not records:
        raise UserError(
            f"{folder}: no intact record; the first of {len(damaged)} damaged ones: {damaged[0]}"
            if damaged
            else f"{folder}: no records yet; run the experiment first"
        )
    remarks = [f"{damage}; the next run replaces it." for damage in store.damage()]
    plan = None
    with suppress(BadRecord):
        plan = store.plan()
    plan = plan or replan(folder)
    if plan is None:
        remarks.append(f"{CONFIG} is not valid: table cells without records are not shown.")
        plan = Plan(folder.name)
    cells = {cell.key for cell in plan.cells}
    known = [r for r in records if not cells or key_of(r.job) in cells]
    current = [r for r in records if r.key in plan.jobs] if plan.jobs else _latest(known)
    left_out = len(records) - len(current)
    if mix and left_out:
        remarks.append("Records of different settings are mixed.")
        current = records
    elif left_out:
        remarks.append(f"{left_out} record(s) of other settings or earlier versions left out.")
    if damaged:
        remarks.append(f"{len(damaged)} damaged record(s) left out, such as {damaged[0]}.")
    if mix or not plan.jobs:
        plan = plan.filled(record.job for record in current)
    foreign = frozenset(record.job.column for record in current if not record.job.has_kernel)
    return Experiment(folder, plan, current, tuple(remarks), foreign=foreign)


def _latest(records: list[Record]) -> list[Record]:
    """For each table cell, return the records with the latest machine version and the latest
    settings, one record per split.
    """
    newest: dict[Key, str] = {}
    chosen: dict[tuple[Key, tuple[int, int, int]], Record] = {}
    for record in sorted(records, key=lambda r: (r.job.machine_version, r.finished)):
        newest[key_of(record.job)] = record.job.cell_digest
        chosen[key_of(record.job), record.at] = record
    current = {r.key for (cell, _), r in chosen.items() if r.job.cell_digest == newest[cell]}
    old = {record.key for record in records} - current
    # if a record is outdated, the records that use its selected parameters are outdated, too
    while heirs := {r.key for r in records if r.key in current and old & {*r.job.parents}}:
        old, current = old | heirs, current - heirs
    return [record for record in records if record.key in current]


# -- reference tables ------------------------------------------------------------------------------


def read_reference(folder: Path, plan: Plan | None) -> Experiment:
    """Return the reference table in a folder as an `Experiment` without records.

    Raises UserError if the CSV file of the folder does not contain a long table of mmbench.
    """
    path, rows, deviations = folder / CSV, [], {}
    plan = plan or Plan(folder.name)
    with converted(f"{path}: not a table of mmbench", *DAMAGED):
        for key, line in _keyed_rows(path, plan, "metric", "status", "note"):
            own, _, deviation = line.note.partition(f"{key.dataset}: ")
            note, mark, reason = own.removesuffix("; ").partition(NO_TARGET)
            texts = {"note": note.removesuffix("; "), "objection": mark + reason}
            rows.append({**dict.fromkeys(CODE, ""), **line._asdict(), **texts, "key": key})
            deviations[key.dataset] = (deviation,) if deviation else ()
    remarks = (f"Read from {path.parent.name}/{CSV}: values of single records are not shown.",)
    foreign = frozenset(row["key"].machine for row in rows if not row["kernel"])
    return Experiment(folder, plan, (), remarks, False, as_long_table(rows), deviations, foreign)


def _keyed_rows(path: Path, plan: Plan, *needed: str) -> list[tuple[Key, Row]]:
    """Return one pair (key of the table cell, row) for each row of a CSV file.

    Raises ValueError if ``dataset``, ``kernel``, ``machine`` or a column in `needed` is absent.
    """
    import pandas as pd

    lines = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
    if lost := {"dataset", "kernel", "machine", *needed} - {*lines}:
        raise ValueError(f"no column {min(lost)}")
    casts: dict[str, Callable] = {"float64": float, "Int64": int, "boolean": "True".__eq__}
    for name, kind in {**TYPES, "degree": "Int64", "size": "Int64"}.items():
        if name in lines:
            values = [casts[kind](text) if text else None for text in lines[name]]
            lines[name] = pd.Series(values, dtype=kind)
    rows = rows_of(lines)
    keys = [Key._make(getattr(row, name, None) for name in Key._fields) for row in rows]
    # A row without a kernel gets the machine's kernel in the plan. If the machine is not in the
    # plan, the row gets the first kernel of the data set.
    first = {key.dataset: key.kernel for key in reversed(keys) if key.kernel}
    planned = {cell.key.machine: cell.key.kernel for cell in plan.cells}
    kernels = [k.kernel or planned.get(k.machine) or first.get(k.dataset, "linear") for k in keys]
    return [(key._replace(kernel=k), row) for key, k, row in zip(keys, kernels, rows, strict=True)]


# -- folders ---------------------------------------------------------------------------------------

Item = TypeVar("Item")
Made = TypeVar("Made")


def read_results(
    paths: Iterable[Path],
    replan: Replan = lambda folder: None,
    mix: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> list[Experiment]:
    """Return the experiments and reference tables in several folders.

    Each path is the folder of one experiment, or a results folder that contains folders of
    experiments. The arguments `replan` and `mix` are passed to `read_experiment`. The function
    `say` is called with a message for each folder that cannot be read. Raises UserError if a path
    is not a results folder, or if none of the folders can be read.
    """

    def read(folder: Path) -> Experiment:
        if (folder / CONFIG).is_file():
            return read_experiment(folder, replan, mix)
        return read_reference(folder, replan(folder))

    # a folder that is given twice, such as results and results/usps_rbf, is read once
    folders = {folder.resolve(): folder for path in paths for folder in folders_in(path)}
    return each(read, folders.values(), say)


def each(
    make: Callable[[Item], Made], items: Iterable[Item], say: Callable[[str], object]
) -> list[Made]:
    """Apply the function `make` to each item, and return the results.

    Items for which `make` raises an error are left out. The function `say` is called with each
    error message. Raises UserError if `make` fails for all items.
    """
    made: list[Made] = []
    faults: list[str] = []
    for item in items:
        try:
            made.append(make(item))
        except (UserError, OSError) as error:
            faults.append(" ".join(str(error).split()))
    if not made:
        raise UserError(f"{faults[0]}{f'; {len(faults) - 1} more failed' if faults[1:] else ''}")
    for fault in faults:
        say(fault)
    return made


def folders_in(path: Path) -> list[Path]:
    """Return the folders of the experiments in a results folder.

    If `path` is the folder of one experiment, only this folder is returned. If a results folder
    contains no experiments, the folders of the reference tables in it are returned. If `path`
    begins with "reference" and does not exist, the folders of the reference tables in the package
    are returned.

    Raises UserError if `path` is not a folder, or contains neither experiments nor reference
    tables.
    """
    if path.parts[:1] == (REFERENCE,) and not path.exists():
        path = resources.REFERENCE.joinpath(*path.parts[1:])
    if not path.is_dir():
        kind = "is a file, not a results folder" if path.exists() else "no such folder"
        raise UserError(f"{path}: {kind}")
    for plan in (path / PLAN, *path.glob(f"*/{PLAN}")):
        if plan.is_file() and not (plan.parent / CONFIG).is_file():
            with suppress(UserError):  # `RecordStore` restores the configuration from the plan
                RecordStore(plan.parent)
    if (path / CONFIG).is_file() or (path / CSV).is_file():
        return [path]
    for mark in (f"*/{CONFIG}", f"*/{CSV}", f"{REFERENCE}/*/{CSV}"):
        if found := sorted(f.parent for f in path.glob(mark) if f.parent.name != REFERENCE):
            return found
    raise UserError(f"{path}: not a results folder; no {CONFIG} or {CSV} in it or its folders")
