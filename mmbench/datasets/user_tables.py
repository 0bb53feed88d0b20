"""User data: a table in a file, on OpenML or in scikit-learn, with a column of class labels."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from mmbench.datasets.dataset import TASK, Dataset, DatasetRef, Parsed, Rows
from mmbench.datasets.fetch import NoAnswer, NotAvailable, Places
from mmbench.datasets.fetch.sources import TableFile, bounded_urlopen
from mmbench.datasets.openml import find_table, find_task, read_splits
from mmbench.datasets.preprocess import check_steps
from mmbench.errors import UserError, check_known, converted
from mmbench.reader.formats import DenseTable, SparseTable, first_bytes, of_arrays, read_file
from mmbench.reader.keys import FileOptions, knows_target
from mmbench.reader.user_table import UserTable, read_table

#: Preprocessing steps that keep a sparse matrix sparse.
KEEP_ZEROS = ("none", "unit_norm")
#: Version of the functions that read tables, part of the hash of a user's data. If a change of the
#: code changes the values that are read, READER must be increased.
READER = 8
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
            arrays = Parsed(table.frame.to_numpy(np.float64), y)
            digest = hashlib.sha256(arrays.content_hash().encode())
        else:
            file, splits = _file(ref, places)
            first_bytes(file.path)  # raises ValueError if the path is not a readable regular file
            with file.path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256")
            digest.update(f"\nignored {file.ignored}".encode())
            if splits:
                digest.update(f"\ntarget {file.target}\nsplits ".encode() + splits.read_bytes())
    except ValueError as error:
        if kind not in ("openml", TASK) or (
            places.allow_network and not isinstance(error, NoAnswer)
        ):
            raise UserError(f"{ref.path}: {error}") from error
        # if a table of OpenML cannot be downloaded, the number of the data set or task is hashed
        # instead of the content
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
        content, splits = _table(ref, places)
        table = read_table(content, _options(ref), bool(ref.classes))
        predefined = _of_rows(read_splits(splits), table) if splits else None
        nominal = list(table.columns.nominal) if table.columns else []
        problem = check_steps(ref.preprocess, table.X.shape[1], nominal, table.gap)
        if table.columns is None and {name for name, _ in ref.preprocess} - {*KEEP_ZEROS}:
            steps = f"preprocess must be {' or '.join(KEEP_ZEROS)} (--set preprocess=none)"
            problem = f"is sparse: {steps}{table.dense}"
        if problem:
            raise ValueError(problem)
    return Dataset(
        *(ref.name, table.X, table.y, np.unique(table.y)),
        predefined=predefined,
        splits_source=ref.splits_source,
        warnings=table.warnings,
        content_hash=user_hash(ref, places),
        n_categorical=len(nominal),
        table=table.columns,
        groups=table.groups,
        time=table.time,
        rows=table.rows,
        labelled=table.labelled,
    )


def _options(ref: DatasetRef) -> FileOptions:
    return FileOptions.model_construct(**dict(ref.options))


def _table(ref: DatasetRef, places: Places) -> tuple[DenseTable | SparseTable, Path | None]:
    """Return the content of a table, and the file with the splits of an OpenML task."""
    kind, _, name = str(ref.path).partition(":")
    if ref.target not in OWN_TARGETS and (kind == "sklearn" or knows_target(str(ref.path))):
        raise ValueError(f"the format defines the labels; remove target: {ref.target}")
    if kind == "sklearn":
        return sklearn_table(name, places, _options(ref).max_megabytes * 2**20), None
    file, splits = _file(ref, places)
    table = read_file(file.path, _options(ref), file.target if ref.target is None else ref.target)
    return table._replace(ignored=(*table.ignored, *file.ignored)), splits


def _file(ref: DatasetRef, places: Places) -> tuple[TableFile, Path | None]:
    """Return the file of a table, and the file with the splits of an OpenML task."""
    kind, _, name = str(ref.path).partition(":")
    most = _options(ref).max_megabytes * 2**20
    if kind == TASK:
        task = find_task(int(name), places, most)
        table = find_table(task.data_id, places, most)
        return table._replace(target=task.target), task.splits
    if kind == "openml":
        table = find_table(int(name), places, most)
        if ref.target is None:
            table.check_target()
        return table, None
    return TableFile(Path(str(ref.path))), None


def _of_rows(splits: list[Rows], table: UserTable) -> list[Rows]:
    """Return splits of the rows of a file as splits of the rows with a label."""
    labelled = np.full(len(table.y), True) if table.labelled is None else table.labelled
    last = max((part.max(initial=0) for split in splits for part in split), default=0)
    if last >= len(labelled):
        raise ValueError(f"the task splits row {last + 1}, but the table has {len(labelled)} rows")
    position = np.cumsum(labelled) - 1
    kept = ([position[part[labelled[part]]] for part in split] for split in splits)
    return [(train, test) for train, test in kept]


def sklearn_table(name: str, places: Places, most: int) -> DenseTable:
    """Return the data set of scikit-learn's function ``load_NAME`` or ``fetch_NAME``."""
    from scipy.sparse import issparse
    from sklearn import datasets

    named = (loader for loader in datasets.__all__ if loader.startswith(("fetch_", "load_")))
    loaders = {loader.partition("_")[2]: loader for loader in named}
    check_known(name, loaders, "scikit-learn has no data set", ValueError)
    more: dict[str, Any] = {}
    if loaders[name].startswith("fetch_"):
        more = {"data_home": places.store / "sklearn", "download_if_missing": places.allow_network}
    problem = f"{loaders[name]} of scikit-learn returns no table with labels"
    no_table = converted(problem, AttributeError, TypeError, to=ValueError)
    with converted("", OSError, to=ValueError), no_table:
        with bounded_urlopen(most, threading.Event()):
            bunch = getattr(datasets, loaders[name])(**more)
        if issparse(bunch.data):
            raise ValueError("is sparse; save X and y as .svm by scikit-learn's dump_svmlight_file")
        y, names = np.asarray(bunch.target), np.atleast_1d(getattr(bunch, "target_names", ()))
        # the `target_names` of fetch_covtype are not the names of the classes
        if y.ndim == 1 and y.dtype.kind == "i" and np.isin(y, range(len(names))).all():
            y = names[y]
        return of_arrays(np.asarray(bunch.data), y)
