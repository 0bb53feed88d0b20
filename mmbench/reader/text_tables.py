"""Convert CSV and ARFF text to data frames.

Columns of class labels, categories and groups are read as text, so that 01 and 1 are distinct.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmbench.errors import converted, extra
from mmbench.reader.advice import cell_name, check_names, check_width, setting, wrong_fields
from mmbench.reader.file_text import is_number
from mmbench.reader.keys import MOST_COLUMNS, Nominal

if TYPE_CHECKING:
    import pandas as pd

BLANKS = r"\s+"
#: Pattern of one field, quoted or unquoted, in a line with blanks between the fields.
QUOTED_OR_NOT = r'"((?:[^"]|"")*)"|(\S+)'
#: Maximum number of cells (rows x columns) of a dense table. A table with this number of cells
#: needs 8 GB as float64.
MOST_CELLS = 2**30


def parse_rows(
    text: str, names: list[str], keep_text: Nominal, missing: Sequence[str], **more: Any
) -> pd.DataFrame:
    """Return CSV text without header as a data frame; `more` are arguments of `pandas.read_csv`.

    The columns in `keep_text` are read as text. The words in `missing` denote missing values,
    unless they are categories that `keep_text` states for the column.
    """
    import pandas as pd

    if not text.strip():
        raise ValueError("the file has no rows")
    for row, count in enumerate(field_counts(text, more["sep"]), 1):
        if count != len(names):  # pandas would fill short rows with missing values
            raise ValueError(f"{wrong_fields(len(names), row, count)}; correct or remove the row")
    problem = "the rows cannot be split into fields; correct the quotation marks"
    with converted(problem, pd.errors.ParserError, to=ValueError):
        frame = pd.read_csv(
            io.StringIO(text),
            header=None,
            names=names,
            index_col=False,
            skipinitialspace=True,
            na_values={name: list(missing) for name in names if name not in keep_text},
            keep_default_na=False,
            low_memory=False,
            dtype=dict.fromkeys(keep_text, str),
            **more,
        )
    # remove the blanks after words, which pandas keeps
    for name in frame.columns[[pd.api.types.is_string_dtype(kind) for kind in frame.dtypes]]:
        frame[name] = clean_words(frame[name], missing, keep_text.get(name, ()))
    return frame


def as_pandas(data: Any) -> Any:
    """Return data as they are, or a table of polars or pyarrow as a data frame of pandas."""
    with extra("parquet", "a table that is not of pandas"):
        return data.to_pandas() if hasattr(data, "to_pandas") else data


def neither(column: pd.Series) -> str:
    """Return a message if a column of a data frame has cells that are neither numbers nor words."""
    from pandas.api.types import is_hashable

    kind = {"m": "durations", "c": "complex numbers"}.get(column.dtype.kind, "")
    if column.dtype.kind == "O" and not column.map(is_hashable).all():
        kind = "lists"
    return f"column {column.name!r} contains {kind}, neither numbers nor words" if kind else ""


def clean_words(column: pd.Series, missing: Sequence[str], known: Sequence[str] = ()) -> pd.Series:
    """Remove blanks around the words of a column, and replace the words in `missing` by NaN.

    The words in `known` are not changed.
    """
    column = column.astype(object) if column.dtype == "category" else column
    cells = column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    return column.where(column.isin(known), cells.mask(cells.isin({*missing} - {*known})))


def without_bytes(column: pd.Series, encoding: str, errors: str = "replace") -> pd.Series:
    """Return a column in which bytes are decoded to text."""
    return column.map(lambda v: v.decode(encoding, errors) if isinstance(v, bytes) else v)


def without_codes(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Return a data frame in which NaN replaces the numbers in `missing`.

    For a column of float32, the numbers in `missing` are rounded to float32 before the comparison.
    """
    codes = np.array([float(word) for word in missing if is_number(word)])
    single = codes[np.abs(codes) <= np.finfo(np.float32).max].astype(np.float32)
    frame = frame.copy(deep=False)
    for name in frame.select_dtypes(exclude="bool") if len(codes) else ():
        known = single if str(frame[name].dtype).lower() == "float32" else codes
        frame[name] = frame[name].mask(frame[name].isin(known))
    return frame


def field_counts(text: str, separator: str) -> Iterator[int]:
    """Return an iterator over the number of fields of each row of CSV text."""
    lines = filter(str.strip, text.split("\n"))
    if separator == BLANKS:
        return (len(re.findall(QUOTED_OR_NOT, line)) for line in lines)
    if '"' in text:
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        return (len(row) for row in reader if row and (len(row) > 1 or row[0].strip()))
    return (line.count(separator) + 1 for line in lines)


# ARFF


