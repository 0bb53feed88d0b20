"""The looking order: local store, mirror, sources. What arrives is verified before it stays."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mmbench.datasets.card import Card, CardFile, Source
from mmbench.datasets.fetch.files import SourceFiles
from mmbench.datasets.fetch.sources import SourceError, keel_, obtain
from mmbench.datasets.fetch.sources.url import download, looks_like_html
from mmbench.datasets.fetch.store import Store, file_hash
from mmbench.datasets.fetch.verify import disagreement
from mmbench.datasets.parsers.npz import packed_hash, write_packed
from mmbench.errors import UserError


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
            return f"data set {card.name!r} cannot be read: {keel_.NOT_INSTALLED}"
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
        if source.kind == "keel" and not keel_.is_installed():
            return None
        if source.in_memory:
            return SourceFiles(self.card, source)
        if source.kind == "files":
            return self._intact(source, self.store.root)
        path = self.store.packed(self.card, source)
        if not path.exists():
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
                if not any(self._fetch_file(file, path, url) for url in alternatives):
                    return None
            places = tuple(self.store.path(file) for file in source.files)
            for path, place in zip(arrived, places, strict=True):
                self.store.admit(path, place)
        return SourceFiles(self.card, source, places)

    def _fetch_file(self, file: CardFile, path: Path, url: str) -> bool:
        try:
            download(url, path, self.places.progress)
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
            shutil.copyfile(path, temporary)
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
