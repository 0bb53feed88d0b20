"""Critical-difference diagram (Demsar 2006): mean ranks of the machines over data sets.

Machines connected by a bar do not differ significantly in Nemenyi's test at the level 0.05.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.tables.blocks import ranks_of
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import COLUMN, PAGE, drawing
from mmbench.tables.model import kernel_caption
from mmbench.tables.results import Experiment
from mmbench.tables.statistics import LEVEL, Ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The figure can be drawn for any machines.
MACHINE = None
FROM_TABLE = True

#: Maximum number of machines in a diagram of one column's width.
MAX_IN_A_COLUMN = 5
#: Height of one text line in inches.
LINE = 0.19
#: Distances below the rank axis in text lines: first bar, between bars, first label below the bars.
FIRST_BAR, BAR_STEP, FIRST_LABEL = 0.45, 0.3, 0.6


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
    # Depth of each panel in text lines: the bars, and the longer column of labels.
    depths = [
        FIRST_LABEL + BAR_STEP * len(ranks.cliques()) + (len(ranks.means) + 1) // 2
        for ranks in found.values()
    ]
    n_machines = max(len(ranks.means) for ranks in found.values())
    width = COLUMN if n_machines <= MAX_IN_A_COLUMN else PAGE
    with drawing(output, width, sum(0.65 + LINE * depth for depth in depths)) as canvas:
        heights = [depth + 3 for depth in depths]
        grid = canvas.subplots(len(found), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, depth, (kernel, ranks) in zip(grid, depths, found.items(), strict=True):
            axes.set_title(f"{kernel}: mean ranks over {ranks.n} data sets")
            axes.set(xlim=(-0.1, len(ranks.means) + 1.1), ylim=(depth, -1.6))
            axes.axis("off")
            _panel(axes, ranks, labels)
    return "\n".join(f"{kernel}. {_describe(ranks, labels)}" for kernel, ranks in found.items())


def _panel(axes: Axes, ranks: Ranks, labels: dict[str, str]) -> None:
    """Draw the rank axis, the critical difference, one bar per clique, and labels of the machines.

    A line connects the mean rank of each machine with its label. Labels are on the left for the
    better half of the machines, and on the right for the other half; the most extreme ranks are on
    top.
    """
    order, width = ranks.order, ranks.critical_difference
    axes.plot([1, len(order)], [0, 0], color="black", lw=1)
    for tick in range(1, len(order) + 1):
        axes.plot([tick, tick], [0, -0.15], color="black", lw=1)
        axes.text(tick, -0.25, str(tick), ha="center", va="bottom")
    axes.plot([1, 1 + width], [-1.1, -1.1], color="black", lw=1.5, marker="|")
    text = f"critical difference {width:.2f}"
    axes.text(1 + width / 2, -1.2, text, ha="center", va="bottom")
    bars, half = ranks.cliques(), (len(order) + 1) // 2
    for k, group in enumerate(bars):
        ends = [ranks.means[group[0]] - 0.04, ranks.means[group[-1]] + 0.04]
        axes.plot(ends, [FIRST_BAR + BAR_STEP * k] * 2, color="black", lw=3)
    sides = ((order[:half], 0.85), (order[half:][::-1], len(order) + 0.15))
    for machines, edge in sides:
        for k, machine in enumerate(machines):
            rank, height = ranks.means[machine], FIRST_LABEL + BAR_STEP * len(bars) + k
            axes.plot([rank, rank, edge], [0, height, height], color="black", lw=0.8)
            side = "right" if edge < rank else "left"
            axes.text(edge, height, f" {labels[machine]} ({rank:.2f}) ", ha=side, va="center")


def _describe(ranks: Ranks, labels: dict[str, str]) -> str:
    means = ", ".join(f"{labels[machine]} {ranks.means[machine]:.2f}" for machine in ranks.order)
    groups = (", ".join(map(labels.__getitem__, group)) for group in ranks.cliques())
    return "\n".join([
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}",
        f"Nemenyi: critical difference {ranks.critical_difference:.2f} at {LEVEL:g}",
        f"Mean ranks: {means}",
        *(f"Not significantly different: {group}" for group in groups),
    ])  # fmt: skip
