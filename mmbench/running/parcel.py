"""The data of a job, sent to a computer that cannot have them otherwise.

Where a job runs, its data are looked for in the store there, the mirror and the sources. Only what
is in none of them is asked of the process that started the run, and kept in the store.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from mmbench.datasets.fetch import Places, Search, Store, find
from mmbench.errors import UserError
from mmbench.jobs.job import Job

#: Name of each file in the store, its SHA-256 and its content.
Parcel = list[tuple[str, str, bytes]]


class MissingData(Exception):
    """The data of a job are not where it runs; the process that sent it has them."""


def pack(job: Job, data: Path, mirror: str | None) -> Parcel:
    """Return the files of a job's data, as they are at hand here.

    Raises
    ------
    UserError
        If they are not.
    """
    ref = job.dataset
    if ref.card is None:
        files = {_user_name(job): Path(str(ref.path))}
    else:
        store = Store(data)
        found = Search(ref.card, Places(data, mirror)).local()
        if found is None or not found.paths:
            raise UserError(f"data set {ref.name!r} is neither here nor where its jobs run")
        names = (
            [str(path.relative_to(store.root)) for path in found.paths]
            if found.packed
            else [file.path for file in found.source.files]
        )
        files = dict(zip(names, found.paths, strict=True))
    if ref.folds is not None:
        files[_folds_name(job)] = Path(ref.folds)
    content = {name: path.read_bytes() for name, path in files.items()}
    return [(name, hashlib.sha256(text).hexdigest(), text) for name, text in content.items()]


def unpack(parcel: Parcel, data: Path) -> None:
    """Put the files of a parcel into the store of this computer.

    Raises
    ------
    UserError
        If one was damaged on its way, or the store cannot be written to.
    """
    store = Store(_store(data))
    for name, digest, content in parcel:
        if hashlib.sha256(content).hexdigest() != digest:
            raise UserError(f"{name} was damaged on its way to {store.root}")
        with store.scratch() as scratch:
            (scratch / "file").write_bytes(content)
            store.admit(scratch / "file", store.root / name)


def at_hand(job: Job, data: Path, mirror: str | None) -> tuple[Job, Path, str | None]:
    """Return a job, the store and the mirror with the paths of this computer.

    Raises
    ------
    MissingData
        If the data of the job cannot be had here.
    """
    if mirror and "://" not in mirror and not Path(mirror).is_dir():
        mirror = os.environ.get("MMBENCH_MIRROR")
    data, ref = _store(data), job.dataset
    if ref.card is not None:
        try:
            find(ref.card, Places(data, mirror))
        except UserError as error:
            raise MissingData(str(error)) from None
    elif ":" not in str(ref.path) and not Path(str(ref.path)).is_file():
        path = data / _user_name(job)
        if not path.is_file():
            raise MissingData(str(ref.path))
        job = replace(job, dataset=replace(ref, path=str(path)))
    if ref.folds is not None and not Path(ref.folds).is_file():
        path = data / _folds_name(job)
        if not path.is_file():
            raise MissingData(ref.folds)
        job = replace(job, dataset=replace(job.dataset, folds=str(path)))
    return job, data, mirror


def _store(data: Path) -> Path:
    """Return the store of this computer: that of the run where it is seen here too."""
    return data if data.is_dir() else Path(os.environ.get("MMBENCH_DATA", "datasets")).absolute()


def _user_name(job: Job) -> str:
    """Return where the store keeps a user's file: its name ends as the file's, which says how."""
    return f"user/{job.dataset_hash[:16]}/{Path(str(job.dataset.path)).name}"


def _folds_name(job: Job) -> str:
    return f"folds/{job.dataset_hash[:16]}.csv"
