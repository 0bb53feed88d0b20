"""The feature columns of a table: the first step of a chain that accepts a column decides."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import listed
from mmbench.reader.advice import cell_name, setting
from mmbench.reader.file_text import WHOLE, is_number, to_labels
from mmbench.reader.formats import MISSING_WORDS, DenseTable, as_text
from mmbench.reader.keys import FileOptions
from mmbench.reader.text_tables import (
    as_pandas,
    clean_words,
    neither,
    without_bytes,
    without_codes,
)

if TYPE_CHECKING:
    import pandas as pd

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
#: The minus sign of Unicode, which is read like a hyphen.
MINUS = "\u2212"
SYMBOL = r"[^\w\s.,+−()[\]{}-]"
#: Pattern of numbers with any decimal mark and thousands separator, digits of any script, and
#: exponents like Fortran's 1.5D+03. A unit is symbols or the code of a currency before the number,
#: or symbols or a short word after it; ordinal endings and most single letters are not, so that 2nd
#: and 3D are categories. Parentheses, or a minus at the end, mean a negative number.
LIKE_NUMBER = re.compile(
    rf"\(?[+−-]?([A-Z]{{3}}|[A-Z]{{0,2}}{SYMBOL}{{1,3}}|)\s*[+−-]?[.,]?\d[\d.,'’_\s]*"
    rf"([eE][+-]?[0-9]+|[dD][+-][0-9]+)?\s*((?:{SYMBOL}{{1,3}}[^\W\d_]{{0,4}}|(?<=\s)[a-zµ]"
    rf"|[CFKMVWghklmstyµ]|(?!(?i:(?:st|nd|rd|th)\b|{MONTH}))[^\W\d_]{{2,4}}|)"
    r"(?:/[^\W\d_]{1,4})?)[)−-]?"
)
#: Words that ``pandas.read_csv`` reads as missing values, unless ``keep_default_na`` is False.
PANDAS_WORDS = {"#N/A", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}


@dataclass(frozen=True)
class TableColumns:
    """Feature columns, fitted to a table: how their cells become numbers and category codes.

    Parameters
    ----------
    columns : dict
        Categories of each column, or None for a numeric column, by name in the order of the table.
    options : tuple of (key, value) pairs
        Options for reading the table; see `FileOptions.pairs`. The words of the option `missing`
        denote a missing value, unless they are categories of the column. The options `decimal`,
        `thousands` and `units` apply to numbers that are stored as text.

    Examples
    --------
    >>> table = TableColumns({"colour": ("blue", "red"), "size": None})
    >>> table.transform([["red", 3.5], ["green", 1]]).tolist()
    [[3.5, 1.0], [1.0, 2.0]]
    """

    columns: dict[str, tuple[str, ...] | None]
    options: Sequence[tuple[str, Any]] = ()

    @property
    def numbers(self) -> list[str]:
        """Names of the numeric columns, the first columns of the features."""
        return [name for name, categories in self.columns.items() if categories is None]

    @property
    def nominal(self) -> dict[str, tuple[str, ...]]:
        """Categories of the other columns, by name."""
        return {name: values for name, values in self.columns.items() if values is not None}

    def features(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """Return cleaned rows as numbers and then category codes. Missing values are NaN.

        All unknown categories of a column get the same additional code.
        """
        options = FileOptions.model_construct(**dict(self.options))
        columns = [number_column(frame[name], options) for name in self.numbers]
        for name, values in self.nominal.items():
            text = as_words(frame[name], values)
            codes = text.map({value: k for k, value in enumerate(values)}).astype(np.float64)
            columns.append(codes.where(codes.notna() | text.isna(), len(values)))
        return np.column_stack([c.to_numpy(np.float64, na_value=np.nan) for c in columns])

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return new rows as numbers and category codes, read as the table was read.

        Columns of a DataFrame (of pandas, polars or pyarrow) are found by name, and columns of an
        array are found by position. Blanks around words and in column names are ignored, as in a
        CSV file. If the table has no header, column 0 of a DataFrame is the first column of the
        table. Warns about columns in which all categories are unknown, about unknown categories
        that are equal to known categories as numbers (such as 9 and 09), about categories that
        pandas may have replaced by missing values, and about columns that pandas may have renamed
        because of a repeated name.
        """
        given: dict[str, Any] = {"missing": MISSING_WORDS, **dict(self.options)}
        options, missing = FileOptions.model_construct(**given), given["missing"]
        X = self._named(X, options)
        for name in (n for n in self.columns if X[n].dtype.kind not in "biuf"):
            cells, known = X[name].astype(object), self.columns[name]
            words = without_bytes(cells.where(cells.notna()), options.encoding)
            X[name] = clean_words(words, missing, known or ())
            lost = PANDAS_WORDS.intersection(known or ())
            if lost and cells.isna().any():
                has = f"column {name!r} has missing values; pandas.read_csv reads the category"
                warn(f"{has} {min(lost)!r} only if keep_default_na=False", stacklevel=2)
            if known is None:
                # a CSV column of the words True and False is read as numbers 1 and 0
                folded = X[name].map(lambda cell: str(cell).casefold(), na_action="ignore")
                truths = folded.dropna().isin(["true", "false"]).all()
                X[name] = folded.eq("true").where(folded.notna()) if truths else X[name]
                X[name] = number_column(X[name], options)
        X = without_codes(X, missing)
        for name, values in self.nominal.items():
            text = as_words(X[name], values).dropna()
            unknown = text[~text.isin(values)].unique().tolist()
            equal = {float(value) for value in values if is_number(value)}
            alike = [value for value in unknown if is_number(value) and float(value) in equal]
            if shown := alike or (unknown if not text.isin(values).any() else []):
                first = f"column {name!r} has the unknown category {shown[0]!r}"
                warn(f"{first}, not one of {listed(values)}", stacklevel=2)
        return self.features(X)

    def _named(self, X: Any, options: FileOptions) -> pd.DataFrame:
        """Return a copy of the columns of new rows under the names of the table's columns."""
        import pandas as pd
        from scipy.sparse import issparse

        names, X = list(self.columns), as_pandas(X)
        if not isinstance(X, pd.DataFrame):
            X = np.asanyarray(X.toarray() if issparse(X) else X, dtype=object)
            if X.ndim != 2 or X.shape[1] != len(names):
                shapes = f"X has shape {X.shape}, but the table has the columns {names}"
                raise ValueError(f"{shapes}; give these columns, or a data frame with these names")
            X = pd.DataFrame(X, columns=names).infer_objects()
        if not options.header and 0 in X.columns:  # pandas counts columns from 0
            X = X.rename(columns=lambda name: name + 1 if isinstance(name, int) else name)
        # The function `easy` renames column 3 of a data frame to column_3. In a file without a
        # header, the name of column 3 is "3".
        own = {c: n for c in X if not isinstance(c, str) and (n := f"column_{c}") in self.columns}
        X = X.set_axis([own.get(c, str(c)) for c in X], axis=1).reset_index(drop=True)
        clean = {" ".join(name.split()): name for name in reversed(X.columns)}
        X = X.rename(columns={clean[n]: n for n in names if n in clean and n not in X.columns})
        counts = Counter(X.columns)
        if lacking := [name for name in names if counts[name] != 1]:
            number = "several columns" if counts[lacking[0]] else "no column"
            raise ValueError(f"X has {number} {lacking[0]!r}")
        if X.empty or any(odd := [*filter(None, map(neither, (X[name] for name in names)))]):
            raise ValueError("X has no rows" if X.empty else odd[0])
        for name in (n for n in names if f"{n}.1" in X.columns and f"{n}.1" not in self.columns):
            warn(f"X has the columns {name!r} and '{name}.1'; {name!r} is used", stacklevel=3)
        return X[names]


