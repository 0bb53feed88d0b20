"""Files of any format, and tables of OpenML and scikit-learn, as one kind of table."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch import Places, Store
from mmbench.datasets.fetch.sources import SourceError, download_arff, time_limit
from mmbench.datasets.parsers.arrays import read_npz
from mmbench.datasets.parsers.frames import Column, Nominal, column_name, read_arff, read_csv
from mmbench.datasets.parsers.text import UNPACKERS, read_bytes
from mmbench.datasets.user.options import SVMLIGHT, FileOptions, inner_path
from mmbench.errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array

#: First bytes of formats that are not read, and what they are.
OTHER_FORMATS = {
    b"\xd0\xcf\x11\xe0": "an Excel workbook; save it as CSV",
    b"PK\x03\x04": "an archive or an Excel workbook; unpack it, or save it as CSV",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file; save it as Parquet or npz",
    b"MATLAB": "a Matlab file; save it as CSV or npz",
    b"\x93NUMPY": "a single NumPy array; save X and y as npz",
    b"ARROW1": "a Feather file; save it as Parquet",
    b"SQLite": "an SQLite database; export a table as CSV",
    b"\x80\x04": "a Python pickle; save it as CSV, Parquet or npz",
    b"\x80\x05": "a Python pickle; save it as CSV, Parquet or npz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; use gzip, bzip2 or xz",
    b"<": "HTML or XML, not a table",
    b"{": "JSON; save it as CSV",
    b"[": "JSON; save it as CSV",
}
#: Bytes of a file that are looked at first, so that a huge one of another format costs nothing.
START = 4096
#: Cells up to which a table that was sparse is made dense, 8 GB, for all machines and steps.
MOST_CELLS = 2**30
#: Columns of one that stays sparse, at most.
MOST_COLUMNS = 2**26


class Table(NamedTuple):
    """A file's columns."""

    #: Columns of numbers and of text.
    frame: pd.DataFrame
    #: The column of the classes.
    target: str
    #: Columns that the format says are categories, and their values in order.
    nominal: Nominal = MappingProxyType({})


class SparseTable(NamedTuple):
    """The features and classes of a file that is too large without sparsity."""

    #: Shape (n_samples, n_features).
    X: csr_array
    #: Shape (n_samples,).
    y: NDArray


def read_file(path: Path, options: FileOptions, target: Column | None) -> Table | SparseTable:
    """Read a file by its content, or where that says nothing (text) by the end of its name.

    Parameters
    ----------
    path : Path
    options : FileOptions
    target : str or int or None
        The column of the classes; None where the format knows them.

    Raises
    ------
    ValueError
        If the file cannot be read as a table; the message is one line.
    """
    start = first_bytes(path)
    if start.startswith(b"PAR1"):
        return _named(*_parquet(path), target)
    if start.startswith(b"PK") and path.suffix.lower() == ".npz":
        return _npz(path)
    packed = any(start.startswith(magic) for magic in UNPACKERS)
    if not packed:
        _refuse_other(start)
    content = read_bytes(path)
    if packed:
        _refuse_other(content[:START])
    suffix = inner_path(path).suffix.lower()
    if suffix in SVMLIGHT:
        return _svmlight(content)
    text = _decoded(content, options.encoding)
    if suffix == ".arff":
        return _named(*read_arff(text, target), target)
    form = options.model_dump(include={"header", "separator", "decimal"})
    return _named(read_csv(text, target, **form), {}, target)


def _named(frame: pd.DataFrame, nominal: Nominal, target: Column | None) -> Table:
    if target is None:
        raise ValueError("needs a target: the column that holds the classes")
    return Table(frame, column_name(target, list(frame.columns), "target column"), nominal)


def _decoded(content: bytes, encoding: str) -> str:
    try:
        text = content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        hint = "; state its encoding, such as latin-1" if encoding == "utf-8" else ""
        raise ValueError(f"not {encoding} text (byte {error.start}){hint}") from error
    if not text.strip():
        raise ValueError("the file is empty")
    return text


def first_bytes(path: Path) -> bytes:
    """Return the beginning of a regular file.

    Raises
    ------
    ValueError
        If it is none, or cannot be read.
    """
    if path.exists() and not path.is_file():
        raise ValueError("Is a directory" if path.is_dir() else "not a regular file")
    try:
        with path.open("rb") as file:
            return file.read(START)
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


def _refuse_other(start: bytes) -> None:
    for magic, name in OTHER_FORMATS.items():
        if start.lstrip().startswith(magic):
            raise ValueError(f"this is {name}")
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("this is binary data of an unknown format, not a table")


