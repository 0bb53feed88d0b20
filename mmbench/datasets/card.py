"""Data set cards: description, sources and expected content of each data set.

A card is one YAML file in ``cards/``; adding a data set adds that one file.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins

#: libyaml's parser if PyYAML has it: seven times as fast on all cards.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Label = int | str
#: Upper bound on the bytes of a download whose size no card states, and on the bytes per value.
MOST_UNKNOWN, BYTES_PER_VALUE = 2**28, 32
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def one_or_more(value: Any) -> list[Any]:
    """Read ``rbf`` as ``[rbf]``."""
    return value if isinstance(value, list) else [value]


def check_path(path: str) -> str:
    """Refuse a path that could lead out of the folder below which it is meant."""
    parts = path.split("/")
    if not all(part.strip(". ") for part in parts) or any(c in path for c in "\\:\0"):
        raise ValueError(f"must lie below the store, as name/file.csv does, got {path!r}")
    return path


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CardFile(_Strict):
    """A file known byte by byte.

    ``path`` is its place in the store and in a mirror. ``sha256`` lists the accepted hashes: a file
    that was unpacked and packed again has another one than the original. ``size`` is the number of
    bytes, at most.
    """

    path: Annotated[str, AfterValidator(check_path)]
    sha256: Annotated[list[Sha256], BeforeValidator(one_or_more), Field(min_length=1)]
    urls: list[str] = []
    size: Annotated[int, Field(ge=1)] | None = None


class ParserSpec(_Strict):
    """Name and options of a parser in ``parsers/``."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the parser."""
        return dict(self.model_extra or {})


class OfficialSplit(_Strict):
    """Sizes of the split that all publications use."""

    train: int
    test: int


class PredefinedSplits(_Strict):
    """The list of splits that belongs to a data set.

    ``train`` and ``test`` are stated if more splits of the same sizes may be drawn at random;
    ``held`` is the number of official splits in a source that lacks some.
    """

    count: int
    train: int | None = None
    test: int | None = None
    held: int | None = None


class KnownRows(_Strict):
    """Rows ``first`` to ``last`` (excluded) of known content, if the whole content is unknown."""

    first: int
    last: int
    content: Sha256


class Expected(_Strict):
    """Shape, classes, splits and hash of the data.

    ``classes`` maps labels to counts; it may list only some of the ``n_classes``. ``content`` is
    the hash of values, labels and splits (`Parsed.content_hash`), None if it cannot be known;
    ``known_rows`` may then state the hash of values and labels of a part.
    """

    shape: tuple[int, int]
    n_classes: int
    classes: dict[Label, int]
    official: OfficialSplit | None = None
    predefined: PredefinedSplits | None = None
    content: Sha256 | None = None
    known_rows: KnownRows | None = None

    @model_validator(mode="after")
    def _counts_add_up(self) -> Expected:
        total = sum(self.classes.values())
        if len(self.classes) == self.n_classes and total != self.shape[0]:
            raise ValueError(f"class counts add up to {total}, not to {self.shape[0]} rows")
        return self


class Source(_Strict):
    """A way to obtain the data."""

    #: ``files`` are known byte by byte and may lie in the store or a mirror. Downloads from
    #: ``url``, ``openml`` and by scikit-learn have no hash known beforehand (servers re-encode):
    #: they are parsed, compared with the card and kept as parsed arrays.
    kind: Literal["files", "url", "openml", "sklearn", "keel", "generator"]
    files: list[CardFile] = []
    urls: list[str] = []
    id: int | None = None
    loader: str | None = None
    options: dict[str, Any] = {}
    #: Upper bound on the bytes of each download; by default from the shape of the data.
    max_bytes: Annotated[int, Field(ge=1)] | None = None
    #: Parser, if it differs from the card's.
    parser: ParserSpec | None = None
    #: Overrides of the card's expectations, for a partial file or another encoding.
    expect: dict[str, Any] = {}
    #: Differences from the full data set; shown under tables.
    deviations: list[str] = []
    #: Differences of the predefined splits; shown under tables that use them.
    split_deviations: list[str] = []

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Source:
        needed = {"files": "files", "url": "urls", "openml": "id"}.get(self.kind, "loader")
        if not getattr(self, needed):
            raise ValueError(f"a source of kind {self.kind} needs {needed!r}")
        return self

    @property
    def label(self) -> str:
        """Short name, in messages and for the packed file in the store."""
        if self.kind in ("files", "url"):
            return self.kind
        detail = str(self.id if self.kind == "openml" else self.loader)
        return f"{self.kind}-{detail.replace('/', '-')}"

    @property
    def all_deviations(self) -> list[str]:
        """Deviations of the rows and of the splits."""
        return self.deviations + self.split_deviations

    @property
    def in_memory(self) -> bool:
        """Whether no file is needed: generators, and data inside packages."""
        bundled = self.kind == "sklearn" and not str(self.loader).startswith("fetch_")
        return self.kind in ("generator", "keel") or bundled

    @property
    def is_public(self) -> bool:
        """Whether the data can be downloaded or made without a mirror."""
        if self.kind == "keel":
            return False  # nothing to download: the package is installed or not
        return self.kind != "files" or all(file.urls for file in self.files)


