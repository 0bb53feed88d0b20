"""Search for the data of a card: first in the local store, then in a mirror, then in the sources.

The store has verified files, which are never deleted; a mirror has the same relative paths. Without
a known hash, a download is parsed, and its arrays are stored if they agree with the card.
"""

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mmbench.datasets.card import Card, CardFile, Expected, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources import (
    NOT_INSTALLED,
    NoAnswer,
    NotAvailable,
    SourceError,
    download,
    keel_is_installed,
    looks_like_html,
    obtain,
    parse_files,
)
from mmbench.datasets.generators import VERSION
from mmbench.datasets.parsers.arrays import packed, packed_hash, write_packed
from mmbench.errors import UserError, converted

#: Folder of temporary files in the store. If a process is killed, its temporary files remain, which
#: is harmless, since they are never read.
SCRATCH = ".incoming"


def disagreement(data: Parsed, expected: Expected, content: bool = True) -> str | None:
    """Return the first difference between data and card as text, or None if there is no difference.

    The content hash is compared only if `content` is true and the card states the hash. Computing
    the content hash is slow for large images, and unnecessary for files with verified hashes.
    """
    plan, counts = expected.predefined, Counter(data.y.ravel().tolist())
    stated_sizes = expected.official and (expected.official.train, expected.official.test)
    held = 0 if plan is None else plan.count if plan.held is None else plan.held
    comparisons: list[tuple[str, Any, Any]] = [
        ("rows and columns", data.X.shape, expected.shape),
        ("labels", data.y.shape, expected.shape[:1]),
        ("classes", len(counts), expected.n_classes),
        *((f"rows of class {k!r}", counts.get(k, 0), n) for k, n in expected.classes.items()),
        ("official split", data.official and tuple(map(len, data.official)), stated_sizes),
        ("predefined splits", len(data.predefined), held),
    ]
    for name, found, stated in comparisons:
        if found != stated:
            return f"{name}: {found}, but the card states {stated}"
    if known := expected.known_rows:
        rows = slice(known.first, known.last)
        if Parsed(data.X[rows], data.y[rows]).content_hash() != known.content:
            return f"rows {known.first + 1} to {known.last} have other values than the card states"
    if content and expected.content and (found := data.content_hash()) != expected.content:
        return f"same shape and class counts, but other values, row order or splits ({found})"
    return None


@dataclass(frozen=True)
class SourceFiles:
    """A source of a data set, and the paths of the verified files of this source."""

    card: Card
    source: Source
    #: Paths of the source's files, in the order of the parser's arguments, or path of one file that
    #: contains all parsed arrays. No paths for generated data and for data of a Python package.
    paths: tuple[Path, ...] = ()

    @property
    def packed(self) -> bool:
        """Whether `paths` is a single file of parsed arrays."""
        return bool(self.paths) and self.source.kind != "files"

    def read(self, every_value: bool = False) -> Parsed:
        """Return features, labels and splits; raise UserError if they differ from the card.

        If `every_value` is true, the content hash is compared even if the files have known hashes.
        """
        where = ", ".join(map(str, self.paths)) or self.source.label
        try:
            if self.source.in_memory:
                data = obtain(self.card, self.source, Path(), progress=False)
            elif self.packed:
                data = packed(self.paths)
            else:
                data = parse_files(self.card, self.source, self.paths)
        except ValueError as error:
            # a file with a verified hash is intact, so that the parser or its options must be wrong
            hint = "remove it and run 'mmbench data fetch'" if self.packed else "check the parser"
            raise UserError(f"data set {self.card.name!r}: {where}: {error}; {hint}") from error
        content = every_value or self.source.kind != "files"
        if problem := disagreement(data, self.card.expected(self.source), content):
            raise UserError(f"data set {self.card.name!r}: {where}: {problem}")
        return data

    def content_hash(self) -> str:
        """Return the hash of the data. Files are read only if the card does not state the hash."""
        if self.source.kind == "generator":
            return recipe_hash(self.card, self.source)
        if content := self.card.expected(self.source).content:
            return content
        return packed_hash(self.paths[0]) if self.packed else self.read().content_hash()


