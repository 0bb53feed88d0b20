"""Critical-difference diagram (Demsar 2006): mean ranks of the machines over data sets.

Machines that a bar joins do not differ significantly by Nemenyi's test at 0.05.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.tables.blocks import ranks_of
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import COLUMN, PAGE, drawing
from mmbench.tables.model import kernel_caption
from mmbench.tables.records import Experiment
from mmbench.tables.results import Reference
from mmbench.tables.sheet import Sheet
from mmbench.tables.statistics import LEVEL, Ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Any machine will do.
MACHINE = None
FROM_TABLE = True

#: Machines whose names find room beside a diagram in one column.
MOST_IN_A_COLUMN = 5
#: Inches of a line of text.
LINE = 0.19
#: Heights, in lines of text below the axis of ranks.
FIRST_BAR, BAR_STEP, FIRST_LABEL = 0.45, 0.3, 0.6


def draw(experiment: Experiment | Reference, output: Path) -> str:
    """Write the diagram of an experiment and return its numbers in words.

    Raises UserError if too few machines or data sets have results.
    """
    sheet = sheet_of(experiment)
    try:
        found = {kernel_caption(*kernel): ranks_of(sheet, kernel) for kernel in sheet.kernels}
    except ValueError as error:
        raise UserError(f"{experiment.name}: {error}") from None
    _plot(found, sheet, output)
    texts = (f"{name}. {_describe(ranks, sheet.label)}" for name, ranks in found.items())
    return "\n".join(texts)


def _plot(found: Mapping[str, Ranks], sheet: Sheet, output: Path) -> None:
    depths = [_depth(ranks) for ranks in found.values()]
    n_machines = max(len(ranks.means) for ranks in found.values())
    width = COLUMN if n_machines <= MOST_IN_A_COLUMN else PAGE
    height = sum(0.65 + LINE * depth for depth in depths)
    with drawing(output, width, height) as canvas:
        panels = canvas.subplots(
            len(found), 1, squeeze=False, height_ratios=[depth + 3 for depth in depths]
        )[:, 0]
        for axes, depth, (kernel, ranks) in zip(panels, depths, found.items(), strict=True):
            axes.set_title(f"{kernel}: mean ranks over {ranks.n} data sets")
            _panel(axes, ranks, depth, sheet.label)


def _depth(ranks: Ranks) -> float:
    """Return the height of a diagram in lines: the bars, and the longer side of the labels."""
    return FIRST_LABEL + BAR_STEP * len(ranks.cliques()) + (len(ranks.means) + 1) // 2


def _panel(axes: Axes, ranks: Ranks, depth: float, label: Callable[[str], str]) -> None:
    order = sorted(ranks.means, key=lambda machine: ranks.means[machine])
    bars, half = ranks.cliques(), (len(order) + 1) // 2
    left, right = order[:half], order[half:][::-1]
    low, high = 1, len(order)
    axes.set(xlim=(low - 1.1, high + 1.1), ylim=(depth, -1.6))
    axes.axis("off")
    _draw_scale(axes, low, high)
    _draw_critical_difference(axes, low, ranks.critical_difference)
    for k, group in enumerate(bars):
        ends = [ranks.means[group[0]] - 0.04, ranks.means[group[-1]] + 0.04]
        axes.plot(ends, [FIRST_BAR + BAR_STEP * k] * 2, color="black", lw=3)
    top = FIRST_LABEL + BAR_STEP * len(bars)
    _draw_labels(axes, ranks.means, left, label, low - 0.15, top)
    _draw_labels(axes, ranks.means, right, label, high + 0.15, top)


def _draw_scale(axes: Axes, low: int, high: int) -> None:
    axes.plot([low, high], [0, 0], color="black", lw=1)
    for rank in range(low, high + 1):
        axes.plot([rank, rank], [0, -0.15], color="black", lw=1)
        axes.text(rank, -0.25, str(rank), ha="center", va="bottom")


def _draw_critical_difference(axes: Axes, low: int, width: float) -> None:
    axes.plot([low, low + width], [-1.1, -1.1], color="black", lw=1.5, marker="|")
    text = f"critical difference {width:.2f}"
    axes.text(low + width / 2, -1.2, text, ha="center", va="bottom")


def _draw_labels(
    axes: Axes,
    ranks: Mapping[str, float],
    machines: Sequence[str],
    label: Callable[[str], str],
    edge: float,
    top: float,
) -> None:
    """Lead a line from each rank down and out to the machine's name; the outermost is on top."""
    for k, machine in enumerate(machines):
        rank, height = ranks[machine], top + k
        side = "right" if edge < rank else "left"
        axes.plot([rank, rank, edge], [0, height, height], color="black", lw=0.8)
        text = f" {label(machine)} ({rank:.2f}) "
        axes.text(edge, height, text, ha=side, va="center")


def _describe(ranks: Ranks, label: Callable[[str], str]) -> str:
    order = sorted(ranks.means, key=lambda machine: ranks.means[machine])
    lines = [
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}",
        f"Nemenyi: critical difference {ranks.critical_difference:.2f} at {LEVEL:g}",
        "Mean ranks: " + ", ".join(f"{label(m)} {ranks.means[m]:.2f}" for m in order),
    ]
    groups = [", ".join(map(label, group)) for group in ranks.cliques()]
    return "\n".join([*lines, *(f"Not significantly different: {group}" for group in groups)])
