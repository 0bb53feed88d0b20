"""Loading: a reference in, a checked `Dataset` out."""

from pathlib import Path

import numpy as np

from mmbench.datasets.card import Card
from mmbench.datasets.dataset import Dataset, DatasetRef, keep_classes
from mmbench.datasets.fetch import Places, Search, SourceFiles, find, recipe_hash
from mmbench.datasets.preprocess import check_steps
from mmbench.datasets.splits import hash_with_folds, with_folds
from mmbench.datasets.user import load_user_data, user_hash
from mmbench.errors import UserError


def load_dataset(
    ref: DatasetRef | str,
    *,
    store: str | Path,
    mirror: str | Path | None = None,
    allow_network: bool = True,
    progress: bool = False,
) -> Dataset:
    """Return a data set that agrees with its card, or a user's file that passed all checks.

    Parameters
    ----------
    ref : DatasetRef or str
        A data set and the classes of it that are wanted, or just the name of a card.
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
        If the data cannot be had, are damaged, a user's file is bad, or the reference's
        preprocessing steps do not fit the data; one line.
    """
    ref = DatasetRef(ref) if isinstance(ref, str) else ref
    card, places = ref.card, Places(Path(store), mirror, allow_network, progress)
    if card is None:
        data = load_user_data(ref, places)
    else:
        data = _read(find(card, places))
        if problem := check_steps(ref.preprocess, data.X.shape[1]):
            raise UserError(f"data set {ref.name!r}: {problem}")
    if ref.folds is not None:
        data = with_folds(data, ref.folds)
    return keep_classes(data, ref.classes)


def dataset_hash(
    ref: DatasetRef | str,
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
    ref = DatasetRef(ref) if isinstance(ref, str) else ref
    places = Places(Path(store), mirror, allow_network)
    content = _card_hash(ref.card, places) if ref.card else user_hash(ref, places)
    return content if ref.folds is None else hash_with_folds(content, ref.folds)


def _card_hash(card: Card, places: Places) -> str:
    found = Search(card, places).local()
    if found is None and card.expect.content:
        return card.expect.content
    if found is None and places.allow_network:
        found = find(card, places)
    return found.content_hash() if found else recipe_hash(card, card.sources[0])


def _read(found: SourceFiles) -> Dataset:
    data = found.read()
    return Dataset(
        name=found.card.name,
        X=data.X,
        y=data.y,
        classes=np.unique(data.y),
        split=data.official,
        predefined=list(data.predefined) or None,
        content_hash=found.content_hash(),
        deviations=tuple(found.source.deviations),
        split_deviations=tuple(found.source.split_deviations),
        card=found.card,
    )
