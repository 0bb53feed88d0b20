"""Figures drawn from records, one module per figure.

An entry of `FIGURES` is a module or ``module:attribute``. The module defines the function `draw`,
which takes an experiment and an output path, writes the figure, and returns its numbers as text,
and `MACHINE`, the machine whose records the figure needs (None for any machine). If the module
defines ``FROM_TABLE = True``, the figure can also be drawn from the CSV of a reference table.
`EXPERIMENTS` lists the experiments with this figure in their reports; by default, the figure is
shown for experiments with the layout of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins

if TYPE_CHECKING:  # keeps `mmbench list figures` fast
    from mmbench.tables.results import Experiment

FIGURES = {
    "lfw_roc": "mmbench.tables.figures.lfw_roc",
    "mmrm_fig2": "mmbench.tables.figures.mmrm_fig2",
    "rmm_fig2": "mmbench.tables.figures.rmm_fig2",
    "m4_fig5": "mmbench.tables.figures.m4_boundaries:Figure5",
    "m4_fig6": "mmbench.tables.figures.m4_boundaries:Figure6",
    "m4_fig7": "mmbench.tables.figures.parameter_curves:M4Reduction",
    "fsvm_components": "mmbench.tables.figures.parameter_curves:FSVMComponents",
    "machines": "mmbench.tables.figures.machines",
    "critical_difference": "mmbench.tables.figures.critical_difference",
    "time_and_accuracy": "mmbench.tables.figures.time_and_accuracy",
}
# Figures of installed plug-ins are added.
FIGURES = with_plugins("figures", FIGURES)
SUFFIXES = (".pdf", ".png", ".svg")


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
    figure = resolve_name(FIGURES[name])
    machine = figure.MACHINE
    found = {e.name: e for e in results if (have := _machines(e)) and machine in (None, *have)}
    able = {n: e for n, e in found.items() if _suffices(figure, e)}
    if name in able or len(able) == 1:
        return able.get(name) or next(iter(able.values()))
    if able:
        raise UserError(f"{name} can be drawn of {', '.join(able)}; name one folder")
    if found:
        runs = " or ".join([name] if name in found else found)
        raise UserError(f"{name} needs records, and here are tables alone: mmbench run {runs}")
    whose = f" of {machine}" if machine else ""
    raise UserError(f"no finished record{whose}, which figure {name} needs")


def figures_of(results: Experiment) -> list[str]:
    """Return the names of the figures in the report of an experiment or of its smoke version."""
    experiment = results.plan.name.partition("-")[0]
    figures = {name: resolve_name(path) for name, path in FIGURES.items()}
    return [
        name
        for name, figure in figures.items()
        if name == results.plan.layout or experiment in getattr(figure, "EXPERIMENTS", ())
        if _suffices(figure, results)
    ]


def title_of(name: str) -> str:
    """Return the first line of a figure's docstring; the name itself if the figure is unknown."""
    path = FIGURES.get(name)
    return f"{resolve_name(path).__doc__}".partition("\n")[0] if path else f"{name}."


def _suffices(figure: Any, results: Experiment) -> bool:
    """Return whether a figure can be drawn from an experiment or reference table."""
    return results.has_records or getattr(figure, "FROM_TABLE", False)


def _machines(results: Experiment) -> set[str]:
    """Return the names of the machines with results."""
    if results.rows is not None:
        return {row.key.machine for row in results.rows if row.measured is not None}
    return {record.job.column for record in results.records if record.done}


def draw_figure(name: str, experiment: Experiment, output: Path) -> str:
    """Write a figure to a file and return its numbers as text.

    The suffix of `output` (png, pdf, svg) determines the format. Raises UserError if records are
    missing, or if the output cannot be written.
    """
    try:
        return resolve_name(FIGURES[name]).draw(experiment, output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the figure: {error.strerror}") from None