def _parquet(path: Path) -> tuple[pd.DataFrame, Nominal]:
    import pandas as pd
    import pyarrow

    try:
        frame = pd.read_parquet(path).reset_index(drop=True)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise ValueError(f"not a readable Parquet file ({error})") from error
    frame.columns = frame.columns.map(str)
    nominal = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            nominal[str(name)] = tuple(map(str, column.cat.categories))
        elif pd.api.types.is_string_dtype(column.dtype):
            nominal[str(name)] = ()
    return frame, nominal


def _npz(path: Path) -> Table:
    arrays = read_npz(path)
    if not {"X", "y"} <= set(arrays):
        raise ValueError(f"needs arrays X and y, has {', '.join(sorted(arrays)) or 'none'}")
    return of_arrays(arrays["X"], arrays["y"])


def _svmlight(content: bytes) -> Table | SparseTable:
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(content))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not in svmlight's format ({error})") from error
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{X.shape[1]} columns are too many; number features from 1 on")
    if X.shape[0] * X.shape[1] > MOST_CELLS:
        return SparseTable(csr_array(X), y)
    return of_arrays(X.toarray(), y)


def of_arrays(X: NDArray, y: NDArray) -> Table:
    """Return arrays of features and classes as a table with columns ``"1"``, ... and ``target``."""
    import pandas as pd

    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(
            f"needs X of shape (rows, columns) and y (rows,), not {X.shape}, {y.shape}"
        )
    if X.dtype.kind not in "buif":
        raise ValueError(f"X must hold numbers, not {X.dtype}")
    frame = pd.DataFrame(X, columns=[str(k + 1) for k in range(X.shape[1])])
    return Table(frame.assign(target=y), "target")


def openml_file(data_id: int, places: Places) -> tuple[Path, str]:
    """Return an ARFF file and its target, from the store, a mirror folder or OpenML.

    Raises
    ------
    ValueError
        If it is not there and cannot be downloaded; one line.
    """
    store = Store(places.store)
    folders = [folder / "openml" for folder in (store.root, places.mirror_folder) if folder]
    for folder in folders:
        path, facts = folder / f"{data_id}.arff", folder / f"{data_id}.json"
        if path.is_file() and facts.is_file():
            return path, json.loads(facts.read_text("utf-8"))["target"]
    if not places.allow_network:
        raise ValueError("not in the store or the mirror, and the network is switched off")
    with store.scratch() as scratch:
        try:
            arrived, target = download_arff(data_id, scratch, places.progress)
        except SourceError as error:
            raise ValueError(str(error)) from error
        (scratch / "facts").write_text(json.dumps({"target": target}), "utf-8")
        store.admit(arrived, folders[0] / f"{data_id}.arff")
        store.admit(scratch / "facts", folders[0] / f"{data_id}.json")
    return folders[0] / f"{data_id}.arff", target


def sklearn_table(name: str, places: Places) -> Table:
    """Return the data set that ``load_NAME`` or ``fetch_NAME`` of scikit-learn returns.

    Raises
    ------
    ValueError
        If there is none, or it is no table with classes.
    """
    from sklearn import datasets

    loaders = {
        loader.partition("_")[2]: loader
        for loader in datasets.__all__
        if loader.startswith(("fetch_", "load_"))
    }
    if name not in loaders:
        raise ValueError(f"scikit-learn has no data set {name!r}{did_you_mean(name, loaders)}")
    options: dict[str, Any] = {}
    if loaders[name].startswith("fetch_"):
        home = Path(places.store) / "sklearn"
        options = {"data_home": home, "download_if_missing": places.allow_network}
    try:
        with time_limit():
            bunch = getattr(datasets, loaders[name])(**options)
        y, names = np.asarray(bunch.target), getattr(bunch, "target_names", None)
        if names is not None and y.ndim == 1 and y.dtype.kind == "i":
            y = np.asarray(names)[y]
        return of_arrays(np.asarray(bunch.data), y)
    except OSError as error:
        raise ValueError(str(error)) from error
    except (AttributeError, TypeError) as error:
        raise ValueError(f"scikit-learn's {loaders[name]} gives no table with classes") from error


def table_hash(table: Table) -> str:
    """Return the content hash of a table of numbers."""
    frame = table.frame
    X = frame.drop(columns="target").to_numpy(np.float64)
    return Parsed(X, frame["target"].to_numpy()).content_hash()
