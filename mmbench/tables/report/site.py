"""The folder of a report: its pages, and the files and filters that all of them share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mmbench import __version__
from mmbench.errors import UserError, extra
from mmbench.tables.model import kernel_text
from mmbench.tables.report.view import metric_name, number, published, signed

if TYPE_CHECKING:
    from jinja2 import Environment

    from mmbench.tables.measures import Confusion
    from mmbench.tables.model import Column

#: The first page, by which a folder is known as a report.
INDEX = "index.html"
GENERATOR = '<meta name="generator" content="mmbench'
#: Marks of footnotes at the end of a cell's text.
NOTES = re.compile(r"(?:\s*\[\d+\])+$")


class Site:
    """Writer of the files below the folder of a report.

    The folder gets the files that all pages share. Raises UserError if it holds anything but an
    earlier report, or cannot be written to.
    """

    def __init__(self, folder: Path):
        with extra("report", "a report"):
            from plotly.offline import get_plotlyjs

        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder}: is a file, not a folder for a report")
        index = folder / INDEX
        ours = index.is_file() and GENERATOR in index.read_text("utf-8", "replace")[:2000]
        if folder.exists() and not ours and any(folder.iterdir()):
            raise UserError(f"{folder}: holds other files than a report; name a new folder")
        for asset in files("mmbench.tables.report").joinpath("assets").iterdir():
            self.text(f"assets/{asset.name}", asset.read_text(encoding="utf-8"))
        self.text("assets/plotly.min.js", get_plotlyjs())

    def page(self, path: str, template: str, **values: Any) -> Path:
        """Write a page made of a template, which gets the way back to the first one as `root`."""
        page = self._environment.get_template(template)
        return self.text(path, page.render(root="../" * path.count("/"), **values))

    def table(self, path: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Path:
        """Write rows as CSV; integers beside missing values stay integers."""
        frame = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
        return self.text(path, frame.to_csv(index=False, lineterminator="\n"))

    def text(self, path: str, text: str) -> Path:
        """Write a file."""
        target = self.path(path)
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"{target}: cannot be written: {error.strerror}") from None
        return target

    def path(self, path: str) -> Path:
        """Return the path of a file of the site; its folder is made."""
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
        own = (footnotes, groupwise, kernel_text, metric_name, most_confused)
        filters = (*own, number, optional, published, signed)
        environment.filters |= {function.__name__: function for function in filters}
        return environment


def optional(value: float | None, form: str = "", nothing: str = "") -> Any:
    """Return a formatted number, as it is without a format; `nothing` for None and NaN.

    Examples
    --------
    >>> optional(0.1234, ".2f"), optional(None, ".2f"), optional(float("nan"), nothing="–")
    ('0.12', '', '–')
    """
    if value is None or math.isnan(value):
        return nothing
    return f"{value:{form}}" if form else value


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
    """Return the groups of columns, each with the number of columns that it spans."""
    groups = (column.group for column in columns)
    return [(group, len(list(same))) for group, same in groupby(groups)]


def most_confused(confusion: Confusion) -> int:
    """Return the largest count of test rows of one class that were predicted as another."""
    size = range(len(confusion.labels))
    errors = (confusion.counts[row][column] for row in size for column in size if row != column)
    return max(errors, default=0) or 1