def recipe_hash(card: Card, source: Source) -> str:
    """Return a hash of a source's description, as content hash of generated or missing data."""
    recipe: list[Any] = [card.name, source.label, sorted(source.options.items()), VERSION]
    return hashlib.sha256(repr(recipe).encode()).hexdigest()


@dataclass(frozen=True)
class Places:
    """Locations in which data are searched: the local store and a mirror."""

    #: Local folder of downloaded files, created by the first download.
    store: Path
    #: Mirror, a folder or URL with the same relative paths as the store.
    mirror: str | Path | None = None
    #: Whether data may be downloaded.
    allow_network: bool = True
    #: Whether downloads show a progress bar.
    progress: bool = False

    @property
    def mirror_url(self) -> str | None:
        """URL of the mirror without a trailing slash, or None if the mirror is not a URL."""
        text = str(self.mirror or "")
        return text.rstrip("/") if text.startswith(("http://", "https://")) else None

    @property
    def mirror_folder(self) -> Path | None:
        """Folder of the mirror, or None if the mirror is not a folder."""
        return Path(self.mirror) if self.mirror and not self.mirror_url else None

    def admit(self, temporary: Path, name: str | Path) -> Path:
        """Move a verified file into the store by an atomic operation, and return the new path."""
        path = self.store / name
        with converted(f"{path}: cannot store data", OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, path)
        return path

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary folder in the store, and remove the folder at the end."""
        with converted(f"{self.store}: cannot store data", OSError):
            incoming = self.store / SCRATCH
            incoming.mkdir(parents=True, exist_ok=True)
            folder = tempfile.TemporaryDirectory(dir=incoming, ignore_cleanup_errors=True)
        with folder:
            yield Path(folder.name)


def find(card: Card, places: Places) -> SourceFiles:
    """Return the files of a data set with a card; missing files are downloaded into the store.

    Raises UserError, with reasons and advice, if the data cannot be found or downloaded. If the
    only reason is that servers cannot be reached, the exception is NotAvailable, a subclass of
    UserError.
    """
    search = Search(card, places)
    if found := search.local() or (search.remote() if places.allow_network else None):
        return found
    raise (NotAvailable if set(search.tried.values()) == {NoAnswer} else UserError)(search.advice())


class Search:
    """Search for the data of one card.

    ``tried`` maps the error message of each damaged file and each failed download to the type of
    the exception.
    """

    def __init__(self, card: Card, places: Places):
        self.card, self.places = card, places
        self.tried: dict[str, type[ValueError]] = {}

    def local(self) -> SourceFiles | None:
        """Return the first source whose files are all in the store, or all in the mirror folder.

        If a hash is wrong, the source is skipped and the error is added to ``tried``. If no source
        is found, the result is None.
        """
        folders = filter(None, (self.places.store, self.places.mirror_folder))
        found = (self._in_folder(source, f) for f in folders for source in self.card.sources)
        return next(filter(None, found), None)

    def remote(self) -> SourceFiles | None:
        """Download the data into the store from the mirror's URL or a public source."""
        sources, mirror = self.card.sources, self.places.mirror_url
        attempts = [(s, [[f"{mirror}/{quote(file.path)}"] for file in s.files]) for s in sources]
        attempts = [(source, urls) for source, urls in attempts if mirror and urls]
        attempts += [(s, [file.urls for file in s.files]) for s in sources if s.is_public]
        fetched = (self._fetch_files(s, u) if u else self._fetch_arrays(s) for s, u in attempts)
        return next(filter(None, fetched), None)

    def advice(self) -> str:
        """Return a one-line message: why the data were not found, and what the user can do."""
        card, places, tried = self.card, self.places, list(self.tried)
        if all(source.kind == "keel" for source in card.sources):
            return f"data set {card.name!r} cannot be read: {NOT_INSTALLED}"
        if places.mirror_folder and not places.mirror_folder.is_dir():
            tried = [f"the mirror {places.mirror_folder} is not a folder", *tried]
        if not places.allow_network:
            tried = [*tried, "not in the store or the mirror, and the network is switched off"]
        elif not tried:
            reason = card.not_public or "no public source is known"
            tried = [f"not in the store or the mirror, and {reason}"]
        hints = []
        if wanted := ", ".join(file.path for source in card.sources for file in source.files):
            hints.append(f"set --mirror or MMBENCH_MIRROR to a folder or URL with {wanted}")
        if any(source.is_public for source in card.sources):
            when = "again later" if places.allow_network else "with internet access"
            hints.append(f"run 'mmbench data fetch {card.name}' {when}")
        reason = f"cannot be found or downloaded ({'; '.join(tried)})"
        return f"data set {card.name!r} {reason}; {' or '.join(hints)}"

    def _in_folder(self, source: Source, folder: Path) -> SourceFiles | None:
        if source.in_memory:
            absent = source.kind == "keel" and not keel_is_installed()
            return None if absent else SourceFiles(self.card, source)
        paths = tuple(folder / name for name in source.stored_names(self.card.name))
        if not all(path.is_file() for path in paths):
            return None
        found = SourceFiles(self.card, source, paths)
        with self._noting_failure(f"{paths[0]}: " if found.packed else ""):
            for file, path in zip(source.files, paths, strict=not found.packed):
                _check_hash(path, file, str(path))
            content = self.card.expected(source).content
            if found.packed and content not in (None, packed_hash(paths[0])):
                raise ValueError("contains other data than the card states")
            return found

    def _fetch_files(self, source: Source, urls: list[list[str]]) -> SourceFiles | None:
        """Download the files of a source, and store the files if all hashes are correct."""
        with self.places.scratch() as scratch:
            arrived = [scratch / str(k) for k in range(len(urls))]
            for file, path, alternatives in zip(source.files, arrived, urls, strict=True):
                most = file.size or self.card.max_bytes(source)
                for url in alternatives:
                    # a failed download from the previous URL may have left a file
                    path.unlink(missing_ok=True)
                    with self._noting_failure():
                        download(url, path, self.places.progress, most)
                        _check_hash(path, file, url)
                        break
                else:
                    return None
            paths = tuple(map(self.places.admit, arrived, (file.path for file in source.files)))
        return SourceFiles(self.card, source, paths)

    def _fetch_arrays(self, source: Source) -> SourceFiles | None:
        """Download and parse a source, and store the parsed arrays if they agree with the card."""
        with self.places.scratch() as scratch, self._noting_failure():
            data = obtain(self.card, source, scratch, self.places.progress)
            if problem := disagreement(data, self.card.expected(source)):
                raise SourceError(f"{source.label} differs from its card: {problem}")
            write_packed(scratch / "packed.npz", data)
            path = self.places.admit(scratch / "packed.npz", source.stored_names(self.card.name)[0])
            return SourceFiles(self.card, source, (path,))

    @contextmanager
    def _noting_failure(self, prefix: str = "") -> Iterator[None]:
        """Suppress a ValueError in a ``with`` block, and store its message and type in `tried`."""
        try:
            yield
        except ValueError as error:
            self.tried[f"{prefix}{error}"] = type(error)


def copy_to_store(found: SourceFiles, places: Places) -> SourceFiles:
    """Copy verified files of a mirror folder into the store."""
    names = found.source.stored_names(found.card.name)
    stored = tuple(places.store / name for name in names)
    if found.source.in_memory or stored == found.paths:
        return found
    with places.scratch() as scratch:
        for name, path in zip(names, found.paths, strict=True):
            shutil.copyfile(path, scratch / "file")
            places.admit(scratch / "file", name)
    return replace(found, paths=stored)


def _check_hash(path: Path, file: CardFile, name: str) -> None:
    with converted(name, OSError, to=SourceError), path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found not in file.sha256:
        page = " (an HTML page)" if looks_like_html(path) else ""
        wrong = f"wrong SHA-256 {found[:12]}..., expected {file.sha256[0][:12]}..."
        raise SourceError(f"{name}: {wrong}{page}")