class Card(_Strict):
    """A data set: description, expectations, sources in order. See ``cards/*.yaml``."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    title: str
    expect: Expected
    parser: ParserSpec | None = None
    sources: list[Source] = Field(min_length=1)
    licence: str
    citation: str
    treatment: str = ""
    known_deviations: list[str] = []
    #: Reason why no source can be reached by everybody, in one line; empty if there is a source.
    not_public: str = ""

    @model_validator(mode="after")
    def _sources_are_valid(self) -> Card:
        for source in self.sources:
            self.expected(source)
        if self.not_public and any(source.is_public for source in self.sources):
            raise ValueError("not_public is stated, but a source is public")
        labels = [source.label for source in self.sources if source.kind != "files"]
        if len(set(labels)) < len(labels):
            raise ValueError("two sources would be stored under one name")
        return self

    @property
    def files(self) -> list[CardFile]:
        """All files that are known byte by byte."""
        return [file for source in self.sources for file in source.files]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.expect.shape[1]

    def expected(self, source: Source) -> Expected:
        """Return what data from `source` must look like."""
        if not source.expect:
            return self.expect
        return Expected.model_validate({**self.expect.model_dump(), **source.expect})

    def max_bytes(self, source: Source) -> int:
        """Return the upper bound on the size of each download of `source`."""
        if source.max_bytes is not None:
            return source.max_bytes
        rows, columns = self.expected(source).shape
        return max(MOST_UNKNOWN, BYTES_PER_VALUE * rows * (columns + 1))

    def parser_of(self, source: Source) -> ParserSpec:
        """Return the parser of the files of `source`."""
        parser = source.parser or self.parser
        if parser is None:
            raise ValueError(f"card {self.name}: source {source.label} has no parser")
        return parser


#: Environment variable with folders of the user's cards.
FOLDERS = "MMBENCH_CARDS"


def card_names() -> list[str]:
    """Return the names of all cards, sorted."""
    return sorted(_card_files(os.environ.get(FOLDERS, "")))


@cache
def _card_files(folders: str) -> dict[str, Traversable]:
    """Return the file of each card, of mmbench, of packages and of the user's folders."""
    own = files("mmbench.datasets") / "cards"
    packages = [_package(path) for path in with_plugins("cards", {}).values()]
    found: dict[str, Traversable] = {}
    for folder in (own, *packages, *map(Path, filter(None, folders.split(os.pathsep)))):
        if not folder.is_dir():
            raise UserError(f"{FOLDERS}: {folder}: no such folder")
        for file in folder.iterdir():
            name = file.name.removesuffix(".yaml")
            if name != file.name and found.setdefault(name, file) is not file:
                raise UserError(f"{file}: there is a card {name!r} already, {found[name]}")
    return found


def _package(path: str) -> Traversable:
    try:
        return files(path)
    except ImportError as error:
        raise UserError(f"the cards of {path} cannot be found: {error}") from None


@cache
def load_card(name: str) -> Card:
    """Return a card by name; a UserError names the nearest one if there is none."""
    known = _card_files(os.environ.get(FOLDERS, ""))
    if name not in known:
        raise UserError(f"unknown data set {name!r}{did_you_mean(name, known)}")
    try:
        content = yaml.load(known[name].read_text("utf-8"), LOADER)
        return Card.model_validate({"name": name, **content})
    except (ValidationError, yaml.YAMLError, TypeError, UnicodeDecodeError, OSError) as error:
        raise UserError(f"{known[name]}: not a valid card: {_first(error)}") from None


def _first(error: Exception) -> str:
    """Return the first fault of a card in one line."""
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return str(error)
