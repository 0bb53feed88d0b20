"""Convert a user's table to features and class labels.

Each error message is one line. A message about a cell names the row and the column of the cell.
Possible faults of a table are reported as warnings.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset, DatasetRef
from mmbench.datasets.parsers.arff_files import (
    MOST_CELLS,
    Column,
    Nominal,
    cell_name,
    check_width,
    column_name,
    setting,
    without_codes,
)
from mmbench.datasets.parsers.text_files import is_number, to_labels
from mmbench.datasets.preprocess import check_steps
from mmbench.datasets.user.formats import (
    MISSING_WORDS,
    DenseTable,
    SparseTable,
    as_text,
    text_columns,
)
from mmbench.datasets.user.keys import FileOptions

if TYPE_CHECKING:
    import pandas as pd

#: Preprocessing steps that keep a sparse matrix sparse.
KEEP_ZEROS = ("none", "unit_norm")
#: Maximum number of columns or rows named in a warning.
SHOWN = 5
#: Maximum number of categories of a text column that is not listed in the option `categorical`.
#: The maximum exceeds the number of countries of the world, so that a column of countries is
#: accepted.
MOST_CATEGORIES = 250
#: In a table with fewer than FEWEST_NAMED rows, no column is taken for the names of the rows, since
#: the values of a column may be distinct by chance.
FEWEST_NAMED = 10
#: If a column contains many numbers and at most FEW_WORDS distinct words, the words are reported as
#: possible codes of missing values.
FEW_WORDS = 5
#: A numeric target with more than MOST_FRACTIONS distinct values is continuous if some values are
#: fractions, or if some values occur only once and the whole numbers have gaps.
MOST_FRACTIONS = 20
#: Maximum number of distinct whole numbers in a target without a warning.
MOST_CLASSES = 100
MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez)"
YEAR, NUMBER_OF_MONTH = "(1[5-9]|20)[0-9]{2}", "(0?[1-9]|1[0-2])"
#: Pattern of dates (2024-01-31, 31.1.2024, 1/31/24, 31-Jan-2024, January 31, 2024), of months
#: (2024-01, 1/2024, January 2024, Jan-24), of weeks and quarters (2024-W01, Q1 2024), of times
#: (12:30, 1:30 pm) and of durations (3 days 12:30:00). A weekday may precede a date, and a time may
#: follow a date.
DATE = re.compile(
    r"((mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?([0-9]{4}([-/.])[0-9]{1,2}\4[0-9]{1,2}|[0-9]{1,2}"
    rf"([-/.])[0-9]{{1,2}}\5([0-9]{{4}}|[0-9]{{2}})|{MONTH}-[0-9]{{2}}|{YEAR}[-/]{NUMBER_OF_MONTH}"
    rf"|[0-9]{{1,2}}[-/. ]*{MONTH}[a-z]*[-/., ]*([0-9]{{4}}|[0-9]{{2}})|{NUMBER_OF_MONTH}[-/]{YEAR}"
    rf"|{MONTH}[a-z]*[-/., ]*([0-9]{{1,2}}[-/, ]+)?{YEAR}|{YEAR}[-/., ]*{MONTH}[a-z]*)"
    rf"([T ]+[0-9]{{1,2}}:[0-9]{{2}}.*)?|{YEAR}[- ]?[QW][0-9]{{1,2}}|Q[1-4][- /]?{YEAR}"
    r"|(-?[0-9]+ days? )?[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?\s*([ap]\.?m\.?)?",
    re.I,
)
INFINITE = re.compile(r"\s*[+-]?inf(inity)?\s*", re.I)
#: Pattern of the names of columns that contain identifiers of the rows.
ID_NAME = re.compile(
    r"(.*[\W_])?(id|uuid|guid|key|code|index|serial|no|nr|num|number|(zip|post)code"
    r"|account|client|customer|order|patient|person|record|sample|student|subject|user)|.*[a-z]id",
    re.I,
)
#: Integers up to this absolute value are represented exactly as float64.
EXACT = 2**53
#: The minus sign of Unicode, which is read like a hyphen.
MINUS = "\u2212"
SYMBOL = r"[^\w\s.,+−()[\]{}-]"
#: Pattern of numbers with any decimal mark, any thousands separator and digits of any script. The
#: exponent may be Fortran's, as in 1.5D+03. A matching number may have a unit: symbols or the code
#: of a currency before the number, symbols or a short word after the number. Ordinal endings and
#: most single letters directly after the number are not units, so that 2nd and 3D are categories.
#: Parentheses, or a minus at the end, denote a negative number.
LIKE_NUMBER = re.compile(
    rf"\(?[+−-]?([A-Z]{{3}}|[A-Z]{{0,2}}{SYMBOL}{{1,3}}|)\s*[+−-]?[.,]?\d[\d.,'’_\s]*"
    rf"([eE][+-]?[0-9]+|[dD][+-][0-9]+)?\s*((?:{SYMBOL}{{1,3}}[^\W\d_]{{0,4}}|(?<=\s)[a-zµ]"
    rf"|[CFKMVWghklmstyµ]|(?!(?i:(?:st|nd|rd|th)\b|{MONTH}))[^\W\d_]{{2,4}}|)"
    r"(?:/[^\W\d_]{1,4})?)[)−-]?"
)
#: Pattern of numbers in which 1, 2 or at least 4 digits follow a comma. This comma is a decimal
#: mark, since a thousands separator is followed by exactly 3 digits.
DECIMAL_COMMA = re.compile(r"\s*[+−-]?[0-9]+,([0-9]{1,2}|[0-9]{4,})\s*")


def user_dataset(ref: DatasetRef, table: DenseTable | SparseTable, options: FileOptions) -> Dataset:
    """Return the features and class labels of a table as a data set without content hash.

    The last columns of the features are category codes. Missing values are NaN.

    Raises
    ------
    ValueError
        If a column does not exist or contains invalid values, if there are fewer than two classes,
        or if the preprocessing steps do not fit the columns.
    """
    from pandas.api.types import is_string_dtype

    if idle := sorted(table.idle & {*dict(ref.options)}):
        raise ValueError(f"{idle[0]} has no effect on this file format; remove it")
    if isinstance(table, SparseTable):
        return _sparse_dataset(ref, table, options)
    check_width(table.frame.shape[1], options.max_columns)
    if table.frame.empty:
        raise ValueError("the file has no rows")
    if options.missing is None:
        options = options.model_copy(update={"missing": () if table.idle else MISSING_WORDS})
    filled = without_codes(table.frame, options.missing or ())
    known = text_columns(options, table.target, list(filled.columns))
    for name in filled.columns[[is_string_dtype(kind) for kind in filled.dtypes]]:
        words = [word for word in options.missing or () if word not in known.get(name, ())]
        filled[name] = filled[name].mask(filled[name].isin(words))
    table, dropped = _labelled(table, filled, options)
    frame, label = table.frame, table.target
    chosen, remarks = _chosen(table, options)
    nominal, unique = _nominal(table, chosen, options)
    chosen = [name for name in chosen if name not in unique]
    for name, advice in unique.items():
        remarks.append(f"column {name!r} has a different word in each row, and is left out{advice}")
    if not chosen:
        no_features = f"there is no feature column besides the target {label!r}"
        raise ValueError("; ".join([no_features, *remarks]))
    numbers = [name for name in chosen if name not in nominal]
    if table.nominal.get(label):
        _codes(frame[label], table.nominal[label])  # raises ValueError if a class is not declared
    y, more = _labels(frame[label], declared=label in table.nominal or bool(ref.classes))
    for row in frame.index[frame[label].astype(str) == label] if options.header else ():
        if all(str(frame[name][row]) == name for name in chosen):
            raise ValueError(f"data row {row + 1} repeats the column names; remove the row")
    codes = {name: _codes(frame[name], stated) for name, stated in nominal.items()}
    X = np.column_stack([_numbers(frame[numbers], options), *(c for c, _ in codes.values())])
    remarks += [*dropped, *more, *(() if table.idle else _other_mark(frame, numbers, options))]
    for name in nominal if options.categorical == "auto" else ():
        found = _misread(frame[name], options, name in {*table.nominal, *table.text})
        remarks += found or [*_alike(codes[name][1], f"column {name!r}: categories")]
    like_data = [name for name in chosen if is_number(name) and not name.isdigit()]
    like_data += [label] * (options.header and label in set(map(str, y)))
    if like_data and not table.idle:
        first = f"the first line, taken as column names, contains {like_data[0]!r}"
        remarks.append(f"{first}; if it is a data row, {setting('header', False)}")
    names = [*numbers, *nominal]
    remarks += [*_row_names(X, frame[numbers], options), *_useless(X, y, names, frame.index)]
    missing = [cell_name(frame.index[i], names[j]) for i, j in np.argwhere(np.isnan(X))[:1]]
    if problem := check_steps(ref.preprocess, X.shape[1], [*nominal], *missing):
        raise ValueError(problem)
    return Dataset(
        *(ref.name, X, y, np.unique(y)),
        warnings=tuple(remarks),
        n_categorical=len(nominal),
        columns={name: codes[name][1] if name in codes else None for name in chosen},
        groups=None if options.groups is None else _groups(_column(frame, options.groups)),
        time=None if options.time is None else _time(_column(frame, options.time), options),
        rows=np.asarray(frame.index),
        labelled=filled.index.isin(frame.index),
    )


def _column(frame: pd.DataFrame, column: Column) -> pd.Series:
    return frame[column_name(column, list(frame.columns))]


def _sparse_dataset(ref: DatasetRef, table: SparseTable, options: FileOptions) -> Dataset:
    import pandas as pd

    cells, n = table.X.shape[0] * table.X.shape[1], table.X.shape[1]
    needed = {"max_columns": n + 1, "max_megabytes": -(-cells // 2**17)}
    advice = [setting(key, most) for key, most in needed.items() if most > getattr(options, key)]
    dense = f"; to read a dense table, {' and '.join(advice)}" if cells <= MOST_CELLS else ""
    of_columns = {"index", "features", "drop", "categorical", "groups", "time", "missing"}
    if of_columns & {*dict(ref.options)}:
        raise ValueError(f"a sparse table has neither named columns nor missing values{dense}")
    if not np.isfinite(table.X.data).all():
        raise ValueError("contains infinite or missing values")
    y, more = _labels(pd.Series(table.y, name="target"), declared=bool(ref.classes))
    if {name for name, _ in ref.preprocess} - {*KEEP_ZEROS}:
        steps = f"preprocess must be {' or '.join(KEEP_ZEROS)} (--set preprocess=none)"
        raise ValueError(f"is sparse: {steps}{dense}")
    return Dataset(ref.name, table.X, y, np.unique(y), warnings=(*more, *_left_out(table.ignored)))


def _leave_out(options: FileOptions, *columns: str) -> str:
    """Return the advice to exclude columns by the key ``drop``."""
    it = "them" if len(columns) > 1 else "it"
    return f"to leave {it} out, {setting('drop', [*options.drop, *columns])}"


def _about(column: object, content: str, options: FileOptions) -> str:
    """Return a message about the content of a column, with the advice to exclude the column."""
    return f"column {column!r} {content}; {_leave_out(options, str(column))}"


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
    for name in [name for name in chosen if name in table.unusable]:
        content = f"contains {table.unusable[name]}, neither numbers nor categories"
        raise ValueError(_about(name, content, options))
    absent = sorted(listed - {name.casefold() for name in names})
    missing = [f"the source excludes a column {name!r}, which is not there" for name in absent]
    return chosen, _left_out(ignored) + missing


def _left_out(ignored: Sequence[str]) -> list[str]:
    names = ", ".join(map(repr, ignored))
    return [f"columns left out, as row numbers or by the source: {names}"] if ignored else []


def _nominal(
    table: DenseTable, chosen: list[str], options: FileOptions
) -> tuple[Nominal, dict[str, str]]:
    """Return each categorical column with its declared categories, or () if none are declared, and
    each text column without repeated words, with advice to keep the column.

    Raises ValueError if a column that `options` does not list has too many categories, or contains
    mostly dates or times.
    """
    from pandas.api.types import is_numeric_dtype

    names, missing = list(table.frame.columns), options.missing or ()
    declared = {n: tuple(v for v in own if v not in missing) for n, own in table.nominal.items()}
    auto = options.categorical == "auto"
    text = (
        name
        for name in chosen
        if (auto or name in table.text)
        and not is_numeric_dtype(table.frame[name])
        and _read_numbers(table.frame[name].dropna().drop_duplicates(), options).isna().any()
    )
    declared = {**dict.fromkeys(text, ()), **declared}
    given = () if auto else options.categorical
    stated = {column_name(c, names, "categorical column"): v for c, v in given}
    faults, unique = {}, {}
    keep = setting("categorical", [name for name in chosen if name in {*declared, *stated}])
    for name in [name for name in chosen if name in declared and name not in stated]:
        values = (column := table.frame[name].dropna()).unique().tolist()
        repeated = len(values) < max(len(column), FEWEST_NAMED)
        many = f"{len(values)} categories" if len(values) > MOST_CATEGORIES else ""
        doubts = []
        if many or not repeated:
            doubts = _misread(column, options, name in {*table.nominal, *table.text})
        if len(dates := [v for v in values if DATE.fullmatch(str(v).strip())]) > len(values) / 2:
            many, values = "dates or times", dates
        elif not (doubts or repeated or options.features):
            unique[name] = f"; to keep it, {keep}"
            continue
        if many:
            fault = f"column {name!r} contains {many} such as {str(values[0])!r}"
            faults[name] = doubts[0] if doubts else fault
    if faults:
        them = f"to keep {'them' if len(faults) > 1 else 'it'}, {keep}"
        raise ValueError("; ".join([*faults.values(), _leave_out(options, *faults), them]))
    known = {**stated, **declared}
    kept = (name for name in chosen if name in known and name not in unique)
    return {name: stated.get(name) or known[name] for name in kept}, unique


def _codes(
    column: pd.Series, stated: tuple[str, ...]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the category codes of a column, and the categories.

    The categories are `stated`, or the sorted distinct values if `stated` is empty.
    """
    text = column.map(as_text, na_action="ignore").astype(object)
    if not stated:  # if all categories are integers, 2.0 becomes "2"
        text[text.notna()] = [str(label) for label in to_labels(text.dropna()).tolist()]
    values = stated or sorted(
        text.dropna().unique().tolist(),
        key=lambda value: (0, float(value), value) if is_number(value) else (1, 0.0, value),
    )
    codes = text.map({value: k for k, value in enumerate(values)})
    _refuse_cells(text, codes.isna() & text.notna(), f"{{}} is not one of {', '.join(values)}")
    return np.asarray(codes, dtype=np.float64), tuple(values)


