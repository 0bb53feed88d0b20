"""Records in an experiment's folder, grouped by table cell.

A table cell is one combination of data set, kernel, degree, machine and training size.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mmbench.errors import FINISHED, Status, UserError, worst
from mmbench.jobs.record import BadRecord, Record
from mmbench.jobs.store import CONFIG, Key, Plan, PlannedCell, RecordStore, key_of

#: Statuses of table cells without a run; all other statuses are statuses of fits and jobs.
MISSING = "missing"
PUBLISHED_ONLY = "published_only"

#: Remark on table cells of a classifier from another package.
NO_CERTIFICATES = "its fits have no certificate"


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key as a list, in the order of the pairs."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@dataclass(frozen=True)
class Cell:
    """A table cell: the records of one data set, kernel, degree, machine and training size."""

    planned: PlannedCell
    #: Records, one per split, including failed jobs.
    records: list[Record]
    #: Whether splits with a failed fit are averaged too.
    include_failed: bool = False

    @property
    def key(self) -> Key:
        """Data set, kernel, degree, machine and training size."""
        return self.planned.key

    @property
    def done(self) -> list[Record]:
        """Records of finished jobs."""
        return [record for record in self.records if record.done]

    @property
    def counted(self) -> list[Record]:
        """Records that are averaged; records with a failed fit only with `include_failed`."""
        failed = self._with_failed_fits
        return [record for record in self.done if self.include_failed or record not in failed]

    @property
    def _with_failed_fits(self) -> list[Record]:
        return [record for record in self.done if record.fits["statuses"].get(Status.FAILED)]

    def code(self, name: str) -> str:
        """Return the distinct values of "version" or "fingerprint" of the machine's code."""
        values = (record.code.get(name, "") for record in self.done)
        return " ".join(dict.fromkeys(map(str, values))).strip()

    @property
    def failed(self) -> list[Record]:
        """Records of failed jobs."""
        return [record for record in self.records if not record.done]

    @property
    def same_test_rows(self) -> bool:
        """Whether all records share one test set, the official one."""
        return all(record.job.split.rule == "official" for record in self.records)

    @property
    def fit_statuses(self) -> Counter[str]:
        """Number of binary fits by status, over all splits."""
        total: Counter[str] = Counter()
        for record in self.done:
            total.update(record.fits["statuses"])
        return total

    @property
    def status(self) -> str:
        """Most severe status of the failed jobs or, if there are none, of the fits."""
        if self.planned.published_only:
            return PUBLISHED_ONLY
        if self.failed:
            return worst(record.status for record in self.failed)
        if len(self.records) < self.planned.n_splits:
            return MISSING
        return worst(self.fit_statuses)

    @property
    def note(self) -> str:
        """Remark on missing splits and on fits with a warning; may be empty."""
        if self.planned.published_only:
            return ""
        return "; ".join(filter(None, [self._incomplete(), self._fits()]))

    def _incomplete(self) -> str:
        if len(self.done) == self.planned.n_splits:
            return ""
        if not self.records:
            return "not run"
        causes = Counter(record.reason or record.status for record in self.failed)
        parts = [f"{count} failed ({reason})" for reason, count in causes.items()]
        if absent := self.planned.n_splits - len(self.records):
            parts.append(f"{absent} not run")
        if self.planned.n_splits == 1:
            return f"failed ({next(iter(causes))})"
        return f"{len(self.done)} of {self.planned.n_splits} splits done, {', '.join(parts)}"

    def _fits(self) -> str:
        statuses = self.fit_statuses
        if set(statuses) == {Status.UNCERTIFIED}:
            return NO_CERTIFICATES
        parts = [
            f"{statuses[s]} {s.replace('_', ' ')}"
            for s in sorted(statuses)
            if s not in FINISHED and statuses[s]
        ]
        if splits := len(self._with_failed_fits):
            how = "counted all the same" if self.include_failed else "not counted"
            parts.append(f"{splits} of {len(self.done)} splits {how}")
        return f"of {statuses.total()} fits {', '.join(parts)}" if parts else ""


