"""The papers' figures from records, one file a figure.

A figure registers itself by one line in `FIGURES`. Its module holds `draw`, a function of an
experiment and an output path that writes the picture and returns its numbers in words, and
`MACHINE`, the machine whose records it needs; None where any will do. With ``FROM_TABLE = True`` it
can be drawn from the CSV of a reference table as well. `EXPERIMENTS` names the experiments that it
belongs to, whose reports show it; where there is none, those with a layout of its name.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import with_plugins
from mmbench.tables.records import Experiment
from mmbench.tables.results import Reference

FIGURES = {
    "lfw_roc": "mmbench.tables.figures.lfw_roc",
    "mmrm_fig2": "mmbench.tables.figures.mmrm_fig2",
    "rmm_fig2": "mmbench.tables.figures.rmm_fig2",
    "m4_fig5": "mmbench.tables.figures.m4_fig5",
    "m4_fig6": "mmbench.tables.figures.m4_fig6",
    "m4_fig7": "mmbench.tables.figures.m4_fig7",
    "machines": "mmbench.tables.figures.machines",
    "critical_difference": "mmbench.tables.figures.critical_difference",
    "time_and_accuracy": "mmbench.tables.figures.time_and_accuracy",
}
# and what installed packages add
FIGURES = with_plugins("figures", FIGURES)
SUFFIXES = (".pdf", ".png", ".svg")


def check_figure(name: str, output: Path | None) -> None:
    """Refuse an unknown figure or format of file."""
    if name not in FIGURES:
        raise UserError(f"unknown figure {name!r}{did_you_mean(name, FIGURES)}")
    if output and output.suffix.lower() not in SUFFIXES:
        raise UserError(f"{output}: a figure's file ends in {', '.join(SUFFIXES)}")


def choose(name: str, results: Sequence[Experiment | Reference]) -> Experiment | Reference:
    """Return what a figure is drawn of.

    The experiment or reference table that bears the figure's name, or else the only one with
    results of its machine.

    Raises UserError if there is none, or several.
    """
    module = import_module(FIGURES[name])
    machine = module.MACHINE
    found = {e.name: e for e in results if (have := _machines(e)) and machine in (None, *have)}
    able = {n: e for n, e in found.items() if isinstance(e, Experiment) or _from_table(module)}
    if name in able or len(able) == 1:
        return able.get(name) or next(iter(able.values()))
    if able:
        raise UserError(f"{name} can be drawn of {', '.join(able)}; name one folder")
    if found:
        runs = " or ".join([name] if name in found else found)
        raise UserError(f"{name} needs records, and here are tables alone: mmbench run {runs}")
    whose = f" of {machine}" if machine else ""
    raise UserError(f"no finished record{whose}, which figure {name} needs")


def figures_of(results: Experiment | Reference) -> list[str]:
    """Return the figures of an experiment, or a smaller version of it: its own, its layout's."""
    plan = results.plan
    modules = {figure: import_module(path) for figure, path in FIGURES.items()}
    return [
        figure
        for figure, module in modules.items()
        if figure == plan.layout
        or any(
            plan.name == own or plan.name.startswith(f"{own}-")
            for own in getattr(module, "EXPERIMENTS", ())
        )
        if isinstance(results, Experiment) or _from_table(module)
    ]


def title_of(name: str) -> str:
    """Return what a figure shows, as its module says in its first line; else its name."""
    module = FIGURES.get(name)
    return f"{import_module(module).__doc__}".partition("\n")[0] if module else f"{name}."


def _from_table(module: ModuleType) -> bool:
    return getattr(module, "FROM_TABLE", False)


def _machines(results: Experiment | Reference) -> set[str]:
    """Return the columns that have results."""
    if isinstance(results, Reference):
        return {row.key.machine for row in results.rows if row.measured is not None}
    return {record.job.column for record in results.records if record.done}


def draw_figure(name: str, experiment: Experiment | Reference, output: Path) -> str:
    """Draw a figure and return its numbers.

    The suffix of `output` (png, pdf, svg) says the format. Raises UserError if the records do not
    suffice, or the output cannot be written.
    """
    try:
        return import_module(FIGURES[name]).draw(experiment, output)
    except OSError as error:
        raise UserError(f"{output}: cannot write the figure: {error.strerror}") from None
