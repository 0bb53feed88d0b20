"""CSV and ARFF text as data frames; every fault is one line."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, is_number, read_bytes, to_labels
from mmbench.errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

#: Cells that mean "no value". pandas would also take "None" and "null", which may be classes.
MISSING_WORDS = ["", "?", "NA", "N/A", "NaN", "nan"]
SEPARATORS = ",;\t"
BLANKS = r"\s+"

#: A column by its name, or by its number: 1 is the first, -1 the last.
Column = str | int
#: Declared values of nominal columns, by name.
Nominal = Mapping[str, tuple[str, ...]]


def column_name(column: Column, names: Sequence[str], what: str = "column") -> str:
    """Return the name of a column.

    Raises
    ------
    ValueError
        If there is no such column; the message holds the nearest name.

    Examples
    --------
    >>> column_name(-1, ["age", "kind"]), column_name("age", ["age", "kind"])
    ('kind', 'age')
    """
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"no {what} {column!r}{did_you_mean(column, names)}")
        return column
    if not 1 <= abs(column) <= len(names):
        raise ValueError(f"no {what} {column}; they are numbered from 1 to {len(names)}")
    return names[column - (column > 0)]


def read_csv(
    text: str,
    target: Column | None = None,
    *,
    header: bool = True,
    separator: str | None = None,
    decimal: str = ".",
) -> pd.DataFrame:
    """Read CSV text; blank lines count for nothing.

    Parameters
    ----------
    text : str
    target : str or int, optional
        A column that stays text.
    header : bool
        Whether the first line names the columns; else they are ``"1"``, ``"2"``, ...
    separator : str, optional
        The commonest of comma, semicolon and tab in the first line, or blanks, when not given.
    decimal : str

    Raises
    ------
    ValueError
        If the text is no table; the message is one line.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    first, _, body = text.partition("\n")
    separator = separator or _guess_separator(first, decimal)
    names = [name.strip() for name in _fields(first, separator)]
    if header:
        check_names(names)
    else:
        names, body = [str(k + 1) for k in range(len(names))], text
    return _parse(body, names, target, sep=separator, decimal=decimal)


def read_arff(text: str, target: Column | None = None) -> tuple[pd.DataFrame, Nominal]:
    """Read ARFF text: its rows, and the declared values of its nominal attributes.

    Raises
    ------
    ValueError
        If the text is no ARFF file, or a sparse one; the message is one line.
    """
    attributes: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in map(str.strip, lines):
        if line.lower().startswith("@attribute"):
            attributes.append(_attribute(line))
        elif line.lower().startswith("@data"):
            break
    else:
        attributes = []
    if not attributes:
        raise ValueError("not an ARFF file: it has no @attribute or no @data line")
    body = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("%"))
    if body.lstrip().startswith("{"):
        raise ValueError("sparse ARFF rows ({index value, ...}) are not supported")
    names = [name for name, _ in attributes]
    check_names(names)
    quote = max("'\"", key=body.count)
    frame = _parse(body, names, target, sep=",", quotechar=quote, escapechar="\\")
    return frame, {name: _values(kind) for name, kind in attributes if kind.startswith("{")}


def _attribute(line: str) -> tuple[str, str]:
    """Return name and type in ``@attribute name type``; names with blanks are quoted."""
    rest = line[len("@attribute") :].replace("\t", " ").strip()
    if rest[:1] in ("'", '"'):
        name, _, kind = rest[1:].partition(rest[0])
    elif "{" in rest.partition(" ")[0]:  # no blank before the values
        name, _, kind = rest.partition("{")
        kind = "{" + kind
    else:
        name, _, kind = rest.partition(" ")
    return name, kind.strip()


def _values(kind: str) -> tuple[str, ...]:
    inner = kind[1:].rpartition("}")[0]
    quote = max("'\"", key=inner.count)
    return tuple(value.strip() for value in _split(inner, quotechar=quote, escapechar="\\"))


def _split(line: str, **form: Any) -> list[str]:
    try:
        return next(csv.reader([line], skipinitialspace=True, **form), [])
    except csv.Error as error:
        raise ValueError(f"a line cannot be cut into fields ({error})") from error


def _guess_separator(line: str, decimal: str) -> str:
    best = max(SEPARATORS.replace(decimal, ""), key=line.count)
    return best if best in line or " " not in line.strip() else BLANKS


def _fields(line: str, separator: str) -> list[str]:
    if separator == BLANKS:
        return line.split()
    return _split(line, delimiter=separator)


def check_names(names: list[str]) -> None:
    """Refuse names of columns that are empty, equal or numbers.

    Raises
    ------
    ValueError
    """
    if "" in names:
        number = names.index("") + 1
        hint = "; index: 1 leaves it out" if number == 1 and len(names) > 1 else ""
        raise ValueError(f"column {number} has no name in the first line{hint}")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        hint = "; say header: false if the first line holds data" if is_number(name) else ""
        raise ValueError(f"two columns are named {name!r}{hint}")
    if len(names) > 1 and all(map(is_number, names)):
        hint = "it must hold the names of the columns, or say header: false"
        raise ValueError(f"the first line holds numbers; {hint}")


def _parse(text: str, names: list[str], target: Column | None, **more: Any) -> pd.DataFrame:
    import pandas as pd

    kept = {} if target is None else {column_name(target, names, "target column"): str}
    if not text.strip():
        raise ValueError("the file has no rows")
    columns = f"a row does not have {len(names)} fields"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                header=None,
                names=names,
                index_col=False,
                skipinitialspace=True,
                na_values=MISSING_WORDS,
                keep_default_na=False,
                low_memory=False,
                dtype=kept,
                **more,
            )
    except pd.errors.ParserWarning as error:  # the first row is too long; it names none
        row = _fields(text.lstrip().partition("\n")[0], more["sep"])
        raise ValueError(f"{columns} (data row 1 has {len(row)})") from error
    except pd.errors.ParserError as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise ValueError(f"{columns} ({reason.replace('in line', 'in data row')})") from error


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