# The chain


class Reading(NamedTuple):
    """How a step reads a column that it accepts: as numbers, if no field is given."""

    #: Categories in order, or () for the distinct words of the column.
    categories: tuple[str, ...] | None = None
    #: Why the column is left out.
    left_out: str = ""
    #: Why the table is refused, unless the column is left out or listed as categorical.
    fault: str = ""


@dataclass(frozen=True)
class Seen:
    """A feature column, and what the file and the options state about it."""

    table: DenseTable
    name: str
    options: FileOptions
    #: Categories that the options state, () if they only list the column, otherwise None.
    stated: tuple[str, ...] | None

    @property
    def column(self) -> pd.Series:
        """Cells of the column, without missing values."""
        return self.table.frame[self.name].dropna()

    @property
    def declared(self) -> tuple[str, ...] | None:
        """Categories that the file declares, without the words for a missing value, or None."""
        own, missing = self.table.nominal.get(self.name), self.options.missing or ()
        return own and tuple(word for word in own if word not in missing)

    @cached_property
    def words(self) -> list[Any]:
        """Distinct values."""
        return self.column.unique().tolist()

    @property
    def distinct(self) -> bool:
        """Whether no word is repeated, in sufficiently many rows."""
        return len(self.words) >= max(len(self.column), FEWEST_NAMED)

    @cached_property
    def doubts(self) -> list[str]:
        """Reasons to read a column of many words as numbers."""
        if not self.distinct and len(self.words) <= MOST_CATEGORIES:
            return []
        declared = self.name in {*self.table.nominal, *self.table.text}
        return misread(self.column, self.options, declared)

    def fault(self, content: str, word: object) -> Reading:
        """Return the reading of a column that cannot be categories."""
        message = f"column {self.name!r} contains {content} such as {str(word)!r}"
        return Reading(fault=self.doubts[0] if self.doubts else message)


