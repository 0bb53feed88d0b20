"""Looking order of a card's data: local store, mirror, sources.

The store is a folder of files whose content is known to be right, laid out like a mirror. A file
arrives under a temporary name on the same file system and is renamed once its hash, or its parsed
content, agrees with the card. Nothing here deletes a file.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mmbench.datasets.card import Card, CardFile, Expected, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources import (
    NOT_INSTALLED,
    SourceError,
    create,
    download,
    keel_is_installed,
    looks_like_html,
    obtain,
)
from mmbench.datasets.generators import VERSION
from mmbench.datasets.parsers import parse
from mmbench.datasets.parsers.arrays import packed_hash, write_packed
from mmbench.errors import UserError

#: Where temporary files live; a leftover of a killed process is harmless and easily seen.
SCRATCH = ".incoming"


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Store:
    """The folder that holds fetched data.

    Parameters
    ----------
    root : Path
        Created when the first file arrives.
    """

    def __init__(self, root: Path):
        self.root = Path(root)

    def path(self, file: CardFile) -> Path:
        """Return the place of a file that is known byte by byte."""
        return self.root / file.path

    def packed(self, card: Card, source: Source) -> Path:
        """Return the place of the parsed arrays of a source without known bytes."""
        return self.root / card.name / f"{source.label}.npz"

    def admit(self, temporary: Path, place: Path) -> None:
        """Move a verified file into its place in one step."""
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, place)
        except OSError as error:
            raise UserError(f"{place}: cannot store data: {error.strerror or error}") from error

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a temporary folder on the store's file system, removed afterwards."""
        try:
            incoming = self.root / SCRATCH
            incoming.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=incoming))
        except OSError as error:
            message = f"{self.root}: cannot store data: {error.strerror or error}"
            raise UserError(message) from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def disagreement(data: Parsed, expected: Expected, content: bool = True) -> str | None:
    """Return the first difference between data and card as a phrase, or None.

    Parameters
    ----------
    data : Parsed
    expected : Expected
    content : bool
        Compare the content hash too, where the card has one. Needless for files whose own hash was
        checked, and slow for a hundred million pixels.
    """
    for check in (_shape, _classes, _split_sizes, _known_rows):
        problem = check(data, expected)
        if problem:
            return problem
    if content and expected.content:
        found = data.content_hash()
        if found != expected.content:
            return f"same shape and class counts, but other values, row order or splits ({found})"
    return None


def _shape(data: Parsed, expected: Expected) -> str | None:
    if data.X.shape != expected.shape:
        (n, d), (m, e) = data.X.shape, expected.shape
        return f"{n} rows x {d} columns, the card says {m} x {e}"
    if len(data.y) != len(data.X):
        return f"{len(data.X)} rows but {len(data.y)} labels"
    return None


def _classes(data: Parsed, expected: Expected) -> str | None:
    counts = data.class_counts()
    if len(counts) != expected.n_classes:
        return f"{len(counts)} classes, the card says {expected.n_classes}"
    for label, count in expected.classes.items():
        if counts.get(label) != count:
            found = counts.get(label, 0)
            return f"{found} rows of class {label!r}, the card says {count}"
    return None


def _split_sizes(data: Parsed, expected: Expected) -> str | None:
    sizes = None if data.official is None else tuple(map(len, data.official))
    wanted = expected.official and (expected.official.train, expected.official.test)
    if sizes != wanted:
        return f"official split {sizes}, the card says {wanted}"
    number = expected.predefined.n_official if expected.predefined else 0
    if len(data.predefined) != number:
        return f"{len(data.predefined)} predefined splits, the card says {number}"
    return None


def _known_rows(data: Parsed, expected: Expected) -> str | None:
    known = expected.known_rows
    if known is None:
        return None
    rows = slice(known.first, known.last)
    if Parsed(data.X[rows], data.y[rows]).content_hash() != known.content:
        return f"rows {known.first + 1} to {known.last} hold other values than the card states"
    return None