def _numbers(frame: pd.DataFrame, options: FileOptions) -> NDArray[np.float64]:
    from pandas.api.types import is_numeric_dtype

    texts = frame.columns[[not is_numeric_dtype(dtype) for dtype in frame.dtypes]]
    frame = frame.assign(**{name: number_column(frame[name], options) for name in texts})
    X = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    for i, j in np.argwhere(np.isinf(X)):
        cell, drop = cell_name(frame.index[i], name := frame.columns[j]), _leave_out(options, name)
        raise ValueError(f"{cell}: infinite value {X[i, j]}; {drop}")
    return X


def _number_pattern(options: FileOptions) -> re.Pattern:
    """Return a pattern of numbers with decimal mark, thousands separator and units of `options`."""
    decimal, group = re.escape(options.decimal), re.escape(options.thousands or "")
    digits = rf"([0-9]+({decimal}[0-9]*)?|{decimal}[0-9]+)([eE][+-]?[0-9]+)?"
    digits += rf"|[0-9]{{1,3}}({group}[0-9]{{3}})+({decimal}[0-9]*)?" if group else ""
    unit = f"({'|'.join(map(re.escape, options.units))})?"
    sign = rf"(?P<sign>[+{MINUS}-]?{unit}|{unit}\s*[+{MINUS}-]?)"
    return re.compile(rf"\s*{sign}\s*(?P<digits>{digits})\s*{unit}\s*")


