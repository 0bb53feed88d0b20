"""What a configuration may say about a table of the user's own."""

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
from mmbench.datasets.parsers.frames import Column

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
PACKED = (".gz", ".bz2", ".xz", ".z")


def _parse_columns(value: Any) -> tuple[Column, ...]:
    columns = tuple(one_or_more(value))
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, str | int):
            raise ValueError(f"a column is a name or a number, got {column!r}")
    return columns


def _parse_categorical(value: Any) -> Any:
    """Read ``auto``, or columns; ``{size: [small, large]}`` states the order of the values."""
    if value == "auto":
        return value
    pairs = []
    for item in one_or_more(value):
        (column, values), *more = item.items() if isinstance(item, dict) else [(item, ())]
        if more or not isinstance(values, list | tuple):
            raise ValueError(f"must be a column or {{column: [values in order]}}, got {item!r}")
        pairs.append((*_parse_columns([column]), tuple(map(str, values))))
    return tuple(pairs)


def _plain_categorical(value: Any) -> Any:
    if value == "auto":
        return value
    return [{column: list(values)} if values else column for column, values in value]


def _check_encoding(value: Any) -> Any:
    try:
        "".encode(value)
    except (LookupError, TypeError):
        raise ValueError(f"there is no encoding {value!r}, such as utf-8 or latin-1") from None
    return value


Columns = Annotated[Any, BeforeValidator(_parse_columns), PlainSerializer(list)]


class FileOptions(BaseModel):
    """How a table is read, and which of its columns."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    #: Whether the first line of a CSV file names the columns; else they are ``"1"``, ``"2"``, ...
    header: bool = True
    #: Of the fields of a CSV file; the commonest of comma, semicolon, tab in its first line, or
    #: blanks, when not given.
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    #: Of a text file.
    encoding: Annotated[str, BeforeValidator(_check_encoding)] = "utf-8"
    #: "." or ",".
    decimal: Literal[".", ","] = "."
    #: A column that names the rows; left out.
    index: Column | None = None
    #: The only ones that are features; all beside the target when not given.
    features: Columns = ()
    #: Left out.
    drop: Columns = ()
    #: A column of what belongs together, such as a patient: no split separates rows of one.
    groups: Column | None = None
    #: A column of numbers or ISO dates that orders the rows, for the rule ``time_series``.
    time: Column | None = None
    #: Of which values are categories; ``auto`` takes all that hold text. A column of a format that
    #: says so itself (nominal in ARFF, text in Parquet) need not be named.
    categorical: Annotated[
        Any, BeforeValidator(_parse_categorical), PlainSerializer(_plain_categorical)
    ] = ()

    def pairs(self) -> tuple[tuple[str, Any], ...]:
        """Return what differs from the defaults, as a `DatasetRef` holds it.

        Examples
        --------
        >>> FileOptions(decimal=",", drop="id").pairs()
        (('decimal', ','), ('drop', ('id',)))
        """
        stated = ((name, getattr(self, name)) for name in sorted(FileOptions.model_fields))
        return tuple(
            (name, value)
            for name, value in stated
            if value != FileOptions.model_fields[name].default
        )


class UserTable(FileOptions):
    """A table of the user's own: a file, or a data set of OpenML or scikit-learn."""

    #: CSV (or with other separators), ARFF, Parquet, npz or svmlight, compressed or not.
    path: str | None = None
    #: Number of a data set.
    openml: Annotated[int, Field(ge=1)] | None = None
    #: ``wine`` for what ``load_wine`` or ``fetch_wine`` returns.
    sklearn: str | None = None
    #: The column of the classes; needed where the format does not name one.
    target: Column | None = None

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
        """Where the table is: a path, ``openml:31`` or ``sklearn:wine``; None where none is."""
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
    """Return whether a file's format says which values are the classes."""
    return inner_path(path).suffix.lower() in (".npz", *SVMLIGHT)
