"""What each machine gains in accuracy over the first one, and what it takes of its CPU time.

A line a machine, the cheapest on top: the mean difference of accuracies over data sets, and the
median of the ratios of CPU time. Times are those of selection, training and test of a split, and of
the selection of another machine where its parameters are taken over.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.tables.blocks import ACCURACY, dataset_gaps, total_with_search
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing
from mmbench.tables.model import kernel_caption
from mmbench.tables.records import Experiment
from mmbench.tables.results import Reference
from mmbench.tables.sheet import KernelKey, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Any machine will do.
MACHINE = None
FROM_TABLE = True
EXPERIMENTS = ("verdict", "verdict_large")

#: Inches of a line, and of what a panel has beside its lines.
LINE, FRAME = 0.2, 0.75
#: Differences up to this, in per cent, are shaded: practically none.
ROPE_PCT = 1.0


class Tradeoff(NamedTuple):
    """A machine against the first one, over data sets."""

    #: Mean difference of accuracies in per cent, and twice its standard error.
    gain: float
    error: float
    #: Median and quartiles of the ratios of CPU time.
    time: float
    low: float
    high: float
    n: int


def draw(experiment: Experiment | Reference, output: Path) -> str:
    """Write the figure and return its numbers in words.

    Raises UserError if no machine can be held against the first one over two data sets.
    """
    sheet = sheet_of(experiment)
    panels = {kernel: points for kernel in sheet.kernels if (points := points_of(sheet, kernel))}
    if not panels:
        first = sheet.label(sheet.machines[0]) if sheet.machines else "the first machine"
        raise UserError(f"{experiment.name}: no machine beside {first} on two data sets")
    heights = [FRAME + LINE * len(points) for points in panels.values()]
    with drawing(output, PAGE, sum(heights)) as canvas:
        grid = canvas.subplots(
            len(panels), 2, squeeze=False, height_ratios=heights, width_ratios=[3, 2]
        )
        for axes, (kernel, points) in zip(grid, panels.items(), strict=True):
            _gains(axes[0], sheet, points, kernel_caption(*kernel))
            _times(axes[1], sheet, points)
    return "\n".join(_describe(sheet, kernel, points) for kernel, points in panels.items())


def points_of(sheet: Sheet, kernel: KernelKey) -> dict[str, Tradeoff]:
    """Return what is drawn of each machine with a kernel, the cheapest first."""
    first, *others = sheet.machines
    found = {}
    for machine in others:
        gaps = np.array(dataset_gaps(sheet, kernel, machine, first))
        ratios = time_ratios(sheet, kernel, machine, first)
        if len(gaps) > 1 and len(ratios):
            error = 2 * float(gaps.std(ddof=1)) / np.sqrt(len(gaps))
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75]).tolist()
            found[machine] = Tradeoff(float(gaps.mean()), error, middle, low, high, len(gaps))
    return dict(sorted(found.items(), key=lambda item: item[1].time))


def time_ratios(sheet: Sheet, kernel: KernelKey, machine: str, reference: str) -> NDArray:
    """Return by data set the CPU time of a machine over that of another, where both are known."""
    places = sheet.places_of(kernel)
    times = [
        [total_with_search(sheet, place._replace(machine=name)) for name in (machine, reference)]
        for place in places
    ]
    return np.array([ours / theirs for ours, theirs in times if ours and theirs])


def _lines(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _gains(axes: Axes, sheet: Sheet, points: dict[str, Tradeoff], kernel: str) -> None:
    _lines(axes, [sheet.label(machine) for machine in points])
    first, n = sheet.label(sheet.machines[0]), max(point.n for point in points.values())
    axes.axvspan(-ROPE_PCT, ROPE_PCT, color="0.93", lw=0)
    axes.axvline(0.0, color="0.5", lw=0.8)
    gains, errors = [p.gain for p in points.values()], [p.error for p in points.values()]
    axes.errorbar(gains, range(len(points)), xerr=errors, fmt="o", color=colour(0))
    axes.set_xlabel(f"{ACCURACY} (%) less that of {first}: mean over {n} data sets")
    axes.set_title(kernel, loc="left")


def _times(axes: Axes, sheet: Sheet, points: dict[str, Tradeoff]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    _lines(axes, [""] * len(points))
    for k, point in enumerate(points.values()):
        axes.plot([point.low, point.high], [k, k], color=colour(1), lw=1.2)
        axes.plot([point.time], [k], "s", color=colour(1))
    axes.axvline(1.0, color="0.5", lw=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    first = sheet.label(sheet.machines[0])
    axes.set_xlabel(f"CPU time over that of {first}:\nsearch (own and taken over), training, test")


def _describe(sheet: Sheet, kernel: KernelKey, points: dict[str, Tradeoff]) -> str:
    texts = (
        f"{sheet.label(machine)} {p.gain:+.2f} ± {p.error:.2f} in {p.time:.2g} times the time"
        for machine, p in points.items()
    )
    return (
        f"{kernel_caption(*kernel)}, against {sheet.label(sheet.machines[0])}: {', '.join(texts)}"
    )
