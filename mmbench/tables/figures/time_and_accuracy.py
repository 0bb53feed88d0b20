"""Accuracy and CPU time of each machine relative to the first machine.

There is one row per machine, with the fastest machine on top: the mean difference of accuracies
over data sets, and the median ratio of CPU times. The time of a split includes selection, training
and test; if a machine reuses the parameters of another machine, the selection time of the other
machine is included.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.tables.blocks import dataset_gaps, total_with_search
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, name_lines, panels
from mmbench.tables.frame import ACCURACY
from mmbench.tables.model import kernel_caption
from mmbench.tables.results import Experiment
from mmbench.tables.sheet import KernelKey, Sheet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: The figure can be drawn for any machines.
MACHINE = None
FROM_TABLE = True
EXPERIMENTS = ("verdict", "verdict_large")

#: Height of the row of one machine, and height of a panel without these rows, in inches.
LINE, FRAME = 0.2, 0.75
#: Half width of the shaded region of practical equivalence, in per cent of accuracy.
ROPE_PCT = 1.0


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure and return its numbers as text.

    Raises UserError if no machine shares two data sets with the first machine.
    """
    sheet = sheet_of(experiment)
    found = {kernel: points for kernel in sheet.kernels if len(points := _points(sheet, kernel))}
    first = sheet.label(sheet.machines[0]) if sheet.machines else "the first machine"
    if not found:
        raise UserError(f"{experiment.name}: no machine beside {first} on two data sets")
    heights, lines = [FRAME + LINE * len(points) for points in found.values()], []
    with panels(output, PAGE, heights, ratios=(3, 2)) as grid:
        for axes, (kernel, points) in zip(grid, found.items(), strict=True):
            _gains(axes[0], points, first)
            _times(axes[1], points, first)
            axes[0].set_title(kernel_caption(*kernel), loc="left")
            texts = (
                f"{p.machine} {p.gain:+.2f} ± {p.error:.2f} in {p.time:.2g} times the time"
                for p in points.itertuples()
            )
            lines.append(f"{kernel_caption(*kernel)}, against {first}: {', '.join(texts)}")
    return "\n".join(lines)


def _points(sheet: Sheet, kernel: KernelKey) -> pd.DataFrame:
    """Return one row per machine, with the fastest machine first.

    The columns are ``machine``, the mean ``gain`` in accuracy (%), twice its standard ``error``,
    the quartiles ``low``, ``time`` and ``high`` of the CPU time ratios, and the number ``n`` of
    data sets.
    """
    import pandas as pd

    columns = ["machine", "gain", "error", "low", "time", "high", "n"]
    rows = []
    for machine in sheet.machines[1:]:
        gaps = np.array(dataset_gaps(sheet, kernel, machine, sheet.machines[0]))
        ratios = time_ratios(sheet, kernel, machine, sheet.machines[0])
        if len(gaps) > 1 and len(ratios):
            error = 2 * gaps.std(ddof=1) / np.sqrt(len(gaps))
            quartiles = np.quantile(ratios, [0.25, 0.5, 0.75])
            rows.append((sheet.label(machine), gaps.mean(), error, *quartiles, len(gaps)))
    return pd.DataFrame(rows, columns=columns).sort_values("time", kind="stable")


def time_ratios(sheet: Sheet, kernel: KernelKey, machine: str, reference: str) -> NDArray:
    """Return the CPU time relative to `reference` for each data set with times of both machines."""
    times = [
        [total_with_search(sheet, key._replace(machine=name)) for name in (machine, reference)]
        for key in sheet.places_of(kernel)
    ]
    return np.array([ours / theirs for ours, theirs in times if ours and theirs])


def _gains(axes: Axes, points: pd.DataFrame, first: str) -> None:
    name_lines(axes, list(points.machine), downwards=True)
    axes.axvspan(-ROPE_PCT, ROPE_PCT, color="0.93", lw=0)
    axes.axvline(0.0, color="0.5", lw=0.8)
    axes.errorbar(points.gain, range(len(points)), xerr=points.error, fmt="o", color=colour(0))
    axes.set_xlabel(f"{ACCURACY} (%) minus {first}: mean over {points.n.max()} data sets ± 2 s.e.")


def _times(axes: Axes, points: pd.DataFrame, first: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    name_lines(axes, [""] * len(points), downwards=True)
    lines: list[Any] = list(points.itertuples())
    for k, point in enumerate(lines):
        axes.plot([point.low, point.high], [k, k], color=colour(1), lw=1.2)
        axes.plot([point.time], [k], "s", color=colour(1))
    axes.axvline(1.0, color="0.5", lw=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"CPU time relative to {first}:\nselection (also if reused), training, test")