def _read_numbers(column: pd.Series, options: FileOptions) -> pd.Series:
    """Return a text column as numbers, with NaN for each cell that is not a number."""
    number = _number_pattern(options)

    def parsed(cell: Any) -> float | None:
        if not isinstance(cell, str):  # the cell is a boolean of a Parquet file, or an integer
            with suppress(TypeError):  # other objects, such as dates and durations, are no numbers
                return float(cell) if abs(cell) <= sys.float_info.max else math.inf
            return None
        if match := number.fullmatch(cell):
            digits = match["digits"].replace(options.thousands or "", "")
            value = float(digits.replace(options.decimal, "."))
            return -value if {"-", MINUS} & set(match["sign"]) else value
        return float(cell) if INFINITE.fullmatch(cell) else None

    return column.map(parsed, na_action="ignore").astype("float64")


def number_column(column: pd.Series, options: FileOptions) -> pd.Series:
    """Return a text column as numbers; raise ValueError if a value is not a number."""
    values = _read_numbers(column, options)
    bad = column.index[values.isna() & column.notna()]
    if len(bad):
        cell, drop = str(column[bad[0]]), _leave_out(options, str(column.name))
        hints = _marks(list(map(str, column[bad].unique())), options)
        word = not hints or re.search(r"[^\W\d_]", cell)  # a cell such as 3kg may be a category
        if bad.tolist() == [0] and len(column) > 1 and not options.header:
            hints = [f"if the first line names the columns, {setting('header', True)}"]
        elif word and len(bad) == column.notna().sum() and not DATE.fullmatch(cell.strip()):
            option = setting("categorical", "auto")
            hints += [f"if the column contains categories, {option}", drop]
        elif not hints and not re.search(r"\d", cell):
            words = [*(options.missing or ()), cell.strip()]
            hints = [f"if it marks a missing value, {setting('missing', words)}"]
        problem = f"{cell_name(bad[0], column.name)}: {cell!r} is not a number"
        raise ValueError("; ".join([problem, *(hints or [drop])]))
    return values