def _not_cells(seen: Seen) -> Reading | None:
    if (kind := seen.table.unusable.get(seen.name)) is None:
        return None
    content = f"contains {kind}, neither numbers nor categories"
    raise ValueError(about(seen.name, content, seen.options))


def _listed_as_categorical(seen: Seen) -> Reading | None:
    return None if seen.stated is None else Reading(seen.stated or seen.declared or ())


def _numbers(seen: Seen) -> Reading | None:
    from pandas.api.types import is_numeric_dtype

    if seen.declared is not None:
        return None
    may_be_words = seen.options.categorical == "auto" or seen.name in seen.table.text
    if not may_be_words or is_numeric_dtype(seen.table.frame[seen.name]):
        return Reading()
    cells = seen.column.drop_duplicates()
    return Reading() if read_numbers(cells, seen.options).notna().all() else None


def _dates(seen: Seen) -> Reading | None:
    dates = [word for word in seen.words if DATE.fullmatch(str(word).strip())]
    return seen.fault("dates or times", dates[0]) if 2 * len(dates) > len(seen.words) else None


def _names_of_rows(seen: Seen) -> Reading | None:
    if seen.doubts or seen.options.features or not seen.distinct:
        return None
    return Reading(left_out="has a different word in each row, and is left out")


def _too_many_words(seen: Seen) -> Reading | None:
    n = len(seen.words)
    return seen.fault(f"{n} categories", seen.words[0]) if n > MOST_CATEGORIES else None


def _categories(seen: Seen) -> Reading:
    return Reading(seen.declared or ())


#: Steps of the chain. The first step that accepts a column decides how the column is read.
CHAIN: tuple[Callable[[Seen], Reading | None], ...] = (
    _not_cells,
    _listed_as_categorical,
    _numbers,
    _dates,
    _names_of_rows,
    _too_many_words,
    _categories,
)