class Attribute(NamedTuple):
    """An attribute (column) of an ARFF file; ``values`` is None if the attribute is not nominal."""

    name: str
    values: tuple[str, ...] | None
    is_number: bool


class ArffTable(NamedTuple):
    """The content of an ARFF file."""

    frame: pd.DataFrame
    #: Declared values of nominal attributes.
    nominal: Nominal
    #: The only output of a file of KEEL, otherwise None.
    target: str | None
    #: Attributes of a file of KEEL that are neither inputs nor outputs.
    ignored: tuple[str, ...]


#: Names of the numeric types of ARFF, in lower case.
ARFF_NUMBERS = ("numeric", "real", "integer")
#: Unquoted words that denote a missing value in ARFF files of Weka and KEEL.
ARFF_MISSING = ("?", "<null>")
#: Pattern of one value of an ARFF line, quoted or not, with the blanks or comma after the value. A
#: comment, which begins with an unquoted ``%``, is not part of a match.
TOKEN = re.compile(
    r"""\s*(?:(['"])((?:(?!\1)[^\\]|\\.)*)\1|([^\s,%'"{}][^\s,%{}]*)|(?=,))\s*(,|(?=%|\}|$)|)"""
)
#: Pattern `TOKEN` for files of KEEL, in which only commas separate values.
KEEL_TOKEN = re.compile(
    TOKEN.pattern.replace(r"[^\s,%{}]*)", r"(?:[^,%{}]*[^\s,%{}])?)"), TOKEN.flags
)
#: Pattern of a line that only the heads of KEEL's files have: the names of inputs or outputs.
KEEL_LINE = re.compile(r"@(in|out)puts?\b(.*)", re.I)
#: Pattern of quotes, comments, braces, backslashes, and blanks inside values. If ARFF data do not
#: match NOT_PLAIN, the data consist of plain values separated by commas.
NOT_PLAIN = re.compile(r"""['"%\\{}]|[^\s,][ \t]+[^\s,]""")
#: Pattern of the weight of a row, such as ``{0.5}``, at the end of a line of ARFF data.
ROW_WEIGHT = re.compile(r"""(?<=.)\s*,?\s*\{\s*([0-9.eE+-]+)\s*\}\s*(%[^'"]*)?$""")


def read_arff(
    text: str,
    missing: Sequence[str] = (),
    max_columns: int = MOST_COLUMNS,
    row_weights: str = "error",
) -> ArffTable:
    """Return the rows of dense or sparse ARFF text, and what its head states of the attributes.

    Values of attributes that are not numeric are read as text. The words in `missing`, and the
    words in `ARFF_MISSING` if they are not quoted, denote missing values. If `row_weights` is
    "error", a row with a weight raises ValueError. If `row_weights` is "ignore", weights are
    ignored.
    """
    import pandas as pd

    # `splitlines` would also split at characters such as U+0085 and U+2028 inside values
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text)]
    end = next((k for k, line in enumerate(lines) if re.match(r"@data\b", line, re.I)), 0)
    head = [re.match(r"@attribute\b\s*(.*)", line, re.I) for line in lines[:end]]
    roles = [match for match in map(KEEL_LINE.match, lines[:end]) if match]
    token = KEEL_TOKEN if roles else TOKEN
    attributes = [_attribute(match[1], token) for match in head if match]
    names = [attribute.name for attribute in attributes]
    check_width(len(names), max_columns)
    if not names:
        raise ValueError("not an ARFF file: it has no @attribute or no @data line")
    # ARFF allows numbers as names of all attributes, but `check_names` requires a name that is not
    # a number
    check_names([*names, "an attribute"])
    lines = [line for line in lines[end + 1 :] if line and not line.startswith("%")]
    for k, line in enumerate(lines):
        if "{" in line and (match := ROW_WEIGHT.search(line)):
            lines[k] = line[: match.start()]
            if row_weights == "error":
                hint = f"to ignore weights, {setting('row_weights', 'ignore')}"
                raise ValueError(f"data row {k + 1} has the weight {match[1]}; {hint}")
    nominal = {a.name: a.values for a in attributes if a.values is not None}
    if NOT_PLAIN.search(body := "\n".join(lines)):
        if len(lines) * len(names) > MOST_CELLS:
            size = f"{len(lines)} rows of {len(names)} values do not fit in memory"
            raise ValueError(f"{size}; save the table as a sparse svmlight file")
        omitted = [(*(a.values or ()), "0")[0] for a in attributes]
        rows = [_arff_row(line, k, omitted, missing, token) for k, line in enumerate(lines, 1)]
        frame = pd.DataFrame(rows, columns=names, dtype=object)
    else:
        text_columns: Nominal = {a.name: () for a in attributes if not a.is_number}
        frame = parse_rows(body, names, text_columns, [*ARFF_MISSING, *missing], sep=",")
    for a in attributes:
        if a.is_number and frame[a.name].dtype.kind not in "iuf":
            frame[a.name] = _arff_numbers(frame[a.name], missing)
    return ArffTable(frame, nominal, *_roles(names, roles))


