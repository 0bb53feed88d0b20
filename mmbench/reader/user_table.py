"""Read a user's table: features, class labels, and notes about possible faults."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmbench.reader.advice import cell_name, check_width, column_name, setting
from mmbench.reader.file_text import is_number, to_labels
from mmbench.reader.formats import (
    MISSING_WORDS,
    DenseTable,
    SparseTable,
    as_text,
    text_columns,
)
from mmbench.reader.keys import Column, FileOptions
from mmbench.reader.table_columns import (
    FEWEST_NAMED,
    LIKE_NUMBER,
    Seen,
    TableColumns,
    about,
    fit_categories,
    leave_out,
    misread,
    read_numbers,
    readings,
    refuse_cells,
)
from mmbench.reader.text_tables import MOST_CELLS, without_codes

if TYPE_CHECKING:
    import pandas as pd

#: Maximum number of columns or rows named in a warning.
SHOWN = 5
#: A numeric target with more than MOST_FRACTIONS distinct values is continuous if some values are
#: fractions, or if some values occur only once and the whole numbers have gaps.
MOST_FRACTIONS = 20
#: Share of copies among the rows from which on they get a warning. Rows of few categories are equal
#: by chance, so that a column must have more than MOST_FRACTIONS distinct values.
MOST_COPIES = 0.05
#: Maximum number of distinct whole numbers in a target without a warning.
MOST_CLASSES = 100
#: A column of categories with more than MOST_RARE distinct words gets a warning if most words
#: occur once.
MOST_RARE = 20
#: Pattern of the names of columns that contain identifiers of the rows.
ID_NAME = re.compile(
    r"(.*[\W_])?(id|uuid|guid|key|code|index|serial|no|nr|num|number|(zip|post)code"
    r"|account|client|customer|order|patient|person|record|sample|student|subject|user)|.*[a-z]id",
    re.I,
)
#: Integers up to this absolute value are represented exactly as float64.
EXACT = 2**53
#: Pattern of numbers in which 1, 2 or at least 4 digits follow a comma. This comma is a decimal
#: mark, since a thousands separator is followed by exactly 3 digits.
DECIMAL_COMMA = re.compile(r"\s*[+−-]?[0-9]+,([0-9]{1,2}|[0-9]{4,})\s*")


@dataclass(frozen=True)
class UserTable:
    """A user's table: features, labels, and possible faults."""

    #: Features, shape (n_samples, n_features): numbers, then category codes. Missing values are
    #: NaN. A file that is too large for a dense array gives a sparse `csr_array`.
    X: NDArray
    #: Class labels, shape (n_samples,).
    y: NDArray
    #: Possible faults of the table, one line each.
    warnings: tuple[str, ...]
    #: How the feature columns are read; None for sparse features.
    columns: TableColumns | None = None
    #: Row and column of the first missing value, as text.
    gap: str | None = None
    #: Advice to read sparse features as a dense array; empty if memory does not suffice.
    dense: str = ""
    #: Group number and time of each row, or None.
    groups: NDArray | None = None
    time: NDArray | None = None
    #: Number of each row in the file, counted from 0.
    rows: NDArray | None = None
    #: Mask of the rows of the file that have a label (and a group).
    labelled: NDArray | None = None


