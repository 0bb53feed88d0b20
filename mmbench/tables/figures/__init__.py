"""The papers' figures from records, one file a figure.

A figure registers itself by one line in `FIGURES`. Its module holds `draw`, a function of an
experiment and an output path that writes the picture and returns its numbers in words, and
`MACHINE`, the machine whose records it needs; None where any will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from mmbench.errors import UserError, did_you_mean
from mmbench.tables.records import Experiment

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


def check_figure(name: str, output: Path) -> None:
    """Refuse an unknown figure or format of file.

    Raises
    ------
    UserError
    """
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    if output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: a figure's file ends in {', '.join(SUFFIXES)}")


def draw_figure(name: str, experiments: Sequence[Experiment], output: Path) -> str:
    """Draw a figure.

    Parameters
    ----------
    name : str
        One of `list_figures`.
    experiments : sequence of Experiment
        The one that bears the figure's name is drawn, or else the only one with records of the
        figure's machine.
    output : path
        File to write; its suffix (png, pdf, svg) says the format.

    Returns
    -------
    str
        The figure's numbers.

    Raises
    ------
    UserError
        If there is no such figure, no suitable record, or the output cannot be written.
    """
    check_figure(name, output)
    module = import_module(FIGURES[name])
    try:
        return module.draw(_choose(name, module, experiments), output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the figure: {error.strerror}") from None


def _choose(name: str, module: ModuleType, experiments: Sequence[Experiment]) -> Experiment:
    suitable = {e.name: e for e in experiments if _has_machine(e, module.MACHINE)}
    if name in suitable:
        return suitable[name]
    if not suitable:
        whose = f" of {module.MACHINE}" if module.MACHINE else ""
        raise UserError(f"no finished record{whose}, which {name} needs")
    if len(suitable) > 1:
        raise UserError(f"{name} can be drawn of {', '.join(suitable)}; name one folder")
    return next(iter(suitable.values()))


def _has_machine(experiment: Experiment, machine: str | None) -> bool:
    done = (record.job.machine for record in experiment.records if record.done)
    return any(machine in (name, None) for name in done)
