"""CSV and ARFF text as data frames; every fault is one line.

Columns of classes, categories and groups stay text, so that 01 and 1 stay apart.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import consecutive, is_number, read_bytes, to_labels
from mmbench.errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

BLANKS = r"\s+"
#: Text that needs no quotes in YAML.
WORD = re.compile(r"(?!(null|true|false|yes|no|on|off|y|n)$)[^\W\d]\w*", re.I)
#: A field between blanks.
QUOTED_OR_NOT = r'"((?:[^"]|"")*)"|(\S+)'
#: Default upper bound on the columns of a table.
MOST_COLUMNS = 100_000
#: Upper bound on the cells of a dense table, 8 GB.
MOST_CELLS = 2**30

#: A column by its name, or by its number: 1 is the first, -1 the last.
Column = str | int
#: Declared values of nominal columns, by name.
Nominal = Mapping[str, tuple[str, ...]]


def column_name(column: Column, names: Sequence[str], what: str = "column") -> str:
    """Return the name of a column; a ValueError names the nearest one if there is none.

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


def place(row: int, column: object) -> str:
    """Return a cell's place, as messages state it; `row` counts from 0."""
    return f"data row {row + 1}, column {column!r}"


def existing(columns: Sequence[Column], names: Sequence[str]) -> set[str]:
    """Return the names of the columns that exist."""
    n = len(names)
    found = (names[c - (c > 0)] if isinstance(c, int) and 0 < abs(c) <= n else c for c in columns)
    return {str(column) for column in found} & set(names)


def check_width(n_columns: int, most: int) -> None:
    """Refuse a table of more columns than allowed, before it is read."""
    if n_columns > most:
        raise ValueError(
            f"{n_columns} columns, and at most {most} are read; "
            f"{say('max_columns', n_columns)} to read them all"
        )


def say(key: str, value: object) -> str:
    """Return the advice to set a key of a table, in a file or on the command line."""
    if isinstance(value, list | tuple):
        words = [
            str(v) if isinstance(v, int) or WORD.fullmatch(v) else json.dumps(v) for v in value
        ]
        value = f"[{', '.join(words)}]"
    return f"say {key}: {value} (--set {shlex.quote(f'datasets[0].{key}={value}')})"


def check_names(names: list[str]) -> None:
    """Refuse column names that are empty, equal or numbers."""
    if "" in names:
        number = names.index("") + 1
        key = say("index", 1) if number == 1 else say("drop", [number])
        hint = f"to leave it out, {key}"
        raise ValueError(f"column {number} has no name in the first line; {hint}")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        hint = "; say header: false if the first line holds data" if is_number(name) else ""
        raise ValueError(f"two columns are named {name!r}{hint}")
    if len(names) > 1 and all(map(is_number, names)):
        hint = "it must hold the names of the columns, or say header: false"
        raise ValueError(f"the first line holds numbers; {hint}")


def parse_rows(
    text: str, names: list[str], keep_text: Sequence[Column], missing: Sequence[str], **more: Any
) -> pd.DataFrame:
    """Return rows of fields as a data frame; `more` are `sep` and `decimal` of pandas."""
    import pandas as pd

    if not text.strip():
        raise ValueError("the file has no rows")
    _check_fields(text, len(names), more["sep"])
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            header=None,
            names=names,
            index_col=False,
            skipinitialspace=True,
            na_values=list(missing),
            keep_default_na=False,
            low_memory=False,
            dtype=dict.fromkeys(existing(keep_text, names), str),
            **more,
        )
    except pd.errors.ParserError as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise ValueError(f"the rows cannot be cut into fields ({reason})") from error
    for name in frame.select_dtypes("object").columns:  # pandas keeps blanks behind a word
        cells = frame[name].map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        frame[name] = cells.mask(cells.isin(list(missing)))
    return frame


