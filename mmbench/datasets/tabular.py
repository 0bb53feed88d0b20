"""CSV and ARFF files as data frames of text and numbers; every fault is one line."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: Cells that mean "no value". pandas would also take "None" and "null", which may be classes.
MISSING_MARKS = ["", "?", "NA", "N/A", "NaN", "nan"]
DELIMITERS = ",;\t"


def read_table(path: Path, text_columns: tuple[str, ...] = ()) -> pd.DataFrame:
    """Read a CSV file (with column names in its first line) or an ARFF file.

    Parameters
    ----------
    path : Path
        ``.arff`` files are read as ARFF, all others as CSV; the separator of a CSV file is the
        commonest of comma, semicolon and tab in its first line.
    text_columns : tuple of str
        Columns that stay text, such as the target.

    Raises
    ------
    ValueError
        If the file cannot be read as a table; the message is one line.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise ValueError("the file is empty")
    if path.suffix.lower() == ".arff":
        return _read_arff(text, text_columns)
    return _read_csv(text, text_columns)


def _read_csv(text: str, text_columns: tuple[str, ...]) -> pd.DataFrame:
    first = text.lstrip().splitlines()[0]
    delimiter = max(DELIMITERS, key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    _check_names(names)
    body = text.lstrip().split("\n", 1)
    return _parse_body(body[1] if len(body) > 1 else "", names, text_columns, delimiter, '"')


def _read_arff(text: str, text_columns: tuple[str, ...]) -> pd.DataFrame:
    header, names, lines = True, [], []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("%"):
            continue
        if not header:
            lines.append(line)
        elif line.lower().startswith("@attribute"):
            names.append(_attribute_name(line))
        elif line.lower().startswith("@data"):
            header = False
    if header or not names:
        raise ValueError("not an ARFF file: it has no @attribute or no @data line")
    if lines and lines[0].startswith("{"):
        raise ValueError("sparse ARFF rows ({index value, ...}) are not supported")
    _check_names(names)
    return _parse_body("\n".join(lines), names, text_columns, ",", "'")


def _attribute_name(line: str) -> str:
    """Return the name in ``@attribute name type``; names with blanks are quoted."""
    rest = line[len("@attribute") :].strip()
    if rest[:1] in "'\"":
        return rest[1:].split(rest[0], 1)[0]
    return rest.split(None, 1)[0].split("{", 1)[0]


def _check_names(names: list[str]) -> None:
    for k, name in enumerate(names):
        if not name:
            raise ValueError(f"column {k + 1} has no name in the first line")
        if name in names[:k]:
            raise ValueError(f"two columns are named {name!r}")
    if len(names) > 1 and all(_is_number(name) for name in names):
        raise ValueError("the first line holds numbers; it must hold the names of the columns")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_body(
    text: str, names: list[str], text_columns: tuple[str, ...], delimiter: str, quote: str
) -> pd.DataFrame:
    import pandas as pd

    if not text.strip():
        raise ValueError("the file has no rows")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                header=None,
                names=names,
                index_col=False,
                sep=delimiter,
                quotechar=quote,
                skipinitialspace=True,
                dtype={name: str for name in text_columns if name in names},
                na_values=MISSING_MARKS,
                keep_default_na=False,
                low_memory=False,
            )
    except pd.errors.ParserWarning as error:  # the first row is too long; it names none
        row = next(csv.reader(io.StringIO(text.lstrip()), delimiter=delimiter, quotechar=quote))
        reason = f"data row 1 has {len(row)}"
        raise ValueError(f"a row does not have {len(names)} fields ({reason})") from error
    except pd.errors.ParserError as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        reason = reason.replace("in line", "in data row")
        raise ValueError(f"a row does not have {len(names)} fields ({reason})") from error
