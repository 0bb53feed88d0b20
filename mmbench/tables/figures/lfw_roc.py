"""ROC curves of verification: a panel for each data set, a line for each machine.

The share of pairs of one person that are accepted against that of pairs of two: for each fold by
its own machine, averaged over folds at equal shares of false acceptances. The mean of the areas
under these curves is told with its standard error. A machine with fewer folds than another, as
while a run goes on, is marked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.tables.figures.style import COLUMN, PAGE, colour, dashes, drawing
from mmbench.tables.model import kernel_text
from mmbench.tables.records import Cell, Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Any machine will do.
MACHINE = None
EXPERIMENTS = ("lfw",)

#: Shares of false acceptances at which curves are averaged.
GRID = np.linspace(0.0, 1.0, 201)

#: Panels side by side, and inches of a line of the legends below them.
PER_LINE, LINE = 3, 0.16

#: A panel: data set, kernel and degree.
Panel = tuple[str, str, int | None]

#: Of each machine the curve at `GRID` and the area, one a fold.
Curves = dict[str, list[tuple[NDArray, float]]]


def draw(experiment: Experiment, output: Path) -> str:
    """Write the curves of an experiment with two classes and return the areas in words.

    Raises UserError if no data set has two classes.
    """
    panels: dict[Panel, Curves] = {}
    for cell in experiment.cells:
        if curves := _curves(experiment, cell):
            panel = panels.setdefault(cell.key[:3], {})
            panel[experiment.plan.label(cell.key.machine)] = curves
    if not panels:
        raise UserError(f"{experiment.name}: no finished record of a data set with two classes")
    _plot(panels, output)
    return "\n".join(_describe(panel, machines) for panel, machines in panels.items())


def _curves(experiment: Experiment, cell: Cell) -> list[tuple[NDArray, float]]:
    """Return the curve and the area of every fold that is done; none for many classes."""
    found = []
    for record in cell.done:
        if len(record.per_pair) != 1:
            return []
        arrays = experiment.store.arrays(record.key)
        positive = arrays["y_test"].astype(str) == str(record.per_pair[0]["pair"][1])
        if positive.any() and not positive.all():
            found.append(roc(arrays["decisions"][:, 0], positive))
    return found


def roc(decisions: NDArray, positive: NDArray) -> tuple[NDArray, float]:
    """Return the share of positives accepted at each share of `GRID` of negatives, and the area.

    `positive` has both values.

    Examples
    --------
    >>> curve, area = roc(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False]))
    >>> float(curve[0]), float(curve[-1]), area
    (0.5, 1.0, 0.75)
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    false, true, _ = roc_curve(positive, decisions, drop_intermediate=False)
    # Where the curve rises straight up, the upper end counts.
    at = np.searchsorted(false, GRID, side="right") - 1
    last = np.minimum(at + 1, len(false) - 1)
    step = np.where(last > at, false[last] - false[at], 1.0)
    curve = true[at] + (true[last] - true[at]) * (GRID - false[at]) / step
    return curve, float(roc_auc_score(positive, decisions))


def _plot(panels: dict[Panel, Curves], output: Path) -> None:
    names = list(dict.fromkeys(name for machines in panels.values() for name in machines))
    n_rows = -(-len(panels) // PER_LINE)
    width = PAGE if len(panels) > 1 else COLUMN
    height = n_rows * (width / min(len(panels), PER_LINE) + LINE * (len(names) + 2.5))
    with drawing(output, width, height) as canvas:
        grid = canvas.subplots(n_rows, min(len(panels), PER_LINE), squeeze=False).ravel()
        for axes, (panel, machines) in zip(grid, panels.items(), strict=False):
            _plot_panel(axes, panel, machines, names)
        for axes in grid[len(panels) :]:
            axes.axis("off")


def _plot_panel(axes: Axes, panel: Panel, machines: Curves, names: list[str]) -> None:
    for machine, curves in machines.items():
        k = names.index(machine)
        mean = np.mean([curve for curve, _ in curves], axis=0)
        area = np.mean([area for _, area in curves])
        label = f"{machine} ({area:.3f}{_part(curves, machines)})"
        axes.plot(GRID, mean, color=colour(k), ls=dashes(k), label=label)
    axes.plot([0, 1], [0, 1], color="0.7", lw=0.8, ls=":")
    axes.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal", anchor="N")
    axes.set(xlabel="false acceptances", ylabel="true acceptances")
    axes.set_title(f"{panel[0]} ({kernel_text(*panel[1:])})")
    # below, as curves of weak descriptors take all of the panel
    axes.legend(title="area under the curve", loc="upper left", bbox_to_anchor=(0, -0.22))


def _describe(panel: Panel, machines: Curves) -> str:
    parts = []
    for machine, curves in machines.items():
        areas = np.array([area for _, area in curves])
        spread = f" ± {areas.std(ddof=1) / np.sqrt(len(areas)):.4f}" if len(areas) > 1 else ""
        told = f"{areas.mean():.4f}{spread}{_part(curves, machines)}"
        parts.append(f"{machine} {told}")
    return f"{panel[0]}, area under the ROC curve: " + ", ".join(parts)


def _part(curves: list[tuple[NDArray, float]], machines: Curves) -> str:
    """Return how many folds a machine has, where others have more."""
    most = max(len(others) for others in machines.values())
    return f", {len(curves)} of {most} folds" if len(curves) < most else ""
