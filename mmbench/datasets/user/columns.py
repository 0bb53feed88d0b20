"""From a table to features and classes: the columns chosen, as numbers or as categories.

A fault is one line with row and column; a suspicion is a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.parsers.frames import check_width, column_name, say
from mmbench.datasets.parsers.text import is_number, to_labels
from mmbench.datasets.user.formats import SparseTable, Table, as_text
from mmbench.datasets.user.options import FileOptions

if TYPE_CHECKING:
    import pandas as pd

#: Upper bound on the columns or rows named in a warning.
SHOWN = 5
#: Text with more distinct values is no category unless the column is named: more than there are
#: countries.
MOST_CATEGORIES = 250
#: A column of distinct words in at least this many rows names the rows.
FEWEST_NAMED = 10
#: Upper bound on the words beside numbers that are taken for marks of missing values.
FEW_WORDS = 2
#: Fewer rows may count up by chance.
FEWEST_COUNTED = 10
#: A target of more distinct numbers, not all whole, is taken for a continuous one.
MOST_FRACTIONS = 20
#: Dates as tables hold them: 2024-01-31, 31.1.2024, 1/31/24, with or without a time.
DATE = re.compile(r"([0-9]{4}([-/.])[0-9]{1,2}\2[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\3"
                  r"([0-9]{4}|[0-9]{2}))([T ]+[0-9]{1,2}:[0-9]{2}.*)?")  # fmt: skip
#: Names of columns of numbers that name the rows.
ID_NAME = re.compile(r"(.*[\W_])?(id|uuid|guid)|.*[a-z]I[Dd]", re.I)
#: Largest number up to which float64 holds every whole number.
EXACT = 2**53
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.I)


@dataclass(frozen=True)
class Features:
    """Features and classes of a table."""

    #: Features, shape (n_samples, n_features). Categories come last, as their numbers; a missing
    #: value is NaN.
    X: Any
    #: Labels, shape (n_samples,).
    y: NDArray
    #: Feature names; empty for sparse input.
    names: list[str]
    #: Number of columns that hold categories.
    n_categorical: int
    warnings: tuple[str, ...]
    #: Groups and times, shape (n_samples,).
    groups: NDArray | None = None
    time: NDArray | None = None

    def missing(self) -> str | None:
        """Return the place of the first missing value, or None."""
        if not isinstance(self.X, np.ndarray) or not np.isnan(self.X).any():
            return None
        row, column = np.argwhere(np.isnan(self.X))[0]
        return f"data row {row + 1}, column {self.names[column]!r}: value missing"


def features_of(table: Table | SparseTable, options: FileOptions) -> Features:
    """Return the features and classes of a table.

    Raises
    ------
    ValueError
        If a column does not exist or holds other values than it must, or there are not two
        classes.
    """
    if isinstance(table, SparseTable):
        return _of_sparse(table, options)
    frame = table.frame
    check_width(frame.shape[1], options.max_columns)
    if frame.empty:
        raise ValueError("the file has no rows")
    label = table.target
    dropped: list[str] = []
    if options.unlabelled == "drop":
        table, dropped = _labelled(table, options)
        frame = table.frame
    chosen, remarks = _chosen(table, options)
    remarks += dropped
    nominal = _nominal(table, chosen, options)
    numbers = [name for name in chosen if name not in nominal]
    if table.nominal.get(label):
        _codes(frame[label], table.nominal[label])  # refuses a class that is not declared
    y, more = _labels(frame[label])
    codes = [_codes(frame[name], nominal[name]) for name in chosen if name in nominal]
    X = np.column_stack([_numbers(frame[numbers], options), *codes])
    names = numbers + [name for name in chosen if name in nominal]
    remarks += more
    if options.categorical == "auto":
        remarks += [r for name in nominal for r in _doubtful(frame[name], options)]
    remarks += [*_data_as_names(chosen), *_row_numbers(X, names, options)]
    remarks += _rounded(frame[numbers], options)
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


def leave_out(names: Sequence[str], options: FileOptions) -> str:
    """Return the advice to drop columns, besides those dropped already."""
    return f"to leave it out, {say('drop', [*options.drop, *names])}"


def _chosen(table: Table, options: FileOptions) -> tuple[list[str], list[str]]:
    """Return the names of the features, in the order of the file, and remarks."""
    names, target = list(table.frame.columns), table.target
    dropped = {column_name(column, names) for column in options.drop} | {target}
    for column in (options.index, options.groups, options.time):
        if column is not None:
            dropped.add(column_name(column, names))
    stated = {column_name(column, names) for column in options.features}
    ignored = [name for name in table.ignored if name in names and name not in dropped | stated]
    wanted = (stated or set(names)) - dropped - set(ignored)
    chosen = [name for name in names if name in wanted]
    if not chosen:
        raise ValueError(f"no column beside the target {target!r}")
    if target in table.unusable and table.unusable[target] not in ("dates", "times"):
        raise ValueError(f"target {target!r} holds {table.unusable[target]}, not classes")
    for name in chosen:
        if name in table.unusable:
            holds = f"column {name!r} holds {table.unusable[name]}, neither numbers nor categories"
            raise ValueError(f"{holds}; {leave_out([name], options)}")
    listed = ", ".join(map(repr, ignored))
    return chosen, [f"left out, as the source declares: {listed}"] if ignored else []


def _nominal(table: Table, chosen: list[str], options: FileOptions) -> dict[str, tuple[str, ...]]:
    """Return the columns that hold categories, and their declared values."""
    from pandas.api.types import is_numeric_dtype

    nominal = {name: values for name, values in table.nominal.items() if name in chosen}
    if options.categorical == "auto":
        text = (name for name in chosen if not is_numeric_dtype(table.frame[name]))
        nominal = {**dict.fromkeys(text, ()), **nominal}
    else:
        for column, values in options.categorical:
            name = column_name(column, list(table.frame.columns), "categorical column")
            if name in chosen:
                nominal[name] = values
    named = () if options.categorical == "auto" else [c for c, _ in options.categorical]
    wanted = {column_name(column, list(table.frame.columns)) for column in named}
    for name in nominal:
        if name not in wanted:
            _refuse_no_category(table.frame[name], options)
    return nominal


def _refuse_no_category(column: pd.Series, options: FileOptions) -> None:
    """Refuse dates, and more categories than anybody means, in a column that nobody named."""
    values = column.dropna().unique()
    if not len(values):
        return
    kind = f"{len(values)} categories" if len(values) > MOST_CATEGORIES else ""
    if all(isinstance(value, str) and DATE.fullmatch(value.strip()) for value in values):
        kind = "dates"
    if kind:
        keep = f"to keep it, {say('categorical', [str(column.name)])}"
        holds = f"column {column.name!r} holds {kind} such as {str(values[0])!r}"
        raise ValueError(f"{holds}; {leave_out([str(column.name)], options)}; {keep}")


def _codes(column: pd.Series, stated: tuple[str, ...]) -> NDArray[np.float64]:
    """Return numbers of categories: in the order stated, else numbers by size and then words."""
    text = column.map(as_text, na_action="ignore").astype(object)
    if not stated:  # 2 for 2.0, if all are plain whole numbers
        text[text.notna()] = [str(label) for label in to_labels(text.dropna()).tolist()]
    present = sorted(text.dropna().unique().tolist(), key=_order)
    values = stated or tuple(present)
    codes = text.map({value: k for k, value in enumerate(values)})
    unknown = np.flatnonzero(codes.isna() & column.notna())
    if len(unknown):
        place = f"data row {unknown[0] + 1}, column {column.name!r}"
        raise ValueError(f"{place}: {text.iloc[unknown[0]]!r} is none of {', '.join(values)}")
    return np.asarray(codes, dtype=np.float64)


def _order(value: str) -> tuple[bool, float, str]:
    """Order numbers by size, and before text."""
    return not is_number(value), float(value) if is_number(value) else 0.0, value


def _numbers(frame: pd.DataFrame, options: FileOptions) -> NDArray[np.float64]:
    from pandas.api.types import is_numeric_dtype

    for name in frame.columns[[not is_numeric_dtype(dtype) for dtype in frame.dtypes]]:
        frame = frame.assign(**{name: _number_column(frame[name], options)})
    X = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        place = f"data row {row + 1}, column {frame.columns[column]!r}"
        raise ValueError(f"{place}: infinite value {str(X[row, column])!r}")
    return X


def _number_column(column: pd.Series, options: FileOptions) -> pd.Series:
    """Return the numbers of a column of text, with its marks for decimals and thousands."""
    import pandas as pd

    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        holds = f"column {column.name!r} holds {column.dtype}, not numbers"
        raise ValueError(f"{holds}; {leave_out([str(column.name)], options)}")
    decimal, group = re.escape(options.decimal), re.escape(options.thousands or "")
    plain = rf"([0-9]+({decimal}[0-9]*)?|{decimal}[0-9]+)([eE][+-]?[0-9]+)?"
    grouped = rf"|[0-9]{{1,3}}({group}[0-9]{{3}})+({decimal}[0-9]*)?" if group else ""
    number = re.compile(rf"\s*[+-]?({plain}{grouped})\s*")
    values = np.full(len(column), np.nan)
    bad = []
    for row, cell in enumerate(column):
        if isinstance(cell, bool | int | float):
            values[row] = cell
        elif isinstance(cell, str) and number.fullmatch(cell):
            text = cell.replace(options.thousands, "") if options.thousands else cell
            values[row] = float(text.replace(options.decimal, "."))
        elif cell is not None and not pd.isna(cell):
            bad.append(row)
    if bad:
        place = f"data row {bad[0] + 1}, column {column.name!r}"
        cell = str(column.iloc[bad[0]])
        if INFINITE.fullmatch(cell):
            raise ValueError(f"{place}: infinite value {cell!r}")
        all_text = len(bad) == column.notna().sum()
        if cell.strip() == column.name:
            hint = "; the names of the columns stand there again"
        elif bad == [0] and len(column) > 1 and not options.header:
            hint = f"; if the first line names the columns, {say('header', 'true')}"
        else:
            hint = _hint(cell, options, all_text, str(column.name))
        raise ValueError(f"{place}: text {cell!r} where a number is needed{hint}")
    return pd.Series(values, index=column.index)


def _hint(cell: str, options: FileOptions, all_text: bool, name: str) -> str:
    """Return advice about a cell that is no number under the options."""
    cell = cell.strip()
    other = "," if options.decimal == "." else "."
    hints = []
    group = re.fullmatch(r"[+-]?[0-9]{1,3}([^0-9A-Za-z])[0-9]{3}(\1[0-9]{3})*(.[0-9]*)?", cell)
    if group and not options.thousands and group[1] != options.decimal:
        mark = json.dumps(group[1]) if group[1] in " '" else group[1]
        hints.append(f"if {group[1]!r} groups thousands, {say('thousands', mark)}")
    if re.fullmatch(rf"[+-]?[0-9]*{re.escape(other)}[0-9]+([eE][+-]?[0-9]+)?", cell):
        hints.append(f"if {other!r} is the decimal mark, {say('decimal', other)}")
    if not hints and all_text:
        hints = [leave_out([name], options)]
        if not DATE.fullmatch(cell):
            hints.insert(0, f"if it holds categories, {say('categorical', 'auto')}")
    elif not hints and not re.search(r"\d", cell) and options.missing is None:
        hints = [f"if it marks a missing value, {say('missing', ['', cell])}"]
    return "".join(f"; {hint}" for hint in hints)


def _labelled(table: Table, options: FileOptions) -> tuple[Table, list[str]]:
    """Leave out the rows without a label or a group."""
    names = [table.target]
    if options.groups is not None:
        names.append(column_name(options.groups, list(table.frame.columns)))
    kept = table.frame[names].notna().all(axis=1)
    if kept.all() or not kept.any():
        return table, []
    frame = table.frame[kept].reset_index(drop=True)
    without = f"{(~kept).sum()} rows without {' and '.join(map(repr, names))} are left out"
    return table._replace(frame=frame), [without]


def _refuse_missing(column: pd.Series, hint: str = "") -> None:
    missing = np.flatnonzero(column.isna())
    if len(missing):
        place = f"data row {missing[0] + 1}, column {column.name!r}"
        raise ValueError(f"{place}: value missing{hint}")


#: Advice if a label or a group is missing.
UNLABELLED = f"; to leave out rows without it, {say('unlabelled', 'drop')}"


def _groups(column: pd.Series) -> NDArray:
    """Return the number of each row's group."""
    _refuse_missing(column, UNLABELLED)
    return np.unique(to_labels(map(as_text, column)), return_inverse=True)[1]


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
    _refuse_missing(column, UNLABELLED)
    y = to_labels(map(str, column))
    values = np.unique(y)
    if len(values) < 2:
        raise ValueError(f"target {column.name!r} has only the class {values[0]}; two are needed")
    numbers = [value for value in values.tolist() if is_number(value)]
    if len(numbers) < len(values):
        return y, _mixed(values.tolist(), numbers)
    holds = f"target {column.name!r} holds {len(values)} distinct numbers such as {numbers[-1]}"
    if y.dtype.kind != "i" and len(values) > MOST_FRACTIONS:
        advice = "name another column, or make classes of it, as by pandas.qcut(values, 3)"
        raise ValueError(f"{holds}: it is continuous, and classes are needed: {advice}")
    if len(values) > MOST_FRACTIONS and np.unique(y, return_counts=True)[1].min() == 1:
        return y, [f"{holds}, some only once: is it continuous, or a number of the row?"]
    return y, []


