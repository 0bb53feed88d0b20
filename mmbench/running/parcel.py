"""Send the data files of a job to the store of a computer that has no other access to the data."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmbench.datasets.fetch import Places, Search, find
from mmbench.errors import UserError, converted
from mmbench.jobs.job import Job

#: Data files, each as (name in the local store, SHA-256, content).
Parcel = list[tuple[str, str, bytes]]


class MissingData(Exception):
    """The computer that runs a job cannot find the data, so the data must be sent with the job."""


def pack(job: Job, data: Path, mirror: str | None) -> Parcel:
    """Read the data files of a job on this computer; return their names, hashes and contents.

    Raises
    ------
    UserError
        If the data files are not on this computer.
    """
    ref = job.dataset
    files = {name: Path(path) for path, name in _user_files(job).values()}
    if ref.card is not None:
        found = Search(ref.card, Places(data, mirror)).local()
        if found is None or not found.paths:
            raise UserError(f"no files of data set {ref.name!r} on this computer or on the workers")
        files |= zip(found.source.stored_names(ref.name), found.paths, strict=True)
    content = {name: path.read_bytes() for name, path in files.items()}
    return [(name, hashlib.sha256(text).hexdigest(), text) for name, text in content.items()]


def unpack(parcel: Parcel, data: Path) -> None:
    """Check the hashes of data files, and add the files to the local store of this computer.

    Raises
    ------
    UserError
        If a file was damaged in transfer, or if the store cannot be written to.
    """
    places = Places(_store(data))
    for name, digest, content in parcel:
        if hashlib.sha256(content).hexdigest() != digest:
            raise UserError(f"{name} was damaged on its way to {places.store}")
        with places.scratch() as scratch:
            (scratch / "file").write_bytes(content)
            places.admit(scratch / "file", name)


def at_hand(job: Job, data: Path, mirror: str | None) -> tuple[Job, Path, str | None]:
    """Return a job, its local store and its mirror, with paths that exist on this computer.

    Raises
    ------
    MissingData
        If this computer cannot find the data of the job.
    """
    if mirror and "://" not in mirror and not Path(mirror).is_dir():
        mirror = os.environ.get("MMBENCH_MIRROR")
    data, ref = _store(data), job.dataset
    if ref.card is not None:
        with converted("", UserError, to=MissingData):
            find(ref.card, Places(data, mirror))
    here = dict[str, Any]()
    for field, (path, name) in _user_files(job).items():
        if not Path(path).is_file():
            if not (data / name).is_file():
                raise MissingData(path)
            here[field] = str(data / name)
    return replace(job, dataset=replace(ref, **here)), data, mirror


def _store(data: Path) -> Path:
    """Return the folder `data` or, if this computer has no folder `data`, the default store."""
    return data if data.is_dir() else Path(os.environ.get("MMBENCH_DATA", "datasets")).absolute()


def _user_files(job: Job) -> dict[str, tuple[str, str]]:
    """Return the user's files as a dict from field of `job.dataset` to (path, name in local store).

    The copy of a data file in the local store has the same file name, since the suffix determines
    the file format.
    """
    ref, files = job.dataset, dict[str, tuple[str, str]]()
    if ref.file is not None:
        files["path"] = (ref.file, f"user/{job.dataset_hash[:16]}/{Path(ref.file).name}")
    if ref.folds is not None:
        files["folds"] = (ref.folds, f"folds/{job.dataset_hash[:16]}.csv")
    return files