def _check_fields(text: str, wanted: int, separator: str) -> None:
    """Refuse a row with another number of fields; pandas would fill a short one."""
    lines = filter(str.strip, text.split("\n"))
    if separator == BLANKS:
        counts = (len(re.findall(QUOTED_OR_NOT, line)) for line in lines)
    elif '"' in text:
        reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
        counts = (len(row) for row in reader if row and (len(row) > 1 or row[0].strip()))
    else:
        counts = (line.count(separator) + 1 for line in lines)
    try:
        for row, count in enumerate(counts, 1):
            if count != wanted:
                fields = f"a row does not have {wanted} fields"
                raise ValueError(f"{fields} (data row {row} has {count})")
    except csv.Error as error:
        raise ValueError(f"a line cannot be cut into fields ({error})") from error


# ARFF


class Attribute(NamedTuple):
    """A column of an ARFF file; ``values`` is None for types without declared values."""

    name: str
    values: tuple[str, ...] | None
    is_number: bool


#: Types in lower case.
ARFF_NUMBERS = ("numeric", "real", "integer")
ARFF_TEXT = ("string", "date")
#: One value of an ARFF line, quoted by ' or " or bare, and the blanks or comma behind it; or the
#: beginning of a comment.
TOKEN = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s,%'"{}][^\s,%{}]*)|(?=,))\s*(,|(?=%|\}|$)|)"""
)
#: Text in which each row is values between commas, without quotes, comments or blanks inside.
NOT_PLAIN = re.compile(r"""['"%\\{}]|[^\s,][ \t]+[^\s,]""")


def read_arff(
    text: str, missing: Sequence[str] = (), max_columns: int = MOST_COLUMNS
) -> tuple[pd.DataFrame, Nominal]:
    """Read ARFF text, dense or sparse: its rows, and the declared values of nominal attributes.

    Values of attributes other than numbers stay text. An unquoted ``?`` is missing, and the words
    of `missing`.
    """
    head, body = _arff_parts(text)
    attributes = [_attribute(line) for line in head]
    names = [attribute.name for attribute in attributes]
    check_width(len(names), max_columns)
    if not names:
        raise ValueError("not an ARFF file: it has no @attribute or no @data line")
    check_names([*names, "an attribute"])  # numbers may be names: they are declared
    if not body.strip():
        raise ValueError("the file has no rows")
    nominal = {a.name: a.values for a in attributes if a.values is not None}
    if not NOT_PLAIN.search(body):
        text_columns = [a.name for a in attributes if not a.is_number]
        return parse_rows(body, names, text_columns, ["?", *missing], sep=","), nominal
    lines = filter(None, map(str.strip, body.split("\n")))
    rows = [_arff_row(line, k, attributes, missing) for k, line in enumerate(lines, 1)]
    if not rows:
        raise ValueError("the file has no rows")
    return _arff_frame(rows, attributes), nominal


def _arff_parts(text: str) -> tuple[list[str], str]:
    """Return the lines of attributes and the text below @data without lines of comments."""
    head: list[str] = []
    lines = iter(text.splitlines())
    for line in map(str.strip, lines):
        if re.match(r"@attribute\b", line, re.I):
            head.append(line[len("@attribute") :].strip())
        elif re.match(r"@data\b", line, re.I):
            body = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))
            return head, "\n".join(body)
    return [], ""


def _attribute(line: str) -> Attribute:
    """Return an attribute from ``name type``, either of them perhaps quoted."""
    match = TOKEN.match(line)
    name = next((part for part in match.groups()[:3] if part is not None), "") if match else ""
    kind = line[match.end() :].strip() if match else ""
    if not kind.startswith("{"):
        word = re.split(r"[\s%]", kind, maxsplit=1)[0].lower()
        if name and word not in (*ARFF_NUMBERS, *ARFF_TEXT):
            raise ValueError(f"attribute {name!r}: type {word!r} is not read")
        return Attribute(_unescaped(name), None, word in ARFF_NUMBERS)
    values, end = _tokens(kind, 1)
    if kind[end : end + 1] != "}":
        raise ValueError(f"attribute {name!r}: its values do not end in '}}'")
    return Attribute(_unescaped(name), tuple(value for value, _ in values), False)


