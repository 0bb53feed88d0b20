"""The metric of each machine on every split, and its mean, with the best machine on top."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from mmbench.errors import UserError
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, name_lines, panels
from mmbench.tables.model import join, kernel_caption
from mmbench.tables.results import Experiment

#: The figure can be drawn for any machines.
MACHINE = None
#: Height of the row of one machine, and height of a panel without these rows, in inches.
LINE, FRAME = 0.27, 0.9


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return the mean accuracies as text.

    Raises UserError if no machine has a result.
    """
    sheet, found = sheet_of(experiment, "machines"), {}
    for place in sheet.places:
        # Sorted by mean in ascending order; equal machines are in the reverse order of the table.
        keys = [place._replace(machine=machine) for machine in reversed(sheet.machines)]
        values = [(sheet.label(key.machine), [*sheet.by_split(key).values()]) for key in keys]
        if own := sorted((pair for pair in values if pair[1]), key=lambda pair: fmean(pair[1])):
            found[place] = own
    if not found:
        raise UserError(f"{experiment.name}: no machine has a result")
    lines = []
    with panels(output, PAGE, [FRAME + LINE * len(values) for values in found.values()]) as grid:
        for axes, (place, values) in zip(grid[:, 0], found.items(), strict=True):
            for k, (_, splits) in enumerate(values):
                axes.plot(splits, [k] * len(splits), "o", ms=4, mew=0, color=colour(0), alpha=0.4)
                axes.plot([fmean(splits)], [k], "|", ms=13, mew=2, color=colour(1))
            name_lines(axes, [label for label, _ in values])
            size = "" if place.size is None else f", {place.size} rows"
            title = join(place.dataset, f"({kernel_caption(place.kernel, place.degree)}{size})")
            axes.set_title(title)
            means = (f"{label} {fmean(splits):.1f}" for label, splits in reversed(values))
            lines.append(f"{title}: {', '.join(means)}")
        grid[-1, 0].set_xlabel("accuracy on each test part (%), and mean")
    return "\n".join(lines)