def read_table(
    table: DenseTable | SparseTable, options: FileOptions, chosen_classes: bool = False
) -> UserTable:
    """Return the features and class labels of a table.

    `chosen_classes` states whether classes are chosen, so that many labels are no fault.

    Raises
    ------
    ValueError
        If a column does not exist or contains invalid values, or if there are fewer than two
        classes.
    """
    from pandas.api.types import is_string_dtype

    if idle := sorted(table.idle & {*dict(options.pairs())}):
        raise ValueError(f"{idle[0]} has no effect on this file format; remove it")
    if isinstance(table, SparseTable):
        return _sparse_table(table, options, chosen_classes)
    check_width(table.frame.shape[1], options.max_columns)
    if table.frame.empty:
        raise ValueError("the file has no rows")
    if options.missing is None and not table.idle:
        options = options.model_copy(update={"missing": MISSING_WORDS})
    filled = without_codes(table.frame, options.missing or ())
    known = text_columns(options, table.target, list(filled.columns))
    for name in filled.columns[[is_string_dtype(kind) for kind in filled.dtypes]]:
        words = [word for word in options.missing or () if word not in known.get(name, ())]
        filled[name] = filled[name].mask(filled[name].isin(words))
    table, dropped = _labelled(table, filled, options)
    frame, label = table.frame, table.target
    names, remarks = _chosen(table, options)
    given = () if options.categorical == "auto" else options.categorical
    stated = {column_name(c, list(frame), "categorical column"): v for c, v in given}
    read, left_out = readings([Seen(table, name, options, stated.get(name)) for name in names])
    remarks += left_out
    if not read:
        no_features = f"there is no feature column besides the target {label!r}"
        raise ValueError("; ".join([no_features, *remarks]))
    if table.nominal.get(label):
        fit_categories(frame[label], table.nominal[label])  # a class may not be declared
    y, more = _labels(frame[label], declared=label in table.nominal or chosen_classes)
    for row in frame.index[frame[label].astype(str) == label] if options.header else ():
        if all(str(frame[name][row]) == name for name in read):
            raise ValueError(f"data row {row + 1} repeats the column names; remove the row")
    fitted = {
        name: None if values is None else fit_categories(frame[name], values)
        for name, (values, *_) in read.items()
    }
    columns = TableColumns(fitted, options.pairs())
    numbers, nominal = columns.numbers, columns.nominal
    X = columns.features(frame)
    for i, j in np.argwhere(np.isinf(X)):
        cell = cell_name(frame.index[i], numbers[j])
        raise ValueError(f"{cell}: infinite value {X[i, j]}; {leave_out(options, numbers[j])}")
    remarks += [*dropped, *more, *(() if table.idle else _other_mark(frame, numbers, options))]
    for name in nominal if options.categorical == "auto" else ():
        found = misread(frame[name], options, name in {*table.nominal, *table.text})
        remarks += found or [*_alike(nominal[name], f"column {name!r}: categories")]
        n_words, n_cells = len(nominal[name]), frame[name].count()
        if not found and n_words > max(MOST_RARE, n_cells / 2):
            remarks.append(about(name, f"has {n_words} different words in {n_cells} rows", options))
    like_data = [name for name in read if is_number(name) and not name.isdigit()]
    like_data += [label] * (options.header and label in set(map(str, y)))
    if like_data and not table.idle:
        first = f"the first line, taken as column names, contains {like_data[0]!r}"
        remarks.append(f"{first}; if it is a data row, {setting('header', False)}")
    names = [*numbers, *nominal]
    remarks += [*_row_names(X, frame[numbers], options), *_useless(X, y, names, frame.index)]
    remarks += _copies(X, y) if options.groups is None else ()
    gaps = [cell_name(frame.index[i], names[j]) for i, j in np.argwhere(np.isnan(X))[:1]]
    return UserTable(
        *(X, y, tuple(remarks), columns),
        gap=next(iter(gaps), None),
        groups=None if options.groups is None else _groups(_column(frame, options.groups)),
        time=None if options.time is None else _time(_column(frame, options.time), options),
        rows=np.asarray(frame.index),
        labelled=filled.index.isin(frame.index),
    )


def _column(frame: pd.DataFrame, column: Column) -> pd.Series:
    return frame[column_name(column, list(frame.columns))]