def _mixed(values: list[str], numbers: list[str]) -> list[str]:
    if not numbers:
        return []
    word = next(value for value in values if value not in numbers)
    return [f"the target holds numbers and words, all taken as words: {numbers[0]}, {word}"]


def _doubtful(column: pd.Series, options: FileOptions) -> list[str]:
    """Report text that looks like numbers, or names the rows."""
    texts = column.dropna().map(as_text).unique().tolist()
    words = [text for text in texts if not is_number(text)]
    what = f"column {column.name!r} holds"
    if words and all(is_number(text.replace(",", ".", 1)) for text in texts):
        return [f"{what} categories such as {words[0]!r}: are they numbers, with decimal: ','?"]
    if 0 < len(words) <= FEW_WORDS and len(texts) > 2 * len(words):
        said = f"{what} numbers and {', '.join(map(repr, words))}, all taken as categories"
        return [f"{said}; leave a cell empty where a value is missing"]
    if len(texts) == len(column) >= FEWEST_NAMED:
        many = f"{what} {len(texts)} categories in {len(column)} rows, such as {texts[0]!r}"
        return [f"{many}; {leave_out([str(column.name)], options)}"]
    return []


def _data_as_names(names: list[str]) -> list[str]:
    """Report column names that are numbers and do not count the columns: a first row of data."""
    numbers = [name for name in names if is_number(name) and not name.isdigit()]
    if not numbers:
        return []
    return [f"the first line names columns {numbers[0]}: if it holds data, say header: false"]


