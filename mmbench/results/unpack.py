"""Find a folder of results. Unpack a bundle: a zip file with one folder per experiment.

A bundle may come from a stranger: only files with known names, directly in a folder of an
experiment, are unpacked, into a temporary folder; links and too large files are refused. Nothing is
imported or run.
"""

from __future__ import annotations

import gzip
import re
import stat
import zlib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from mmbench.errors import UserError, address_fault, converted
from mmbench.resources import REFERENCE

#: Maximum size of an unpacked file, of all unpacked files together, and of the list of files at the
#: end of a zip file, in bytes.
FILE_BYTES, WHOLE_BYTES, LIST_BYTES = 2**28, 2**30, 2**22
#: Number of bytes that are unpacked at a time.
PART_BYTES = 2**20
#: The record at the end of a zip file, without its comment: its signature and length, the signature
#: of the record of larger zip files that precedes it, and the place of the size of the file list.
END, END_LENGTH, END_64, END_SIZE = b"PK\5\6", 22, b"PK\6\7", slice(12, 16)
#: Pattern for the names of folders, which are names of experiments.
FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Exceptions that can be raised when a damaged or forged zip file is read.
BROKEN = (BadZipFile, ValueError, OSError, EOFError, zlib.error, NotImplementedError, RuntimeError)


def is_bundle(path: str | Path) -> bool:
    """Return whether a path is a file with the suffix of a bundle."""
    return Path(path).suffix.lower() == ".zip" and Path(path).is_file()


def results_folder(path: Path) -> Path:
    """Return the folder of some results. If a path begins with "reference" and does not exist, it
    is a folder of the package. Raises UserError if there is no such folder.
    """
    if path.parts[:1] == ("reference",) and not path.exists():
        path = REFERENCE.joinpath(*path.parts[1:])
    if not path.is_dir():
        a_file = f"{path}: is a file, not a results folder"
        no_folder = address_fault(str(path)) or f"{path}: no such folder"
        raise UserError(a_file if path.exists() else no_folder)
    return path


def unpacked(path: Path, names: Collection[str]) -> Path:
    """Return a temporary folder with those files of a bundle that have one of `names`.

    A bundle that has not changed is unpacked once. Raises UserError if the file is not a bundle.
    """
    status = path.stat()
    home = _unpacked(path.resolve(), frozenset(names), (status.st_mtime_ns, status.st_size))
    return Path(home.name, path.name)


@cache
def _unpacked(path: Path, names: frozenset[str], state: tuple[int, int]) -> TemporaryDirectory[str]:
    home = TemporaryDirectory(prefix="mmbench-", ignore_cleanup_errors=True)
    folder = Path(home.name, path.name)  # error messages name the bundle
    with converted(f"{path}: not a bundle of mmbench", *BROKEN):
        with path.open("rb") as file:
            _check_list(file)
            with ZipFile(file) as archive:
                for info, inside in _chosen(archive, names):
                    target = folder.joinpath(*inside.parts)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(info) as source, target.open("xb") as copy:
                        while part := source.read(PART_BYTES):
                            copy.write(part)
                    if target.suffix == ".gz":
                        _check_unzipped(target, info.orig_filename)
        if not folder.exists():
            raise ValueError("it contains no folder of an experiment")
    return home


def _check_unzipped(path: Path, name: str) -> None:
    """Raise ValueError if a file that is compressed inside the bundle is too large to be read."""
    size = 0
    with (
        converted(repr(name), EOFError, OSError, zlib.error, to=ValueError),
        gzip.open(path) as file,
    ):
        while part := file.read(PART_BYTES):
            size += len(part)
            if size > FILE_BYTES:
                raise ValueError(f"{name!r} has more than {FILE_BYTES} bytes")


def _check_list(file: IO[bytes]) -> None:
    """Raise ValueError if the list of files is too large to be read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 2**16 - END_LENGTH - 20))
    tail = file.read()
    end = tail.rfind(END)
    if end < 0:
        raise ValueError("it is no zip file, or is incomplete")
    large = tail[max(0, end - 20) : end].startswith(END_64)
    if large or int.from_bytes(tail[end:][END_SIZE], "little") > LIST_BYTES:
        raise ValueError("it contains too many files")


def _chosen(archive: ZipFile, names: Collection[str]) -> Iterator[tuple[ZipInfo, PurePosixPath]]:
    """Yield the files that are unpacked, with their paths, after a check of all files."""
    chosen: dict[str, tuple[ZipInfo, PurePosixPath]] = {}
    for info in archive.infolist():
        name = info.orig_filename
        path, kind = PurePosixPath(name), stat.S_IFMT(info.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or set(name) & set("\\:\0"):
            raise ValueError(f"{name!r} would leave its folder")
        if kind and not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise ValueError(f"{name!r} is a link or a device")
        if info.is_dir() or len(path.parts) != 2 or path.name not in names:
            continue
        if not FOLDER.fullmatch(path.parts[0]):
            raise ValueError(f"{path.parts[0]!r} is not the name of an experiment")
        if info.flag_bits & 1 or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError(f"{name!r} is encrypted, or compressed by an unknown method")
        if info.file_size > FILE_BYTES:
            raise ValueError(f"{name!r} has more than {FILE_BYTES} bytes")
        if chosen.setdefault(name.lower(), (info, path))[0] is not info:
            raise ValueError(f"{name!r} occurs twice")
    if sum(info.file_size for info, _ in chosen.values()) > WHOLE_BYTES:
        raise ValueError(f"its files have more than {WHOLE_BYTES} bytes")
    yield from chosen.values()