def _marks(cells: Sequence[str], options: FileOptions) -> list[str]:
    """Return advice on numbers with a decimal mark, thousands separator or unit not in `options`.

    Decimal mark and thousands separator are taken from the first cell that cannot be read, and
    units from all cells.
    """
    number, known = _number_pattern(options), "|".join(map(re.escape, options.units))
    bare = [re.sub(known, "", cell).strip() for cell in cells if not number.fullmatch(cell)]
    cell, other = bare[0] if bare else "", "," if options.decimal == "." else "."
    hints = []
    groups = r"[+-]?[0-9]{1,3}([^0-9A-Za-z])[0-9]{3}(\1[0-9]{3})*(.[0-9]*)?"
    group = None if options.thousands else re.fullmatch(groups, cell)
    if group and group[1] != options.decimal:
        hints.append(f"if {group[1]!r} separates thousands, {setting('thousands', group[1])}")
    grouped = group and group[1] == options.decimal  # as in 1.234.567 or 1.234,5
    if grouped or re.fullmatch(rf"[+-]?[0-9]*{re.escape(other)}[0-9]+([eE][+-]?[0-9]+)?", cell):
        hints.append(f"if {other!r} is the decimal mark, {setting('decimal', other)}")
    like = [match for match in map(LIKE_NUMBER.fullmatch, bare) if match]
    if not like or like[0].string != cell:
        return hints
    if cell[0] == "(" or cell[-1] in f")-{MINUS}":
        hints.append(f"if {cell!r} is negative, save it with a minus before the number")
    units = sorted({match[k] for match in like for k in (1, 3)} - {""})
    if any(like[0].group(1, 3)) and len(units) <= FEW_WORDS:
        are = "denote the same unit" if units[1:] else "is a unit"
        option = setting("units", [*options.units, *units])
        hints.append(f"if {', '.join(map(repr, units))} {are}, {option}")
    return hints


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