def _sparse_table(table: SparseTable, options: FileOptions, chosen_classes: bool) -> UserTable:
    import pandas as pd

    cells, n = table.X.shape[0] * table.X.shape[1], table.X.shape[1]
    needed = {"max_columns": n + 1, "max_megabytes": -(-cells // 2**17)}
    advice = [setting(key, most) for key, most in needed.items() if most > getattr(options, key)]
    dense = f"; to read a dense table, {' and '.join(advice)}" if cells <= MOST_CELLS else ""
    of_columns = {"index", "features", "drop", "categorical", "groups", "time", "missing"}
    if of_columns & {*dict(options.pairs())}:
        raise ValueError(f"a sparse table has neither named columns nor missing values{dense}")
    if not np.isfinite(table.X.data).all():
        raise ValueError("contains infinite or missing values")
    y, more = _labels(pd.Series(table.y, name="target"), declared=chosen_classes)
    return UserTable(table.X, y, (*more, *_left_out(table.ignored)), dense=dense)


def _chosen(table: DenseTable, options: FileOptions) -> tuple[list[str], list[str]]:
    """Return the names of the feature columns in the order of the file, and warnings."""
    names, target = list(table.frame.columns), table.target
    left_out = (*options.drop, options.index, options.groups, options.time)
    dropped = {column_name(column, names) for column in left_out if column is not None} | {target}
    stated = {column_name(column, names) for column in options.features}
    for name in stated & dropped:
        other = "it is the target, or in drop, index, groups or time"
        raise ValueError(f"column {name!r} cannot be in features: {other}")
    listed = {name.casefold() for name in table.ignored}
    ignored = [n for n in names if n.casefold() in listed and n not in dropped | stated]
    wanted = (stated or set(names)) - dropped - set(ignored)
    chosen = [name for name in names if name in wanted]
    absent = sorted(listed - {name.casefold() for name in names})
    missing = [f"the source excludes a column {name!r}, which is not there" for name in absent]
    return chosen, _left_out(ignored) + missing


def _left_out(ignored: Sequence[str]) -> list[str]:
    names = ", ".join(map(repr, ignored))
    return [f"columns left out, as row numbers or by the source: {names}"] if ignored else []


def _other_mark(frame: pd.DataFrame, numbers: list[str], options: FileOptions) -> Iterator[str]:
    """Yield a warning if one column has decimal points and another has decimal commas."""
    floats = [name for name in numbers if frame[name].dtype.kind == "f" and options.decimal == "."]
    for name in frame.columns.difference(numbers, sort=False) if floats else ():
        cells = frame[name].dropna().astype(str).unique()
        commas = list(filter(DECIMAL_COMMA.fullmatch, cells))
        if commas and all(map(LIKE_NUMBER.fullmatch, cells)):
            point = f"column {floats[0]!r} is read with '.' as the decimal mark"
            hint = f"if ',' is the decimal mark, {setting('decimal', ',')}"
            yield f"{point}, and column {name!r} contains {commas[0]!r}; {hint}"
            return


def _labelled(
    table: DenseTable, filled: pd.DataFrame, options: FileOptions
) -> tuple[DenseTable, list[str]]:
    """Return `table` with its data frame replaced by `filled`, and warnings.

    If `options.unlabelled` is "drop", rows without a label or a group are left out. Raises
    ValueError if labels or groups are lists, structs, maps or bytes that are no text.
    """
    given = [c for c in (table.target, options.groups) if c is not None]
    names = [str(_column(table.frame, column).name) for column in given]
    for key, column in zip(("target", "groups"), names, strict=False):
        if table.unusable.get(column, "dates") not in ("dates", "times"):
            raise ValueError(f"{key} {column!r} contains {table.unusable[column]}, not labels")
    kept = filled[names].notna().all(axis=1)
    if options.unlabelled == "error" or kept.all():
        return table._replace(frame=filled), []
    words = options.missing or ()
    text = f"{(~kept).sum()} rows without {' or '.join(map(repr, names))} are left out"
    found = {*filter(str.isalpha, words)}.intersection(table.frame[names[0]][~kept])
    for word in sorted(found)[:1]:
        text += f"; if {word!r} is a class, {setting('missing', [w for w in words if w != word])}"
    # the index of the frame still contains the row numbers of the file, counted from 0
    if filled[names[0]][kept].nunique() < 2:
        raise ValueError(f"fewer than two classes are left, since {text}")
    return table._replace(frame=filled[kept]), [text]


#: Message about a missing label or group.
UNLABELLED = f"value missing; to leave out such rows, {setting('unlabelled', 'drop')}"


def _groups(column: pd.Series) -> NDArray:
    """Return the group number of each row."""
    refuse_cells(column, column.isna(), UNLABELLED)
    return np.unique(to_labels(map(as_text, column)), return_inverse=True)[1]


def _time(column: pd.Series, options: FileOptions) -> NDArray:
    """Convert a column of times (numbers or ISO dates) to numbers."""
    import pandas as pd

    refuse_cells(column, column.isna(), "value missing")
    read = column if column.dtype.kind in "biufmM" else read_numbers(column.map(str), options)
    if read.isna().all():
        read = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    refuse_cells(column, read.isna(), "{} is neither a number nor a date such as 2024-01-31")
    return (read.astype("int64") if read.dtype.kind in "mM" else read).to_numpy(np.float64)


def _labels(column: pd.Series, declared: bool = False) -> tuple[NDArray, list[str]]:
    """Return the class labels and warnings. `declared` states whether the file declares the target
    as categorical.
    """
    refuse_cells(column, column.isna(), UNLABELLED)
    y = to_labels(map(str, column))
    values = np.unique(y)
    if len(values) < 2:
        raise ValueError(f"target {column.name!r} has only the class {values[0]}, not two")
    numbers = [value for value in values.tolist() if is_number(value)]
    if len(numbers) < len(values):
        word = next(value for value in values.tolist() if value not in numbers)
        both = f"numbers such as {next(iter(numbers), None)} and words such as {word}"
        remarks = [f"the target has {both}; all are read as words"] if numbers else []
        return y, [*remarks, *_alike(values.tolist())]
    if len(values) <= MOST_FRACTIONS:
        return y, list(_alike(values.tolist()))
    has = f"target {column.name!r} has {len(values)} distinct numbers such as {numbers[-1]}"
    once = np.unique(y, return_counts=True)[1].min() == 1
    has_gaps = y.dtype.kind == "i" and np.ptp(values) >= len(values)
    if not declared and ((once and has_gaps) or any(float(v) % 1 > 0 for v in numbers)):
        advice = "set another target, form classes, for example by pandas.qcut(values, 3)"
        advice += f", or choose the numbers that are classes: {setting('classes', numbers[:3])}"
        raise ValueError(f"{has}; it looks continuous, and classes are needed: {advice}")
    if once or len(values) > MOST_CLASSES:
        often = ", some only once" if once else ""
        return y, [f"{has}{often}; is it continuous, or a row number?"]
    return y, list(_alike(values.tolist()))


def _alike(labels: Sequence[object], what: str = "classes") -> Iterator[str]:
    """Yield warnings about labels that look alike, or are equal as numbers."""
    first: dict[object, object] = {}
    for label in labels:
        folded = unicodedata.normalize("NFKC", str(label)).casefold()
        visible = "".join(filter(str.isprintable, folded))
        # Distinct large integers may be equal as floats, but not as `Decimal`. Long text is not
        # converted, since its exponent may be too large.
        key = Decimal(visible) if is_number(visible) and len(visible) <= 20 else visible
        if (other := first.setdefault(key, label)) != label:
            how = "differ only in capital letters, encoding or invisible characters"
            how = "are equal as numbers, but differ as text" if is_number(label) else how
            yield f"{what} {other!r} and {label!r} {how}"


def _row_names(X: NDArray, numbers: pd.DataFrame, options: FileOptions) -> Iterator[str]:
    """Yield warnings about row numbers, identifiers, dates, and integers that float64 rounds."""
    if len(X) >= FEWEST_NAMED:
        for name, column in zip(numbers.columns, X.T, strict=False):
            column = column[~np.isnan(column)]
            whole = len(column) > 0 and column[0] % 1 == 0 and (column % 1 == 0).all()
            distinct = whole and len(np.unique(column)) == len(column) >= FEWEST_NAMED
            # row numbers may be unsorted (if the rows are sorted by another column) or incomplete
            # (rows without a label have been removed)
            if distinct and column.max() - column.min() <= numbers.index[-1]:
                yield about(name, "contains row numbers", options)
            elif whole and (name.startswith("Unnamed: ") or (distinct and ID_NAME.fullmatch(name))):
                yield about(name, "seems to contain identifiers of the rows", options)
            elif whole and column.min() > 19e6 and column.max() < 21e6:
                yield about(name, f"seems to contain dates such as {column[0]:.0f}", options)
    integers = numbers.select_dtypes("integer")
    for name in map(str, integers.columns[(integers.abs() > EXACT).any()]):
        yield about(name, "contains integers beyond 2^53, which are rounded", options)


def _useless(X: NDArray, y: NDArray, names: list[str], index: pd.Index) -> Iterator[str]:
    """Yield warnings about constant columns, and about equal rows with different labels.

    `index` contains the row numbers of the file, counted from 0.
    """
    import pandas as pd

    varies = np.fmin.reduce(X) < np.fmax.reduce(X)  # False for an empty column
    if constant := [repr(names[j]) for j in np.flatnonzero(~varies)]:
        more = f" and {len(constant) - SHOWN} more" if len(constant) > SHOWN else ""
        yield f"constant columns: {', '.join(constant[:SHOWN])}{more}"
    rows = _bytes(X)
    bad = pd.Series(y).groupby(rows, sort=False).transform("nunique") > 1
    if bad.any():
        first = index[rows == rows[bad].iloc[0]][:SHOWN] + 1
        where = f"first: data rows {', '.join(map(str, first))}"
        yield f"{bad.sum()} rows have equal values but different labels ({where})"


def _copies(X: NDArray, y: NDArray) -> Iterator[str]:
    """Yield a warning if many rows, with their labels, are copies of earlier rows."""
    import pandas as pd

    copies = pd.DataFrame({"row": _bytes(X), "label": y}).duplicated().sum()
    if copies >= MOST_COPIES * len(y) and pd.DataFrame(X).nunique().max() > MOST_FRACTIONS:
        way = "remove the copies, or name a column with a number per different row in groups"
        yield f"{copies} rows are copies of earlier rows; copies of training rows are tested; {way}"


def _bytes(X: NDArray) -> pd.Series:
    """Return rows as bytes, which are equal for equal rows, also with missing values."""
    import pandas as pd

    return pd.Series([row.tobytes() for row in X + 0.0])  # adding 0.0 turns -0.0 into 0.0
