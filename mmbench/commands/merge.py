"""``mmbench merge``: collect the records of one experiment that was run in parts.

Files are copied unchanged and only added, so that an interrupted merge can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mmbench.commands.options import Say, to_stderr
from mmbench.config.files import parse_yaml
from mmbench.errors import UserError, listed
from mmbench.jobs.disk import read_regular
from mmbench.jobs.planned import Plan, grouped
from mmbench.jobs.record import Record
from mmbench.jobs.seal import BadRecord
from mmbench.jobs.store import CONFIG, RecordStore
from mmbench.results.folder import folders_in

__all__ = ["Merged", "merge"]

#: Sections of a configuration that do not change records or tables of results.
INCIDENTAL = ("limits", "cluster")


@dataclass(frozen=True)
class Merged:
    """The outcome of the merge of an experiment.

    Attributes
    ----------
    name : str
        Name of the experiment.
    folder : pathlib.Path
        Results folder with the records of all parts.
    added : int
        Number of records that this merge added to the folder.
    equal : int
        Number of records that are left out because an earlier part has an equal result.
    done, planned : int
        Number of jobs with a result in the folder, and number of jobs of the experiment.
    """

    name: str
    folder: Path
    added: int
    equal: int
    done: int
    planned: int


@dataclass(frozen=True)
class Part:
    """A results folder that is merged."""

    store: RecordStore
    plan: Plan
    config: Mapping[str, Any]
    #: Intact records of planned jobs, by key.
    records: Mapping[str, Record]

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.folder

    @property
    def hashes(self) -> set[tuple[str, str]]:
        """Names and content hashes of the data sets in the records."""
        jobs = (record.job for record in self.records.values())
        return {(job.dataset.name, job.dataset_hash) for job in jobs}


def merge(
    *results: str | Path,
    output: str | Path,
    first: bool = False,
    say: Say = to_stderr,
) -> list[Merged]:
    """Merge results folders of experiments that were run in parts, for example on two computers.

    Parameters
    ----------
    *results : path
        Results folders of experiments, or folders that contain results folders.
    output : path
        Folder with one results folder per experiment, new or from an earlier merge. A run with
        ``results=output`` computes missing records.
    first : bool, default=False
        If two folders have different results of one job: whether to keep the record of the folder
        that is given first. By default, different results are an error.
    say : callable
        Called with messages for the user.

    Returns
    -------
    list of Merged
        For each experiment, the folder and the numbers of records.

    Raises
    ------
    UserError
        If parts of one name are different experiments, or have different results of one job.
        Nothing is written.
    """
    target = Path(output)
    folders = [folder for path in results for folder in folders_in(Path(path))]
    if lost := [folder for folder in folders if not (folder / CONFIG).is_file()]:
        raise UserError(f"{lost[0]}: has no records to merge, only tables")
    distinct = {folder.resolve(): folder for folder in folders}.values()
    parts = grouped((part.plan.name, part) for part in [_part(f, say) for f in distinct])
    # a folder with the name of the only experiment is the results folder itself
    single = len(parts) == 1 and target.name in parts and folders == [*map(Path, results)]
    homes = {name: target if single else target / name for name in parts}
    for name, own in parts.items():
        known = {part.folder.resolve() for part in own}
        if (homes[name] / CONFIG).is_file() and homes[name].resolve() not in known:
            own.insert(0, _part(homes[name], say))  # an earlier merge continues
        _check(own)
    chosen = {name: _chosen(own, first, say) for name, own in parts.items()}
    return [_write(homes[name], own, *chosen[name]) for name, own in parts.items()]


def _part(folder: Path, say: Say) -> Part:
    """Read a results folder; damaged records are left out with a message."""
    store, plan = RecordStore(folder), None
    with suppress(BadRecord):
        plan = store.plan()
    if plan is None or not plan.jobs:
        raise UserError(f"{folder}: no intact plan; run the experiment again in it first")
    found, damaged = store.records()
    for line in damaged:
        say(f"{folder}: {line}; left out")
    records = {record.key: record for record in found if record.key in plan.jobs}
    if others := len(found) - len(records):
        say(f"{folder}: {others} records of other settings or earlier versions left out")
    config = parse_yaml(read_regular(folder / CONFIG).decode(), str(folder / CONFIG))
    return Part(store, plan, config if isinstance(config, Mapping) else {}, records)


def _check(parts: Sequence[Part]) -> None:
    """Raise UserError with the first difference if parts are of different experiments."""
    start = parts[0]
    for part in parts[1:]:
        both = f"{start.folder} and {part.folder}"
        for name, contents in grouped(sorted(start.hashes | part.hashes)).items():
            if len(contents) > 1:
                other = f"other data of {name!r}: {' and '.join(h[:12] for h in contents)}"
                raise UserError(f"{both} have {other}; run one of them again with the same file")
        if start.plan.jobs != part.plan.jobs:
            raise UserError(f"{both} have other settings: {_difference(start, part)}")


def _difference(one: Part, other: Part) -> str:
    """Return a text that names the first differences between two experiments."""
    stated = [key for key in {**one.config, **other.config} if key not in INCIDENTAL]
    differ = [key for key in stated if one.config.get(key) != other.config.get(key)]
    if differ:
        advice = "run parts of one configuration with --only"
        return f"{listed(differ)} of the configuration; {advice}"
    cells = ({cell.key: cell.jobs for cell in part.plan.cells} for part in (one, other))
    mine, theirs = cells
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    names = dict.fromkeys(f"{key.dataset} {key.machine}" for key in keys)
    return f"{listed([*names])}; another version of a machine, or other data"


def _result(record: Record) -> dict[str, Any]:
    """Return what two records of a job must have in common, by name."""
    chosen, split = record.selection.get("params"), record.split.get("digest")
    return {"metrics": record.metrics, "parameters": chosen, "split": split}


def _chosen(parts: Sequence[Part], first: bool, say: Say) -> tuple[dict[str, Part], int]:
    """Return, for each key, the part whose record is kept, and the number of equal records."""
    chosen: dict[str, Part] = {}
    equal, conflicts = 0, list[str]()
    for part in parts:
        for key, record in part.records.items():
            known = chosen.get(key)
            if known is None or (record.done and not known.records[key].done):
                chosen[key] = part
            elif record.done:
                other = _result(known.records[key])
                differ = [name for name, own in _result(record).items() if own != other[name]]
                equal += not differ
                if differ:
                    place = f"repeat {record.at[0] + 1} fold {record.at[1] + 1}"
                    what = f"{record.job.dataset.name} {record.job.column}, {place}"
                    both = f"{known.folder} and {part.folder} differ in {what}"
                    conflicts.append(f"{both}: {' and '.join(differ)}")
    if conflicts and not first:
        more = f" ({len(conflicts)} jobs differ)" if conflicts[1:] else ""
        raise UserError(f"{conflicts[0]}{more}; --first takes the record of the first folder")
    for line in conflicts:
        say(f"{line}; the first is taken")
    return chosen, equal


def _write(folder: Path, parts: Sequence[Part], chosen: Mapping[str, Part], equal: int) -> Merged:
    """Copy the chosen records into a results folder."""
    start = parts[0]
    plan = replace(start.plan, config="", config_sha256="")
    text = read_regular(start.folder / CONFIG).decode()
    store, added = RecordStore.create(folder, text, plan), 0
    with store.locked():
        for key, part in chosen.items():
            if part.folder.resolve() != folder.resolve():
                added += store.adopt(key, part.store)
    done = sum(part.records[key].done for key, part in chosen.items())
    return Merged(plan.name, folder, added, equal, done, len(plan.jobs))
