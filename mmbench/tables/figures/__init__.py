"""The papers' figures from records, one file a figure.

A figure registers itself by one line in `FIGURES`. Its module holds `draw`, a function of an
experiment and an output path that writes the picture and returns its numbers in words, and
`MACHINE`, the machine whose records it needs; None where any will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from mmbench.errors import UserError, did_you_mean
from mmbench.tables.records import Experiment
from mmbench.tables.reference import Reference

FIGURES = {
    "lfw_roc": "mmbench.tables.figures.lfw_roc",
    "mmrm_fig2": "mmbench.tables.figures.mmrm_fig2",
    "rmm_fig2": "mmbench.tables.figures.rmm_fig2",
    "m4_fig5": "mmbench.tables.figures.m4_fig5",
    "m4_fig6": "mmbench.tables.figures.m4_fig6",
    "m4_fig7": "mmbench.tables.figures.m4_fig7",
    "critical_difference": "mmbench.tables.figures.critical_difference",
}
SUFFIXES = (".pdf", ".png", ".svg")


def list_figures() -> list[str]:
    """Return the names of the figures."""
    return list(FIGURES)


def check_figure(name: str, output: Path | None) -> None:
    """Refuse an unknown figure or format of file.

    Raises
    ------
    UserError
    """
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    if output and output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: a figure's file ends in {', '.join(SUFFIXES)}")


def choose(name: str, experiments: Sequence[Experiment | Reference]) -> Experiment:
    """Return the experiment that a figure is drawn of.

    The one that bears the figure's name, or else the only one with records of its machine.

    Raises
    ------
    UserError
        If there is none, or several.
    """
    machine = import_module(FIGURES[name]).MACHINE
    found = {e.name: e for e in experiments if isinstance(e, Experiment) and _has(e, machine)}
    if name in found or len(found) == 1:
        return found.get(name) or next(iter(found.values()))
    if found:
        raise UserError(f"{name} can be drawn of {', '.join(found)}; name one folder")
    whose = f" of {machine}" if machine else ""
    raise UserError(f"no finished record{whose}, which {name} needs")


def _has(experiment: Experiment, machine: str | None) -> bool:
    done = (record.job.column for record in experiment.records if record.done)
    return any(machine in (name, None) for name in done)


def draw_figure(name: str, experiment: Experiment, output: Path) -> str:
    """Draw a figure and return its numbers.

    Parameters
    ----------
    name : str
        One of `list_figures`.
    experiment : Experiment
        As from `choose`.
    output : path
        File to write; its suffix (png, pdf, svg) says the format.

    Raises
    ------
    UserError
        If the records do not do, or the output cannot be written.
    """
    try:
        return import_module(FIGURES[name]).draw(experiment, output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the figure: {error.strerror}") from None
