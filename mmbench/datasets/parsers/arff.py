"""ARFF files as OpenML serves them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.rows import read_arff
from mmbench.datasets.parsers.text import consecutive, read_bytes, to_labels


def arff(
    paths: Sequence[Path],
    *,
    target: str | None = None,
    skip: Sequence[str] = (),
    decimals: int | None = None,
    missing: str | float = "refuse",
    codes: Mapping[str, float] | None = None,
    relabel: Mapping[str, str | int] | None = None,
    n_train: int | None = None,
    dtype: str = "float64",
) -> Parsed:
    """Parse a file of numbers and one class.

    Parameters
    ----------
    target : str, optional
        Class column, the last one when not given.
    skip : sequence of str
        Columns that are neither class nor attribute.
    decimals : int, optional
        Decimals of the original text, where a re-encoded file has more digits.
    missing : {"refuse", "drop"} or float
        What to do with missing values: refuse, drop the row, or code them as a number.
    codes, relabel : mapping
        Values of nominal attributes as numbers; classes in the file as classes.
    n_train : int, optional
        The first so many rows are the official training set.
    dtype : str
        ``uint8`` for images.
    """
    frame, _ = read_arff(read_bytes(paths[0]).decode())
    label = target if target is not None else str(frame.columns[-1])
    if label not in frame:
        raise ValueError(f"{paths[0].name}: no column {label!r}")
    if missing == "drop":
        frame = frame.dropna()
    values = frame.drop(columns=[label, *skip])
    if codes:
        values = values.replace(dict(codes))
    X = values.to_numpy(dtype=np.float64)
    if not isinstance(missing, str):
        X = np.where(np.isnan(X), float(missing), X)
    if np.isnan(X).any():
        raise ValueError(f"{paths[0].name}: missing values")
    table = {str(old): str(new) for old, new in (relabel or {}).items()}
    y = to_labels(table.get(str(cell), str(cell)) for cell in frame[label])
    X = (X if decimals is None else np.round(X, decimals)).astype(dtype)
    return Parsed(X, y, consecutive([n_train, len(y) - n_train]) if n_train else None)
