"""The folder of a report: its pages, and what all of them share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench import __version__
from mmbench.errors import UserError, extra
from mmbench.tables.report.view import metric_name

if TYPE_CHECKING:
    from jinja2 import Environment

    from mmbench.tables.measures import Confusion
    from mmbench.tables.model import Column

#: The first page, by which a folder is known as a report.
INDEX = "index.html"
GENERATOR = '<meta name="generator" content="mmbench'
ASSETS = ("report.css", "report.js")
PLOTLY = "plotly.min.js"
#: Marks of footnotes at the end of a cell's text.
NOTES = re.compile(r"(?:\s*\[\d+\])+$")


class Site:
    """Writes files below the folder of a report.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def create(cls, folder: Path) -> Site:
        """Return the site in a folder, with the files that all pages share.

        Raises UserError if the folder holds something else, or cannot be written to.
        """
        _refuse_foreign(folder)
        site = cls(folder)
        for name in ASSETS:
            site.text(f"assets/{name}", _asset(name))
        with extra("report", "a report"):
            from plotly.offline import get_plotlyjs

        site.text(f"assets/{PLOTLY}", get_plotlyjs())
        return site

    def page(self, path: str, template: str, **values: Any) -> Path:
        """Write a page made of a template, which gets the way back to the first one as `root`."""
        root = "../" * path.count("/")
        page = self._environment.get_template(template).render(root=root, **values)
        return self.text(path, page)

    def csv(self, path: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write rows as a CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return self.text(path, text.getvalue())

    def text(self, path: str, text: str) -> Path:
        """Write a file."""
        target = self.path(path)
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{target}: cannot be written: {error.strerror}") from None
        return target

    def path(self, path: str) -> Path:
        """Return where a file of the site is to be; its folder is made."""
        target = self.folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{target.parent}: cannot be written: {error.strerror}") from None
        return target

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("mmbench.tables.report"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals["version"] = __version__
        filters = (footnotes, groupwise, metric_name, most_confused)
        environment.filters |= {function.__name__: function for function in filters}
        return environment


def footnotes(text: str) -> tuple[str, list[str]]:
    """Return a cell's text without its footnotes, and their numbers.

    Examples
    --------
    >>> footnotes("95.2 (0.1) ✓ [1][3]")
    ('95.2 (0.1) ✓', ['1', '3'])
    """
    found = NOTES.search(text)
    return (text[: found.start()], re.findall(r"\d+", found[0])) if found else (text, [])


def groupwise(columns: Iterable[Column]) -> list[tuple[str, int]]:
    """Return the groups of columns, each with how many columns it spans."""
    groups = (column.group for column in columns)
    return [(group, len(list(same))) for group, same in groupby(groups)]


def most_confused(confusion: Confusion) -> int:
    """Return the largest count of test rows of one class that were taken for another."""
    size = range(len(confusion.labels))
    errors = (confusion.counts[row][column] for row in size for column in size if row != column)
    return max(errors, default=0) or 1


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier report, before a file is written."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"{folder}: is a file, not a folder for a report")
    index = folder / INDEX
    ours = index.is_file() and GENERATOR in index.read_text("utf-8", "replace")[:2000]
    if not ours and any(folder.iterdir()):
        raise UserError(f"{folder}: holds other files than a report; name a new folder")


def _asset(name: str) -> str:
    return files("mmbench.tables.report").joinpath("assets", name).read_text(encoding="utf-8")