def _row_numbers(X: NDArray, names: list[str], options: FileOptions) -> list[str]:
    """Report columns of whole numbers that count the rows, or are distinct and named an id."""
    if len(X) < FEWEST_COUNTED:
        return []
    begins = (X[0] % 1 == 0) & (X[1] - X[0] == 1)
    counting = [names[j] for j in np.flatnonzero(begins) if (np.diff(X[:, j]) == 1).all()]
    ids = [name for j, name in enumerate(names)
           if name not in counting and ID_NAME.fullmatch(name) and (X[:, j] % 1 == 0).all()
           and len(np.unique(X[:, j])) == len(X)]  # fmt: skip
    return [
        f"column {name!r} numbers the rows; {leave_out([name], options)}" for name in counting
    ] + [f"column {name!r} looks like an id of the rows; {leave_out([name], options)}"
         for name in ids]  # fmt: skip


def _rounded(frame: pd.DataFrame, options: FileOptions) -> list[str]:
    """Report whole numbers that float64 rounds: they are keys, and no measurements."""
    whole = frame.select_dtypes("integer")
    large = [str(name) for name in whole if (whole[name].abs() > EXACT).any()]
    return [f"column {name!r} holds numbers beyond 2^53, which are rounded; "
            f"{leave_out([name], options)}" for name in large]  # fmt: skip


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