def _refuse_cells(column: pd.Series, bad: pd.Series, problem: str) -> None:
    """Raise ValueError about the first cell for which the mask `bad` is true.

    The value of the cell replaces the text {} in `problem`.
    """
    for row in column.index[bad]:
        text = problem.replace("{}", repr(column[row]), 1)
        raise ValueError(f"{cell_name(row, column.name)}: {text}")


#: Message about a missing label or group.
UNLABELLED = f"value missing; to leave out such rows, {setting('unlabelled', 'drop')}"


def _groups(column: pd.Series) -> NDArray:
    """Return the group number of each row."""
    _refuse_cells(column, column.isna(), UNLABELLED)
    return np.unique(to_labels(map(as_text, column)), return_inverse=True)[1]


def _time(column: pd.Series, options: FileOptions) -> NDArray:
    """Convert a column of times (numbers or ISO dates) to numbers."""
    import pandas as pd

    _refuse_cells(column, column.isna(), "value missing")
    read = column if column.dtype.kind in "biufmM" else _read_numbers(column.map(str), options)
    if read.isna().all():
        read = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    _refuse_cells(column, read.isna(), "{} is neither a number nor a date such as 2024-01-31")
    return (read.astype("int64") if read.dtype.kind in "mM" else read).to_numpy(np.float64)


