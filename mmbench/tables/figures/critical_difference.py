"""Critical-difference diagram (Demsar 2006): mean ranks of the machines over data sets.

There is one row per machine, with the best machine on top. Machines connected by a vertical bar do
not differ significantly in Nemenyi's test at the level 0.05.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.tables.blocks import ranks_of
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, name_lines, panels
from mmbench.tables.model import kernel_caption
from mmbench.tables.results import Experiment
from mmbench.tables.statistics import LEVEL, Ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The figure can be drawn for any machines.
MACHINE = None
FROM_TABLE = True

#: Height of the row of one machine, and height of a panel without these rows, in inches.
LINE, FRAME = 0.19, 0.75
#: Distance of two vertical bars as a fraction of the range of the mean ranks.
STEP = 0.05


def draw(experiment: Experiment, output: Path) -> str:
    """Write the diagram of an experiment and return its numbers as text.

    Raises UserError if too few machines or data sets have results.
    """
    sheet = sheet_of(experiment)
    try:
        found = {kernel_caption(*kernel): ranks_of(sheet, kernel) for kernel in sheet.kernels}
    except ValueError as error:
        raise UserError(f"{experiment.name}: {error}") from None
    labels = {machine: sheet.label(machine) for machine in sheet.machines}
    with panels(output, PAGE, [FRAME + LINE * len(r.means) for r in found.values()]) as grid:
        for axes, (kernel, ranks) in zip(grid[:, 0], found.items(), strict=True):
            cd = f"critical difference {ranks.critical_difference:.2f}"
            axes.set_title(f"{kernel}: mean ranks over {ranks.n} data sets, {cd}", loc="left")
            axes.set_xlabel(
                "mean rank (1 is best); a bar connects machines without a significant difference"
            )
            _panel(axes, ranks, labels)
    return "\n".join(f"{kernel}. {_describe(ranks, labels)}" for kernel, ranks in found.items())


def _panel(axes: Axes, ranks: Ranks, labels: dict[str, str]) -> None:
    """Draw the mean rank of each machine, and one vertical bar per clique."""
    order = ranks.order
    values = [ranks.means[machine] for machine in order]
    step = STEP * (values[-1] - values[0] or 1.0)
    name_lines(axes, [labels[machine] for machine in order], downwards=True)
    axes.hlines(range(len(order)), values[0] - step, values, color="0.8", lw=0.8)
    axes.plot(values, range(len(order)), "o", color=colour(0))
    for k, value in enumerate(values):
        axes.text(value + step / 3, k, f"{value:.2f}", va="center")
    for k, group in enumerate(ranks.cliques(), 2):
        ends = [order.index(group[0]) - 0.3, order.index(group[-1]) + 0.3]
        axes.plot([values[-1] + k * step] * 2, ends, color="black", lw=3, solid_capstyle="butt")


def _describe(ranks: Ranks, labels: dict[str, str]) -> str:
    means = ", ".join(f"{labels[machine]} {ranks.means[machine]:.2f}" for machine in ranks.order)
    groups = (", ".join(map(labels.__getitem__, group)) for group in ranks.cliques())
    return "\n".join([
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}",
        f"Nemenyi: critical difference {ranks.critical_difference:.2f} at {LEVEL:g}",
        f"Mean ranks: {means}",
        *(f"Not significantly different: {group}" for group in groups),
    ])  # fmt: skip
