"""The folder of a report: pages, files that all pages use, and filters of the templates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench import __version__
from mmbench.errors import UserError, converted, extra, visible
from mmbench.tables.blocks import total_with_search, with_search_text
from mmbench.tables.protocol import preprocessed
from mmbench.tables.render import environment
from mmbench.tables.report.pictures import share_marks
from mmbench.tables.report.view import (
    card_of,
    duration,
    limits_text,
    metric_name,
    number,
    parameters_text,
    published,
    run_facts,
    signed,
)
from mmbench.tables.text import groupwise, kernel_text, plain, small_text

if TYPE_CHECKING:
    from jinja2 import Template

#: Name of the overview page, and beginning of an HTML tag in this page. The tag shows that a folder
#: is a report.
INDEX = "index.html"
GENERATOR = '<meta name="generator" content="mmbench'


class Site:
    """Writes the files of a report to a folder.

    The constructor writes the files that all pages use. Raises UserError if the folder cannot be
    written to, or if it contains files that do not belong to an earlier report.
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
            raise UserError(f"{folder}: contains other files than a report; give an empty folder")
        # the overview page marks the folder as a report, even if a later error leaves the report
        # unfinished
        self.text(INDEX, f'<!doctype html>{GENERATOR}"><title>unfinished</title>Unfinished report')
        for asset in files("mmbench.tables.report").joinpath("assets").iterdir():
            self.text(f"assets/{asset.name}", asset.read_text(encoding="utf-8"))
        self.text("assets/plotly.min.js", get_plotlyjs())

    def page(self, path: str, name: str, **values: Any) -> Path:
        """Write a page that is rendered from a template.

        In the template, `root` is the relative path from the page to the folder of the report.
        """
        values |= {"root": "../" * path.count("/"), "version": __version__}
        return self.text(path, visible(template(name).render(**values)))

    def text(self, path: str, text: str) -> Path:
        """Write a text to a file of the report. Returns the path of the file."""
        target = self.path(path)
        with converted(f"{target}: cannot be written", OSError):
            target.write_text(text, encoding="utf-8")
        return target

    def path(self, path: str) -> Path:
        """Return the path of a file in the report, and create the folder of the file.

        If the file, or a folder of the report on its path, is a symbolic link, the link is removed,
        so that no file outside the report is overwritten.
        """
        target = self.folder / path
        with converted(f"{target.parent}: cannot be written", OSError):
            for part in (*reversed(target.parents), target):
                if self.folder in part.parents and part.is_symlink():
                    part.unlink()
            target.parent.mkdir(parents=True, exist_ok=True)
        return target


def template(name: str) -> Template:
    """Return a jinja2 template of the report, with the filters that the templates use."""
    filters = (
        *(card_of, duration, groupwise, kernel_text, limits_text, metric_name, most_confused),
        *(number, optional, parameters_text, plain, preprocessed, published, run_facts),
        *(share_marks, signed, small_text, total_with_search, with_search_text),
    )
    return environment("mmbench.tables.report", filters, autoescape=True).get_template(name)


def optional(value: float | None, form: str = "", nothing: str = "") -> Any:
    """Return a number in the format `form`. If the number is None or NaN, return `nothing`.

    Examples
    --------
    >>> optional(0.1234, ".2f"), optional(None, ".2f"), optional(float("nan"), nothing="–")
    ('0.12', '', '–')
    """
    return nothing if value is None or math.isnan(value) else f"{value:{form}}" if form else value


def most_confused(confusion: Mapping[str, Sequence[int]]) -> int:
    """Return the largest off-diagonal entry of a confusion matrix, or 1 if all off-diagonal entries
    are 0.
    """
    rows = enumerate(confusion.values())
    errors = (count for k, counts in rows for j, count in enumerate(counts) if j != k)
    return max(errors, default=0) or 1