def _labels(column: pd.Series, declared: bool = False) -> tuple[NDArray, list[str]]:
    """Return the class labels and warnings. `declared` states whether the file declares the target
    as categorical.
    """
    _refuse_cells(column, column.isna(), UNLABELLED)
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


def _misread(column: pd.Series, options: FileOptions, declared: bool) -> list[str]:
    """Return warnings about a categorical column that may contain numbers.

    `declared` states whether the file format declares the column as categorical.
    """
    texts = column.dropna().map(as_text).unique().tolist()
    words = [text for text in texts if not is_number(text)]
    has, save = f"column {column.name!r} has", "if these are numbers, save them as numbers"
    like = list(filter(LIKE_NUMBER.fullmatch, texts if options.decimal == "," else words))
    other = [text for text in words if not LIKE_NUMBER.fullmatch(text)]
    hints = _marks(like, options)
    if like and not hints and not re.search(r"[^\W\d_](?![+-])", like[0]):
        hints = [save]
    if hints and len(other) <= FEW_WORDS and 2 * len(other) < len(texts):
        missing = setting("missing", [*(options.missing or ()), *other])
        hints += [f"if {other[0]!r} marks a missing value, {missing}"] if other else []
        hints = [save] if declared else hints
        return ["; ".join([f"{has} categories such as {like[0]!r}", *hints])]
    if 0 < len(words) <= FEW_WORDS and len(texts) > 2 * len(words):
        both = f"{has} numbers and {', '.join(map(repr, words))}, all read as categories"
        option = setting("missing", [*(options.missing or ()), *words])
        return [f"{both}; {save if declared else f'to read words as missing values, {option}'}"]
    return []


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
                yield _about(name, "contains row numbers", options)
            elif whole and (name.startswith("Unnamed: ") or (distinct and ID_NAME.fullmatch(name))):
                yield _about(name, "seems to contain identifiers of the rows", options)
            elif whole and column.min() > 19e6 and column.max() < 21e6:
                yield _about(name, f"seems to contain dates such as {column[0]:.0f}", options)
    integers = numbers.select_dtypes("integer")
    for name in map(str, integers.columns[(integers.abs() > EXACT).any()]):
        yield _about(name, "contains integers beyond 2^53, which are rounded", options)


def _useless(X: NDArray, y: NDArray, names: list[str], index: pd.Index) -> Iterator[str]:
    """Yield warnings about constant columns, and about equal rows with different labels.

    `index` contains the row numbers of the file, counted from 0.
    """
    import pandas as pd

    varies = np.fmin.reduce(X) < np.fmax.reduce(X)  # False for an empty column
    if constant := [repr(names[j]) for j in np.flatnonzero(~varies)]:
        more = f" and {len(constant) - SHOWN} more" if len(constant) > SHOWN else ""
        yield f"constant columns: {', '.join(constant[:SHOWN])}{more}"
    rows = pd.Series([row.tobytes() for row in X + 0.0])  # adding 0.0 turns -0.0 into 0.0
    bad = pd.Series(y).groupby(rows, sort=False).transform("nunique") > 1
    if bad.any():
        first = index[rows == rows[bad].iloc[0]][:SHOWN] + 1
        where = f"first: data rows {', '.join(map(str, first))}"
        yield f"{bad.sum()} rows have equal values but different labels ({where})"
