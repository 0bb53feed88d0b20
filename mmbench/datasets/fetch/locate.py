"""The looking order: local store, mirror, sources. What arrives is verified before it stays."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mmbench.datasets.card import Card, CardFile, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.packed import packed_hash, read_packed, write_packed
from mmbench.datasets.fetch.sources import SourceError, obtain
from mmbench.datasets.fetch.sources.url import download, looks_like_html
from mmbench.datasets.fetch.store import Store, file_hash
from mmbench.datasets.fetch.verify import disagreement
from mmbench.datasets.parsers import parse
from mmbench.errors import UserError


@dataclass(frozen=True)
class Found:
    """A source of a card and where its verified files lie.

    Parameters
    ----------
    source : Source
    paths : tuple of Path
        The files in the order that the parser wants; none for data in memory.
    packed : bool
        Whether the file holds parsed arrays.
    """

    source: Source
    paths: tuple[Path, ...] = ()
    packed: bool = False

    def read(self, card: Card) -> Parsed:
        """Return the arrays.

        Raises
        ------
        ValueError, SourceError
            If a file is damaged.
        """
        if self.source.in_memory:
            return obtain(card, self.source, Path(), progress=False)
        if self.packed:
            return read_packed(self.paths[0])
        parser = card.parser_of(self.source)
        return parse(parser.name, self.paths, parser.options)


@dataclass(frozen=True)
class Places:
    """Where to look for data.

    Parameters
    ----------
    store : Path
        Local folder of fetched files.
    mirror : str or Path or None
        Folder or URL laid out like the store.
    allow_network : bool
        Whether URLs may be asked.
    progress : bool
        Whether downloads show a bar.
    """

    store: Path
    mirror: str | Path | None = None
    allow_network: bool = True
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


def find_local(card: Card, places: Places, tried: list[str] | None = None) -> Found | None:
    """Return the first source whose files lie, undamaged, in the store or the mirror folder.

    Parameters
    ----------
    card : Card
    places : Places
    tried : list of str, optional
        Receives a line for each file that is there but wrong.
    """
    tried = [] if tried is None else tried
    for source in card.sources:
        found = _in_store(card, source, Store(places.store), tried)
        if found:
            return found
    folder = places.mirror_folder
    if folder is None:
        return None
    for source in card.sources:
        paths = _good_files(source, [folder / file.path for file in source.files], tried)
        if paths:
            return Found(source, paths)
    return None


def find(card: Card, places: Places) -> Found:
    """Return a card's data, downloading them into the store when they are nowhere near.

    Raises
    ------
    UserError
        If no place has them; the message says what was tried and what to do.
    """
    tried: list[str] = []
    found = find_local(card, places, tried)
    if found:
        return found
    if places.allow_network:
        for attempt in _downloads(card, places, tried):
            if attempt:
                return attempt
    raise UserError(_advice(card, places, tried))


def copy_to_store(card: Card, found: Found, store: Store) -> Found:
    """Copy verified files of a mirror folder into the store."""
    places = tuple(store.path(file) for file in found.source.files)
    if found.packed or not found.paths or places == found.paths:
        return found
    with store.scratch() as scratch:
        for k, (path, place) in enumerate(zip(found.paths, places, strict=True)):
            temporary = scratch / str(k)
            shutil.copyfile(path, temporary)
            _check_hash(temporary, found.source.files[k], str(path))
            store.admit(temporary, place)
    return Found(found.source, places)


def _in_store(card: Card, source: Source, store: Store, tried: list[str]) -> Found | None:
    if source.in_memory:
        return Found(source)
    if source.kind == "files":
        paths = _good_files(source, [store.path(file) for file in source.files], tried)
        return Found(source, paths) if paths else None
    return _packed(card, source, store.packed(card, source), tried)


def _packed(card: Card, source: Source, path: Path, tried: list[str]) -> Found | None:
    if not path.exists():
        return None
    try:
        content = packed_hash(path)
    except ValueError as error:
        tried.append(f"{path}: {error}")
        return None
    if card.expected(source).content not in (None, content):
        tried.append(f"{path}: holds other data than the card states")
        return None
    return Found(source, (path,), packed=True)


def _good_files(source: Source, paths: list[Path], tried: list[str]) -> tuple[Path, ...]:
    """Return the paths if all are there with the right hashes, else nothing."""
    if not paths or not all(path.is_file() for path in paths):
        return ()
    for file, path in zip(source.files, paths, strict=True):
        try:
            _check_hash(path, file, str(path))
        except SourceError as error:
            tried.append(str(error))
            return ()
    return tuple(paths)


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


def _downloads(card: Card, places: Places, tried: list[str]) -> Iterator[Found | None]:
    """Try the mirror's URL, then each source; failures are noted, successes are in the store."""
    store = Store(places.store)
    for source in card.sources if places.mirror_url else ():
        if source.files:
            urls = [[f"{places.mirror_url}/{quote(file.path)}"] for file in source.files]
            yield _try_files(source, urls, store, places.progress, tried)
    for source in card.sources:
        if source.kind != "files":
            yield _try_source(card, source, store, places.progress, tried)
        elif all(file.urls for file in source.files):
            urls = [file.urls for file in source.files]
            yield _try_files(source, urls, store, places.progress, tried)


