"""The results folder of an experiment: its configuration, its plan, and one record per job.

``plan.json`` contains the text of the configuration, and the table cells with the keys of their
jobs. Tables are made only from ``plan.json`` and the records. A table cell is the result of one
machine with one data set, kernel, degree and training size, averaged over splits. A record whose
key is not in the plan was made with different settings or by an earlier version of a machine.

A record consists of a JSON file and, if the job has a result, of a file ``.npz`` with arrays. The
JSON file and the file ``.npz`` are named by the key of the job. The JSON file is written last and
contains the hash of the arrays, so that a record with a JSON file is complete. Files are written
under a temporary name and renamed. The record of a finished job is never overwritten.

Since a results folder may come from an untrusted source, links are not followed, and only regular
files of a bounded size are read.
"""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import math
import os
import re
import socket
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar
from zipfile import ZipFile

from pydantic import Field, TypeAdapter, ValidationError

from mmbench.datasets.card import first_fault
from mmbench.errors import UserError, converted
from mmbench.jobs.job import Job
from mmbench.jobs.record import BadRecord, Content, Record, is_done, parse, sealed, unseal
from mmbench.machines import alias_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Suffix of temporary files; each run starts by deleting the temporary files of killed processes.
TEMPORARY = ".tmp"
#: Error numbers by which a file system reports that it supports no locks, as on some clusters.
NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
#: Maximum sizes of a JSON file and of a file of arrays, in bytes; larger files are not read.
TEXT_BYTES, ARRAYS_BYTES = 2**28, 2**32
#: Length of a file ``.npy`` up to the text of its header.
HEADER_LENGTH = 10
#: Flags of `os.open` that refuse links and prevent waiting; 0 on Windows, which lacks these flags.
NOFOLLOW, NONBLOCK = getattr(os, "O_NOFOLLOW", 0), getattr(os, "O_NONBLOCK", 0)


