"""Send the data files of a job to a computer that has no other access to the data.

The computer on which a job runs looks for the data in its store, in the mirror and at the sources
of the card. If the computer does not find the data, the process that started the run sends the
files, and the computer adds the files to its store.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmbench.datasets.fetch import Places, Search, find
from mmbench.errors import UserError, converted
from mmbench.jobs.job import Job

#: Data files as (name in the store, SHA-256, content).
Parcel = list[tuple[str, str, bytes]]


class MissingData(Exception):
    """The computer that runs a job cannot find its data; the sender of the job must send them."""


def pack(job: Job, data: Path, mirror: str | None) -> Parcel:
    """Return the data files of a job, read on this computer.

    Raises
    ------
    UserError
        If the files are not on this computer.
    """
    ref = job.dataset
    files = {name: Path(path) for path, name in _user_files(job).values()}
    if ref.card is not None:
        found = Search(ref.card, Places(data, mirror)).local()
        if found is None or not found.paths:
            raise UserError(f"no files of data set {ref.name!r} on this computer or on the workers")
        names = [file.path for file in found.source.files]
        if found.packed:
            names = [str(path.relative_to(data)) for path in found.paths]
        files |= zip(names, found.paths, strict=True)
    content = {name: path.read_bytes() for name, path in files.items()}
    return [(name, hashlib.sha256(text).hexdigest(), text) for name, text in content.items()]


def unpack(parcel: Parcel, data: Path) -> None:
    """Add the files of a parcel to the store of this computer.

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
    """Return a job, the store and the mirror, with paths that are valid on this computer.

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
    """Return the store of this computer: `data` if this folder exists here, else the default."""
    return data if data.is_dir() else Path(os.environ.get("MMBENCH_DATA", "datasets")).absolute()


def _user_files(job: Job) -> dict[str, tuple[str, str]]:
    """Return the user's files of a job: path and name in the store, by field of the data set.

    The name of a table keeps its suffix, which is the format.
    """
    ref, files = job.dataset, dict[str, tuple[str, str]]()
    if ref.path is not None and not ref.path.startswith(("openml:", "sklearn:")):
        files["path"] = (ref.path, f"user/{job.dataset_hash[:16]}/{Path(ref.path).name}")
    if ref.folds is not None:
        files["folds"] = (ref.folds, f"folds/{job.dataset_hash[:16]}.csv")
    return files
