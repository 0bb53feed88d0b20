"""Loading: a reference in, a checked `Dataset` out."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mmbench.datasets.card import Card, Source, load_card
from mmbench.datasets.dataset import Dataset, Parsed
from mmbench.datasets.fetch.locate import Found, Places, find, find_local
from mmbench.datasets.fetch.packed import packed_hash
from mmbench.datasets.fetch.sources import SourceError
from mmbench.datasets.fetch.verify import disagreement
from mmbench.datasets.generators import VERSION
from mmbench.datasets.user import UserData, load_user_data, user_hash
from mmbench.errors import UserError


class NamedData(Protocol):
    """Anything that names a card or a user's file, such as the data set of a job."""

    @property
    def name(self) -> str:
        """Name of the card, or name of the user's data in tables."""

    @property
    def path(self) -> str | None:
        """A user's file, None for a card."""

    @property
    def target(self) -> str | None:
        """Target column of a user's file."""


#: How a data set is named: a card's name, a user's file, or an object with name, path and target.
Reference = str | UserData | NamedData


def resolve(ref: Reference) -> Card | UserData:
    """Return the card or the user's file that a reference names.

    Raises
    ------
    UserError
        If there is no such card.
    """
    if isinstance(ref, UserData):
        return ref
    if isinstance(ref, str):
        return load_card(ref)
    if ref.path is None:
        return load_card(ref.name)
    return UserData(ref.path, ref.target or "", ref.name)


def load_dataset(
    ref: Reference,
    *,
    store: str | Path,
    mirror: str | Path | None = None,
    allow_network: bool = True,
    progress: bool = False,
) -> Dataset:
    """Return a data set that agrees with its card, or a user's file that passed all checks.

    Parameters
    ----------
    ref : str or UserData or object with ``name``, ``path`` and ``target``
        Name of a card, or a user's file.
    store : path
        Local folder of fetched files; looked into first.
    mirror : path or URL, optional
        Looked into second. A folder is read where it lies, what a URL holds goes into the store.
    allow_network : bool
        Whether a mirror's URL and the card's sources may be asked.
    progress : bool
        Whether downloads show a bar.

    Raises
    ------
    UserError
        If the data cannot be had, are damaged, or a user's file is bad; one line.
    """
    target = resolve(ref)
    if isinstance(target, UserData):
        return load_user_data(target)
    found = find(target, Places(Path(store), mirror, allow_network, progress))
    return _dataset(target, found, read_checked(target, found))


def dataset_hash(
    ref: Reference,
    *,
    store: str | Path,
    mirror: str | Path | None = None,
    allow_network: bool = True,
) -> str:
    """Return the hash that names a data set's content, without reading the data where possible.

    For a card's data it is the hash of values, labels and splits. The card states it, except where
    the bytes of a source cannot be known beforehand; such data are fetched first, or, without
    network, the hash names the source. For drawn data it is the hash of the generator, its version
    and arguments. For a user's file it is the hash of the file and the target's name.

    Raises
    ------
    UserError
        If there is no such card, or the data are needed and cannot be had.
    """
    target = resolve(ref)
    if isinstance(target, UserData):
        return user_hash(target)
    places = Places(Path(store), mirror, allow_network)
    found = find_local(target, places)
    if found:
        return _hash_of(target, found)
    if target.expect.content:
        return target.expect.content
    if allow_network:
        return _hash_of(target, find(target, places))
    return _hash_of_source(target, target.sources[0])


def read_checked(card: Card, found: Found) -> Parsed:
    """Read the arrays and compare them with the card.

    Raises
    ------
    UserError
        If they differ or cannot be read.
    """
    where = ", ".join(map(str, found.paths)) or found.source.label
    try:
        data = found.read(card)
    except (ValueError, SourceError) as error:
        raise UserError(f"{where}: {error}; move the file away and fetch again") from error
    trusted = found.source.kind == "files"  # the hash of each file was compared on the way here
    problem = disagreement(data, card.expected(found.source), content=not trusted)
    if problem:
        raise UserError(f"data set {card.name!r}: {where}: {problem}")
    return data


def _dataset(card: Card, found: Found, data: Parsed) -> Dataset:
    return Dataset(
        name=card.name,
        X=data.X,
        y=data.y,
        classes=np.unique(data.y),
        split=data.official,
        predefined=list(data.predefined) or None,
        content_hash=_hash_of(card, found),
        deviations=tuple(found.source.deviations),
        card=card,
    )


def _hash_of(card: Card, found: Found) -> str:
    if found.source.kind == "generator":
        return _hash_of_source(card, found.source)
    known = card.expected(found.source).content
    if known:
        return known
    return packed_hash(found.paths[0]) if found.packed else found.read(card).content_hash()


def _hash_of_source(card: Card, source: Source) -> str:
    """Name data by how they are made: generators, and what was not fetched yet."""
    recipe: list[Any] = [card.name, source.label, sorted(source.options.items()), VERSION]
    return hashlib.sha256(repr(recipe).encode()).hexdigest()
