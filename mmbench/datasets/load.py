"""Load a data set, or compute its content hash, from a reference to the data set.

A card describes a data set, its sources and its expected content.
"""

from contextlib import suppress
from pathlib import Path

import numpy as np

from mmbench.datasets.card import Card
from mmbench.datasets.dataset import Dataset, DatasetRef, keep_classes
from mmbench.datasets.fetch import NotAvailable, Places, Search, SourceFiles, find, recipe_hash
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
    """Return a data set that agrees with its card, or a user's data set that passed all checks.

    Parameters
    ----------
    ref : DatasetRef or str
        Reference to a data set, or the name of a card.
    store : path
        Local folder of downloaded files, which is searched first.
    mirror : path or URL, optional
        Folder or URL with the same relative paths as the store, which is searched second. Files in
        a mirror folder are read in place. Files at a mirror URL are downloaded into the store.
    allow_network : bool
        Whether data may be downloaded from the mirror's URL and from the sources of the card.
    progress : bool
        Whether downloads show a progress bar.

    Raises
    ------
    UserError
        If the data cannot be obtained or are damaged, if a user's file has a fault, or if the
        preprocessing steps of `ref` do not fit the data. The error message is one line.
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
    """Return the hash that identifies the content of a data set.

    For a data set with a card, the hash covers values, labels and splits. If the card does not
    state the hash, the hash is computed from the data, and missing data are downloaded. If the
    download is impossible, the description of the source is hashed instead of the data. For
    generated data, the hash covers the generator, its version and its arguments. For a user's file,
    the hash covers the file, the target column and the options for reading the file.

    Raises
    ------
    UserError
        If the card does not exist, or if the data are needed and cannot be obtained.
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
        with suppress(NotAvailable):
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
