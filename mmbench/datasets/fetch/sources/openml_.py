"""OpenML: the ``openml`` package tells what a data set is, and its file is downloaded by URL.

The package gives its requests no time limit, so its one small request runs in a thread that can be
left. The file, which may be large, comes with a progress bar, a time limit and its MD5.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources.base import SourceError, one_line, timeout
from mmbench.datasets.fetch.sources.url import download
from mmbench.datasets.parsers import parse

if TYPE_CHECKING:
    from openml import OpenMLDataset

SERVER = "MMBENCH_OPENML_SERVER"
DEFAULT_SERVER = "https://www.openml.org/api/v1/xml"


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
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
        "server": os.environ.get(SERVER, DEFAULT_SERVER),
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
