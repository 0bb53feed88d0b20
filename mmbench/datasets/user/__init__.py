"""A user's own data: a table in a file, on OpenML or in scikit-learn, with a column of classes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Dataset, DatasetRef
from mmbench.datasets.fetch import Places
from mmbench.datasets.preprocess import check_steps
from mmbench.datasets.user.columns import features_of
from mmbench.datasets.user.formats import (
    SparseTable,
    Table,
    first_bytes,
    openml_file,
    read_file,
    sklearn_table,
    table_hash,
)
from mmbench.datasets.user.options import FileOptions, UserTable
from mmbench.errors import UserError

__all__ = ["FileOptions", "UserTable", "load_user_data", "user_hash"]


#: Preprocessing steps of a table that stays sparse.
KEEP_ZEROS = {"none", "unit_norm"}
#: Raised if tables are read as other values than before; part of the hash of a user's data.
READER = 2


def user_hash(ref: DatasetRef, places: Places) -> str:
    """Return the SHA-256 of the table, the target's name and the options of its columns."""
    kind, _, name = str(ref.path).partition(":")
    try:
        if kind == "sklearn":
            table = sklearn_table(name, places, _options(ref).max_megabytes * 2**20)
            digest = hashlib.sha256(table_hash(table).encode())
        else:
            path, _, ignored = _file(ref, places)
            first_bytes(path)  # refuses anything but a regular file
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
            digest.update(f"\nignored {ignored}".encode())
    except ValueError as error:
        if kind != "openml" or places.allow_network:
            raise UserError(f"{ref.path}: {error}") from error
        digest = hashlib.sha256(str(ref.path).encode())  # not fetched yet: named by its source
    digest.update(f"\nreader {READER}".encode())
    digest.update(f"\ntarget {'' if ref.target is None else ref.target}".encode())
    if ref.options:
        digest.update(f"\noptions {ref.options}".encode())
    return digest.hexdigest()


def load_user_data(ref: DatasetRef, places: Places) -> Dataset:
    """Read and check a user's table.

    Raises
    ------
    UserError
        If it cannot be read, a column is missing or holds other values than it must, there are not
        two classes, or the preprocessing steps leave a missing value or a category.
    """
    options = _options(ref)
    try:
        found = features_of(_table(ref, options, places), options)
        names = found.names[found.X.shape[1] - found.n_categorical :]
        if problem := check_steps(ref.preprocess, found.X.shape[1], names, found.missing()):
            raise ValueError(problem)
        steps = {name for name, _ in ref.preprocess}
        if not isinstance(found.X, np.ndarray) and steps - KEEP_ZEROS:
            allowed = ", ".join(sorted(KEEP_ZEROS))
            raise ValueError(f"stays sparse: preprocess can only be {allowed}")
    except MemoryError:
        raise UserError(f"{ref.path}: does not fit in memory") from None
    except ValueError as error:
        raise UserError(f"{ref.path}: {error}") from error
    return Dataset(
        name=ref.name,
        X=found.X,
        y=found.y,
        classes=np.unique(found.y),
        split=None,
        predefined=None,
        content_hash=user_hash(ref, places),
        warnings=found.warnings,
        n_categorical=found.n_categorical,
        groups=found.groups,
        time=found.time,
    )


def _options(ref: DatasetRef) -> FileOptions:
    return FileOptions.model_construct(**dict(ref.options))


def _table(ref: DatasetRef, options: FileOptions, places: Places) -> Table | SparseTable:
    kind, _, name = str(ref.path).partition(":")
    if kind == "sklearn":
        return sklearn_table(name, places, options.max_megabytes * 2**20)
    path, default, ignored = _file(ref, places)
    table = read_file(path, options, default if ref.target is None else ref.target)
    if isinstance(table, Table):
        table = table._replace(ignored=(*table.ignored, *ignored))
    return table


def _file(ref: DatasetRef, places: Places) -> tuple[Path, str | None, tuple[str, ...]]:
    """Return the file of a reference, and of OpenML its target and columns that are no features."""
    kind, _, name = str(ref.path).partition(":")
    if kind == "openml":
        return openml_file(int(name), places, _options(ref).max_megabytes * 2**20)
    return Path(str(ref.path)), None, ()
