"""Keys of a configuration for a table of the user's own."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from mmbench.datasets.card import one_or_more
from mmbench.datasets.parsers.frames import MOST_COLUMNS, Column
from mmbench.datasets.parsers.text import MOST_BYTES

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
PACKED = (".gz", ".bz2", ".xz", ".z")


def _parse_column(value: Any) -> Any:
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        hint = f"; its name in quotes, or {int(value)}?" if isinstance(value, float) else ""
        raise ValueError(f"a column is a name or a number, got {value!r}{hint}")
    return value


def _parse_columns(value: Any) -> tuple[Column, ...]:
    return tuple(map(_parse_column, one_or_more(value)))


def _parse_categorical(value: Any) -> Any:
    """Read ``auto``, or columns; ``{size: [small, large]}`` states the order of the values."""
    if value == "auto":
        return value
    pairs = []
    for item in one_or_more(value):
        (column, values), *more = item.items() if isinstance(item, dict) else [(item, ())]
        if more or not isinstance(values, list | tuple):
            raise ValueError(f"must be a column or {{column: [values in order]}}, got {item!r}")
        pairs.append((_parse_column(column), tuple(map(str, values))))
    return tuple(pairs)


def _plain_categorical(value: Any) -> Any:
    if value == "auto":
        return value
    return [{column: list(values)} if values else column for column, values in value]


def _parse_words(value: Any) -> Any:
    if value is None:
        return None
    words = tuple(one_or_more(value))
    for word in words:
        if isinstance(word, bool) or not isinstance(word, str | int):
            raise ValueError(f"a word in quotes is needed, got {word!r}")
    return tuple(map(str, words))


def _check_encoding(value: Any) -> Any:
    try:
        "".encode(value)
    except (LookupError, TypeError):
        raise ValueError(f"there is no encoding {value!r}, such as utf-8 or latin-1") from None
    return value


OneColumn = Annotated[Column | None, BeforeValidator(_parse_column)]
Columns = Annotated[Any, BeforeValidator(_parse_columns), PlainSerializer(list)]
Character = Annotated[str, Field(min_length=1, max_length=1)]


class FileOptions(BaseModel):
    """Keys for reading a table and for choosing its columns."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    #: Whether the first line of a CSV file names the columns; else they are ``"1"``, ``"2"``, ...
    header: bool = True
    #: Separator of the fields of a CSV file; by default the commonest of comma, semicolon and tab
    #: in its first line, or blanks.
    separator: Character | None = None
    #: Encoding of a text file; a byte order mark goes before it.
    encoding: Annotated[str, BeforeValidator(_check_encoding)] = "utf-8"
    #: Decimal mark, "." or ",".
    decimal: Literal[".", ","] = "."
    #: Mark between groups of three digits; none by default.
    thousands: Character | None = None
    #: Words for a missing value. By default an empty cell, ?, NA, N/A, NaN and nan in a CSV file,
    #: an unquoted ? in an ARFF file, and nulls in a Parquet file.
    missing: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_parse_words),
        PlainSerializer(lambda words: None if words is None else list(words)),
    ] = None
    #: A column that names the rows; left out.
    index: OneColumn = None
    #: The features; by default all columns beside the target.
    features: Columns = ()
    #: Columns that are left out.
    drop: Columns = ()
    #: A column of groups, such as patients: no split separates rows of one group.
    groups: OneColumn = None
    #: Whether rows without a label or a group are an error or are left out.
    unlabelled: Literal["error", "drop"] = "error"
    #: A column of numbers or ISO dates that orders the rows, for the rule ``time_series``.
    time: OneColumn = None
    #: Columns of categories; ``auto`` takes all columns of text. A column whose format declares
    #: categories (nominal in ARFF, text in Parquet) need not be named.
    categorical: Annotated[
        Any, BeforeValidator(_parse_categorical), PlainSerializer(_plain_categorical)
    ] = ()
    #: Upper bound on the number of columns.
    max_columns: Annotated[int, Field(ge=1)] = MOST_COLUMNS
    #: Upper bound on the size of the file, unpacked.
    max_megabytes: Annotated[int, Field(ge=1)] = MOST_BYTES // 2**20

    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """Return the values that differ from the defaults, as a `DatasetRef` holds them.

        Examples
        --------
        >>> FileOptions(decimal=",", drop="id").pairs()
        (('decimal', ','), ('drop', ('id',)))
        """
        fields = FileOptions.model_fields
        stated = ((key, value) for key, value in self if key in fields)
        return tuple(sorted((k, value) for k, value in stated if value != fields[k].default))

    @model_validator(mode="after")
    def _two_marks(self) -> Self:
        if self.thousands == self.decimal:
            raise ValueError(f"thousands and decimal cannot both be {self.decimal!r}")
        return self


class UserTable(FileOptions):
    """A table of the user's own: a file, or a data set of OpenML or scikit-learn."""

    #: CSV (or with other separators), ARFF, Parquet, npz or svmlight, compressed or not.
    path: str | None = None
    #: Number of a data set.
    openml: Annotated[int, Field(ge=1)] | None = None
    #: ``wine`` for the result of ``load_wine`` or ``fetch_wine``.
    sklearn: str | None = None
    #: The column of the classes; needed if the format does not name one.
    target: OneColumn = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        stated = [key for key in ("path", "openml", "sklearn") if getattr(self, key) is not None]
        if len(stated) > 1:
            raise ValueError(f"{' and '.join(stated)} exclude each other")
        said = [name for name, _ in self.pairs()] + ["target"] * (self.target is not None)
        if said and not stated:
            raise ValueError(f"{said[0]} is said of a table: path, openml or sklearn is missing")
        if self.path is not None and self.target is None and not knows_target(self.path):
            raise ValueError("needs a target: the column of the file that holds the classes")
        return self

    @property
    def source(self) -> str | None:
        """Place of the table: a path, ``openml:31`` or ``sklearn:wine``; None for a card."""
        if self.openml is not None:
            return f"openml:{self.openml}"
        return self.path if self.sklearn is None else f"sklearn:{self.sklearn}"

    @property
    def table_name(self) -> str:
        """A name: ``my`` of ``data/my.csv.gz``, ``openml_31``, ``sklearn_wine``."""
        source = str(self.source)
        return inner_path(source).stem if self.path else source.replace(":", "_")


def inner_path(path: str | Path) -> Path:
    """Return a path without the ending of a compressed file."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


def knows_target(path: str) -> bool:
    """Return whether a file's format names the classes."""
    return inner_path(path).suffix.lower() in (".npz", *SVMLIGHT)
