"""Data inside scikit-learn, and what its ``fetch_`` functions download."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources.base import SourceError, one_line, timeout
from mmbench.datasets.parsers.lfw import fold_splits, side_by_side

#: scikit-learn asks a server that fails once more, at least.
RETRIES = 1


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Call the loader that the source names."""
    if source.in_memory:
        return _bundled(str(source.loader), source.options)
    with time_limit():
        try:
            return FETCHERS[str(source.loader)](folder, source.options)
        except OSError as error:
            raise SourceError(f"scikit-learn's {source.loader}: {one_line(error)}") from error


def _bundled(loader: str, options: dict[str, Any]) -> Parsed:
    from sklearn import datasets

    bunch = getattr(datasets, loader)(**options)
    names = getattr(bunch, "target_names", None)
    y = bunch.target if names is None else np.asarray(names)[bunch.target]
    return Parsed(bunch.data.astype(np.float64), np.asarray(y))


def _people(folder: Path, options: dict[str, Any]) -> Parsed:
    from sklearn.datasets import fetch_lfw_people

    bunch = fetch_lfw_people(data_home=folder, n_retries=RETRIES, **options)
    names = np.char.replace(bunch.target_names, " ", "_")  # as the archive has them
    return Parsed(_to_bytes(bunch.data), names[bunch.target])


def _pairs(folder: Path, options: dict[str, Any]) -> Parsed:
    from sklearn.datasets import fetch_lfw_pairs

    bunch = fetch_lfw_pairs(data_home=folder, n_retries=RETRIES, subset="10_folds", **options)
    X = side_by_side(_to_bytes(bunch.pairs))
    fold = np.arange(len(X)) // (len(X) // 10)  # the list goes fold by fold
    return Parsed(X, bunch.target.astype(np.int64), None, fold_splits(fold))


def _to_bytes(images: np.ndarray) -> np.ndarray:
    return np.round(images * 255).astype(np.uint8)


FETCHERS = {"fetch_lfw_people": _people, "fetch_lfw_pairs": _pairs}


@contextmanager
def time_limit() -> Iterator[None]:
    """Limit the silence of a server; scikit-learn passes no limit to ``urlopen`` itself."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(timeout())
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