@dataclass(frozen=True)
class SourceFiles:
    """A source of a card and where its verified files lie."""

    card: Card
    source: Source
    #: The files in the order that the parser wants; none for data in memory.
    paths: tuple[Path, ...] = ()
    #: Whether the file holds parsed arrays.
    packed: bool = False

    @property
    def expected(self) -> Expected:
        """What the arrays must look like."""
        return self.card.expected(self.source)

    def read(self, every_value: bool = False) -> Parsed:
        """Return the arrays, compared with the card.

        Parameters
        ----------
        every_value : bool, default=False
            Compare the content hash too where the files' own hashes were compared already.

        Raises
        ------
        UserError
            If they differ or cannot be read.
        """
        where = ", ".join(map(str, self.paths)) or self.source.label
        try:
            data = self._parse()
        except (ValueError, SourceError) as error:
            raise UserError(f"{where}: {error}; move the file away and fetch again") from error
        content = every_value or self.source.kind != "files"
        if problem := disagreement(data, self.expected, content):
            raise UserError(f"data set {self.card.name!r}: {where}: {problem}")
        return data

    def content_hash(self) -> str:
        """Return the hash that names these data; they are read only if no other way is left."""
        if self.source.kind == "generator":
            return recipe_hash(self.card, self.source)
        if self.expected.content:
            return self.expected.content
        return packed_hash(self.paths[0]) if self.packed else self._parse().content_hash()

    def _parse(self) -> Parsed:
        if self.source.in_memory:
            return obtain(self.card, self.source, Path(), progress=False)
        if self.packed:
            return parse("packed", self.paths, {})
        parser = self.card.parser_of(self.source)
        return parse(parser.name, self.paths, parser.options)


def recipe_hash(card: Card, source: Source) -> str:
    """Name data by how they are made: generators, and what was not fetched yet."""
    recipe: list[Any] = [card.name, source.label, sorted(source.options.items()), VERSION]
    return hashlib.sha256(repr(recipe).encode()).hexdigest()


@dataclass(frozen=True)
class Places:
    """Where to look for data."""

    #: Local folder of fetched files.
    store: Path
    #: Folder or URL laid out like the store.
    mirror: str | Path | None = None
    #: Whether URLs may be asked.
    allow_network: bool = True
    #: Whether downloads show a bar.
    progress: bool = False

    @property
    def mirror_url(self) -> str | None:
        """The mirror when it is a URL, without a slash at its end."""
        text = str(self.mirror or "")
        return text.rstrip("/") if text.startswith(("http://", "https://")) else None

    @property
    def mirror_folder(self) -> Path | None:
        """The mirror when it is a folder."""
        return Path(self.mirror) if self.mirror and not self.mirror_url else None


def find(card: Card, places: Places) -> SourceFiles:
    """Return a card's data, downloading them into the store when they are nowhere near.

    Raises
    ------
    UserError
        If no place has them; the message says what was tried and what to do.
    """
    search = Search(card, places)
    found = search.local() or (search.remote() if places.allow_network else None)
    if found is None:
        raise UserError(search.advice())
    return found


