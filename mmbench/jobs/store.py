"""The results folder of one experiment: ``experiment.yaml``, its plan, and one sealed record a job.

A record is two files named by the job's key, ``.npz`` (arrays) and ``.json``. The JSON is written
last and holds the hash of the arrays: where it is, everything is. Nothing is ever changed in
place; only the record of a job without a result gives way to that of the next attempt.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.files import TEMPORARY, exclusive, sweep, sync_folder, write_atomically
from mmbench.jobs.job import Job
from mmbench.jobs.plan import Plan
from mmbench.jobs.record import Content, Record, is_done, parse
from mmbench.jobs.seal import BadRecord, dump

if TYPE_CHECKING:
    from numpy.typing import NDArray

CONFIG = "experiment.yaml"
PLAN = "plan.json"
LOCK = ".lock"
#: Where damaged records go.
QUARANTINE = "quarantine"

#: Name of an array to the array.
Arrays = Mapping[str, Any]


class RecordStore:
    """The records in one results folder.

    Parameters
    ----------
    folder : Path
        ``results/<experiment>``; its ``experiment.yaml`` marks it as ours.

    Raises
    ------
    UserError
        If it is not a results folder. `create` makes one.
    """

    def __init__(self, folder: Path):
        if not (folder / CONFIG).is_file():
            kind = "does not exist" if not folder.exists() else f"has no {CONFIG}"
            raise UserError(f"{folder}: {kind}, so it is not the results folder of an experiment")
        self.folder = folder
        self._records = folder / "records"

    @classmethod
    def create(cls, folder: Path, config: str, plan: Plan | None = None) -> RecordStore:
        """Return the store in a folder, made or taken over for a run of a configuration.

        Parameters
        ----------
        folder : Path
        config : str
            Text of the configuration as run; replaces that of an earlier run.
        plan : Plan, optional
            What it plans; replaces that of an earlier run.

        Raises
        ------
        UserError
            If the folder cannot be written to, holds somebody else's files, or is in use.
        """
        _refuse_foreign(folder)
        try:
            (folder / "records").mkdir(parents=True, exist_ok=True)
            with exclusive(folder / LOCK):
                (folder / PLAN).unlink(missing_ok=True)
                write_atomically(folder / CONFIG, lambda file: file.write(config.encode()))
                if plan is not None:
                    sealed = replace(plan, config_sha256=_sha256(config.encode())).dump()
                    write_atomically(folder / PLAN, lambda file: file.write(sealed))
        except OSError as error:
            raise UserError(f"{folder}: cannot be written to ({error.strerror})") from error
        return cls(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out; only the holder writes, deletes or moves anything.

        Raises
        ------
        UserError
            If another run holds the folder.
        """
        with exclusive(self.folder / LOCK):
            sweep(self._records)
            yield

    def path_of(self, key: str, suffix: str = ".json") -> Path:
        """Return where the record of a job is or will be: the one place that knows."""
        return self._records / (key + suffix)

    def write(self, record: Content, arrays: Arrays | None = None) -> None:
        """Store a record, arrays first.

        Raises
        ------
        FileExistsError
            If the job has its result already.
        UserError
            If there is no room, or no right to write.
        """
        key = record["key"]
        found = self.find(key)
        if found is not None and is_done(found):
            raise FileExistsError(f"{self.path_of(key)}: a finished record is never replaced")
        data = _npz(arrays) if arrays else None
        digest = _sha256(data) if data else None
        text = dump({**record, "arrays": digest}, indent=1)
        try:
            if data:
                write_atomically(self.path_of(key, ".npz"), lambda file: file.write(data))
            write_atomically(self.path_of(key), lambda file: file.write(text))
        except OSError as error:
            raise UserError(f"{self.folder}: cannot be written to ({error.strerror})") from error

    def read(self, key: str) -> Content:
        """Return the record of a job, checked against its seal and its arrays.

        Raises
        ------
        FileNotFoundError
            If there is none.
        BadRecord
            If it is damaged.
        """
        try:
            record = parse(self.path_of(key).read_bytes(), key)
            if record["arrays"] is not None and self._digest_of_arrays(key) != record["arrays"]:
                raise BadRecord("its arrays are missing or damaged")
        except FileNotFoundError:
            raise
        except OSError as error:  # a folder, or a link to itself, in place of the file
            raise BadRecord(f"cannot be read ({error.strerror})") from None
        return record

    def plan(self) -> Plan | None:
        """Return what the last run has planned; None in a folder of an earlier version of mmbench.

        Raises
        ------
        BadRecord
            If the file is damaged.
        """
        try:
            return Plan.parse((self.folder / PLAN).read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadRecord(f"cannot be read ({error.strerror})") from None

    def damage(self) -> list[str]:
        """Say which of the files beside the records are not as the last run left them."""
        try:
            plan = self.plan()
            known = plan.config_sha256 if plan else ""
            if known and known != _sha256((self.folder / CONFIG).read_bytes()):
                return [f"{CONFIG} is damaged or was changed: it is not what was run"]
        except BadRecord as error:
            return [f"{PLAN} is damaged ({error})"]
        except OSError as error:
            return [f"{CONFIG} cannot be read ({error.strerror})"]
        return []

    def find(self, key: str) -> Content | None:
        """Return the record of a job, or None where there is none or a damaged one."""
        try:
            return self.read(key)
        except (FileNotFoundError, BadRecord):
            return None

    def has(self, job: Job) -> bool:
        """Return whether a job has its result."""
        record = self.find(job.key)
        return record is not None and is_done(record)

    def arrays(self, key: str) -> dict[str, NDArray]:
        """Return ``test_index``, ``predicted``, ``decisions`` and ``y_test`` of a job."""
        import numpy as np

        with np.load(self.path_of(key, ".npz")) as file:
            return dict(file)

    def keys(self) -> list[str]:
        """Return the keys of all records, sorted."""
        return sorted(path.stem for path in self._records.glob("*.json"))

    def records(self) -> tuple[list[Record], list[str]]:
        """Return all intact records by key, and a line for each file that is none."""
        found, damaged = [], []
        for key in self.keys():
            try:
                found.append(Record.of(self.read(key)))
            except (BadRecord, OSError) as error:
                damaged.append(f"{self.path_of(key).name}: {error}")
        return found, damaged

    def unused(self) -> list[Path] | None:
        """Return the files of records that the last plan does not have, and of damaged ones.

        Returns
        -------
        list of Path or None
            None where there is no intact plan: what is current cannot be told then.
        """
        try:
            plan = self.plan()
        except BadRecord:
            plan = None
        if plan is None:
            return None
        files = (path for path in self._records.iterdir() if path.suffix in (".json", ".npz"))
        unplanned = [path for path in files if path.stem not in plan.jobs]
        return sorted([*unplanned, *(self._records / QUARANTINE).glob("*")])

    def recover(self, keys: Iterable[str], say: Callable[[str], Any]) -> dict[str, Content]:
        """Return the intact ones of the records named; damaged ones are moved out of the way.

        Parameters
        ----------
        keys : iterable of str
        say : callable
            Gets one line for each damaged record.
        """
        found = {}
        for key in keys:
            try:
                found[key] = self.read(key)
            except FileNotFoundError:
                continue
            except BadRecord as error:
                folder = self._quarantine(key)
                say(f"{self.path_of(key)}: {error}; moved to {folder}, its job runs again")
        return found

    def _quarantine(self, key: str) -> Path:
        target = self._records / QUARANTINE
        target.mkdir(exist_ok=True)
        for suffix in (".json", ".npz"):
            if os.path.lexists(self.path_of(key, suffix)):
                self.path_of(key, suffix).replace(_free(target / (key + suffix)))
        sync_folder(target)
        sync_folder(self._records)
        return target

    def _digest_of_arrays(self, key: str) -> str | None:
        path = self.path_of(key, ".npz")
        return _sha256(path.read_bytes()) if path.exists() else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refuse_foreign(folder: Path) -> None:
    """Refuse a path that has something else than our files, before any is touched."""
    for part in (folder, folder.parent):
        if part.exists() and not part.is_dir():
            raise UserError(f"{part}: is a file, not a results folder")
    if not folder.exists() or (folder / CONFIG).is_file():
        return
    # what a run killed in its first moment leaves
    ours = {"records", LOCK, CONFIG + TEMPORARY}
    foreign = sorted({path.name for path in folder.iterdir()} - ours)
    if foreign:
        raise UserError(
            f"{folder}: not a results folder, it holds {foreign[0]!r} but no {CONFIG}; "
            "choose another with --results"
        )


def _free(path: Path) -> Path:
    """Return a path at which nothing is, numbered where the name is taken."""
    names = (path.with_name(f"{path.name}.{k}") for k in itertools.count(1))
    return next(free for free in itertools.chain([path], names) if not os.path.lexists(free))


def _npz(arrays: Arrays) -> bytes:
    """Return the arrays as the bytes of an ``.npz`` file; equal arrays give equal bytes."""
    import numpy as np

    if any(array.dtype.hasobject for array in arrays.values()):
        raise TypeError("arrays of Python objects could only be read by running what they hold")
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()
