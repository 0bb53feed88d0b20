"""User data: a table in a file, on OpenML or in scikit-learn, with a column of class labels."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np

from mmbench.datasets.dataset import Dataset, DatasetRef, Parsed
from mmbench.datasets.fetch import NoAnswer, NotAvailable, Places
from mmbench.datasets.fetch.sources import bounded_urlopen, download_arff
from mmbench.datasets.preprocess import check_steps
from mmbench.errors import UserError, converted, did_you_mean
from mmbench.reader.formats import DenseTable, SparseTable, first_bytes, of_arrays, read_file
from mmbench.reader.keys import FileOptions, knows_target
from mmbench.reader.user_table import read_table

#: Preprocessing steps that keep a sparse matrix sparse.
KEEP_ZEROS = ("none", "unit_norm")
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
        table = read_table(_table(ref, places), _options(ref), bool(ref.classes))
        nominal = list(table.columns.nominal) if table.columns else []
        problem = check_steps(ref.preprocess, table.X.shape[1], nominal, table.gap)
        if table.columns is None and {name for name, _ in ref.preprocess} - {*KEEP_ZEROS}:
            steps = f"preprocess must be {' or '.join(KEEP_ZEROS)} (--set preprocess=none)"
            problem = f"is sparse: {steps}{table.dense}"
        if problem:
            raise ValueError(problem)
    return Dataset(
        *(ref.name, table.X, table.y, np.unique(table.y)),
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


def openml_file(data_id: int, places: Places, most: int) -> tuple[Path, str, tuple[str, ...]]:
    """Return the path of an OpenML data set's ARFF file, its target and the columns to exclude.

    If the ARFF file is neither in the local store nor in the mirror folder, the file is downloaded.
    """
    old, name = "", Path("openml", f"{data_id}.arff")
    for folder in filter(None, (places.store, places.mirror_folder)):
        path, facts = folder / name, folder / name.with_suffix(".json")
        if path.is_file() and facts.is_file():
            with converted(str(facts), ValueError, to=ValueError):
                stated = json.loads(facts.read_text("utf-8"))
            match stated:
                case {"target": str(target), "ignored": [*ignored]}:
                    return path, target, tuple(map(str, ignored))
            old = f"{facts} is of an older version and does not list the columns to exclude; "
    if not places.allow_network:
        raise ValueError(f"{old}not in the store or the mirror, and the network is switched off")
    with places.scratch() as scratch:
        arrived, label, excluded = download_arff(data_id, scratch, places.progress, most)
        (scratch / "facts").write_text(json.dumps({"target": label, "ignored": excluded}), "utf-8")
        path = places.admit(arrived, name)
        places.admit(scratch / "facts", name.with_suffix(".json"))
    return path, label, excluded


def sklearn_table(name: str, places: Places, most: int) -> DenseTable:
    """Return the data set of scikit-learn's function ``load_NAME`` or ``fetch_NAME``."""
    from scipy.sparse import issparse
    from sklearn import datasets

    named = (loader for loader in datasets.__all__ if loader.startswith(("fetch_", "load_")))
    loaders = {loader.partition("_")[2]: loader for loader in named}
    if name not in loaders:
        raise ValueError(f"scikit-learn has no data set {name!r}{did_you_mean(name, loaders)}")
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
