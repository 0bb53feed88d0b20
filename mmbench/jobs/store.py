"""The results folder of an experiment: its configuration, its plan, and one record per job.

Tables use only records with a key in ``plan.json``. A record is KEY.json and, if the job has a
result, KEY.npz; the JSON file is written last, with the hash of the arrays. Files are written under
a temporary name and renamed; the record of a finished job is never overwritten. A folder may come
from an untrusted source: links are not followed, and only regular files of a bounded size are read.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, Literal

from mmbench.errors import UserError, converted
from mmbench.jobs.disk import (
    ARRAYS_BYTES,
    TEMPORARY,
    read_regular,
    sync_folder,
    write_atomically,
)
from mmbench.jobs.lock import exclusive
from mmbench.jobs.planned import Plan
from mmbench.jobs.record import Content, Record, is_done, parse
from mmbench.jobs.seal import BadRecord, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Fields of the header of a file in a zip archive: method of compression, checksum, size, and the
#: lengths of the name and of the additional field, which contains the size if the size is ZIP64.
ZIP_HEADER, ZIP64 = Struct("<8xH4xI4xIHH"), 2**32 - 1
#: Length of a file ``.npy`` up to the text of its header.
HEADER_LENGTH = 10

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
#: Allowed types of the arrays with one entry or row per test row: the kind of a NumPy data type and
#: the number of dimensions ("f2" is a matrix of floats). A file with `test_index` has at least
#: three other arrays of TEST_ROWS.
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
                    write_atomically(folder / CONFIG, plan.config.encode())
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
                write_atomically(folder / CONFIG, config.encode())
                if plan is not None:
                    plan = replace(plan, config_sha256=_sha256(config.encode()), config=config)
                    write_atomically(folder / PLAN, plan.dump())
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
                write_atomically(self.path_of(key, ".npz"), data)
            write_atomically(self.path_of(key), text)

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
                write_atomically(self.path_of(key, ".npz"), data)
            write_atomically(self.path_of(key), text)
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
        path = os.path.join(self._records, key)  # the method `path_of` takes ten times as long
        record = parse(read_regular(path + ".json"), key)
        if record.get("arrays") is None:
            return record
        with suppress(FileNotFoundError):
            if _sha256(read_regular(path + ".npz", ARRAYS_BYTES)) == record["arrays"]:
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
        path = os.path.join(self._records, key + ".npz")
        data = read_regular(path, ARRAYS_BYTES)
        # reading a forged file can raise any exception
        with converted(f"{path}: not the arrays of a record", Exception, to=BadRecord):
            arrays = {name.removesuffix(".npy"): _array(part) for name, part in _members(data)}
            own = {name: arrays[name] for name in TEST_ROWS if name in arrays}
            if any(f"{a.dtype.kind}{a.ndim}" not in TEST_ROWS[name] for name, a in own.items()):
                raise ValueError("an array has a wrong shape or type")
            if len({*map(len, own.values())}) > 1 or ("test_index" in own and len(own) < 4):
                raise ValueError("an array is missing or has a wrong length")
            return arrays

    def keys(self) -> list[str]:
        """Return the keys of all records, sorted."""
        names = os.listdir(self._records) if self._records.exists() else []
        return sorted(n[:-5] for n in names if n.endswith(".json") and not n.startswith("."))

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


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files in a zip archive that `_npz` returns.

    The class `ZipFile` takes five times as long. The archive is not compressed, so that the
    contents need no more memory than the archive.
    """
    at = 0
    while data.startswith(b"PK\3\4", at):
        method, checksum, size, *lengths = ZIP_HEADER.unpack_from(data, at)
        name, extra = at + ZIP_HEADER.size, at + ZIP_HEADER.size + lengths[0]
        if size == ZIP64:
            size = int.from_bytes(data[extra + 4 : extra + 12], "little")
        start = extra + lengths[1]
        at = start + size
        content = data[start:at]
        if method or zlib.crc32(content) != checksum:
            raise ValueError("a compressed or damaged array")
        yield data[name:extra].decode(), content
    if data[-22:-18] != b"PK\5\6" or int.from_bytes(data[-6:-2], "little") != at:
        raise ValueError("not a whole archive")


def _array(content: bytes) -> NDArray:
    """Return the array in the bytes of a file ``.npy``.

    `numpy.load` parses the header of each array as Python code, which takes most of its time; the
    headers of most records are equal.
    """
    import numpy as np

    start = HEADER_LENGTH + int.from_bytes(content[8:HEADER_LENGTH], "little")
    shape, order, dtype = _header(content[:start])
    return np.ndarray(shape, dtype, content, start, order=order).copy(order="K")


@lru_cache(maxsize=1000)
def _header(content: bytes) -> tuple[tuple[int, ...], Literal["C", "F"], Any]:
    from numpy.lib import format as npy

    if npy.read_magic(io.BytesIO(content)) != (1, 0):
        raise ValueError("an array in another format than NumPy's version 1.0")
    shape, fortran, dtype = npy.read_array_header_1_0(io.BytesIO(content[8:]))
    if dtype.hasobject:
        raise ValueError("an array of Python objects, reading which could run code")
    return shape, "F" if fortran else "C", dtype
