"""``mmbench merge``: collect the records of one experiment that was run in parts.

Files are copied unchanged and only added, so that an interrupted merge can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mmbench.commands.options import Say, to_stderr
from mmbench.config.files import parse_yaml
from mmbench.errors import UserError, listed
from mmbench.jobs.disk import read_regular
from mmbench.jobs.planned import Plan, grouped
from mmbench.jobs.record import Content, is_done
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


class JobResult(NamedTuple):
    """The result of a job, for the comparison of two records."""

    done: bool
    #: Data set, machine, repeat and fold, as text.
    at: str
    metrics: Mapping[str, Any]
    #: Selected parameters.
    parameters: Any
    #: Hash of the split.
    split: str | None

    @classmethod
    def of(cls, record: Content) -> JobResult:
        """Return the result in a record."""
        job, split = record["job"], record.get("split") or {}
        machine, place = job.get("variant") or job["machine"], job["split"]
        at = f"repeat {place['repeat'] + 1} fold {place['fold'] + 1}"
        chosen = (record.get("selection") or {}).get("params")
        text = f"{job['dataset']['name']} {machine}, {at}"
        return cls(is_done(record), text, record["metrics"], chosen, split.get("digest"))

    def differences(self, other: JobResult) -> list[str]:
        """Return the names of the fields in which two results differ, except `done` and `at`."""
        return [n for n in self._fields[2:] if getattr(self, n) != getattr(other, n)]


@dataclass(frozen=True)
class Part:
    """A results folder that is merged."""

    store: RecordStore
    plan: Plan
    config: Mapping[str, Any]
    #: Results by key of the job.
    outcomes: Mapping[str, JobResult]
    #: Content hashes in the records of each data set.
    hashes: Mapping[str, AbstractSet[str]]

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.folder


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
    outcomes, hashes, others = {}, dict[str, set[str]](), 0
    for key in store.keys():  # noqa: SIM118
        if key not in plan.jobs:
            others += 1
            continue
        try:
            record = store.read(key)
        except (BadRecord, OSError) as error:
            say(f"{store.path_of(key)}: {error}; left out")
            continue
        outcomes[key] = JobResult.of(record)
        job = record["job"]
        hashes.setdefault(job["dataset"]["name"], set()).add(job["dataset_hash"])
    if others:
        say(f"{folder}: {others} records of other settings or earlier versions left out")
    config = parse_yaml(read_regular(folder / CONFIG).decode(), str(folder / CONFIG))
    return Part(store, plan, config if isinstance(config, Mapping) else {}, outcomes, hashes)


def _check(parts: Sequence[Part]) -> None:
    """Raise UserError with the first difference if parts are of different experiments."""
    start = parts[0]
    for part in parts[1:]:
        both = f"{start.folder} and {part.folder}"
        for name, found in part.hashes.items():
            contents = sorted(start.hashes.get(name, found) | found)
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


def _chosen(parts: Sequence[Part], first: bool, say: Say) -> tuple[dict[str, Part], int]:
    """Return, for each key, the part whose record is kept, and the number of equal records."""
    chosen: dict[str, Part] = {}
    equal, conflicts = 0, list[str]()
    for part in parts:
        for key, outcome in part.outcomes.items():
            known = chosen.get(key)
            if known is None or (outcome.done and not known.outcomes[key].done):
                chosen[key] = part
            elif outcome.done:
                differ = outcome.differences(known.outcomes[key])
                equal += not differ
                if differ:
                    what = f"{outcome.at}: {' and '.join(differ)}"
                    conflicts.append(f"{known.folder} and {part.folder} differ in {what}")
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
    done = sum(part.outcomes[key].done for key, part in chosen.items())
    return Merged(plan.name, folder, added, equal, done, len(plan.jobs))
