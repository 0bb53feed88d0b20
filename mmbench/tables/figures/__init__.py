"""Registry of figures by name.

An entry of `FIGURES` is ``module:attribute`` for a `Figure` as data, or a module. The module of a
figure defines the function `draw`, and `MACHINE`, the machine whose records the figure needs (None
for any machine); optional attributes are `EXPERIMENTS` and `FROM_TABLE`. See `Figure`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, converted, did_you_mean
from mmbench.plugins import with_plugins

if TYPE_CHECKING:  # keeps `mmbench list figures` fast
    from mmbench.tables.results import Experiment

FIGURES = {
    "lfw_roc": "mmbench.tables.figures.lfw_roc",
    "mmrm_fig2": "mmbench.tables.figures.mmrm_fig2",
    "rmm_fig2": "mmbench.tables.figures.rmm_fig2",
    "m4_fig5": "mmbench.tables.figures.m4_boundaries:m4_fig5",
    "m4_fig6": "mmbench.tables.figures.m4_boundaries:m4_fig6",
    "m4_fig7": "mmbench.tables.figures.curves:m4_fig7",
    "fsvm_components": "mmbench.tables.figures.curves:fsvm_components",
    "machines": "mmbench.tables.figures.machines:machines",
    "critical_difference": "mmbench.tables.figures.machines:critical_difference",
    "time_and_accuracy": "mmbench.tables.figures.machines:time_and_accuracy",
}
# Figures of installed plug-ins are added.
FIGURES = with_plugins("figures", FIGURES)
SUFFIXES = (".pdf", ".png", ".svg")


@dataclass(frozen=True)
class Figure:
    """A figure as data."""

    #: Title, one line.
    about: str
    #: Function that writes the figure of an experiment to a file and returns its numbers as text.
    draw: Callable[[Experiment, Path], str]
    #: Machine whose results the figure needs; None for any machine.
    machine: str | None = None
    #: Experiments with the figure in their reports, besides those with the layout of this name.
    experiments: Sequence[str] = ()
    #: Whether the CSV of a reference table suffices.
    from_table: bool = False

    def suffices(self, results: Experiment) -> bool:
        """Return whether the figure can be drawn from an experiment or reference table."""
        return results.has_records or self.from_table


def find_figure(name: str) -> Figure:
    """Return a figure by its name."""
    found: Any = resolve_name(FIGURES[name])
    if isinstance(found, Figure):
        return found
    names = [n for n in ("MACHINE", "EXPERIMENTS", "FROM_TABLE") if hasattr(found, n)]
    options = {name.lower(): getattr(found, name) for name in names}
    return Figure(str(found.__doc__).partition("\n")[0], found.draw, **options)


def check_figure(name: str, output: Path | None) -> None:
    """Raise UserError if the figure or the file format is unknown."""
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    if output and output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: a figure's file ends in {', '.join(SUFFIXES)}")


def choose(name: str, results: Sequence[Experiment]) -> Experiment:
    """Return the experiment or reference table from which a figure is drawn.

    The results with the name of the figure are returned or, if there are none, the only results of
    the figure's machine. Raises UserError if no results or several results are suitable.
    """
    figure = find_figure(name)
    machine = figure.machine
    found = {e.name: e for e in results if (have := _machines(e)) and machine in (None, *have)}
    able = {n: e for n, e in found.items() if figure.suffices(e)}
    if name in able or len(able) == 1:
        return able.get(name) or next(iter(able.values()))
    if able:
        raise UserError(f"{name} can be drawn from {', '.join(able)}; name one folder")
    if found:
        runs = " or ".join([name] if name in found else found)
        raise UserError(f"{name} needs records, but there are tables alone: mmbench run {runs}")
    whose = f" of {machine}" if machine else ""
    raise UserError(f"no finished record{whose}, which figure {name} needs")


def figures_of(results: Experiment) -> list[str]:
    """Return the names of the figures in the report of an experiment or of its smoke version."""
    experiment = results.plan.name.partition("-")[0]
    return [
        name
        for name, figure in zip(FIGURES, map(find_figure, FIGURES), strict=True)
        if name == results.plan.layout or experiment in figure.experiments
        if figure.suffices(results)
    ]


def title_of(name: str) -> str:
    """Return the title of a figure; the name itself if the figure is unknown."""
    return find_figure(name).about if name in FIGURES else f"{name}."


def _machines(results: Experiment) -> set[str]:
    """Return the names of the machines with results."""
    if results.frame is not None:
        return {key.machine for key in results.frame.dropna(subset="measured").key}
    return {record.job.column for record in results.records if record.done}


def draw_figure(name: str, experiment: Experiment, output: Path) -> str:
    """Write a figure to a file and return its numbers as text.

    The suffix of `output` (png, pdf, svg) determines the format. Raises UserError if records are
    missing, or if the output cannot be written.
    """
    with converted(f"{output}: cannot write the figure", OSError):
        return find_figure(name).draw(experiment, output)
