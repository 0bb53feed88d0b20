"""The papers' figures from records, one file a figure.

A figure registers itself by one line in `FIGURES`. Its module holds `draw`, a function of an
experiment and an output path that writes the picture and returns its numbers in words, and
`MACHINE`, the machine whose records it needs; None where any will do.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from mmbench.errors import UserError, did_you_mean
from mmbench.tables.records import Experiment, read_experiments

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


def figure(name: str, results: str | Path, output: str | Path) -> str:
    """Draw a figure.

    Parameters
    ----------
    name : str
        One of `list_figures`.
    results : path
        The folder of an experiment, or a results folder; there, the experiment that bears the
        figure's name is taken, or else the only one with records of the figure's machine.
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
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    output = Path(output)
    if output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: a figure's file ends in {', '.join(SUFFIXES)}")
    module = import_module(FIGURES[name])
    try:
        return module.draw(_choose(name, module, Path(results)), output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the figure: {error.strerror}") from None


def _choose(name: str, module: ModuleType, results: Path) -> Experiment:
    experiments = read_experiments(results)
    suitable = {e.name: e for e in experiments if _has_machine(e, module.MACHINE)}
    if name in suitable:
        return suitable[name]
    if not suitable:
        whose = f" of {module.MACHINE}" if module.MACHINE else ""
        raise UserError(f"{results}: no finished record{whose}, which {name} needs")
    if len(suitable) > 1:
        raise UserError(f"{results}: {name} can be drawn of {', '.join(suitable)}; name one folder")
    return next(iter(suitable.values()))


def _has_machine(experiment: Experiment, machine: str | None) -> bool:
    done = (r["job"]["machine"] for r in experiment.records if r["metrics"])
    return any(machine in (name, None) for name in done)
