"""Load the data set that a `DatasetRef` refers to, or compute the hash of its content."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Dataset, DatasetRef, keep_classes
from mmbench.datasets.fetch import NotAvailable, Places, Search, find, recipe_hash
from mmbench.datasets.partitions import hash_with_folds, with_folds
from mmbench.datasets.preprocess import check_steps
from mmbench.datasets.user_tables import load_user_data, user_hash
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
        Data set, as a `DatasetRef` or as the name of a card.
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
        preprocessing steps of `ref` cannot be applied to the data. The error message is one line.
    """
    ref = DatasetRef(ref) if isinstance(ref, str) else ref
    card, places = ref.card, Places(Path(store), mirror, allow_network, progress)
    if card is None:
        data = load_user_data(ref, places)
    else:
        found = find(card, places)
        own, source = found.read(), found.source
        splits = own.official, list(own.predefined) or None, found.content_hash()
        notes = tuple(source.deviations), tuple(source.split_deviations)
        data = Dataset(card.name, own.X, own.y, np.unique(own.y), *splits, *notes, card=card)
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

        card          values, labels and splits; if the card does not state the hash, it is taken
                      from the data or, if the download fails, from the description of the source
        generated     generator, its version and its arguments
        user's file   file, target column and options for reading it

    Raises
    ------
    UserError
        If the card does not exist, or if the data are needed and cannot be obtained.
    """
    ref = DatasetRef(ref) if isinstance(ref, str) else ref
    places = Places(Path(store), mirror, allow_network)
    if (card := ref.card) is None:
        content = user_hash(ref, places)
    else:
        found = Search(card, places).local()
        if not (found or card.expect.content) and places.allow_network:
            with suppress(NotAvailable):
                found = find(card, places)
        stated = card.expect.content or recipe_hash(card, card.sources[0])
        content = found.content_hash() if found else stated
    return content if ref.folds is None else hash_with_folds(content, ref.folds)