def _tokens(line: str, start: int = 0) -> tuple[list[tuple[str, bool]], int]:
    """Return (value, whether it is quoted) of each value of a line, and the end position."""
    found: list[tuple[str, bool]] = []
    position, comma = start, False
    while match := TOKEN.match(line, position):
        single, double, bare, separator = match.groups()
        quoted = single if single is not None else double
        found.append((_unescaped(quoted) if quoted is not None else bare or "", quoted is not None))
        position, comma = match.end(), separator == ","
    if comma:
        found.append(("", False))  # nothing behind the last comma
    return found, position + len(line[position:]) - len(line[position:].lstrip())


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _arff_row(
    line: str, number: int, attributes: list[Attribute], missing: Sequence[str]
) -> dict[int, str | None]:
    """Return the stated values of one row by column; None if one is missing."""
    sparse = line.startswith("{")
    tokens, end = _tokens(line, int(sparse))
    if sparse and line[end : end + 1] != "}":
        raise ValueError(f"data row {number}: does not end in '}}'")
    rest = line[end + sparse :].strip()
    if rest and not rest.startswith("%"):
        raise ValueError(f"data row {number}: {rest[:20]!r} cannot be read")
    values = [
        None if (not quoted and value == "?") or value in missing else value
        for value, quoted in tokens
    ]
    if not sparse:
        if len(tokens) != len(attributes):
            few = f"a row does not have {len(attributes)} fields"
            raise ValueError(f"{few} (data row {number} has {len(tokens)})")
        return dict(enumerate(values))
    indices = [value for value, _ in tokens[::2]]
    if len(tokens) % 2 or not all(re.fullmatch("[0-9]+", index) for index in indices):
        raise ValueError(f"data row {number}: is not {{index value, ...}}")
    row = dict(zip(map(int, indices), values[1::2], strict=True))
    if len(row) < len(indices):
        raise ValueError(f"data row {number}: names an attribute twice")
    if row and max(row) >= len(attributes):
        raise ValueError(f"data row {number}: there is no attribute {max(row)}, counted from 0")
    return row


def _arff_frame(rows: list[dict[int, str | None]], attributes: list[Attribute]) -> pd.DataFrame:
    """Return a data frame; a value that a sparse row omits is 0, or the first declared value."""
    import pandas as pd

    n_numbers = sum(attribute.is_number for attribute in attributes)
    if len(rows) * n_numbers > MOST_CELLS:
        size = f"{len(rows)} rows of {n_numbers} numbers"
        raise ValueError(f"{size} do not fit in memory; a svmlight file is read as sparse")
    columns = {
        a.name: np.zeros(len(rows))
        if a.is_number
        else np.full(len(rows), a.values[0] if a.values else "0", dtype=object)
        for a in attributes
    }
    for i, row in enumerate(rows):
        for j, value in row.items():
            if attributes[j].is_number and value is not None and not is_number(value):
                needed = f"text {value!r} where a number is needed"
                hint = f"if it marks a missing value, {say('missing', [value])}"
                raise ValueError(f"{place(i, attributes[j].name)}: {needed}; {hint}")
            columns[attributes[j].name][i] = value  # None becomes NaN among numbers
    return pd.DataFrame(columns)


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
    """Parse a file of numbers and one class, as OpenML serves it.

    Parameters
    ----------
    target : str, optional
        Class column, the last one by default.
    skip : sequence of str
        Columns that are neither class nor attribute.
    decimals : int, optional
        Decimals of the original text, if a re-encoded file has more digits.
    missing : {"refuse", "drop"} or float
        Treatment of missing values: refuse, drop the row, or code them as a number.
    codes, relabel : mapping
        Values of nominal attributes as numbers; classes in the file as classes.
    n_train : int, optional
        Number of rows at the beginning that are the official training set.
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
    for name in values.select_dtypes(exclude="number").columns:
        values[name] = values[name].map(lambda cell: (codes or {}).get(cell, cell))
    X = values.to_numpy(dtype=np.float64)
    if not isinstance(missing, str):
        X = np.where(np.isnan(X), float(missing), X)
    if np.isnan(X).any():
        raise ValueError(f"{paths[0].name}: missing values")
    table = {str(old): str(new) for old, new in (relabel or {}).items()}
    y = to_labels(table.get(str(cell), str(cell)) for cell in frame[label])
    X = (X if decimals is None else np.round(X, decimals)).astype(dtype)
    return Parsed(X, y, consecutive([n_train, len(y) - n_train]) if n_train else None)
