"""Figures by name, from ``figures.yaml`` and from plug-ins.

A plug-in's module defines `draw`, which returns the figure's numbers as text, and may define
`MACHINE`, `EXPERIMENTS`, `FROM_TABLE` and `SIZED`: fields of `Figure`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, check_known, converted
from mmbench.tables.catalogue import catalogue, entry_as

if TYPE_CHECKING:  # not imported at run time, to keep `mmbench list figures` fast
    from mmbench.results.frames import Results

FIGURES = catalogue("figures")
SUFFIXES = (".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Figure:
    """A figure, defined by an entry of ``figures.yaml`` or by the module of a plug-in."""

    #: Title, one line.
    about: str
    #: Name of the function that draws the figure, in the form ``module:function``. The field
    #: `options` contains further arguments of the function.
    draw: str
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Machine whose results the figure shows, or None for any machine.
    machine: str | None = None
    #: Names of experiments whose reports contain the figure. In addition, the figure is in the
    #: reports of experiments whose layout has the same name as the figure.
    experiments: Sequence[str] = ()
    #: Whether the CSV file of a reference table is sufficient to draw the figure, so that no
    #: records are needed.
    from_table: bool = False
    #: Whether the figure can show several training sizes.
    sized: bool = False


def find_figure(name: str) -> Figure:
    """Return a figure by its name."""
    return entry_as(Figure, FIGURES[name], "draw")


def check_figure(name: str, output: Path | None) -> None:
    """Raise UserError if the figure or the file format is unknown."""
    check_known(name, FIGURES, "unknown figure")
    if output and output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: the file name must end in {', '.join(SUFFIXES)}")


def choose(name: str, results: Sequence[Results]) -> Results:
    """Return the experiment or the reference table from which a figure is drawn.

    A suitable experiment has results of the figure's machine. If the figure needs records, a
    suitable experiment also has records. If several experiments are suitable, the experiment with
    the name of the figure is chosen. Raises UserError if no experiment is suitable, or if several
    experiments are suitable and none of them has the name of the figure.
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


def figures_of(results: Results) -> list[str]:
    """Return the names of the figures that the report of an experiment contains."""
    return [
        name
        for name, figure in zip(FIGURES, map(find_figure, FIGURES), strict=True)
        if name == results.plan.layout or results.plan.name.partition("-")[0] in figure.experiments
        if results.has_records or figure.from_table
    ]


def title_of(name: str) -> str:
    """Return the title of a figure. If no figure has this name, return the name."""
    return find_figure(name).about if name in FIGURES else f"{name}."


def _machines(results: Results) -> set[str]:
    """Return the names of the machines that have results in an experiment."""
    if results.stored is not None:
        return set(results.stored.dropna(subset="measured").machine)
    return {row.machine for rows in results.by_cell.values() for row in rows if row.accuracy_pct}


def draw_figure(name: str, results: Results, output: Path, **options: Any) -> str:
    """Write a figure to a file, and return the numbers in the figure as text.

    The suffix of the file name `output` (png, pdf or svg) determines the format. The `options` are
    further arguments of the function that draws the figure. Raises UserError if records are
    missing, if the experiment has several training sizes that the figure cannot show, or if the
    output cannot be written.
    """
    from mmbench.jobs.disk import write_atomically

    figure = find_figure(name)
    if results.sized and not figure.sized:
        raise UserError(f"{results.name}: figure {name} cannot show several training sizes")
    with converted(f"{output}: cannot write the figure", OSError), TemporaryDirectory() as folder:
        drawn = Path(folder) / output.name
        plan = results.plan  # escape dollars, which enclose formulas in matplotlib
        labels = {name: label.replace("$", r"\$") for name, label in plan.labels.items()}
        results = replace(results, plan=replace(plan, labels=labels))
        numbers = resolve_name(figure.draw)(results, drawn, **figure.options, **options)
        content = drawn.read_bytes()
        if output.suffix.lower() == ".svg":  # a title for screen readers
            title = f"\n <title>{escape(figure.about)}</title>".encode()
            content = re.sub(b"<svg[^>]*>", lambda tag: tag[0] + title, content, count=1)
        write_atomically(output, content)
    return numbers.replace(r"\$", "$")