def _try_files(
    source: Source, urls: list[list[str]], store: Store, progress: bool, tried: list[str]
) -> Found | None:
    """Fetch files that are known byte by byte; none is stored before all have the right hash."""
    with store.scratch() as scratch:
        arrived = [scratch / str(k) for k in range(len(urls))]
        for file, path, alternatives in zip(source.files, arrived, urls, strict=True):
            if not _first_good(file, path, alternatives, progress, tried):
                return None
        for file, path in zip(source.files, arrived, strict=True):
            store.admit(path, store.path(file))
    return Found(source, tuple(store.path(file) for file in source.files))


def _first_good(
    file: CardFile, path: Path, urls: list[str], progress: bool, tried: list[str]
) -> bool:
    for url in urls:
        try:
            download(url, path, progress)
            _check_hash(path, file, url)
            return True
        except SourceError as error:
            tried.append(str(error))
    return False


def _try_source(
    card: Card, source: Source, store: Store, progress: bool, tried: list[str]
) -> Found | None:
    """Fetch, parse and compare with the card; only then keep the parsed arrays."""
    place = store.packed(card, source)
    with store.scratch() as scratch:
        try:
            data = obtain(card, source, scratch, progress)
        except SourceError as error:
            tried.append(str(error))
            return None
        problem = disagreement(data, card.expected(source))
        if problem:
            tried.append(f"{source.label} holds other data than the card states: {problem}")
            return None
        write_packed(scratch / "packed.npz", data)
        store.admit(scratch / "packed.npz", place)
    return Found(source, (place,), packed=True)


def _advice(card: Card, places: Places, tried: list[str]) -> str:
    """Return one line: what was looked at, and what the user can do."""
    if places.mirror_folder and not places.mirror_folder.is_dir():
        tried = [f"the mirror {places.mirror_folder} is not a folder", *tried]
    if not places.allow_network:
        tried = [*tried, "not in the store or the mirror, and the network is switched off"]
    elif not tried:
        tried = ["not in the store or the mirror, and no public source is known"]
    wanted = ", ".join(file.path for file in card.files)
    mirror = f"set --mirror or MMBENCH_MIRROR to a place that has {wanted}" if wanted else ""
    when = "again later" if places.allow_network else "with internet access"
    online = f"run 'mmbench data fetch {card.name}' {when}"
    todo = " or ".join(filter(None, [mirror, online if _is_public(card) else ""]))
    return f"data set {card.name!r} cannot be had ({'; '.join(tried)}); {todo}"


def _is_public(card: Card) -> bool:
    return any(s.kind != "files" or all(file.urls for file in s.files) for s in card.sources)
