"""A user's own data: a CSV or ARFF file with a target column.

Bad input is refused with one line that says where it is; what is only suspicious is a warning.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.parsers.text import to_labels
from mmbench.datasets.reference import DatasetRef
from mmbench.datasets.tabular import read_table
from mmbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

#: A warning names at most so many columns or rows.
SHOWN = 5


def user_hash(ref: DatasetRef) -> str:
    """Return the SHA-256 of the file and the target's name.

    Raises
    ------
    UserError
        If the file cannot be read.
    """
    try:
        content = Path(str(ref.path)).read_bytes()
    except OSError as error:
        raise UserError(f"{ref.path}: {error.strerror or error}") from error
    return hashlib.sha256(content + b"\ntarget " + str(ref.target).encode()).hexdigest()


def load_user_data(ref: DatasetRef) -> Dataset:
    """Read and check a user's file.

    Raises
    ------
    UserError
        If the file cannot be read, the target is missing, a value is missing, infinite or text, or
        there are not two classes.
    """
    try:
        X, y, warnings = _read(Path(str(ref.path)), str(ref.target))
    except ValueError as error:
        raise UserError(f"{ref.path}: {error}") from error
    return Dataset(ref.name, X, y, np.unique(y), None, None, user_hash(ref), warnings=warnings)


def _read(path: Path, target: str) -> tuple[NDArray, NDArray, tuple[str, ...]]:
    frame = read_table(path, text_columns=(target,))
    if target not in frame:
        raise ValueError(f"no target column {target!r}{did_you_mean(target, frame.columns)}")
    if frame.shape[1] < 2:
        raise ValueError(f"no column beside the target {target!r}")
    labels = frame.pop(target)
    _refuse_missing(labels)
    X = np.column_stack([_numbers(frame[name]) for name in frame.columns])
    y = to_labels(labels)
    if len(np.unique(y)) < 2:
        raise ValueError(f"target {target!r} has only the class {y[0]}; two are needed")
    return X, y, (*_constant_columns(X, list(frame.columns)), *_contradictions(X, y))


def _refuse_missing(column: pd.Series) -> None:
    if column.isna().any():
        row = int(np.flatnonzero(column.isna())[0]) + 1
        raise ValueError(f"data row {row}, column {column.name!r}: value missing")


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    import pandas as pd

    _refuse_missing(column)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        cell = column.iloc[bad[0]]
        what = "infinite value" if np.isinf(values[bad[0]]) else "text"
        place = f"data row {bad[0] + 1}, column {column.name!r}"
        raise ValueError(f"{place}: {what} {str(cell)!r} where a number is needed")
    return values


def _constant_columns(X: NDArray, names: list[str]) -> list[str]:
    constant = [repr(names[j]) for j in np.flatnonzero(np.ptp(X, axis=0) == 0)]
    if not constant:
        return []
    more = f" and {len(constant) - SHOWN} more" if len(constant) > SHOWN else ""
    return [f"constant columns (they cannot help): {', '.join(constant[:SHOWN])}{more}"]


def _contradictions(X: NDArray, y: NDArray) -> list[str]:
    """Report equal rows with different labels: no classifier can have them all right."""
    groups: dict[bytes, list[int]] = {}
    for i, row in enumerate(X + 0.0):  # + 0.0 makes -0.0 and 0.0 equal bytes
        groups.setdefault(row.tobytes(), []).append(i)
    bad = [rows for rows in groups.values() if len(set(y[rows].tolist())) > 1]
    if not bad:
        return []
    total = sum(map(len, bad))
    first = ", ".join(str(i + 1) for i in bad[0][:SHOWN])
    return [f"{total} rows have equal values but different labels (first: data rows {first})"]
