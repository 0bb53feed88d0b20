"""Files from the web, through pooch."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from mmbench.datasets.card import Card, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources.base import SourceError, one_line, timeout
from mmbench.datasets.parsers import parse

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


def obtain(card: Card, source: Source, folder: Path, progress: bool) -> Parsed:
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
