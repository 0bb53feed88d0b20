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


def user_hash(ref: DatasetRef, places: Places) -> str:
    """Return the SHA-256 of the table, the target's name and what else is said of its columns.

    Raises
    ------
    UserError
        If the table cannot be read.
    """
    kind, _, name = str(ref.path).partition(":")
    try:
        if kind == "sklearn":
            digest = hashlib.sha256(table_hash(sklearn_table(name, places)).encode())
        else:
            digest = _file_digest(ref, places)
    except ValueError as error:
        if kind != "openml" or places.allow_network:
            raise UserError(f"{ref.path}: {error}") from error
        digest = hashlib.sha256(str(ref.path).encode())  # not fetched yet: named by its source
    digest.update(f"\ntarget {'' if ref.target is None else ref.target}".encode())
    if ref.options:
        digest.update(f"\noptions {ref.options}".encode())
    return digest.hexdigest()


def load_user_data(ref: DatasetRef, places: Places) -> Dataset:
    """Read and check a user's table.

    Raises
    ------
    UserError
        If it cannot be read, a column is missing or does not hold what it must, there are not two
        classes, or the preprocessing steps leave a missing value or a category.
    """
    options = FileOptions.model_construct(**dict(ref.options))
    try:
        found = features_of(_table(ref, options, places), options)
        names = found.names[found.X.shape[1] - found.n_categorical :]
        if problem := check_steps(ref.preprocess, found.X.shape[1], names, found.missing()):
            raise ValueError(problem)
        if (
            not isinstance(found.X, np.ndarray)
            and {name for name, _ in ref.preprocess} - KEEP_ZEROS
        ):
            raise ValueError(
                f"stays sparse: preprocess can only be {', '.join(sorted(KEEP_ZEROS))}"
            )
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


def _table(ref: DatasetRef, options: FileOptions, places: Places) -> Table | SparseTable:
    kind, _, name = str(ref.path).partition(":")
    if kind == "sklearn":
        return sklearn_table(name, places)
    path, default = _file(ref, places)
    return read_file(path, options, default if ref.target is None else ref.target)


def _file(ref: DatasetRef, places: Places) -> tuple[Path, str | None]:
    """Return the file of a reference, and its target where OpenML names it."""
    kind, _, name = str(ref.path).partition(":")
    return openml_file(int(name), places) if kind == "openml" else (Path(str(ref.path)), None)


def _file_digest(ref: DatasetRef, places: Places) -> hashlib._Hash:
    path, _ = _file(ref, places)
    first_bytes(path)  # refuses what is no regular file
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")