def write_atomically(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that no reader sees an incomplete file, even after a crash.

    `write` is called with the open temporary file. An old file or link at the path of the temporary
    file is removed first.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    temporary.unlink(missing_ok=True)
    try:
        with temporary.open("xb") as file:  # mode x fails if the path exists, even as a link
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:  # the temporary file exists only after an error
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_output(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file that the user names. A link, a device or a pipe, such as /dev/stdout, is kept:
    its target is written. Any other file is replaced, see `write_atomically`.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        with path.open("wb") as file:
            write(file)
    else:
        write_atomically(path, write)


def read_regular(path: Path, most: int = TEXT_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    BadRecord
        If the path is a link, if it is not a regular file, or if the file has more than `most`
        bytes.
    """
    try:
        if not NOFOLLOW and path.is_symlink():
            raise OSError(errno.ELOOP, "")
        with open(os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if status.st_size > most:
                raise OSError(errno.EFBIG, f"{status.st_size} bytes, more than {most}")
            return file.read(status.st_size)
    except FileNotFoundError:
        raise
    except OSError as error:  # the path may be a folder in place of a file
        link = "a link, which is not followed"
        why = link if error.errno == errno.ELOOP else error.strerror
        raise BadRecord(f"cannot be read ({why})") from None


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, so that renames survive a power failure.

    On systems that cannot open folders, this function does nothing.
    """
    with suppress(PermissionError):  # Windows cannot open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Lock a file during a ``with`` block; if the process dies, the system releases the lock.

    Parameters
    ----------
    path : Path
        Path of the lock file; created if it does not exist, and not deleted afterwards.

    Raises
    ------
    UserError
        If another process holds the lock; the message names the process.
    """
    from filelock import FileLock, Timeout

    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UserError(f"{path}: is a link, or no regular file; remove it")
    lock = FileLock(path, timeout=0, fallback_to_soft=False, on_acquired=_write_holder)
    try:
        lock.acquire()
    except Timeout:
        text = read_regular(path)[:200].decode("ascii", errors="ignore").strip()
        holder = text if text and text.isprintable() else "another process"
        raise UserError(f"{path.parent}: in use by {holder}; wait for it or end it") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        text = f"{path.parent}: cannot be locked ({error.strerror}); start no second run in it"
        warnings.warn(text, stacklevel=3)
    try:
        yield
    finally:
        lock.release()


def _write_holder(descriptor: int) -> None:
    os.truncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


#: Version of the plan format. PLAN_SCHEMA is increased if older code would misread newer plans.
PLAN_SCHEMA = 1


#: Integer in a plan, from 0 to the largest integer that pandas can store.
Count = Annotated[int, Field(ge=0, lt=2**63)]


class Key(NamedTuple):
    """The identity of a table cell; `size` is None if the experiment has only one training size."""

    dataset: str
    kernel: str
    degree: Count | None
    machine: str
    size: Count | None = None


def key_of(job: Job) -> Key:
    """Return the key of the table cell to which the result of a job contributes."""
    return Key(job.dataset.name, job.kernel, job.degree, job.column, job.split.size)


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return a dict from each key to the list of its values, in the order of `pairs`."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@dataclass(frozen=True)
class PlannedCell:
    """A table cell (data set, kernel, degree, machine, training size) with the keys of its jobs."""

    key: Key
    #: Number of records of the table cell after a complete run.
    n_splits: Count
    #: Keys of the table cell's jobs; empty if the plan was made without reading the data.
    jobs: tuple[str, ...] = ()
    #: Whether the table cell shows only a published value, so that the machine is not run.
    published_only: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment: the table cells and jobs, and settings of the tables."""

    name: str
    #: Name of the table layout.
    layout: str = "generic"
    #: Table cells, in the order of the tables.
    cells: tuple[PlannedCell, ...] = ()
    #: Headings of machines in tables, by the name of the entry of ``machines`` in the
    #: configuration. The heading of any other entry is the label of the machine.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Names of data sets in published tables, by the name in mmbench, if the two names differ. An
    #: empty published name means that results are not compared with published results. The empty
    #: name is the default if only some classes of a data set are used.
    published_as: Mapping[str, str] = field(default_factory=dict)
    #: Whether the experiment is a quick (smoke) version; its results are not compared with
    #: published values.
    smoke: bool = False
    #: Metrics in the tables; if empty, the metrics are determined by the layout of the tables.
    metrics: tuple[str, ...] = ()
    #: For each entry of ``machines`` with inherited parameters, the entry with the parameters.
    uses: Mapping[str, str] = field(default_factory=dict)
    #: Ratio of test rows to training rows, before `max_train` excludes training rows. Without
    #: `max_train`, and for split rules other than holdout and kfold, the value is 0, and tables
    #: compute the ratio from the records.
    test_to_train: float = 0.0
    #: SHA-256 and text of the configuration in the results folder; empty if unknown.
    config_sha256: str = ""
    config: str = ""

    @cached_property
    def jobs(self) -> frozenset[str]:
        """Keys of all jobs."""
        return frozenset(key for cell in self.cells for key in cell.jobs)

    def label(self, machine: str) -> str:
        """Return the heading of a machine's column in tables."""
        return self.labels.get(machine) or alias_of(machine).label

    def filled(self, jobs: Iterable[Job]) -> Plan:
        """Return a plan with `jobs` in place of the planned jobs.

        Table cells are added for jobs that belong to no planned cell. The number of splits of an
        added cell is the number of splits of its data set in `jobs`.
        """
        jobs = sorted(jobs, key=lambda job: job.split.at)
        groups = grouped((key_of(job), job) for job in jobs)
        splits = Counter(name for name, _ in {(job.dataset.name, job.split.at) for job in jobs})
        known = {cell.key for cell in self.cells}
        more = (PlannedCell(key, splits[key.dataset]) for key in groups if key not in known)
        cells = []
        for cell in (*self.cells, *more):
            own = tuple(job.key for job in groups.get(cell.key, ()))
            cells.append(replace(cell, jobs=own, n_splits=max(cell.n_splits, len(own))))
        return replace(self, cells=tuple(cells))

    def dump(self) -> bytes:
        """Return the plan as JSON text that is sealed by a hash of its content."""
        return sealed({"schema": PLAN_SCHEMA, **asdict(self)})

    @classmethod
    def parse(cls, text: bytes) -> Plan:
        """Return the plan in a JSON text that is sealed by a hash of its content.

        Raises
        ------
        BadRecord
            If the text is damaged, or if an entry has a wrong type; the message names the entry.
        """
        return cls.of(unseal(text, PLAN_SCHEMA))

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Plan:
        """Return the plan with the given content in JSON types.

        Raises
        ------
        BadRecord
            If an entry has a wrong type; the message names the entry.
        """
        try:
            return TypeAdapter(cls).validate_python(content)
        except ValidationError as error:
            raise BadRecord(first_fault(error)) from None


CONFIG = "experiment.yaml"
PLAN = "plan.json"
LOCK = ".lock"
#: Folder for damaged records.
QUARANTINE = "quarantine"
#: Folder for finished records whose jobs are run again on request.
SUPERSEDED = "superseded"
#: Pattern of the names of files that operating systems and network file systems add to folders.
OF_SYSTEM = re.compile(
    r"\.(DS_Store|localized|directory|_.*|nfs.*|fuse_hidden.*)|thumbs\.db|desktop\.ini|lost\+found",
    re.I,
)

#: Arrays by name.
Arrays = Mapping[str, Any]
#: Allowed types of the arrays with one entry or row per test row. A type consists of the kind of a
#: NumPy data type and the number of dimensions: "f2" is a matrix of floats. A file with the array
#: `test_index` must contain at least three other arrays of TEST_ROWS.
TEST_ROWS = {"test_index": "i1 u1"} | dict.fromkeys(("predicted", "y_test"), "b1 i1 u1 f1 U1 S1")
TEST_ROWS |= dict.fromkeys(("decisions", "scores", "probabilities"), "f2 i2")


class RecordStore:
    """The records in one results folder.

    Parameters
    ----------
    folder : Path
        The folder ``results/<experiment>``, with the file ``experiment.yaml`` or with a plan from
        which this file can be restored.

    Raises
    ------
    UserError
        If `folder` is not a results folder; `create` makes a new results folder.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._records = folder / "records"
        for path in (self._records, self._records / QUARANTINE, self._records / SUPERSEDED):
            if path.is_symlink():
                advice = "link the results folder itself, or move the records into it"
                raise UserError(f"{path}: is a link, which is not followed; {advice}")
        if not (folder / CONFIG).is_file():
            with suppress(BadRecord, OSError):  # a lost configuration is restored from the plan
                if (plan := self.plan()) and plan.config:
                    write_atomically(folder / CONFIG, lambda f: f.write(plan.config.encode()))
                    return
            kind = "does not exist" if not folder.exists() else f"has no {CONFIG}"
            raise UserError(f"{folder}: {kind}, so it is not the results folder of an experiment")

    @classmethod
    def create(cls, folder: Path, config: str, plan: Plan | None = None) -> RecordStore:
        """Create or update the results folder of a run, and return its `RecordStore`.

        Parameters
        ----------
        folder : Path
        config : str
            Text of the configuration of the run; replaces the configuration of an earlier run.
        plan : Plan, optional
            Plan of the run; replaces the plan of an earlier run.

        Raises
        ------
        UserError
            If the folder cannot be written to, contains files of other programs, or is in use.
        """
        _refuse_foreign(folder)
        with converted(f"{folder}: cannot be written to", OSError):
            (folder / "records").mkdir(parents=True, exist_ok=True)
            with exclusive(folder / LOCK):
                (folder / PLAN).unlink(missing_ok=True)
                write_atomically(folder / CONFIG, lambda file: file.write(config.encode()))
                if plan is not None:
                    plan = replace(plan, config_sha256=_sha256(config.encode()), config=config)
                    write_atomically(folder / PLAN, lambda file: file.write(plan.dump()))
        return cls(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the results folder against other runs; files are changed only in a locked folder.

        Raises
        ------
        UserError
            If another run has locked the folder.
        """
        with exclusive(self.folder / LOCK):
            for path in self._records.glob("*" + TEMPORARY):  # files of killed processes
                path.unlink(missing_ok=True)
            yield

    def path_of(self, key: str, suffix: str = ".json") -> Path:
        """Return the path of a job's record; the file need not exist."""
        return self._records / (key + suffix)

    def write(self, record: Content, arrays: Arrays | None = None) -> None:
        """Write the arrays of a record to a file, and then the record to another file.

        Raises
        ------
        FileExistsError
            If the job has a result already.
        UserError
            If the disk is full or write permission is missing.
        """
        key = record["key"]
        if self.has(key):
            raise FileExistsError(f"{self.path_of(key)}: a finished record is never replaced")
        data = _npz(arrays) if arrays else b""
        text = sealed({**record, "arrays": _sha256(data) if data else None}, indent=1)
        with converted(f"{self.folder}: cannot be written to", OSError):
            if data:
                write_atomically(self.path_of(key, ".npz"), lambda file: file.write(data))
            write_atomically(self.path_of(key), lambda file: file.write(text))

    def adopt(self, key: str, source: RecordStore) -> bool:
        """Copy the files of a record from another folder as they are, unless the job has a result
        here. Return whether the record was copied.

        Raises
        ------
        BadRecord
            If the record is damaged.
        UserError
            If the disk is full or write permission is missing.
        """
        if self.has(key):
            return False
        record, text = source.read(key), read_regular(source.path_of(key))
        with converted(f"{self.folder}: cannot be written to", OSError):
            if record.get("arrays") is not None:
                data = read_regular(source.path_of(key, ".npz"), ARRAYS_BYTES)
                write_atomically(self.path_of(key, ".npz"), lambda file: file.write(data))
            write_atomically(self.path_of(key), lambda file: file.write(text))
        return True

    def read(self, key: str) -> Content:
        """Return the record of a job after a check of its seal and of the hash of its arrays.

        Raises
        ------
        FileNotFoundError
            If the job has no record.
        BadRecord
            If the record is damaged.
        """
        record = parse(read_regular(self.path_of(key)), key)
        if record.get("arrays") is None:
            return record
        with suppress(FileNotFoundError):
            if _sha256(read_regular(self.path_of(key, ".npz"), ARRAYS_BYTES)) == record["arrays"]:
                return record
        raise BadRecord("its arrays are missing or damaged")

    def plan(self) -> Plan | None:
        """Return the plan of the last run, or None if the folder has no plan.

        Raises
        ------
        BadRecord
            If the plan file is damaged.
        """
        with suppress(FileNotFoundError):
            return Plan.parse(read_regular(self.folder / PLAN))
        return None

    def damage(self) -> list[str]:
        """Return a list with at most one message, which states a fault of the results folder.

        A fault is a damaged plan, or a configuration that has changed since the last run.
        """
        try:
            plan = self.plan()
        except BadRecord as error:
            return [f"{PLAN} is damaged ({error})"]
        known = plan.config_sha256 if plan else ""
        with suppress(BadRecord, FileNotFoundError):
            if known in ("", _sha256(read_regular(self.folder / CONFIG))):
                return []
        return [f"{CONFIG} is damaged or was changed: it differs from the last run"]

    def find(self, key: str) -> Content | None:
        """Return the record of a job, or None if the record is missing or damaged."""
        with suppress(FileNotFoundError, BadRecord):
            return self.read(key)
        return None

    def has(self, key: str) -> bool:
        """Return whether a job has a result."""
        return (record := self.find(key)) is not None and is_done(record)

    def arrays(self, key: str) -> dict[str, NDArray]:
        """Return the stored arrays of a job, such as ``predicted`` and ``decisions``, by name.

        Raises
        ------
        BadRecord
            If the file is damaged, or if an array of test rows has a wrong shape or type.
        """
        path = self.path_of(key, ".npz")
        content = io.BytesIO(read_regular(path, ARRAYS_BYTES))
        # reading a forged file can raise any exception
        with converted(f"{path}: not the arrays of a record", Exception, to=BadRecord):
            with ZipFile(content) as archive:
                if sum(part.file_size for part in archive.infolist()) > ARRAYS_BYTES:
                    raise ValueError(f"more than {ARRAYS_BYTES} bytes")
                arrays = {
                    name.removesuffix(".npy"): _array(archive.read(name))
                    for name in archive.namelist()
                }
            own = {name: arrays[name] for name in TEST_ROWS if name in arrays}
            if any(f"{a.dtype.kind}{a.ndim}" not in TEST_ROWS[name] for name, a in own.items()):
                raise ValueError("an array has a wrong shape or type")
            if len({*map(len, own.values())}) > 1 or ("test_index" in own and len(own) < 4):
                raise ValueError("an array is missing or has a wrong length")
            return arrays

    def keys(self) -> list[str]:
        """Return the keys of all records, sorted."""
        return sorted(path.stem for path in self._records.glob("[!.]*.json"))

    def records(self) -> tuple[list[Record], list[str]]:
        """Return all intact records, sorted by key, and one message per damaged record."""
        found, damaged = [], []
        for key in self.keys():
            try:
                found.append(Record.of(self.read(key)))
            except (BadRecord, OSError) as error:
                damaged.append(f"{self.path_of(key).name}: {error}")
        return found, damaged

    def unused(self) -> list[Path] | None:
        """Return the files of records that are damaged, replaced on request, or not in the plan.

        Returns
        -------
        list of Path or None
            Paths of the files. If the plan is missing or damaged, the result is None, since the
            plan is needed to recognise records that are not in it.
        """
        plan = None
        with suppress(BadRecord):
            plan = self.plan()
        if plan is None:
            return None
        files = (path for path in self._records.iterdir() if path.suffix in (".json", ".npz"))
        unplanned = [path for path in files if path.stem not in plan.jobs]
        aside = [p for name in (QUARANTINE, SUPERSEDED) for p in (self._records / name).glob("*")]
        return sorted([*unplanned, *aside])

    def recover(self, keys: Iterable[str], say: Callable[[str], Any]) -> dict[str, Content]:
        """Return the intact records with the given keys; move damaged records to `QUARANTINE`.

        Parameters
        ----------
        keys : iterable of str
            Keys of the records; keys without a record are skipped.
        say : callable
            Called with one message per damaged record.
        """
        found = {}
        for key in keys:
            try:
                found[key] = self.read(key)
            except FileNotFoundError:
                pass
            except BadRecord as error:
                folder = self.set_aside(key, QUARANTINE)
                say(f"{self.path_of(key)}: {error}; moved to {folder}, its job runs again")
        return found

    def set_aside(self, key: str, folder: str = SUPERSEDED) -> Path:
        """Move a record to a subfolder whose records are not read; return the subfolder."""
        target = self._records / folder
        target.mkdir(exist_ok=True)
        for suffix in (".json", ".npz"):
            if os.path.lexists(self.path_of(key, suffix)):
                self.path_of(key, suffix).replace(_free(target / (key + suffix)))
        sync_folder(target)
        sync_folder(self._records)
        return target


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refuse_foreign(folder: Path) -> None:
    """Raise UserError if a path is a file, or a folder that contains files of other programs."""
    for part in (folder, folder.parent):
        if part.exists() and not part.is_dir():
            raise UserError(f"{part}: is a file, not a results folder")
    held = {path.name for path in folder.iterdir()} if folder.exists() else set()
    # a folder with the user's own configuration is not a results folder
    if CONFIG in held and held & {"records", PLAN}:
        return
    # a folder that contains only files of mmbench is accepted without a configuration, since the
    # start of a run may have been interrupted
    ours = {"records", LOCK, PLAN, CONFIG + TEMPORARY, PLAN + TEMPORARY}
    if foreign := sorted(name for name in held - ours if not OF_SYSTEM.fullmatch(name)):
        problem = f"it holds {foreign[0]!r} but no {'records' if CONFIG in held else CONFIG}"
        raise UserError(f"{folder}: not a results folder, {problem}; choose another with --results")


def _free(path: Path) -> Path:
    """Return `path`, or if it exists, `path` with the first unused suffix ``.1``, ``.2``, ..."""
    names = (path.with_name(f"{path.name}.{k}") for k in itertools.count(1))
    return next(free for free in itertools.chain([path], names) if not os.path.lexists(free))


def _npz(arrays: Arrays) -> bytes:
    """Return the arrays as the bytes of an ``.npz`` file; equal arrays give equal bytes."""
    import numpy as np

    if any(array.dtype.hasobject for array in arrays.values()):
        raise TypeError("arrays of Python objects are not stored, as reading them could run code")
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _array(content: bytes) -> NDArray:
    """Return the array in the bytes of a file ``.npy``.

    `numpy.load` parses the header of each array as Python code, which takes most of its time; the
    headers of most records are equal.
    """
    import numpy as np

    start = HEADER_LENGTH + int.from_bytes(content[8:HEADER_LENGTH], "little")
    shape, fortran, dtype = _header(content[:start])
    count = math.prod(shape)
    array = np.frombuffer(content, dtype, count, start).reshape(
        shape, order="F" if fortran else "C"
    )
    return array.copy(order="K")


@lru_cache(maxsize=1000)
def _header(content: bytes) -> tuple[tuple[int, ...], bool, Any]:
    from numpy.lib import format as npy

    if npy.read_magic(io.BytesIO(content)) != (1, 0):
        raise ValueError("an array in another format than NumPy's version 1.0")
    shape, fortran, dtype = npy.read_array_header_1_0(io.BytesIO(content[8:]))
    if dtype.hasobject:
        raise ValueError("an array of Python objects, reading which could run code")
    return shape, fortran, dtype
