"""Configuration keys for a user's table."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from mmbench.errors import address_fault, converted

#: Name or number of a column. Column 1 is the first column, column -1 is the last column.
Column = str | int
#: Declared values of nominal (categorical) columns, by the name of the column.
Nominal = Mapping[str, tuple[str, ...]]
#: Default maximum number of columns of a table, and size of a decompressed file in bytes.
MOST_COLUMNS, MOST_BYTES = 100_000, 2**30


@dataclass(frozen=True, eq=False)  # types are hashed, and dicts are not
class Forms:
    """Annotation with the JSON Schemas of the forms of a value in a YAML file.

    If `more` is true, the forms of the annotated type itself are valid, too. If `single` is true,
    an item of the annotated list type is valid in place of the list.
    """

    schemas: tuple[dict[str, Any], ...] = ()
    more: bool = False
    single: bool = False

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        """Return the JSON Schema; pydantic calls this method."""
        forms = list(self.schemas)
        if self.more or self.single:
            own = handler(core)
            forms += [own["items"], own] if self.single else [own]
        return forms[0] if len(forms) == 1 else {"anyOf": forms}


def one_or_list(item: dict[str, Any], **limits: Any) -> Forms:
    """Return the JSON Schemas of a value with the schema `item`, and of a list of such values."""
    return Forms((item, {"type": "array", "items": item, **limits}))


def one_or_more(value: Any) -> list[Any]:
    """Return `value` if it is a list, otherwise a list that contains only `value`."""
    return value if isinstance(value, list) else [value]


SVMLIGHT = (".svm", ".svmlight", ".libsvm")
PACKED = (".gz", ".bz2", ".xz", ".z")


def of_kind(value: Any, problem: str, kinds: Any = str | int) -> Any:
    """Return `value`; raise ValueError if its type is bool or is not in `kinds`."""
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise ValueError(f"{problem}, got {value!r}")
    return value


COLUMN = "a column is a whole number or a name in quotes"


def _parse_columns(value: Any) -> tuple[Column, ...]:
    return () if value is None else tuple(of_kind(c, COLUMN) for c in one_or_more(value))


def _parse_categorical(value: Any) -> Any:
    """Parse ``auto``, or columns with optional ordered categories (``{size: [small, large]}``)."""
    if value == "auto":
        return value
    pairs = []
    for item in [] if value is None else one_or_more(value):
        (column, values), *more = item.items() if isinstance(item, dict) else [(item, ())]
        if more or not isinstance(values, list | tuple):
            raise ValueError(f"must be a column or {{column: [values in order]}}, got {item!r}")
        problem = "a category is a number or a name in quotes"
        words = tuple(str(of_kind(word, problem, str | int | float)) for word in values)
        pairs.append((of_kind(column, COLUMN), words))
    return tuple(pairs)


def _plain_categorical(value: Any) -> Any:
    return value if value == "auto" else [{c: list(v)} if v else c for c, v in value]


def _parse_words(value: Any) -> Any:
    words = (str(of_kind(word, "must be a word in quotes")) for word in one_or_more(value))
    return None if value is None else tuple(words)


def _parse_units(value: Any) -> Any:
    units = _parse_words(value) or ()
    if any(not unit or re.search(r"[0-9+\-.,]", unit) for unit in units):
        raise ValueError(f"a unit cannot contain digits or any of + - . , got {value!r}")
    return units


def _check_encoding(value: Any) -> Any:
    problem = f"unknown encoding {value!r}; try utf-8 or latin-1"
    with converted(problem, LookupError, TypeError, to=ValueError):
        "".encode(value)
    return value


OneColumn = Annotated[
    Column | None, BeforeValidator(lambda value: of_kind(value, COLUMN, str | int | None))
]
Columns = Annotated[
    Any,
    BeforeValidator(_parse_columns),
    PlainSerializer(list),
    one_or_list({"type": ["string", "integer"]}),
]
Words = one_or_list({"type": "string"})
Character = Annotated[str, Field(min_length=1, max_length=1)]


class FileOptions(BaseModel):
    """Configuration keys for reading a table and for selecting its columns."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    #: Whether the first line of a CSV file contains the column names. If the first line is a data
    #: row, the columns are named ``"1"``, ``"2"``, ...
    header: bool = True
    #: Field separator of a CSV file, an ASCII character; a blank stands for any number of blanks.
    #: By default the most frequent of comma, semicolon and tab in the first line, or blanks.
    separator: Character | None = None
    #: Number of lines to skip at the beginning of a CSV file.
    skip_lines: Annotated[int, Field(ge=0)] = 0
    #: Encoding of a text file, ignored if the file starts with a byte order mark.
    encoding: Annotated[str, BeforeValidator(_check_encoding)] = "utf-8"
    #: Decimal mark, "." or ",".
    decimal: Literal[".", ","] = "."
    #: Thousands separator, or None if numbers have no thousands separators.
    thousands: Character | None = None
    #: Units before or after numbers, such as % and $. Units are removed from the numbers.
    units: Annotated[tuple[str, ...], BeforeValidator(_parse_units), Words] = ()
    #: Words that denote a missing value; by default an empty cell, ?, NA, N/A, NaN and nan in CSV,
    #: an unquoted ? in ARFF, and null in Parquet. A number, such as -999, also counts in numeric
    #: columns of every format; a category of `categorical` does not.
    missing: Annotated[tuple[str, ...] | None, BeforeValidator(_parse_words), Words] = None
    #: Column of row names, which is not a feature.
    index: OneColumn = None
    #: Feature columns. The default is all columns except the target and excluded columns.
    features: Columns = ()
    #: Columns to exclude.
    drop: Columns = ()
    #: Column of groups, such as patients. The rows of a group are either all training rows or all
    #: test rows.
    groups: OneColumn = None
    #: Treatment of rows without a label or a group: report an error, or exclude the rows.
    unlabelled: Literal["error", "drop"] = "error"
    #: Treatment of the weights of rows in an ARFF file: report an error, or count each row once.
    row_weights: Literal["error", "ignore"] = "error"
    #: Column of times. The split rule ``time_series`` sorts the rows by these times. The times are
    #: ISO dates or numbers. Numbers are read like the numbers in feature columns.
    time: OneColumn = None
    #: Categorical columns, or ``auto`` for all text columns. Columns that the file declares as
    #: categorical (nominal in ARFF, dictionary-encoded in Parquet) and text columns of Parquet
    #: files need not be listed. A text column in which all values are numbers is categorical only
    #: if the column is listed.
    categorical: Annotated[
        Any,
        BeforeValidator(_parse_categorical),
        PlainSerializer(_plain_categorical),
        one_or_list({"type": ["string", "integer", "object"]}),
    ] = ()
    #: Maximum number of columns.
    max_columns: Annotated[int, Field(ge=1)] = MOST_COLUMNS
    #: Maximum size of the decompressed file, in MB. If the dense table of an svmlight file would
    #: exceed this size, the table stays sparse.
    max_megabytes: Annotated[int, Field(ge=1)] = MOST_BYTES // 2**20

    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """Return the (key, value) pairs that differ from the defaults, for `DatasetRef.options`.

        Examples
        --------
        >>> FileOptions(decimal=",", drop="id").pairs()
        (('decimal', ','), ('drop', ('id',)))
        """
        fields = FileOptions.model_fields
        return tuple(sorted((k, v) for k, v in self if k in fields and v != fields[k].default))

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.thousands == self.decimal:
            raise ValueError(f"thousands and decimal cannot both be {self.decimal!r}")
        if not (self.separator or "").isascii():
            raise ValueError(f"separator must be an ASCII character, got {self.separator!r}")
        return self


def no_file(path: str, full: Path, kind: str = "file") -> str:
    """Return the message that there is no file or folder at a path; `full` is its absolute path."""
    other = "is a folder" if full.is_dir() else f"no such {kind}"
    return address_fault(path) or f"{full}: {other}"


def inner_path(path: str | Path) -> Path:
    """Return a path without a suffix that denotes compression, such as ``.gz``."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def knows_target(path: str) -> bool:
    """Return whether the format of a file defines the class labels."""
    return inner_path(path).suffix.lower() in (".npz", *SVMLIGHT)


def may_state_target(path: str) -> bool:
    """Return whether a file may state its target; an ARFF file does if it is a file of KEEL."""
    return knows_target(path) or inner_path(path).suffix.lower() in (".arff", ".dat")
