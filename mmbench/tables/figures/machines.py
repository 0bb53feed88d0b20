"""Machines side by side: the metric on every split, and its mean, the best machine on top."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing
from mmbench.tables.model import join, kernel_caption
from mmbench.tables.records import Experiment
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Any machine will do.
MACHINE = None
#: Inches a line, and a panel beside its lines.
LINE, FRAME = 0.27, 0.9


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return the means.

    Raises UserError if nothing has a result.
    """
    sheet = sheet_of(experiment, "machines")
    panels = {place: values for place in sheet.places if (values := _values(sheet, place))}
    if not panels:
        raise UserError(f"{experiment.name}: no machine has a result")
    heights = [FRAME + LINE * len(values) for values in panels.values()]
    with drawing(output, PAGE, sum(heights)) as canvas:
        rows = canvas.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (place, values) in zip(rows, panels.items(), strict=True):
            _panel(axes, values)
            axes.set_title(_name(sheet, place))
        rows[-1].set_xlabel("accuracy on each test part (%), and mean")
    return "\n".join(_describe(sheet, place, values) for place, values in panels.items())


def _values(sheet: Sheet, place: Key) -> dict[str, list[float]]:
    """Return the accuracies of each machine, the worst first; of equal ones the last first."""
    found = {
        sheet.label(machine): list(splits.values())
        for machine in reversed(sheet.machines)
        if (splits := sheet.by_split.get(place._replace(machine=machine)))
    }
    return dict(sorted(found.items(), key=lambda item: fmean(item[1])))


def _panel(axes: Axes, values: dict[str, list[float]]) -> None:
    for k, splits in enumerate(values.values()):
        axes.plot(splits, [k] * len(splits), "o", ms=4, mew=0, color=colour(0), alpha=0.4)
        axes.plot([fmean(splits)], [k], "|", ms=13, mew=2, color=colour(1))
    axes.set_yticks(range(len(values)), list(values))
    axes.set_ylim(-0.6, len(values) - 0.4)
    axes.grid(visible=False, axis="y")


def _name(sheet: Sheet, place: Key) -> str:
    size = "" if place.size is None else f", {place.size} rows"
    return join(place.dataset, f"({kernel_caption(place.kernel, place.degree)}{size})")


def _describe(sheet: Sheet, place: Key, values: dict[str, list[float]]) -> str:
    best_first = reversed(values.items())
    texts = (f"{label} {fmean(splits):.1f}" for label, splits in best_first)
    return f"{_name(sheet, place)}: {', '.join(texts)}"