def readings(columns: Sequence[Seen]) -> tuple[dict[str, Reading], list[str]]:
    """Return the reading of each column that is not left out, by name, and warnings.

    Raises ValueError about all columns that have too many categories, or mostly dates or times.
    """
    read = {seen.name: next(filter(None, (s(seen) for s in CHAIN))) for seen in columns}
    options = columns[0].options if columns else FileOptions()
    keep = setting("categorical", [name for name, reading in read.items() if reading != Reading()])
    if faults := {name: reading.fault for name, reading in read.items() if reading.fault}:
        them = f"to keep {'them' if len(faults) > 1 else 'it'}, {keep}"
        raise ValueError("; ".join([*faults.values(), leave_out(options, *faults), them]))
    left_out = {name: reading.left_out for name, reading in read.items() if reading.left_out}
    remarks = [f"column {name!r} {why}; to keep it, {keep}" for name, why in left_out.items()]
    return {name: reading for name, reading in read.items() if name not in left_out}, remarks


def fit_categories(column: pd.Series, stated: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stated categories, or the sorted distinct words if no categories are stated.

    Raises ValueError if a cell is not one of the stated categories.
    """
    text = column.map(as_text, na_action="ignore")
    if stated:
        problem = f"{{}} is not one of {', '.join(stated)}"
        refuse_cells(text, text.notna() & ~text.isin(stated), problem)
        return stated
    return tuple(
        sorted(
            map(str, set(to_labels(text.dropna().unique()).tolist())),
            key=lambda value: (0, float(value), value) if is_number(value) else (1, 0.0, value),
        )
    )


def as_words(column: pd.Series, categories: Sequence[str]) -> pd.Series:
    """Return cells as text, without blanks around words that are no category.

    If all categories are integers, 2.0 becomes "2".
    """
    text = column.map(as_text, na_action="ignore").astype(object)
    other = {word: word.strip() for word in {*text.dropna()} - {*categories}}
    if all(map(WHOLE.fullmatch, categories)):
        whole = {word: WHOLE.fullmatch(bare) for word, bare in other.items()}
        other |= {word: str(int(match[1])) for word, match in whole.items() if match}
    return text.map(lambda word: other.get(word, word), na_action="ignore")


# Cells


def leave_out(options: FileOptions, *columns: str) -> str:
    """Return the advice to exclude columns by the key ``drop``."""
    it = "them" if len(columns) > 1 else "it"
    return f"to leave {it} out, {setting('drop', [*options.drop, *columns])}"


def about(column: object, content: str, options: FileOptions) -> str:
    """Return a message about the content of a column, with the advice to exclude the column."""
    return f"column {column!r} {content}; {leave_out(options, str(column))}"


def refuse_cells(column: pd.Series, bad: pd.Series, problem: str) -> None:
    """Raise ValueError about the first cell for which the mask `bad` is true.

    The value of the cell replaces the text {} in `problem`.
    """
    for row in column.index[bad]:
        text = problem.replace("{}", repr(column[row]), 1)
        raise ValueError(f"{cell_name(row, column.name)}: {text}")


def _number_pattern(options: FileOptions) -> re.Pattern:
    """Return a pattern of numbers with decimal mark, thousands separator and units of `options`."""
    decimal, group = re.escape(options.decimal), re.escape(options.thousands or "")
    digits = rf"([0-9]+({decimal}[0-9]*)?|{decimal}[0-9]+)([eE][+-]?[0-9]+)?"
    digits += rf"|[0-9]{{1,3}}({group}[0-9]{{3}})+({decimal}[0-9]*)?" if group else ""
    unit = f"({'|'.join(map(re.escape, options.units))})?"
    sign = rf"(?P<sign>[+{MINUS}-]?{unit}|{unit}\s*[+{MINUS}-]?)"
    return re.compile(rf"\s*{sign}\s*(?P<digits>{digits})\s*{unit}\s*")


def read_numbers(column: pd.Series, options: FileOptions) -> pd.Series:
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
    """Return a column as numbers; raise ValueError if a value is not a number."""
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(column):
        return column
    values = read_numbers(column, options)
    bad = column.index[values.isna() & column.notna()]
    if len(bad):
        cell, drop = str(column[bad[0]]), leave_out(options, str(column.name))
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


def misread(column: pd.Series, options: FileOptions, declared: bool) -> list[str]:
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
