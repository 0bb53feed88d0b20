"""A user's own data: a CSV or ARFF file with a target column.

Bad input is refused with one line that says where it is; what is only suspicious is a warning.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.parsers.text import to_labels
from mmbench.datasets.tabular import read_table
from mmbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

#: A warning names at most so many columns or rows.
SHOWN = 5


@dataclass(frozen=True)
class UserData:
    """A user's file.

    Parameters
    ----------
    path : str
        CSV with column names in the first line, or ARFF.
    target : str
        Name of the column that holds the classes.
    name : str, optional
        Name shown in tables; the file's name without ending when not given.
    """

    path: str
    target: str
    name: str | None = None

    @property
    def label(self) -> str:
        """Name shown in tables."""
        return self.name or Path(self.path).stem


def user_hash(data: UserData) -> str:
    """Return the SHA-256 of the file and the target's name.

    Raises
    ------
    UserError
        If the file cannot be read.
    """
    try:
        content = Path(data.path).read_bytes()
    except OSError as error:
        raise UserError(f"{data.path}: {error.strerror or error}") from error
    return hashlib.sha256(content + b"\ntarget " + data.target.encode()).hexdigest()


def load_user_data(data: UserData) -> Dataset:
    """Read and check a user's file.

    Raises
    ------
    UserError
        If the file cannot be read, the target is missing, a value is missing, infinite or text, or
        there are not two classes.
    """
    frame = _read(data)
    labels = frame.pop(data.target)
    _refuse_missing(labels, data)
    X = _numbers(frame, data)
    y = to_labels(labels)
    classes = np.unique(y)
    if len(classes) < 2:
        only = f"only the class {classes[0]!s}"
        raise UserError(f"{data.path}: target {data.target!r} has {only}; two are needed")
    warnings = (*_constant_columns(X, list(frame.columns)), *_contradictions(X, y))
    digest = user_hash(data)
    return Dataset(data.label, X, y, classes, None, None, digest, (), warnings, None)


def _read(data: UserData) -> pd.DataFrame:
    try:
        frame = read_table(Path(data.path), text_columns=(data.target,))
    except ValueError as error:
        raise UserError(f"{data.path}: {error}") from error
    if data.target not in frame:
        hint = did_you_mean(data.target, map(str, frame.columns))
        raise UserError(f"{data.path}: no target column {data.target!r}{hint}")
    if frame.shape[1] < 2:
        raise UserError(f"{data.path}: no column beside the target {data.target!r}")
    return frame


def _refuse_missing(column: pd.Series, data: UserData) -> None:
    if column.isna().any():
        row = int(np.flatnonzero(column.isna())[0]) + 1
        raise UserError(f"{data.path}: data row {row}, column {column.name!r}: value missing")


def _numbers(frame: pd.DataFrame, data: UserData) -> NDArray[np.float64]:
    columns = [_number_column(frame[name], data) for name in frame.columns]
    return np.column_stack(columns)


def _number_column(column: pd.Series, data: UserData) -> NDArray[np.float64]:
    import pandas as pd

    _refuse_missing(column, data)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        cell = column.iloc[bad[0]]
        what = "infinite value" if np.isinf(values[bad[0]]) else "text"
        place = f"data row {bad[0] + 1}, column {column.name!r}"
        raise UserError(f"{data.path}: {place}: {what} {str(cell)!r} where a number is needed")
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