def _roles(names: list[str], lines: list[re.Match]) -> tuple[str | None, tuple[str, ...]]:
    """Return the only output of a file of KEEL, or None, and attributes without a role.

    If the head names only inputs, the other attributes are outputs.
    """
    stated: dict[str, list[str]] = {"in": [], "out": []}
    for line in lines:
        stated[line[1].lower()] += [name for name, _ in _tokens(line[2], KEEL_TOKEN)[0]]
    inputs, outputs = stated.values()
    others = [name for name in names if inputs and name not in inputs]
    targets = [name for name in outputs or others if name in names]
    ignored = [name for name in others if outputs and name not in outputs]
    return targets[0] if len(targets) == 1 else None, tuple(ignored)


def _attribute(line: str, token: re.Pattern) -> Attribute:
    """Return the attribute that a line ``name type`` of an ARFF file declares."""
    match = TOKEN.match(line)
    name, _ = _value(match) if match else ("", False)
    kind = line[match.end() :].strip() if match else ""
    if kind.startswith("{"):
        values, rest = _tokens(kind, token, 1)
        if not rest.startswith("}"):
            raise ValueError(f"attribute {name!r}: the closing '}}' is missing")
        return Attribute(name, tuple(value for value, _ in values), False)
    word = re.split(r"[\s%[]", kind, maxsplit=1)[0].lower()  # KEEL adds a range, as in real[0,1]
    if name and word not in (*ARFF_NUMBERS, "string", "date"):
        raise ValueError(f"attribute {name!r} has the unsupported type {word!r}")
    return Attribute(name, None, word in ARFF_NUMBERS)


def _value(match: re.Match) -> tuple[str, bool]:
    """Return the value in a match of the pattern `TOKEN`, and whether the value is quoted."""
    quote, quoted, bare, _ = match.groups()
    return (re.sub(r"\\(.)", r"\1", quoted), True) if quote else (bare or "", False)


def _tokens(line: str, token: re.Pattern, start: int = 0) -> tuple[list[tuple[str, bool]], str]:
    """Return the values in an ARFF line as pairs (value, is quoted), and the rest of the line."""
    matches: list[re.Match] = []
    while match := token.match(line, start):
        matches.append(match)
        start = match.end()
    found = [_value(match) for match in matches]
    if matches and matches[-1][4] == ",":
        found.append(("", False))  # the value after the last comma is empty
    return found, line[start:].strip()


def _arff_row(
    line: str, number: int, omitted: list[str], missing: Sequence[str], token: re.Pattern
) -> list[str | None]:
    """Return the values of one row of ARFF data, with None for a missing value.

    If a sparse row omits attribute number k, the value is ``omitted[k]``.
    """
    sparse = line.startswith("{")
    tokens, rest = _tokens(line, token, int(sparse))
    if sparse and not rest.startswith("}"):
        raise ValueError(f"data row {number}: the closing '}}' is missing")
    rest = rest[sparse:].strip()
    if rest and not rest.startswith("%"):
        raise ValueError(f"data row {number}: {rest[:20]!r} cannot be read")
    values = [
        None if (not quoted and value in ARFF_MISSING) or value in missing else value
        for value, quoted in tokens
    ]
    if not sparse:
        if len(tokens) != len(omitted):
            raise ValueError(wrong_fields(len(omitted), number, len(tokens)))
        return values
    indices = [value for value, _ in tokens[::2]]
    if len(tokens) % 2 or not all(re.fullmatch("[0-9]+", index) for index in indices):
        raise ValueError(f"data row {number}: a sparse row is {{number value, ...}}")
    row = dict(zip(map(int, indices), values[1::2], strict=True))
    if len(row) < len(indices):
        raise ValueError(f"data row {number}: an attribute has two values")
    if row and max(row) >= len(omitted):
        raise ValueError(f"data row {number}: no attribute {max(row)}, counted from 0")
    return [row.get(k, value) for k, value in enumerate(omitted)]


def _arff_numbers(column: pd.Series, missing: Sequence[str]) -> pd.Series:
    """Return a text column as numbers; raise ValueError if a value is not a number."""
    import pandas as pd

    for row, cell in enumerate(column):
        if isinstance(cell, str | bool) and not is_number(str(cell)):
            hint = f"if it marks a missing value, {setting('missing', [*missing, str(cell)])}"
            raise ValueError(f"{cell_name(row, column.name)}: {cell!r} is not a number; {hint}")
    return pd.to_numeric(column)
