"""From a table to features and classes: which columns, as numbers or as categories.

What is wrong is one line with row and column; what is only suspicious is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.parsers.frames import column_name
from mmbench.datasets.parsers.text import is_number, to_labels
from mmbench.datasets.user.formats import SparseTable, Table
from mmbench.datasets.user.options import FileOptions

if TYPE_CHECKING:
    import pandas as pd

#: A warning names at most so many columns or rows.
SHOWN = 5
#: A column of text with more categories than this share of the rows names rows.
MOST_CATEGORIES = 0.2
#: Words beside numbers, at most, that are taken for marks of missing values.
FEW_WORDS = 2
#: Fewer rows may go up by one by chance.
FEWEST_COUNTED = 10
#: A target of more distinct numbers, not all whole, is taken for a continuous one.
MOST_FRACTIONS = 20


@dataclass(frozen=True)
class Features:
    """Features and classes of a table."""

    #: Categories come last, as their numbers; a missing value is NaN. Shape (n_samples,
    #: n_features).
    X: Any
    #: Shape (n_samples,).
    y: NDArray
    #: Of the columns of `X`; those of one that stays sparse have none.
    names: list[str]
    #: Number of columns that hold categories.
    n_categorical: int
    warnings: tuple[str, ...]
    #: Shape (n_samples,).
    groups: NDArray | None = None
    time: NDArray | None = None

    def missing(self) -> str | None:
        """Return where the first value is missing, or None."""
        if not isinstance(self.X, np.ndarray) or not np.isnan(self.X).any():
            return None
        row, column = np.argwhere(np.isnan(self.X))[0]
        return f"data row {row + 1}, column {self.names[column]!r}: value missing"


def features_of(table: Table | SparseTable, options: FileOptions) -> Features:
    """Return the features and classes of a table.

    Raises
    ------
    ValueError
        If a column does not exist or holds what it cannot, or there are not two classes.
    """
    if isinstance(table, SparseTable):
        return _of_sparse(table, options)
    frame = table.frame
    if frame.empty:
        raise ValueError("the file has no rows")
    names = list(frame.columns)
    label = table.target
    chosen = _chosen(names, label, options)
    nominal = _nominal(table, chosen, options)
    numbers = [name for name in chosen if name not in nominal]
    y, remarks = _labels(frame[label])
    codes = [_codes(frame[name], nominal[name]) for name in chosen if name in nominal]
    X = np.column_stack([_numbers(frame[numbers]), *codes])
    names = numbers + [name for name in chosen if name in nominal]
    if options.categorical == "auto":
        remarks += [r for name in nominal for r in _doubtful(frame[name])]
    remarks += [*_data_as_names(chosen), *_row_numbers(X, names)]
    remarks += [*_constant_columns(X, names), *_contradictions(X, y)]
    groups, time = (
        None if column is None else read(frame[column_name(column, list(frame.columns))])
        for column, read in ((options.groups, _groups), (options.time, _time))
    )
    return Features(X, y, names, len(codes), tuple(remarks), groups, time)


def _of_sparse(table: SparseTable, options: FileOptions) -> Features:
    import pandas as pd

    if options.features or options.drop or options.categorical or options.groups or options.time:
        raise ValueError("columns of a table that stays sparse have no names to choose them by")
    if not np.isfinite(table.X.data).all():
        raise ValueError("holds values that are not finite")
    y, remarks = _labels(pd.Series(table.y, name="target"))
    return Features(table.X, y, [], 0, tuple(remarks))


def _chosen(names: list[str], target: str, options: FileOptions) -> list[str]:
    """Return the names of the features, in the order of the file."""
    dropped = {column_name(column, names) for column in options.drop} | {target}
    for column in (options.index, options.groups, options.time):
        if column is not None:
            dropped.add(column_name(column, names))
    wanted = {column_name(column, names) for column in options.features} or set(names)
    chosen = [name for name in names if name in wanted and name not in dropped]
    if not chosen:
        raise ValueError(f"no column beside the target {target!r}")
    return chosen


def _nominal(table: Table, chosen: list[str], options: FileOptions) -> dict[str, tuple[str, ...]]:
    """Return the columns that hold categories, and the values that are stated of them."""
    from pandas.api.types import is_numeric_dtype

    nominal = {
        name: values
        for name, values in table.nominal.items()
        if name in chosen and not is_numeric_dtype(table.frame[name])
    }
    if options.categorical == "auto":
        text = (name for name in chosen if not is_numeric_dtype(table.frame[name]))
        return {**dict.fromkeys(text, ()), **nominal}
    for column, values in options.categorical:
        name = column_name(column, list(table.frame.columns), "categorical column")
        if name in chosen:
            nominal[name] = values
    return nominal


def _codes(column: pd.Series, stated: tuple[str, ...]) -> NDArray[np.float64]:
    """Return numbers of categories: in the order stated, else that of numbers or words."""
    present = sorted(column.dropna().unique().tolist(), key=_order)
    values = stated or tuple(dict.fromkeys(map(_text, present)))
    text = column.map(_text, na_action="ignore").astype(object)
    codes = text.map({value: k for k, value in enumerate(values)})
    unknown = np.flatnonzero(codes.isna() & column.notna())
    if len(unknown):
        place = f"data row {unknown[0] + 1}, column {column.name!r}"
        raise ValueError(f"{place}: {text.iloc[unknown[0]]!r} is none of {', '.join(values)}")
    return np.asarray(codes, dtype=np.float64)


def _text(value: object) -> str:
    """Return a category as text; 2.0, read beside missing values, is 2."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _order(value: object) -> tuple[bool, float, str]:
    """Order numbers by size, and before text."""
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, str(value)  # type: ignore[arg-type]


