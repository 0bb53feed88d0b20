"""User data: a table in a file, on OpenML or in scikit-learn, with a column of class labels."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Dataset, DatasetRef, Parsed
from mmbench.datasets.fetch import NoAnswer, NotAvailable, Places
from mmbench.datasets.user.formats import (
    DenseTable,
    SparseTable,
    first_bytes,
    openml_file,
    read_file,
    sklearn_table,
)
from mmbench.datasets.user.keys import FileOptions as FileOptions
from mmbench.datasets.user.keys import UserTable as UserTable
from mmbench.datasets.user.keys import knows_target
from mmbench.datasets.user.table_columns import user_dataset
from mmbench.errors import UserError, converted

#: Version of the functions that read tables, part of the hash of a user's data. If a change of the
#: code changes the values that are read, READER must be increased.
READER = 7
#: Accepted values of the key ``target`` if the format of a table defines the labels (npz, svmlight,
#: scikit-learn).
OWN_TARGETS = (None, "target", "y", -1)


def user_hash(ref: DatasetRef, places: Places) -> str:
    """Return the SHA-256 of a user's table together with the target and the reading options."""
    kind, _, name = str(ref.path).partition(":")
    try:
        if kind == "sklearn":
            table = sklearn_table(name, places, _options(ref).max_megabytes * 2**20)
            y = table.frame.pop("target").to_numpy()
            content = Parsed(table.frame.to_numpy(np.float64), y).content_hash()
            digest = hashlib.sha256(content.encode())
        else:
            path, _, ignored = _file(ref, places)
            first_bytes(path)  # raises ValueError if the path is not a readable regular file
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256")
            digest.update(f"\nignored {ignored}".encode())
    except ValueError as error:
        if kind != "openml" or (places.allow_network and not isinstance(error, NoAnswer)):
            raise UserError(f"{ref.path}: {error}") from error
        # if a table of OpenML cannot be downloaded, its data set number is hashed instead of its
        # content
        digest = hashlib.sha256(str(ref.path).encode())
    digest.update(f"\nreader {READER}\ntarget {'' if ref.target is None else ref.target}".encode())
    if ref.options:
        digest.update(f"\noptions {ref.options}".encode())
    return digest.hexdigest()


def load_user_data(ref: DatasetRef, places: Places) -> Dataset:
    """Read and check a user's table.

    Raises
    ------
    UserError
        If the table cannot be read, if a column does not exist or contains invalid values, if there
        are fewer than two classes, or if the preprocessing steps do not replace all missing values
        and encode all categories.
    """
    source = str(ref.path)
    too_large = converted(f"{source}: does not fit in memory", MemoryError)
    with too_large, converted(source, ValueError), converted(source, NoAnswer, to=NotAvailable):
        data = user_dataset(ref, _table(ref, places), _options(ref))
    return replace(data, content_hash=user_hash(ref, places))


def _options(ref: DatasetRef) -> FileOptions:
    return FileOptions.model_construct(**dict(ref.options))


def _table(ref: DatasetRef, places: Places) -> DenseTable | SparseTable:
    kind, _, name = str(ref.path).partition(":")
    if ref.target not in OWN_TARGETS and (kind == "sklearn" or knows_target(str(ref.path))):
        raise ValueError(f"the format defines the labels; remove target: {ref.target}")
    if kind == "sklearn":
        return sklearn_table(name, places, _options(ref).max_megabytes * 2**20)
    path, default, ignored = _file(ref, places)
    table = read_file(path, _options(ref), default if ref.target is None else ref.target)
    return table._replace(ignored=(*table.ignored, *ignored))


def _file(ref: DatasetRef, places: Places) -> tuple[Path, str | None, tuple[str, ...]]:
    """Return the path of a table, its default target (for OpenML), and the columns to exclude."""
    kind, _, name = str(ref.path).partition(":")
    if kind == "openml":
        return openml_file(int(name), places, _options(ref).max_megabytes * 2**20)
    return Path(str(ref.path)), None, ()
