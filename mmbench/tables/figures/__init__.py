"""Figures by name.

The figures of mmbench are entries of ``figures.yaml``. A plug-in defines a figure by a module with
the function `draw`, which writes the figure to a file and returns its numbers as text. The
plug-in's module may contain the constants `MACHINE`, `EXPERIMENTS` and `FROM_TABLE`, which are
described at the fields of `Figure`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, converted, did_you_mean
from mmbench.tables.catalogue import catalogue, entry_as

if TYPE_CHECKING:  # a late import keeps `mmbench list figures` fast
    from mmbench.tables.results import Experiment

FIGURES = catalogue("figures")
SUFFIXES = (".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Figure:
    """A figure, which is an entry of ``figures.yaml`` or the module of a plug-in."""

    #: Title, one line.
    about: str
    #: Function that draws the figure, as ``module:function``, and further arguments of the
    #: function.
    draw: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Machine whose results are needed to draw the figure; None if no particular machine is needed.
    machine: str | None = None
    #: Experiments with the figure in their reports. The figure is also in the report if the layout
    #: of the experiment has the name of the figure.
    experiments: Sequence[str] = ()
    #: Whether the figure can be drawn from the CSV of a reference table, without records.
    from_table: bool = False


def find_figure(name: str) -> Figure:
    """Return a figure by its name."""
    return entry_as(Figure, FIGURES[name], "draw")


def check_figure(name: str, output: Path | None) -> None:
    """Raise UserError if the figure or the file format is unknown."""
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    if output and output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: the file name must end in {', '.join(SUFFIXES)}")


def choose(name: str, results: Sequence[Experiment]) -> Experiment:
    """Return the experiment or reference table from which a figure is drawn.

    If no experiment has the name of the figure, exactly one experiment must have results of the
    figure's machine. Raises UserError if no experiment or several experiments are suitable.
    """
    figure = find_figure(name)
    machine = figure.machine
    found = {e.name: e for e in results if (have := _machines(e)) and machine in (None, *have)}
    able = {n: e for n, e in found.items() if e.has_records or figure.from_table}
    if name in able or len(able) == 1:
        return able.get(name) or next(iter(able.values()))
    if able:
        raise UserError(f"{name} can be drawn from {', '.join(able)}; give one folder")
    if found:
        runs = " or ".join([name] if name in found else found)
        raise UserError(f"figure {name} needs records, not only a table; run: mmbench run {runs}")
    whose = f" of {machine}" if machine else ""
    raise UserError(f"no finished record{whose}, which figure {name} needs")


def figures_of(results: Experiment) -> list[str]:
    """Return the names of the figures in the report of an experiment."""
    experiment = results.plan.name.partition("-")[0]
    return [
        name
        for name, figure in zip(FIGURES, map(find_figure, FIGURES), strict=True)
        if name == results.plan.layout or experiment in figure.experiments
        if results.has_records or figure.from_table
    ]


def title_of(name: str) -> str:
    """Return the title of a figure, or the name if there is no figure with this name."""
    return find_figure(name).about if name in FIGURES else f"{name}."


def _machines(results: Experiment) -> set[str]:
    """Return the names of the machines with results."""
    if results.frame is not None:
        return {key.machine for key in results.frame.dropna(subset="measured").key}
    return {record.job.column for record in results.records if record.done}


def draw_figure(name: str, experiment: Experiment, output: Path) -> str:
    """Write a figure to a file and return the numbers in the figure as text.

    The suffix of `output` (png, pdf, svg) determines the format. Raises UserError if records are
    missing, or if the output cannot be written.
    """
    with converted(f"{output}: cannot write the figure", OSError):
        figure = find_figure(name)
        numbers = resolve_name(figure.draw)(experiment, output, **figure.options)
        if output.suffix.lower() == ".svg":
            write_title(output, figure.about)
    return numbers


def write_title(svg: Path, title: str) -> None:
    """Add a title for screen readers to an SVG file without a title."""
    text = svg.read_text("utf-8")
    if "<title>" not in text:
        element = f"\n <title>{escape(title)}</title>"
        svg.write_text(re.sub("<svg[^>]*>", lambda tag: tag[0] + element, text, count=1), "utf-8")