def _numbers(frame: pd.DataFrame) -> NDArray[np.float64]:
    from pandas.api.types import is_numeric_dtype

    for name in frame.columns[[not is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        frame = frame.assign(**{name: _number_column(frame[name])})
    X = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        place = f"data row {row + 1}, column {frame.columns[column]!r}"
        raise ValueError(f"{place}: infinite value {str(X[row, column])!r}")
    return X


def _number_column(column: pd.Series) -> pd.Series:
    import pandas as pd

    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        raise ValueError(f"column {column.name!r} holds {column.dtype}, not numbers")
    try:
        values = pd.to_numeric(column, errors="coerce")
    except OverflowError as error:
        raise ValueError(f"column {column.name!r} holds too large a number") from error
    bad = np.flatnonzero(values.isna() & column.notna())
    if len(bad):
        place = f"data row {bad[0] + 1}, column {column.name!r}"
        cell = str(column.iloc[bad[0]])
        if is_number(cell):  # pandas before 3 leaves what is too large as text
            raise ValueError(f"{place}: infinite value {cell!r}")
        hint = "; drop it or say categorical: auto" if len(bad) == column.notna().sum() else ""
        if is_number(cell.replace(",", ".", 1)):
            hint = "; is it decimal: ','?"
        raise ValueError(f"{place}: text {cell!r} where a number is needed{hint}")
    return values


def _refuse_missing(column: pd.Series) -> None:
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise ValueError(f"data row {missing[0] + 1}, column {column.name!r}: value missing")


def _groups(column: pd.Series) -> NDArray:
    """Return the number of each row's group."""
    _refuse_missing(column)
    return np.unique(column.map(_text).to_numpy(dtype=str), return_inverse=True)[1]


def _time(column: pd.Series) -> NDArray:
    """Return numbers in the order of time."""
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    _refuse_missing(column)
    read = column if column.dtype.kind == "M" else pd.to_numeric(column, errors="coerce")
    if read.isna().all():
        read = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    bad = np.flatnonzero(read.isna())
    if len(bad):
        place = f"data row {bad[0] + 1}, column {column.name!r}"
        found = f"{column.iloc[bad[0]]!r} is neither a number nor a date such as 2024-01-31"
        raise ValueError(f"{place}: {found}")
    values = read.to_numpy() if is_numeric_dtype(read) else read.astype("int64").to_numpy()
    return values.astype(np.float64)


def _labels(column: pd.Series) -> tuple[NDArray, list[str]]:
    _refuse_missing(column)
    y = to_labels(map(str, column))
    values = np.unique(y)
    if len(values) < 2:
        raise ValueError(f"target {column.name!r} has only the class {values[0]}; two are needed")
    numbers = [value for value in values.tolist() if is_number(value)]
    if len(numbers) < len(values):
        return y, _mixed(values.tolist(), numbers)
    found = f"target {column.name!r} holds {len(values)} distinct numbers such as {numbers[-1]}"
    if y.dtype.kind != "i" and len(values) > MOST_FRACTIONS:
        raise ValueError(f"{found}: it is continuous, and classes are needed")
    if len(values) > MOST_FRACTIONS and np.unique(y, return_counts=True)[1].min() == 1:
        return y, [f"{found}, some only once: is it continuous, or a number of the row?"]
    return y, []


def _mixed(values: list[str], numbers: list[str]) -> list[str]:
    if not numbers:
        return []
    word = next(value for value in values if value not in numbers)
    return [f"the target holds numbers and words, all taken as words: {numbers[0]}, {word}"]


def _doubtful(column: pd.Series) -> list[str]:
    """Report text that looks like numbers, or has nearly as many values as there are rows."""
    texts = column.dropna().map(_text).unique().tolist()
    words = [text for text in texts if not is_number(text)]
    what = f"column {column.name!r} holds"
    if words and all(is_number(text.replace(",", ".", 1)) for text in texts):
        return [f"{what} categories such as {words[0]!r}: are they numbers, with decimal: ','?"]
    if 0 < len(words) <= FEW_WORDS and len(texts) > 2 * len(words):
        said = f"{what} numbers and {', '.join(map(repr, words))}, all taken as categories"
        return [f"{said}; leave a cell empty where a value is missing"]
    if len(texts) > MOST_CATEGORIES * len(column):
        many = f"{what} {len(texts)} categories in {len(column)} rows"
        return [f"{many}, such as {texts[0]!r}: leave it out by 'drop'?"]
    return []


def _data_as_names(names: list[str]) -> list[str]:
    """Report names of columns that are numbers and do not count them: a first row of data."""
    numbers = [name for name in names if is_number(name) and not name.isdigit()]
    if not numbers:
        return []
    return [f"the first line names columns {numbers[0]}: if it holds data, say header: false"]


def _row_numbers(X: NDArray, names: list[str]) -> list[str]:
    """Report columns of whole numbers that go up by one from row to row."""
    if len(X) < FEWEST_COUNTED:
        return []
    begins = (X[0] % 1 == 0) & (X[1] - X[0] == 1)
    counting = [j for j in np.flatnonzero(begins) if (np.diff(X[:, j]) == 1).all()]
    return [f"column {names[j]!r} numbers the rows: leave it out by 'drop'?" for j in counting]


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