class Search:
    """The search for one card's data.

    Parameters
    ----------
    card : Card
    places : Places

    Attributes
    ----------
    tried : list of str
        A line for each file that is damaged and each server that did not deliver.
    """

    def __init__(self, card: Card, places: Places):
        self.card = card
        self.places = places
        self.store = Store(places.store)
        self.tried: list[str] = []

    def local(self) -> SourceFiles | None:
        """Return the first source whose files lie, undamaged, in the store or mirror folder."""
        for source in self.card.sources:
            if found := self._in_store(source):
                return found
        folder = self.places.mirror_folder
        for source in self.card.sources if folder else ():
            if found := self._intact(source, folder):
                return found
        return None

    def remote(self) -> SourceFiles | None:
        """Ask the mirror's URL, then each source; what is returned lies in the store."""
        mirror = self.places.mirror_url
        for source in self.card.sources if mirror else ():
            urls = [[f"{mirror}/{quote(file.path)}"] for file in source.files]
            if urls and (found := self._fetch_files(source, urls)):
                return found
        for source in filter(lambda source: source.is_public, self.card.sources):
            if source.kind == "files":
                found = self._fetch_files(source, [file.urls for file in source.files])
            else:
                found = self._fetch_arrays(source)
            if found:
                return found
        return None

    def advice(self) -> str:
        """Return one line: what was looked at, and what the user can do."""
        card, places, tried = self.card, self.places, self.tried
        if all(source.kind == "keel" for source in card.sources):
            return f"data set {card.name!r} cannot be read: {NOT_INSTALLED}"
        if places.mirror_folder and not places.mirror_folder.is_dir():
            tried = [f"the mirror {places.mirror_folder} is not a folder", *tried]
        if not places.allow_network:
            tried = [*tried, "not in the store or the mirror, and the network is switched off"]
        elif not tried:
            tried = ["not in the store or the mirror, and no public source is known"]
        wanted = ", ".join(file.path for file in card.files)
        mirror = f"set --mirror or MMBENCH_MIRROR to a place that has {wanted}" if wanted else ""
        when = "again later" if places.allow_network else "with internet access"
        public = any(source.is_public for source in card.sources)
        online = f"run 'mmbench data fetch {card.name}' {when}" if public else ""
        reason = f"cannot be found or downloaded ({'; '.join(tried)})"
        return f"data set {card.name!r} {reason}; {' or '.join(filter(None, [mirror, online]))}"

    def _in_store(self, source: Source) -> SourceFiles | None:
        if source.kind == "keel" and not keel_is_installed():
            return None
        if source.in_memory:
            return SourceFiles(self.card, source)
        if source.kind == "files":
            return self._intact(source, self.store.root)
        path = self.store.packed(self.card, source)
        if not path.is_file():
            return None
        try:
            content = packed_hash(path)
        except ValueError as error:
            self.tried.append(f"{path}: {error}")
            return None
        if self.card.expected(source).content not in (None, content):
            self.tried.append(f"{path}: holds other data than the card states")
            return None
        return SourceFiles(self.card, source, (path,), packed=True)

    def _intact(self, source: Source, folder: Path | None) -> SourceFiles | None:
        """Return a source whose files are all in a folder, with the right hashes."""
        paths = tuple(Path(folder or ".", file.path) for file in source.files)
        if not paths or not all(path.is_file() for path in paths):
            return None
        for file, path in zip(source.files, paths, strict=True):
            try:
                _check_hash(path, file, str(path))
            except SourceError as error:
                self.tried.append(str(error))
                return None
        return SourceFiles(self.card, source, paths)

    def _fetch_files(self, source: Source, urls: list[list[str]]) -> SourceFiles | None:
        """Fetch files known byte by byte; none is stored before all have the right hash."""
        with self.store.scratch() as scratch:
            arrived = [scratch / str(k) for k in range(len(urls))]
            for file, path, alternatives in zip(source.files, arrived, urls, strict=True):
                most = file.size or self.card.max_bytes(source)
                if not any(self._fetch_file(file, path, url, most) for url in alternatives):
                    return None
            places = tuple(self.store.path(file) for file in source.files)
            for path, place in zip(arrived, places, strict=True):
                self.store.admit(path, place)
        return SourceFiles(self.card, source, places)

    def _fetch_file(self, file: CardFile, path: Path, url: str, most: int) -> bool:
        path.unlink(missing_ok=True)  # of another URL
        try:
            download(url, path, self.places.progress, most)
            _check_hash(path, file, url)
        except SourceError as error:
            self.tried.append(str(error))
            return False
        return True

    def _fetch_arrays(self, source: Source) -> SourceFiles | None:
        """Fetch, parse and compare with the card; only then keep the parsed arrays."""
        place = self.store.packed(self.card, source)
        with self.store.scratch() as scratch:
            try:
                data = obtain(self.card, source, scratch, self.places.progress)
            except SourceError as error:
                self.tried.append(str(error))
                return None
            if problem := disagreement(data, self.card.expected(source)):
                name = f"{source.label} holds other data than the card states"
                self.tried.append(f"{name}: {problem}")
                return None
            write_packed(scratch / "packed.npz", data)
            self.store.admit(scratch / "packed.npz", place)
        return SourceFiles(self.card, source, (place,), packed=True)


def copy_to_store(found: SourceFiles, store: Store) -> SourceFiles:
    """Copy verified files of a mirror folder into the store."""
    places = tuple(store.path(file) for file in found.source.files)
    if found.packed or not found.paths or places == found.paths:
        return found
    with store.scratch() as scratch:
        for file, path, place in zip(found.source.files, found.paths, places, strict=True):
            temporary = scratch / "file"
            with path.open("rb") as source, create(temporary) as target:
                shutil.copyfileobj(source, target)
            _check_hash(temporary, file, str(path))
            store.admit(temporary, place)
    return SourceFiles(found.card, found.source, places)


def _check_hash(path: Path, file: CardFile, name: str) -> None:
    try:
        found = file_hash(path)
    except OSError as error:
        raise SourceError(f"{name}: {error.strerror or error}") from error
    if found not in file.sha256:
        page = " (an HTML page)" if looks_like_html(path) else ""
        raise SourceError(
            f"{name}: wrong SHA-256 {found[:12]}..., not {file.sha256[0][:12]}...{page}"
        )