#: Function that plans the experiment in a folder, from the configuration in the folder or the
#: configuration of the folder's name; None if there is no valid configuration.
Replan = Callable[[Path], Plan | None]


@dataclass(frozen=True)
class Experiment:
    """The plan and the records of one experiment.

    Attributes
    ----------
    store : RecordStore
    plan : Plan
    records : list of Record
        Records of planned jobs, including failed jobs.
    remarks : tuple of str
        Remarks printed below the tables: damaged records, and records with other settings.
    include_failed : bool, default=False
        Whether splits with a failed fit are averaged too.
    """

    store: RecordStore
    plan: Plan
    records: list[Record]
    remarks: tuple[str, ...] = ()
    include_failed: bool = False

    @property
    def folder(self) -> Path:
        """Folder of the records."""
        return self.store.folder

    @property
    def name(self) -> str:
        """Name of the experiment, which is the name of the folder."""
        return self.folder.name

    @property
    def cells(self) -> list[Cell]:
        """Table cells in the order of the plan, including cells without records."""
        found = {record.key: record for record in self.records}
        return [
            Cell(cell, [found[key] for key in cell.jobs if key in found], self.include_failed)
            for cell in self.plan.cells
        ]


def read_experiment(folder: Path, replan: Replan, mix: bool = False) -> Experiment:
    """Return the experiment in a folder.

    `replan` is called if no plan is stored in the folder; if there is no plan at all, the latest
    records are returned. With `mix`, records with any settings are returned, not only planned ones.
    Raises UserError if the folder holds no intact record.
    """
    store = RecordStore(folder)
    records, damaged = store.records()
    if not records:
        raise UserError(
            f"{folder}: no intact record; the first of {len(damaged)} damaged ones: {damaged[0]}"
            if damaged
            else f"{folder}: no records yet; run the experiment first"
        )
    plan, remarks = _plan(store, replan)
    current = _planned(plan, records)
    left_out = len(records) - len(current)
    if mix and left_out:
        remarks.append("Records of different settings are mixed.")
        current, left_out = records, 0
    if left_out:
        remarks.append(f"{left_out} record(s) of other settings or earlier versions left out.")
    if damaged:
        remarks.append(f"{len(damaged)} damaged record(s) left out, such as {damaged[0]}.")
    if mix or not plan.jobs:
        plan = plan.filled(record.job for record in current)
    return Experiment(store, plan, current, tuple(remarks))


def _plan(store: RecordStore, replan: Replan) -> tuple[Plan, list[str]]:
    """Return the stored plan, or a plan made from the configuration, and remarks on the plan."""
    remarks = [f"{damage}; the next run replaces it." for damage in store.damage()]
    try:
        plan = store.plan()
    except BadRecord:
        plan = None
    plan = plan or replan(store.folder)
    if plan is None:
        remarks.append(f"{CONFIG} is no valid configuration: what has no record is not shown.")
    return plan or Plan(store.folder.name), remarks


def _planned(plan: Plan, records: list[Record]) -> list[Record]:
    """Return the records of planned jobs; if the plan lists no jobs, the latest records."""
    if planned := plan.jobs:
        return [record for record in records if record.key in planned]
    cells = {cell.key for cell in plan.cells}
    return _latest([r for r in records if not cells or key_of(r.job) in cells])


def _latest(records: list[Record]) -> list[Record]:
    """Return one record per table cell and split: latest machine version and settings."""
    newest: dict[Key, str] = {}
    chosen: dict[tuple[Key, tuple[int, int, int]], Record] = {}
    for record in sorted(records, key=lambda r: (r.job.machine_version, r.finished)):
        newest[key_of(record.job)] = record.job.cell_digest
        chosen[key_of(record.job), record.at] = record
    current = {r.key for (cell, _), r in chosen.items() if r.job.cell_digest == newest[cell]}
    old = {record.key for record in records} - current
    # Records whose parameters come from an outdated record are outdated too.
    while heirs := {r.key for r in records if r.key in current and old & {*r.job.parents}}:
        old, current = old | heirs, current - heirs
    return [record for record in records if record.key in current]
