"""Machines side by side: the metric on every split, and its mean, the best machine on top."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from mmbench.errors import UserError
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing, name_lines
from mmbench.tables.model import join, kernel_caption
from mmbench.tables.results import Experiment
from mmbench.tables.sheet import Sheet

#: The figure can be drawn for any machines.
MACHINE = None
#: Height of the row of one machine, and height of a panel without these rows, in inches.
LINE, FRAME = 0.27, 0.9


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return the mean accuracies as text.

    Raises UserError if no machine has a result.
    """
    sheet = sheet_of(experiment, "machines")
    panels = {row: values for row in sheet.places if (values := accuracies(sheet, row))}
    if not panels:
        raise UserError(f"{experiment.name}: no machine has a result")
    heights = [FRAME + LINE * len(values) for values in panels.values()]
    lines = []
    with drawing(output, PAGE, sum(heights)) as canvas:
        grid = canvas.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (key, values) in zip(grid, panels.items(), strict=True):
            for k, splits in enumerate(values.values()):
                axes.plot(splits, [k] * len(splits), "o", ms=4, mew=0, color=colour(0), alpha=0.4)
                axes.plot([fmean(splits)], [k], "|", ms=13, mew=2, color=colour(1))
            name_lines(axes, list(values))
            size = "" if key.size is None else f", {key.size} rows"
            title = join(key.dataset, f"({kernel_caption(key.kernel, key.degree)}{size})")
            axes.set_title(title)
            means = (f"{label} {fmean(splits):.1f}" for label, splits in reversed(values.items()))
            lines.append(f"{title}: {', '.join(means)}")
        grid[-1].set_xlabel("accuracy on each test part (%), and mean")
    return "\n".join(lines)


def accuracies(sheet: Sheet, key: Key) -> dict[str, list[float]]:
    """Return the accuracies of each machine on a data set, sorted by mean in ascending order.

    Machines with equal means are in the reverse order of the sheet. The machine in `key` is
    ignored.
    """
    found = {
        sheet.label(machine): list(splits.values())
        for machine in reversed(sheet.machines)
        if (splits := sheet.by_split(key._replace(machine=machine)))
    }
    return dict(sorted(found.items(), key=lambda item: fmean(item[1])))
